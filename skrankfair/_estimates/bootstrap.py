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
from .sums import ClusterSums, slopes_at
from .table import Finalize, draw_counts

_CHUNK = 64
# More undefined resamples than this, and there is no interval.
_MOST_UNDEFINED = 0.2


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
    table = sums.bootstrap_table()
    flat, (n_groups, n_columns) = table.flat(), sums.by_group.shape
    size = n_groups * n_columns
    shared = size + np.arange(sums.shared.size)
    factor = sums.count / (sums.count - 1) if sums.count > 1 else np.nan
    for start in range(0, n_resamples, _CHUNK):
        counts = draw_counts(table, min(_CHUNK, n_resamples - start), rng)
        totals = counts @ flat
        by_group = totals[:, :size].reshape(-1, n_groups, n_columns)
        values = finalize(by_group, totals[:, size:])
        slopes = slopes_at(finalize, by_group, totals[:, size:])
        covariance = np.zeros((len(counts), first.size, 2, 2))
        for place, a in enumerate(first):
            both = [a] if second is None else [a, second[place]]
            own = [g * n_columns + np.arange(n_columns) for g in both]
            columns = np.concatenate([*own, shared])
            rows = flat[:, columns]
            products = counts @ np.einsum("qi,qj->qij", rows, rows).reshape(
                table.n_rows, -1
            )
            products = products.reshape(-1, columns.size, columns.size)
            weights = np.zeros((len(counts), 2, columns.size))
            for side, group in enumerate(both):
                part = slice(side * n_columns, (side + 1) * n_columns)
                weights[:, side, part] = slopes[:, group, :n_columns]
                weights[:, side, len(both) * n_columns :] = slopes[:, group, n_columns:]
            covariance[:, place] = (
                factor * weights @ products @ np.swapaxes(weights, 1, 2)
            )
        others = np.zeros((len(counts), first.size))
        if second is not None:
            others = values[:, second]
        yield values[:, first], others, covariance


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


def known_quantiles(values: Array, levels: list[float]) -> Array:
    """Return quantiles over resamples; NaN where too many of them are undefined."""
    unknown = ~np.isfinite(values)
    quantiles = np.full((len(levels), values.shape[1]), np.nan)
    for column in np.flatnonzero(unknown.mean(0) <= _MOST_UNDEFINED):
        known = values[~unknown[:, column], column]
        quantiles[:, column] = np.quantile(known, levels)
    return quantiles
