"""One table of all metrics with all their options, and small data for all tests."""

import itertools
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skrankfair import metrics
from skrankfair._estimates.finalize import ColumnSum, MeanOfRatios
from skrankfair._estimates.metric import Metric
from skrankfair._estimates.rows import Rows as Table
from skrankfair._estimates.sums import ClusterSums
from skrankfair.metrics import GroupEstimates

RATES = (
    metrics.selection_rate,
    metrics.true_positive_rate,
    metrics.false_positive_rate,
    metrics.true_negative_rate,
    metrics.false_negative_rate,
    metrics.precision,
    metrics.accuracy,
    metrics.balanced_accuracy,
    metrics.f1,
)
LOSSES = (
    metrics.brier_score,
    metrics.calibration_in_the_large,
    metrics.log_loss,
    metrics.mean_absolute_error,
    metrics.mean_squared_error,
)
TOP_K = (metrics.precision_at_k, metrics.recall_at_k, metrics.share_at_k)
#: Of the labels of both kinds of data below.
TARGET = {"a": 0.2, "b": 0.2, "c": 0.1, 0: 0.2, 1: 0.2, 2: 0.1}
EDGES = (-np.inf, 0.25, 0.5, np.inf)
COUNTING = (  # the average and the variance that go together
    {"average": "pairs", "variance": "cluster"},
    {"average": "queries", "variance": "cluster"},
    {"average": "pairs", "variance": "item"},
)


@dataclass(frozen=True)
class Columns:
    """Columns of one data set, numpy arrays."""

    y: Any
    s: Any
    q: Any
    group: Any
    z: Any
    place: Any  # a rank of its own
    w: Any = None
    cluster: Any = None

    def take(self, rows):
        """Return some rows."""
        known = {name: c[rows] for name, c in vars(self).items() if c is not None}
        return Columns(**known)

    def but(self, **columns):
        """Return the same with other columns."""
        return replace(self, **columns)

    @property
    def rest(self):
        """The columns that every metric takes by the same name."""
        return {"qid": self.q, "cluster": self.cluster, "sample_weight": self.w}


@dataclass(frozen=True)
class Case:
    """A metric with its options.

    `first_pass` are options that stand for numbers chosen from the data; `held` is the
    name of these in a result, where the option itself is no number.
    """

    metric: Callable
    options: dict
    first_pass: dict
    held: str | None = None

    def __call__(self, c, **changed):
        """Return the result for the columns."""
        return self.measure(self.taken(c), **changed)

    def taken(self, c):
        """Return the columns as the metric takes them."""
        if self.of_decisions and c.y is not None:
            c = c.but(y=c.y > 1.5)
        return c.but(s=c.s / 2) if self.by_row else c

    def measure(self, c, **changed):
        """Return the result for columns that are as the metric takes them."""
        options = {**self.options, **self.first_pass, **changed}
        if "bins" in options:
            options["engagement"] = c.z
        for name in ("covariates", "position"):
            if name in options:
                options[name] = getattr(c, options[name])
        if self.metric is not metrics.ndcg:
            options["sensitive_features"] = c.group
        if self.by_row:
            rest = {"cluster": c.cluster, "sample_weight": c.w}
            return self.metric(c.y, c.s, **rest, **options)
        return self.metric(c.y, c.s, **c.rest, **options)

    def hold(self, result):
        """Return the case with the first pass of a result."""
        if self.held is None:
            return self
        option = "bins" if "bins" in self.first_pass else self.held
        numbers = {option: result.first_pass[self.held]}
        return replace(self, first_pass=numbers, held=None)

    @property
    def of_decisions(self):
        """Whether the outcome must be 0 or 1."""
        return self.by_row or self.metric in (
            metrics.auc,
            metrics.mean_position,
            *TOP_K,
        )

    @property
    def by_row(self):
        """Whether rows count one by one, with 0 or 1 for the outcome."""
        return self.metric in (*RATES, *LOSSES)

    @property
    def by_item(self):
        """Whether the standard errors are those of items."""
        return self.options.get("variance") == "item"


