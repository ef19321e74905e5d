"""Small data and results that many tests share."""

import numpy as np

from benchmarks.simulations.common import Model, Rows, coverage, slices, tolerance
from skrankfair._estimates.finalize import ColumnSum, MeanOfRatios
from skrankfair._estimates.metric import Metric
from skrankfair._estimates.rows import Rows as Table
from skrankfair._estimates.sums import ClusterSums
from skrankfair.metrics import GroupEstimates

__all__ = [
    "Model",
    "Rows",
    "columns",
    "coverage",
    "result_of",
    "slices",
    "tolerance",
    "without_groups",
]


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


def without_groups(data):
    """Return the arguments of a metric of the whole ranking."""
    return {k: v for k, v in data.items() if k != "sensitive_features"}


def result_of(values) -> GroupEstimates:
    """Return the means of the columns, one row per cluster: the simplest metric."""
    values = np.asarray(values, dtype=float)
    n, n_groups = values.shape
    rows = np.stack([values, np.ones_like(values)], axis=2)
    table = Table.of_all(rows, np.zeros((n, 0)), np.arange(n))
    support = ColumnSum(1, 2)
    groups = tuple("abcdefgh"[:n_groups]) if n_groups <= 8 else tuple(range(n_groups))
    return GroupEstimates(
        Metric("mean", MeanOfRatios(), support, fair_value=0.0),
        ClusterSums.from_clusters(groups, table, [support]),
    )
