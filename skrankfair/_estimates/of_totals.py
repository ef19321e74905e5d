"""A user's function of column totals, as the sums need it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._inputs.groups import encode
from .._inputs.validation import Array, check_choice, check_number
from .finalize import ColumnSum
from .metric import Metric
from .rows import Rows
from .storage import stored

# Relative to a total: it balances what a difference leaves out against rounding.
_STEP = 1e-3


@stored("LastColumn")
@dataclass(frozen=True)
class LastColumn:
    """The last column of a group, which counts what its estimate rests on."""

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the counts, shape (..., G)."""
        return by_group[..., -1]


@dataclass(frozen=True)
class OfTotals:
    """A function of the totals of a group, which need not accept complex numbers.

    Attributes
    ----------
    function : callable
        Totals of shape (..., C) to values of shape (...).
    name : str
        The metric, for messages.
    counted : bool
        Whether a last column is not the function's, but a count.
    """

    function: Callable[[Array], Any] = field(compare=False)
    name: str
    counted: bool

    def __eq__(self, other: object) -> bool:
        """Whether both compute the same, though one was made in another process."""
        return (
            isinstance(other, OfTotals)
            and (self.name, self.counted) == (other.name, other.counted)
            and same_function(self.function, other.function)
        )

    def __hash__(self) -> int:
        """Return the hash of what is compared by value."""
        return hash((self.name, self.counted))

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the values, shape (..., G); NaN where they are not finite."""
        totals = by_group[..., :-1] if self.counted else by_group
        if not np.iscomplexobj(totals):
            return self._values(totals)
        slope = self._slope(totals.real, totals.imag)
        return self._values(totals.real) + 1j * slope

    def _values(self, totals: Array) -> Array:
        rule = (
            f"finalize of {self.name} must take totals of shape (..., C) and return "
            "values of shape (...), as totals[..., 0] / totals[..., 1] does; of totals "
            f"of shape {totals.shape} it makes"
        )
        try:
            with np.errstate(all="ignore"):
                values = np.asarray(self.function(totals), dtype=float)
        except IndexError as error:
            raise ValueError(f"{rule} an error ({error}).") from error
        if values.shape != totals.shape[:-1]:
            raise ValueError(f"{rule} values of shape {values.shape}.")
        return np.where(np.isfinite(values), values, np.nan)

    def _slope(self, at: Array, direction: Array) -> Array:
        """Return the derivative in a direction, by differences of fourth order.

        A complex step would lose what ``abs`` and comparisons do to complex numbers.
        """
        length = np.abs(direction).max(initial=0.0)
        if length == 0:
            return np.zeros(at.shape[:-1])
        unit = direction / length
        size = (np.abs(unit) * np.abs(at)).sum(-1, keepdims=True)
        size = np.where(size > 0, size, np.abs(at).max(-1, keepdims=True))
        step = _STEP * np.where(size > 0, size, 1.0)
        near, far = (
            self._values(at + times * step * unit)
            - self._values(at - times * step * unit)
            for times in (1, 2)
        )
        slope = (8 * near - far) / (12 * step[..., 0])
        return np.where(np.isfinite(slope), slope, 0.0) * length


def same_function(a: Any, b: Any) -> bool:
    """Return whether two functions have the same code and see the same values."""
    if a is b:
        return True
    if not (hasattr(a, "__code__") and hasattr(b, "__code__")):
        return bool(a == b)
    seen = [
        (f.__defaults__, [cell.cell_contents for cell in f.__closure__ or ()])
        for f in (a, b)
    ]
    return bool(a.__code__ == b.__code__ and seen[0] == seen[1])


def metric_of_totals(
    finalize: Callable[[Array], Any],
    name: str,
    unit: str,
    support: int | None,
    fair_value: float | None,
    share: bool,
    better: str | None,
) -> Metric:
    """Return what a function of totals is as a metric; see `make_metric`."""
    if not callable(finalize):
        raise ValueError(f"finalize must be a function; got {finalize!r}.")
    for title, text in (("name", name), ("unit", unit)):
        if not (isinstance(text, str) and text):
            raise ValueError(f"{title} must be a text; got {text!r}.")
    check_choice(share, "share", (True, False))
    check_choice(better, "better", (None, "high", "low"))
    if fair_value is not None:
        check_number(fair_value, "fair_value", -np.inf, np.inf)
    if support is not None:
        check_number(support, "support", 0, 1 << 31, integer=True)
    return Metric(
        name,
        OfTotals(finalize, name, support is None),
        LastColumn() if support is None else ColumnSum(support, support + 1),
        unit=unit,
        fair_value=fair_value,
        disparity="difference" if fair_value is None else "max_abs",
        share=share,
        better=better,
    )


def table_of_sums(
    values: Any, groups: Sequence[Hashable], labels: Any, *, counted: bool
) -> Rows:
    """Return a user's sums by cluster and group, (Q, G, C), as a table.

    `counted`: a last column says whether a cluster has something of a group.
    """
    try:
        sums = np.array(values, dtype=float)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"table must hold numbers ({error}).") from error
    if sums.ndim != 3 or sums.shape[1] != len(groups) or not sums.size:
        raise ValueError(
            "table must have the shape (clusters, groups, columns), here with "
            f"{len(groups)} groups; got {sums.shape}."
        )
    if not np.isfinite(sums).all():
        raise ValueError("table must be finite (no NaN, no infinity).")
    if len(set(groups)) < len(groups):
        raise ValueError(f"groups must be distinct; got {list(groups)}.")
    n_rows = len(sums)
    clusters = np.arange(n_rows)
    if labels is not None:
        codes = encode(labels, "labels")
        clusters = codes.decode(codes.codes)
        if clusters.size != n_rows or codes.dense().size != n_rows:
            raise ValueError(
                f"labels must name each of the {n_rows} clusters once; got "
                f"{clusters.size}, {codes.dense().size} of them different."
            )
    if counted:
        there = (sums != 0).any(axis=2, keepdims=True)
        sums = np.concatenate([sums, there], axis=2)
    row, group = np.nonzero((sums != 0).any(axis=2))
    return Rows.from_entries(
        row,
        group,
        sums[row, group],
        n_rows=n_rows,
        n_groups=len(groups),
        labels=clusters,
    )
