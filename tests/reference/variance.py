"""Variances from pairs: the jackknife over clusters and items, and DeLong's.

``pairs_by_group`` is {group: [(i, j, num, den, weight), ...]} with the estimate of a
group sum(weight * num) / sum(weight * den). ``weight`` is the importance of the query
or cluster of the pair. The keys need not be groups: (group, bucket) gives the
covariance of the buckets. Covariances are returned as {(g, h): value}, nan where a
group has no pairs.
"""

import math

import numpy as np

from tests.reference._common import NAN


def ratio_estimates(tables, touched=None, dropped=None):
    """{key: sum(num) / sum(den)}, every pair times its weight.

    Without the pairs that touch a unit, if one is to be dropped.
    """
    ratios = {}
    for key, pairs in tables.items():
        if dropped is not None:
            both = zip(pairs, touched[key], strict=True)
            pairs = [p for p, units in both if dropped not in units]
        denominator = math.fsum(p[4] * p[3] for p in pairs)
        numerator = math.fsum(p[4] * p[2] for p in pairs)
        ratios[key] = numerator / denominator if denominator else NAN
    return ratios


def _combined(coefficients, ratios):
    """Sum of ratios times coefficients, {key: number} as a function of the ratios."""
    return math.fsum(c * ratios[key] for key, c in coefficients(ratios).items())


def _active(pairs, units, chosen):
    """Number of the chosen units with data."""
    amount = dict.fromkeys(chosen, 0.0)
    for p in pairs:
        for unit in units(p) & amount.keys():
            amount[unit] += p[3] * p[4]
    return sum(value > 0 for value in amount.values())


def jackknife_covariance(
    tables, units, everyone, estimates=None, supports=None, member=None
):
    """Jackknife covariance of estimates made of ratios; nan where it is undefined.

    V_gh = sum over units q of sqrt(f_gq * f_hq) * change_gq * change_hq,
    where change_gq is the estimate of g without q less that of all, and f_gq is
    (n - 1) / n, n the number of units with data of g that are in the stratum of q:
    members of g, or all others; the larger one over the supports of g.

    ``tables`` {key: [(i, j, num, den, weight), ...]}, ``units(pair)`` the set of its
    units, ``everyone`` all of them, ``estimates`` {group: function of {key: ratio} that
    returns {key: coefficient}}, ``supports`` {group: [pairs, ...]},
    ``member`` {group: set of units} (None: one stratum).
    """
    estimates = estimates or {g: lambda _, g=g: {g: 1.0} for g in tables}
    supports = supports or {g: [tables[g]] for g in estimates}
    everyone = set(everyone)
    touched = {key: [units(p) for p in pairs] for key, pairs in tables.items()}
    ratios = ratio_estimates(tables)
    changes = {g: dict.fromkeys(everyone, 0.0) for g in estimates}
    factor, undefined = {}, set()
    for g, coefficients in estimates.items():
        inside = everyone if member is None else member[g]
        strata = inside, everyone - inside
        numbers = [[_active(s, units, c) for s in supports[g]] for c in strata]
        for chosen, there in zip(strata, numbers, strict=True):
            n = max(there)
            factor |= {(g, q): (n - 1) / n if n else 0.0 for q in chosen}
        alone = any(0 < number < 2 for there in numbers for number in there)
        few = min(map(sum, zip(*numbers, strict=True))) < 2
        if alone or few or math.isnan(_combined(coefficients, ratios)):
            undefined.add(g)
    for q in everyone:
        without = ratio_estimates(tables, touched, q)
        for g in estimates.keys() - undefined:
            change = _combined(estimates[g], without) - _combined(estimates[g], ratios)
            changes[g][q] = math.sqrt(factor[g, q]) * change
    covariance = {}
    for g in estimates:
        for h in estimates:
            lost = g in undefined or h in undefined
            products = [changes[g][q] * changes[h][q] for q in everyone]
            covariance[g, h] = NAN if lost else math.fsum(products)
    for g in estimates:
        if math.isnan(covariance[g, g]):
            for h in estimates:
                covariance[g, h] = covariance[h, g] = NAN
    return covariance


def _weighted(pairs, cluster, weights):
    """Return the pairs, with a weight of each cluster as a factor, None being 1."""
    weights = weights or dict.fromkeys(cluster, 1)
    return [(*p[:4], p[4] * weights[cluster[p[0]]]) for p in pairs]


def estimates(tables, *weights):
    """Return the ratios as a list; the weights are those of `cluster_covariance`."""
    weighted = {key: _weighted(pairs, *weights) for key, pairs in tables.items()}
    return list(ratio_estimates(weighted).values())


def cluster_covariance(
    pairs_by_group, cluster, cluster_weight=None, estimates=None, supports=None
):
    """Jackknife over clusters: `jackknife_covariance` of the pairs of whole clusters.

    ``cluster_weight`` {label: importance} multiplies all pairs of the cluster.
    """
    supports = supports or {}
    weights = cluster, cluster_weight
    return jackknife_covariance(
        {g: _weighted(pairs, *weights) for g, pairs in pairs_by_group.items()},
        lambda p: {cluster[p[0]]},
        cluster,
        estimates,
        {g: [_weighted(s, *weights) for s in some] for g, some in supports.items()},
    )


def item_covariance(pairs_by_group, n_rows, member=None, estimates=None, supports=None):
    """Jackknife over items, each pair in both its items: leave out each item.

    Members of the group and all others are two samples (DeLong et al. 1988); without
    ``member`` {group: one bool a row} the items are one.
    """
    if member is not None:
        member = {
            g: {row for row, inside in enumerate(rows) if inside}
            for g, rows in member.items()
        }
    return jackknife_covariance(
        pairs_by_group,
        lambda p: {p[0], p[1]},
        range(n_rows),
        estimates,
        supports,
        member,
    )


def placements(y, s):
    """Return DeLong's V10 and V01: placements of positives and of negatives."""
    y, s = np.asarray(y) == 1, np.asarray(s)
    won = (s[y][:, None] > s[~y]) + 0.5 * (s[y][:, None] == s[~y])
    return won.mean(1), won.mean(0)


def delong_variance(y, s):
    """DeLong, DeLong and Clarke-Pearson 1988: S10 / m + S01 / n, of the placements."""
    return sum(np.var(v, ddof=1) / v.size for v in placements(y, s))
