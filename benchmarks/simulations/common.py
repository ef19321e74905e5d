"""What simulations share: data of known truth, and how often something held.

Item i of a user has ``y = x + e`` and ``s = x + f``, all normal; items of group "a"
have ``outcome_shift + B`` and ``score_shift + C`` on top, where B and C are normal and
the same in all queries of the user. So differences between an item of "a" and one of
"b" are bivariate normal, and pairs of one user depend within and across queries.

Every tolerance is four standard errors of a share among the replications: one study in
15,000 fails by chance.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import multivariate_normal, norm

from skrankfair._estimates.rows import Rows as Table
from skrankfair._estimates.sums import ClusterSums
from skrankfair.exceptions import SmallSampleWarning, UndefinedMetricWarning
from skrankfair.metrics import GroupEstimates
from tests.designs import Sellers

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


class quiet(warnings.catch_warnings):  # noqa: N801
    """Ignore the package's own warnings: what they say is counted."""

    def __enter__(self):
        entered = super().__enter__()
        for category in (SmallSampleWarning, UndefinedMetricWarning, UserWarning):
            warnings.simplefilter("ignore", category)
        return entered


def slices(result: GroupEstimates, starts) -> Iterator[GroupEstimates]:
    """Yield the results on blocks of the clusters of a large one."""
    table = result.sums.rows
    by_group = table.by_group
    for low, high in pairwise(starts):
        part = Table.of_all(
            by_group[low:high],
            table.shared[low:high],
            table.labels[low:high],
        )
        sums = ClusterSums.from_rows(result.groups, part, result.sums.supports)
        yield GroupEstimates(result.metric, sums, result.parameters, result.first_pass)


def tolerance(probability, n_replications):
    """Return four binomial standard errors of an observed frequency."""
    return 4 * np.sqrt(probability * (1 - probability) / n_replications)


def coverage(intervals, truth):
    """Return the share of the intervals (low, high) that contain the truth."""
    low, high = np.moveaxis(np.array(intervals, dtype=float), 1, 0)
    return np.mean((low <= truth) & (truth <= high), axis=0)


def rejection_rate(pvalues, level=0.05):
    """Return the share of the tests that reject; NaN is no verdict."""
    return np.mean(np.array(pvalues, dtype=float) < level, axis=0)


def assert_covers(intervals, truth, nominal=0.95, *, at_least=False):
    """Assert that intervals contain the truth as often as they say, or more often."""
    difference = coverage(intervals, truth) - nominal
    margin = tolerance(nominal, len(intervals))
    assert np.all(difference > -margin), difference
    assert at_least or np.all(difference < margin), difference


def assert_level(pvalues, level=0.05, *, at_most=False):
    """Assert that tests of a true null reject as often as they say, or less often."""
    difference = rejection_rate(pvalues, level) - level
    margin = tolerance(level, len(pvalues))
    assert np.all(difference < margin), difference
    assert at_most or np.all(difference > -margin), difference


@dataclass(frozen=True)
class RareEvents:
    """Scores that are the risks of a rare outcome, of a small group and of the rest."""

    title: str
    n_rows: int
    share: float
    betas: tuple[tuple[int, int], tuple[int, int]]  # of the rest, of the group

    def draw(self, seed: int) -> dict[str, Any]:
        """Draw the columns of an audit."""
        rng = np.random.default_rng([self.n_rows, seed])
        group = (rng.random(self.n_rows) < self.share).astype(int)
        risk = rng.beta(*np.array(self.betas).T[:, group])
        return {
            "y_true": (rng.random(self.n_rows) < risk).astype(int),
            "y_score": risk,
            "sensitive_features": group,
            "favorable": "low",
            "task": "risk",
        }


#: Audits of pure noise.
AUDITS: dict[str, Any] = {
    "audit2": Sellers("2 groups", 2, 100),
    "audit5": Sellers("5 groups", 5, 200),
    "audit19": Sellers("19 groups", 19, 400),
    "audit300": Sellers("300 sellers", 300, 150, 20),
    "events5": RareEvents("5 events in a group", 2000, 0.05, ((1, 18), (1, 18))),
}
