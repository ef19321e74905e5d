"""The cluster bootstrap: studentised intervals, and plain percentiles by name.

Each resample draws as many clusters as there are and gives an estimate with a standard
error of its own; the interval inverts the quantiles of ``t* = (θ* - θ) / se*`` (Efron
1982; Hall 1992), which hold for few clusters where percentiles of θ* are too narrow.
Shares are resampled on the scale of the logit and ratios on that of the logarithm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import special

from .._inputs.validation import Array
from .finalize import slopes_at
from .sums import ClusterSums
from .table import AnyTable, Finalize, Table, count_chunks, draw_counts

# More undefined resamples than this, and there is no interval.
_MOST_UNDEFINED = 0.2
# Of fewer degrees of freedom intervals hold that of Student's t.
_FEW_DF = 20
# So many squares of numbers are kept from chunk to chunk; more are computed again.
_MOST_KEPT = 1 << 22


@dataclass(frozen=True)
class Scale:
    """The scale on which ``t*`` is taken: a function, its slope and its inverse."""

    forward: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    back: Callable[[Array], Array]


PLAIN = Scale(lambda x: x, np.ones_like, lambda x: x)
LOGIT = Scale(special.logit, lambda x: 1 / (x * (1 - x)), special.expit)
LOG = Scale(np.log, lambda x: 1 / x, np.exp)


def resampled_with_errors(
    sums: ClusterSums,
    finalize: Finalize,
    first: Array,
    second: Array | None,
    n_resamples: int,
    rng: np.random.Generator,
) -> Iterator[tuple[Array, Array, Array]]:
    """Yield resampled estimates of some groups and of others, with errors, by chunk.

    `first` and `second` are numbers of groups, shape (m,). Both estimates have shape
    (B, m), those of the second being 0 if it is None; then comes their covariance of
    shape (B, m, 2, 2), by the delta method within the resample.
    """
    table, kept = sums.bootstrap_table(), None
    factor = sums.count / (sums.count - 1) if sums.count > 1 else np.nan
    sides = first[:, None] if second is None else np.stack([first, second], axis=1)
    for chunk in count_chunks(table, n_resamples):
        counts = draw_counts(table, chunk, rng)
        by_group, shared = table.drawn(counts)
        values = finalize(by_group, shared)
        slopes = slopes_at(finalize, by_group, shared)
        used = np.flatnonzero(slopes.any(axis=(0, 1)))
        if kept is None or not np.array_equal(used, kept.used):
            kept = _Products(table, sides, used)
        covariance = factor * kept.covariance(counts, slopes)
        others = np.zeros((len(counts), first.size))
        if second is not None:
            others = values[:, second]
        yield values[:, first], others, covariance


class _Products:
    """Cross products of the columns of groups that slopes are not 0 of.

    Parameters
    ----------
    table : Table or SparseTable
    sides : ndarray of shape (m, 1) or (m, 2)
        The numbers of the groups of each estimate.
    used : ndarray of int
        Which columns, those of a group before the shared ones.
    """

    def __init__(self, table: AnyTable, sides: Array, used: Array) -> None:
        self.table, self.sides, self.used = table, sides, used
        self._own, common = np.split(used, [np.searchsorted(used, table.n_columns)])
        self._common = common - table.n_columns
        self._size = sides.shape[1] * self._own.size + common.size
        self._first, self._second = np.triu_indices(self._size)
        few = table.n_rows * self._size**2 * len(sides) <= _MOST_KEPT
        step = len(sides) if few and isinstance(table, Table) else 1
        starts = range(0, len(sides), max(step, 1))
        self._parts = [slice(start, start + step) for start in starts]
        self._kept = [self._columns(part) for part in self._parts] if few else None

    def _columns(self, part: slice) -> tuple[Array | slice, Array]:
        """Return rows and products, each once, of some sides that have these rows."""
        tables = [self.table.part_of(groups) for groups in self.sides[part].tolist()]
        columns = np.stack([self._flat(table) for _, table in tables], axis=1)
        products = columns[..., self._first] * columns[..., self._second]
        shape = len(products), len(tables) * self._first.size
        return tables[0][0], products.reshape(shape)

    def _flat(self, table: Table) -> Array:
        own = table.by_group[..., self._own]
        own = own.reshape(table.n_rows, self._size - self._common.size)
        return np.hstack([own, table.shared[:, self._common]])

    def _drawn(self, counts: Array, place: int) -> Array:
        """Return the sums over rows that count so often, shape (B, m, K, K)."""
        kept, part = self._kept, self._parts[place]
        rows, columns = self._columns(part) if kept is None else kept[place]
        shape = len(counts), len(self.sides[part])
        each = (counts[:, rows] @ columns).reshape(*shape, self._first.size)
        sums = np.empty((*shape, self._size, self._size))
        sums[..., self._first, self._second] = each
        sums[..., self._second, self._first] = each
        return sums

    def _of_shared(self, counts: Array) -> Array:
        """Return the sums of the products of the shared columns, (B, 1, D, D)."""
        shared = self.table.shared[:, self._common]
        both = shared[:, :, None] * shared[:, None]
        sums = counts @ both.reshape(len(both), self._common.size**2)
        return sums.reshape(len(counts), 1, *both.shape[1:])

    def covariance(self, counts: Array, slopes: Array) -> Array:
        """Return Σ over rows of slopes times columns, of each two sides, (B, m, 2, 2).

        Of rows that count so often, (B, n_rows), and slopes of shape (B, G, C + D).
        """
        found = np.zeros((len(counts), len(self.sides), 2, 2))
        slopes, n_own = slopes[..., self.used], self._own.size
        common = slice(self._size - self._common.size, None)
        # Rows without data of the groups have part in the shared columns.
        of_shared = None if isinstance(self.table, Table) else self._of_shared(counts)
        for place, part in enumerate(self._parts):
            products = self._drawn(counts, place)
            if of_shared is not None:
                products[..., common, common] = of_shared
            weights = np.zeros((*products.shape[:2], 2, self._size))
            for side, groups in enumerate(self.sides[part].T):
                own = slice(side * n_own, (side + 1) * n_own)
                weights[:, :, side, own] = slopes[:, groups, :n_own]
                weights[:, :, side, common] = slopes[:, groups, n_own:]
            found[:, part] = weights @ products @ np.swapaxes(weights, -1, -2)
        return found


def studentised_ends(
    estimate: Array,
    standard_error: Array,
    resampled: tuple[Array, Array],
    scale: Scale,
    confidence_level: float,
) -> tuple[Array, Array]:
    """Return bootstrap-t intervals, `resampled` being estimates and errors, (B, m)."""
    values, errors = resampled
    with np.errstate(divide="ignore", invalid="ignore"):
        middle = scale.forward(estimate)
        t = (scale.forward(values) - middle) / (errors * scale.slope(values))
        t = np.where(np.isfinite(t), t, np.nan)
        tail = (1 - confidence_level) / 2
        low_t, high_t = known_quantiles(t, [tail, 1 - tail])
        error = standard_error * scale.slope(estimate)
        return (
            scale.back(middle - high_t * error),
            scale.back(middle - low_t * error),
        )


def holding_t(
    ends: tuple[Array, Array], plain: tuple[Array, Array], df: Array | float
) -> tuple[Array, Array]:
    """Widen intervals of few degrees of freedom to hold those of Student's t, `plain`.

    Resamples of a few clusters are too like each other: 95% intervals of inter-group
    accuracy missed 9% of data sets of ten queries (docs/validity.md).
    """
    few = np.less(df, _FEW_DF)
    (low, high), (low_t, high_t) = ends, plain
    return (
        np.where(few, np.minimum(low, low_t), low),
        np.where(few, np.maximum(high, high_t), high),
    )


def known_quantiles(values: Array, levels: list[float]) -> Array:
    """Return quantiles over resamples; NaN where too many of them are undefined."""
    unknown = ~np.isfinite(values)
    quantiles = np.full((len(levels), values.shape[1]), np.nan)
    for column in np.flatnonzero(unknown.mean(0) <= _MOST_UNDEFINED):
        known = values[~unknown[:, column], column]
        quantiles[:, column] = np.quantile(known, levels)
    return quantiles
