"""outcome_inequality_test: moments by hand, its critical value, its size and power."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import norm, ttest_1samp
from scipy.stats import t as student

from benchmarks.simulations.common import tolerance
from skrankfair import inference
from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.inference import _outcome_inequality
from tests.metrics.common import columns
from tests.reference import outcome_inequality as reference

#: The same draws in every call, unless a test gives another seed.
outcome_inequality_test = partial(inference.outcome_inequality_test, random_state=0)

GIVEN = ("y_true", "y_score", "sensitive_features", "qid")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize("adjacent", [True, False])
@pytest.mark.parametrize("chunk", [1, 1 << 19])
def test_against_the_reference(adjacent, chunk, monkeypatch):
    monkeypatch.setattr(_outcome_inequality, "_CHUNK", chunk)
    rng = np.random.default_rng(0)
    for seed in range(18):
        n = int(rng.integers(10, 60))
        q = rng.integers(0, 8, n)
        s = rng.integers(0, 6, n) if seed % 2 else rng.random(n)
        y, g = rng.normal(size=n), rng.integers(0, 3, n)
        cluster = q // 2 if seed % 3 else q
        data = [column.tolist() for column in (y, s, g, q)]
        most, pairs = (None, 2, 4)[seed % 3], "adjacent" if adjacent else "all"
        expected = reference.moments(*data, cluster.tolist(), most, pairs)
        who = {"sensitive_features": g, "qid": q, "cluster": cluster}
        t = outcome_inequality_test(y, s, **who, k=most, adjacent=adjacent)
        names = [
            (j - 1, k - 1, *groups)
            for (j, k), groups in zip(t.positions.tolist(), t.groups, strict=True)
        ]
        columns_of_t = t.estimate, t.standard_error, t.support, t.violation
        found = dict(zip(names, zip(*columns_of_t, strict=True), strict=True))
        assert {name for name, (*_, n, _) in found.items() if n} == set(expected)
        tested = {}
        for name, (estimate, error, support, violation) in found.items():
            moment = expected.get(name, (0, 0, 0, {}))
            assert (estimate, support) == pytest.approx(moment[::2][:2], abs=1e-10)
            if not np.isnan(error):
                assert error == pytest.approx(moment[1], rel=1e-10)
            if np.isfinite(violation) and moment[1] > 1e-12:
                tested[name] = moment
        statistic = reference.max_statistic(tested)
        assert t.statistic == pytest.approx(statistic, rel=1e-9, nan_ok=True)
        if np.isfinite(statistic):
            assert t.violation[t.worst] == t.statistic


def test_groups_that_overlap_stand_against_their_rest():
    data = columns(n_queries=30, size=4)
    member = np.random.default_rng(0).random((len(data["qid"]), 3)) < 0.5
    t = outcome_inequality_test(**{**data, "sensitive_features": member})
    frame = t.to_frame()
    for g in range(3):
        alone = outcome_inequality_test(**{**data, "sensitive_features": member[:, g]})
        for sides, names in [
            ((True, False), (g, "rest")),
            ((False, True), ("rest", g)),
        ]:
            one, two = (
                table[(table.group_above == a) & (table.group_below == b)]
                for table, (a, b) in ((alone.to_frame(), sides), (frame, names))
            )
            for name in ("estimate", "standard_error", "support"):
                np.testing.assert_allclose(one[name], two[name], rtol=1e-10)


def test_weights_of_queries_are_those_of_their_mean():
    data = columns(n_queries=30, size=4)
    weight = 1 + data["qid"] % 3
    rows = np.repeat(np.arange(weight.size), weight)
    copy = np.concatenate([np.arange(w) for w in weight])
    copies = {name: column[rows] for name, column in data.items()}
    copies["qid"] = 10 * copies["qid"] + copy
    weighted = outcome_inequality_test(**data, sample_weight=weight)
    by_user = outcome_inequality_test(**copies, cluster=data["qid"][rows])
    for name in ("estimate", "standard_error", "violation"):
        one, two = getattr(weighted, name), getattr(by_user, name)
        np.testing.assert_allclose(one, two, rtol=1e-10)


def test_critical_value_is_that_of_the_reference():
    data = columns(n_queries=30, size=4, labels="abc")
    who = [data[name].tolist() for name in GIVEN]
    n_resamples = 3000
    for clusters in (data["qid"], data["qid"] // 2):  # more than moments, and fewer
        table = reference.moments(*who, clusters.tolist())
        table = {k: v for k, v in table.items() if sum(map(bool, v[3].values())) > 1}
        n = len(set(clusters.tolist()))
        normal = np.random.default_rng(0).standard_normal((n_resamples, n))
        maxima = reference.bootstrap_statistics(table, normal.tolist())
        # The deviates are normal, and the errors rest on so many clusters.
        maxima = student.ppf(norm.cdf(maxima), n - 1).tolist()
        t = outcome_inequality_test(**data, cluster=clusters)
        above = np.mean(np.array(maxima) > t.critical_value)
        share = reference.pvalue(t.statistic, maxima)
        for found, expected in ((above, 0.05), (t.pvalue, share)):
            # Both sides are drawn.
            error = tolerance(expected, n_resamples) + tolerance(expected, 10_000)
            assert abs(found - expected) < error


def test_statistic_is_that_of_a_one_sample_t_test():
    data = columns(n_queries=200, size=2, labels="ab")
    t = outcome_inequality_test(**data)
    order = np.argsort(-data["y_score"].reshape(-1, 2), axis=1)
    y, group = (
        np.take_along_axis(data[name].reshape(-1, 2), order, 1)
        for name in ("y_true", "sensitive_features")
    )
    for (a, b), violation in zip(t.groups, t.violation, strict=True):
        x = (y[:, 0] - y[:, 1]) * ((group[:, 0] == a) & (group[:, 1] == b))
        assert violation == pytest.approx(-ttest_1samp(x, 0).statistic, rel=1e-10)
    assert t.statistic == t.violation.max()
    assert t.n_clusters == 200


# Invariances


@pytest.mark.parametrize("adjacent", [True, False])
@pytest.mark.parametrize("ties", [False, True])
def test_a_shift_of_outcomes_changes_nothing(adjacent, ties):
    data = columns(3)
    if ties:
        data["y_score"] = np.round(data["y_score"])
    data["cluster"] = data["qid"] // 2
    first = outcome_inequality_test(**data, adjacent=adjacent)
    data["y_true"] = data["y_true"] + 1e6
    other = outcome_inequality_test(**data, adjacent=adjacent)
    for name in ("estimate", "standard_error", "violation", "support"):
        one, two = getattr(first, name), getattr(other, name)
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-12)
    assert other.statistic == pytest.approx(first.statistic, rel=1e-9)


# What cannot be tested


@pytest.mark.parametrize(
    "changes",
    [
        {"sensitive_features": ["a"] * 12},
        {"sensitive_features": None},
        {"qid": None},
        {"qid": np.arange(12)},
        {"cluster": [0] * 12},
    ],
)
def test_nothing_to_test_is_undefined(changes):
    data = {**columns(n_queries=4, size=3, labels="ab"), **changes}
    with pytest.warns(UndefinedMetricWarning, match="no two items of different groups"):
        t = outcome_inequality_test(**data)
    assert np.isnan([t.statistic, t.pvalue, t.critical_value]).all()
    assert t.worst is None
    assert "statistic –" in repr(t)
    assert len(t.to_frame()) == len(t.groups)


def test_moments_with_one_cluster_are_left_out():
    y, s = [0, 1] * 3, [1, 0] * 3
    group = ["a", "b", "a", "b", "b", "a"]
    who = {"sensitive_features": group, "qid": [0, 0, 1, 1, 2, 2]}
    t = outcome_inequality_test(y, s, **who)
    assert t.groups == (("a", "b"), ("b", "a"))
    np.testing.assert_array_equal(np.isnan(t.violation), [False, True])
    np.testing.assert_array_equal(t.support, [2, 1])


def test_without_error_the_estimate_decides():
    # Every query is the same: b stands below a and is always better.
    n = 20
    who = {"sensitive_features": ["a", "b"] * n, "qid": np.repeat(np.arange(n), 2)}
    t = outcome_inequality_test([0.1, 0.2] * n, [1, 0] * n, **who)
    assert t.statistic == np.inf
    assert t.pvalue == pytest.approx(1 / 10_001)
    fair = outcome_inequality_test([0.2, 0.1] * n, [1, 0] * n, **who)
    assert fair.statistic == -np.inf
    assert fair.pvalue == 1
    even = outcome_inequality_test([0.1, 0.1] * n, [1, 0] * n, **who)
    assert (even.statistic, even.pvalue) == (0, 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"adjacent": "all"}, "adjacent must be one of True, False"),
        ({"k": 1}, r"k must be an integer in \[2, inf\]"),
        ({"confidence_level": 1}, "confidence_level must be a number"),
        ({"n_resamples": 0}, "n_resamples must be an integer"),
        ({"random_state": -1}, "random_state must be"),
        ({"y_true": [np.nan] * 360}, "y_true must be finite"),
        ({"y_true": None}, "y_true must be given"),
        ({"y_true": [1e308] * 360}, "y_true must be between -1e"),
        ({"cluster": np.arange(360)}, "cluster must be constant within a query"),
        ({"qid": [0, 1]}, "All columns must have the same number of rows"),
    ],
)
def test_bad_input_raises(changes, message):
    with pytest.raises(ValueError, match=message):
        outcome_inequality_test(**{**columns(), **changes})


# The result


def test_result():
    t = outcome_inequality_test(**columns(n_queries=300, labels="ab"), k=3)
    frame = t.to_frame()
    assert frame.shape == (4, 8)
    np.testing.assert_array_equal(frame["position_above"], [1, 1, 2, 2])
    np.testing.assert_array_equal(frame["position_below"], [2, 2, 3, 3])
    assert frame["group_above"].tolist() == ["a", "b", "a", "b"]
    assert frame["group_below"].tolist() == ["b", "a", "b", "a"]
    first, second, last = repr(t).split("\n")
    assert first.startswith(f"outcome_inequality_test: statistic {t.statistic:.2f}, ")
    assert second.startswith("most violated: ")
    assert last == "4 moments, 300 clusters"
