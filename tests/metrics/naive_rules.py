"""Every pair metric beside its naive pairs, and covariances from those pairs."""

from collections import Counter
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
from tests.reference.top_pairs import chances

COMPARISONS = ("all", "intra", "inter")
EPSILON = 0.3


class Rule(NamedTuple):
    """A metric, and its pairs (i, j, value) of a group."""

    measure: Callable
    pairs: Callable

    def all_pairs(self, p):
        """Return {group: pairs} of a problem."""
        return {g: list(self.pairs(p, m)) for g, m in p.member.items()}


def _accuracy(comparison):
    return Rule(
        lambda p, **options: pairwise_accuracy(
            p.y, p.s, comparison=comparison, **p.who, **options
        ),
        lambda p, in_group: naive.pairs_accuracy(p.y, p.s, p.q, in_group, comparison),
    )


def _calibration(direction):
    given = {"direction": direction, "epsilon": EPSILON}
    return Rule(
        lambda p, **options: matched_pair_calibration(
            p.y, p.s, **given, **p.who, **options
        ),
        lambda p, in_group: naive_mpc.matched_pairs(p.y, p.s, p.q, in_group, **given),
    )


ACCURACY = {comparison: _accuracy(comparison) for comparison in COMPARISONS}

RULES = {
    **{f"accuracy-{comparison}": rule for comparison, rule in ACCURACY.items()},
    "exposure": Rule(
        lambda p, **options: pairwise_exposure(p.y, p.s, **p.who, **options),
        lambda p, in_group: naive.pairs_exposure(p.s, p.q, in_group),
    ),
    "preference": Rule(
        lambda p, **options: pairwise_preference(p.y, **p.who, **options),
        lambda p, in_group: naive.pairs_preference(p.y, p.q, in_group),
    ),
    **{f"calibration-{d}": _calibration(d) for d in ("below", "both")},
}

#: Rules whose pairs have a better item, which is in a stratum of engagement.
BY_ENGAGEMENT = {
    **ACCURACY,
    "exposure": RULES["exposure"]._replace(
        pairs=lambda p, in_group: naive.pairs_of_better(p.y, p.s, p.q, in_group)
    ),
    "preference": RULES["preference"]._replace(
        pairs=lambda p, in_group: naive.pairs_of_better(p.y, p.y, p.q, in_group)
    ),
}


def with_item_weights(p, seed):
    """Return weights of the items, the problem without rows of weight 0, and theirs.

    The first row that has a weight has one of both kinds.
    """
    rng = np.random.default_rng(seed)
    v = (rng.integers(0, 7, len(p.q)) / 3 * rng.choice([1.0, 0.37])).tolist()
    v[next(row for row, weight in enumerate(p.weights) if weight)] = 1.0
    rows = [row for row, weight in enumerate(p.weights) if weight and v[row]]
    return v, p.take(rows), [v[row] for row in rows]


def own_and_rest(p, comparison):
    """Return the pairs of every group and of its rest: {(group, side): pairs}."""
    args = (p.y, p.s, p.q)
    pairs = {}
    for g, in_group in p.member.items():
        pairs[g, "own"] = list(naive.pairs_accuracy(*args, in_group, comparison))
        outside = [not inside for inside in in_group]
        pairs[g, "rest"] = list(naive.pairs_accuracy(*args, outside, comparison))
    if comparison == "intra" and not isinstance(p.sensitive_features, np.ndarray):
        for g in p.member:  # no pair across two other groups
            others = (pairs[h, "own"] for h in p.member if h != g)
            pairs[g, "rest"] = [pair for some in others for pair in some]
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


def by_stratum(p, pairs, edges):
    """Return {(group, stratum): pairs}, and the means over strata with pairs.

    The means are functions of the ratios of the strata, with their supports.
    """
    stratum = np.searchsorted(edges[1:-1], p.z, side="right").tolist()
    numbers = range(len(edges) - 1)

    def mean(ratios, g):
        there = [(g, b) for b in numbers if not np.isnan(ratios[g, b])]
        return {key: 1 / len(there) for key in there} or {(g, 0): 1.0}

    strata = {
        (g, b): [pair for pair in some if stratum[pair[0]] == b]
        for g, some in pairs.items()
        for b in numbers
    }
    means = {g: lambda ratios, g=g: mean(ratios, g) for g in pairs}
    return strata, means, {g: [some] for g, some in pairs.items()}


def tables_of(p, pairs, average="pairs", *, w=None, v=None, k=None):
    """Return {key: [(i, j, num, den, weight), ...]}, as `variance` takes them.

    A pair counts the weights `v` of its items, times the probability that one of them
    is in the first `k`; with averages over queries its share of those of the query.
    """
    chance = chances(p.s, p.q, k) if k else {}
    weight = dict(zip(p.q, w, strict=True)) if w else dict.fromkeys(p.q, 1)
    tables = {}
    for key, some in pairs.items():
        rows = [
            (i, j, value, float(chance.get((i, j), 1)) * (v[i] * v[j] if v else 1))
            for i, j, value in some
        ]
        total = Counter()
        for i, _, _, share in rows:
            total[p.q[i]] += share
        tables[key] = [
            (i, j, value * share / scale, share / scale, weight[p.q[i]])
            for i, j, value, share in rows
            if share
            for scale in [total[p.q[i]] if average == "queries" else 1.0]
        ]
    return tables


def estimates_of(p, pairs, average="pairs", estimates=None, **how):
    """Return the naive estimates, ratios of sums over pairs or made of such."""
    tables = tables_of(p, pairs, average, w=p.w, **how)
    ratios = variance.ratio_estimates(tables)
    if estimates is None:
        return list(ratios.values())
    return [
        sum(share * ratios[key] for key, share in coefficients(ratios).items())
        for coefficients in estimates.values()
    ]


def covariance_of(
    p, pairs, unit, average="pairs", estimates=None, supports=None, **how
):
    """Return the naive covariance over units: "query", "cluster" or "item".

    `supports` are other pairs, by group, behind which there must be units.
    """
    w = None if unit == "query" else p.w

    def table(some):
        return tables_of(p, {0: some}, average, w=w, **how)[0]

    tables = {key: table(some) for key, some in pairs.items()}
    supports = supports and {g: [*map(table, some)] for g, some in supports.items()}
    of = (estimates, supports)
    if unit == "item":
        covariance = variance.item_covariance(tables, len(p.q), p.member, *of)
    elif unit == "query":
        covariance = variance.cluster_covariance(tables, p.q, p.query_weight, *of)
    else:
        covariance = variance.cluster_covariance(tables, p.cluster, None, *of)
    return matrix(covariance, estimates or pairs)


def assert_close(actual, expected, tolerance, hint=""):
    np.testing.assert_allclose(
        actual, expected, rtol=tolerance, atol=tolerance, err_msg=str(hint)
    )


def assert_covariance(actual, expected, hint):
    np.testing.assert_allclose(
        actual, expected, rtol=1e-8, atol=1e-10, err_msg=str(hint)
    )
