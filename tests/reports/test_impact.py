"""audit(impact_ratio=True): rates and impact ratios by category and crossed."""

import numpy as np
import pandas as pd
import pytest

from skrankfair import audit
from skrankfair.metrics import selection_rate


def applicants(n=2000):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], n),
            "race": rng.choice(["a", "b", "c"], n, p=[0.49, 0.5, 0.01]),
        }
    )
    chance = np.where(frame["race"] == "a", 0.5, 0.2)
    frame["hired"] = (rng.random(n) < chance) * 1
    frame["score"] = rng.normal(size=n) + (frame["race"] == "a")
    return frame


def tables(frame, score="hired", **options):
    options = {"sensitive_features": frame[["sex", "race"]], **options}
    y = np.arange(len(frame)) % 2
    report = audit(
        y, frame[score], metrics="pairwise_exposure", impact_ratio=True, **options
    )
    return report, report.sections


def test_one_table_per_column_and_one_crossed():
    frame = applicants()
    report, found = tables(frame)
    assert [section.title for section in found] == [
        "Impact ratios by sex (four-fifths rule)",
        "Impact ratios by race (four-fifths rule)",
        "Impact ratios by sex × race (four-fifths rule)",
    ]
    rates = frame.groupby("race")["hired"].mean()
    rows = {row[0]: row for row in found[1].rows}
    for race, rate in rates.items():
        assert rows[race][2] == f"{rate:.4f}"
        assert rows[race][4] == f"{rate / rates['a']:.4f}"
    crossed = frame.groupby(["sex", "race"])["hired"].mean()
    np.testing.assert_allclose(report.rates.estimate, crossed.to_numpy())
    assert report.by == "sex × race"
    assert "sex × race" in repr(report)


def test_remarks_say_what_is_small_and_what_is_below():
    _, found = tables(applicants())
    rows = {row[0]: row[-1] for row in found[1].rows}
    assert rows["a"] == "highest rate"
    assert rows["b"] == "below four fifths beyond chance"
    assert "small (" in rows["c"]
    said = " ".join(found[1].paragraphs)
    assert "Beyond chance: b" in said


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
    (section,) = found
    assert section.header[2] == "scoring rate"
    report, _ = tables(frame, "score", threshold=0.5)
    assert report.rates.estimate.max() == pytest.approx(
        (frame["score"] >= 0.5).groupby([frame["sex"], frame["race"]]).mean().max()
    )


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
        _, found = tables(frame, missing="group")
    by_sex, by_race, crossed = found
    for section in (by_sex, crossed):
        assert any("100 rows have no category" in text for text in section.paragraphs)
        assert not any("missing" in row[0] for row in section.rows)
    assert len(by_race.rows) == 3


def test_without_a_rate_nothing_is_made_up():
    frame = applicants(40).assign(hired=0)
    _, found = tables(frame, sensitive_features=frame["sex"])
    (section,) = found
    assert [row[4] for row in section.rows] in ([], ["1.0000", "–"], ["1.0000", "nan"])


@pytest.mark.parametrize(
    ("score", "options", "good", "says"),
    [
        ("hired", {"task": "decision"}, lambda s: s == 0, "with decision 0"),
        (
            "score",
            {"task": "risk", "threshold": 0.3},
            lambda s: s < 0.3,
            "below 0.3000",
        ),
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
    y = np.arange(len(frame)) % 2
    report = audit(y, frame["hired"], **options, metrics="selection_rate")
    with pytest.raises(ValueError, match="no rates of what is good for people"):
        report.failures("impact_ratio<0.8")
    spared = audit(
        y, frame["hired"], **options, metrics="selection_rate", impact_ratio=True
    )
    (said,) = spared.failures("impact_ratio<0.8")
    assert "of a / " in said
