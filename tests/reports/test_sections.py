"""What an audit has beside the metrics of its task, or on request."""

import re

import numpy as np
import pandas as pd
import pytest

from skrankfair import audit, metrics
from skrankfair._estimates.formatting import number, pvalue
from skrankfair._reports.catalog import catalog
from skrankfair.inference import (
    marginal_outcome_test,
    monotonicity_test,
    outcome_inequality_test,
)
from skrankfair.metrics import matched_pair_curve, positive_rate_shift, selection_rate
from tests.metrics.common import assert_same as same

from .common import data, risks

#: The metrics on request, and their options.
ASKED = {
    "dips": {"position_weight": "top", "k": 5},
    "exposure_gap": {"position_weight": "top", "k": 5},
    "ndkl": {},
    "normalized_discounted_difference": {"step": 5},
    "normalized_discounted_ratio": {"step": 5},
    "normalized_discounted_kl": {"step": 5},
    "skew_at_k": {"k": 5},
}


@pytest.fixture(name="rows", scope="module")
def _rows():
    return data(n_queries=160, bias=0.8)


@pytest.fixture(name="report", scope="module")
def _report(rows):
    return audit(**rows, k=5, metrics="all")


class TestAll:
    def test_is_the_task_and_what_it_has_on_request(self, rows, report):
        names = [m.name for m in catalog().values() if "ranking" in m.tasks]
        assert list(report.results) == names
        assert set(names) - set(audit(**rows, k=5).results) == set(ASKED)

    @pytest.mark.filterwarnings("ignore:skew_at_k is infinite")
    @pytest.mark.parametrize("name", ASKED)
    def test_numbers_are_those_of_the_metric(self, rows, report, name):
        alone = getattr(metrics, name)(**rows, **ASKED[name])
        same(report.results[name], alone)
        same(audit(**rows, k=5, metrics=name).results[name], alone)

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


class TestRisk:
    @pytest.fixture(name="sections")
    def _sections(self):
        return audit(**risks(), favorable="low", threshold=0.5).sections

    def test_tests_equal_outcomes_at_equal_scores(self, sections):
        assert sections[0].title.startswith("Predictive parity")
        assert sections[0].paragraphs[0].startswith("Equal scores do not mean equal")
        test = marginal_outcome_test(**risks(), threshold=0.5)
        assert sections[1].title.startswith("Marginal outcomes")
        assert f"(p {pvalue(test.pvalue)})" in sections[1].paragraphs[0]
        assert [row[1] for row in sections[1].rows] == [*map(number, test.outcomes)]
        shift = positive_rate_shift(**risks(), threshold=0.5)
        assert sections[2].title.startswith("What would change")
        assert [row[1] for row in sections[2].rows] == [*map(number, shift.estimate)]

    @pytest.mark.filterwarnings("ignore")
    def test_many_groups_are_compared_with_the_rest(self):
        groups = {"sensitive_features": np.arange(1500) % 33}
        (section,) = audit(**risks(n_rows=1500) | groups).sections
        assert [row[0] for row in section.rows] == [f"{g} - rest" for g in range(33)]
        assert "between each group and the rest" in section.paragraphs[1]
        (section,) = audit(**risks(n_rows=300), cluster=np.zeros(300)).sections
        assert section.paragraphs[0].startswith("There is too little data")

    def test_are_corrected_over_the_columns(self):
        rows = risks(n_rows=600)
        columns = {"one": rows["sensitive_features"], "other": np.arange(600) % 2}
        given = rows | {"sensitive_features": pd.DataFrame(columns), "cross": False}
        sections = {s.title: s for s in audit(**given, threshold=0.5).sections}
        test = marginal_outcome_test(**rows, threshold=0.5)
        said = sections["Marginal outcomes: those just above 0.5000, by one"]
        assert f"(p {pvalue(min(1, 2 * test.pvalue))})" in said.paragraphs[0]

    def test_answer_the_question_of_equal_scores(self):
        """Curves that cross have no gap in the mean."""
        rng = np.random.default_rng(2)
        score, group = rng.uniform(0.1, 0.9, 4000), np.arange(4000) % 2
        chance = np.where(group, score, 0.5 + 0.3 * (score - 0.5))
        report = audit(rng.random(4000) < chance, score, sensitive_features=group)
        question, answer = report.answers[0]
        assert question == "Do equal scores mean the same?"
        assert answer.startswith("Equal scores do not mean equal outcomes (p <0.001).")

    def test_what_cannot_be_tested_is_a_note(self):
        given = risks(n_rows=300)
        report = audit(**given, threshold=np.max(given["y_score"]))
        titles = [section.title for section in report.sections]
        assert not any(title.startswith("Marginal") for title in titles)
        assert any("marginal outcomes is left out" in note for note in report.notes)
        levels = given | {"y_score": np.round(10 * np.asarray(given["y_score"]))}
        notes = "".join(audit(**levels, threshold=5).notes)
        assert "change is left out: it needs scores on the scale of the out" in notes


