"""Ranges of partners and the exact K-th smallest difference, on long lists too."""

import itertools
import math

import numpy as np
import pytest

from skrankfair._inputs.cells import Memberships
from skrankfair._inputs.groups import Groups
from skrankfair._inputs.ranking import Ranking
from skrankfair.metrics import matched_pair_calibration
from skrankfair.metrics._pairs import near as _matching
from skrankfair.metrics._pairs.near import Matching, PairWeight, reach
from tests.seeds import one_in, rarely

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.UndefinedMetricWarning"
)

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
    if quantile is None:  # a number of pairs, whatever they weigh
        return values[min(n_pairs, values.size) - 1]
    reached = np.cumsum(weights) >= quantile * weights.sum() * (1 - 1e-12)
    return values[np.argmax(reached)]


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
]


def weights_of(kind):
    if kind == "equal":
        return None
    return np.array([2.0, 1.0, 5.0]) if kind == "counts" else np.array([0.5, 0.25, 2])


@one_in(4, score=SCORES, direction={name: name for name in DIRECTIONS})
def test_kth_difference_of_one_long_list(score, direction):
    # 400,000 possible pairs: far more than are ever written down at once.
    rng = np.random.default_rng(0)
    s, y = score(rng, 1300), rng.random(1300)
    focal = rng.random(1300) < 0.4
    with np.errstate(over="ignore"):
        values, weights = all_differences(s, np.zeros(1300), focal, direction)
    for chosen in CHOICES:
        r = matched_pair_calibration(
            y, s, sensitive_features=focal, direction=direction, **chosen
        )
        epsilon = expected_epsilon(values, weights, **chosen)
        assert r.first_pass["epsilon"][True] == epsilon, chosen
        # Pairs tied at the threshold are all kept.
        assert r.support[1] == np.count_nonzero(values <= epsilon), chosen


@one_in(
    3,
    name={n: n for n in ("normal", "few and noise", "two decimals", "binary")},
    kind={kind: kind for kind in ("equal", "counts", "fractions")},
    direction={name: name for name in DIRECTIONS},
)
def test_kth_difference_of_weighted_queries(name, kind, direction):
    rng = np.random.default_rng(1)
    n = 1200
    s, y, query = SCORES[name](rng, n), rng.random(n), rng.integers(0, 3, n)
    focal, weights_by_query = rng.random(n) < 0.5, weights_of(kind)
    w = None if weights_by_query is None else weights_by_query[query]
    values, weights = all_differences(s, query, focal, direction, w)
    choices = CHOICES if kind != "fractions" else CHOICES[7:]
    for chosen in choices:
        r = matched_pair_calibration(
            y,
            s,
            sensitive_features=focal,
            qid=query,
            sample_weight=w,
            direction=direction,
            **chosen,
        )
        epsilon = expected_epsilon(values, weights, **chosen)
        assert r.first_pass["epsilon"][True] == epsilon, chosen
        assert r.support[1] == (values <= epsilon).sum(), chosen


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_kth_difference_of_unbalanced_groups(direction):
    rng = np.random.default_rng(2)
    s, y = rng.normal(size=50_000).round(4), rng.random(50_000)
    focal = np.zeros(50_000, dtype=bool)
    focal[rng.integers(0, 50_000, 30)] = True
    values, weights = all_differences(s, np.zeros(s.size), focal, direction)
    for chosen in ({"quantile": 0.01}, {"quantile": 1.0}, {"n_pairs": 50_000}):
        r = matched_pair_calibration(
            y, s, sensitive_features=focal, direction=direction, **chosen
        )
        epsilon = expected_epsilon(values, weights, **chosen)
        # Seen from the others the pairs above are pairs below.
        assert r.first_pass["epsilon"][True] == epsilon
        assert r.support[1] == np.count_nonzero(values <= epsilon)
        if direction == "both":
            assert r.first_pass["epsilon"][False] == epsilon


@pytest.mark.parametrize("sample", [2, 16])
def test_bad_guesses_do_not_change_the_result(sample, monkeypatch):
    rng = np.random.default_rng(3)
    s, y, focal = rng.random(1500).round(3), rng.random(1500), rng.random(1500) < 0.5
    values, weights = all_differences(s, np.zeros(1500), focal, "both")
    monkeypatch.setattr(_matching, "_SAMPLE", sample)
    for chosen in CHOICES:
        r = matched_pair_calibration(
            y, s, sensitive_features=focal, direction="both", **chosen
        )
        epsilon = expected_epsilon(values, weights, **chosen)
        assert r.first_pass["epsilon"][True] == epsilon, chosen


# Ranges


def naive_reach(values, start, bound, origin, threshold, step):
    near = start
    for place in range(start + step, bound + step, step):
        if abs(values[place] - origin) > threshold:
            break
        near = place
    return near


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("step", [-1, 1])
def test_reach(seed, step):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(0, 40))
    values = np.sort(rng.integers(0, 20, size) / 8)[::-1]
    start, bound, origin = [], [], []
    for _ in range(30):
        # Above: from a place on to the first; below: from before a place to the last.
        place = int(rng.integers(0, size + 1))
        if step < 0:
            start.append(place)
            bound.append(int(rng.integers(0, place + 1)))
            nearest = values[place - 1] if place else 0.0
            origin.append(nearest - rng.integers(0, 4) / 8)
        else:
            start.append(place - 1)
            bound.append(int(rng.integers(place - 1, size)) if size else -1)
            nearest = values[place] if place < size else 0.0
            origin.append(nearest + rng.integers(0, 4) / 8)
    start, bound = np.array(start), np.array(bound)
    if step < 0:
        bound = np.where(start == 0, 0, bound)
    origin = np.array(origin)
    for threshold in (0.0, 0.125, 0.3, 1.0, 5.0, np.inf):
        actual = reach(values, start, bound, origin, threshold, step)
        expected = [
            naive_reach(values, *row, threshold, step)
            for row in zip(start.tolist(), bound.tolist(), origin.tolist(), strict=True)
        ]
        np.testing.assert_array_equal(actual, expected)
    thresholds = rng.integers(0, 12, 30) / 8
    actual = reach(values, start, bound, origin, thresholds, step)
    rows = zip(start, bound, origin, thresholds, strict=True)
    expected = [naive_reach(values, *row, step) for row in rows]
    np.testing.assert_array_equal(actual, expected)


