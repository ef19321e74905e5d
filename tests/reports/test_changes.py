"""changes_since: what has changed between two audits, beyond chance."""

import json
import warnings

import numpy as np
import pytest

from skrankfair import AuditReport, audit
from skrankfair.inference import compare, compare_independent


def data(seed, n_queries=300, bias=0.0, lost=None):
    """Rank items of two groups, of which "f" is scored too low."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(n_queries), 10)
    group = rng.choice(["f", "m", *(["x"] if lost is None else [])], query.size)
    quality = rng.normal(size=query.size)
    clicked = quality + rng.normal(size=query.size) > 0
    return clicked, quality - bias * (group == "f"), group, query


def week(*arguments, **options):
    y, s, group, query = data(*arguments, **options)
    return audit(y, s, sensitive_features=group, qid=query)


@pytest.fixture(scope="module")
def mended():
    """A gap of the last week that has been closed."""
    before = week(0, bias=0.8, lost="x")
    return before, week(1, lost="x").changes_since(before)


class TestNumbers:
    def test_are_those_of_compare_independent(self, mended):
        before, change = mended
        now = week(1, lost="x")
        name = "inter_group_accuracy"
        old, new = before.results[name], now.results[name]
        expected = compare_independent(new, old)
        np.testing.assert_array_equal(change.results[name].estimate, expected.estimate)
        gaps = compare_independent(new.against_rest(), old.against_rest())
        found = change.results[f"{name}_gap"]
        np.testing.assert_array_equal(found.pvalue, gaps.pvalue)

    def test_equal_values_have_not_changed(self):
        y, s, group, query = data(0)
        now = audit(y, s, sensitive_features=group, qid=query)
        change = now.changes_since(now, paired=True)
        assert change.headline == (
            "Nothing has changed: all values are those of before."
        )

    def test_of_the_same_queries_are_paired(self):
        y, s, group, query = data(0)
        who = {"sensitive_features": group, "qid": query}
        before, now = audit(y, s, **who), audit(y, s + (group == "f"), **who)
        change = now.changes_since(before, paired=True)
        expected = compare(now.results["ndcg"], before.results["ndcg"])
        found = change.results["ndcg"]
        np.testing.assert_array_equal(found.standard_error, expected.standard_error)
        assert "on the same clusters" in change.reading

    def test_are_in_every_output(self, mended, tmp_path):
        _, change = mended
        frame = change.to_frame()
        assert {"inter_group_accuracy", "inter_group_accuracy_gap"} <= {*frame.metric}
        found = json.loads(change.to_json(tmp_path / "c.json").read_text())
        assert found["headline"] == change.headline
        page = change.to_html(tmp_path / "c.html").read_text()
        assert change.answers[0][1] in page
        assert "by how much each group has changed" in page
        assert "What has changed" in change.to_markdown()
        assert "inter_group_accuracy_gap/f/estimate" in change.to_dict(flat=True)


class TestWords:
    def test_a_closed_gap_is_closer_to_fair_for_both_groups(self, mended):
        _, change = mended
        assert "Now closer to fair: f, m." in change.headline
        assert "further from fair" not in change.headline
        frame = change.to_frame()
        gap = frame[frame.metric == "inter_group_accuracy_gap"]
        assert list(gap.verdict) == ["closer to fair"] * 2

    def test_an_opened_gap_is_further_from_fair(self):
        change = week(0, bias=0.8, lost="x").changes_since(week(1, lost="x"))
        assert "Now further from fair: f, m." in change.headline

    def test_across_fair_is_neither(self):
        before = week(0, bias=0.8, lost="x")
        change = week(1, bias=-0.8, lost="x").changes_since(before)
        rows = change.to_frame().set_index(["metric", "group"])
        gap = rows.loc["inter_group_accuracy_gap"]
        assert list(gap.side) == ["higher", "lower"]
        (finding,) = (
            f for f in change.findings if f.metric.name == "inter_group_accuracy_gap"
        )
        unknown = "Lower than before, and not shown to be closer or further: m ("
        assert unknown in finding.verdict

    def test_levels_are_higher_or_lower_and_never_worse(self, mended):
        _, change = mended
        rows = change.to_frame().set_index("metric")
        assert {*rows.loc["inter_group_accuracy"].side} == {"higher", "lower"}
        assert {*rows.loc["pairwise_exposure"].side} == {"higher", "lower"}

    def test_silence_where_nothing_has_changed(self):
        change = week(2, bias=0.5).changes_since(week(3, bias=0.5))
        assert change.headline.startswith("The data do not show a change.")
        assert "do not show a change (smallest" in repr(change)


def test_groups_of_one_audit_only_have_no_change(tmp_path):
    before, now = week(0, lost="x"), week(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        both = now.changes_since(before), before.changes_since(now)
    for change in both:
        rows = change.to_frame().set_index(["metric", "group"])
        assert np.isnan(rows.loc[("pairwise_accuracy", "x"), "estimate"])
        assert change.group_rows.keys() == {"f", "m", "x"}
        change.to_html(tmp_path / "c.html")


def test_stored_audits_have_changed_as_much():
    before, now = week(0, bias=0.8), week(1)
    stored = AuditReport.from_json(before.to_json())
    stored_now = AuditReport.from_json(now.to_json())
    expected = now.changes_since(before)
    for found in (now.changes_since(stored), stored_now.changes_since(before)):
        assert found.headline == expected.headline
        given = expected.to_frame(), found.to_frame()
        for name, rtol in (("estimate", 1e-9), ("standard_error", 0.02)):
            a, b = (frame[name] for frame in given)
            np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-12)
    with pytest.raises(ValueError, match="store the two audits"):
        AuditReport.from_json(expected.to_json())


def test_what_cannot_be_compared_is_a_note():
    y, s, group, query = data(0)
    who = {"sensitive_features": group}
    listed = audit(y, s, qid=query, k=3, **who)
    change = listed.changes_since(audit(y, s, qid=query, **who))
    assert any("left out: Only two results" in note for note in change.notes)
    assert any("only in one of the two" in note for note in change.notes)
    for before in (None, change):
        with pytest.raises(ValueError, match="before must be the report of an audit"):
            listed.changes_since(before)