def applicants(n=2000):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"sex": rng.choice(["f", "m"], n)})
    frame["race"] = rng.choice(["a", "b", "c"], n, p=[0.49, 0.5, 0.01])
    chance = np.where(frame["race"] == "a", 0.5, 0.2)
    frame["hired"] = (rng.random(n) < chance) * 1
    frame["score"] = rng.normal(size=n) + (frame["race"] == "a")
    return frame


def tables(frame, score="hired", **options):
    """Return an audit with impact ratios, and the sections that have them."""
    options = {"sensitive_features": frame[["sex", "race"]], **options}
    options = {"metrics": "pairwise_exposure", "impact_ratio": True, **options}
    report = audit(np.arange(len(frame)) % 2, frame[score], **options)
    return report, report.sections


def test_one_table_per_column_and_one_crossed():
    frame = applicants()
    report, found = tables(frame)
    titles = [section.title for section in found]
    by = ("sex", "race", "sex × race")
    assert titles == [f"Impact ratios by {name} (four-fifths rule)" for name in by]
    rates = frame.groupby("race")["hired"].mean()
    rows = {row[0]: row for row in found[1].rows}
    for race, rate in rates.items():
        assert rows[race][2] == f"{rate:.4f}"
        assert rows[race][4] == f"{rate / rates['a']:.4f}"
    assert rows["a"][-1] == "highest rate"
    assert rows["b"][-1] == "below four fifths beyond chance"
    assert "small (" in rows["c"][-1]
    assert "Beyond chance: b" in " ".join(found[1].paragraphs)
    crossed = frame.groupby(["sex", "race"])["hired"].mean()
    np.testing.assert_allclose(report.rates.estimate, crossed.to_numpy())
    assert report.by == "sex × race"
    assert "sex × race" in repr(report)


def test_intervals_of_ratios_hold_at_once():
    frame = applicants()
    _, (section,) = tables(frame, sensitive_features=frame["race"])
    rates = selection_rate(None, frame["hired"], sensitive_features=frame["race"])
    # Any of the three could have the highest rate: three pairs.
    ends = rates.contrast("b", "a", kind="ratio").confidence_interval(1 - 0.05 / 3)
    (row,) = (row for row in section.rows if row[0] == "b")
    assert row[5] == f"[{ends.low:.4f}, {ends.high:.4f}]"


def test_scores_have_a_scoring_rate():
    frame = applicants()
    report, found = tables(frame, "score", sensitive_features=frame["sex"])
    above = frame["score"] > frame["score"].median()
    expected = above.groupby(frame["sex"]).mean()
    np.testing.assert_allclose(report.rates.estimate, expected.to_numpy())
    assert found[0].header[2] == "scoring rate"
    report, _ = tables(frame, "score", threshold=0.5)
    assert report.rates.estimate.max() == pytest.approx(
        (frame["score"] >= 0.5).groupby([frame["sex"], frame["race"]]).mean().max()
    )


