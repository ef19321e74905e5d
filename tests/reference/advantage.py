"""Group advantage, Kuhlman et al. 2021, and NDKL, Geyik et al. 2019.

A ranking is seen as the profile of a group: its expected number of members (0 to 1)
at every rank, tied scores in random order. Ranks k are counted from 1 here, as in the
paper; discounts take such a k.
"""

import itertools
import math
from functools import partial

from tests.reference._common import NAN, query_weights, rows_by_query, tied_blocks
from tests.reference.dissatisfaction import visit

INFINITY = float("inf")


def profile(s, rows, in_group):
    """Return the expected membership of ranks 1 to n; a tied block shares it evenly."""
    result = []
    for block in tied_blocks(s, rows):
        inside = sum(bool(in_group[row]) for row in block)
        result += [inside / len(block)] * len(block)
    return result


def first(n, size):
    """Profile of a group of ``size`` at the top of n; a fraction shares a rank."""
    return [min(1.0, max(0.0, size - k)) for k in range(n)]


def last(n, size):
    """Profile of a group of ``size`` at the bottom of n."""
    return first(n, size)[::-1]


def top_share(members, k):
    """p_k: the share of the group in the top k."""
    return math.fsum(members[:k]) / k


def log_discount(k):
    """1 / log2(k + 1), what the released numbers use; the paper prints log2 k."""
    return 1 / math.log2(k + 1)


# Terms by cut point


def difference_term(p, q):
    """|p - q|; equation 14."""
    return abs(p - q)


def ratio_term(p, q, zero_division=1.0):
    """|p / (1 - p) - q / (1 - q)|; equation 15, a ratio by 0 is ``zero_division``."""

    def ratio(share):
        return zero_division if share == 1 else share / (1 - share)

    return abs(ratio(p) - ratio(q))


def kl(p, q):
    """Sum of p ln(p / q), 0 ln 0 = 0: equation 17 without its misprint."""
    return math.fsum(a * math.log(a / b) for a, b in zip(p, q, strict=True) if a > 0)


def kl_term(p, q):
    """Of the group and the rest."""
    # Rounding may take 1 - p below 0 when p is 1.
    return kl([p, max(0.0, 1 - p)], [q, 1 - q])


def discounted(members, term, step=10, discount=log_discount, q=None):
    """Sum over k = step, 2 step, ... <= n of discount(k) * term(p_k, q); equation 1.

    q is the share of the whole list, unless it is given.
    """
    n = len(members)
    q = top_share(members, n) if q is None else q
    return math.fsum(
        discount(k) * term(top_share(members, k), q) for k in range(step, n + 1, step)
    )


def maximum(n, size, term, step=10, discount=log_discount):
    """R of equation 1: the larger of the group all first and all last."""
    return max(
        discounted(extreme(n, size), term, step, discount) for extreme in (first, last)
    )


def normalized(members, term, step=10, discount=log_discount):
    """Discounted sum over its maximum; nan if nothing can differ."""
    n, size = len(members), math.fsum(members)
    # Sums of shares of blocks are not exact.
    size = round(size, 9)
    if size in (0, n):
        return NAN
    most = maximum(n, size, term, step, discount)
    return discounted(members, term, step, discount) / most if most > 0 else NAN


# Many rankings


def _profiles(s, q, in_group, w):
    weights = query_weights(q, w)
    return [
        (profile(s, rows, in_group), weights[label])
        for label, rows in rows_by_query(q).items()
        if weights[label] > 0
    ]


def mean_profile(profiles):
    """Mean of (profile, weight), of one length."""
    total = math.fsum(weight for _, weight in profiles)
    return [
        math.fsum(weight * members[k] for members, weight in profiles) / total
        for k in range(len(profiles[0][0]))
    ]


def weighted_mean(values):
    """Mean of (value, weight) over values that are not nan, and how many."""
    values = [(v, weight) for v, weight in values if weight > 0 and not math.isnan(v)]
    if not values:
        return NAN, 0
    if any(math.isinf(value) for value, _ in values):
        return -INFINITY, len(values)
    total = sum(weight for _, weight in values)
    return math.fsum(value * weight for value, weight in values) / total, len(values)


def _by_profile(s, q, member, metric, average, w):
    """{group: (metric of profiles, number of queries)}.

    "queries": mean of the metric over queries where it is not nan; "representation":
    the metric of the mean profile, hence of the mean p_k.
    """
    result = {}
    for group, in_group in member.items():
        profiles = _profiles(s, q, in_group, w)
        if average == "queries":
            result[group] = weighted_mean([(metric(m), c) for m, c in profiles])
        else:
            value = metric(mean_profile(profiles))
            result[group] = value, 0 if math.isnan(value) else len(profiles)
    return result


