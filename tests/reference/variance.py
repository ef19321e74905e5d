"""Variances from pairs: clusters, items (Aronow et al. 2017), DeLong, bootstrap.

``pairs_by_group`` is {group: [(i, j, num, den, weight), ...]} with the estimate of a
group sum(weight * num) / sum(weight * den). ``weight`` is a frequency: 2 is the pair,
with its items, seen twice. `tabulate` makes such lists. The keys need not be groups:
(group, bucket) gives the covariance of the buckets. Covariances are returned as
{(g, h): value}, nan where a group has no pairs.
"""

import math

from tests.reference._common import NAN, query_weights


def tabulate(pairs, q, average="pairs", w=None):
    """(i, j, value) as (i, j, num, den, weight).

    ``average="queries"``: num = value / n and den = 1 / n, n the query's number of
    pairs, so that the ratio of sums is the mean of the queries' ratios.
    """
    pairs = list(pairs)
    weights = query_weights(q, w)
    n_pairs = {}
    for i, _, _ in pairs:
        n_pairs[q[i]] = n_pairs.get(q[i], 0) + 1
    table = []
    for i, j, value in pairs:
        n = n_pairs[q[i]] if average == "queries" else 1
        table.append((i, j, value / n, 1 / n, weights[q[i]]))
    return table


def _totals(pairs, frequency):
    """Denominator and ratio of a group; ``frequency`` takes a pair."""
    numerator = math.fsum(frequency(p) * p[2] for p in pairs)
    denominator = math.fsum(frequency(p) * p[3] for p in pairs)
    if denominator == 0:
        return 0.0, NAN
    return denominator, numerator / denominator


def _clusters(cluster, cluster_weight):
    weights = {}
    for label in cluster:
        weights[label] = 1 if cluster_weight is None else cluster_weight[label]
    return weights


def ratio_estimates(pairs_by_group, cluster=None, cluster_weight=None):
    """{group: sum(num) / sum(den)}, every pair times its weights."""
    estimates = {}
    for group, pairs in pairs_by_group.items():
        estimates[group] = _totals(
            pairs,
            lambda p: p[4] * (cluster_weight[cluster[p[0]]] if cluster_weight else 1),
        )[1]
    return estimates


def cluster_covariance(pairs_by_group, cluster, cluster_weight=None):
    """Cluster-robust covariance of ratio estimates by the delta method.

    cov_gh = Q / (Q - 1) * sum over clusters of r_gc * r_hc / (D_g * D_h); r_gc is the
    sum of weight * (num - theta_g * den) over the pairs of g in c, minus its mean over
    all Q clusters of the data, those without pairs included. ``cluster_weight``
    {label: frequency}: 2 is the cluster seen twice, and Q the sum of the weights.
    """
    weights = _clusters(cluster, cluster_weight)
    n_clusters = sum(weights.values())
    residual, total = {}, {}
    for group, pairs in pairs_by_group.items():
        for i, j, *_ in pairs:
            if cluster[i] != cluster[j]:
                raise ValueError(f"rows {i} and {j} are in different clusters")
        total[group], theta = _totals(pairs, lambda p: p[4] * weights[cluster[p[0]]])
        sums = dict.fromkeys(weights, 0.0)
        for i, _, num, den, weight in pairs:
            sums[cluster[i]] += weight * (num - theta * den)
        mean = math.fsum(weights[c] * sums[c] for c in weights) / n_clusters
        residual[group] = {c: sums[c] - mean for c in weights}
    covariance = {}
    for g in pairs_by_group:
        for h in pairs_by_group:
            if total[g] == 0 or total[h] == 0 or n_clusters <= 1:
                covariance[g, h] = NAN
                continue
            products = math.fsum(
                weights[c] * residual[g][c] * residual[h][c] for c in weights
            )
            factor = n_clusters / (n_clusters - 1)
            covariance[g, h] = factor * products / (total[g] * total[h])
    return covariance


def item_covariance(pairs_by_group, n_rows):
    """Covariance robust to pairs that share an item, from first principles.

    Aronow et al. 2017 (Korevaar et al. section 4.1.4): cov_gh = sum of d_p * d_p' over
    all p of g and p' of h with an item in common, by D_g * D_h; d = num - theta * den.
    A couple that shares both items counts once. Pairs with a common item are of one
    query, hence of one weight w: the couple is seen w times, not w * w times.
    """
    centred, total = {}, {}
    for group, pairs in pairs_by_group.items():
        total[group], theta = _totals(pairs, lambda p: p[4])
        centred[group] = []
        for i, j, num, den, weight in pairs:
            if not (0 <= i < n_rows and 0 <= j < n_rows):
                raise ValueError(f"no such rows: {i}, {j}")
            centred[group].append(({i, j}, num - theta * den, weight))
    covariance = {}
    for g in pairs_by_group:
        for h in pairs_by_group:
            if total[g] == 0 or total[h] == 0:
                covariance[g, h] = NAN
                continue
            products = []
            for items, d, weight in centred[g]:
                for other_items, other_d, other_weight in centred[h]:
                    if items & other_items:
                        if weight != other_weight:
                            raise ValueError("the weight varies within a query")
                        products.append(weight * d * other_d)
            covariance[g, h] = math.fsum(products) / (total[g] * total[h])
    return covariance