def _cases():
    for comparison, counting in itertools.product(("all", "intra", "inter"), COUNTING):
        options = {"comparison": comparison, **counting}
        yield Case(metrics.pairwise_accuracy, options, {})
        if comparison != "intra":
            yield Case(metrics.pairwise_accuracy, options, {"bins": EDGES})
    yield Case(
        metrics.pairwise_accuracy, dict(COUNTING[0]), {"bins": 3}, "engagement_edges"
    )
    for metric, counting in itertools.product(
        (metrics.pairwise_exposure, metrics.pairwise_preference), COUNTING
    ):
        yield Case(metric, dict(counting), {})
        yield Case(metric, dict(counting), {"bins": EDGES})
    for direction, counting in itertools.product(("below", "both"), COUNTING):
        options = {"direction": direction, **counting}
        yield Case(metrics.matched_pair_calibration, options, {"epsilon": 0.25})
        for chosen in ({"n_pairs": 20}, {"quantile": 0.3}):
            yield Case(metrics.matched_pair_calibration, options, chosen, "epsilon")
    for options in (
        {"estimator": "local_linear"},
        {"estimator": "local_linear", "direction": "both"},
        {"position_weight": "dcg", "direction": "both"},
    ):
        for counting in COUNTING[: 2 if "position_weight" in options else 3]:
            options = {**options, **counting}
            yield Case(metrics.matched_pair_calibration, options, {"epsilon": 0.25})
    for k, gain in itertools.product((None, 3), ("linear", "exponential")):
        yield Case(metrics.ndcg, {"k": k, "gain": gain}, {})
    yield from _parts_of_lists()
    yield from _of_binary_outcomes()


def _of_binary_outcomes():
    """Cases of metrics of outcomes of 0 and 1."""
    for metric in RATES:
        yield Case(metric, {"threshold": 0.375}, {})
    for metric in LOSSES:
        yield Case(metric, {}, {})
    for counting in COUNTING:
        yield Case(metrics.auc, dict(counting), {})
    for comparison in ("all", "intra", "inter"):
        options = {"comparison": comparison}
        yield Case(metrics.mean_position, options, {})
        yield Case(metrics.mean_position, options, {"bins": EDGES})
    for metric, average in itertools.product(TOP_K, ("items", "queries")):
        yield Case(metric, {"k": 3, "average": average}, {})


def _parts_of_lists():
    """Cases of metrics that do not sum over pairs."""
    for average, tie_cost in itertools.product(("pairs", "queries"), (0.0, 0.5)):
        options = {"position_weight": "dcg", "tie_cost": tie_cost, "average": average}
        yield Case(metrics.dips, options, {})
    for average in ("queries", "amortized"):
        yield Case(
            metrics.exposure, {"position_weight": "reciprocal", "average": average}, {}
        )
        for target in ("expected", "relevance", "population"):
            yield Case(metrics.exposure_gap, {"target": target, "average": average}, {})
    yield Case(metrics.normalized_discounted_difference, {"step": 3}, {})
    yield Case(metrics.normalized_discounted_ratio, {"step": 1}, {})
    yield Case(metrics.normalized_discounted_kl, {"step": 2}, {})
    yield Case(metrics.skew_at_k, {"k": 5}, {})
    yield Case(metrics.ndkl, {}, {})
    for metric, signed in itertools.product(
        (metrics.exposure_parity, metrics.pairwise_parity), (False, True)
    ):
        yield Case(metric, {"signed": signed}, {})


def _name(case):
    options = {**case.options, **case.first_pass}
    if "bins" in options:
        options["bins"] = "edges" if options["bins"] is EDGES else options["bins"]
    if "target" in options and options["target"] is TARGET:
        options["target"] = "target"
    listed = [f"{value}" for value in options.values()]
    return "-".join([case.metric.__name__, *listed])


def _later():
    """Cases of options without frozen numbers."""
    yield Case(metrics.skew_at_k, {"step": 4}, {})
    yield Case(metrics.dips, {"comparison": "all", "tie_cost": 0.5}, {})
    yield Case(metrics.dips, {"divisor": "pairs", "position_weight": "dcg"}, {})
    yield Case(metrics.ndkl, {"target": TARGET}, {})
    yield Case(metrics.exposure_parity, {"signed": True, "divisor": "maximum"}, {})
    for normalize in (False, True):
        yield Case(metrics.boost_value, {"boost": 0.25, "normalize": normalize}, {})
    for options in (
        {"covariates": "z"},
        {"covariates": "z", "estimator": "local_linear"},
        {"estimator": "local_quadratic", "direction": "both"},
        {"adjacent": True},
        {"position": "place", "adjacent": True},
        {"position": "place", "position_weight": "dcg", "direction": "both"},
        {"position": "place", "adjacent": True, "estimator": "local_linear"},
    ):
        epsilon = {"epsilon": 1.0 if "adjacent" in options else 0.25}
        options |= {"variance": "cluster"}
        yield Case(metrics.matched_pair_calibration, options, epsilon)
    shown = {"position": "place", "position_weight": "reciprocal"}
    yield Case(metrics.dips, shown, {})
    relevance = {"target": "relevance", "average": "amortized"}
    yield Case(metrics.exposure_gap, {**shown, **relevance}, {})


