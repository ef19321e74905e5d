"""Every pair metric beside its naive pairs, and covariances from those pairs."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from skrankfair.metrics import (
    matched_pair_calibration,
    pairwise_accuracy,
    pairwise_exposure,
    pairwise_preference,
)
from tests.reference import matched_pairs as naive_mpc
from tests.reference import pairwise as naive
from tests.reference import variance

COMPARISONS = ("all", "intra", "inter")
EPSILON = 0.3


class Rule(NamedTuple):
    """A metric, its pairs (i, j, value), and its naive estimates."""

    measure: Callable
    pairs: Callable
    reference: Callable

    def all_pairs(self, p):
        """Return {group: pairs} of a problem."""
        return {g: list(self.pairs(p, m)) for g, m in p.member.items()}


def _accuracy(comparison):
    def measure(p, **options):
        return pairwise_accuracy(p.y, p.s, comparison=comparison, **p.who, **options)

    def pairs(p, in_group):
        return naive.pairs_accuracy(p.y, p.s, p.q, in_group, comparison)

    def reference(p, average):
        args = (p.y, p.s, p.q, p.member, comparison)
        return naive.pairwise_accuracy(*args, average=average, w=p.w)

    return Rule(measure, pairs, reference)


def _calibration(direction):
    given = {"direction": direction, "epsilon": EPSILON}

    def measure(p, **options):
        return matched_pair_calibration(p.y, p.s, **given, **p.who, **options)

    def pairs(p, in_group):
        return naive_mpc.matched_pairs(p.y, p.s, p.q, in_group, **given)

    def reference(p, average):
        args = (p.y, p.s, p.q, p.member)
        return naive_mpc.matched_pair_calibration(
            *args, **given, average=average, w=p.w
        )

    return Rule(measure, pairs, reference)


ACCURACY = {comparison: _accuracy(comparison) for comparison in COMPARISONS}

RULES = {
    **{f"accuracy-{comparison}": rule for comparison, rule in ACCURACY.items()},
    "exposure": Rule(
        lambda p, **options: pairwise_exposure(p.y, p.s, **p.who, **options),
        lambda p, in_group: naive.pairs_exposure(p.s, p.q, in_group),
        lambda p, average: naive.pairwise_exposure(p.s, p.q, p.member, average, p.w),
    ),
    "preference": Rule(
        lambda p, **options: pairwise_preference(p.y, **p.who, **options),
        lambda p, in_group: naive.pairs_preference(p.y, p.q, in_group),
        lambda p, average: naive.pairwise_preference(p.y, p.q, p.member, average, p.w),
    ),
    **{f"calibration-{d}": _calibration(d) for d in ("below", "both")},
}


def own_and_rest(p, comparison):
    """Return the pairs of every group and of its rest: {(group, side): pairs}."""
    args = (p.y, p.s, p.q)
    pairs = {}
    for g, in_group in p.member.items():
        pairs[g, "own"] = list(naive.pairs_accuracy(*args, in_group, comparison))
        pairs[g, "rest"] = list(naive.pairs_rest_accuracy(*args, in_group, comparison))
    return pairs


def matrix(covariance, keys):
    """Return {(g, h): value} as an array."""
    return np.array([[covariance[g, h] for h in keys] for g in keys])


def without(covariance, unknown):
    """Return the covariance with NaN in the rows and columns that are unknown."""
    covariance = covariance.copy()
    covariance[unknown] = covariance[:, unknown] = np.nan
    return covariance


def difference(covariance):
    """Return the covariance of every first less its second."""
    signs = np.kron(np.eye(len(covariance) // 2), [1.0, -1.0])
    lost = (signs != 0) @ np.isnan(np.diag(covariance))
    # What is unknown must not spread to the groups beside it.
    return without(signs @ np.nan_to_num(covariance) @ signs.T, lost)


def too_few(pairs_by_group, unit, weight):
    """Return which groups have pairs in fewer than two units."""
    found = []
    for pairs in pairs_by_group.values():
        units = {unit[row] for i, j, *_ in pairs for row in (i, j)}
        found.append(sum(weight[label] for label in units) < 2)
    return np.array(found)


def by_cluster(p, pairs, average, coarse, support=None):
    """Return the naive covariance over queries, or over coarser clusters.

    And which groups have too few clusters with pairs (of `support`).
    """
    if coarse:
        unit, weight, of_pair = p.cluster, dict.fromkeys(p.cluster, 1), p.w
    else:
        unit, weight, of_pair = p.q, p.query_weight, None
    table = {g: variance.tabulate(v, p.q, average, of_pair) for g, v in pairs.items()}
    covariance = variance.cluster_covariance(table, unit, weight)
    few = too_few(pairs if support is None else support, unit, weight)
    return matrix(covariance, pairs), few


def by_item(p, pairs, support=None):
    """Return the naive covariance over items, and which groups have too few."""
    table = {g: variance.tabulate(v, p.q, w=p.w) for g, v in pairs.items()}
    covariance = variance.item_covariance(table, len(p.q))
    few = too_few(pairs if support is None else support, range(len(p.q)), p.weights)
    return matrix(covariance, pairs), few


def assert_close(actual, expected, tolerance, hint=""):
    np.testing.assert_allclose(
        actual, expected, rtol=tolerance, atol=tolerance, err_msg=str(hint)
    )


def assert_covariance(actual, expected, few, hint):
    np.testing.assert_allclose(
        actual, without(expected, few), rtol=1e-10, atol=1e-10, err_msg=str(hint)
    )


def assert_item_covariance(actual, expected, few, hint):
    """Compare as `assert_covariance`, where a negative variance is NaN."""
    expected = without(expected, few)
    with np.errstate(invalid="ignore"):
        negative = np.diag(expected) < -1e-12
    near = np.abs(np.diag(expected)) <= 1e-12
    lost = negative | (near & np.isnan(np.diag(actual)))
    assert_covariance(actual, expected, lost, hint)