def linearised_cluster_covariance(influence, cluster, cluster_weight=None):
    """Cluster-robust covariance from {group: [(i, j, influence, frequency)]}.

    For functions of totals that are not one ratio: cov_gh = Q / (Q - 1) * sum over
    clusters of r_gc * r_hc, r_gc the sum of frequency * influence over the pairs of g
    in c, minus its mean over all Q clusters. With ``cluster_weight`` {label: n} the
    cluster is there n times and the frequencies within it are 1. No pairs: nan.
    """
    weights = _clusters(cluster, cluster_weight)
    n_clusters = sum(weights.values())
    residual = {}
    for group, pairs in influence.items():
        sums = dict.fromkeys(weights, 0.0)
        for i, j, phi, frequency in pairs:
            if cluster[i] != cluster[j]:
                raise ValueError(f"rows {i} and {j} are in different clusters")
            sums[cluster[i]] += phi * (1 if cluster_weight else frequency)
        mean = math.fsum(weights[c] * sums[c] for c in weights) / n_clusters
        residual[group] = {c: sums[c] - mean for c in weights}
    covariance = {}
    for g in influence:
        for h in influence:
            if not influence[g] or not influence[h] or n_clusters <= 1:
                covariance[g, h] = NAN
                continue
            products = math.fsum(
                weights[c] * residual[g][c] * residual[h][c] for c in weights
            )
            covariance[g, h] = n_clusters / (n_clusters - 1) * products
    return covariance


def linearised_item_covariance(influence):
    """Item-robust covariance from {group: [(i, j, influence, frequency)]}.

    cov_gh = sum of the products of influences over all couples of a pair of g and a
    pair of h with an item in common, as in `item_covariance`.
    """
    covariance = {}
    for g in influence:
        for h in influence:
            products = []
            for i, j, phi, frequency in influence[g]:
                for k, m, psi, _ in influence[h]:
                    if {i, j} & {k, m}:
                        products.append(frequency * phi * psi)
            empty = not influence[g] or not influence[h]
            covariance[g, h] = NAN if empty else math.fsum(products)
    return covariance


def item_variance(pairs):
    """Variance of the mean of (i, j, value) when no item is on both sides.

    [sum_i (sum_j d_ij)^2 + sum_j (sum_i d_ij)^2 - sum_ij d_ij^2] / N^2, d centred;
    Korevaar et al. section 4.1.4 after Aronow et al. 2017.
    """
    pairs = list(pairs)
    if not pairs:
        return NAN
    mean = math.fsum(value for _, _, value in pairs) / len(pairs)
    left, right, squares = {}, {}, []
    for i, j, value in pairs:
        left[i] = left.get(i, 0.0) + value - mean
        right[j] = right.get(j, 0.0) + value - mean
        squares.append((value - mean) ** 2)
    if set(left) & set(right):
        raise ValueError("an item is on both sides")
    sums = [v**2 for v in left.values()] + [v**2 for v in right.values()]
    return (math.fsum(sums) - math.fsum(squares)) / len(pairs) ** 2


def _wins(y, s):
    """{positive row: {negative row: 1, 1/2 or 0}}."""
    table = {}
    for i in range(len(y)):
        for j in range(len(y)):
            if y[i] == 1 and y[j] == 0:
                value = 1.0 if s[i] > s[j] else 0.5 if s[i] == s[j] else 0.0
                table.setdefault(i, {})[j] = value
    return table


def auc(y, s):
    """Area under the ROC curve of binary y: share of pairs won, ties one half."""
    values = [v for row in _wins(y, s).values() for v in row.values()]
    return math.fsum(values) / len(values) if values else NAN


def delong_variance(y, s):
    """DeLong, DeLong and Clarke-Pearson 1988: S10 / m + S01 / n."""
    table = _wins(y, s)
    positives = [i for i in range(len(y)) if y[i] == 1]
    negatives = [j for j in range(len(y)) if y[j] == 0]
    m, n = len(positives), len(negatives)
    if m < 2 or n < 2:
        return NAN
    theta = auc(y, s)
    v10 = [sum(table[i][j] for j in negatives) / n for i in positives]
    v01 = [sum(table[i][j] for i in positives) / m for j in negatives]
    s10 = math.fsum((v - theta) ** 2 for v in v10) / (m - 1)
    s01 = math.fsum((v - theta) ** 2 for v in v01) / (n - 1)
    return s10 / m + s01 / n


def cluster_bootstrap_totals(table, counts):
    """Column totals of every resample: table (Q, K), counts (R, Q) -> (R, K)."""
    n_columns = len(table[0])
    totals = []
    for count in counts:
        row = [0.0] * n_columns
        for c in range(len(table)):
            for k in range(n_columns):
                row[k] += float(count[c]) * float(table[c][k])
        totals.append(row)
    return totals
