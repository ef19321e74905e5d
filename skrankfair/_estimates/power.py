"""How large a gap data of this kind can show, and how much data a gap needs.

A pilot says how much one cluster of each group tells: its standard error and degrees of
freedom. With f times as many clusters of the same kind the error is ``1 / sqrt(f)`` of
it and there are f times as many degrees of freedom, so unequal groups, the correlation
within clusters and unequal clusters are all in it (df degrees of freedom count as
``df + 1`` equal clusters). Power is that of the t-test, from the noncentral t
distribution.

The error of a pilot is itself an estimate: a pilot that happens to see a small one asks
for too little. So the power that is promised is the mean over pilots like this one.
With s² and s'² independent chi-square variables over their degrees of freedom, those of
the test and of the pilot, it is ``P(Z + s' gap / error > s t)``, the mean over s of a
noncentral t distribution with the degrees of freedom of the pilot (Julious and Owen
2006, whose test knows its own error: s = 1).

A test of shares takes its error where they are alike, and not where they are: of a
group of which half as many are selected, the error at the estimate is smaller. The
critical value is then as many times larger (`scales.errors_of_tests`).

Julious, S. A. and Owen, R. J. (2006). "Sample size calculations for clinical studies
allowing for uncertainty about the variance". Pharmaceutical Statistics 5(1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from .._inputs.validation import Array, as_numbers, check_number, warn_user
from ..exceptions import SmallSampleWarning
from . import formatting as fmt
from .arrays import ReadOnlyArrays
from .finalize import Finalize
from .leverage import degrees_of_freedom, uneven_errors
from .scales import crossing, quantile_of
from .sums import ClusterSums

#: Whether the power is the mean over pilots, or takes the error of the pilot as true.
PILOT_ERRORS = ("estimated", "known")
#: A pilot promises no power if it has fewer effective clusters than this, or if few
#: extreme clusters make most of its error: see docs/decide.md.
ENOUGH = 12
#: The most clusters, and times the data of the pilot, that are asked for.
MOST_DATA = 1e12
#: Below this level rounding decides the critical value, and beyond this gap squares
#: overflow.
LEAST_ALPHA, LARGEST_GAP = 1e-9, 1e60
#: With a larger noncentrality only the error of the standard error matters.
_FAR = 1e3
# Gaps are searched between these, in units of the critical value of the test.
_SMALLEST_SIZE, _LARGEST_SIZE = 1e-6, 1e12
#: Plans for more weeks than this, ten years, are no plans.
_MOST_WEEKS = 520
# Halvings that leave less than 1e-4 of a range of sizes.
_HALVINGS = 20
# Levels and weights of the integral over the error of the test: accurate to 1e-4.
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
        Clusters in all, with groups and queries in the shares of the pilot. With
        two-way errors they are users, and items grow by the same factor.
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
        names = ("factor", "n_clusters", "n_effective", "promised")
        columns = {name: getattr(self, name) for name in names}
        return fmt.groups_frame(self.groups, columns)

    def weeks(
        self, per_week: float, returning: float = 0.0, correlation: Any = 1.0
    ) -> Array:
        """Return the number of weeks after which there are enough clusters.

        Parameters
        ----------
        per_week : float
            Clusters of a week, such as users.
        returning : float, default=0.0
            Share of the clusters of a week that were there in an earlier one.
        correlation : float or array-like of shape (G,), default=1.0
            Correlation of two weeks of one cluster. At 1 those who return add nothing.

        Returns
        -------
        ndarray of shape (G,)
            Infinity where even ten years are too short, NaN where the size is.

        Raises
        ------
        ValueError
            For numbers out of range.

        Notes
        -----
        Taken is the worst case, that the same clusters return in every week and so
        weigh the most. The N w weeks of clusters in w weeks then count as
        ``N w / (1 + returning (w - 1) correlation)`` clusters of one week, by Kish's
        design effect with the mean number of weeks that the cluster of a row has. At
        most this is ``N / (returning · correlation)``, so that at a correlation of 1 no
        time may be long enough: estimate it from a log of several weeks.

        References
        ----------
        Kish, L. (1965). "Survey Sampling". Wiley.

        Examples
        --------
        >>> from skrankfair.metrics import selection_rate
        >>> chosen, sex = [0, 1, 1, 0, 1, 1] * 50, ["f", "f", "m"] * 100
        >>> pilot = selection_rate(None, chosen, sensitive_features=sex)
        >>> size = pilot.required(gap=0.05)
        >>> size.weeks(per_week=2000)
        array([5., 5.])
        >>> size.weeks(per_week=2000, returning=0.5, correlation=0.3)
        array([9., 9.])
        """
        check_number(per_week, "per_week", 0, MOST_DATA, inclusive=(False, True))
        check_number(returning, "returning", 0, 1)
        shared = as_numbers(np.atleast_1d(correlation), "correlation")
        if not ((shared >= 0) & (shared <= 1)).all():
            raise ValueError(f"correlation must be within [0, 1]; got {correlation!r}.")
        week = np.arange(1.0, _MOST_WEEKS + 1)
        counted = per_week * week / (1 + returning * (week - 1) * shared[:, None])
        enough = counted >= self.n_clusters[:, None]
        weeks = np.where(enough.any(axis=1), week[enough.argmax(axis=1)], np.inf)
        return np.where(np.isnan(self.n_clusters), np.nan, weeks)

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


class PlannedTests(ABC):
    """Tests whose errors follow from the number of clusters."""

    n_tests: int
    #: Whether gaps are ratios; and the largest that there can be, which is 1 of shares.
    ratio: bool = False
    largest: float = 1.0
    #: Degrees of freedom of the pilot that the errors are from; None if they are known.
    pilot_df: Array | None = None
    #: The error that the test takes, in units of the error of the estimate.
    tested: Any = 1.0

    @abstractmethod
    def _errors(self, n_clusters: Any) -> tuple[Any, Any]:
        """Return standard errors and degrees of freedom."""

    def power(self, n_clusters: Any, gap: Any, alpha: float) -> Array:
        """Return the chance that a number of clusters finds a true gap.

        Parameters
        ----------
        n_clusters : float
        gap : float
            The true gap, on the scale of the errors.
        alpha : float
            Level of the test, divided by `n_tests`.

        Returns
        -------
        ndarray
        """
        check_number(alpha, "alpha", LEAST_ALPHA, 1, inclusive=(True, False))
        error, df = self._errors(n_clusters)
        level = alpha / self.n_tests
        return power_at(error, df, gap, level, self.pilot_df, self.tested)

    def check_gap(self, gap: Any) -> None:
        """Raise a ValueError for a gap that there cannot be."""
        name = "gap of shares" if self.largest == 1 else "gap"
        check_number(gap, name, 0, self.largest, inclusive=(False, True))
        if self.ratio and gap == 1:
            raise ValueError("gap must be a ratio other than 1; got 1.")

    def _needed(
        self, gap: float, power: float, alpha: float, least: Any, most: float
    ) -> Array:
        """Return the numbers of clusters, from the least to the most, to find a gap."""
        check_design(power, alpha)
        return smallest(lambda n: self.power(n, gap, alpha), power, least, most)


@dataclass(frozen=True, eq=False)
class Pilot(PlannedTests):
    """A pilot: the errors of data, from which plans for more such data are made.

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
    largest : float
        The largest gap.
    pilot_df : ndarray of shape (m,) or None
        None if the errors count as the true ones.
    tested : ndarray of shape (m,)
        The errors that the tests take, in units of the standard errors.
    """

    names: tuple[Hashable, ...]
    standard_error: Array
    df: Array
    n_effective: Array
    promised: Array
    n_clusters: float
    n_tests: int
    ratio: bool
    largest: float
    pilot_df: Array | None
    tested: Array

    def on_scale(self, gaps: Array | float) -> Array:
        """Return gaps on the scale of the errors."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.abs(np.log(gaps)) if self.ratio else gaps)

    def _errors(self, n_clusters: Any) -> tuple[Array, Array]:
        """Return standard errors and degrees of freedom, of which a test has one."""
        factor = n_clusters / self.n_clusters
        df = np.where(self.df > 0, factor * (self.df + 1) - 1, np.nan)
        return self.standard_error / np.sqrt(factor), np.maximum(1, df)

    def detectable(self, power: float, alpha: float) -> Array:
        """Return the true gaps that data like these find, shape (m,)."""
        check_design(power, alpha)
        level = alpha / self.n_tests
        known = self.pilot_df, self.tested
        gap = detectable(self.standard_error, self.df, power, level, *known)
        with np.errstate(over="ignore"):  # no ratio is large enough
            return np.exp(gap) if self.ratio else gap

    def required(self, gap: float, power: float, alpha: float) -> RequiredSize:
        """Return how many clusters like these find a gap."""
        self.check_gap(gap)
        size = float(self.on_scale(gap))
        least = 2 * self.n_clusters / (np.where(self.df > 0, self.df, np.nan) + 1)
        most = MOST_DATA * self.n_clusters
        n_clusters = self._needed(size, power, alpha, least, most)
        factor = n_clusters / self.n_clusters
        return RequiredSize(
            groups=self.names,
            gap=gap,
            power=power,
            factor=factor,
            n_clusters=np.ceil(n_clusters),
            n_effective=factor * self.n_effective,
            promised=self.promised & ~np.isnan(factor),
        )


