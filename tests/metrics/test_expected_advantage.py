"""Metrics of distributions of rankings, and the paper's three theorems."""

import functools
import itertools

import numpy as np
import pytest

from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.metrics import expected_advantage, skew_at_k
from tests.calls import OF_LISTS

OPTIONS = {"step": 2, "k": 2}  # those of OF_LISTS
#: Those that are 0 at parity and turn there.
DISTANCES = [m.__name__ for m in OF_LISTS if m is not skew_at_k]


def matrix_of(orders):
    """Position probabilities of orders of items, the first item at the top."""
    n = len(orders[0])
    matrix = np.zeros((n, n))
    for order in orders:
        matrix[np.arange(n), order] += 1 / len(orders)
    return matrix


class TestAgainstTheMetrics:
    @pytest.mark.filterwarnings("ignore:skew_at_k is -inf")
    @pytest.mark.parametrize("n_rankings", [1, 20])
    @pytest.mark.parametrize("seed", range(5))
    def test_rankings_of_the_same_items(self, seed, n_rankings):
        rng = np.random.default_rng(seed)
        group = rng.choice(["a", "b", "c"], 14)
        orders = [rng.permutation(14) for _ in range(n_rankings)]
        table = expected_advantage(
            matrix_of(orders), sensitive_features=group, **OPTIONS
        )
        score = np.concatenate([-np.argsort(order) for order in orders])
        who = {
            "sensitive_features": np.tile(group, n_rankings),
            "qid": np.repeat(np.arange(n_rankings), 14),
            "average": "representation",
        }
        for metric, options in OF_LISTS.items():
            r = metric(None, score, **who, **options)
            np.testing.assert_allclose(table[metric.__name__], r.estimate, atol=1e-10)
            assert tuple(table.index) == r.groups

    def test_groups_that_overlap(self):
        rng = np.random.default_rng(0)
        member = rng.random((10, 3)) < 0.5
        matrix = matrix_of([rng.permutation(10) for _ in range(7)])
        table = expected_advantage(matrix, sensitive_features=member, **OPTIONS)
        for group in range(3):
            alone = expected_advantage(
                matrix, sensitive_features=member[:, group], **OPTIONS
            )
            np.testing.assert_allclose(table.loc[group], alone.loc[True])

    def test_sign_of_pairs(self):
        rng = np.random.default_rng(1)
        orders = [rng.permutation(8) for _ in range(5)]
        group = np.array(list("aababbab"))
        matrix = matrix_of(orders)
        table = expected_advantage(
            matrix, sensitive_features=group, pairs="sign", **OPTIONS
        )
        rank = np.mean([np.argsort(order) for order in orders], axis=0)
        won = [
            np.sign(rank[j] - rank[i])
            for i, j in itertools.product(range(8), repeat=2)
            if group[i] == "a" and group[j] == "b"
        ]
        expected = abs(np.mean(won))
        np.testing.assert_allclose(table["pairwise_parity"], expected, atol=1e-12)


def advantage_matrix(position_share, n_protected):
    """Position probabilities of items that are alike within their group."""
    n = position_share.size
    of_protected = position_share[:, None] / n_protected
    of_others = (1 - position_share[:, None]) / (n - n_protected)
    return np.hstack(
        [
            np.repeat(of_protected, n_protected, axis=1),
            np.repeat(of_others, n - n_protected, axis=1),
        ]
    )


def mixture(n, m, alpha):
    """Chance, mixed with the group all first or all last: both assumptions hold."""
    q, place = m / n, np.arange(n)
    if alpha >= q:
        weight, extreme = (alpha - q) / (1 - q), place < m
    else:
        weight, extreme = (q - alpha) / q, place >= n - m
    return (1 - weight) * q + weight * extreme


N = 40
GRID = np.linspace(0, 1, 41)


@functools.cache
def table_of(m):
    """Metrics of the protected group over the grid, one column per metric."""
    rows = []
    for alpha in GRID:
        matrix = advantage_matrix(mixture(N, m, alpha), m)
        group = {"sensitive_features": np.arange(N) < m}
        rows.append(expected_advantage(matrix, **group, step=5, k=8).loc[True])
    return {name: np.array([row[name] for row in rows]) for name in rows[0].index}


