"""Ranges of partners and the exact K-th smallest difference, on long lists too."""

import itertools
import math
from functools import partial

import numpy as np
import pytest

from skrankfair._inputs.groups import Groups
from skrankfair._inputs.ranking import Memberships, Ranking
from skrankfair.metrics import matched_pair_calibration
from skrankfair.metrics._pairs import near
from skrankfair.metrics._pairs.near import Matching
from tests.metrics.problems import make_problem, undefined_is_fine
from tests.seeds import one_in, rarely

pytestmark = undefined_is_fine

DIRECTIONS = ("below", "both")


def difference(s, i, j, direction):
    """s_j - s_i of all pairs, as the metric defines it; NaN if it is no pair."""
    found = s[None, j] - s[i, None]
    if direction == "both":
        return np.abs(found)
    return np.where(found >= 0, found, np.nan)


def all_differences(s, query, focal, direction, weight=None):
    """Return the differences of all possible pairs, sorted, and their weights."""
    values, weights = [], []
    for label in np.unique(query):
        rows = query == label
        i, j = np.flatnonzero(rows & focal), np.flatnonzero(rows & ~focal)
        found = difference(s, i, j, direction).ravel()
        values.append(found[~np.isnan(found)])
        one = 1 if weight is None else weight[rows][0]
        weights.append(np.full(values[-1].size, one))
    values, weights = np.concatenate(values), np.concatenate(weights)
    order = np.argsort(values, kind="stable")
    return values[order], weights[order]


def expected_epsilon(values, weights, n_pairs=None, quantile=None):
    """Return the smallest difference whose cumulated weight reaches the rank."""
    if not values.size:
        return np.nan
    total = weights.sum()
    rank = min(n_pairs, total) if quantile is None else quantile * total
    return values[np.argmax(np.cumsum(weights) >= rank * (1 - 1e-12))]


SCORES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "two decimals": lambda rng, n: rng.normal(size=n).round(2),
    "one decimal": lambda rng, n: rng.random(n).round(1),
    "binary": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "constant": lambda rng, n: np.full(n, 0.3),
    "one apart": lambda rng, n: np.where(np.arange(n) == 7, 1e9, 0.0),
    "few and noise": lambda rng, n: np.where(
        rng.random(n) < 0.95, rng.choice([0.1, 0.2, 0.7], n), rng.random(n)
    ),
    "heavy tail": lambda rng, n: rng.standard_cauchy(n),
    "close": lambda rng, n: 1e8 + rng.integers(0, 40, n) * 2.0**-26,
    "powers": lambda rng, n: 2.0 ** -rng.integers(0, 1000, n),
    "extreme": lambda rng, n: rng.choice([1e308, -1e308, 0.0, 5e-324, 1.0], n),
}
CHOICES = [
    *({"quantile": share} for share in (1e-9, 0.001, 0.01, 0.3, 0.5, 0.97, 1.0)),
    *({"n_pairs": k} for k in (1, 1000, 10**6, 10**12)),
    *({"epsilon": distance} for distance in (1e-320, 1.7e308)),
]


def assert_exact(s, focal, direction, choices):
    """Compare chosen thresholds of one list with its K-th smallest differences."""
    with np.errstate(over="ignore"):
        values, weights = all_differences(s, np.zeros(s.size), focal, direction)
    for chosen in choices:
        r = matched_pair_calibration(
            np.zeros(s.size), s, sensitive_features=focal, direction=direction, **chosen
        )
        epsilon = chosen.get("epsilon") or expected_epsilon(values, weights, **chosen)
        assert r.first_pass["epsilon"][True] == epsilon, chosen
        # Pairs tied at the threshold are all kept, up to rounding.
        assert r.support[1] == np.count_nonzero(values <= epsilon * (1 + 1e-9)), chosen
        if direction == "both":  # the same pairs, seen from the others
            assert r.first_pass["epsilon"][False] == epsilon, chosen


