"""How the chance to find a gap grows with the data."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.estimates import Estimate
from .._estimates.group_estimates import GroupEstimates
from .._estimates.power import LEAST_ALPHA, MOST_DATA, PILOT_ERRORS, Pilot
from .._estimates.read_only import ReadOnlyArrays
from .._inputs.validation import (
    Array,
    as_numbers,
    check_choice,
    check_magnitude,
    check_number,
)
from ._plans import Plan

if TYPE_CHECKING:
    import pandas as pd

    from ..display._curves import PowerCurveDisplay

# Points of a curve by default, and the power it ends at.
_POINTS, _LARGEST = 40, 0.99


@dataclass(frozen=True, eq=False)
class PowerCurve(ReadOnlyArrays):
    """The power of tests by number of clusters: what `power_curve` returns.

    Attributes
    ----------
    groups : tuple of hashable, length G
        Groups, or the name of a contrast or plan.
    gaps : ndarray of shape (K,)
        The true gaps.
    n_clusters : ndarray of shape (N,)
    power : ndarray of shape (G, K, N)
        NaN for a group of whose error the pilot says nothing.
    alpha : float
        The level of the tests, before it is divided by their number.
    pilot : float
        Clusters of the pilot; NaN without one.
    """

    groups: tuple[Hashable, ...]
    gaps: Array
    n_clusters: Array
    power: Array
    alpha: float
    pilot: float

    def to_frame(self) -> pd.DataFrame:
        """Return one row per group, gap and number of clusters.

        Returns
        -------
        DataFrame
            Columns group, gap, n_clusters and power.
        """
        import pandas as pd

        shape = self.power.shape
        group, gap, point = (index.ravel() for index in np.indices(shape))
        labels = np.empty(len(self.groups), dtype=object)
        labels[:] = self.groups
        return pd.DataFrame(
            {
                "group": labels[group],
                "gap": self.gaps[gap],
                "n_clusters": self.n_clusters[point],
                "power": self.power.ravel(),
            }
        )

    def plot(self, ax: Any = None, **kwargs: Any) -> PowerCurveDisplay:
        """Draw the power against the number of clusters.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
        **kwargs : dict
            Passed to `PowerCurveDisplay.plot`.

        Returns
        -------
        PowerCurveDisplay
        """
        from ..display._curves import PowerCurveDisplay

        return PowerCurveDisplay(self).plot(ax=ax, **kwargs)

    def __repr__(self) -> str:
        """Return a small table: the power at some numbers of clusters."""
        some = np.unique(
            np.linspace(0, self.n_clusters.size - 1, 6).round().astype(int)
        )
        header = ["group", "gap", *(fmt.count(self.n_clusters[i]) for i in some)]
        rows = [
            [fmt.label(group), f"{gap:g}", *(fmt.number(p, 2) for p in power[some])]
            for group, by_gap in zip(self.groups, self.power, strict=True)
            for gap, power in zip(self.gaps, by_gap, strict=True)
        ]
        return f"Power by number of clusters:\n{fmt.text_table(header, rows)}"


def power_curve(
    pilot: GroupEstimates | Estimate | Plan,
    gap: float | Sequence[float],
    *,
    n_clusters: Any = None,
    alpha: float = 0.05,
    pilot_error: str = "estimated",
) -> PowerCurve:
    """Return the power to find a gap by the number of clusters.

    Parameters
    ----------
    pilot : GroupEstimates, Estimate or Plan
        A result or contrast of data of the same kind, or a plan without data.
    gap : float or sequence of float
        True distance from fair (or true difference, for a contrast or plan), in units
        of the metric; of a contrast of kind "ratio" a factor such as 0.8.
    n_clusters : array-like of shape (N,) or None, default=None
        Numbers of clusters in all, at least 3. None takes 40, up to where the last of
        the curves has a power of 0.99.
    alpha : float, default=0.05
        Level of the tests, divided by the number of groups that can be tested.
    pilot_error : {"estimated", "known"}, default="estimated"
        Whether the power is the mean over pilots like this one, whose standard errors
        differ by chance, or that of a test whose true error is this one, as in a
        textbook's formula. A plan has no pilot.

    Returns
    -------
    PowerCurve

    Raises
    ------
    ValueError
        For a gap that is not positive or a number of clusters below 3, for a level
        outside (0, 1), for a metric that is not tested by t, for a pilot without any
        error, and for an unknown `pilot_error`.

    Warns
    -----
    SmallSampleWarning
        Where a pilot cannot promise power: a group with fewer than 12 effective
        clusters, or an error that is mostly of a few clusters with extreme values
        (not with ``pilot_error="known"``).

    See Also
    --------
    skrankfair.metrics.GroupEstimates.required : Where the curve has one power.

    Examples
    --------
    >>> from skrankfair.planning import plan_rates, power_curve
    >>> plan = plan_rates(0.3, share=0.2, n_items=10, correlation=0.05)
    >>> curve = power_curve(plan, gap=[0.02, 0.05], n_clusters=[100, 400, 2949])
    >>> curve.power[0].round(2)
    array([[0.07, 0.18, 0.8 ],
           [0.25, 0.73, 1.  ]])
    """
    check_number(alpha, "alpha", LEAST_ALPHA, 1, inclusive=(True, False))
    check_choice(pilot_error, "pilot_error", PILOT_ERRORS)
    gaps = np.atleast_1d(as_numbers(np.atleast_1d(gap), "gap")).copy()
    check_magnitude(gap=gaps)
    names: tuple[Hashable, ...]
    source: Plan | Pilot
    if isinstance(pilot, Plan):
        names, source, sizes, n_pilot = (pilot.name,), pilot, gaps, np.nan
    elif isinstance(pilot, GroupEstimates | Estimate):
        source = pilot.as_pilot(pilot_error)
        names, sizes, n_pilot = source.names, source.on_scale(gaps), source.n_clusters
        if not (source.standard_error > 0).any() or not n_pilot > 0:
            raise ValueError("pilot must have an error for some group; it has none.")
    else:
        raise ValueError(
            f"pilot must be a result, a contrast or a plan; got {type(pilot).__name__}."
        )
    if not (gaps > 0).all() or not (sizes > 0).all():
        raise ValueError(f"gap must be positive (a ratio other than 1); got {gap!r}.")
    if n_clusters is None:
        largest = 10.0
        for _ in range(40):
            if np.nanmin(source.power(largest, sizes.min(), alpha)) >= _LARGEST:
                break
            largest *= 2
        counts = np.geomspace(3, min(largest, MOST_DATA), _POINTS)
        counts = np.unique(counts.round())
    else:
        counts = as_numbers(n_clusters, "n_clusters").copy()
        if not (counts >= 3).all():
            raise ValueError(f"n_clusters must be at least 3; got {counts.min():g}.")
    power = np.empty((len(names), gaps.size, counts.size))
    for i, size in enumerate(sizes.tolist()):
        for j, count in enumerate(counts.tolist()):
            power[:, i, j] = source.power(count, size, alpha)
    return PowerCurve(names, gaps, counts, power, alpha, n_pilot)
