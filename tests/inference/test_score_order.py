"""The order of outcomes across groups at unequal scores."""

from itertools import combinations

import numpy as np
import pytest
from scipy import special

from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.inference import predictive_parity_test, score_order_test


def lending(gap, n=2000, seed=0, rows=1):
    """Return the paper's lending example: all of "m" below 1/2, all of "f" above."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(n), rows)
    sex = rng.choice(["f", "m"], n)[cluster]
    risk = rng.uniform(0, 0.5, cluster.size) + 0.5 * (sex == "f")
    default = rng.random(cluster.size) < np.where(sex == "f", 0.3 - gap, 0.3)
    return default.astype(float), risk, sex, cluster


def by_cluster(y, cluster, inside):
    """Return the outcomes of each cluster in a range, in which every one weighs one."""
    return [y[inside & (cluster == m)] for m in np.unique(cluster[inside])]


def naive(rows):
    """Mean, jackknife variance, mean square, clusters and variance of unit outcomes."""
    means, n = np.array([of_cluster.mean() for of_cluster in rows]), len(rows)
    left_out = [np.delete(means, m).mean() - means.mean() for m in range(n)]
    square = np.mean([np.mean(of_cluster**2) for of_cluster in rows])
    unit = sum(1 / of_cluster.size for of_cluster in rows) / n**2
    return means.mean(), (n - 1) / n * np.sum(np.square(left_out)), square, n, unit


def test_differences_and_errors_are_those_of_the_definition():
    rng = np.random.default_rng(0)
    cluster = rng.integers(0, 60, 150)
    group = rng.choice(["a", "b"], 60)[cluster]
    own = rng.normal(size=60)[cluster]
    s, y = rng.random(150), rng.normal(size=150) + own
    t = score_order_test(y, s, sensitive_features=group, cluster=cluster, n_bins=3)
    assert len(t.groups) > 5
    wider, within = [], {}
    for g in "ab":
        edges = np.quantile(s[group == g], [1 / 3, 2 / 3], method="inverted_cdf")
        parts = [
            naive(by_cluster(y, cluster, (group == g) & (low < s) & (s <= high)))
            for low, high in combinations([-np.inf, *edges, np.inf], 2)
        ]
        mean, _, square, n, _ = np.transpose(parts)
        within[g] = np.average(square - mean**2, weights=n)
    columns = t.groups, t.ranges.reshape(-1, 2, 2), t.difference, t.standard_error
    for names, ends, difference, error in zip(*columns, strict=True):
        assert ends[0, 1] < ends[1, 0]
        first, second = (
            naive(by_cluster(y, cluster, (group == g) & (low <= s) & (s <= high)))
            for g, (low, high) in zip(names, ends, strict=True)
        )
        assert difference == pytest.approx(first[0] - second[0])
        n = first[3], second[3]
        mean, square = (np.average([first[i], second[i]], weights=n) for i in (0, 2))
        spreads = [max(square - mean**2, within[g]) for g in names]
        least = np.dot(spreads, [first[4], second[4]])
        assert error**2 == pytest.approx(max(first[1] + second[1], least))
        wider.append(first[1] + second[1] < least)
    assert 0 < sum(wider) < len(wider)


def test_one_range_each_has_welchs_one_sided_test():
    y, s, sex, _ = lending(0.1, n=300)
    t = score_order_test(y, s, sensitive_features=sex, n_bins=1)
    assert t.groups == (("m", "f"),)
    m, f = y[sex == "m"], y[sex == "f"]
    assert t.difference[0] == pytest.approx(m.mean() - f.mean())
    common = y.mean() * (1 - y.mean()) * (1 / m.size + 1 / f.size)
    welch = m.var(ddof=1) / m.size + f.var(ddof=1) / f.size
    assert t.standard_error[0] ** 2 == pytest.approx(max(common, welch))
    z = t.difference[0] / t.standard_error[0]
    assert t.pvalue == pytest.approx(special.ndtr(-z), abs=0.005)
    # The other order is no violation, however large the gap.
    assert score_order_test(1 - y, s, sensitive_features=sex, n_bins=1).pvalue > 0.9


def test_the_lending_example_of_the_paper_is_unfair():
    """Its scores have no common range, so predictive parity holds vacuously."""
    y, s, sex, _ = lending(0.1)
    t = score_order_test(y, s, sensitive_features=sex)
    assert t.pvalue < 0.02
    assert t.groups[0] == ("m", "f")
    frame = t.to_frame()
    assert frame["pvalue"][0] == t.pvalue
    assert (frame["lower_to"] < frame["higher_from"]).all()
    with pytest.warns(UserWarning, match="no curves; its p-value is that of score_o"):
        parity = predictive_parity_test(y, s, sensitive_features=sex)
    assert parity.pvalue == parity.order.pvalue == t.pvalue
    assert not parity.compared.any()
    assert "no common scores\nscore_order_test: max z" in repr(parity)
    with pytest.raises(ValueError, match="cannot be added: pass grid="):
        parity + parity
    fair, s, sex, _ = lending(-0.3)
    assert score_order_test(fair, s, sensitive_features=sex).pvalue > 0.9
    nobody = np.stack([np.arange(2000) % 2 > 0, np.zeros(2000, bool)], axis=1)
    with pytest.warns(UndefinedMetricWarning, match="no two groups have ranges"):
        assert np.isnan(score_order_test(y, s, sensitive_features=nobody).pvalue)
    with pytest.raises(ValueError, match="at most 32 groups.*got 33"):
        score_order_test(fair, s, sensitive_features=np.arange(s.size) % 33)


def test_what_changes_nothing():
    y, s, sex, cluster = lending(0.1, n=150, rows=2)
    who = {"sensitive_features": sex, "cluster": cluster}
    t = score_order_test(y, s, **who)
    other = score_order_test(3 * y - 1, np.exp(s), **who)
    assert other.pvalue == pytest.approx(t.pvalue, abs=1e-9)
    assert other.statistic == pytest.approx(t.statistic)
    members = np.column_stack([sex == "f", sex == "m"])
    other = score_order_test(y, s, sensitive_features=members, cluster=cluster)
    assert other.pvalue == t.pvalue


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([0, 1, 0, 1], [1, 2, 3, 4], list("aabb")), "5 effective clusters"),
        ((np.arange(50) % 2, np.arange(50), ["a"] * 50), "no two groups"),
    ],
)
def test_nothing_to_compare_is_undefined(columns, message):
    y, s, group = columns
    with pytest.warns(UndefinedMetricWarning, match=message):
        t = score_order_test(y, s, sensitive_features=group)
    assert np.isnan([t.pvalue, t.statistic]).all()
    assert "p = nan; 0 comparisons" in repr(t)
