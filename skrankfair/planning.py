"""How much data a gap needs, with a pilot or without one.

A plan has standard errors from a few numbers, before any data are collected; a curve
shows how the chance to find a gap grows with the data.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ._estimates import formatting as fmt
from ._estimates.arrays import ReadOnlyArrays
from ._estimates.estimates import Estimate, correlation_of
from ._estimates.group_estimates import GroupEstimates
from ._estimates.power import (
    LEAST_ALPHA,
    MOST_DATA,
    PILOT_ERRORS,
    PlannedTests,
    check_design,
    detectable,
    smallest,
)
from ._estimates.scales import DifferenceScale, ShareScale, errors_of_tests
from ._inputs.groups import encode, stable_order
from ._inputs.validation import (
    Array,
    as_numbers,
    check_choice,
    check_given,
    check_number,
    generator,
)

if TYPE_CHECKING:
    from .display._curves import PowerCurveDisplay

__all__ = ["draw_pairs", "plan_pairs", "plan_rates", "power_curve"]

# A rate or share closer to 0 or 1 has a variance that is only rounding.
_RAREST = 1e-12
# The fewest clusters of a test, with one degree of freedom.
_LEAST = 3.0
# Degrees of freedom that are as good as infinitely many.
_MANY = 1e6
# The number of points of a curve by default, and the power at its end.
_POINTS, _LARGEST = 40, 0.99


@dataclass(frozen=True, eq=False)
class Plan(PlannedTests, ReadOnlyArrays):
    """The error of a difference between a group and the rest, by number of clusters.

    Made by `plan_rates` and `plan_pairs`. It knows no data: where there is a pilot, its
    result has the same methods and rests on fewer assumptions.

    Attributes
    ----------
    name : str
        What is compared.
    variance : ndarray of shape (2,)
        The variances of the values of the group and of the rest, times the number of
        clusters.
    covariance : float
        Their covariance, times the number of clusters.
    effective : ndarray of shape (2,)
        Effective clusters with data of the group, and of the rest, per cluster.
    n_tests : int
        Number of tests, by which the level is divided.
    tested : float
        The error that the test takes, in units of the standard error.

    See Also
    --------
    skrankfair.metrics.GroupEstimates.required : The same from a pilot.
    """

    name: str
    variance: Array
    covariance: float
    effective: Array
    n_tests: int = 1
    tested: float = 1.0

    def standard_error(self, n_clusters: float) -> float:
        """Return the standard error of the difference.

        Parameters
        ----------
        n_clusters : float

        Returns
        -------
        float
        """
        check_number(n_clusters, "n_clusters", 1, np.inf)
        total = max(self.variance.sum() - 2 * self.covariance, 0.0)
        return float(np.sqrt(total / n_clusters))

    def df(self, n_clusters: float) -> float:
        """Return the degrees of freedom, by Satterthwaite's approximation.

        Parameters
        ----------
        n_clusters : float

        Returns
        -------
        float
            At least 1, and at most ``n_clusters - 1``.
        """
        check_number(n_clusters, "n_clusters", 0, np.inf)
        uncertain = self.variance**2 / np.maximum(self.effective * n_clusters - 1, 1e-9)
        total = self.variance.sum() ** 2
        df = total / uncertain.sum() if total > 0 else 1.0
        return float(np.clip(df, 1.0, max(1.0, n_clusters - 1)))

    def _errors(self, n_clusters: Any) -> tuple[float, float]:
        """Return the standard error and its degrees of freedom."""
        return self.standard_error(float(n_clusters)), self.df(float(n_clusters))

    def minimum_detectable(
        self, n_clusters: float, power: float = 0.8, alpha: float = 0.05
    ) -> float:
        """Return the smallest true difference that a number of clusters finds.

        Parameters
        ----------
        n_clusters : float
            Independent units, such as users.
        power : float, default=0.8
            Chance that the two-sided t-test finds it.
        alpha : float, default=0.05
            Level of the test, divided by `n_tests`.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            Unless ``0 < alpha < power < 1``, and for fewer than three clusters.
        """
        check_design(power, alpha)
        check_number(n_clusters, "n_clusters", _LEAST, MOST_DATA)
        errors, level = self._errors(n_clusters), alpha / self.n_tests
        return float(detectable(*errors, power, level, tested=self.tested))

    def required(self, gap: float, power: float = 0.8, alpha: float = 0.05) -> float:
        """Return the number of clusters that finds a gap.

        Parameters
        ----------
        gap : float
            The true difference that shall be found, in units of the metric.
        power : float, default=0.8
            Chance that the two-sided t-test finds it.
        alpha : float, default=0.05
            Level of the test, divided by `n_tests`.

        Returns
        -------
        float
            A whole number, or infinity.

        Raises
        ------
        ValueError
            Unless ``0 < gap <= 1``, as of two shares, and ``0 < alpha < power < 1``.
        """
        self.check_gap(gap)
        least = float(self._needed(gap, power, alpha, _LEAST, MOST_DATA))
        return float(np.ceil(least - 1e-6))

    def __repr__(self) -> str:
        """Return the comparison, and the gaps that some numbers of clusters find."""
        gaps = ", ".join(
            f"{self.minimum_detectable(n):.2g} with {n:,}" for n in (100, 1_000, 10_000)
        )
        return f"{self.name}: finds gaps of {gaps} clusters (power 0.8)"


def plan_rates(
    rate: float | tuple[float, float],
    *,
    share: float,
    n_items: int = 1,
    queries_per_cluster: float = 1,
    correlation: float = 0.0,
    common: float = 0.0,
    groups_of: str = "items",
    n_tests: int = 1,
) -> Plan:
    """Plan to compare the rates of a group and of the rest.

    Rates are means of 0 and 1, such as the selection rate or the true positive rate
    (then of the items with a good outcome).

    Parameters
    ----------
    rate : float or tuple of float
        The rate that is expected, in (0, 1); or that of the group and that of the rest.
    share : float
        Share of the group among items, or among clusters, in (0, 1).
    n_items : int, default=1
        Number of items per query.
    queries_per_cluster : float, default=1
        Number of queries of each independent unit, such as a user.
    correlation : float, default=0.0
        Correlation of two items of the same cluster and the same group (the
        intra-cluster correlation), in [0, 1].
    common : float, default=0.0
        Share of the correlation that two items of the same cluster and different groups
        have too, in [0, 1]. 0 is cautious: an effect of a cluster on both groups alike
        cancels in the difference.
    groups_of : {"items", "clusters"}, default="items"
        Whether items of both groups are in a cluster (the sellers that a user sees), or
        whole clusters are of a group (the users themselves).
    n_tests : int, default=1
        Number of groups that are tested, by which the level is divided.

    Returns
    -------
    Plan

    Raises
    ------
    ValueError
        For a number out of its range.

    Notes
    -----
    With m items per cluster, each of the group with probability π, the variance of the
    mean of the group is ``p (1 - p) (1 + (m - 1) π ρ) / (Q m π)`` for Q clusters, and
    the covariance with the mean of the rest ``ρ c σ σ' (m - 1) / (Q m)``. Of whole
    clusters it is ``p (1 - p) (1 + (m - 1) ρ) / (Q π m)``, with the usual design effect
    (Kish 1965).

    Where the two rates differ, the test takes the standard error that equal rates would
    have, and the plan multiplies the critical value by the ratio of this error to that
    of the estimate. The test is that of results, whose intervals of rates are symmetric
    on the logit scale. The ratio is that of many rows: for a rate below 1% or above 99%
    the plan has two to three times the rows that suffice. With fewer than twelve
    clusters of a group it keeps 60% to 77% of a promised 80%.

    References
    ----------
    Kish, L. (1965). "Survey Sampling". Wiley.

    Examples
    --------
    >>> from skrankfair.planning import plan_rates
    >>> plan = plan_rates(0.3, share=0.2, n_items=10, correlation=0.05)
    >>> plan.required(gap=0.02)
    2949.0
    """
    both_rates = rate if isinstance(rate, tuple | list) else (rate, rate)
    if len(both_rates) != 2:
        raise ValueError(f"rate must be one number or two; got {rate!r}.")
    for value in both_rates:
        check_number(value, "rate", _RAREST, 1 - _RAREST)
    _check_common(share, n_items, queries_per_cluster, correlation, n_tests)
    check_number(common, "common", 0, 1)
    check_choice(groups_of, "groups_of", ("items", "clusters"))
    m, shares = n_items * queries_per_cluster, np.array([share, 1 - share])
    rates = np.array(both_rates, dtype=float)
    spread = rates * (1 - rates)
    if groups_of == "clusters":
        variance = spread * (1 + (m - 1) * correlation) / (shares * m)
        covariance, effective = 0.0, shares
    else:
        variance = spread * (1 + (m - 1) * shares * correlation) / (m * shares)
        covariance = float(correlation * common * np.sqrt(spread.prod()) * (m - 1) / m)
        effective = m * shares / (1 + (m - 1) * shares)
    first, second = (
        ShareScale(*map(np.asarray, (*side, _MANY, False)))
        for side in zip(rates, np.sqrt(variance), effective, strict=True)
    )
    error = np.sqrt(max(variance.sum() - 2 * covariance, 0.0))
    sides = first, second, correlation_of(np.asarray(covariance), *variance)
    gap = DifferenceScale(-np.diff(rates), error, *sides)
    tested = float(errors_of_tests(gap, 0.0, first.side_df, logarithm=False)[0])
    name = "rate of the group minus that of the rest"
    return Plan(name, variance, covariance, effective, n_tests, tested)


def plan_pairs(
    accuracy: float,
    *,
    rate: float,
    share: float,
    n_items: int,
    queries_per_cluster: float = 1,
    correlation: float = 0.0,
    n_tests: int = 1,
) -> Plan:
    """Plan to compare the inter-group accuracies of a group and of the rest.

    Parameters
    ----------
    accuracy : float
        The share of pairs in the right order that is expected, in (0, 1).
    rate : float
        Share of the items with a good outcome, in (0, 1).
    share : float
        Share of the group among items, in (0, 1).
    n_items : int
        Number of items per query.
    queries_per_cluster : float, default=1
        Number of queries of each independent unit, such as a user.
    correlation : float, default=0.0
        Correlation of the accuracies of two queries of the same cluster (the
        intra-cluster correlation), in [0, 1].
    n_tests : int, default=1
        Number of groups that are tested, by which the level is divided.

    Returns
    -------
    Plan

    Raises
    ------
    ValueError
        For a number out of its range.

    See Also
    --------
    draw_pairs : Pairs for a randomised experiment, ``n_items=2``.

    Notes
    -----
    Two pairs that share an item are correlated. For scores with exponential tails the
    formulas of Hanley and McNeil (1982) need the accuracy alone. With n items, each of
    which is good and of the group with probability π, or bad and of the rest with
    probability π', the variance of a query is ``(A (1 - A) + (n - 2) (π (Q1 - A²) + π'
    (Q2 - A²))) / (n (n - 1) π π')``, where ``Q1 = A / (2 - A)`` and ``Q2 = 2 A² / (1 +
    A)``. The pairs of the group and those of the rest share no item.

    References
    ----------
    Hanley, J. A. and McNeil, B. J. (1982). "The Meaning and Use of the Area under a
    Receiver Operating Characteristic (ROC) Curve". Radiology 143(1).

    Examples
    --------
    >>> from skrankfair.planning import plan_pairs
    >>> plan = plan_pairs(0.7, rate=0.2, share=0.3, n_items=20, correlation=0.1)
    >>> round(plan.minimum_detectable(n_clusters=1000), 3)
    0.034
    """
    check_number(accuracy, "accuracy", _RAREST, 1 - _RAREST)
    check_number(rate, "rate", _RAREST, 1 - _RAREST)
    _check_common(share, n_items, queries_per_cluster, correlation, n_tests)
    check_number(n_items, "n_items", 2, MOST_DATA, integer=True)
    n, shares = n_items, np.array([share, 1 - share])
    good, bad = shares * rate, (1 - shares) * (1 - rate)
    square = accuracy**2
    share_bad = accuracy / (2 - accuracy) - square  # of pairs that share a bad item
    share_good = 2 * square / (1 + accuracy) - square
    pairs = n * (n - 1) * good * bad
    spread = accuracy - square + (n - 2) * (good * share_bad + bad * share_good)
    queries = queries_per_cluster
    variance = spread / pairs * (1 + (queries - 1) * correlation) / queries
    # The number of pairs of a query, squared, on average.
    squared = pairs * (1 + (n - 2) * (good + bad) + (n - 2) * (n - 3) * good * bad)
    effective = queries * pairs**2 / (squared + (queries - 1) * pairs**2)
    name = "accuracy of the group minus that of the rest"
    return Plan(name, variance, 0.0, effective, n_tests)


@dataclass(frozen=True, eq=False)
class DrawnPairs(ReadOnlyArrays):
    """Pairs of items for an experiment, the result of `draw_pairs`.

    Attributes
    ----------
    rows : ndarray of shape (2 m,), int
        Row numbers of the candidates, the two of a pair after each other.
    qid : ndarray of shape (2 m,)
        The query of each.
    slot : ndarray of shape (2 m,), int
        0 for the item to show in the upper place of the two, and 1 for the lower.
    sample_weight : ndarray of shape (2 m,)
        How many pairs the query has, of which this one was drawn. Results with these
        weights are, on average, those of all pairs; without them each query counts
        once.
    """

    rows: Array
    qid: Array
    slot: Array
    sample_weight: Array


def draw_pairs(
    qid: Any,
    *,
    n_queries: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> DrawnPairs:
    """Draw two items of each query, in random order, for a randomised experiment.

    Shown in two places next to each other, the items of a pair have the same chance to
    be seen first: which one is clicked shows a preference that neither the ranker nor
    the position has influenced.

    Parameters
    ----------
    qid : array-like of shape (n,)
        Query of each row: items are compared and ranked only within one query. The rows
        are the candidates, the items that are relevant to the query.
    n_queries : int or None, default=None
        Number of queries of the experiment, drawn without replacement from those of at
        least two items; None takes all of them.
    random_state : int, Generator or None, default=None
        Seed or generator of the random numbers. None draws anew in each call.

    Returns
    -------
    DrawnPairs
        Its columns go into `skrankfair.metrics.pairwise_accuracy`, with what was
        clicked.

    Raises
    ------
    ValueError
        If queries are missing, or fewer than `n_queries` have two items.

    See Also
    --------
    plan_pairs : How many queries an experiment needs, with ``n_items=2``.

    References
    ----------
    Beutel, A., Chen, J., Doshi, T., et al. (2019). "Fairness in Recommendation Ranking
    through Pairwise Comparisons". KDD. §3.4.

    Examples
    --------
    >>> import numpy as np
    >>> from skrankfair.metrics import pairwise_accuracy
    >>> from skrankfair.planning import draw_pairs
    >>> rng = np.random.default_rng(0)
    >>> query = np.repeat(np.arange(500), 10)
    >>> group, score = rng.choice(["f", "m"], query.size), rng.normal(size=query.size)
    >>> pairs = draw_pairs(query, random_state=0)
    >>> clicked = rng.random(pairs.rows.size) < 0.3  # of the items that were shown
    >>> r = pairwise_accuracy(
    ...     clicked,
    ...     score[pairs.rows],
    ...     sensitive_features=group[pairs.rows],
    ...     qid=pairs.qid,
    ... )
    >>> r.support
    array([103., 127.])
    """
    check_given(qid=qid)
    codes = encode(qid, "qid")
    order, size = stable_order(codes.codes), np.bincount(codes.codes)
    start, rng = np.cumsum(size) - size, generator(random_state)
    chosen = rng.permutation(np.flatnonzero(size > 1))
    check_number(n_queries, "n_queries", 1, np.inf, integer=True, optional=True)
    if chosen.size < (n_queries or 1):
        raise ValueError(
            f"qid must have {n_queries or 1} queries of two or more items; got "
            f"{chosen.size}."
        )
    chosen = np.sort(chosen[:n_queries])
    size, start = size[chosen], start[chosen]
    first = rng.integers(size)
    second = (first + rng.integers(1, size)) % size
    rows = order[np.stack([start + first, start + second], axis=1)].ravel()
    slot, weight = np.tile([0, 1], chosen.size), np.repeat(size * (size - 1) / 2, 2)
    return DrawnPairs(rows, codes.of_rows[rows], slot, weight)


def _check_common(
    share: float, n_items: int, queries: float, correlation: float, n_tests: int
) -> None:
    """Raise a ValueError if a parameter of both kinds of plans is out of range."""
    check_number(share, "share", _RAREST, 1 - _RAREST)
    check_number(n_items, "n_items", 1, MOST_DATA, integer=True)
    check_number(queries, "queries_per_cluster", 1, MOST_DATA)
    check_number(correlation, "correlation", 0, 1)
    check_number(n_tests, "n_tests", 1, np.inf, integer=True)


@dataclass(frozen=True, eq=False)
class PowerCurve(ReadOnlyArrays):
    """The power of tests by number of clusters, the result of `power_curve`.

    Attributes
    ----------
    groups : tuple of hashable, length G
        Groups, or the name of a contrast or plan.
    gaps : ndarray of shape (K,)
        The true gaps.
    n_clusters : ndarray of shape (N,)
    power : ndarray of shape (G, K, N)
        NaN for a group whose error the pilot does not tell.
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
        group, gap, point = (index.ravel() for index in np.indices(self.power.shape))
        labels = pd.Series(list(self.groups), dtype=object).to_numpy()
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
        from .display._curves import PowerCurveDisplay

        return PowerCurveDisplay(self).plot(ax=ax, **kwargs)

    def __repr__(self) -> str:
        """Return a small table: the power at some numbers of clusters."""
        some = np.unique(np.linspace(0, self.n_clusters.size - 1, 6).astype(int))
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
        Numbers of clusters in all, at least 3. None takes up to 40, until the last of
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
        For a gap that is not positive (of shares also above 1) or a number of clusters
        below 3, for a level outside (0, 1), for a metric that is not tested by t, for a
        pilot without any error, and for an unknown `pilot_error`.

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
    gaps = as_numbers(np.atleast_1d(gap), "gap").copy()
    names: tuple[Hashable, ...]
    source: PlannedTests
    if isinstance(pilot, Plan):
        names, source, sizes, n_pilot = (pilot.name,), pilot, gaps, np.nan
    elif isinstance(pilot, GroupEstimates | Estimate):
        source = data = pilot.as_pilot(pilot_error)
        names, sizes, n_pilot = data.names, data.on_scale(gaps), data.n_clusters
        if not (data.standard_error > 0).any():
            raise ValueError("pilot must have an error for some group; it has none.")
    else:
        raise ValueError(
            f"pilot must be a result, a contrast or a plan; got {type(pilot).__name__}."
        )
    for value in gaps.tolist():
        source.check_gap(value)
    if n_clusters is None:
        ends = smallest(
            lambda n: source.power(n, sizes.min(), alpha), _LARGEST, 10, MOST_DATA
        )
        last = min(np.nanmax(np.ceil(ends)), MOST_DATA)
        counts = np.unique(np.geomspace(3, last, _POINTS).round())
    else:
        counts = as_numbers(n_clusters, "n_clusters").copy()
        if not (counts >= 3).all():
            raise ValueError(f"n_clusters must be at least 3; got {counts.min():g}.")
    power = np.empty((len(names), gaps.size, counts.size))
    for i, size in enumerate(sizes.tolist()):
        for j, count in enumerate(counts.tolist()):
            power[:, i, j] = source.power(count, size, alpha)
    return PowerCurve(names, gaps, counts, power, alpha, n_pilot)
