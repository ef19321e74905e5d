"""`skew_at_k`: skew of the first k places (Geyik et al. 2019; Kuhlman et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._estimates.finalize import Finalize, MeanOfRatios
from .._estimates.group_estimates import GroupEstimates
from .._estimates.storage import stored
from .._inputs.ranking import RankedData, measured_by_score
from .._inputs.validation import Array, check_number
from ._lists import (
    ListKernel,
    Lists,
    ListsWith,
    list_estimates,
    one_length,
    with_target,
)
from ._normalized_discounted import by_length, check_columns
from ._pairs.cluster_rows import QuerySums
from ._position_weights import DCG


def _or_minus_infinity(values: Array, nobody: Array) -> Array:
    """Return the values, or -inf, without a derivative, where there is nobody."""
    lowest = complex(-np.inf, np.nan) if np.iscomplexobj(values) else -np.inf
    return np.where(nobody, lowest, values)


@stored("MeanSkew")
@dataclass(frozen=True)
class MeanSkew:
    """The mean of skews: their finite sum, lists, and lists without members above."""

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the means, shape (..., G)."""
        mean = MeanOfRatios()(by_group, shared)
        return _or_minus_infinity(mean, by_group[..., 2].real > 0)


@stored("SkewOfShares")
@dataclass(frozen=True)
class SkewOfShares:
    """The skew of mean shares, from sums over lists of the shares above the cuts."""

    weights: tuple[float, ...] = (1.0,)  # one per cut

    def __call__(self, by_group: Array, shared: Array) -> Array:
        """Return the skews, shape (..., G)."""
        p, q = by_group[..., :-1], by_group[..., -1:]
        n, weights = shared[..., 0, None], np.array(self.weights)
        valid = (q[..., 0].real > 0) & (q[..., 0].real < n.real)
        some = valid[..., None] & (p.real > 0)
        skews = np.log(np.where(some, p, 1.0) / np.where(some, q, 1.0))
        out = np.where(valid, (skews * weights).sum(axis=-1) / weights.sum(), np.nan)
        return _or_minus_infinity(out, valid & ~some.all(axis=-1))


@dataclass(frozen=True)
class SkewKernel(ListKernel):
    """The kernel of `skew_at_k`."""

    k: int  # the cut, or the first of several
    average: str  # {"queries", "clusters", "representation"}
    target: tuple[float, ...] | None = None
    many: bool = False  # whether there are cuts after every k items

    signed = True
    of_values = MeanSkew()

    def of_means(self, data: RankedData) -> tuple[Finalize, Finalize, dict[str, Any]]:
        """Return the metric of mean shares, its support, and a first pass for parts."""
        if not self.many:
            return SkewOfShares(), ListsWith(), {}
        n_items = one_length(data)
        check_columns(n_items, self.k, len(data.groups))
        return self.of_cuts(n_items), ListsWith(), {"n_items": n_items}

    def cuts(self, n: int) -> Array:
        """Return the numbers of rows above the cuts of a list of n rows."""
        return np.arange(self.k, (max(n, self.k) if self.many else self.k) + 1, self.k)

    def of_cuts(self, n: int) -> SkewOfShares:
        """Return the skew of shares above the cuts of a list of n rows."""
        return SkewOfShares(tuple(DCG.at(self.cuts(n)).tolist()))

    def table(self, lists: Lists) -> QuerySums:
        """Return sums by cell, and shared ones by list."""
        q, n = lists.shares(self.target), lists.lengths
        long = n >= self.k + (self.target is None)
        cell = np.flatnonzero(lists.of_cells(long))
        if self.average == "representation":
            k = self.cuts(int(n[0]))
            shares = np.zeros((q.size, k.size))
            shares[cell] = lists.shares_above(cell, k)
            columns = np.column_stack([shares, q * lists.of_cells(long)])
            return QuerySums(lists.cells, columns, long[:, None].astype(float))
        values = np.full(q.size, np.nan)
        n = lists.of_cells(n if self.many else np.full(n.size, self.k))[cell]
        for length, same in by_length(n):
            some = cell[same]
            p = lists.shares_above(some, self.cuts(length))
            by_cell, one = np.column_stack([p, q[some]]), np.ones((some.size, 1))
            values[some] = self.of_cuts(length)(by_cell[:, None], one)[:, 0]
        finite, nobody = np.nan_to_num(values, neginf=0.0), np.isneginf(values)
        columns = np.column_stack([finite, ~np.isnan(values), nobody])
        return QuerySums.of_cells(lists.cells, columns)


def _skew_estimates(
    data: RankedData, *, k: int | None, step: int | None, target: Any, average: str
) -> GroupEstimates:
    """Return `skew_at_k` of data that is validated and ordered."""
    if k is not None and step is not None:
        raise ValueError(f"k must be None with a step, which sets the cuts; got {k!r}.")
    data, shares, option = with_target(data, target)
    name, cut = ("k", 10 if k is None else k) if step is None else ("step", step)
    check_number(cut, name, 1, np.inf, integer=True)
    kernel = SkewKernel(int(cut), average, shares, step is not None)
    parameters = {name: cut, **option, "average": average}
    longer = int(cut), f"items ({name}={cut})"
    return list_estimates("skew_at_k", data, kernel, parameters, longer_than=longer)