class PilotData(ABC):
    """A base of results from which plans for more data of their kind are made."""

    @abstractmethod
    def as_pilot(self, pilot_error: str) -> Pilot:
        """Return the result as a pilot for plans; warn where it can promise little."""

    def required(
        self,
        gap: float,
        power: float = 0.8,
        alpha: float = 0.05,
        pilot_error: str = "estimated",
    ) -> RequiredSize:
        """Return how many clusters like these find a gap, by group or of a contrast.

        These data are the pilot: the shares of the groups, the correlation within
        clusters, their sizes and the errors are taken from it. A gap that these data do
        not show may change the errors: where a small rate rises they grow. For this
        `skrankfair.planning.plan_rates` takes the rates of both sides. With two-way
        errors there are as many times more items as users: more users of the same items
        say no more of other items, and do not find the gap.

        Parameters
        ----------
        gap : float
            The true distance from fair (or the true difference of a contrast) that
            shall be found, in units of the metric; of a ratio, a factor such as 0.8.
        power : float, default=0.8
            Chance that the two-sided t-test finds it.
        alpha : float, default=0.05
            Level of the test, divided by the number of groups that can be tested.
        pilot_error : {"estimated", "known"}, default="estimated"
            Whether the power is the mean over pilots like this one, whose standard
            errors differ by chance, or that of a test whose true error is this one, as
            in a textbook's formula.

        Returns
        -------
        RequiredSize

        Raises
        ------
        ValueError
            For a gap that is not positive (a factor of 1) or, of shares, above 1,
            unless ``0 < alpha < power < 1``, for a metric or contrast that is not
            tested by t, or for an unknown `pilot_error`.

        Warns
        -----
        SmallSampleWarning
            Where a pilot cannot promise power: a group with fewer than 12 effective
            clusters, or an error that is mostly of a few clusters with extreme values.
            Not with ``pilot_error="known"``.
        """
        return self.as_pilot(pilot_error).required(gap, power, alpha)


