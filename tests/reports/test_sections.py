"""What an audit has beside the metrics of its task, or on request."""

import re

import numpy as np
import pytest

from skrankfair import audit, metrics
from skrankfair._estimates.formatting import number, pvalue
from skrankfair._reports.catalog import catalog
from skrankfair.inference import (
    marginal_outcome_test,
    monotonicity_test,
    outcome_inequality_test,
)
from skrankfair.metrics import matched_pair_curve, positive_rate_shift

from .common import by_name, data, risks, same

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
        usual = audit(**rows, k=5).results
        assert set(names) - set(usual) == set(ASKED)

    @pytest.mark.filterwarnings("ignore:skew_at_k is -inf")
    @pytest.mark.parametrize("name", ASKED)
    def test_numbers_are_those_of_the_metric(self, rows, report, name):
        alone = getattr(metrics, name)(**rows, **ASKED[name])
        same(report.results[name], alone)
        same(audit(**rows, k=5, metrics=name).results[name], alone)

    def test_says_who_is_shown_less_than_merited(self, report):
        finding = by_name(report)["exposure_gap"]
        assert [row.group for row in finding.on("worse")] == ["f"]
        assert finding.verdict.startswith("Shown less than its outcomes merit: f")
        assert "Shown less than its outcomes merit: f" in report.headline

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
        assert section.rows[1][0] == "1 - rest"
        assert len(section.rows) == 33
        assert "between each group and the rest" in section.paragraphs[1]

    def test_what_cannot_be_tested_is_a_note(self):
        report = audit(**risks(n_rows=300), threshold=2.0)
        titles = [section.title for section in report.sections]
        assert not any(title.startswith("Marginal") for title in titles)
        assert any("marginal outcomes is left out" in note for note in report.notes)