def skew_at_k(
    y_true: Any = None,
    y_score: Any = None,
    *,
    sensitive_features: Any = None,
    qid: Any = None,
    cluster: Any = None,
    k: int | None = None,
    step: int | None = None,
    target: Any = None,
    average: str = "queries",
    sample_weight: Any = None,
    missing: str = "raise",
) -> GroupEstimates:
    """Logarithm of a group's share of the first k over its share of the list.

    ``ln(p_k / q)``, with p_k the share of the group among the first k and q its share
    of the list: 0 is parity, a positive value is an advantage, and -inf means that
    nobody of the group is among the first k. The value has no bound, and it keeps a
    sign, while the other metrics of statistical parity are least at parity, so the
    paper recommends against it.

    Parameters
    ----------
    y_true : array-like of shape (n,) or None, default=None
        Not used; it is accepted so that all metrics are called alike.
    y_score : array-like of shape (n,)
        Scores, not ranks: higher scores rank first. With ties the share among the first
        k is its mean over the orders of the tied items.
    sensitive_features : array-like of shape (n,) or (n, d), or None, default=None
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
        None makes all rows one group, "all".
    qid : array-like of shape (n,) or None, default=None
        Query of each row: items are compared and ranked only within one query. None
        makes all rows one list.
    cluster : array-like of shape (n,) or None, default=None
        Independent units that contain whole queries, such as users with several
        queries. None makes each query its own unit.
    k : int or None, default=None
        How many positions count, from the top. None means 10. Lists with no more items
        than this have no value, because it would be 0 in any order.
    step : int or None, default=None
        Number of items between cuts, to look at several: the value is the mean of the
        skews at the cuts k = step, 2 step, ... ≤ n, weighted by ``1 / log2(k + 1)``. It
        must be None with a `k`.
    target : {"equal"}, mapping or None, default=None
        The fair share of each group. None means its share of the list. "equal", or a
        mapping from every label to its share, gives the shares in advance. A list
        without a group then shows a share of 0, and lists of one cut or more count.
    average : {"queries", "clusters", "representation"}, default="queries"
        "queries" takes the mean of the metric over lists. It is -inf if one of them has
        nobody of the group among its first k. "representation" takes the metric of the
        mean shares, which is -inf only if no list has a member there. "clusters" takes
        the mean over clusters of the value of each, whose queries are summed first, so
        that a cluster with many queries counts once.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the query, constant within it: a common factor changes nothing.
    missing : {"raise", "drop", "group"}, default="raise"
        What becomes of rows without an outcome, score or label that is needed (NaN or
        None). "raise" refuses them, "drop" leaves them out, and "group" makes those
        without a label the group "missing" and leaves out the others. The result and a
        warning say how many there are.

    Returns
    -------
    GroupEstimates
        One row per group; fair value 0, tested by permutation, two-sided.

    Raises
    ------
    ValueError
        If columns have different lengths, values are not finite, labels are missing, a
        query is in two clusters, or an option is unknown.

    Warns
    -----
    UndefinedMetricWarning
        For a value of -inf, which has no error; for lists that are left out because
        they are too short; for a group that is in no list or is the whole of every
        one, whose estimate is NaN; and for a group in one list of several, which has
        no error.

    See Also
    --------
    ndkl : The divergence of all positions and groups.

    Notes
    -----
    The variance is the jackknife's: ``(Q - 1) / Q · Σ_q (θ_(-q) - θ)²`` over the Q
    clusters with data of the group, θ_(-q) the estimate without cluster q.
    Even for fair rankings the mean is not 0, because it is the mean of a logarithm.
    Where `cluster` has several lists, and a list may have nobody of the group among its
    first k by chance alone, there is no test but that of ``average="representation"``.

    In lists of 20 items, 40% of them in a group whose normal scores are lower by 0.1
    standard deviations, ``k=5`` with ``average="representation"`` finds the group in 9%
    of data sets of 25 lists, 29% of 100 and 83% of 400, and a shift of 0.2 in 29% of 25
    and 83% of 100. A test of all scores finds 0.1 in 18%, 67% and 100%. Fair rankings
    are rejected in 1% to 5%.

    Geyik et al. look at one k; equation 1 of Kuhlman et al. sums over cuts (their
    footnote 1), which `step` does. Their sum is the value times the sum of the weights.

    References
    ----------
    Geyik, S. C., Ambler, S., Kenthapadi, K. (2019). "Fairness-Aware Ranking in Search &
    Recommendation Systems with Application to LinkedIn Talent Search". KDD. §3.

    Kuhlman, C., Gerych, W., Rundensteiner, E. (2021). "Measuring Group Advantage: A
    Comparative Study of Fair Ranking Metrics". AIES. §2.1, equations 1 and 4.

    Examples
    --------
    >>> from skrankfair.metrics import skew_at_k
    >>> score = [8, 7, 6, 5, 4, 3, 2, 1]
    >>> group = ["m", "m", "m", "f", "m", "f", "f", "f"]
    >>> skew_at_k(None, score, sensitive_features=group, k=4).estimate.round(4)
    array([-0.6931,  0.4055])
    >>> target = {"f": 0.3, "m": 0.7}
    >>> skew_at_k(
    ...     None, score, sensitive_features=group, k=4, target=target
    ... ).estimate.round(4)
    array([-0.1823,  0.069 ])
    """
    return measured_by_score(_skew_estimates, **locals())
