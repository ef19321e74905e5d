"""Small random ranking problems, as lists for the naive references."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

#: Groups of a random problem may have no pairs, or one cluster.
undefined_is_fine = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.UndefinedMetricWarning"
)


@dataclass(frozen=True)
class Problem:
    """Columns of one data set; `sensitive_features` and `member` say the same."""

    y: list[float]
    s: list[float]
    q: list[Hashable]
    cluster: list[Hashable]  # coarser than q
    sensitive_features: Any
    member: dict[Hashable, list[bool]]
    w: list[float] | None
    z: list[float]  # engagement

    @property
    def who(self):
        """The columns that every metric by group takes."""
        return {"sensitive_features": self.sensitive_features, **self.queries}

    @property
    def queries(self):
        """The columns that every metric takes."""
        return {"qid": self.q, "sample_weight": self.w}

    @property
    def weights(self):
        """The weight of each row."""
        return [1.0] * len(self.q) if self.w is None else self.w

    @property
    def query_weight(self):
        """{query: weight}."""
        return dict(zip(self.q, self.weights, strict=True))

    @property
    def groups(self):
        """Labels in the order of a result."""
        return tuple(self.member)

    def seen(self):
        """Return the problem without its rows of weight 0."""
        if self.w is None or all(self.w):
            return self
        return self.take([row for row, weight in enumerate(self.w) if weight])

    def take(self, rows):
        """Return some rows, without groups that have none of them."""
        member = {g: [m[row] for row in rows] for g, m in self.member.items()}
        matrix = self.sensitive_features
        if isinstance(matrix, np.ndarray):
            matrix = matrix[rows]
        else:
            matrix, member = None, {g: m for g, m in member.items() if any(m)}
        y, s, q, cluster, z, w = (
            [column[row] for row in rows]
            for column in (self.y, self.s, self.q, self.cluster, self.z, self.weights)
        )
        return Problem(y, s, q, cluster, matrix, member, w, z)


def _outcomes(rng, n):
    kind = rng.integers(4)
    if kind == 0:
        return rng.integers(0, 2, n)
    if kind == 1:
        return rng.integers(0, 5, n)
    return rng.normal(size=n) if kind == 2 else rng.normal(size=n).round(1)


def _scores(rng, n):
    kind = rng.integers(4)
    if kind == 0:
        return rng.integers(0, 3, n) / 8
    if kind == 1:
        return rng.random(n).round(1)
    return rng.random(n) if kind == 2 else -np.exp(-4 * rng.random(n))


def _queries(rng, n):
    """Query of each row, ragged, and whether each is int or text."""
    codes = rng.choice(int(rng.integers(1, 8)), n, p=None)
    if rng.random() < 0.3:
        codes[-1] = 99  # a query of one item
    if rng.random() < 0.5:
        return [f"q{code}" for code in codes], codes
    return (codes * 7 - 10).tolist(), codes


def _groups(rng, n):
    """Labels, or a membership matrix with overlaps and perhaps an empty group."""
    n_groups = int(rng.integers(2, 6))
    if rng.random() < 0.5:
        member = rng.random((n, n_groups)) < rng.random(n_groups)
        if rng.random() < 0.3:
            member[:, 0] = False
        if rng.random() < 0.2:
            member[:, -1] = True
        return member, {g: member[:, g].tolist() for g in range(n_groups)}
    codes = rng.integers(0, n_groups, n)
    labels = [f"group {g}" for g in codes] if rng.random() < 0.5 else codes.tolist()
    return labels, {g: [label == g for label in labels] for g in sorted(set(labels))}


def _weights(rng, codes):
    """Weights of the rows, constant within a query: none, counts, or fractions."""
    kind = rng.random()
    if kind < 0.5:
        return None
    unique, row = np.unique(codes, return_inverse=True)
    if kind < 0.9:
        weights = rng.integers(0, 4, unique.size).astype(float)
    else:
        weights = rng.integers(1, 12, unique.size) / 4
    if not weights.any():
        weights[0] = 1.0
    return weights[row].tolist()


def make_problem(seed, n_rows=(3, 24)):
    """Return a random problem; the same seed gives the same."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(*n_rows))
    q, codes = _queries(rng, n)
    sensitive_features, member = _groups(rng, n)
    return Problem(
        y=_outcomes(rng, n).tolist(),
        s=_scores(rng, n).tolist(),
        q=q,
        cluster=[f"c{code % 3}" for code in codes],
        sensitive_features=sensitive_features,
        member=member,
        w=_weights(rng, codes),
        z=rng.random(n).round(1).tolist(),
    )