CASES = {_name(case): case for case in _cases()}
#: Cases that are younger than the frozen numbers of tests/golden.
UNFROZEN = {
    name
    for name, case in CASES.items()
    if case.metric is metrics.mean_position
    or (
        case.metric in (metrics.pairwise_exposure, metrics.pairwise_preference)
        and case.first_pass
    )
}
#: The same and more, of which no number is frozen.
EVERY_CASE = CASES | {_name(case): case for case in _later()}
#: Metrics that differ only in their columns from others, of which one runs always.
RARE = {*RATES, *LOSSES, metrics.auc, metrics.recall_at_k} - {
    *(metrics.precision, metrics.balanced_accuracy, metrics.f1, metrics.brier_score)
}


def labelled(seed=0, n=90):
    """Return rows of ragged queries with ties; three groups, weights left out.

    Scores, outcomes and engagement are binary fractions. Group "c" is in no query
    below 3, and query 20 has one item.
    """
    rng = np.random.default_rng(seed)
    q = rng.integers(0, 9, n)
    q[-1] = 20
    group = np.where(q < 3, rng.choice(["a", "b"], n), rng.choice(["a", "b", "c"], n))
    return Columns(
        y=rng.integers(0, 8, n) / 2,
        s=rng.integers(0, 48, n) / 32,
        q=q,
        group=group,
        z=rng.integers(0, 32, n) / 32,
        place=1 + rng.permutation(n),
    )


def overlapping(seed=0, n=90):
    """Return the same with a membership matrix of groups that overlap."""
    rng = np.random.default_rng(seed + 1)
    c = labelled(seed, n)
    member = rng.random((n, 3)) < (0.4, 0.6, 0.3)
    member[c.q < 3, 2] = False
    return c.but(group=member)


DATA = {"labelled": labelled, "overlapping": overlapping}


def with_weights(c, seed=0, low=0):
    """Return the columns with integer weights of the queries."""
    rng = np.random.default_rng(seed)
    weight = rng.integers(low, 4, 21).astype(float)
    weight[:3] = 2, 1, 3
    return c.but(w=weight[c.q])


def with_clusters(c):
    """Return the columns with clusters of several queries."""
    return c.but(cluster=np.array(["u", "v", "w", "x"])[c.q % 4])


def columns(seed=0, n_queries=60, size=6, labels="abc"):
    """Draw small queries as arguments of a metric; better scores are better items."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(n_queries), size)
    score = rng.normal(size=query.size)
    y = score + rng.normal(size=query.size) > 0.5
    return {
        "y_true": y.astype(int),
        "y_score": score,
        "sensitive_features": rng.choice(list(labels), query.size),
        "qid": query,
    }


def with_peak(make):
    """Return what a function makes, and the most memory that it has taken."""
    tracemalloc.start()
    try:
        return make(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def without_groups(data):
    """Return the arguments of a metric of the whole ranking."""
    return {k: v for k, v in data.items() if k != "sensitive_features"}


def result_of(values, fair_value=0.0) -> GroupEstimates:
    """Return the means of the columns, one row per cluster: the simplest metric."""
    values = np.asarray(values, dtype=float)
    n, n_groups = values.shape
    rows = np.stack([values, np.ones_like(values)], axis=2)
    table = Table.of_all(rows, np.zeros((n, 0)), np.arange(n))
    support = ColumnSum(1, 2)
    groups = tuple("abcdefgh"[:n_groups]) if n_groups <= 8 else tuple(range(n_groups))
    return GroupEstimates(
        Metric("mean", MeanOfRatios(), support, fair_value=fair_value),
        ClusterSums.from_rows(groups, table, [support]),
    )


def assert_same(actual, expected, tolerance=1e-12, order=None):
    """Compare two results; `order` are the groups of the first in that of the other."""
    index = np.arange(len(expected.groups)) if order is None else np.array(order)
    # The covariance is of sums of differences of sums.
    for name, rtol, atol in (
        ("estimate", tolerance, tolerance),
        ("support", tolerance, tolerance),
        ("covariance", 100 * tolerance, 100 * tolerance),
        ("df", 1e-8, 0.0),
        ("n_effective", 1e-8, 0.0),
    ):
        values = getattr(actual, name)
        values = values[np.ix_(*[index] * values.ndim)]
        np.testing.assert_allclose(values, getattr(expected, name), rtol, atol)
    assert actual.n_clusters == expected.n_clusters
    assert actual.variance == expected.variance
    if order is None:
        assert actual.groups == expected.groups
        assert actual.first_pass == expected.first_pass


def assert_identical(actual, expected):
    """Require the same estimates to the last bit, and the same errors."""
    assert actual.groups == expected.groups
    for name in ("estimate", "support"):
        np.testing.assert_array_equal(getattr(actual, name), getattr(expected, name))
    np.testing.assert_allclose(actual.covariance, expected.covariance, 1e-13, 1e-18)
    assert actual.n_clusters == expected.n_clusters
    assert actual.first_pass == expected.first_pass
