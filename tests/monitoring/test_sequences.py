"""Confidence sequences hold at all times, and see a change soon."""

import numpy as np
import pytest
from scipy import special, stats

from skrankfair.monitoring._sequences import (
    BEST_AFTER,
    Blocks,
    Scan,
    best_ratio,
    betting_sequence,
    boundary,
    change_point,
    normal_scale,
)

# Of gbstats 0.8.0 (GrowthBook), SequentialTwoSidedTTest: rows of two samples, where it
# is the tightest, alpha, standard error, estimate, half width and p-value.
GBSTATS = [
    (400, 5000, 0.05, 0.1, 0.1, 0.40858642315851035, 1.0),
    (6000, 5000, 0.05, 0.033565855667130946, 0.06, 0.10192826454040566, 0.764131228),
    (80000, 1000, 0.01, 0.00848528137423857, 0.03, 0.034000586380369124, 0.0590695077),
]


def blocks(value, variance=None, weight=None, df=1e9):
    """Return one block per update."""
    value = np.asarray(value, dtype=float)
    ones = np.ones(value.size)
    variance, weight = (ones if x is None else x for x in (variance, weight))
    return Blocks(value, variance, weight, df * ones, np.arange(value.size))


@pytest.mark.parametrize("case", GBSTATS, ids=[str(case[0]) for case in GBSTATS])
def test_is_the_asymptotic_sequence_of_gbstats(case):
    n_rows, best, alpha, error, estimate, half, pvalue = case
    actual = boundary(np.array(n_rows / best), alpha) * error
    assert actual == pytest.approx(half, rel=1e-12)
    # One start alone, whose weight is undone, is the e-value of the same package.
    ratio = n_rows / best * best_ratio(alpha) / best_ratio(alpha / 2)
    scan = Scan(*(np.array([[number]]) for number in (estimate, error, 1e12, ratio)))
    log, _ = scan.log_evidence(0.0, alpha)
    evidence = 2 * (np.exp(log[0]) - 0.5)
    assert min(1.0, 1 / evidence) == pytest.approx(pvalue, rel=1e-6)


def naive(values, first, margin, alpha, change):
    """Return the mixture at each time, by loops, for blocks of variance 1."""
    out = []
    for t in range(first, len(values)):
        total = 1.0
        for s in range(first, t + 1):
            place = s - first + 1
            weight = 1 / (place * (place + 1))
            window = values[s : t + 1]
            estimate, variance, before = np.mean(window), 1 / len(window), 0.0
            if change:
                estimate -= np.mean(values[:s])
                before = 1 / s
            z = max(0.0, abs(estimate) - margin) / np.sqrt(variance + before)
            best = (1 / BEST_AFTER + before) / (variance + before)
            log = -2 * np.log(alpha * weight)
            r = best * (log + np.log(1 + log))
            total += weight * (np.exp(z**2 / 2 * r / (1 + r)) / np.sqrt(1 + r) - 1)
        out.append(np.log(total))
    return out


@pytest.mark.parametrize("change", [False, True])
@pytest.mark.parametrize("margin", [0.0, 0.4])
def test_is_the_definition(change, margin, monkeypatch):
    monkeypatch.setattr(
        Blocks, "spread", lambda self: (np.ones(self.value.size), np.inf + self.value)
    )
    values = np.random.default_rng(0).normal(size=25) + np.repeat([0.5, 1.5], [15, 10])
    first = 5 if change else 0
    actual, starts = Scan.of(blocks(values), first).log_evidence(margin, 0.05)
    expected = naive(values, first, margin, 0.05, change)
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-9)
    assert (starts <= np.arange(starts.size)).all()


def test_means_are_weighted_and_their_variances_too():
    value, variance, weight = np.random.default_rng(1).random((3, 6)) + 0.5
    mean, var, df = blocks(value, variance, weight, df=10.0).means()
    some = slice(2, 5)
    assert mean[2, 4] == pytest.approx(np.average(value[some], weights=weight[some]))
    square = weight[some] ** 2 * variance[some]
    assert var[2, 4] == pytest.approx(square.sum() / weight[some].sum() ** 2)
    assert df[2, 4] == pytest.approx(10 * square.sum() ** 2 / (square**2).sum())
    assert np.isnan(mean[4, 2])