def test_rows_of_weight_0_do_not_move_the_median():
    frame = applicants()
    weight = (frame["score"] > 0.3) * 1.0
    report, _ = tables(frame, "score", item_weight=weight)
    counted, _ = tables(frame[weight > 0], "score")
    np.testing.assert_allclose(report.rates.estimate, counted.rates.estimate)


def test_labels_named_name_and_scores_of_32_bits_are_those_of_the_metrics():
    score = np.tile(np.float32([0.5, 0.6, 0.7, 0.8]), 500)
    labels = pd.DataFrame({"name": np.arange(2000) // 1000})
    options = {"sensitive_features": labels, "threshold": 0.7, "missing": "drop"}
    report = audit(score > 0.6, score, impact_ratio=True, **options)
    rates = report.results["selection_rate"].estimate
    np.testing.assert_array_equal(report.rates.estimate, rates)
    assert (rates[0], report.by) == (0.5, "")


def test_of_a_ranking_it_is_that_of_the_query():
    frame = applicants()
    query = np.repeat(np.arange(200), 10)
    # Another level per query tells nothing of who is in the upper half of it.
    moved = frame.assign(score=frame["score"] + 10.0 * (query % 3))
    reports = [tables(part, "score", qid=query)[0] for part in (frame, moved)]
    np.testing.assert_allclose(reports[0].rates.estimate, reports[1].rates.estimate)
    assert reports[0].rates.n_clusters == 200


def test_unknown_labels_are_counted_and_no_category():
    frame = applicants()
    frame["sex"] = frame["sex"].astype(object)
    frame.loc[:99, "sex"] = None
    with pytest.warns(UserWarning, match="100 of 2,000 rows have no label"):
        report, found = tables(frame, missing="group")
    assert not any("missing" in said for said in report.failures("impact_ratio<2"))
    by_sex, by_race, crossed = found
    for section in (by_sex, crossed):
        assert "100 rows have no category" in " ".join(section.paragraphs)
        assert not any("missing" in row[0] for row in section.rows)
    assert len(by_race.rows) == 3


def test_without_a_rate_nothing_is_made_up():
    frame = applicants(40).assign(hired=0)
    _, (section,) = tables(frame, sensitive_features=frame["sex"])
    said = "No category has a rate above 0, so there are no ratios."
    assert (section.rows, section.paragraphs[-1]) == ((), said)


@pytest.mark.parametrize(
    ("score", "options", "good", "says"),
    [
        ("hired", {"task": "decision"}, lambda s: s == 0, "with decision 0"),
        ("score", {"task": "risk", "threshold": 0.3}, lambda s: s < 0.3, "below 0.3"),
        ("score", {"task": "risk"}, lambda s: s < s.median(), "below the median"),
    ],
)
def test_where_low_is_good_the_rate_is_of_those_who_are_spared(
    score, options, good, says
):
    frame = applicants()
    who = {"sensitive_features": frame["race"], "favorable": "low"}
    report, found = tables(frame, score, **who, **options)
    (section,) = found
    rates = good(frame[score]).groupby(frame["race"]).mean()
    np.testing.assert_allclose(report.rates.estimate, rates)
    assert says in section.paragraphs[0]
    # Those of "a" have more of what is bad.
    assert [row[0] for row in section.rows][-1] == "a"
    assert section.rows[-1][4] == f"{rates['a'] / rates[['b']].max():.4f}"


def test_a_condition_on_what_is_bad_for_people_is_refused():
    frame = applicants()
    options = {"sensitive_features": frame["race"], "favorable": "low"}
    options["metrics"] = "selection_rate"
    report, _ = tables(frame, impact_ratio=False, **options)
    with pytest.raises(ValueError, match="no rates of what is good for people"):
        report.failures("impact_ratio<0.8")
    spared, _ = tables(frame, **options)
    (said,) = spared.failures("impact_ratio<0.8")
    assert "of a / " in said
