"""Where groups and columns are in wider sums, which have zeros elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._inputs.validation import Array


@dataclass(frozen=True)
class ColumnPlaces:
    """The places of groups, columns and supports, and how many there are in all."""

    groups: Array
    n_groups: int
    columns: Array  # of each group
    n_columns: int
    shared: Array
    n_shared: int
    supports: Array
    n_supports: int

    @classmethod
    def as_they_are(
        cls, n_groups: int, n_columns: int, n_shared: int, n_supports: int
    ) -> ColumnPlaces:
        """Return the places of sums of this size in themselves."""
        sizes = (n_groups, n_columns, n_shared, n_supports)
        g, c, d, s = map(np.arange, sizes)
        return cls(g, n_groups, c, n_columns, d, n_shared, s, n_supports)

    def beside(self, other: ColumnPlaces) -> tuple[ColumnPlaces, ColumnPlaces]:
        """Return the places of both in sums that have the columns of both."""
        sizes = {
            name: getattr(self, name) + getattr(other, name)
            for name in ("n_columns", "n_shared", "n_supports")
        }
        behind = replace(
            other,
            columns=self.n_columns + other.columns,
            shared=self.n_shared + other.shared,
            supports=self.n_supports + other.supports,
            **sizes,
        )
        return replace(self, **sizes), behind

    def of_squares(self, n_strata: int) -> ColumnPlaces:
        """Return the places of columns by support and stratum, shared ones too."""
        columns = (self.supports[:, None] * n_strata + np.arange(n_strata)).ravel()
        size = self.n_supports * n_strata
        return replace(
            self, columns=columns, n_columns=size, shared=columns, n_shared=size
        )

    def widened(self, shared: Array) -> Array:
        """Return shared columns, along the last axis, at their places."""
        wide = np.zeros((*shared.shape[:-1], self.n_shared))
        wide[..., self.shared] = shared
        return wide
