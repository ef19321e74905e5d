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

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import optimize, special

from .._inputs.validation import Array, check_choice, check_number
from .._inputs.warn import warn_user
from ..exceptions import SmallSampleWarning
from . import formatting as fmt
from .read_only import ReadOnlyArrays

if TYPE_CHECKING:
    import pandas as pd

    from .finalize import Finalize
    from .group_estimates import GroupEstimates
    from .sums import ClusterSums

#: Pilots of fewer effective clusters promise no power, and those whose error is made of
#: fewer clusters that are no normal values: see docs/decide.md.
ENOUGH = 12
_FEW_BEHIND = 10
#: How many times the data of the pilot are thought of, at most.
MOST_DATA = 1e12
#: Below this level rounding decides the critical value, and beyond this gap squares
#: overflow.
LEAST_ALPHA, LARGEST_GAP = 1e-9, 1e60
#: Beside a noncentrality beyond it the deviate of a normal estimate does not matter.
_FAR = 1e3
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
        import pandas as pd

        index = pd.Index(list(self.groups), name="group", tupleize_cols=False)
        columns = ("factor", "n_clusters", "n_effective", "promised")
        return pd.DataFrame({name: getattr(self, name) for name in columns}, index)

    def __repr__(self) -> str:
        """Return a small table."""
        rows = [
            [
                fmt.label(group),
                fmt.number(self.factor[i], 2),
                fmt.count(self.n_clusters[i]),
                fmt.number(self.n_effective[i], 1),
            ]
            for i, group in enumerate(self.groups)
        ]
        header = ["group", "times the pilot", "clusters", "effective clusters"]
        table = fmt.text_table(header, rows)
        return f"To find {self.gap:g} with power {self.power:g}:\n{table}"


def check_design(power: float, alpha: float, pilot_error: str = "known") -> None:
    """Raise a ValueError unless there is power to be had at this level."""
    check_choice(pilot_error, "pilot_error", ("estimated", "known"))
    check_number(alpha, "alpha", LEAST_ALPHA, 1, inclusive=(True, False))
    check_number(power, "power", 0, 1, inclusive=(False, False))
    if power <= alpha:
        raise ValueError(
            f"power must be above alpha, which a test has without data; got {power:g} "
            f"and {alpha:g}."
        )


def detectable(
    standard_error: Array, df: Array, power: float, alpha: float, *, known: bool = True
) -> Array:
    """Return the true gaps that two-sided t-tests find with this power.

    On average over pilots with these degrees of freedom, unless their errors are known.
    """
    error, df = np.broadcast_arrays(np.asarray(standard_error, dtype=float), df)
    usable = (df > 0) & (error > 0)
    degrees, place = np.unique(np.where(usable, df, 1.0), return_inverse=True)
    critical = special.stdtrit(degrees, 1 - alpha / 2)
    far = critical > _FAR
    size = special.nctdtrinc(degrees, 1 - power, np.where(far, 1.0, critical))
    spread = np.sqrt(special.chdtri(degrees, 1 - power) / degrees)
    size = np.where(far, critical * spread, size)
    if not known:
        size = np.array(
            [_averaged(*pair, power, alpha) for pair in zip(degrees, size, strict=True)]
        )
    return np.where(usable, size[place].reshape(df.shape) * error, np.nan)


def _averaged(df: float, size: float, power: float, alpha: float) -> float:
    """Return the gap, in errors of pilots, that is found on average over them."""
    one, degrees = np.ones(()), np.asarray(df)

    def excess(log_size: float) -> float:
        gap = size * np.exp(log_size)
        return float(power_at(one, degrees, gap, alpha, degrees)) - power

    most = 1.0
    while excess(most) < 0:
        most *= 2
    return float(size * np.exp(optimize.brentq(excess, -20.0, most, xtol=1e-10)))


def power_at(
    standard_error: Array,
    df: Array,
    gap: float,
    alpha: float,
    pilot_df: Array | None = None,
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
        found = 1 - _at_most(known, size, critical)
    else:
        spread = np.sqrt(special.chdtri(known[..., None], _LEVELS) / known[..., None])
        pilots = np.where(usable, pilot_df, 1.0)[..., None]
        reached = critical[..., None] * spread
        found = _at_most(pilots, reached, size[..., None]) @ _WEIGHTS
    return np.where(usable, np.clip(found, 0.0, 1.0), np.nan)


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


def factors(
    standard_error: Array,
    df: Array,
    gap: Array,
    power: float,
    alpha: float,
    *,
    known: bool,
) -> Array:
    """Return how many times the data of pilots find their gaps; NaN without an error.

    Parameters
    ----------
    standard_error, df, gap : ndarray of shape (m,)
    power, alpha : float
    known : bool
        Whether the errors of the pilots count as the true ones.
    """
    return np.array(
        [
            _factor(*pilot, power, alpha, known=known)
            for pilot in zip(
                standard_error.tolist(), df.tolist(), gap.tolist(), strict=True
            )
        ]
    )


def tested(result: GroupEstimates) -> GroupEstimates:
    """Return the result itself, or its difference from the rest, to be tested by t."""
    if result.metric.test_method != "t":
        raise ValueError(
            f"{result.name} is tested by permutation, which has no power formula."
        )
    return result if result.fair_value is not None else result.against_rest()


def promised_by(
    name: str, sums: ClusterSums, finalize: Finalize, df: Array, n_effective: Array
) -> Array:
    """Return which groups a pilot can promise power, (G,), and warn of the others.

    Their error says too little of that of other data.

    Parameters
    ----------
    name : str
        What is planned.
    sums : ClusterSums
        Of the pilot.
    finalize : callable
    df, n_effective : ndarray of shape (G,)
        Degrees of freedom and effective clusters that the errors rest on.
    """
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
    """Return which groups have few effective clusters, and whose error is of few.

    The latter is that of extreme values: where ``Σ u⁴ / (Σ u²)²`` over what clusters
    add to the error is more than one in ten, and 1.5 times what it is of normal values
    with these degrees of freedom, ``3 / (df + 2)``.
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


def grown(df: Array | float, factor: float) -> Array:
    """Return the degrees of freedom of so many times the clusters; at least 1."""
    return np.asarray(np.maximum(1.0, factor * (df + 1) - 1))


def _factor(
    error: float, df: float, gap: float, power: float, alpha: float, *, known: bool
) -> float:
    """Return how many times the data of the pilot find the gap."""
    if not (error > 0 and df > 0):
        return float("nan")
    own = None if known else np.asarray(df)

    def excess(log_factor: float) -> float:
        factor = np.exp(log_factor)
        spread = np.asarray(error / np.sqrt(factor))
        return float(power_at(spread, grown(df, factor), gap, alpha, own)) - power

    # One degree of freedom is the least that a test has.
    least, most = np.log(2 / (df + 1)), np.log(MOST_DATA)
    if excess(least) >= 0:
        return float(np.exp(least))
    if excess(most) < 0:
        return float("inf")
    return float(np.exp(optimize.brentq(excess, least, most, xtol=1e-9)))
