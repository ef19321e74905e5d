"""How large a gap data of this kind can show, and how much data a gap needs.

A pilot says how much one cluster of each group tells: its standard error and degrees of
freedom. With f times as many clusters of the same kind the error is ``1 / sqrt(f)`` of
it and there are f times as many degrees of freedom, so unequal groups, the correlation
within clusters and unequal clusters are all in it (degrees of freedom as of Q equal
clusters, ``Q - 1``). Power is that of the t-test, from
the noncentral t distribution.

The error of a pilot is itself an estimate: a pilot that happens to see a small one asks
for too little. So the power that is promised is the mean over pilots like this one.
With s² and s'² independent chi-square variables over their degrees of freedom, those of
the test and of the pilot, it is ``P(Z + s' gap / error > s t)``, the mean over s of a
noncentral t distribution with the degrees of freedom of the pilot (Julious and Owen
2006, whose test knows its own error: s = 1).

Julious, S. A. and Owen, R. J. (2006). "Sample size calculations for clinical studies
allowing for uncertainty about the variance". Pharmaceutical Statistics 5(1).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy import optimize, special

from .._inputs.validation import Array, check_number, warn_user
from ..exceptions import SmallSampleWarning
from . import formatting as fmt
from .leverage import degrees_of_freedom
from .read_only import ReadOnlyArrays

if TYPE_CHECKING:
    import pandas as pd

    from .finalize import Finalize
    from .group_estimates import GroupEstimates
    from .sums import ClusterSums

#: Whether the power is the mean over pilots, or that of their errors.
PILOT_ERRORS = ("estimated", "known")
#: Pilots of fewer effective clusters promise no power, and those whose error is made of
#: fewer clusters that are no normal values: see docs/decide.md.
ENOUGH = 12
_FEW_BEHIND = 10
#: The most clusters, and times the data of the pilot, that are asked for.
MOST_DATA = 1e12
#: Below this level rounding decides the critical value, and beyond this gap squares
#: overflow.
LEAST_ALPHA, LARGEST_GAP = 1e-9, 1e60
#: Beside a noncentrality beyond it the deviate of a normal estimate does not matter.
_FAR = 1e3
# The gaps among which one is searched, in critical values of the test.
_SMALLEST_SIZE, _LARGEST_SIZE = 1e-6, 1e12
# Levels and weights of a mean over the error of the test: right to 1e-4.
_LEVELS, _WEIGHTS = (
    np.array([*np.polynomial.legendre.leggauss(16)]) + [[1.0], [0.0]]
) / 2


@dataclass(frozen=True, eq=False)
class RequiredSize(ReadOnlyArrays):
    """How many clusters a test needs to find a gap: one answer per group or contrast.

    Attributes
    ----------
    groups : tuple of hashable, length G
        Groups, or the name of a contrast.
    gap : float
        The true difference that shall be found.
    power : float
        The chance to find it.
    factor : ndarray of shape (G,)
        How many times the data of the pilot; below 1 where the pilot has enough. NaN
        where the pilot says nothing about the error.
    n_clusters : ndarray of shape (G,)
        Clusters in all, with groups and queries in the shares of the pilot.
    n_effective : ndarray of shape (G,)
        Effective clusters with data of the group among them.
    promised : ndarray of shape (G,), bool
        Whether the pilot can promise the power. Where not, a warning said why.
    """

    groups: tuple[Hashable, ...]
    gap: float
    power: float
    factor: Array
    n_clusters: Array
    n_effective: Array
    promised: Array

    def to_frame(self) -> pd.DataFrame:
        """Return one row per group.

        Returns
        -------
        DataFrame
            Indexed by group: factor, n_clusters, n_effective, promised.
        """
        columns = ("factor", "n_clusters", "n_effective", "promised")
        return fmt.groups_frame(
            self.groups, {name: getattr(self, name) for name in columns}
        )

    def __repr__(self) -> str:
        """Return a small table."""
        table = fmt.groups_table(
            self.groups,
            {
                "times the pilot": [fmt.number(factor, 2) for factor in self.factor],
                "clusters": map(fmt.count, self.n_clusters),
                "effective clusters": [fmt.number(n, 1) for n in self.n_effective],
            },
        )
        return f"To find {self.gap:g} with power {self.power:g}:\n{table}"


@dataclass(frozen=True, eq=False)
class Pilot:
    """What data say about the tests of more data like them, per group or contrast.

    Attributes
    ----------
    names : tuple of hashable, length m
    standard_error : ndarray of shape (m,)
        Those of the logarithms, if gaps are ratios.
    df, n_effective : ndarray of shape (m,)
    promised : ndarray of shape (m,), bool
        Whether the errors say enough about those of other data.
    n_clusters : float
    n_tests : int
        Number of tests, by which the level is divided.
    ratio : bool
        Whether gaps are ratios, and not differences.
    known : bool
        Whether the errors count as the true ones.
    """

    names: tuple[Hashable, ...]
    standard_error: Array
    df: Array
    n_effective: Array
    promised: Array
    n_clusters: float
    n_tests: int
    ratio: bool
    known: bool

    def on_scale(self, gaps: Array | float) -> Array:
        """Return gaps on the scale of the errors."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.abs(np.log(gaps)) if self.ratio else gaps)

    def power(self, n_clusters: float, size: float, alpha: float) -> Array:
        """Return the chances that a number of clusters finds a gap, shape (m,).

        The gap is on the scale of the errors.
        """
        factor = n_clusters / self.n_clusters
        df = np.where(self.df > 0, self.df, np.nan)
        return self._power(self.standard_error, df, factor, size, alpha)

    def _power(
        self, error: Array, df: Array, factor: float, size: float, alpha: float
    ) -> Array:
        """Return the power of a number of times the data."""
        more_df = np.maximum(1, factor * (df + 1) - 1)  # the least that a test has
        error = error / np.sqrt(factor)
        pilot_df = None if self.known else df
        return power_at(error, more_df, size, alpha / self.n_tests, pilot_df)

    def detectable(self, power: float, alpha: float) -> Array:
        """Return the true gaps that data like these find, shape (m,)."""
        check_design(power, alpha)
        error, level = self.standard_error, alpha / self.n_tests
        gap = detectable(error, self.df, power, level, known=self.known)
        with np.errstate(over="ignore"):  # no ratio is large enough
            return np.exp(gap) if self.ratio else gap

    def required(self, gap: float, power: float, alpha: float) -> RequiredSize:
        """Return how many clusters like these find a gap."""
        check_design(power, alpha)
        check_number(gap, "gap", 0, LARGEST_GAP, inclusive=(False, True))
        size = float(self.on_scale(gap))
        if size == 0:
            raise ValueError("gap must be a ratio other than 1; got 1.")
        factor = np.full(len(self.names), np.nan)
        for i in np.flatnonzero((self.standard_error > 0) & (self.df > 0)):
            error, df = self.standard_error[i], self.df[i]
            power_of = partial(self._power, error, df, size=size, alpha=alpha)
            factor[i] = smallest(power_of, power, 2 / (df + 1), MOST_DATA, 1e-9)
        return RequiredSize(
            *(self.names, gap, power, factor, np.ceil(factor * self.n_clusters)),
            *(factor * self.n_effective, self.promised & ~np.isnan(factor)),
        )


