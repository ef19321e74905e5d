"""Intervals contain the truth as often as they say, on data whose truth is known.

All replications are measured in one call, on all their users at once; a replication is
then a block of rows of the table of sums. A coverage of 95% over 400 replications has a
binomial standard error of 0.0109; four of them are the tolerance.
"""

import numpy as np
import pytest
from scipy.stats import norm, t

from skrankfair.metrics import (
    matched_pair_calibration,
    pairwise_accuracy,
    pairwise_exposure,
)
from tests.metrics.simulate import Model, coverage, slices, tolerance

N_REPLICATIONS = 400
N_USERS = 200
N_BLOCKS = 2  # of replications that are measured in one call
N_LISTS = 400
EPSILON = 3.0
MODEL = Model(
    outcome_shift=0.3,
    score_shift=-0.4,
    user_outcome=2.0,
    user_score=1.5,
    user_correlation=0.3,
    outcome_noise=0.3,
    score_noise=0.3,
)
METRICS = {
    "accuracy": (pairwise_accuracy, {"comparison": "inter"}, MODEL.inter_accuracy()),
    "exposure": (pairwise_exposure, {}, MODEL.exposure()),
    "matched": (
        matched_pair_calibration,
        {"epsilon": EPSILON},
        MODEL.matched_pairs(EPSILON),
    ),
}


def measure(name, rows, *, by_user=True):
    metric, options, _ = METRICS[name]
    return metric(
        rows.y,
        rows.s,
        sensitive_features=rows.group,
        qid=rows.query,
        cluster=rows.user if by_user else None,
        **options,
    )


def make_block(seed):
    """Draw users with 3 to 9 queries of 2 or 3 items."""
    rng = np.random.default_rng(seed)
    n_users = N_REPLICATIONS // N_BLOCKS * N_USERS
    user = np.repeat(np.arange(n_users), rng.integers(3, 10, n_users))
    return MODEL.rows(rng, rng.integers(2, 4, user.size), user)


def starts_of(rows, n_users=N_USERS):
    """First user of each replication, and one past the last."""
    return np.arange(0, rows.user[-1] + 2, n_users)


@pytest.fixture(scope="module")
def first_block():
    return make_block(0)


@pytest.fixture(scope="module")
def replications(first_block):
    """Every replication's result, by metric."""
    results = {name: [] for name in METRICS}
    for block in range(N_BLOCKS):
        rows = make_block(block) if block else first_block
        for name, parts in results.items():
            whole = measure(name, rows)
            assert np.array_equal(whole.sums.table.labels, np.arange(rows.user[-1] + 1))
            parts.extend(slices(whole, starts_of(rows)))
    assert all(len(parts) == N_REPLICATIONS for parts in results.values())
    return results


def assert_covers(intervals, truth, nominal=0.95):
    error = tolerance(nominal, len(intervals))
    covered = coverage(intervals, truth)
    assert np.all(np.abs(covered - nominal) < error), covered


def nominal_coverage(method, n_resamples=1000):
    """Return the coverage of normal data.

    Percentiles have the normal quantile in place of Student's, Q in place of Q - 1, and
    n_resamples draws have gaps of 1 / n_resamples at both ends.
    """
    if method != "percentile":
        return 0.95
    quantile = norm.ppf(0.975) * np.sqrt(1 - 1 / N_USERS)
    return 1 - 2 * t.sf(quantile, N_USERS - 1) - 2 * 0.95 / n_resamples


# A bootstrap resamples the sums of all metrics by the same code: one metric will do.
@pytest.mark.parametrize(
    ("name", "method"),
    [
        *((name, "t") for name in METRICS),
        ("accuracy", "bootstrap"),
        ("accuracy", "percentile"),
    ],
)
@pytest.mark.simulation
def test_intervals_of_groups_cover(replications, name, method):
    intervals = [
        result.confidence_interval(method=method, random_state=seed)
        for seed, result in enumerate(replications[name])
    ]
    assert_covers(intervals, METRICS[name][2], nominal_coverage(method))


