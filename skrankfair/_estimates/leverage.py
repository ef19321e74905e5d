"""Degrees of freedom: how much the variance itself is known, by leverage.

A jackknife variance is a quadratic form in what each cluster found. Where one cluster
holds most of the data it rests on that cluster alone, however many there are. The
working model is that of a strong correlation within clusters: the mean of every
cluster has the same variance whatever its size. An estimate is then ``Σ_q h_q m_q``,
``h_q`` the share of the data in cluster q, and its jackknife variance the squared
length of ``B m``, ``B_qr = h_q / (1 - h_q) (1(q = r) - h_r)``. Satterthwaite's
approximation (Bell and McCaffrey 2002) gives it ``tr(M)² / tr(M²)`` degrees of
freedom, ``M = B Bᵀ``: ``Q - 1`` for Q equal clusters. What is made of several means (a
contrast of two groups, a group minus the rest, the two samples of an item variance)
has ``M = Σ M_c`` over them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .._inputs.validation import Array
from .table import strata

if TYPE_CHECKING:
    from .sums import ClusterSums
    from .table import Finalize, Folded


#: Sums over rows of products of two arrays (G, n): by group, or of pairs of groups.
Dot = Callable[[Array, Array], Array]


@dataclass(frozen=True)
class _Rows:
    """Functions of the shares h of rows: ``v = h / (1 - h)``, ``u = v h``, ``d = v²``.

    And ``e = d h``, of shape (G, n); each times the square root of how often the row
    counts, so that products count.
    """

    h: Array
    v: Array
    u: Array
    d: Array
    e: Array

    @classmethod
    def of(cls, share: Array, times: Array | None) -> _Rows:
        """Return them for shares of shape (G, n) of rows that count so many times."""
        v = share / np.maximum(1 - share, 1e-9)
        u, d = v * share, v * v
        rows = cls(share, v, u, d, d * share)
        if times is None:
            return rows
        root = np.sqrt(times)
        return cls(*(root * part for part in (rows.h, v, u, d, rows.e)))

    def singles(self) -> Array:
        """Return the sums of h², v² and v² h over the rows, shape (3, G)."""
        pairs = ((self.h, self.h), (self.v, self.v), (self.v, self.u))
        return np.stack([_by_group(x, y) for x, y in pairs])

    def beside(self, other: _Rows, dot: Dot) -> list[Array]:
        """Return the sums of the products that ``tr(M M')`` is made of."""
        de, vu = dot(self.d, other.e), dot(self.v, other.u)
        same = other is self and dot is _by_group
        return [
            dot(self.d, other.d),
            de,
            de if same else dot(self.e, other.d),
            vu,
            vu if same else dot(self.u, other.v),
            dot(self.v, other.v),
            dot(self.u, other.u),
        ]


def _by_group(x: Array, y: Array) -> Array:
    return np.einsum("gq,gq->g", x, y)


def _by_pair(x: Array, y: Array) -> Array:
    product: Array = x @ y.T
    return product


def degrees_of_freedom(sums: ClusterSums, finalize: Finalize) -> tuple[Array, Array]:
    """Return degrees of freedom and the effective number of clusters, by group.

    Parameters
    ----------
    sums : ClusterSums
    finalize : callable
        The metric; its ``needs`` name the supports whose shares are the leverages.

    Returns
    -------
    df : ndarray of shape (G,)
        NaN for a group without data.
    n_effective : ndarray of shape (G,)
        ``1 / Σ_q h_q²`` of the smallest sample behind the estimate; 0 without data.
    """
    moments = _Moments(sums, finalize, np.arange(len(sums.groups)), pairs=False)
    trace, products, square = moments.result()
    with np.errstate(divide="ignore", invalid="ignore"):
        df = trace.sum(0) ** 2 / products.sum((0, 1))
        effective = np.where(square > 0, 1 / square, np.inf).min(axis=0)
    return df, np.where(np.isfinite(effective), effective, 0.0)


def contrast_degrees(
    sums: ClusterSums, finalize: Finalize, first: Array, second: Array
) -> Array:
    """Return degrees of freedom of differences of two groups, given by number."""
    used, place = np.unique(np.concatenate([first, second]), return_inverse=True)
    trace, products, _ = _Moments(sums, finalize, used, pairs=True).result()
    one, both = trace.sum(0), products.sum((0, 1))
    a, b = place[: first.size], place[first.size :]
    with np.errstate(divide="ignore", invalid="ignore"):
        return (one[a] + one[b]) ** 2 / (both[a, a] + both[b, b] + 2 * both[a, b])


class _Moments:
    """Sums over rows of products of the leverages of samples and groups.

    A sample is a support that the metric needs, in a stratum; C of them.

    Parameters
    ----------
    sums : ClusterSums
    finalize : callable
    columns : ndarray of shape (G,)
        The groups, by number.
    pairs : bool
        Whether products are of every two groups, shape (G, G), or of each with itself.
    """

    def __init__(
        self, sums: ClusterSums, finalize: Finalize, columns: Array, *, pairs: bool
    ) -> None:
        self.sums, self.columns, self.pairs = sums, columns, pairs
        self.dot = _by_pair if pairs else _by_group
        needs = getattr(finalize, "needs", (0,))
        self.samples = [(k, s) for k in needs for s in range(sums.support.shape[1])]
        self.total = np.stack([sums.support[k, s, columns] for k, s in self.samples])

    def result(self) -> tuple[Array, Array, Array]:
        """Return ``tr(M_c)`` and ``Σ h²``, shape (C, G), ``tr(M_c M_c')`` between."""
        size, n_groups = self.total.shape
        shape = (n_groups, n_groups) if self.pairs else (n_groups,)
        parts = np.zeros((7, size, size, *shape))
        singles = np.zeros((3, size, n_groups))
        for shares, times in self._shares():
            rows = [_Rows.of(share, times) for share in shares]
            for i, a in enumerate(rows):
                singles[:, i] += a.singles()
                for j, b in enumerate(rows):
                    apart = self.samples[i][1] != self.samples[j][1]
                    if apart and not self.pairs:
                        continue  # no row is in two strata of a group
                    parts[:, i, j] += a.beside(b, self.dot)
        square, v_squared, e = singles
        trace = (1 + square) * v_squared - 2 * e
        c = square[:, None, :, None] if self.pairs else square[:, None]
        c_other = square[None, :, None, :] if self.pairs else square[None]
        dd, de, ed, vu, uv, vv, uu = parts
        products = (1 + c + c_other) * dd - 2 * (de + ed) + 2 * (vu * uv + vv * uu)
        products += c * c_other * vv**2 - 2 * vv * (c_other * uv + c * vu)
        if self.sums.folded is not None:
            more, more_products = self._of_folded(self.sums.folded)
            square, trace = square + more, trace + more
            products += more_products
        return trace, products, square

    def _shares(self) -> Iterator[tuple[list[Array], Array | None]]:
        """Yield shares of rows by sample, (G, n), and how often each row counts."""
        with np.errstate(divide="ignore"):
            scale = np.where(self.total > 0, 1 / self.total, 0.0)[..., None]
        for table in self.sums.blocks():
            rows = table.of_groups(self.columns)
            needed = {k for k, _ in self.samples}
            amounts = {k: strata(rows, self.sums.supports[k]) for k in needed}
            shares = [
                np.multiply(amounts[k][:, s].T, factor, order="C")
                for (k, s), factor in zip(self.samples, scale, strict=True)
            ]
            times = None
            if table.weight is not None:
                once = np.minimum(table.weight, 1.0)
                shares = [share * once for share in shares]
                times = np.zeros(once.shape)
                np.divide(table.weight, once, out=times, where=once > 0)
            yield shares, times

    def _of_folded(self, folded: Folded) -> tuple[Array, Array]:
        """Return what the folded rows add, to first order."""
        columns = self.columns
        with np.errstate(divide="ignore"):
            scale = np.where(self.total > 0, 1 / self.total**2, 0.0)
        square = np.stack([folded.square[k, s, columns] for k, s in self.samples])
        products = np.stack(
            [
                [folded.quartic[k, s, :, j, r] for j, r in self.samples]
                for k, s in self.samples
            ]
        )
        if self.pairs:
            products = products[..., columns[:, None], columns]
            return square * scale, (
                products * scale[:, None, :, None] * scale[None, :, None, :]
            )
        products = products[..., columns, columns]
        return square * scale, products * scale[:, None] * scale[None]