def check_design(power: float, alpha: float) -> None:
    """Raise a ValueError unless there is power to be had at this level."""
    check_number(alpha, "alpha", LEAST_ALPHA, 1, inclusive=(True, False))
    check_number(power, "power", 0, 1, inclusive=(False, False))
    if power <= alpha:
        raise ValueError(
            "power must be above alpha, the power of a test without data; got power="
            f"{power:g} and alpha={alpha:g}."
        )


def smallest(
    power_of: Callable[[Array], Array], power: float, least: Any, most: Any
) -> Array:
    """Return the smallest sizes with this power; infinity where `most` is too small.

    Parameters
    ----------
    power_of : callable
        From sizes to their power, which grows with them.
    power : float
    least, most : ndarray or float
        The sizes among which each is searched.
    """
    low, high = (end.astype(float) for end in np.broadcast_arrays(least, most))

    def lacking(sizes: Array) -> Array:
        return power - power_of(sizes)

    missing = lacking(high)
    sizes = crossing(lacking, low, high, _HALVINGS)
    sizes = np.where(missing > 0, np.inf, np.where(lacking(low) <= 0, low, sizes))
    return np.where(np.isnan(missing), np.nan, sizes)


def detectable(
    standard_error: Array | float,
    df: Array | float,
    power: float,
    alpha: float,
    pilot_df: Array | float | None = None,
    tested: Array | float = 1.0,
) -> Array:
    """Return the true gaps that two-sided t-tests find with this power.

    If the errors are those of pilots, with `pilot_df` degrees of freedom, it is an
    average over pilots. The tests take `tested` times the error.
    """
    error, critical = np.asarray(standard_error), tested * quantile_of(alpha / 2, df)
    if pilot_df is None:
        near = special.nctdtrinc(df, 1 - power, np.minimum(critical, _FAR))
        beyond = critical * np.sqrt(special.chdtri(df, 1 - power) / df)
        sizes = np.where(critical > _FAR, beyond, near)
    else:
        sizes = smallest(
            lambda size: power_at(1.0, df, size, alpha, pilot_df, tested),
            power,
            _SMALLEST_SIZE * critical,
            _LARGEST_SIZE * critical,
        )
    return np.where(error > 0, sizes * error, np.nan)


