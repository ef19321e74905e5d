"""Data whose true metrics are known in closed form, and their replications.

Item i of a user has ``y = x + e`` and ``s = x + f``, all normal; items of group "a"
have ``outcome_shift + B`` and ``score_shift + C`` on top, where B and C are normal and
the same in all queries of the user. So differences between an item of "a" and one of
"b" are bivariate normal, and pairs of one user depend within and across queries.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.stats import multivariate_normal, norm

from skrankfair._estimates.finalize import ColumnSum, MeanOfRatios
from skrankfair._estimates.metric import Metric
from skrankfair._estimates.rows import Rows as Table
from skrankfair._estimates.sums import ClusterSums
from skrankfair.metrics import GroupEstimates

GROUPS = np.array(["a", "b"])


class Rows(NamedTuple):
    """Columns of one data set."""

    y: np.ndarray
    s: np.ndarray
    group: np.ndarray
    query: np.ndarray
    user: np.ndarray

    def take(self, rows):
        return Rows(*(column[rows] for column in self))


@dataclass(frozen=True)
class Model:
    """The distribution; scales are standard deviations."""

    outcome_shift: float = 0.0
    score_shift: float = 0.0
    user_outcome: float = 0.0  # of B
    user_score: float = 0.0  # of C
    user_correlation: float = 0.0  # of B and C
    outcome_noise: float = 1.0  # of e
    score_noise: float = 1.0  # of f

    def rows(self, rng, sizes, user) -> Rows:
        """Draw queries of these sizes, each of the user given."""
        query = np.repeat(np.arange(len(sizes)), sizes)
        n, n_users = query.size, user.max() + 1
        x, e, f = rng.normal(size=(3, n))
        in_a = rng.random(n) < 0.5
        b, c = rng.normal(size=(2, n_users))
        rho = self.user_correlation
        c = rho * b + np.sqrt(1 - rho**2) * c
        row_user = user[query]
        y = x + self.outcome_noise * e
        y += in_a * (self.outcome_shift + self.user_outcome * b)[row_user]
        s = x + self.score_noise * f
        s += in_a * (self.score_shift + self.user_score * c)[row_user]
        return Rows(y, s, GROUPS[1 - in_a], query, row_user)

    @property
    def pair(self):
        """Mean and covariance of (y_i - y_j, s_i - s_j), i in "a" and j in "b"."""
        mean = np.array([self.outcome_shift, self.score_shift])
        b, c = self.user_outcome, self.user_score
        items = np.array([[1 + self.outcome_noise**2, 1], [1, 1 + self.score_noise**2]])
        shared = self.user_correlation * b * c
        return mean, 2 * items + np.array([[b**2, shared], [shared, c**2]])

    def inter_accuracy(self):
        mean, covariance = self.pair
        values = []
        for sign in (1, -1):
            won = multivariate_normal(-sign * mean, covariance).cdf([0, 0])
            better = norm.cdf(sign * mean[0] / np.sqrt(covariance[0, 0]))
            values.append(won / better)
        return np.array(values)

    def exposure(self):
        mean, covariance = self.pair
        above = norm.cdf(mean[1] / np.sqrt(covariance[1, 1]))
        return np.array([above, 1 - above])

    def matched_pairs(self, epsilon):
        """E[y_i - y_j | 0 <= s_j - s_i <= epsilon] for i in "a", then for i in "b"."""
        mean, covariance = self.pair
        slope = covariance[0, 1] / covariance[1, 1]
        scale = np.sqrt(covariance[1, 1])
        values = []
        for sign in (1, -1):
            low, high = ((edge - sign * mean[1]) / scale for edge in (-epsilon, 0))
            within = norm.cdf(high) - norm.cdf(low)
            truncated = -(norm.pdf(high) - norm.pdf(low)) / within * scale
            values.append(sign * mean[0] + slope * truncated)
        return np.array(values)


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


def slices(result: GroupEstimates, starts) -> Iterator[GroupEstimates]:
    """Yield the results on blocks of the clusters of a large one."""
    table = result.sums.table
    for low, high in pairwise(starts):
        part = Table.of_all(
            table.by_group[low:high],
            table.shared[low:high],
            table.labels[low:high],
        )
        sums = ClusterSums.from_clusters(result.groups, part, [result.metric.support])
        yield GroupEstimates(result.metric, sums, result.parameters, result.first_pass)


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


def coverage(intervals, truth):
    """Share of the intervals (low, high) that contain the truth."""
    low, high = np.moveaxis(np.array(intervals, dtype=float), 1, 0)
    return np.mean((low <= truth) & (truth <= high), axis=0)


def tolerance(probability, n_replications):
    """Four binomial standard errors of an observed frequency."""
    return 4 * np.sqrt(probability * (1 - probability) / n_replications)
