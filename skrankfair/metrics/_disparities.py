"""Disparities of decisions, such as `impact_ratio`, by the names of the field."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._estimates import formatting as fmt
from .._estimates.arrays import AddsUp, Shown
from .._estimates.estimates import contrasts_of
from .._estimates.group_estimates import GroupEstimates
from .._estimates.metric import warn_small
from .._estimates.scales import ConfidenceInterval, check_level, t_quantile
from .._inputs.validation import check_choice, check_given, once_each
from ._rates import false_positive_rate, precision, selection_rate, true_positive_rate


@dataclass(frozen=True, eq=False)
class EqualizedOdds(AddsUp):
    """True and false positive rates by group, the result of `equalized_odds`.

    Like the two results in it, it can be added to the result on other data.

    Attributes
    ----------
    true_positive_rate, false_positive_rate : GroupEstimates
    """

    true_positive_rate: GroupEstimates
    false_positive_rate: GroupEstimates

    @property
    def rates(self) -> tuple[GroupEstimates, GroupEstimates]:
        """The two results: of the true and of the false positive rate."""
        return self.true_positive_rate, self.false_positive_rate

    @property
    def groups(self) -> tuple[Hashable, ...]:
        """The labels of the groups."""
        return self.true_positive_rate.groups

    def disparity(self, kind: str | None = None) -> float:
        """Return the disparity of the rate that is farther from equality.

        Parameters
        ----------
        kind : {"difference", "ratio"} or None, default=None
            "difference": largest minus smallest estimate; "ratio": smallest over
            largest, of which the smaller one is taken. None is "difference".

        Returns
        -------
        float
        """
        return self._worse(kind, GroupEstimates.disparity)

    def disparity_bound(
        self, confidence_level: float = 0.95, kind: str | None = None
    ) -> float:
        """Return the worst `disparity` that the data are compatible with.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Confidence level of the bound.
        kind : {"difference", "ratio"} or None, default=None
            As in `disparity`.

        Returns
        -------
        float
            An upper bound; for "ratio" a lower one. It is the farther one of the bounds
            of the two rates, and so at least as far as that of the rate whose true
            disparity is larger.
        """
        check_level(confidence_level)
        return self._worse(
            kind, lambda rate, k: rate.disparity_bound(confidence_level, k)
        )

    def _worse(
        self, kind: str | None, value: Callable[[GroupEstimates, str], float]
    ) -> float:
        """Return the value of the rate that is farther from equality."""
        kind = "difference" if kind is None else kind
        check_choice(kind, "kind", ("difference", "ratio"))
        values = np.array([value(rate, kind) for rate in self.rates])
        return float(values.min() if kind == "ratio" else values.max())

    def to_frame(self, confidence_level: float = 0.95) -> pd.DataFrame:
        """Return one row per rate and group.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        DataFrame
            The frames of the two rates, one below the other.
        """
        frames = {rate.name: rate.to_frame(confidence_level) for rate in self.rates}
        return pd.concat(frames, names=["rate"])

    def compact(self) -> EqualizedOdds:
        """Return the same result without the tables of clusters.

        Returns
        -------
        EqualizedOdds
        """
        return EqualizedOdds(*(rate.compact() for rate in self.rates))

    def __add__(self, other: object) -> EqualizedOdds:
        """Return the result on the union of the clusters of both."""
        if not isinstance(other, EqualizedOdds):
            return NotImplemented
        rates = (a + b for a, b in zip(self.rates, other.rates, strict=True))
        return EqualizedOdds(*rates)

    def __repr__(self) -> str:
        """Return both small tables."""
        return "\n".join(map(repr, self.rates))


def rates_of(result: GroupEstimates | EqualizedOdds) -> tuple[GroupEstimates, ...]:
    """Return the results behind a disparity: of equalized odds those of both rates."""
    return result.rates if isinstance(result, EqualizedOdds) else (result,)


class Disparity(Shown, float):
    """A disparity: a float that knows the estimates by group behind it.

    Functions such as `impact_ratio` make these.

    Parameters
    ----------
    name : str
    estimates : GroupEstimates or EqualizedOdds
    kind : {"difference", "ratio"}

    Attributes
    ----------
    name : str
        The function that made it.
    estimates : GroupEstimates or EqualizedOdds
        The rates by group.
    kind : {"difference", "ratio"}
        Largest minus smallest, or smallest over largest.
    lowest, highest : hashable
        The groups with the smallest and the largest rate (of equalized odds, the rate
        with the larger disparity); None where the disparity is NaN.
    """

    def __new__(
        cls, name: str, estimates: GroupEstimates | EqualizedOdds, kind: str
    ) -> Disparity:
        """Make the float from its estimates."""
        value = super().__new__(cls, estimates.disparity(kind))
        value.name, value.estimates, value.kind = name, estimates, kind
        value.lowest = value.highest = None
        for rate in rates_of(estimates):
            if rate.disparity(kind) == value:
                value.lowest = rate.groups[int(rate.estimate.argmin())]
                value.highest = rate.groups[int(rate.estimate.argmax())]
        return value

    name: str
    estimates: GroupEstimates | EqualizedOdds
    kind: str
    lowest: Hashable
    highest: Hashable

    def confidence_interval(self, confidence_level: float = 0.95) -> ConfidenceInterval:
        """Return an interval of the disparity.

        For two groups it is the interval of their difference or ratio. For more, the
        end that is farther from equality is the farthest end of the intervals of all
        pairs of groups. It needs no correction, since the interval of the truly largest
        pair is among them. The nearer end is from intervals that hold at once
        (Bonferroni's).

        Parameters
        ----------
        confidence_level : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        ConfidenceInterval
            ``low`` and ``high``, floats; a difference is at least 0, a ratio at most 1.
        """
        check_level(confidence_level)
        rates, n_groups = rates_of(self.estimates), len(self.estimates.groups)
        n_pairs = len(rates) * n_groups * (n_groups - 1) // 2
        if np.isnan(self) or not n_pairs:
            return ConfidenceInterval(np.nan, np.nan)
        for rate in rates:
            warn_small(rate)
        pairs = [
            contrasts_of(rate, *np.triu_indices(n_groups, 1), self.kind)
            for rate in rates
        ]
        (low, high), alone = (
            ConfidenceInterval(
                *np.hstack([p.ends(t_quantile(level, p.df)) for p in pairs])
            )
            for level in (1 - (1 - confidence_level) / n_pairs, confidence_level)
        )
        if self.kind == "difference":
            nearest = np.maximum(np.maximum(low, -high), 0.0)
            farthest = np.maximum(alone.high, -alone.low)
            return ConfidenceInterval(float(nearest.max()), float(farthest.max()))
        with np.errstate(divide="ignore"):
            smallest = np.minimum(alone.low, 1 / alone.high)
            largest = np.where(low > 1, 1 / low, np.minimum(high, 1.0))
        return ConfidenceInterval(float(smallest.min()), float(largest.min()))

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel between processes with the estimates."""
        return Disparity, (self.name, self.estimates, self.kind)

    def __repr__(self) -> str:
        """Return the number with its interval and its two groups."""
        if np.isnan(self):
            return f"{self.name}: undefined (NaN)"
        low, high = self.confidence_interval()
        return (
            f"{self.name}: {float(self):.4f}, 95% interval [{low:.4f}, {high:.4f}]; "
            f"lowest {fmt.label(self.lowest)}, highest {fmt.label(self.highest)}"
        )

    __str__ = float.__repr__


def equalized_odds(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    cluster: Any = None,
    threshold: float | None = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    missing: str = "raise",
) -> EqualizedOdds:
    """True and false positive rates of each group, which equalized odds makes equal.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_score : array-like of shape (n,)
        Decisions, 0 or 1; or scores, of which `threshold` makes decisions.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit. Two columns are users and the items that recur among them: both
        ways have errors, ``V_users + V_items - V_users×items``.
    threshold : float or None, default=None
        Score from which a row is accepted. None takes `y_score` for decisions.
    pos_label : int, float, bool, str or None, default=None
        The class, of outcomes and of decisions, that counts as 1; the other one is 0.
        None takes 0 and 1, or -1 and 1.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the row: a common factor changes nothing, and 0 leaves it out.
    missing : {"raise", "drop", "group"}, default="raise"
        What becomes of rows without an outcome, score or label that is needed (NaN or
        None). "raise" refuses them, "drop" leaves them out, and "group" makes those
        without a label the group "missing" and leaves out the others. The result and a
        warning say how many there are.

    Returns
    -------
    EqualizedOdds

    Raises
    ------
    ValueError
        If columns have different lengths, labels are missing, or outcomes or decisions
        are not 0 or 1.

    Warns
    -----
    UndefinedMetricWarning
        For a group without positives or without negatives, one of whose rates is NaN.

    See Also
    --------
    equalized_odds_difference : The number alone, with its interval.

    References
    ----------
    Hardt, M., Price, E., Srebro, N. (2016). "Equality of Opportunity in Supervised
    Learning". NeurIPS.

    Examples
    --------
    >>> from skrankfair.metrics import equalized_odds
    >>> decided = [1, 1, 0, 0, 1, 0, 1, 0]
    >>> r = equalized_odds(
    ...     [1, 1, 0, 0] * 2, decided, sensitive_features=list("aaaabbbb")
    ... )
    >>> r.true_positive_rate.estimate, r.false_positive_rate.estimate
    (array([1. , 0.5]), array([0. , 0.5]))
    """
    columns = locals()
    with once_each():  # both rates may lack the same rows
        rates = true_positive_rate(**columns), false_positive_rate(**columns)
        return EqualizedOdds(*rates)


def _named(name: str, **columns: Any) -> Disparity:
    """Return the disparity of this name."""
    check_given(sensitive_features=columns["sensitive_features"])
    rate, kind = DISPARITIES[name]
    return Disparity(name, rate(**columns), kind)


def demographic_parity_difference(
    y_true: Any = None,
    y_score: Any = None,
    *,
    sensitive_features: Any,
    cluster: Any = None,
    threshold: float | None = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    missing: str = "raise",
) -> Disparity:
    """Largest minus smallest selection rate of the groups.

    Demographic parity is that all groups are selected at the same rate, whatever their
    outcomes; the difference is then 0.

    Parameters
    ----------
    y_true : array-like of shape (n,) or None, default=None
        Not used; it is accepted so that all metrics are called alike.
    y_score : array-like of shape (n,)
        Decisions, 0 or 1; or scores, of which `threshold` makes decisions.
    sensitive_features : array-like of shape (n,) or (n, d)
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit. Two columns are users and the items that recur among them: both
        ways have errors, ``V_users + V_items - V_users×items``.
    threshold : float or None, default=None
        Score from which a row is accepted. None takes `y_score` for decisions.
    pos_label : int, float, bool, str or None, default=None
        The class, of outcomes and of decisions, that counts as 1; the other one is 0.
        None takes 0 and 1, or -1 and 1.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the row: a common factor changes nothing, and 0 leaves it out.
    missing : {"raise", "drop", "group"}, default="raise"
        What becomes of rows without an outcome, score or label that is needed (NaN or
        None). "raise" refuses them, "drop" leaves them out, and "group" makes those
        without a label the group "missing" and leaves out the others. The result and a
        warning say how many there are.

    Returns
    -------
    Disparity
        A float with its ``confidence_interval()`` and its ``estimates`` by group.

    Raises
    ------
    ValueError
        If columns have different lengths, labels are missing, or decisions are not 0 or
        1.

    Warns
    -----
    UndefinedMetricWarning
        For a group without rows, without which there is no disparity (NaN).

    See Also
    --------
    selection_rate : The rates by group, with their errors.
    impact_ratio : The ratio in place of the difference.

    Examples
    --------
    >>> from skrankfair.metrics import demographic_parity_difference
    >>> decided = [1, 1, 1, 0, 1, 0, 1, 0] * 10
    >>> group = list("aaaabbbb") * 10
    >>> demographic_parity_difference(None, decided, sensitive_features=group)
    demographic_parity_difference: 0.2500, 95% interval [0.0275, 0.4422];
    lowest b, highest a
    """
    return _named("demographic_parity_difference", **locals())


def impact_ratio(
    y_true: Any = None,
    y_score: Any = None,
    *,
    sensitive_features: Any,
    cluster: Any = None,
    threshold: float | None = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    missing: str = "raise",
) -> Disparity:
    """Smallest over largest selection rate of the groups.

    The demographic parity ratio. By the four-fifths rule of the Uniform Guidelines a
    value below 0.8 is evidence of adverse impact; look at the interval, which says
    whether a value on the other side of 0.8 could be chance.
    ``estimates.contrasts("ratio", reference=highest)`` compares every group with the
    one selected most.

    Parameters
    ----------
    y_true : array-like of shape (n,) or None, default=None
        Not used; it is accepted so that all metrics are called alike.
    y_score : array-like of shape (n,)
        Decisions, 0 or 1; or scores, of which `threshold` makes decisions.
    sensitive_features : array-like of shape (n,) or (n, d)
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit. Two columns are users and the items that recur among them: both
        ways have errors, ``V_users + V_items - V_users×items``.
    threshold : float or None, default=None
        Score from which a row is accepted. None takes `y_score` for decisions.
    pos_label : int, float, bool, str or None, default=None
        The class, of outcomes and of decisions, that counts as 1; the other one is 0.
        None takes 0 and 1, or -1 and 1.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the row: a common factor changes nothing, and 0 leaves it out.
    missing : {"raise", "drop", "group"}, default="raise"
        What becomes of rows without an outcome, score or label that is needed (NaN or
        None). "raise" refuses them, "drop" leaves them out, and "group" makes those
        without a label the group "missing" and leaves out the others. The result and a
        warning say how many there are.

    Returns
    -------
    Disparity
        A float with its ``confidence_interval()`` and its ``estimates`` by group.

    Raises
    ------
    ValueError
        If columns have different lengths, labels are missing, or decisions are not 0 or
        1.

    Warns
    -----
    UndefinedMetricWarning
        For a group without rows, without which there is no disparity (NaN).

    See Also
    --------
    selection_rate : The rates by group, with their errors.
    demographic_parity_difference : The difference in place of the ratio.

    References
    ----------
    Uniform Guidelines on Employee Selection Procedures (1978). 29 CFR § 1607.4 D.

    Examples
    --------
    >>> from skrankfair.metrics import impact_ratio
    >>> decided = [1, 1, 1, 0, 1, 0, 1, 0] * 10
    >>> group = list("aaaabbbb") * 10
    >>> impact_ratio(None, decided, sensitive_features=group)
    impact_ratio: 0.6667, 95% interval [0.4490, 0.9563]; lowest b, highest a
    """
    return _named("impact_ratio", **locals())


def equal_opportunity_difference(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    cluster: Any = None,
    threshold: float | None = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    missing: str = "raise",
) -> Disparity:
    """Largest minus smallest true positive rate of the groups.

    Equal opportunity is that the positives of all groups are selected at the same rate.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_score : array-like of shape (n,)
        Decisions, 0 or 1; or scores, of which `threshold` makes decisions.
    sensitive_features : array-like of shape (n,) or (n, d)
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit. Two columns are users and the items that recur among them: both
        ways have errors, ``V_users + V_items - V_users×items``.
    threshold : float or None, default=None
        Score from which a row is accepted. None takes `y_score` for decisions.
    pos_label : int, float, bool, str or None, default=None
        The class, of outcomes and of decisions, that counts as 1; the other one is 0.
        None takes 0 and 1, or -1 and 1.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the row: a common factor changes nothing, and 0 leaves it out.
    missing : {"raise", "drop", "group"}, default="raise"
        What becomes of rows without an outcome, score or label that is needed (NaN or
        None). "raise" refuses them, "drop" leaves them out, and "group" makes those
        without a label the group "missing" and leaves out the others. The result and a
        warning say how many there are.

    Returns
    -------
    Disparity
        A float with its ``confidence_interval()`` and its ``estimates`` by group.

    Raises
    ------
    ValueError
        If columns have different lengths, labels are missing, or outcomes or decisions
        are not 0 or 1.

    Warns
    -----
    UndefinedMetricWarning
        For a group without positives, without which there is no disparity (NaN).

    See Also
    --------
    true_positive_rate : The rates by group, with their errors.
    equalized_odds_difference : That of the negatives too.

    References
    ----------
    Hardt, M., Price, E., Srebro, N. (2016). "Equality of Opportunity in Supervised
    Learning". NeurIPS.

    Examples
    --------
    >>> from skrankfair.metrics import equal_opportunity_difference
    >>> decided = [1, 1, 1, 0, 1, 0, 1, 0] * 10
    >>> group = list("aaaabbbb") * 10
    >>> equal_opportunity_difference(
    ...     [1, 1, 0, 0] * 20, decided, sensitive_features=group
    ... )
    equal_opportunity_difference: 0.5000, 95% interval [0.2254, 0.7168];
    lowest b, highest a
    """
    return _named("equal_opportunity_difference", **locals())


def equalized_odds_difference(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    cluster: Any = None,
    threshold: float | None = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    missing: str = "raise",
) -> Disparity:
    """The larger difference of the true and the false positive rates of the groups.

    Equalized odds is that positives are selected at the same rate in all groups, and so
    are negatives. The value is the larger of the two differences of rates.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_score : array-like of shape (n,)
        Decisions, 0 or 1; or scores, of which `threshold` makes decisions.
    sensitive_features : array-like of shape (n,) or (n, d)
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit. Two columns are users and the items that recur among them: both
        ways have errors, ``V_users + V_items - V_users×items``.
    threshold : float or None, default=None
        Score from which a row is accepted. None takes `y_score` for decisions.
    pos_label : int, float, bool, str or None, default=None
        The class, of outcomes and of decisions, that counts as 1; the other one is 0.
        None takes 0 and 1, or -1 and 1.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the row: a common factor changes nothing, and 0 leaves it out.
    missing : {"raise", "drop", "group"}, default="raise"
        What becomes of rows without an outcome, score or label that is needed (NaN or
        None). "raise" refuses them, "drop" leaves them out, and "group" makes those
        without a label the group "missing" and leaves out the others. The result and a
        warning say how many there are.

    Returns
    -------
    Disparity
        A float with its ``confidence_interval()`` and its ``estimates`` by group.

    Raises
    ------
    ValueError
        If columns have different lengths, labels are missing, or outcomes or decisions
        are not 0 or 1.

    Warns
    -----
    UndefinedMetricWarning
        For a group without positives or negatives, without which there is no disparity
        (NaN).

    See Also
    --------
    equalized_odds : Both rates by group, with their errors.
    equalized_odds_ratio : Ratios in place of differences.

    References
    ----------
    Hardt, M., Price, E., Srebro, N. (2016). "Equality of Opportunity in Supervised
    Learning". NeurIPS.

    Examples
    --------
    >>> from skrankfair.metrics import equalized_odds_difference
    >>> decided = [1, 1, 1, 0, 1, 0, 1, 0] * 10
    >>> group = list("aaaabbbb") * 10
    >>> equalized_odds_difference([1, 1, 0, 0] * 20, decided, sensitive_features=group)
    equalized_odds_difference: 0.5000, 95% interval [0.1860, 0.7168];
    lowest b, highest a
    """
    return _named("equalized_odds_difference", **locals())


def equalized_odds_ratio(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    cluster: Any = None,
    threshold: float | None = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    missing: str = "raise",
) -> Disparity:
    """The smaller ratio of the true and the false positive rates of the groups.

    For each of the two rates it is the smallest over the largest value of the groups;
    the smaller of these two ratios is returned.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_score : array-like of shape (n,)
        Decisions, 0 or 1; or scores, of which `threshold` makes decisions.
    sensitive_features : array-like of shape (n,) or (n, d)
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit. Two columns are users and the items that recur among them: both
        ways have errors, ``V_users + V_items - V_users×items``.
    threshold : float or None, default=None
        Score from which a row is accepted. None takes `y_score` for decisions.
    pos_label : int, float, bool, str or None, default=None
        The class, of outcomes and of decisions, that counts as 1; the other one is 0.
        None takes 0 and 1, or -1 and 1.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the row: a common factor changes nothing, and 0 leaves it out.
    missing : {"raise", "drop", "group"}, default="raise"
        What becomes of rows without an outcome, score or label that is needed (NaN or
        None). "raise" refuses them, "drop" leaves them out, and "group" makes those
        without a label the group "missing" and leaves out the others. The result and a
        warning say how many there are.

    Returns
    -------
    Disparity
        A float with its ``confidence_interval()`` and its ``estimates`` by group.

    Raises
    ------
    ValueError
        If columns have different lengths, labels are missing, or outcomes or decisions
        are not 0 or 1.

    Warns
    -----
    UndefinedMetricWarning
        For a group without positives or negatives, without which there is no disparity
        (NaN).

    See Also
    --------
    equalized_odds : Both rates by group, with their errors.
    equalized_odds_difference : Differences in place of ratios.

    References
    ----------
    Hardt, M., Price, E., Srebro, N. (2016). "Equality of Opportunity in Supervised
    Learning". NeurIPS.

    Examples
    --------
    >>> from skrankfair.metrics import equalized_odds_ratio
    >>> decided = [1, 1, 1, 0, 1, 0, 1, 0] * 10
    >>> group = list("aaaabbbb") * 10
    >>> equalized_odds_ratio([1, 1, 0, 0] * 20, decided, sensitive_features=group)
    equalized_odds_ratio: 0.5000, 95% interval [0.2832, 0.7879]; lowest b, highest a
    """
    return _named("equalized_odds_ratio", **locals())


def predictive_parity_difference(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    cluster: Any = None,
    threshold: float | None = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    missing: str = "raise",
) -> Disparity:
    """Largest minus smallest precision of the decisions of the groups.

    Predictive parity of decisions is that those who are selected are positive equally
    often. It can differ between groups although an equal score means an equal outcome,
    which `skrankfair.inference.predictive_parity_test` tests.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes, 0 or 1.
    y_score : array-like of shape (n,)
        Decisions, 0 or 1; or scores, of which `threshold` makes decisions.
    sensitive_features : array-like of shape (n,) or (n, d)
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units, such as the person that a row is about. None makes each row
        its own unit. Two columns are users and the items that recur among them: both
        ways have errors, ``V_users + V_items - V_users×items``.
    threshold : float or None, default=None
        Score from which a row is accepted. None takes `y_score` for decisions.
    pos_label : int, float, bool, str or None, default=None
        The class, of outcomes and of decisions, that counts as 1; the other one is 0.
        None takes 0 and 1, or -1 and 1.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the row: a common factor changes nothing, and 0 leaves it out.
    missing : {"raise", "drop", "group"}, default="raise"
        What becomes of rows without an outcome, score or label that is needed (NaN or
        None). "raise" refuses them, "drop" leaves them out, and "group" makes those
        without a label the group "missing" and leaves out the others. The result and a
        warning say how many there are.

    Returns
    -------
    Disparity
        A float with its ``confidence_interval()`` and its ``estimates`` by group.

    Raises
    ------
    ValueError
        If columns have different lengths, labels are missing, or outcomes or decisions
        are not 0 or 1.

    Warns
    -----
    UndefinedMetricWarning
        For a group without selected rows, without which there is no disparity (NaN).

    See Also
    --------
    precision : The shares by group, with their errors.
    skrankfair.inference.predictive_parity_test : At every score.

    References
    ----------
    Chouldechova, A. (2017). "Fair Prediction with Disparate Impact: A Study of Bias in
    Recidivism Prediction Instruments". Big Data 5(2).

    Examples
    --------
    >>> from skrankfair.metrics import predictive_parity_difference
    >>> decided = [1, 1, 1, 0, 1, 0, 1, 0] * 10
    >>> group = list("aaaabbbb") * 10
    >>> predictive_parity_difference(
    ...     [1, 1, 0, 0] * 20, decided, sensitive_features=group
    ... )
    predictive_parity_difference: 0.1667, 95% interval [0.0000, 0.4297];
    lowest b, highest a
    """
    return _named("predictive_parity_difference", **locals())


#: The metric of each disparity, and the kind of number that is made of its groups.
DISPARITIES: dict[str, tuple[Callable[..., Any], str]] = {
    "demographic_parity_difference": (selection_rate, "difference"),
    "equal_opportunity_difference": (true_positive_rate, "difference"),
    "equalized_odds_difference": (equalized_odds, "difference"),
    "equalized_odds_ratio": (equalized_odds, "ratio"),
    "impact_ratio": (selection_rate, "ratio"),
    "predictive_parity_difference": (precision, "difference"),
}