def power_at(
    standard_error: Array | float,
    df: Array | float,
    gap: Array | float,
    alpha: float,
    pilot_df: Array | float | None = None,
    tested: Array | float = 1.0,
) -> Array:
    """Return the chances that two-sided t-tests find this true gap, on its side.

    If the errors are those of pilots, with `pilot_df` degrees of freedom, it is an
    average over pilots. The tests take `tested` times the error.
    """
    df, error = np.asarray(df, dtype=float), np.asarray(standard_error, dtype=float)
    usable = (df > 0) & (error > 0)
    df, size = np.where(usable, df, 1.0), np.where(usable, gap, 1.0)
    size = size / np.where(usable, error, 1.0)
    critical = tested * quantile_of(alpha / 2, df)
    if pilot_df is None:
        chance = 1 - _at_most(df, size, critical)
    else:
        spread = np.sqrt(special.chdtri(df[..., None], _LEVELS) / df[..., None])
        pilots = np.where(usable, pilot_df, 1.0)[..., None]
        reached = critical[..., None] * spread
        chance = _at_most(pilots, reached, size[..., None]) @ _WEIGHTS
    return np.where(usable, np.clip(chance, 0.0, 1.0), np.nan)


def _at_most(df: Array, noncentrality: Array, value: Array) -> Array:
    """Return the chances that Student's t of this noncentrality is at most a value.

    SciPy is slow where the noncentrality is large, and the error alone decides then.
    """
    far = noncentrality > _FAR
    near = special.nctdtr(df, np.where(far, 0.0, noncentrality), value)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        beyond = special.chdtrc(df, df * np.square(noncentrality / value))
    # Where a gap is far beyond the critical value SciPy has no number for 0.
    return np.asarray(np.nan_to_num(np.where(far, beyond, near)))


def keeps_promise(name: str, sums: ClusterSums, finalize: Finalize) -> Array:
    """Return which groups of a pilot can promise power, (G,), and warn of the others.

    The error of those others says too little about the error of further data.
    """
    df, n_effective = degrees_of_freedom(sums, finalize)
    few = (n_effective < ENOUGH - 1e-9) & ~sums.undefined(finalize)
    uneven = uneven_errors(sums.tails(finalize)[1], df) & ~few
    names, unit = [fmt.label(group) for group in sums.groups], fmt.units(sums)
    small = [f"{names[i]} ({n_effective[i]:.1f})" for i in np.flatnonzero(few)]
    extreme = [names[i] for i in np.flatnonzero(uneven)]
    for groups, why in (
        (small, f"the pilot has fewer than {ENOUGH} effective {unit}"),
        (extreme, f"a few {unit} make most of the error of the pilot"),
    ):
        if groups:
            warn_user(
                f"The power of {name} cannot be promised where {why}: in "
                f"{fmt.some(groups)}. Where such pilots promised 80%, the power was "
                "68% to 87%; use a larger pilot.",
                SmallSampleWarning,
            )
    return ~(few | uneven)