def normalized_discounted(
    term, s, q, member, step=10, discount=log_discount, average="queries", w=None
):
    """rND, rRD or rKL of every group against the rest: {group: (value, queries)}."""

    def metric(members):
        return normalized(members, term, step, discount)

    return _by_profile(s, q, member, metric, average, w)


def skew(s, q, member, k=None, step=None, average="queries", w=None):
    """ln(p_k / q), or its mean over the cuts of equation 1 by their discounts.

    {group: (value, queries)}; -inf without the group in the top k. Lists no longer than
    the first cut, and those without the group or of it alone: nan.
    """

    def metric(members):
        n, share = len(members), top_share(members, len(members))
        cuts = [k] if step is None else range(step, n + 1, step)
        if (k or step) >= n or share in (0, 1):
            return NAN
        return _mean_skew(members, share, cuts)

    return _by_profile(s, q, member, metric, average, w)


def _mean_skew(members, share, cuts):
    shares = [top_share(members, k) for k in cuts]
    if min(shares) == 0:
        return -INFINITY
    total = math.fsum(
        log_discount(k) * math.log(p / share) for k, p in zip(cuts, shares, strict=True)
    )
    return total / math.fsum(log_discount(k) for k in cuts)


# Shares given in advance


def with_target(
    s, q, member, target, term, step=10, average="queries", w=None, *, largest=True
):
    """Distances from a share given in advance: {group: (value, queries)}.

    Over every list with a cut, of the group or not; divided by the larger value of a
    list of the group alone and of one without it, or, if not `largest`, by the weights.
    """

    def metric(members, share):
        most = max(term(1, share), term(0, share)) if largest else 1
        most *= math.fsum(map(log_discount, range(step, len(members) + 1, step)))
        return discounted(members, term, step, q=share) / most if most else NAN

    return _of_targets(metric, s, q, member, target, average, w)


def skew_with_target(s, q, member, target, k, average="queries", w=None):
    """ln(p_k / target) of every list of k items or more: {group: (value, queries)}."""

    def metric(members, share):
        return _mean_skew(members, share, [k]) if len(members) >= k else NAN

    return _of_targets(metric, s, q, member, target, average, w)


def _of_targets(metric, s, q, member, target, average, w):
    values = {}
    for group, in_group in member.items():
        of_group = partial(metric, share=target[group])
        values |= _by_profile(s, q, {group: in_group}, of_group, average, w)
    return values


def joint_with_target(s, q, member, target, step=10, w=None, *, largest=True):
    """KL of all groups at once from their targets: (value, queries)."""
    weights, values = query_weights(q, w), []
    for label, rows in rows_by_query(q).items():
        profiles = [profile(s, rows, m) for m in member.values()]
        value = discounted_kl_of_groups(profiles, step, [target[g] for g in member])
        most = -math.log(min(target.values())) if largest else 1
        most *= math.fsum(map(log_discount, range(step, len(rows) + 1, step)))
        values.append((value / most if most else NAN, weights[label]))
    return weighted_mean(values)


# Several groups at once


def discounted_kl_of_groups(profiles, step=10, q=None):
    """Sum over cut points of discount(k) * sum_g p_g ln(p_g / q_g).

    ``profiles``: one per group, of one ranking, summing to 1 at every rank. q are the
    shares of the whole list, unless they are given.
    """
    n = len(profiles[0])
    q = q or [top_share(members, n) for members in profiles]
    return math.fsum(
        log_discount(k) * kl([top_share(members, k) for members in profiles], q)
        for k in range(step, n + 1, step)
    )


def ndkl_of_groups(profiles):
    """Sum over k = 1..n of KL(p_k | q) / log2(k + 1), over the sum of the weights."""
    n = len(profiles[0])
    weights = math.fsum(log_discount(k) for k in range(1, n + 1))
    return discounted_kl_of_groups(profiles, step=1) / weights


def _profiles_of_groups(s, rows, g):
    return [
        profile(s, rows, [label == group for label in g])
        for group in sorted({g[row] for row in rows})
    ]


def ndkl(s, q, g, average="queries", w=None):
    """NDKL over all groups of the labels g: (value, queries).

    "representation": of the mean profiles, a group absent from a list being 0 there.
    """
    weights = query_weights(q, w)
    if average == "queries":
        values = [
            (ndkl_of_groups(_profiles_of_groups(s, rows, g)), weights[label])
            for label, rows in rows_by_query(q).items()
            if weights[label] > 0 and len({g[row] for row in rows}) > 1
        ]
        return weighted_mean(values)
    profiles = [
        mean_profile(_profiles(s, q, [label == group for label in g], w))
        for group in sorted(set(g))
    ]
    return ndkl_of_groups(profiles), sum(weight > 0 for weight in weights.values())