def check_design(power: float, alpha: float) -> None:
    """Raise a ValueError unless there is power to be had at this level."""
    check_number(alpha, "alpha", LEAST_ALPHA, 1, inclusive=(True, False))
    check_number(power, "power", 0, 1, inclusive=(False, False))
    if power <= alpha:
        raise ValueError(
            f"power must be above alpha, which a test has without data; got {power:g} "
            f"and {alpha:g}."
        )


def smallest(
    power_of: Callable[[float], Array],
    power: float,
    least: float,
    most: float,
    tolerance: float = 1e-11,
) -> float:
    """Return the smallest size with this power; infinity if `most` is too small.

    Parameters
    ----------
    power_of : callable
        From a size to its power, which grows with it.
    power : float
    least, most : float
        The sizes among which it is searched.
    tolerance : float, default=1e-11
        How much the size may be wrong by, relative to it.
    """

    def excess(log_size: float) -> float:
        return float(power_of(np.exp(log_size))) - power

    low, high = np.log(least), np.log(most)
    if excess(low) >= 0:
        return float(least)
    if excess(high) < 0:
        return float("inf")
    return float(np.exp(optimize.brentq(excess, low, high, xtol=tolerance)))


def detectable(
    standard_error: Array | float,
    df: Array | float,
    power: float,
    alpha: float,
    *,
    known: bool = True,
) -> Array:
    """Return the true gaps that two-sided t-tests find with this power.

    On average over pilots with these degrees of freedom, unless their errors are known.
    """
    error, df = np.broadcast_arrays(np.asarray(standard_error, dtype=float), df)
    usable = (df > 0) & (error > 0)
    degrees, place = np.unique(np.where(usable, df, 1.0), return_inverse=True)
    critical = special.stdtrit(degrees, 1 - alpha / 2)
    if known:
        near = special.nctdtrinc(degrees, 1 - power, np.minimum(critical, _FAR))
        beyond = critical * np.sqrt(special.chdtri(degrees, 1 - power) / degrees)
        sizes = np.where(critical > _FAR, beyond, near)
    else:
        sizes = np.empty(degrees.shape)
        for i, one_df in enumerate(degrees):
            power_of = partial(power_at, 1.0, one_df, alpha=alpha, pilot_df=one_df)
            least, most = _SMALLEST_SIZE * critical[i], _LARGEST_SIZE * critical[i]
            sizes[i] = smallest(power_of, power, least, most)
    return np.where(usable, sizes[place].reshape(df.shape) * error, np.nan)


