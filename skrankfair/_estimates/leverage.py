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

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._inputs.validation import Array
from .folded import nowhere
from .listed import ListErrors, ListTable, expanded, held_parts
from .low_rank import Columns
from .table import GroupRows, SparseTable, needs_of, strata

if TYPE_CHECKING:
    from .folded import Folded
    from .sums import ClusterSums
    from .table import Finalize, Table


#: Sums over rows of products of two arrays, by group or of pairs of groups.
Dot = Callable[[Array, Array], Array]

#: The powers of the shares that the products of `_Rows` begin with.
_SINGLES = ((1, 1), (1, 1), (1, 2))
_BESIDE = ((2, 2), (2, 3), (3, 2), (1, 2), (2, 1), (1, 1), (2, 2))
_NAMES = tuple(map(tuple, ("dd", "de", "ed", "vu", "uv", "vv", "uu")))
# Of so few groups all pairs are as quick as some.
_FEW_GROUPS = 64


@dataclass(frozen=True)
class _Rows:
    """Functions of the shares h of rows: ``v = h / (1 - h)``, ``u = v h``, ``d = v²``.

    And ``e = d h``, of shape (G, n) or, of entries, (n,); each times the square root of
    how often the row counts, so that products count.
    """

    h: Array
    v: Array
    u: Array
    d: Array
    e: Array

    @classmethod
    def of(cls, share: Array, times: Array | None) -> _Rows:
        """Return them for the shares of rows that count so many times."""
        v = share / np.maximum(1 - share, 1e-9)
        u, d = v * share, v * v
        return cls(share, v, u, d, d * share)._counted(times)

    @classmethod
    def of_small(cls, share: Array, times: Array | None) -> _Rows:
        """Return what they are to first order: powers of the shares."""
        square = share**2
        rows = cls(share, share, square, square, square * share)
        return rows._counted(times)

    def _counted(self, times: Array | None) -> _Rows:
        if times is None:
            return self
        root = np.sqrt(times)
        parts = (self.h, self.v, self.u, self.d, self.e)
        return _Rows(*(root * part for part in parts))

    def beside(self, other: _Rows, dot: Dot, *, mirrored: bool = False) -> list[Array]:
        """Return the sums of the products that ``tr(M M')`` is made of.

        `mirrored`: the sums are the same with both in the other order.
        """
        de, vu = dot(self.d, other.e), dot(self.v, other.u)
        return [
            dot(self.d, other.d),
            de,
            de if mirrored else dot(self.e, other.d),
            vu,
            vu if mirrored else dot(self.u, other.v),
            dot(self.v, other.v),
            dot(self.u, other.u),
        ]


def _by_group(x: Array, y: Array) -> Array:
    return np.einsum("gq,gq->g", x, y)


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
    if isinstance(sums.rows, ListTable):
        return list_errors(sums, finalize)[1:]
    return _degrees_of_rows(sums, finalize)


def list_errors(sums: ClusterSums, finalize: Finalize) -> ListErrors:
    """Return variances and degrees of freedom of a list, from one look at its rows."""
    table: Any = sums.table
    if id(finalize) not in table.known:
        slopes = np.nan_to_num(sums.slopes(finalize))
        found = [
            (part.variance_of_rows(finalize), *_degrees_of_rows(part, finalize))
            for part in held_parts(sums, slopes)
        ]
        errors = ListErrors(*map(np.concatenate, zip(*found, strict=True)))
        table.known[id(finalize)] = finalize, errors  # which keeps its id
    return table.known[id(finalize)][1]


def _degrees_of_rows(sums: ClusterSums, finalize: Finalize) -> tuple[Array, Array]:
    """Return `degrees_of_freedom` from the rows, all groups at once."""
    none = np.zeros(0, dtype=int)
    trace, products, square = _Moments(sums, finalize, none, none).result()
    with np.errstate(divide="ignore", invalid="ignore"):
        df = trace.sum(0) ** 2 / products.sum((0, 1))
        effective = np.where(square > 0, 1 / square, np.inf).min(axis=0)
    return df, np.where(np.isfinite(effective), effective, 0.0)


def contrast_degrees(
    sums: ClusterSums, finalize: Finalize, first: Array, second: Array
) -> Array:
    """Return degrees of freedom of differences of two groups, given by number."""
    if not first.size:
        return np.zeros(0)
    used, place = np.unique(np.concatenate([first, second]), return_inverse=True)
    a, b = place[: first.size], place[first.size :]
    trace, products, _ = _Moments(sums.of_groups(used), finalize, a, b).result()
    one, both = trace.sum(0), products.sum((0, 1))
    own, between = both[: used.size], both[used.size :]
    with np.errstate(divide="ignore", invalid="ignore"):
        return (one[a] + one[b]) ** 2 / (own[a] + own[b] + 2 * between)


