"""Intervals of DIPS and exposure on data whose truth is known exactly.

Users are drawn from a population of a few dozen, each with some queries, so the truth
is the naive value of the whole population. All replications are measured in one call; a
replication is then a block of rows of the table of sums.
"""

import numpy as np
import pytest

from skrankfair.metrics import dips, exposure, exposure_gap
from tests.metrics.simulate import Rows, coverage, slices, tolerance
from tests.reference import dissatisfaction as naive

N_REPLICATIONS = 800
N_USERS = 60  # a replication
N_PEOPLE = 50  # the population
STARTS = np.arange(0, N_REPLICATIONS * N_USERS + 1, N_USERS)

METRICS = {
    "pairs": (dips, {"position_weight": "dcg", "tie_cost": 0.5}),
    "queries": (dips, {"position_weight": "geometric", "average": "queries"}),
    "share": (exposure, {"position_weight": "reciprocal"}),
    "expected": (exposure_gap, {"target": "expected"}),
    "relevance": (exposure_gap, {"target": "relevance", "average": "amortized"}),
}
each_metric = pytest.mark.parametrize("name", METRICS)


def make_population():
    """Draw people with 1 to 4 queries of 3 to 7 items; grades and scores have ties.

    Each has a taste of their own for "a", which their queries share.
    """
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(N_PEOPLE), rng.integers(1, 5, N_PEOPLE))
    query = np.repeat(np.arange(user.size), rng.integers(3, 8, user.size))
    row_user = user[query]
    group = rng.choice(["a", "b"], query.size)
    taste = rng.normal(-0.3, 2, N_PEOPLE)
    quality = rng.normal(size=query.size)
    y = np.clip(np.rint(quality), 0, 2)
    s = (quality + taste[row_user] * (group == "a")).round()
    return Rows(y, s, group, query, row_user)


def draw(rng):
    """Draw the users of all replications."""
    people = make_population()
    starts = np.searchsorted(people.user, np.arange(N_PEOPLE + 1))
    chosen = rng.integers(0, N_PEOPLE, N_REPLICATIONS * N_USERS)
    sizes = np.diff(starts)[chosen]
    user = np.repeat(np.arange(chosen.size), sizes)
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows = people.take(np.arange(user.size) - first + starts[chosen][user])
    query = rows.query + user * (people.query.max() + 1)
    return rows._replace(query=query, user=user)


def measure(name, rows, by_user=True):
    metric, options = METRICS[name]
    return metric(
        rows.y,
        rows.s,
        sensitive_features=rows.group,
        qid=rows.query,
        cluster=rows.user if by_user else None,
        **options,
    )


def truth_of(name):
    metric, options = METRICS[name]
    people = make_population()
    y, s, q = (column.tolist() for column in (people.y, people.s, people.query))
    member = {g: (people.group == g).tolist() for g in "ab"}
    if metric is dips:
        found = naive.dips(y, s, q, member, **options)
    elif metric is exposure:
        found = naive.exposure_share(s, q, member, **options)
    else:
        found = naive.exposure_gap(y, s, q, member, **options)
    return np.array([value for value, _ in found.values()])


@pytest.fixture(scope="module")
def drawn():
    return draw(np.random.default_rng(1))


@pytest.fixture(scope="module")
def measured(drawn):
    """The result on all replications together, by metric."""
    return {name: measure(name, drawn) for name in METRICS}


def replications(whole, starts=STARTS):
    return list(slices(whole, starts))


@each_metric
@pytest.mark.simulation
def test_intervals_cover(measured, name):
    truth = truth_of(name)
    assert np.all(np.abs(truth) > 0.01)
    parts = replications(measured[name])
    covered = coverage([part.confidence_interval() for part in parts], truth)
    assert np.all(np.abs(covered - 0.95) < tolerance(0.95, N_REPLICATIONS)), covered
    gaps = [part.contrast("a", "b").confidence_interval() for part in parts]
    covered = coverage(gaps, truth[0] - truth[1])
    assert np.abs(covered - 0.95) < tolerance(0.95, N_REPLICATIONS), covered


# Amortised relevance has no part in the tastes.


@each_metric
def test_part_of_the_table_is_the_metric_of_its_rows(drawn, measured, name):
    # Also: the sums of a block of many queries are those of the queries alone.
    assert drawn.y.size > 4 << 17
    for replication in (0, 417, N_REPLICATIONS - 1):
        low, high = STARTS[replication : replication + 2]
        alone = measure(name, drawn.take((drawn.user >= low) & (drawn.user < high)))
        part = replications(measured[name], STARTS[replication:][:2])[0]
        np.testing.assert_allclose(part.estimate, alone.estimate, rtol=1e-12)
        np.testing.assert_allclose(part.covariance, alone.covariance, rtol=1e-9)


@pytest.mark.parametrize("name", ["pairs", "queries", "expected"])
@pytest.mark.simulation
def test_size_under_the_null(drawn, name):
    # Which group is which is tossed for every user, so that neither is favoured.
    tossed = np.random.default_rng(2).integers(0, 2, drawn.user[-1] + 1)[drawn.user]
    group = np.where(tossed == 1, np.where(drawn.group == "a", "b", "a"), drawn.group)
    whole = measure(name, drawn._replace(group=group))
    pvalues = []
    for part in replications(whole):
        pvalues.append(part.contrast("a", "b").pvalue)
    for level in (0.05, 0.2):
        rejected = np.mean(np.array(pvalues) < level)
        assert abs(rejected - level) < tolerance(level, N_REPLICATIONS)
