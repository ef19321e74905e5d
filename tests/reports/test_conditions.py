"""failures: conditions that a report meets beyond chance."""

import numpy as np
import pytest

from skrankfair import audit
from skrankfair._reports import conditions
from skrankfair.metrics import impact_ratio, selection_rate


def hired(n, seed=0):
    """Of each five women one is hired, and of each two men, of n each."""
    sex = np.repeat(["f", "m"], n)
    return sex, (np.arange(2 * n) % np.where(sex == "f", 5, 2) == 0) * 1


def report(n=500, **options):
    sex, decision = hired(n)
    y = np.random.default_rng(0).integers(0, 2, 2 * n)
    return audit(y, decision, sensitive_features=sex, **options)


def test_a_condition_fails_only_if_the_whole_interval_is_beyond():
    for n, fails in ((500, True), (20, False)):
        sex, decision = hired(n)
        ratio = impact_ratio(None, decision, sensitive_features=sex)
        assert float(ratio) == pytest.approx(0.4)
        assert (ratio.confidence_interval().high < 0.8) == fails
        assert bool(report(n).failures("impact_ratio<0.8")) == fails


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("selection_rate<0.3", ["of f,"]),
        ("selection_rate[m]<0.3", []),
        ("selection_rate[f]<0.3", ["of f,"]),
        ("selection_rate>0.1", ["of f,", "of m,"]),
        ("selection_rate.gap<-0.1", ["-0.3000 of f,"]),
        ("selection_rate.gap>0.1", ["0.3000 of m,"]),
        ("selection_rate.difference>0.1", ["0.3000 of m - f,"]),
        ("selection_rate.ratio<0.8", ["0.4000 of f / m,"]),
        ("impact_ratio<=8e-1, selection_rate.gap >= .1", ["f / m", "of m"]),
    ],
)
def test_conditions(condition, found):
    failures = report().failures(condition)
    assert len(failures) == len(found)
    for line, part in zip(failures, found, strict=True):
        assert part in line


def test_intervals_hold_at_once():
    # Bonferroni's, over two conditions and two groups.
    sex, decision = hired(500)
    rates = selection_rate(None, decision, sensitive_features=sex)
    low, high = rates.confidence_interval(1 - 0.05 / 4)
    (line, *_) = report().failures(["selection_rate<0.9", "selection_rate>2"])
    assert f"[{low[0]:.4f}, {high[0]:.4f}]" in line


def test_groups_without_a_verdict_do_not_count():
    sex, decision = hired(500)
    sex = np.append(sex, ["x"] * 3)
    decision = np.append(decision, [0, 0, 0])
    found = audit(decision, decision, sensitive_features=sex, metrics="selection_rate")
    assert not any("of x" in line for line in found.failures("selection_rate<0.9"))
    assert len(found.failures("impact_ratio<1, selection_rate.difference>0")) == 2
    # The report says so: silence would be read as a verdict.
    parsed = conditions.parsed_conditions("selection_rate<2")
    section = conditions.conditions_section(conditions.checked(found, parsed))
    assert [r[-1] for r in section.rows] == [*["met beyond chance"] * 2, "cannot tell"]
    assert section.paragraphs[0].endswith("to tell for 1 of 3 numbers.")


def test_a_small_category_is_not_the_highest():
    group, chosen = np.repeat(["a", "b", "c"], [990, 980, 30]), np.arange(2000) % 2
    report = audit(chosen, chosen | (group == "c"), sensitive_features=group)
    assert not report.failures("impact_ratio<0.8")
    # Rows of overlapping groups are in several of them, and count once.
    member = np.arange(2000) < [[50], [1800], [2000]]
    member[2, :200] = False
    chosen = np.where(member[0], np.arange(2000) % 50 > 0, np.arange(2000) % 12 < 5)
    report = audit(chosen, chosen, sensitive_features=member.T)
    assert report.failures("impact_ratio<0.8")


def test_scores_have_impact_ratios_on_request():
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], 2000)
    score = rng.normal(size=2000) + (sex == "m")
    y = rng.integers(0, 2, 2000)
    options = {"sensitive_features": sex, "metrics": "pairwise_exposure"}
    with pytest.raises(ValueError, match="impact_ratio=True"):
        audit(y, score, **options).failures("impact_ratio<0.8")
    assert audit(y, score, impact_ratio=True, **options).failures("impact_ratio<0.8")


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("impact ratio<0.8", "such as impact_ratio<0.8"),
        ("nothing<0.8", "no 'nothing'"),
        ("selection_rate[x]<0.8", "none is 'x'"),
        ("impact_ratio[a]<0.8", "one number of all groups"),
        ("impact_ratio.gap<0", "is a ratio; got 'impact_ratio.gap<0'"),
    ],
)
def test_what_is_wrong_is_named(condition, message):
    with pytest.raises(ValueError, match=message):
        report(50).failures(condition)


def test_a_gap_needs_something_that_is_fair():
    sex, _ = hired(50)
    who = {"sensitive_features": sex, "metrics": "brier_score"}
    found = audit(np.arange(100) % 2, np.linspace(0, 1, 100), **who)
    with pytest.raises(ValueError, match="nothing says what is fair"):
        found.failures("brier_score.gap>0.1")