class _Moments:
    """Sums over rows of products of the leverages of samples and groups.

    A sample is a support that the metric needs, in a stratum; C of them.

    Parameters
    ----------
    sums : ClusterSums
    finalize : callable
    first, second : ndarray of shape (m,)
        Pairs of groups, by number, that products are of beside each with itself.
    """

    def __init__(
        self, sums: ClusterSums, finalize: Finalize, first: Array, second: Array
    ) -> None:
        sums = sums.evidence
        if first.size:
            sums = expanded(sums)
        self.sums, self.first, self.second = sums, first, second
        self.samples = [
            (k, s) for k in needs_of(finalize) for s in range(sums.support.shape[1])
        ]
        total = np.stack([sums.support[k, s] for k, s in self.samples])
        with np.errstate(divide="ignore"):
            self.scale = np.where(total > 0, 1 / total, 0.0)
        size, self.n_groups = total.shape
        self.singles = np.zeros((3, size, self.n_groups))
        self.parts = np.zeros((7, size, size, self.n_groups + first.size))

    def result(self) -> tuple[Array, Array, Array]:
        """Return ``tr(M_c)``, ``tr(M_c M_c')`` and ``Σ h²`` by sample.

        Of shape (C, G), (C, C, G + m) and (C, G).
        """
        if isinstance(self.sums.rows, SparseTable | ListTable):
            self._add_entries(self.sums.rows)
        else:
            self._add_rows()
        square, v_squared, e = self.singles
        trace = (1 + square) * v_squared - 2 * e
        every = np.arange(self.n_groups)
        first, second = np.append(every, self.first), np.append(every, self.second)
        c, c_other = square[:, None, first], square[None, :, second]
        dd, de, ed, vu, uv, vv, uu = self.parts
        products = (1 + c + c_other) * dd - 2 * (de + ed) + 2 * (vu * uv + vv * uu)
        products += c * c_other * vv**2 - 2 * vv * (c_other * uv + c * vu)
        if self.sums.folded is not None:
            more, more_products = self._of_folded(self.sums.folded, first, second)
            square, trace = square + more, trace + more
            products += more_products
        return trace, products, square

    def _amounts(self, table: Table) -> list[Array]:
        """Return how much data the rows of a table have, by sample."""
        needed = {k: strata(table, self.sums.supports[k]) for k, _ in self.samples}
        return [needed[k][:, s] for k, s in self.samples]

    def _apart(self, i: int, j: int) -> bool:
        """Return whether no row is in both samples: in two strata of a group."""
        return not self.first.size and self.samples[i][1] != self.samples[j][1]

    def _add_rows(self) -> None:
        """Add the rows of a table with all groups."""
        for table in self.sums.cells():
            once, times = _times(table.weight)
            shares = [
                np.multiply(amount.T, factor[:, None], order="C")
                for amount, factor in zip(self._amounts(table), self.scale, strict=True)
            ]
            rows = [
                _Rows.of(share if once is None else share * once, times)
                for share in shares
            ]
            self._add(rows, _by_group, self._with_pairs)

    def _with_pairs(self, x: Array, y: Array) -> Array:
        """Return the products of arrays (G, n), by group and of the pairs."""
        if not self.first.size:
            return _by_group(x, y)
        if self.n_groups <= _FEW_GROUPS or self.first.size > 4 * self.n_groups:
            both = x @ y.T
            return np.append(np.diag(both), both[self.first, self.second])
        between = _by_group(x[self.first], y[self.second])
        return np.append(_by_group(x, y), between)

    def _add(
        self,
        rows: list[_Rows],
        dot: Dot,
        beside: Dot,
        sign: int = 1,
        of: list[int] | None = None,
    ) -> None:
        """Add rows of each sample, or of those given by number, or take them off."""
        size = beside(rows[0].h, rows[0].h).size
        numbered = list(zip(of or range(len(rows)), rows, strict=True))
        for i, a in numbered:
            for j, b in numbered:
                if not self._apart(i, j):
                    mirrored = i == j and not self.first.size
                    found = a.beside(b, beside, mirrored=mirrored)
                    self.parts[:, i, j, :size] += sign * np.stack(found)
                if i == j:  # the sums of h², v² and v² h, of each group first
                    single = dot(a.h, a.h), found[5], found[3]
                    for total, part in zip(self.singles[:, i], single, strict=True):
                        total += sign * part[: self.n_groups]

    def _add_entries(self, table: SparseTable | ListTable) -> None:
        """Add the entries of a sparse table, and to first order what is without."""
        outside = self._nowhere(table)
        gaps = any(amount.any() for amount in outside)
        if gaps:
            self._add_nowhere(outside)
        columns: list[Any] = []
        for cells in self.sums.cells():
            if not isinstance(cells, GroupRows):
                continue

            own = self._add_cells(cells)
            if gaps:
                _, times = _times(cells.weight)
                without = [
                    _Rows.of_small(amount[cells.row] * scale[cells.group], times)
                    for amount, scale in zip(outside, self.scale, strict=True)
                ]
                dot = self._dot(cells.group)
                self._add(without, dot, dot, sign=-1)
            if self.first.size:
                columns.append((cells.row, cells.group, own))
        if columns:
            self._add_between(columns, outside, _times(table.weight)[1])

    def _dot(self, group: Array) -> Dot:
        """Return what sums products of rows with one group each."""
        return lambda x, y: np.bincount(group, x * y, minlength=self.n_groups)

    def _add_cells(self, cells: GroupRows) -> list[_Rows]:
        """Add rows with one group each, of each stratum those with data alone."""
        amounts = [amount[:, 0] for amount in self._amounts(cells)]
        once, times = _times(cells.weight)
        every = list(range(len(amounts)))
        strata_of = [s for _, s in self.samples]
        samples = [[i for i in every if strata_of[i] == s] for s in set(strata_of)]
        for chosen in [every] if self.first.size else samples:
            some: Any = slice(None)
            if len(samples) > 1 and not self.first.size:
                some = np.flatnonzero(sum(amounts[i] for i in chosen))
            group = cells.group[some]
            factor = 1.0 if once is None else once[some]
            rows = [
                _Rows.of(
                    amounts[i][some] * self.scale[i, group] * factor,
                    None if times is None else times[some],
                )
                for i in chosen
            ]
            dot = self._dot(group)
            self._add(rows, dot, dot, of=chosen)
        return rows

    def _nowhere(self, table: SparseTable | ListTable) -> list[Array]:
        """Return how much data each row shows of a group that is nowhere, by sample.

        Of a row that counts less than once, that much less.
        """
        if isinstance(table, ListTable):  # in which every place has an entry
            return [np.zeros(0)] * len(self.samples)
        none = nowhere(table, self.sums.supports)[..., 0]
        once, _ = _times(table.weight)
        return [
            none[:, k, s] * (1.0 if once is None else once) for k, s in self.samples
        ]

    def _add_nowhere(self, amounts: list[Array]) -> None:
        """Add all rows as if none had an entry, to first order."""
        _, times = _times(self.sums.rows.weight)
        times = np.ones(amounts[0].size) if times is None else times
        for i, a in enumerate(amounts):
            for number, (p, q) in enumerate(_SINGLES):
                total = times @ a ** (p + q)
                self.singles[number, i] += total * self.scale[i] ** (p + q)
            for j, b in enumerate(amounts):
                if self._apart(i, j):
                    continue
                for number, (p, q) in enumerate(_BESIDE):
                    scale = self.scale[i] ** p * self.scale[j] ** q
                    found = times @ (a**p * b**q) * scale
                    self.parts[number, i, j, : self.n_groups] += found

    def _add_between(
        self, columns: list[Any], outside: list[Array], times: Array | None
    ) -> None:
        """Add the products of the pairs of groups."""
        row, group = (np.concatenate([part[i] for part in columns]) for i in (0, 1))
        root = 1.0 if times is None else np.sqrt(times)
        made = []
        for i, (amount, scale) in enumerate(zip(outside, self.scale, strict=True)):
            made.append(
                {
                    name: Columns(
                        row,
                        group,
                        np.concatenate([getattr(part[2][i], name) for part in columns]),
                        (root * amount**power)[:, None],
                        (scale**power)[:, None],
                    )
                    for name, power in (("v", 1), ("u", 2), ("d", 2), ("e", 3))
                }
            )
        for i, a in enumerate(made):
            for j, b in enumerate(made):
                for number, (x, y) in enumerate(_NAMES):
                    found = a[x].products(b[y], self.first, self.second)
                    self.parts[number, i, j, self.n_groups :] += found

    def _of_folded(
        self, folded: Folded, first: Array, second: Array
    ) -> tuple[Array, Array]:
        """Return what the folded rows add, to first order."""
        square = np.stack([folded.square[k, s, :-1] for k, s in self.samples])
        n_strata = folded.square.shape[1]
        number = np.array([k * n_strata + s for k, s in self.samples])
        products = folded.quartic_between(first, second)[number[:, None], number]
        scale = self.scale**2
        left, right = scale[:, None, first], scale[None, :, second]
        return square * scale, products * left * right


def _times(weight: Array | None) -> tuple[Array | None, Array | None]:
    """Return how much of a row is left out, and how often; None is once.

    A row that counts less than once is left out whole.
    """
    if weight is None:
        return None, None
    once = np.minimum(weight, 1.0)
    times = np.zeros(once.shape)
    np.divide(weight, once, out=times, where=once > 0)
    return once, times
