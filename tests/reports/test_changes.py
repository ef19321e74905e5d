"""changes_since: what has changed between two audits, beyond chance."""

import json
import warnings

import numpy as np
import pytest

from skrankfair import AuditReport, audit
from skrankfair.inference import compare, compare_independent

from .common import by_name, data

INTER = "inter_group_accuracy"


def week(seed, bias=0.0, groups="fm", **options):
    return audit(**data(tuple(groups), n_queries=300, bias=bias, seed=seed), **options)


@pytest.fixture(scope="module")
def mended():
    """A gap of the last week that has been closed."""
    before, now = week(0, bias=0.8), week(1)
    return before, now, now.changes_since(before)


class TestNumbers:
    def test_are_those_of_compare_independent(self, mended):
        *audits, change = mended
        old, new = (report.results[INTER] for report in audits)
        expected = compare_independent(new, old)
        np.testing.assert_array_equal(change.results[INTER].estimate, expected.estimate)
        gaps = compare_independent(new.against_rest(), old.against_rest())
        found = change.results[f"{INTER}_gap"].pvalue
        np.testing.assert_array_equal(found, gaps.pvalue)

    def test_of_the_same_queries_are_paired(self):
        before, now = week(0), week(0, bias=-1)
        change = now.changes_since(before, paired=True)
        expected = compare(now.results["ndcg"], before.results["ndcg"])
        found = change.results["ndcg"]
        np.testing.assert_array_equal(found.standard_error, expected.standard_error)
        assert "on the same clusters" in change.reading
        same = now.changes_since(now, paired=True)
        assert same.headline == "Nothing has changed: all values are those of before."
        assert {f.verdict for f in same.findings if f.tested} == {same.headline}

    def test_are_in_every_output(self, mended, tmp_path):
        *_, change = mended
        assert {INTER, f"{INTER}_gap"} <= {*change.to_frame().metric}
        found = json.loads(change.to_json(tmp_path / "c.json").read_text())
        assert found["headline"] == change.headline
        page = change.to_html(tmp_path / "c.html").read_text()
        assert change.answers[0][1] in page
        assert "by how much each group has changed" in page
        assert all(words in page for words in ("no change shown", "marks no change."))
        assert "What has changed" in change.to_markdown()
        assert f"{INTER}_gap/f/estimate" in change.to_dict(flat=True)


class TestWords:
    def test_a_closed_gap_is_closer_to_fair_for_both_groups(self, mended):
        before, now, change = mended
        assert "Now further from fair: f, m." in before.changes_since(now).headline
        assert "Now closer to fair: f, m." in change.headline
        assert "further from fair" not in change.headline
        gap = change.to_frame().set_index("metric").loc[f"{INTER}_gap"]
        assert list(gap.verdict) == ["closer to fair"] * 2

    def test_across_fair_is_neither(self, mended):
        before, *_ = mended
        change = week(1, bias=-0.8).changes_since(before)
        gap = change.to_frame().set_index("metric").loc[f"{INTER}_gap"]
        assert list(gap.side) == ["higher", "lower"]
        unknown = "Lower than before, and not shown to be closer or further: m ("
        assert unknown in by_name(change)[f"{INTER}_gap"].verdict
        once = week(1, bias=-0.64).changes_since(before)  # not after the correction
        assert by_name(once)[f"{INTER}_gap"].rows[0].side == "better"
        assert "Now closer" not in once.headline

    def test_levels_are_higher_or_lower_and_never_worse(self, mended):
        *_, change = mended
        rows = change.to_frame().set_index("metric")
        assert {*rows.loc[INTER].side} == {"higher", "lower"}
        assert {*rows.loc["pairwise_exposure"].side} == {"higher", "lower"}

    def test_have_both_values(self, mended):
        before, now, change = mended
        finding = by_name(change)[INTER]
        values = [report.results[INTER].estimate for report in (before, now)]
        groups = finding.to_dict()["groups"]
        found = [[group[name] for group in groups] for name in ("before", "now")]
        np.testing.assert_array_equal(found, values)
        of_first = [f"{value[0]:.1%}" for value in values]
        assert f"f ({' → '.join(of_first)}, " in finding.verdict
        assert finding.cells()[0][1:4] == ["before", "now", "change"]

    def test_have_the_margin_and_the_impact_ratios_of_both(self, tmp_path):
        options = {"reference": "m", "margin": 0.9, "impact_ratio": True}
        before, now = (week(seed, groups="fmx", **options) for seed in (0, 1))
        change = now.changes_since(before)
        assert "compared with" not in change.reading  # the gaps are from the rest
        gap = by_name(change)[f"{INTER}_gap"]
        assert "shown to be within 90 points of before" in gap.verdict
        titles = [section.title.partition(" (")[0] for section in change.sections]
        assert titles == ["Before: Impact ratios", "Now: Impact ratios"]
        change.to_html(tmp_path / "c.html")

    def test_silence_where_nothing_has_changed(self):
        change = week(2, bias=0.5).changes_since(week(3, bias=0.5))
        assert change.headline.startswith("The data do not show a change.")
        assert "do not show a change (smallest" in repr(change)


def test_groups_of_one_audit_only_have_no_change(tmp_path):
    before, now = week(0), week(1, groups="fmx")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        both = now.changes_since(before), before.changes_since(now)
    for change in both:
        rows = change.to_frame().set_index(["metric", "group"])
        assert np.isnan(rows.loc[("pairwise_accuracy", "x"), "estimate"])
        assert change.group_rows.keys() == {"f", "m", "x"}
        assert "no pairs in one of the two" in repr(change)
        change.to_html(tmp_path / "c.html")
    assert "Only the data now have x, now among the rest." in both[0].notes
    assert "Only the data before have x, then among the rest." in both[1].notes
    for metrics, what in ((INTER, "nothing"), ([INTER, "ndcg"], "only NDCG")):
        alone = now.changes_since(week(0, 0, "ab", metrics=metrics)).headline
        assert f"no group in common: {what} can be compared" in alone


def test_stored_audits_have_changed_as_much(mended):
    before, now, expected = mended
    stored = [AuditReport.from_json(report.to_json()) for report in (before, now)]
    for change in (now.changes_since(stored[0]), stored[1].changes_since(before)):
        assert change.headline == expected.headline
        for name, rtol in (("estimate", 1e-9), ("standard_error", 0.02)):
            a, b = expected.to_frame()[name], change.to_frame()[name]
            np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-12)
    with pytest.raises(ValueError, match="store the two audits"):
        AuditReport.from_json(expected.to_json())


def test_what_cannot_be_compared_is_a_note():
    listed = week(0, k=3)
    change = listed.changes_since(week(0))
    assert any("left out: Only two results" in note for note in change.notes)
    assert any(text.startswith("Only the audit now has Re") for text in change.notes)
    lacking = week(0, metrics="ndcg").changes_since(week(0, metrics=["ndcg", INTER]))
    assert "Only the audit before has" in lacking.notes[-1]
    for before in (None, change):
        with pytest.raises(ValueError, match="before must be the report of an audit"):
            listed.changes_since(before)
