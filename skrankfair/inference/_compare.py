"""The difference of two results: of two models, or of two independent samples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .._estimates.finalize import Beside, Finalize, OfTotals, PairedDifference, needs_of
from .._estimates.metric import warn_undefined
from .._estimates.resampled import ResampledSums
from .._estimates.sums import ClusterSums
from ..metrics import GroupEstimates


def _check_comparable(a: Any, b: Any) -> None:
    """Raise a ValueError unless both are results of one metric."""
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
    strata = [r.first_pass.get("engagement_edges") for r in (a, b)]
    if strata[0] != strata[1]:
        raise ValueError(
            "Only results of the same strata can be compared; pass the edges as bins= "
            f"to both. Got {strata[0]} and {strata[1]}."
        )


def _difference(
    a: GroupEstimates,
    b: GroupEstimates,
    sums: ClusterSums,
    *,
    independent: bool = False,
) -> GroupEstimates:
    """Return ``a - b`` from the sums of both, the columns of `b` behind.

    The supports of `b` follow those of `a`, but replicates have none of `b`. The
    interval of the difference of two independent shares is made of their intervals, and
    that of two independent gaps of shares of the intervals of all four; shares of rows
    know of events that the other side shows. Each of two independent means has at least
    the variance that the other shows, and so has each side of two independent gaps.
    Independent gaps of exposure have at least that of groups assigned to the items of
    both by chance.
    """
    size = a.sums.by_group.shape[1], a.sums.shared.size

    def beside(of: Finalize, second: bool) -> Beside | PairedDifference:
        if isinstance(of, PairedDifference):
            return PairedDifference.of(*(beside(part, second) for part in of.parts))
        before = len(a.sums.supports) if second else 0
        needs = tuple(before + number for number in needs_of(of))
        return Beside(of, *size, second=second, needs=needs)

    def minus(one: Finalize, other: Finalize) -> PairedDifference:
        both = PairedDifference.of(beside(one, False), beside(other, True))
        known = tuple(number for number in both.needs if number < len(sums.supports))
        return replace(both, needs=known)

    difference = minus(a.metric.finalize, b.metric.finalize)
    fields: dict[str, Any] = {"support": Beside(a.metric.support, *size)}
    of_a, of_b = (m.sides or m.parts or (m.finalize,) for m in (a.metric, b.metric))
    if independent and a.metric.of_shares:
        fields["parts"] = difference.parts
        if a.metric.of_rest is not None:
            fields["of_rest"] = beside(a.metric.of_rest, False)
    elif independent and (a.metric.heavy or a.metric.sides):
        sides = [beside(of, False) for of in of_a] + [beside(of, True) for of in of_b]
        fields["sides"] = tuple(sides)
    elif len(of_a) > 1 and (a.metric.sides or a.metric.of_rest):
        fields["sides"] = tuple(map(minus, of_a, of_b))
    elif independent and a.metric.by_chance and sums.kind == "cluster":
        (of,) = a.metric.by_chance
        fields["by_chance"] = beside(of, False), beside(of, True)
    else:
        fields["heavy"] = a.metric.heavy
        if a.metric.of_rest and b.metric.of_rest:
            fields["of_rest"] = minus(a.metric.of_rest, b.metric.of_rest)
    metric = a.metric.as_difference(f"{a.name}_difference", difference, **fields)
    if isinstance(sums, ResampledSums):
        sums = replace(sums, finalize=metric.finalize)  # what copies keep
    first_pass = {f"{key}_a": value for key, value in a.first_pass.items()}
    first_pass |= {f"{key}_b": value for key, value in b.first_pass.items()}
    return GroupEstimates(metric, sums, a.parameters, first_pass, missing=a.missing)


def compare(a: GroupEstimates, b: GroupEstimates) -> GroupEstimates:
    """Compare two models by one metric on the same data, as ``a - b`` by group.

    What the two results have in common, an easy query or a popular item, is in both
    and cancels, so the interval is much narrower than that of two separate samples.

    Parameters
    ----------
    a, b : GroupEstimates
        Results of the same metric with the same options on the same clusters
        (queries, users, or the items of one list), under two scores. Clusters are
        paired by label. Rows without `cluster` or `qid` have no label: they are paired
        by number, so that both results must be of the same rows in the same order.

    Returns
    -------
    GroupEstimates
        The difference by group with fair value 0: `test` tests whether the models
        differ, `contrast` whether they differ by more in one group than in another.

    Raises
    ------
    ValueError
        If the metrics, options, strata, groups or clusters differ, if rows that are
        paired are of different groups, after `compact` without replicates, or for the
        calibration error of a sweep or with ``bandwidth="cv"``.

    Notes
    -----
    The two tables of sums are put side by side, and the difference is one more smooth
    function of their totals. Its variance is the jackknife's over clusters, each of
    which is left out of both results at once, and the bootstrap resamples both at once.
    For ``variance="item"`` it is DeLong's, which leaves out each item for both. Of
    results after ``compact(n_replicates=...)`` the covariance is that of their
    replicates, in which every cluster counts as often for both, and degrees of freedom
    are those of `a`. Rare events of other groups, which a small group may lack, make
    tests and intervals of means and rates of rows wider: see the notes of
    `GroupEstimates.confidence_interval`.

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
    _check_comparable(a, b)
    if a.metric.not_paired is not None:
        raise ValueError(
            f"Two models have no comparison in {a.name}: {a.metric.not_paired}"
        )
    if a.sums.compacted or b.sums.compacted:
        return _difference(a, b, ResampledSums.of_replicates(a.sums, b.sums))
    both = a.sums.join_columns(b.sums)
    # Whatever the scores, there is an entry for each group of a row. A caller's table
    # need not have any: its groups may be those of the items that scores choose.
    one, other, joined = (x.rows.n_memberships for x in (a.sums, b.sums, both))
    moved = joined - one if one == other == both.rows.n_rows else 0
    if moved and not isinstance(a.metric.finalize, OfTotals):
        raise ValueError(
            "a and b must be results of the same rows in the same order, or of clusters"
            f" with labels; {moved} of {one} rows are of another group in b."
        )
    return _difference(a, b, both)