@pytest.mark.parametrize(
    ("name", "kind", "method"),
    [
        ("accuracy", "difference", "t"),
        ("accuracy", "ratio", "t"),
        ("exposure", "difference", "t"),
        ("matched", "difference", "t"),
    ],
)
@pytest.mark.simulation
def test_intervals_of_contrasts_cover(replications, name, kind, method):
    a, b = METRICS[name][2]
    intervals = [
        result.contrast("a", "b", kind).confidence_interval(
            method=method, random_state=seed
        )
        for seed, result in enumerate(replications[name])
    ]
    truth = a - b if kind == "difference" else a / b
    assert_covers(intervals, truth, nominal_coverage(method))


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.simulation
def test_block_of_the_table_is_the_metric_of_its_rows(first_block, replications, name):
    starts = starts_of(first_block)
    for replication in (0, 7, 199):
        low, high = starts[replication : replication + 2]
        chosen = (first_block.user >= low) & (first_block.user < high)
        alone = measure(name, first_block.take(chosen))
        sliced = replications[name][replication]
        np.testing.assert_allclose(sliced.estimate, alone.estimate, atol=1e-11)
        np.testing.assert_allclose(sliced.covariance, alone.covariance, rtol=1e-9)
        for method in ("t", "bootstrap", "percentile"):
            options = {"method": method, "random_state": 0}
            np.testing.assert_allclose(
                sliced.confidence_interval(**options),
                alone.confidence_interval(**options),
                rtol=1e-9,
            )


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.simulation
def test_interval_that_ignores_repeated_users_fails(first_block, name):
    whole = measure(name, first_block, by_user=False)
    user_of_query = first_block.user[np.unique(first_block.query, return_index=True)[1]]
    starts = np.searchsorted(user_of_query, starts_of(first_block))
    intervals = [part.confidence_interval() for part in slices(whole, starts)]
    # Even with four standard errors it is below 85%.
    covered = coverage(intervals, METRICS[name][2])
    assert np.all(covered + tolerance(0.85, len(intervals)) < 0.95)
    assert np.all(covered < 0.85)


def interval_of_independent_pairs(result):
    p = result.estimate
    error = norm.ppf(0.975) * np.sqrt(p * (1 - p) / result.support)
    return p - error, p + error


# One list of items


ONE_LIST = Model(outcome_shift=0.4, score_shift=-0.3)
ITEM_METRICS = {
    "accuracy": (
        pairwise_accuracy,
        {"comparison": "inter"},
        ONE_LIST.inter_accuracy(),
    ),
    "exposure": (pairwise_exposure, {}, ONE_LIST.exposure()),
    "matched": (
        matched_pair_calibration,
        {"epsilon": 1.0},
        ONE_LIST.matched_pairs(1.0),
    ),
}


def lists(model, n_lists, n_items=200):
    for seed in range(n_lists):
        rng = np.random.default_rng(seed)
        yield model.rows(rng, np.array([n_items]), np.array([0]))


@pytest.mark.parametrize("name", ITEM_METRICS)
@pytest.mark.simulation
def test_item_intervals_cover(name):
    metric, options, truth = ITEM_METRICS[name]
    intervals, naive = [], []
    for rows in lists(ONE_LIST, N_LISTS):
        result = metric(rows.y, rows.s, sensitive_features=rows.group, **options)
        assert result.variance == "item"
        intervals.append(result.confidence_interval())
        if name != "matched":
            naive.append(interval_of_independent_pairs(result))
    assert_covers(intervals, truth)
    if naive:
        assert np.all(coverage(naive, truth) < 0.5)


CLUSTERED = Model(
    outcome_shift=0.4,
    score_shift=-0.3,
    user_outcome=1.5,
    user_score=1.5,
    user_correlation=0.3,
)


@pytest.mark.parametrize(
    ("metric", "options", "truth"),
    [
        (pairwise_exposure, {}, CLUSTERED.exposure()),
        (matched_pair_calibration, {"epsilon": 1.0}, CLUSTERED.matched_pairs(1.0)),
    ],
)
@pytest.mark.simulation
def test_clusters_of_items_of_one_list(metric, options, truth):
    intervals, naive = [], []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        rows = CLUSTERED.rows(rng, np.full(40, 8), np.arange(40))
        who = {"sensitive_features": rows.group, **options}
        result = metric(rows.y, rows.s, cluster=rows.user, **who)
        assert (result.variance, result.n_clusters) == ("item", 40)
        intervals.append(result.confidence_interval())
        naive.append(metric(rows.y, rows.s, **who).confidence_interval())
    assert_covers(intervals, truth)
    assert np.all(coverage(naive, truth) < 0.85)


@pytest.mark.parametrize(
    ("metric", "options"),
    [
        (pairwise_exposure, {}),
        (pairwise_accuracy, {"comparison": "inter"}),
        (matched_pair_calibration, {"epsilon": 0.5, "direction": "both"}),
    ],
)
@pytest.mark.simulation
def test_size_under_the_null(metric, options):
    # The groups have the same distribution: a fair score.
    pvalues = []
    for rows in lists(Model(), N_LISTS):
        result = metric(rows.y > 0, rows.s, sensitive_features=rows.group, **options)
        pvalues.append(result.test().pvalue)
    for level in (0.05, 0.2):
        rejected = np.mean(np.array(pvalues) < level, axis=0)
        assert np.all(np.abs(rejected - level) < tolerance(level, N_LISTS))