def _of_orders(orders, sizes, step):
    """Return the largest value over orders, each a list of the groups of the items."""
    groups = range(len(sizes))
    return max(
        discounted_kl_of_groups([[float(g == h) for h in order] for g in groups], step)
        for order in orders
    )


def maximum_of_groups(sizes, step=10):
    """Return the largest value over orders of the groups, one group after the other."""
    orders = itertools.permutations(range(len(sizes)))
    lists = ([g for g in order for _ in range(sizes[g])] for order in orders)
    return _of_orders(lists, sizes, step)


def brute_force_maximum_of_groups(sizes, step=10):
    """Return the largest value over all rankings; 7 items at most."""
    items = [g for g, size in enumerate(sizes) for _ in range(size)]
    return _of_orders(set(itertools.permutations(items)), sizes, step)


def normalized_discounted_kl_of_groups(s, q, g, step=10, w=None):
    """rKL over all groups of the labels g, by `maximum_of_groups`: (value, queries).

    The mean over queries with at least two groups and a cut point.
    """
    weights = query_weights(q, w)
    values = []
    for label, rows in rows_by_query(q).items():
        profiles = _profiles_of_groups(s, rows, g)
        sizes = [round(math.fsum(members)) for members in profiles]
        most = maximum_of_groups(sizes, step)
        value = discounted_kl_of_groups(profiles, step)
        values.append((value / most if most > 0 else NAN, weights[label]))
    return weighted_mean(values)


# Exposure


def mean_exposures(members, discount="reciprocal"):
    """(e_a, e_rest): the mean discount of the members, and of the others."""
    n, size = len(members), math.fsum(members)
    # Sums of shares of blocks are not exact.
    if round(size, 9) in (0, n):
        return NAN, NAN
    values = [visit(discount, k) for k in range(n)]
    own = math.fsum(v * m for v, m in zip(values, members, strict=True)) / size
    rest = math.fsum(v * (1 - m) for v, m in zip(values, members, strict=True))
    return own, rest / (n - size)


def exposure_difference(members, discount="reciprocal", *, scaled=False):
    """e_a - e_rest; scaled by the larger of the group all first and all last."""
    own, rest = mean_exposures(members, discount)
    if not scaled or math.isnan(own):
        return own - rest
    size = round(math.fsum(members))
    return (own - rest) / max(
        abs(exposure_difference(extreme(len(members), size), discount))
        for extreme in (first, last)
    )


def exposure_parity(
    s,
    q,
    member,
    discount="reciprocal",
    average="queries",
    w=None,
    signed=False,
    divisor="sum",
):
    """|1 - 2 e_a / (e_a + e_rest)|, equation 7: {group: (value, queries)}.

    ``signed``: 2 e_a / (e_a + e_rest) - 1, positive when the group has the advantage.
    ``divisor``: None or "maximum", of the difference of the exposures.
    """

    def metric(members):
        if divisor == "sum":
            own, rest = mean_exposures(members, discount)
            value = 2 * own / (own + rest) - 1
        else:
            scaled = divisor == "maximum"
            value = exposure_difference(members, discount, scaled=scaled)
        return value if signed else abs(value)

    return _by_profile(s, q, member, metric, average, w)


# Pairs


def pair_share(s, rows, in_group):
    """Share of cross-group pairs with the member above, ties a half; equation 8."""
    wins = []
    for i in rows:
        for j in rows:
            if in_group[i] and not in_group[j]:
                wins.append(0.5 * (float(s[i]) > float(s[j])))
                wins.append(0.5 * (float(s[i]) >= float(s[j])))
    return math.fsum(wins) / (len(wins) / 2) if wins else NAN


def pairwise_parity(s, q, member, average="queries", w=None, signed=False):
    """|1 - 2 pair_a|, equation 9: {group: (value, queries)}.

    "representation": of the mean of pair_a over queries, which for lists of one length
    and groups of one size is the pair_a of the mean profile. ``signed``:
    2 pair_a - 1, positive when the group has the advantage.
    """
    weights = query_weights(q, w)
    result = {}
    for group, in_group in member.items():
        values = [
            (2 * pair_share(s, rows, in_group) - 1, weights[label])
            for label, rows in rows_by_query(q).items()
        ]
        if average == "queries" and not signed:
            values = [(abs(value), weight) for value, weight in values]
        mean, n_queries = weighted_mean(values)
        result[group] = mean if signed else abs(mean), n_queries
    return result
