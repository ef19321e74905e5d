"""From column totals to estimates: ratios and sums of columns, means over positions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._inputs.validation import Array
from .storage import stored

#: Column totals by group, of shape ``(..., G, C)``, and shared, ``(..., D)``.
Totals = tuple[Array, Array]

#: ``finalize(by_group, shared)``: from totals of shape ``(..., G, C)`` and ``(..., D)``
#: to estimates of shape ``(..., G)``. The value of a group depends on its own columns
#: and the shared ones only, and the function must accept complex totals (it is
#: differentiated by a complex step). An attribute ``needs`` has the places in
#: `ClusterSums.supports` of the supports without which there is no estimate; without
#: it that is the first. An attribute ``parts`` has the two functions whose difference
#: (of a `PairedDifference`) or mean it is.
Finalize = Callable[[Array, Array], Array]


def needs_of(finalize: Finalize) -> tuple[int, ...]:
    """Return the places of the supports that a metric needs; the first if unsaid."""
    return tuple(getattr(finalize, "needs", (0,)))


def parts_of(finalize: Finalize) -> tuple[Finalize, ...]:
    """Return the two functions whose difference or mean a metric is, or none."""
    return tuple(getattr(finalize, "parts", ()))


# Length of the complex step, whose derivatives have no rounding.
_STEP = 1e-200
# Numbers that are moved by steps at once, which stay in the processor's cache.
_AT_ONCE = 1 << 16
# Relative length of the steps of differences: a shorter one has more rounding, and a
# longer one leaves out more.
_RELATIVE_STEP = 1e-3
#: A part of a total below this share of it is rounding.
NOTHING = 1e-12


def quotient(numerator: Array, denominator: Array, where: Any = True) -> Array:
    """Return ratios; NaN where the denominator is 0 or `where` is False."""
    ratio = np.full_like(numerator, np.nan)  # in the order of the rows in memory
    where = where & (denominator.real != 0)
    return np.divide(numerator, denominator, out=ratio, where=where)


def mean_of_defined(values: Array, weights: Any) -> Array:
    """Return weighted means over the last axis of the values that are no NaN."""
    weight = np.where(np.isnan(values), 0.0, weights)
    return quotient((np.where(weight > 0, values, 0) * weight).sum(-1), weight.sum(-1))


@stored("MeanOfRatios")
@dataclass(frozen=True)
class MeanOfRatios:
    """Σ numerator / Σ denominator by bucket, averaged over buckets with support."""

    n_buckets: int = 1
    column: int = 0  # block of the numerator; the denominator follows
    shared_weight: float = 0.0  # not 0: shared totals are added to both columns
    needs: tuple[int, ...] = (0,)  # the numbers of the supports that it needs
    #: Of pairs with an item in the first places, the first of four columns: the pairs
    #: that fair rankings make count by their focal items, ``Σ d b`` over the clusters,
    #: b what one item brings, and the same by partners.
    due: int | None = None

    def by_bucket(self, by_group: Array, shared: Array) -> tuple[Array, Array]:
        """Return ratios and denominators, shape (..., G, B)."""
        size, start = self.n_buckets, self.column * self.n_buckets
        numerator = by_group[..., start : start + size]
        denominator = by_group[..., start + size : start + 2 * size]
        if self.shared_weight:
            everyone = shared[..., None, size : 2 * size]
            numerator = numerator + shared[..., None, :size]
            denominator = denominator + everyone
            denominator = without_rounding(denominator, everyone)
        return quotient(numerator, denominator), denominator

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the estimates, shape (..., G)."""
        ratio, _ = self.by_bucket(by_group, shared)
        return ratio[..., 0] if self.n_buckets == 1 else mean_of_defined(ratio, 1.0)


@dataclass(frozen=True)
class BucketRatio(MeanOfRatios):
    """The ratio of one bucket, as a metric of its own."""

    bucket: int = 0

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the ratios, shape (..., G)."""
        return self.by_bucket(by_group, shared)[0][..., self.bucket]


@stored("ColumnSum")
@dataclass(frozen=True)
class ColumnSum:
    """The sum of some columns of a group, such as its number of pairs."""

    start: int
    stop: int
    shared: slice | None = None  # shared columns that belong to it too

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the sums, shape (..., G)."""
        total = by_group[..., self.start : self.stop].sum(-1)
        if self.shared is not None:
            total = total + shared[..., None, self.shared].sum(-1)
        return total


def without_rounding(value: Array, whole: Array) -> Array:
    """Return parts of a whole, 0 where they are only rounding.

    Their derivatives, the imaginary parts, stay.
    """
    nothing = np.abs(value.real) <= NOTHING * np.abs(whole.real)
    return np.where(nothing, value - value.real, value)


@stored("OfRest")
@dataclass(frozen=True)
class OfRest:
    """A function of the totals of the rows outside of the group: shared minus own.

    Attributes
    ----------
    of : callable
        A function of the totals of a group.
    n_supports : int
        Number of supports that come before those of the rest.
    """

    of: Finalize
    n_supports: int

    @property
    def needs(self) -> tuple[int, ...]:
        """The numbers of the supports that it needs."""
        return tuple(number + self.n_supports for number in needs_of(self.of))

    @property
    def parts(self) -> tuple[Finalize, ...]:
        """The two functions whose mean it is, or none."""
        return tuple(OfRest(each, self.n_supports) for each in parts_of(self.of))

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the values, shape (..., G)."""
        everyone = shared[..., None, : by_group.shape[-1]]
        return self.of(without_rounding(everyone - by_group, everyone), shared)


@stored("PositionMean")
@dataclass(frozen=True)
class PositionMean:
    """Σ w_k θ_k / Σ w_k over the positions k whose estimate θ_k is defined."""

    #: With ``by_bucket(by_group, shared)``: estimates and numbers, shape (..., G, P).
    by_position: Any
    weights: tuple[float, ...]  # length P

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the estimates, shape (..., G)."""
        value, _ = self.by_position.by_bucket(by_group, shared)
        return mean_of_defined(value, self.weights)