def compare_independent(a: GroupEstimates, b: GroupEstimates) -> GroupEstimates:
    """Compare two independent samples by one metric, as ``a - b`` by group.

    For example of this week and the last, or of two markets: the data of one sample
    must be independent of those of the other. For two models on the same data `compare`
    is the right one, whose intervals are much narrower.

    Parameters
    ----------
    a, b : GroupEstimates
        Results of the same metric with the same options on different clusters. The
        labels of clusters do not matter, and results after `compact` or from
        `from_json` do as well as others.

    Returns
    -------
    GroupEstimates
        The difference by group with fair value 0: `test` tests whether the samples
        differ, `contrast` whether they differ by more in one group than in another. A
        group that one of them lacks is NaN.

    Raises
    ------
    ValueError
        If the metrics, options, strata or units of the errors differ, if a result
        compares replicates, or noise alone makes the estimates of two samples differ
        (`calibration_error`), or a curve is fitted.

    Warns
    -----
    UndefinedMetricWarning
        For a group that one of the two samples has no data of.

    See Also
    --------
    compare : Two models on the same clusters.

    Notes
    -----
    The variance is the sum of the variances of both, by the jackknife over the clusters
    of both samples, and degrees of freedom are Satterthwaite's, from the leverages of
    both. Shares have the interval of the difference of two independent shares (Zou and
    Donner 2008), and so have their gaps, from the intervals of all four shares. Of two
    means of rows, such as losses, each has at least the variance that as many rows of
    the other would show, where few of these would make most of it: a small sample may
    lack the rare events of a larger one. Where the same users are in both samples their
    results are mostly alike, and the interval of the difference is then too wide rather
    than too narrow.

    To compare gaps, pass ``a.against_rest()`` and ``b.against_rest()``.

    References
    ----------
    Zou, G. Y., Donner, A. (2008). "Construction of confidence limits about effect
    measures: a general approach". Statistics in Medicine 27(10).

    Examples
    --------
    >>> import numpy as np
    >>> from skrankfair.inference import compare_independent
    >>> from skrankfair.metrics import selection_rate
    >>> rng = np.random.default_rng(0)
    >>> weeks = []
    >>> for rate in (0.3, 0.4):
    ...     group, hired = rng.choice(["f", "m"], 2000), rng.random(2000) < rate
    ...     weeks.append(selection_rate(None, hired, sensitive_features=group))
    >>> change = compare_independent(weeks[1], weeks[0])
    >>> change.estimate.round(2), bool((change.test().pvalue < 0.05).all())
    (array([0.09, 0.08]), True)
    """
    _check_comparable(a, b)
    why = a.metric.not_paired or a.metric.not_compared
    if why is not None:
        raise ValueError(f"Two samples have no comparison in {a.name}: {why}")
    if any(isinstance(x, ResampledSums) or not x.adds_up for x in (a.sums, b.sums)):
        raise ValueError(
            f"Two samples have no comparison in {a.name}, which fits a curve or "
            "compares replicates."
        )
    if a.variance != b.variance:
        raise ValueError(
            f"Results of variance={a.variance!r} and variance={b.variance!r} cannot be "
            "compared; pass the same variance= to both."
        )
    both = a.sums.as_independent(b.sums)
    difference = _difference(a, b, both, independent=True)
    return warn_undefined(difference, f"{a.metric.unit} in each sample")