def naive_partners(ranking, values, row, group, threshold, direction):
    """Return the rows that make a pair with a member of a group."""
    same = ranking.query == ranking.query[row]
    gap = ranking.score - ranking.score[row]
    near = same & ~in_group(values, group) & (np.abs(gap) <= threshold)
    return np.flatnonzero(near & (gap >= 0) if direction == "below" else near)


def in_group(values, group):
    return values[:, group] if values.ndim == 2 else values == group


@pytest.mark.parametrize("long", [1, 10**9], ids=["guessed", "searched"])
@pytest.mark.parametrize("seed", [0, 1, *rarely(2, 3, 4, 5)])
def test_windows(seed, long, monkeypatch):
    monkeypatch.setattr(_matching, "_LONG", long)
    rng = np.random.default_rng(seed)
    n, n_groups = 120, 3
    # Tenths: sums and differences of scores and thresholds round.
    s = rng.integers(0, 40, n) * 0.1 if seed % 2 else rng.normal(size=n)
    ranking = Ranking.from_scores(s, rng.integers(0, 3, n))
    for values in (rng.integers(0, n_groups, n), rng.random((n, n_groups)) < 0.4):
        members = Memberships.of(ranking, Groups(tuple(range(n_groups)), values))
        gaps = np.abs(rng.choice(s, 2) - rng.choice(s, 2))
        thresholds = [math.nan, 0.0, 0.1, 0.3, 100.0, *gaps, *np.nextafter(gaps, 0)]
        for direction, threshold in itertools.product(DIRECTIONS, thresholds):
            matching = Matching(ranking, members, direction)
            ranges = matching.windows(np.full(n_groups, threshold))
            for number, row in enumerate(members.rows):
                group = members.cells.group[members.cell[number]]
                expected = naive_partners(
                    ranking, values, row, group, threshold, direction
                )
                every = np.arange(ranges.low[number], ranges.high[number])
                own = members.rows[ranges.own_low[number] : ranges.own_high[number]]
                np.testing.assert_array_equal(np.setdiff1d(every, own), expected)
                assert ranges.count[number] == expected.size


@pytest.mark.parametrize("long", [1, 10**9], ids=["guessed", "searched"])
def test_windows_without_members_or_others(long, monkeypatch):
    monkeypatch.setattr(_matching, "_LONG", long)
    ranking = Ranking.from_scores(np.arange(6.0), np.array([0, 0, 0, 1, 1, 1]))
    nobody, everybody = np.zeros(6, dtype=bool), np.ones(6, dtype=bool)
    first = np.arange(6) < 3
    values = np.stack([nobody, everybody, first], axis=1)
    members = Memberships.of(ranking, Groups(tuple("abc"), values))
    for direction in DIRECTIONS:
        matching = Matching(ranking, members, direction)
        for threshold in (10.0, math.nan):
            ranges = matching.windows(np.full(3, threshold))
            assert ranges.count.size == values.sum()
            assert not ranges.count.any()
        assert np.isnan(matching.kth_smallest(3, None, PairWeight())).all()


@pytest.mark.parametrize("long", [1, 10**9], ids=["guessed", "searched"])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_an_infinite_epsilon_takes_all_pairs(direction, long, monkeypatch):
    monkeypatch.setattr(_matching, "_LONG", long)
    rng = np.random.default_rng(0)
    y, s, focal = rng.random(200), rng.normal(size=200), rng.random(200) < 0.5
    given = {"sensitive_features": focal, "direction": direction}
    r = matched_pair_calibration(y, s, epsilon=np.inf, **given)
    every = matched_pair_calibration(y, s, quantile=1.0, **given)
    np.testing.assert_array_equal(r.estimate, every.estimate)
    np.testing.assert_array_equal(r.support, every.support)


# The whole metric on long lists


@pytest.mark.parametrize("name", ["normal", "two decimals", "binary", "close"])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_estimate_and_item_variance_of_one_long_list(name, direction):
    rng = np.random.default_rng(4)
    n = 2500
    s, y, focal = SCORES[name](rng, n), rng.normal(size=n), rng.random(n) < 0.3
    epsilon = float(np.quantile(np.abs(rng.choice(s, 500) - rng.choice(s, 500)), 0.2))
    r = matched_pair_calibration(
        y, s, sensitive_features=focal, epsilon=epsilon, direction=direction
    )
    i, j = np.flatnonzero(focal), np.flatnonzero(~focal)
    near = difference(s, i, j, direction) <= epsilon
    d = y[i, None] - y[None, j]
    mean = d[near].mean()
    assert r.support[1] == np.count_nonzero(near)
    np.testing.assert_allclose(r.estimate[1], mean, rtol=1e-11, atol=1e-12)
    # Leave out every item, of the group and of the others.
    value, total = np.where(near, d, 0.0), near.sum()
    expected = 0.0
    for axis in (0, 1):
        left = total - near.sum(axis)
        change = (value.sum() - value.sum(axis)) / left - mean
        n = np.count_nonzero(near.any(axis))
        expected += (n - 1) / n * (change**2).sum()
    np.testing.assert_allclose(r.covariance[1, 1], expected, rtol=1e-8)
