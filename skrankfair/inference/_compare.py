"""Two models on the same clusters: the paired difference of a metric."""

from __future__ import annotations

from .._estimates.finalize import Beside, PairedDifference
from .._estimates.paired import PairedReplicates
from .._estimates.sums import ClusterSums
from .._estimates.table import needs_of
from ..metrics import GroupEstimates


def _needs(a: GroupEstimates, b: GroupEstimates) -> tuple[int, ...]:
    """Return the supports that both results need, those of `b` after those of `a`."""
    first, second = (needs_of(r.metric.finalize) for r in (a, b))
    if not _have_tables(a, b):  # the degrees of freedom are those of `a`
        return first
    return (*first, *(len(a.sums.active) + support for support in second))


def _have_tables(a: GroupEstimates, b: GroupEstimates) -> bool:
    return a.sums.table is not None and b.sums.table is not None


def _beside(a: GroupEstimates, b: GroupEstimates) -> ClusterSums:
    """Return the sums of both, the columns of `b` behind those of `a`."""
    if _have_tables(a, b):
        return a.sums.beside(b.sums)
    return PairedReplicates.of(a.sums, b.sums)


def compare(a: GroupEstimates, b: GroupEstimates) -> GroupEstimates:
    """Compare two models by one metric on the same data, as ``a - b`` by group.

    What the two results have in common, an easy query or a popular item, is in both
    and cancels, so the interval is much narrower than that of two separate samples.

    Parameters
    ----------
    a, b : GroupEstimates
        Results of the same metric with the same options on the same clusters
        (queries, users, or the items of one list), under two scores.

    Returns
    -------
    GroupEstimates
        The difference by group with fair value 0: `test` tests whether the models
        differ, `contrast` whether they differ by more in one group than in another.

    Raises
    ------
    ValueError
        If the metrics, options, groups or clusters differ, after `compact` without
        replicates, or for the calibration error of a sweep.

    Notes
    -----
    The two tables of sums are put side by side, and the difference is one more smooth
    function of their totals: the covariance of the two results comes with the delta
    method, and the bootstrap resamples both at once. For ``variance="item"`` the
    variance is DeLong's, ``Σ_i (T_i^a / N_a - T_i^b / N_b)²``. Of results after
    ``compact(n_replicates=...)`` the covariance is that of their replicates, in which
    every cluster counts as often for both, and degrees of freedom are those of `a`.

    References
    ----------
    DeLong, E. R., DeLong, D. M., Clarke-Pearson, D. L. (1988). "Comparing the areas
    under two or more correlated receiver operating characteristic curves". Biometrics
    44(3).

    Examples
    --------
    >>> import numpy as np
    >>> from skrankfair.inference import compare
    >>> from skrankfair.metrics import pairwise_accuracy
    >>> rng = np.random.default_rng(0)
    >>> who = {
    ...     "sensitive_features": rng.choice(["f", "m"], 2000),
    ...     "qid": np.repeat(np.arange(100), 20),
    ... }
    >>> y = rng.random(2000)
    >>> old = pairwise_accuracy(y, y + rng.normal(size=2000), **who)
    >>> new = pairwise_accuracy(y, y + 0.5 * rng.normal(size=2000), **who)
    >>> difference = compare(new, old)
    >>> bool((difference.confidence_interval().low > 0).all())
    True
    """
    for name, value in (("a", a), ("b", b)):
        if not isinstance(value, GroupEstimates):
            raise ValueError(
                f"{name} must be a result of a metric (GroupEstimates); got "
                f"{type(value).__name__}."
            )
    if a.name != b.name or a.parameters != b.parameters:
        raise ValueError(
            "Only two results of one metric with the same options can be compared; got "
            f"{a.name} {dict(a.parameters)} and {b.name} {dict(b.parameters)}."
        )
    if a.metric.not_paired is not None:
        raise ValueError(
            f"Two models have no comparison in {a.name}: {a.metric.not_paired}"
        )
    strata = [r.first_pass.get("engagement_edges") for r in (a, b)]
    if strata[0] != strata[1]:
        raise ValueError(
            "Only results of the same strata can be compared; pass the edges as bins= "
            f"to both. Got {strata[0]} and {strata[1]}."
        )
    size = a.sums.by_group.shape[1], a.sums.shared.size
    metric = a.metric.as_difference(
        f"{a.name}_difference",
        PairedDifference(
            Beside(a.metric.finalize, *size),
            Beside(b.metric.finalize, *size, second=True),
            _needs(a, b),
        ),
        Beside(a.metric.support, *size),
    )
    first_pass = {f"{key}_a": value for key, value in a.first_pass.items()}
    first_pass |= {f"{key}_b": value for key, value in b.first_pass.items()}
    sums = _beside(a, b)
    return GroupEstimates(metric, sums, a.parameters, first_pass, missing=a.missing)
