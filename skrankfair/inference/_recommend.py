"""Which metric of statistical parity? Kuhlman et al. 2021, §7."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._inputs.validation import check_choice
from ._monotonicity import MonotonicityTest

_MINIMIZE: tuple[str, ...] = (
    "normalized_discounted_kl",
    "normalized_discounted_difference",
    "pairwise_parity",
    "exposure_parity",
)
_EVALUATE: tuple[str, ...] = ("pairwise_parity",)
_ALL: tuple[str, ...] = (*_MINIMIZE, "ndkl")
_AVOID = ("normalized_discounted_ratio", "skew_at_k")


@dataclass(frozen=True)
class MetricRecommendation:
    """Metrics of statistical parity to use, by the names of their functions.

    Attributes
    ----------
    metrics : tuple of str
        The metrics to use, the first choice first.
    avoid : tuple of str
        The metrics to avoid, because they have no bounds.
    reason : str
        The reason, in a sentence or two.
    purpose : {"minimize", "evaluate"}
    rejected : bool
        Whether the test rejected a monotone advantage.
    """

    metrics: tuple[str, ...]
    avoid: tuple[str, ...]
    reason: str
    purpose: str
    rejected: bool

    def __repr__(self) -> str:
        """Return the names and the reason."""
        return (
            f"Use {', '.join(self.metrics)}.\nAvoid {', '.join(self.avoid)}.\n"
            f"{self.reason}"
        )


def recommend_metrics(
    test: MonotonicityTest, purpose: str = "minimize"
) -> MetricRecommendation:
    """Recommend metrics of statistical parity, given a monotonicity test.

    Parameters
    ----------
    test : MonotonicityTest
        The test of the rankings that are to be measured.
    purpose : {"minimize", "evaluate"}, default="minimize"
        Whether the metric is an objective that will be made small, or a measurement.

    Returns
    -------
    MetricRecommendation
        If the test rejected, or has no p-value, all metrics with bounds, to be looked
        at side by side. Otherwise, to minimize, rKL (which is smooth), rND, pair and
        exp, which have the same minima; to evaluate, pair, the only one that is at its
        maximum whenever a group has a total advantage, even over a minority.

    Raises
    ------
    ValueError
        If `test` is not a result of `monotonicity_test`, or if the purpose is unknown.

    See Also
    --------
    monotonicity_test : The test.
    skrankfair.metrics.expected_advantage : All metrics of one distribution of rankings.

    References
    ----------
    Kuhlman, C., Gerych, W., Rundensteiner, E. (2021). "Measuring Group Advantage: A
    Comparative Study of Fair Ranking Metrics". AIES. §7.

    Examples
    --------
    >>> from skrankfair.datasets import make_biased_rankings
    >>> from skrankfair.inference import monotonicity_test, recommend_metrics
    >>> data = make_biased_rankings(100, 20, share=0.2, advantage=0.1, random_state=0)
    >>> test = monotonicity_test(
    ...     data.y_score,
    ...     sensitive_features=data.sensitive_features,
    ...     qid=data.qid,
    ...     group="protected",
    ...     random_state=0,
    ... )
    >>> recommend_metrics(test, purpose="evaluate").metrics
    ('pairwise_parity',)
    """
    if not isinstance(test, MonotonicityTest):
        raise ValueError(
            f"test must be a result of monotonicity_test; got {type(test).__name__}."
        )
    check_choice(purpose, "purpose", ("minimize", "evaluate"))
    if test.rejected or np.isnan(test.pvalue):
        metrics = _ALL
        reason = (
            "The advantage is not shown to be monotone in the position, so metrics may "
            "disagree: look at all of them and at the shares by position, and say "
            "first what fairness means here."
        )
    elif purpose == "minimize":
        metrics = _MINIMIZE
        reason = (
            "Their minima are the same, so to improve one is to improve all; rKL is "
            "smooth, and exposure fits where the attention to positions is known."
        )
    else:
        metrics = _EVALUATE
        reason = (
            "It alone is largest for a total advantage of either side, whatever the "
            "size of the group"
        )
        minority = test.group_share < 0.5
        reason += (
            f"; others would understate a disadvantage of this minority "
            f"({test.group_share:.0%})."
            if minority
            else "."
        )
    return MetricRecommendation(metrics, _AVOID, reason, purpose, test.rejected)
