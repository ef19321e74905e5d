"""What an audit has on request, and the options that its cross-validation shares."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skrankfair import audit, audit_cv, mitigation_report
from skrankfair._reports.catalog import catalog
from skrankfair.inference import monotonicity_test, outcome_inequality_test
from skrankfair.metrics import (
    dips,
    exposure_gap,
    matched_pair_curve,
    ndkl,
    normalized_discounted_difference,
    normalized_discounted_kl,
    normalized_discounted_ratio,
    share_at_k,
    skew_at_k,
)
from tests.designs import AUDITS

TOP = {"position_weight": "top", "k": 5}
ALONE = {
    "dips": lambda **rows: dips(**rows, **TOP),
    "exposure_gap": lambda **rows: exposure_gap(**rows, **TOP),
    "ndkl": ndkl,
    **{
        metric.__name__: lambda metric=metric, **rows: metric(**rows, step=5)
        for metric in (
            normalized_discounted_difference,
            normalized_discounted_ratio,
            normalized_discounted_kl,
        )
    },
    "skew_at_k": lambda **rows: skew_at_k(**rows, k=5),
}


@pytest.fixture(name="rows", scope="module")
def _rows():
    """Return a ranking that undervalues "f"."""
    rng = np.random.default_rng(0)
    query, group = np.repeat(np.arange(200), 8), rng.choice(["f", "m"], 1600)
    quality = rng.normal(size=1600)
    return {
        "y_true": (quality + rng.normal(size=1600) > 0).astype(float),
        "y_score": quality - 0.8 * (group == "f"),
        "sensitive_features": group,
        "qid": query,
    }


@pytest.fixture(name="report", scope="module")
def _report(rows):
    return audit(**rows, k=5, metrics="all")


class TestAll:
    def test_is_the_task_and_what_it_has_on_request(self, rows, report):
        names = [m.name for m in catalog().values() if "ranking" in m.tasks]
        assert list(report.results) == names
        usual = audit(**rows, k=5).results
        assert set(names) - set(usual) == set(ALONE)

    @pytest.mark.filterwarnings("ignore:skew_at_k is -inf")
    @pytest.mark.parametrize("name", ALONE)
    def test_numbers_are_those_of_the_metric(self, rows, report, name):
        alone, found = ALONE[name](**rows), report.results[name]
        np.testing.assert_array_equal(found.estimate, alone.estimate)
        np.testing.assert_array_equal(found.standard_error, alone.standard_error)
        named = audit(**rows, k=5, metrics=name).results[name]
        np.testing.assert_array_equal(named.estimate, alone.estimate)

    def test_says_who_is_shown_less_than_merited(self, report):
        finding = {f.metric.name: f for f in report.findings}["exposure_gap"]
        assert [row.group for row in finding.worse] == ["f"]
        assert finding.verdict.startswith("Shown less than its outcomes merit: f")
        assert report.headline == "1 of 2 groups is worse off beyond chance: f."

    def test_a_skew_without_a_number_is_told_in_words(self, report, tmp_path):
        assert np.isneginf(report.results["skew_at_k"].estimate).all()
        page = report.to_html(tmp_path / "a.html").read_text(encoding="utf-8")
        for text in (repr(report), page):
            assert "no place in the top 5 of some query" in text
            assert not re.search(r"\binf\b", text)

    def test_sections_are_those_of_the_tests(self, rows, report):
        curve, inequality, monotone = report.sections
        epsilon = matched_pair_curve(**rows).epsilon
        assert curve.header[1] == f"up to {epsilon[0]:.3g}"
        assert curve.header[-1] == f"up to {epsilon[-1]:.3g}"
        test = outcome_inequality_test(**rows, random_state=0)
        assert f"{test.critical_value:.3g}" in inequality.paragraphs[1]
        a, b = test.groups[test.worst]
        first = inequality.rows[0]
        j, k = test.positions[test.worst]
        assert first[0] == f"{a} at {j}, {b} at {k}"
        who = {name: rows[name] for name in ("y_score", "sensitive_features", "qid")}
        share = monotonicity_test(**who, group="f", random_state=0).share
        # Of two groups the one says all.
        assert [row[:2] for row in monotone.rows] == [("f", f"{share[0]:.4f}")]

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
    def test_more_groups_than_a_table_shows_have_a_note(self, rows):
        groups = np.arange(1600) % 31
        report = audit(**{**rows, "sensitive_features": groups}, metrics="all")
        assert report.sections == ()
        notes = " ".join(report.notes)
        assert notes.count("the report has it for at most 30 groups; got 31.") == 3

    def test_one_list_has_no_intervals_and_no_test_of_places(self, rows):
        report = audit(**{**rows, "qid": None}, task="ranking", metrics="all")
        for short in ("DIPS", "Exposure gap", "NDKL", "rND", "NDCG"):
            note = f"{short} has no interval, since there is only one query."
            assert note in report.notes
        assert np.isnan(report.results["dips"].standard_error).all()

    def test_a_stored_report_is_the_same(self, report, tmp_path):
        again = type(report).from_json(report.to_json())
        assert repr(again) == repr(report)
        page = report.to_html(tmp_path / "report.html").read_text()
        assert "share of the largest dissatisfaction, %" in page

    @pytest.mark.simulation
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
    def test_names_nobody_of_noise(self):
        names = [
            m.name
            for m in catalog().values()
            if "ranking" in m.tasks and m.cut != "required"
        ]
        named = [
            audit(**AUDITS["audit5"].draw(seed), metrics=names).headlines[0]
            for seed in range(20)
        ]
        assert sum("worse off beyond chance" in said for said in named) <= 3


@pytest.fixture(name="X")
def _frame(rows):
    X = pd.DataFrame({"score": rows["y_score"], "q": rows["qid"]})
    X["g"] = rows["sensitive_features"]
    return X.assign(w=1 + np.arange(1600) % 3)


def _score(X):
    return X[["score"]]


class TestCrossValidation:
    model = make_pipeline(FunctionTransformer(_score), LinearRegression())

    def test_first_places_of_queries(self, rows, X):
        report = audit_cv(
            self.model, X, rows["y_true"], sensitive_features="g", qid="q", k=5
        )
        assert report.k == 5
        # Models of one feature rank as it does.
        alone = share_at_k(**rows, k=5)
        found = report.results["share_at_k"]
        np.testing.assert_allclose(found.estimate, alone.estimate, rtol=1e-12)

    def test_k_needs_queries(self, rows, X):
        with pytest.raises(ValueError, match="k must be None without qid"):
            audit_cv(self.model, X, rows["y_true"], sensitive_features="g", k=5)

    def test_threshold_and_impact_ratios_of_a_risk(self, rows, X):
        report = audit_cv(
            *(self.model, X, rows["y_true"]),
            sensitive_features="g",
            task="risk",
            favorable="low",
            threshold=0.5,
            impact_ratio=True,
        )
        titles = [section.title for section in report.sections]
        assert titles[-1] == "Impact ratios by g (four-fifths rule)"
        assert "Marginal outcomes: the last above 0.5000" in titles
        assert report.failures("impact_ratio<0.01") == []

    @pytest.mark.parametrize("qid", ["q", None])
    def test_missing_rows_are_left_out_of_the_audit(self, rows, X, qid):
        lacking = X.assign(g=X["g"].where(X.index != 5))
        arguments = {"sensitive_features": "g", "qid": qid, "item_weight": "w"}
        with pytest.warns(UserWarning, match="1 of 1,600 rows are left out"):
            report = audit_cv(
                *(self.model, lacking, rows["y_true"]), **arguments, missing="drop"
            )
        assert report.n_rows == 1599
        assert any("1 lack sensitive_features" in note for note in report.notes)
        for result in report.results.values():
            assert result.missing == {"dropped": 1, "sensitive_features": 1}
        # Weights of 0 for rows are the same as their removal.
        weight = np.where(X.index == 5, 0, X["w"])
        whole = audit_cv(
            *(self.model, X, rows["y_true"]), **{**arguments, "item_weight": weight}
        )
        name = "inter_group_accuracy"
        np.testing.assert_allclose(
            report.results[name].estimate, whole.results[name].estimate, rtol=1e-9
        )


def test_a_mitigation_has_the_options_of_an_audit(rows):
    rows = {name: values[:600] for name, values in rows.items()}
    before = np.clip(0.5 + rows["y_score"] / 8, 0, 1)
    after = before + 0.1 * (rows["sensitive_features"] == "f")
    after = np.clip(after, 0, 1)
    who = {"sensitive_features": rows["sensitive_features"]}
    report = mitigation_report(
        *(before, after, rows["y_true"]),
        **who,
        favorable="high",
        threshold=0.5,
        impact_ratio=True,
    )
    alone = audit(
        *(rows["y_true"], after),
        **who,
        favorable="high",
        threshold=0.5,
        impact_ratio=True,
    )
    assert repr(report.audit_after) == repr(alone)
    named = ["recall_at_k", "exposure_gap", "ndkl"]
    places = mitigation_report(
        *(before, after, rows["y_true"]), **who, qid=rows["qid"], k=5, metrics=named
    )
    assert "recall_at_k" in places.disparities
    assert "exposure_gap" in places.disparities
    assert "ndkl" not in places.disparities  # nothing says what is fair of a few items


def test_a_table_without_a_plot_has_the_width_of_the_page(report, tmp_path):
    page = report.to_html(tmp_path / "report.html").read_text()
    for section in report.sections:
        head = page.index(section.title)
        table = page.index("<table", head)
        assert 'class="pair"' not in page[head:table]
