"""Of data in which no group differs, reports name groups as often as they say."""

import numpy as np
import pytest
from scipy import special

from benchmarks.simulations.common import AUDITS, assert_covers, tolerance
from skrankfair import audit
from skrankfair._inputs.validation import collected_warnings
from skrankfair._reports.catalog import catalog
from skrankfair._reports.mitigation import Change, MitigationReport
from skrankfair.inference import compare
from skrankfair.metrics import log_loss, pairwise_accuracy, pairwise_exposure

pytestmark = pytest.mark.simulation


def names_a_group(report):
    """Return whether an answer names a group, whose values are in brackets."""
    return any("(" in answer for _, answer in report.answers)


def quiet_audit(**columns):
    with collected_warnings():
        return audit(**columns)


@pytest.mark.study
@pytest.mark.parametrize("key", AUDITS)
def test_the_headline_names_a_group_of_noise_in_few_audits(key):
    """At most 5% of audits, and at most 5% of the verdicts on each metric."""
    times, named, verdicts = 25, 0, {}
    for seed in range(times):
        report = quiet_audit(**AUDITS[key].draw(seed))
        named += names_a_group(report)
        for finding in report.findings:
            if finding.tested:
                of_metric = verdicts.setdefault(finding.metric.name, [])
                of_metric.append(
                    bool(finding.groups_on("worse") or finding.groups_on("better"))
                )
    bound = 0.05 + tolerance(0.05, times)
    assert named / times <= bound
    assert max(map(np.mean, verdicts.values())) <= bound


@pytest.mark.study
def test_a_conflict_names_a_group_in_few_fair_audits():
    """Mistakes by three metrics, each corrected alone, accused a group in 11%."""
    noted, names = 0, ["calibration_in_the_large", "matched_pair_calibration"]
    names += ["intra_group_accuracy", "true_positive_rate", "false_positive_rate"]
    for seed in range(200):
        rng = np.random.default_rng(seed)
        group, risk = rng.choice(["f", "m"], 2000), special.expit(rng.normal(size=2000))
        columns = {"y_true": rng.random(2000) < risk, "y_score": risk}
        options = {"task": "risk", "threshold": 0.5, "favorable": "high"}
        report = quiet_audit(
            **columns, sensitive_features=group, metrics=names, **options
        )
        noted += any("Worse off by mistakes" in note for note in report.all_notes)
    assert noted / 200 <= 0.05


@pytest.mark.study
def test_all_metrics_name_nobody_of_noise():
    names = [
        metric.name
        for metric in catalog().values()
        if "ranking" in metric.tasks and metric.cut != "required"
    ]
    columns = [AUDITS["audit5"].draw(seed) for seed in range(20)]
    reports = [quiet_audit(**part, metrics=names) for part in columns]
    assert sum(map(names_a_group, reports)) <= 3


def week(seed):
    """Return the audit of 60 queries of two groups that differ by chance only."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(60), 10)
    group, quality = rng.choice(["f", "m"], 600), rng.normal(size=600)
    clicked = quality + rng.normal(size=600) > 0
    return quiet_audit(
        y_true=clicked, y_score=quality, sensitive_features=group, qid=query
    )


@pytest.mark.study
def test_changes_correct_for_all_groups_and_metrics():
    changes = [week(100 + seed).changes_since(week(300 + seed)) for seed in range(60)]
    silence = "The data do not show a change"
    named = sum(not change.headline.startswith(silence) for change in changes)
    assert named / 60 <= 0.05 + tolerance(0.05, 60)


@pytest.mark.filterwarnings("ignore:A few extreme values")
@pytest.mark.parametrize("name", ["auc", "log_loss"])
def test_paired_intervals_of_costs_cover(name):
    """Around the mean of many data sets, whose queries have much in common."""
    changes, intervals = [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        query = np.repeat(np.arange(60), 5)
        fair = rng.uniform(0.1, 0.9, 300)
        unfair = np.where(rng.random(300) < 0.5, fair**2, fair)
        shift = rng.normal(size=60)[query]
        y = (rng.random(300) < fair ** np.exp(shift)).astype(float)
        who, metric = {"cluster": query}, log_loss
        if name == "auc":
            who["sensitive_features"], metric = np.zeros(300, int), pairwise_accuracy
        moved = compare(*(metric(y, score, **who) for score in (fair, unfair)))
        changes.append(moved.estimate[0])
        intervals.append([end[0] for end in moved.confidence_interval()])
    low, high = np.transpose(intervals)
    assert_covers(intervals, np.mean(changes))
    assert 0.8 < np.std(changes) / np.mean((high - low) / 4) < 1.25


def verdicts(seed, before, after, own):
    """Return the verdicts on scores that are shifted for one group.

    With noise of their own, scores that are alike in law differ in each data set.
    """
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(150), 10)
    in_a, quality = rng.random(1500) < 0.5, rng.normal(size=1500)
    noise = rng.normal(size=(3, 1500))
    y, who = quality + noise[0] > 0, {"sensitive_features": in_a, "qid": query}
    scores = (
        quality + noise[1] + before * in_a,
        quality + noise[2 if own else 1] + after * in_a,
    )
    exposure = [pairwise_exposure(y, score, **who) for score in scores]
    inter = [pairwise_accuracy(y, s, **who, comparison="inter") for s in scores]
    changes = {
        name: Change(*pair, compare(pair[1], pair[0]))
        for name, pair in (
            ("pairwise_exposure", exposure),
            ("inter_group_accuracy", [result.against_rest() for result in inter]),
        )
    }
    report = MitigationReport(None, None, changes, {}, None, None, 0.95)
    return set(report.to_frame()["verdict"])


@pytest.fixture(name="no_collection")
def _no_collection(monkeypatch):
    """Skip the garbage collections of `multipletests`, most of the time of a report."""
    monkeypatch.setattr("gc.collect", lambda: 0)


@pytest.mark.study
@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize(
    ("before", "after", "own"),
    [(0, 0.05, False), (0, 0.15, False), (-0.1, 0.2, False), (0, 0, True)],
)
def test_what_comes_no_closer_to_fair_is_rarely_said_to(before, after, own):
    times = 50
    said = [verdicts(seed, before, after, own) for seed in range(times)]
    bound = 0.05 + tolerance(0.05, times)
    assert np.mean(["closer to fair" in words for words in said]) <= bound
    moved = np.mean([words != {"no change shown"} for words in said])
    assert moved <= bound if before == after else moved > 0.9


@pytest.mark.usefixtures("no_collection")
def test_what_comes_closer_to_fair_is_mostly_said_to():
    said = [verdicts(seed, -0.4, -0.1, own=False) for seed in range(30)]
    assert np.mean(["closer to fair" in words for words in said]) > 0.7
    assert not any("further from fair" in words for words in said)
