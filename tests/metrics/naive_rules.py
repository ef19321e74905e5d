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


def difference(pairs):
    """Return the estimates and supports of every group less its rest."""
    groups = list(dict.fromkeys(g for g, _ in pairs))
    sides = ("own", "rest")
    estimates = {g: lambda _, g=g: {(g, "own"): 1.0, (g, "rest"): -1.0} for g in groups}
    return estimates, {g: [pairs[g, side] for side in sides] for g in groups}


def by_cluster(p, pairs, average, coarse, estimates=None, supports=None):
    """Return the naive covariance over queries, or over coarser clusters.

    `supports` are other pairs, by group, behind which there must be clusters.
    """
    if coarse:
        unit, weight, of_pair = p.cluster, dict.fromkeys(p.cluster, 1), p.w
    else:
        unit, weight, of_pair = p.q, p.query_weight, None

    def table(some):
        return variance.tabulate(some, p.q, average, of_pair)

    tables = {g: table(v) for g, v in pairs.items()}
    supports = supports and {g: [*map(table, v)] for g, v in supports.items()}
    covariance = variance.cluster_covariance(tables, unit, weight, estimates, supports)
    return matrix(covariance, estimates or pairs)


def by_item(p, pairs, estimates=None, supports=None):
    """Return the naive covariance over items: members of the group, and others."""

    def table(some):
        return variance.tabulate(some, p.q, w=p.w)

    tables = {g: table(v) for g, v in pairs.items()}
    supports = supports and {g: [*map(table, v)] for g, v in supports.items()}
    n, member = len(p.q), p.member
    covariance = variance.item_covariance(tables, n, member, estimates, supports)
    return matrix(covariance, estimates or pairs)


def assert_close(actual, expected, tolerance, hint=""):
    np.testing.assert_allclose(
        actual, expected, rtol=tolerance, atol=tolerance, err_msg=str(hint)
    )


def assert_covariance(actual, expected, hint):
    np.testing.assert_allclose(
        actual, expected, rtol=1e-8, atol=1e-10, err_msg=str(hint)
    )