def test_days_that_vary_more_than_their_errors_are_allowed_for():
    rng = np.random.default_rng(2)
    # While there are few, three times as much.
    spread, df = blocks(rng.normal(size=7)).spread()
    assert (spread == 9).all()
    assert np.isinf(df).all()
    spread, df = blocks(3 * rng.normal(size=2000)).spread()
    assert spread[-1] == pytest.approx(9, rel=0.1)
    assert df[-1] == pytest.approx(2 / 3 * 1999)
    # A jump in between is one difference of many.
    jump = blocks(rng.normal(size=2000) + 2 * (np.arange(2000) > 1000))
    assert jump.spread()[0][-1] == pytest.approx(1, abs=0.1)


def test_few_clusters_have_wide_tails():
    few, many = (Scan.of(blocks(np.zeros(3), df=df)) for df in (5.0, 1e9))
    for scan, level in ((few, 5.0), (many, 1e9)):
        _, high = scan.interval(0, 0.05)
        tail = stats.norm.sf(boundary(scan.ratio[0], 0.05))
        np.testing.assert_allclose(
            high / scan.error[0], stats.t.isf(tail, scan.df[0]), rtol=1e-6
        )
        assert scan.df[0, 0] == pytest.approx(level)


class TestBetting:
    @pytest.mark.parametrize("alpha", [0.05, 0.003])
    def test_ends_where_the_capital_reaches_its_bound(self, alpha):
        """That is a beta-binomial likelihood over a binomial one."""
        n = np.array([1, 1, 7, 40, 40, 1000, 1000])
        k = np.array([0, 1, 2, 0, 39, 20, 500])
        for end, sure in zip(betting_sequence(n, k, alpha), (0, n), strict=True):
            at_end = (k == sure) | (n == 0)
            np.testing.assert_array_equal(end[at_end], (k / n)[at_end])
            some = ~at_end
            chance = stats.binom.pmf(k[some], n[some], end[some])
            capital = stats.betabinom.pmf(k[some], n[some], 0.5, 0.5) / chance
            np.testing.assert_allclose(capital, 1 / alpha, rtol=1e-9)

    @pytest.mark.parametrize("values", [[0, 1, 1, 0, 1], [0.2, 0.9, 0.5, 0.0, 1.0]])
    def test_is_never_more_than_bets_win(self, values):
        """The capital of a bettor by the definition, mixed over her alternatives."""
        x, m = np.array(values, dtype=float), 0.3
        point, weight = special.roots_jacobi(200, -0.5, -0.5)
        bets = ((point + 1) / 2 - m) / (m * (1 - m))
        won = (1 + np.outer(bets, x - m)).prod(axis=1) @ weight / weight.sum()
        n, k = x.size, x.sum()
        actual = special.beta(k + 0.5, n - k + 0.5) / np.pi
        actual /= m**k * (1 - m) ** (n - k)
        if set(values) <= {0, 1}:
            assert actual == pytest.approx(won, rel=1e-9)
        assert actual <= won * (1 + 1e-12)
        low, high = betting_sequence(np.array([n]), np.array([k]), 1 / actual)
        assert min(abs(low[0] - m), abs(high[0] - m)) < 1e-9


@pytest.mark.parametrize("df", [5, 10, 50, 1e9])
def test_tails_are_those_of_students_t(df):
    distance = np.linspace(0.1, 6, 30)
    exact = stats.norm.isf(stats.t.sf(distance, df))
    np.testing.assert_allclose(normal_scale(distance, df), exact, rtol=1e-2)


def test_a_change_point_is_where_it_began():
    values = np.random.default_rng(3).normal(size=80)
    values[50:] += 3
    actual, low, high = change_point(blocks(values), 20)
    assert actual == 50
    assert 45 <= low <= 50 <= high <= 53


def test_a_change_is_seen_soon_also_after_long():
    rng = np.random.default_rng(7)
    delays = []
    for _ in range(40):
        values = rng.normal(size=200)
        values[150:] += 2  # two standard errors of a day
        log, _ = Scan.of(blocks(values), 28).log_evidence(0.0, 0.05)
        seen = np.flatnonzero(log >= -np.log(0.05))
        delays.append(seen[0] + 28 - 150 if seen.size else 50)
    assert 0 <= np.median(delays) < 12
