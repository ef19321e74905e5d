"""`matched_pair_curve`: matched pair calibration over a grid of thresholds."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .._estimates import formatting as fmt
from .._estimates.arrays import AddsUp
from .._estimates.group_estimates import GroupEstimates
from .._estimates.scales import ConfidenceInterval, check_level
from .._estimates.simultaneous import simultaneous
from .._inputs.ranking import RankedData, measured
from .._inputs.validation import (
    Array,
    as_numbers,
    check_number,
    collected_warnings,
    warn_user,
)
from ._matched_pair import matched_pair_estimates

if TYPE_CHECKING:
    from ..display._curves import MatchedPairCurveDisplay

_N_POINTS = 20
#: The shares of the possible pairs within the first and the last threshold.
_SHARES = (0.01, 0.5)


@dataclass(frozen=True, eq=False)
class MatchedPairCurve(AddsUp):
    """Matched pair calibration by group over E thresholds.

    Curves for parts of the data over the same grid add up, as results do.

    Attributes
    ----------
    epsilon : ndarray of shape (E,)
        Thresholds, ascending.
    results : tuple of GroupEstimates, length E
        The result at each threshold, without its table of clusters. Those of more than
        about a hundred groups have no covariances, and with thousands of groups errors
        are taken to first order, by which few differ by more than a few per cent.
    """

    epsilon: Array
    results: tuple[GroupEstimates, ...]

    @property
    def groups(self) -> tuple[Hashable, ...]:
        """The labels of the groups, of length G."""
        return self.results[0].groups

    @property
    def estimate(self) -> Array:
        """The metric, shape (E, G); NaN where a group has no pair."""
        return np.stack([result.estimate for result in self.results])

    @property
    def standard_error(self) -> Array:
        """Standard errors, shape (E, G)."""
        return np.stack([result.standard_error for result in self.results])

    @property
    def support(self) -> Array:
        """Pairs behind each estimate, shape (E, G)."""
        return np.stack([result.support for result in self.results])

    def confidence_interval(self, confidence_level: float = 0.95) -> ConfidenceInterval:
        """Return the interval of each group at each threshold on its own.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        ConfidenceInterval
            ``low`` and ``high``, each of shape (E, G).

        Raises
        ------
        ValueError
            If the level is outside (0, 1).
        """
        ends = [result.confidence_interval(confidence_level) for result in self.results]
        return ConfidenceInterval(*np.array(ends).swapaxes(0, 1))

    def simultaneous_interval(
        self,
        confidence_level: float = 0.95,
        n_resamples: int = 20_000,
        random_state: int | np.random.Generator | None = 0,
    ) -> ConfidenceInterval:
        """Return a band per group that holds at all thresholds at once.

        The quantile is that of the largest ``|t|`` over the thresholds. The pairs of a
        threshold are among those of every larger one, so two estimates are taken to
        correlate as the ratio of their standard errors, the root of the share of
        information that they have in common.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Confidence level of the intervals.
        n_resamples : int, default=20000
            Number of simulated draws.
        random_state : int, Generator or None, default=0
            Seed or generator of the random numbers, 0 so that a result that is computed
            when it is first asked for can be repeated.

        Returns
        -------
        ConfidenceInterval
            ``low`` and ``high``, each of shape (E, G).

        Raises
        ------
        ValueError
            If the level is outside (0, 1), or if there are no draws.
        """
        check_level(confidence_level)
        check_number(n_resamples, "n_resamples", 1, np.inf, integer=True)
        df = np.stack([result.df for result in self.results])
        reach = np.empty(df.shape)
        for group, error in enumerate(self.standard_error.T):
            least = np.fmin.accumulate(np.where(error > 0, error, np.nan))
            larger, smaller = np.fmax.outer(least, least), np.fmin.outer(least, least)
            covariance = np.nan_to_num(smaller / larger) * np.outer(error, error)
            reach[:, group] = simultaneous(
                covariance, df[:, group], n_resamples, random_state
            ).quantile(confidence_level, "sup_t")
        ends = [result.ends(t) for result, t in zip(self.results, reach, strict=True)]
        return ConfidenceInterval(*np.stack(ends, axis=1))

    def smallest_epsilon(
        self, gap: float, power: float = 0.8, alpha: float = 0.05
    ) -> dict[Hashable, float]:
        """Return the smallest threshold of the curve at which a gap is found.

        It looks at the errors and not at the estimates, so that a test at the threshold
        keeps its level (§4.1.1 of the paper: as few pairs as have adequate power).

        Parameters
        ----------
        gap : float
            The true difference that shall be found, in units of the outcome.
        power : float, default=0.8
            Chance that the two-sided t-test finds it.
        alpha : float, default=0.05
            Level of the test.

        Returns
        -------
        dict of group to float
            NaN where no threshold is enough; `matched_pair_calibration` takes the
            mapping as its `epsilon`.

        Raises
        ------
        ValueError
            For a gap that is not positive, or unless ``0 < alpha < power < 1``.
        """
        check_number(gap, "gap", 0, np.inf, inclusive=(False, False))
        found = [
            np.asarray(result.minimum_detectable(power, alpha)) <= gap
            for result in self.results
        ]
        first = np.argmax(found, axis=0)
        chosen = np.where(np.any(found, axis=0), self.epsilon[first], np.nan)
        return dict(zip(self.groups, chosen.tolist(), strict=True))

    def to_frame(self, confidence_level: float = 0.95) -> pd.DataFrame:
        """Return one row per threshold and group.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        DataFrame
            Columns epsilon, group and those of `GroupEstimates.to_frame`.
        """
        of_grid = zip(self.epsilon.tolist(), self.results, strict=True)
        frames = {e: result.to_frame(confidence_level) for e, result in of_grid}
        return pd.concat(frames, names=["epsilon"]).reset_index()

    def __add__(self, other: object) -> MatchedPairCurve:
        """Return the curve of the union of the clusters of both."""
        if not isinstance(other, MatchedPairCurve):
            return NotImplemented
        if not np.array_equal(self.epsilon, other.epsilon):
            raise ValueError(
                "Only curves over one grid of epsilon can be added; pass the same "
                "epsilon= to every part."
            )
        pairs = zip(self.results, other.results, strict=True)
        return MatchedPairCurve(self.epsilon, tuple(a + b for a, b in pairs))

    def plot(self, ax: Any = None, **kwargs: Any) -> MatchedPairCurveDisplay:
        """Draw one line per group with its band.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
        **kwargs : dict
            Passed to `MatchedPairCurveDisplay.plot`.

        Returns
        -------
        MatchedPairCurveDisplay
        """
        from ..display._curves import MatchedPairCurveDisplay

        return MatchedPairCurveDisplay(self).plot(ax=ax, **kwargs)

    def __repr__(self) -> str:
        """Return a small table: one row per threshold, one column per group."""
        header = ["epsilon", *map(fmt.label, self.groups)]
        rows = [
            [f"{epsilon:.4g}", *map(fmt.number, estimate)]
            for epsilon, estimate in zip(self.epsilon, self.estimate, strict=True)
        ]
        options = self.results[0].parameters.items()
        caption = ", ".join(f"{key}={value!r}" for key, value in options)
        table = fmt.text_table(header, rows)
        units = fmt.counted_units(self.results[0])
        return f"matched_pair_curve({caption})\n{table}\n{units}; fair value 0"


def matched_pair_curve(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    qid: Any = None,
    cluster: Any = None,
    position: Any = None,
    epsilon: Any = None,
    sample_weight: Any = None,
    missing: str = "raise",
    **options: Any,
) -> MatchedPairCurve:
    """Matched pair calibration over a grid of thresholds.

    A small epsilon compares like with like, using few pairs; a large one uses many, but
    pairs the group's items with items that have higher scores. The curve shows what the
    choice does, and whether the group is undervalued for all small epsilon, as Theorem
    1 of the paper requires. Rows are ordered once for all thresholds.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes or relevance, binary, graded or real; larger is better.
    y_score : array-like of shape (n,)
        Scores, not ranks: higher scores rank first.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    qid : array-like of shape (n,) or None, default=None
        Query of each row: items are compared and ranked only within one query. None
        makes all rows one list.
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units that contain whole queries, such as users with several
        queries. None makes each query its own unit. Two columns are users and the items
        that recur among them: both ways have errors, ``V_users + V_items -
        V_users×items``.
    position : array-like of shape (n,) or None, default=None
        Rank at which the item was shown in its query, an integer from 1, where that is
        not the order of the scores. Ranks may be left out. None ranks by `y_score`.
    epsilon : array-like of shape (E,) or None, default=None
        Largest difference of the scores of a matched pair, in units of the score. None
        takes 20 values, evenly spaced on a logarithmic scale, from the closest 1% of
        the possible pairs to the closest half, of the group that needs the most.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the query, constant within it: a common factor changes nothing.
    missing : {"raise", "drop", "group"}, default="raise"
        What becomes of rows without an outcome, score or label that is needed (NaN or
        None). "raise" refuses them, "drop" leaves them out, and "group" makes those
        without a label the group "missing" and leaves out the others. The result and a
        warning say how many there are. A row that lacks its outcome alone keeps its
        place in the ranking.
    **options : dict
        Other options of `matched_pair_calibration`: direction, adjacent, estimator,
        position_weight, k, patience, average, variance.

    Returns
    -------
    MatchedPairCurve
        Estimates with intervals by threshold and group.

    Raises
    ------
    ValueError
        If `matched_pair_calibration` refuses the input, or if thresholds are negative,
        not finite or not a vector.

    Warns
    -----
    UndefinedMetricWarning
        Once, for groups without a matched pair at some threshold.

    See Also
    --------
    matched_pair_calibration : At one threshold, chosen from the data if need be.

    Notes
    -----
    Each point is `matched_pair_calibration` at that epsilon, with its variance. From
    below it falls with epsilon by the slope of the outcome over the score, which
    `to_frame` has as ``slope_term`` and p-values subtract. The pairs of one threshold
    are among those of the next, so the points of a curve depend on each other, and its
    intervals hold at one threshold each. The band of
    `MatchedPairCurve.simultaneous_interval` holds at all of them.

    References
    ----------
    Korevaar, H., McConnell, C., Tong, E., et al. "Matched Pair Calibration for Ranking
    Fairness", Theorem 1 and §4.1.1.

    Examples
    --------
    >>> from skrankfair.datasets import make_confounded_queries
    >>> from skrankfair.metrics import matched_pair_curve
    >>> data = make_confounded_queries(5000, random_state=0)
    >>> matched_pair_curve(
    ...     data.y_true,
    ...     data.y_score,
    ...     sensitive_features=data.sensitive_features,
    ...     qid=data.qid,
    ...     epsilon=[0.02, 0.05, 0.1, 0.2],
    ... )
    matched_pair_curve(direction='below', average='pairs')
    epsilon        1        2
    0.02      0.0423  -0.0934
    0.05      0.0411  -0.1036
    0.1       0.0229  -0.1229
    0.2      -0.0188  -0.1736
    5,000 clusters; fair value 0
    """
    return measured(_curve, **locals())


def _curve(
    data: RankedData, *, epsilon: Any, options: dict[str, Any]
) -> MatchedPairCurve:
    """Return the curve of data that is validated and ordered."""
    with collected_warnings():
        if epsilon is None:
            grid = _default_grid(data, options)
        else:
            grid = np.unique(as_numbers(epsilon, "epsilon"))
        if grid[0] < 0:
            raise ValueError(f"epsilon must not be negative; got {grid[0]}.")
        results = tuple(
            _kept(matched_pair_estimates(data, epsilon=e, **options), grid.size)
            for e in grid.tolist()
        )
    curve = MatchedPairCurve(grid, results)
    _warn_undefined(curve)
    return curve


def _kept(result: GroupEstimates, n_results: int) -> GroupEstimates:
    """Return a result without its table, which is freed before the next is made."""
    return replace(result, sums=result.sums.compact(n_results=n_results))


def _default_grid(data: RankedData, options: dict[str, Any]) -> Array:
    """Return thresholds for 1% to half of the pairs, evenly on a log scale."""
    ends = []
    for share in _SHARES:
        result = matched_pair_estimates(data, quantile=share, **options)
        chosen = [e for e in result.first_pass["epsilon"].values() if not np.isnan(e)]
        ends.append(max(chosen, default=0.0))
    low, high = ends
    if not high > 0:  # no pair at all, or only tied ones
        return np.zeros(1)
    return np.geomspace(low if low > 0 else high / 1000, high, _N_POINTS)


def _warn_undefined(curve: MatchedPairCurve) -> None:
    """Warn once of groups that have no estimate somewhere on the curve."""
    count = np.isnan(curve.estimate).sum(axis=0)
    if not count.any():
        return
    names = [
        f"{fmt.label(group)} ({missing} of {curve.epsilon.size} thresholds)"
        for group, missing in zip(curve.groups, count, strict=True)
        if missing
    ]
    warn_user(
        "matched_pair_curve is undefined (NaN), for want of pairs, for groups "
        f"{', '.join(names)}."
    )
