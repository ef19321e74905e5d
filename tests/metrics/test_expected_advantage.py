"""Metrics of distributions of rankings, and the paper's three theorems."""

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
    @pytest.mark.filterwarnings("ignore:skew_at_k is infinite")
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
        who = {"sensitive_features": group, "pairs": "sign"}
        table = expected_advantage(matrix_of(orders), **who, **OPTIONS)
        rank = np.mean([np.argsort(order) for order in orders], axis=0)
        expected = abs(np.mean(np.sign(rank[group == "b"] - rank[group == "a", None])))
        np.testing.assert_allclose(table["pairwise_parity"], expected, atol=1e-12)


@pytest.mark.parametrize("m", [8, 20, 32], ids=["20%", "50%", "80%"])
def test_theorems(m):
    """Chance, mixed with the group all first or all last: both assumptions hold."""
    n, q = 40, m / 40
    place, member, rows = np.arange(n), np.arange(n) < m, []
    for alpha in np.linspace(0, 1, n + 1):
        weight, extreme = (alpha - q) / (1 - q), place < m
        if alpha < q:
            weight, extreme = (q - alpha) / q, place >= n - m
        share = ((1 - weight) * q + weight * extreme)[:, None]
        matrix = np.where(member, share / m, (1 - share) / (n - m))
        found = expected_advantage(matrix, sensitive_features=member, step=5, k=8)
        rows.append(found.loc[True])
    table = {name: np.array([row[name] for row in rows]) for name in rows[0].index}
    for name in DISTANCES:
        values = table[name]
        # 1: all are 0 at the share of the group, and 2: grow from there.
        assert values[m] == pytest.approx(0, abs=1e-9), name
        assert (np.delete(values, m) > 1e-9).all(), name
        slopes = np.diff(values)
        if name == "normalized_discounted_ratio":
            # It explodes, and breaks off where nothing but the group is first.
            slopes = slopes[: int(np.argmax(values > 1e3)) or -1]
        assert (slopes[:m] < 1e-12).all(), name
        assert (slopes[m:] > -1e-12).all(), name
    # 3: pairs are worst at total advantage alone.
    np.testing.assert_allclose(table["pairwise_parity"][[0, -1]], 1, atol=1e-12)
    assert (table["pairwise_parity"][1:-1] < 1).all()
    # Skew is the exception: it grows all the way.
    assert (np.diff(table["skew_at_k"][1:]) > -1e-12).all()


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