@stored("Beside")
@dataclass(frozen=True)
class Beside:
    """The function of one of two tables that are joined column by column."""

    function: Finalize
    #: How many columns the first table has.
    n_columns: int
    n_shared: int
    second: bool = False  # whether it is the second one
    needs: tuple[int, ...] = (0,)  # the numbers of the supports that it needs

    @property
    def parts(self) -> tuple[Finalize, ...]:
        """The two functions whose mean it is, or none."""
        number = dict(zip(needs_of(self.function), self.needs, strict=False))
        return tuple(
            replace(self, function=each, needs=tuple(number[n] for n in needs_of(each)))
            for each in parts_of(self.function)
        )

    def own(self, by_group: Array, shared: Array) -> Totals:
        """Return the columns of its table."""
        c, d = self.n_columns, self.n_shared
        if self.second:
            return by_group[..., c:], shared[..., d:]
        return by_group[..., :c], shared[..., :d]

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the values, shape (..., G)."""
        return self.function(*self.own(by_group, shared))


@stored("PairedDifference")
@dataclass(frozen=True)
class PairedDifference:
    """The metric of one table (or group) minus that of another (or of the rest)."""

    first: Finalize
    second: Finalize
    needs: tuple[int, ...]  # the numbers of the supports that both need

    @classmethod
    def of(cls, first: Finalize, second: Finalize) -> PairedDifference:
        """Return the difference of two functions, which needs the supports of both."""
        needs = dict.fromkeys((*needs_of(first), *needs_of(second)))
        return cls(first, second, tuple(needs))

    @property
    def parts(self) -> tuple[Finalize, Finalize]:
        """The two functions whose difference it is."""
        return self.first, self.second

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the differences, shape (..., G)."""
        with np.errstate(invalid="ignore"):  # two that are infinite
            return self.first(by_group, shared) - self.second(by_group, shared)


def minus_rest(of: Finalize, n_supports: int) -> PairedDifference:
    """Return the function of a group minus the same of the rows outside the group.

    `n_supports` is the number of supports that come before those of the rest.
    """
    return PairedDifference.of(of, OfRest(of, n_supports))


def ratios_minus_rest(
    n_buckets: int, shared_weight: float, due: int | None = None
) -> PairedDifference:
    """Return the mean of ratios of the group minus that of the rest.

    The columns of the rest follow those of the group.
    """
    rest = MeanOfRatios(n_buckets, 2, shared_weight, (1,), due and due + 4)
    return PairedDifference.of(MeanOfRatios(n_buckets, due=due), rest)


@stored("LastColumn")
def last_column(by_group: Array, shared: Array) -> Array:
    """Return the last column, which counts what an estimate rests on, (..., G)."""
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
        return self._values(totals.real) + 1j * self._slope(totals.real, totals.imag)

    def _values(self, totals: Array) -> Array:
        rule = (
            f"finalize of {self.name} must take totals of shape (..., C) and return "
            "values of shape (...), as totals[..., 0] / totals[..., 1] does; of totals "
            f"of shape {totals.shape} it makes"
        )
        try:
            with np.errstate(all="ignore"):
                values = np.asarray(self.function(totals), dtype=float)
        except (TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise ValueError(f"{rule} an error ({error}).") from error
        if values.shape != totals.shape[:-1]:
            raise ValueError(f"{rule} values of shape {values.shape}.")
        return np.where(np.isfinite(values), values, np.nan)

    def _slope(self, at: Array, direction: Array) -> Array:
        """Return the derivative in a direction, by differences of fourth order.

        A complex step would be wrong, as ``abs`` and comparisons drop imaginary parts.
        """
        length = np.abs(direction).max(initial=0.0)
        if length == 0:
            return np.zeros(at.shape[:-1])
        unit = direction / length
        size = (np.abs(unit) * np.abs(at)).sum(-1, keepdims=True)
        size = np.where(size > 0, size, np.abs(at).max(-1, keepdims=True))
        step = _RELATIVE_STEP * np.where(size > 0, size, 1.0)
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


def slopes_at(finalize: Finalize, by_group: Array, shared: Array) -> Array:
    """Return derivatives at totals (B, G, C) and (B, D), shape (B, G, C + D).

    By a group's own columns, then the shared ones; by a complex step in each.
    """
    n_columns, slopes = by_group.shape[-1], []
    steps = 1j * _STEP * np.eye(n_columns + shared.shape[-1])
    parts = len(steps) * by_group.size // _AT_ONCE + 1
    for some in np.array_split(steps, parts):
        moved = (
            by_group + some[:, None, None, :n_columns],
            shared + some[:, None, n_columns:],
        )
        with np.errstate(under="ignore"):  # products of two steps are nothing
            slopes.append(finalize(*moved).imag / _STEP)
    return np.moveaxis(np.concatenate(slopes), 0, -1)