@one_in(
    4,
    score=SCORES,
    direction={name: name for name in DIRECTIONS},
    sample={"as it is": near._SAMPLE, "bad guesses": 2},
)
def test_kth_difference_of_one_long_list(score, direction, sample, monkeypatch):
    # 400,000 possible pairs: far more than are ever written down at once.
    monkeypatch.setattr(near, "_SAMPLE", sample)
    rng = np.random.default_rng(0)
    assert_exact(score(rng, 1300), rng.random(1300) < 0.4, direction, CHOICES)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_kth_difference_of_unbalanced_groups(direction):
    rng = np.random.default_rng(2)
    focal = np.isin(np.arange(20_000), rng.integers(0, 20_000, 30))
    choices = {"quantile": 0.01}, {"quantile": 1.0}, {"n_pairs": 20_000}
    s = np.round(1024 * rng.normal(size=20_000)) / 1024  # whose differences are exact
    assert_exact(s, focal, direction, choices)


@pytest.mark.parametrize("n_rows", [(3, 24), (20, 700)])
@pytest.mark.parametrize("seed", [*range(3), *rarely(*range(3, 20))])
def test_thresholds_of_all_groups_are_those_of_each(monkeypatch, seed, n_rows):
    monkeypatch.setattr(near, "_SAMPLE", 64)  # several rounds of the search
    p = make_problem(seed, n_rows)
    seen, measure = p.seen(), partial(matched_pair_calibration, p.y, p.s, **p.who)
    columns = np.array(seen.s), np.array(seen.q)
    for direction, how in itertools.product(
        DIRECTIONS,
        ({}, {"n_pairs": 5}, {"quantile": 0.01}, {"quantile": 0.5}, {"quantile": 1.0}),
    ):
        options = {"direction": direction, "variance": "cluster"}
        r = measure(**how, **options)
        weight = None if "n_pairs" in how else np.array(seen.weights)
        for group, member in seen.member.items():
            args = np.array(member), direction, weight
            values, weights = all_differences(*columns, *args)
            expected = expected_epsilon(values, weights, **how or {"quantile": 0.01})
            np.testing.assert_equal(r.first_pass["epsilon"][group], expected)
        again = measure(epsilon=r.first_pass["epsilon"], **options)
        np.testing.assert_array_equal(r.estimate, again.estimate)


# Ranges


def naive_partners(ranking, values, row, group, threshold, direction):
    """Return the rows that make a pair with a member of a group."""
    same = ranking.query == ranking.query[row]
    gap = ranking.score - ranking.score[row]
    inside = values[:, group] if values.ndim == 2 else values == group
    near = same & ~inside & (np.abs(gap) <= threshold)
    return np.flatnonzero(near & (gap >= 0) if direction == "below" else near)


@pytest.mark.parametrize("long", [1, 10**9], ids=["guessed", "searched"])
@pytest.mark.parametrize("seed", [0, 1, *rarely(2, 3, 4, 5)])
def test_windows(seed, long, monkeypatch):
    monkeypatch.setattr(near, "_LONG", long)
    rng = np.random.default_rng(seed)
    n, n_groups = 60, 4
    # Tenths: sums and differences of scores and thresholds round.
    s = rng.integers(0, 40, n) * 0.1 if seed % 2 else rng.normal(size=n)
    ranking = Ranking.from_scores(s, rng.integers(0, 3, n))
    # Groups that overlap, of which two are everybody and nobody.
    overlapping = rng.random((n, n_groups)) < (0.4, 0.4, 1, 0)
    for values in (rng.integers(0, n_groups, n), overlapping):
        members = Memberships.of(ranking, Groups(tuple(range(n_groups)), values))
        gaps = np.abs(rng.choice(s, 2) - rng.choice(s, 2))
        thresholds = [math.nan, 0.0, 0.1, 0.3, 100.0, *gaps, *np.nextafter(gaps, 0)]
        for direction, threshold in itertools.product(DIRECTIONS, thresholds):
            matching = Matching(ranking, members, direction)
            ranges = matching.windows(np.full(n_groups, threshold), matching.empty)
            for number, row in enumerate(members.rows):
                group = members.cells.group[members.cell[number]]
                expected = naive_partners(
                    ranking, values, row, group, threshold, direction
                )
                every = np.arange(ranges.low[number], ranges.high[number])
                own = members.rows[ranges.own_low[number] : ranges.own_high[number]]
                np.testing.assert_array_equal(np.setdiff1d(every, own), expected)
                assert ranges.count[number] == expected.size