def power_at(
    standard_error: Array | float,
    df: Array | float,
    gap: float,
    alpha: float,
    pilot_df: Array | float | None = None,
) -> Array:
    """Return the chances that two-sided t-tests find this true gap, on its side.

    With degrees of freedom of the pilots whose errors these are, on average over them.
    """
    df = np.asarray(df, dtype=float)
    usable = (df > 0) & (np.asarray(standard_error) > 0)
    known = np.where(df > 0, df, 1.0)
    critical = special.stdtrit(known, 1 - alpha / 2)
    size = np.divide(gap, standard_error, out=np.ones(df.shape), where=usable)
    if pilot_df is None:
        chance = 1 - _at_most(known, size, critical)
    else:
        spread = np.sqrt(special.chdtri(known[..., None], _LEVELS) / known[..., None])
        pilots = np.where(usable, pilot_df, 1.0)[..., None]
        reached = critical[..., None] * spread
        chance = _at_most(pilots, reached, size[..., None]) @ _WEIGHTS
    return np.where(usable, np.clip(chance, 0.0, 1.0), np.nan)


def _at_most(df: Array, noncentrality: Array, value: Array) -> Array:
    """Return the chances that Student's t of this noncentrality is at most a value.

    SciPy takes long where it is large, and that is then the error alone.
    """
    far = noncentrality > _FAR
    near = special.nctdtr(df, np.where(far, 0.0, noncentrality), value)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        beyond = special.chdtrc(df, df * np.square(noncentrality / value))
    # Where a gap is far beyond the critical value SciPy has no number for 0.
    return np.asarray(np.nan_to_num(np.where(far, beyond, near)))


def tested(result: GroupEstimates) -> GroupEstimates:
    """Return the result itself, or its difference from the rest, to be tested by t."""
    if result.metric.test_method != "t":
        raise ValueError(
            f"{result.name} is tested by permutation, which has no power formula."
        )
    return result if result.fair_value is not None else result.against_rest()


def keeps_promise(name: str, sums: ClusterSums, finalize: Finalize) -> Array:
    """Return which groups of a pilot can promise power, (G,), and warn of the others.

    Their error says too little of that of other data.
    """
    df, n_effective = degrees_of_freedom(sums, finalize)
    few, uneven = doubts(sums, finalize, df, n_effective)
    names, unit = [fmt.label(group) for group in sums.groups], f"{sums.kind}s"
    small = [f"{names[i]} ({n_effective[i]:.1f})" for i in np.flatnonzero(few)]
    extreme = [names[i] for i in np.flatnonzero(uneven)]
    for groups, why in (
        (small, f"the pilot has fewer than {ENOUGH} effective {unit}"),
        (extreme, f"a few {unit} make most of the error of the pilot"),
    ):
        if groups:
            warn_user(
                f"The power of {name} cannot be promised where {why}: in "
                f"{fmt.some(groups)}. Where such pilots promised 80%, 67% to 87% were "
                "kept; a larger pilot can tell.",
                SmallSampleWarning,
            )
    return ~(few | uneven)


def doubts(
    sums: ClusterSums, finalize: Finalize, df: Array, n_effective: Array
) -> tuple[Array, Array]:
    """Return the groups with few effective clusters, and those of uneven errors.

    An error is uneven if few extreme values make it: ``Σ u⁴ / (Σ u²)²`` over what
    clusters add to the error is more than one in ten, and 1.5 times what it is of
    normal values with these degrees of freedom, ``3 / (df + 2)``.
    """
    few = (n_effective < ENOUGH - 1e-9) & ~sums.undefined(finalize)
    share = sums.concentration(finalize)
    uneven = (share > 1 / _FEW_BEHIND) & (share > 1.5 * 3 / (df + 2))
    return few, uneven & ~few


def largest_distance(result: GroupEstimates) -> float:
    """Return the largest distance from fair that there can be; infinity if unknown."""
    if not result.metric.share:
        return float("inf")
    fair = 0.0 if result.fair_value is None else result.fair_value
    return max(fair, 1 - fair)


def n_tests(result: GroupEstimates) -> int:
    """Return the number of groups with a test; two that mirror each other are one."""
    known = np.flatnonzero(result.standard_error > 0)
    if known.size == len(result.groups) == 2:
        a, b = result.estimate - (result.fair_value or 0.0)
        if np.isclose(a, -b, rtol=1e-6, atol=0):
            return 1
    return max(1, known.size)
