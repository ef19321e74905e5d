"""Intervals of statistical parity contain the truth, which is enumerated.

Users have one to three lists of eight items, three of them in the group, filled from
the top with an advantage that is the user's. All replications are measured in one call.
"""

import itertools

import numpy as np
import pytest

from skrankfair.datasets import make_biased_rankings
from skrankfair.metrics import (
    expected_advantage,
    exposure_parity,
    ndkl,
    normalized_discounted_difference,
    normalized_discounted_kl,
    normalized_discounted_ratio,
    pairwise_parity,
    skew_at_k,
)
from tests.metrics.simulate import coverage, slices, tolerance

N_REPLICATIONS, N_USERS, N_ITEMS, N_MEMBERS = 400, 60, 8, 3
STARTS = np.arange(0, N_REPLICATIONS * N_USERS + 1, N_USERS)  # of their users
ADVANTAGES = np.array([0.3, 0.8])  # of every other user
METRICS = {
    normalized_discounted_difference: {"step": 2},
    normalized_discounted_ratio: {"step": 2},
    normalized_discounted_kl: {"step": 2},
    ndkl: {},
    skew_at_k: {"k": 6},  # which always has a member
    exposure_parity: {},
    pairwise_parity: {},
}
every_metric = pytest.mark.parametrize("metric", METRICS, ids=lambda m: m.__name__)
AVERAGES = ("queries", "representation")


def filled(draws):
    """Return who is a member at each place of lists that are filled from the top."""
    member = np.zeros(draws.shape, dtype=bool)
    left = np.full(len(draws), N_MEMBERS)
    for place in range(N_ITEMS):
        others = N_ITEMS - place - left
        member[:, place] = (draws[:, place] | (others == 0)) & (left > 0)
        left -= member[:, place]
    return member


def columns_of(member):
    return {
        "y_score": np.tile(-np.arange(N_ITEMS), len(member)),
        "sensitive_features": member.ravel(),
        "qid": np.repeat(np.arange(len(member)), N_ITEMS),
    }


@pytest.fixture(scope="module")
def drawn():
    """Columns of all replications, users one after the other."""
    rng = np.random.default_rng(0)
    n_users = N_REPLICATIONS * N_USERS
    user = np.repeat(np.arange(n_users), rng.integers(1, 4, n_users))
    advantage = ADVANTAGES[rng.integers(0, 2, n_users)][user]
    member = filled(rng.random((user.size, N_ITEMS)) < advantage[:, None])
    return columns_of(member), np.repeat(user, N_ITEMS)


def probability(order, advantage):
    """Return the probability of a list, given who is a member at each place."""
    left, chance = {True: N_MEMBERS, False: N_ITEMS - N_MEMBERS}, 1.0
    for member in map(bool, order):
        if all(left.values()):
            chance *= advantage if member else 1 - advantage
        left[member] -= 1
    return chance


def truth_of(metric, average, **options):
    """Return the values of others and members over all lists that may be drawn."""
    options = {**METRICS[metric], **options}
    if average == "queries":
        orders = np.zeros((56, N_ITEMS), dtype=bool)
        places = list(itertools.combinations(range(N_ITEMS), N_MEMBERS))
        orders[np.arange(56)[:, None], places] = True
        chances = [np.mean([probability(o, a) for a in ADVANTAGES]) for o in orders]
        assert sum(chances) == pytest.approx(1)
        rows = metric(None, **columns_of(orders), **options).sums.table
        return np.array(chances) @ rows.by_group[:, :, 0]
    shares = [
        make_biased_rankings(1, N_ITEMS, N_MEMBERS / N_ITEMS, a).position_share
        for a in ADVANTAGES
    ]
    share = np.mean(shares, axis=0)[:, None]
    sizes = np.array([N_MEMBERS, N_ITEMS - N_MEMBERS])
    matrix = np.repeat(np.hstack([share, 1 - share]) / sizes, sizes, axis=1)
    member = np.arange(N_ITEMS) < N_MEMBERS
    table = expected_advantage(matrix, sensitive_features=member, step=2, k=6)
    return table[metric.__name__].to_numpy()


@every_metric
@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.simulation
def test_intervals_cover(drawn, metric, average):
    columns, user = drawn
    truth = truth_of(metric, average)
    assert np.all(np.abs(truth) > 0.01)
    whole = metric(None, **columns, cluster=user, average=average, **METRICS[metric])
    parts = list(slices(whole, STARTS))
    covered = coverage([part.confidence_interval() for part in parts], truth)
    assert np.all(np.abs(covered - 0.95) < tolerance(0.95, N_REPLICATIONS)), covered
    bias = np.mean([part.estimate for part in parts], axis=0) - truth
    error = np.std([part.estimate for part in parts], axis=0) / N_REPLICATIONS**0.5
    if average == "queries":
        assert np.all(np.abs(bias) < 5 * error)