@pytest.mark.parametrize("m", [8, 20, 32], ids=["20%", "50%", "80%"])
class TestTheorems:
    def test_1_and_2_same_minimum_and_same_signs_of_slopes(self, m):
        fair, table = int(np.argmin(np.abs(GRID - m / N))), table_of(m)
        for name in DISTANCES:
            values = table[name]
            assert values[fair] == pytest.approx(0, abs=1e-9), name
            assert (np.delete(values, fair) > 1e-9).all(), name
            slopes = np.diff(values)
            if name == "normalized_discounted_ratio":
                # It explodes, and breaks off where nothing but the group is first.
                slopes = slopes[: int(np.argmax(values > 1e3)) or -1]
            assert (slopes[:fair] < 1e-12).all(), name
            assert (slopes[fair:] > -1e-12).all(), name

    def test_3_pairs_are_worst_at_total_advantage_alone(self, m):
        values = table_of(m)["pairwise_parity"]
        np.testing.assert_allclose(values[[0, -1]], 1, atol=1e-12)
        assert (values[1:-1] < 1).all()

    def test_skew_is_the_exception(self, m):
        table, fair = table_of(m), int(np.argmin(np.abs(GRID - m / N)))
        assert (np.diff(table["skew_at_k"][1:]) > -1e-12).all()
        assert (table["skew_at_k"][:fair] < 0).all()
        # Only pairs call a total disadvantage of a minority as bad as can be.
        if m < N / 2:
            for name in ("normalized_discounted_difference", "exposure_parity", "ndkl"):
                assert table[name][0] < 0.99 * table[name][-1], name


class TestInput:
    @pytest.mark.parametrize(
        ("matrix", "message"),
        [
            ([[1.0]] * 2, "square matrix"),
            (np.eye(2)[0], r"shape \(2,\)"),
            ("abc", "square matrix"),
            ([[1, "x"], [0, 1]], "cannot be read"),
            ([[2, -1], [-1, 2]], "numbers in"),
            ([[np.nan, 1], [0, 1]], "numbers in"),
            ([[0.5, 0.4], [0.5, 0.6]], "row [01] sums to"),
            ([[0.5, 0.5], [0.4, 0.6]], "column [01] sums to"),
        ],
    )
    def test_matrix(self, matrix, message):
        with pytest.raises(ValueError, match=message):
            expected_advantage(matrix, sensitive_features=["a", "b"])

    @pytest.mark.parametrize(
        ("option", "value", "message"),
        [
            ("step", 0, "must be"),
            ("k", 1.5, "must be"),
            ("position_weight", "log", "must be"),
            ("patience", 0.5, "must be"),
            ("zero_division", -1, "must be"),
            ("pairs", "all", "must be"),
            ("sensitive_features", list("aba"), "sensitive_features: 3"),
        ],
    )
    def test_options(self, option, value, message):
        given = {"sensitive_features": list("abab"), "step": 1, "k": 1, option: value}
        with pytest.raises(ValueError, match=message):
            expected_advantage(np.eye(4), **given)

    def test_undefined(self):
        options = {"step": 2, "k": 2}
        message = r"ndkl.*pairwise_parity for a\.$"
        with pytest.warns(UndefinedMetricWarning, match=message):
            table = expected_advantage(
                np.eye(4), sensitive_features=list("aaaa"), **options
            )
        assert table.isna().all(axis=None)
        message = "difference.*skew_at_k for a, b"
        with pytest.warns(UndefinedMetricWarning, match=message):
            table = expected_advantage(np.eye(4), sensitive_features=list("abab"))
        known = table[["ndkl", "exposure_parity", "pairwise_parity"]]
        assert known.notna().all(axis=None)
        options["sensitive_features"] = np.array([[1, 0, 0], [0, 1, 0]] * 2, dtype=bool)
        for pairs in ("share", "sign"):
            with pytest.warns(UndefinedMetricWarning, match=r"for 2\.$"):
                table = expected_advantage(np.eye(4), pairs=pairs, **options)
            assert table.loc[2].isna().all()
