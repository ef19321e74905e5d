"""What pairwise regularisation minimises: losses of scores, and |Corr(A, B)| of pairs.

A is the score difference of the better and the worse item times the difference of their
outcomes, B is the group membership. `PreferencePairs.correlation` gives the correlation
and its gradient, of which `absolute_correlations` makes the penalty.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.special import expit, logit

from .._inputs.columns import read_labels
from .._inputs.groups import Groups, stable_order
from .._inputs.ranking import ranked_data
from .._inputs.validation import (
    Array,
    as_numbers,
    check_aligned,
    check_choice,
    check_given,
    check_lengths,
    check_magnitude,
    check_number,
    generator,
    warn_user,
)
from ..metrics._pairwise import strata_of
from ._by_group import quoted

COMPARISONS = ("inter", "intra", "all")


@dataclass(frozen=True)
class PreferencePairs:
    """Pairs of a better and a worse item of a query, for one group against the rest."""

    #: Shape (n_pairs,), int. Rows.
    better: Array
    worse: Array
    margin: Array  # shape (n_pairs,): ``y[better] - y[worse]``, positive
    #: Shape (n_pairs,). B, the group membership that the residual must not be
    #: correlated with.
    membership: Array
    #: Shape (n_pairs,). Adds up to 1, half of it on pairs whose better item is in the
    #: group.
    weight: Array
    #: How much the term counts: one over the number of strata of its group.
    share: float = 1.0

    @cached_property
    def direction(self) -> Array:
        """B minus its mean, divided by its standard deviation and times the weight."""
        b = self.membership - self.weight @ self.membership
        return self.weight * b / np.sqrt(self.weight @ b**2)

    def _centred(self, score: Array) -> Array:
        """Return A minus its mean."""
        a = (score[self.better] - score[self.worse]) * self.margin
        return a - (self.weight * a).sum()

    def spread(self, score: Array) -> float:
        """Return the variance of A."""
        return float((self.weight * self._centred(score) ** 2).sum())

    def correlation(self, score: Array, floor: float = 0.0) -> tuple[float, Array]:
        """Return the correlation of A and B, and its gradient in the scores.

        The `floor` is added to the variance of A.
        """
        # Sums of products: as dot products they wait for threads that others use.
        a = self._centred(score)
        weighted = self.weight * a
        deviation = np.sqrt(float((weighted * a).sum()) + floor)
        value = float((self.direction * a).sum()) / deviation
        # Both a and b have mean 0, so has what the weights multiply: centring A again
        # in the derivative changes nothing.
        slope = (self.direction - value / deviation * weighted) / deviation
        by_pair = self.margin * slope
        gradient = np.bincount(self.better, by_pair, minlength=score.size)
        gradient -= np.bincount(self.worse, by_pair, minlength=score.size)
        return float(value), gradient


@dataclass(frozen=True)
class PairSource:
    """Rows of which pairs are drawn, and how many."""

    y: Array  # shape (n,)
    query: Array  # shape (n,): codes from 0
    comparison: str
    n_pairs: int
    rng: np.random.Generator
    weight: Array  # shape (n,)
    keep: Callable[[Array, Array], Any] | None = None

    def sides(self, member: Array, better: Any = True) -> Iterator[tuple[Array, Array]]:
        """Yield pairs whose better item is outside, and then inside, the group.

        Half of the pairs are for each side, drawn with replacement; a side that has no
        more than that is taken whole. Pairs that are not drawn are not written down:
        the partners of a row are a range. `member` is boolean, and `better` says which
        rows may be the better item of a pair, or that all may.
        """
        query, comparison, n_pairs = self.query, self.comparison, self.n_pairs // 2
        rank = np.unique(self.y, return_inverse=True)[1].astype(np.int64)
        n_ranks = int(rank.max()) + 1
        side = member.astype(np.int64) if comparison != "all" else np.zeros_like(rank)
        partner = 1 - side if comparison == "inter" else side
        key = (2 * query + side) * n_ranks + rank
        order = stable_order(key)
        ordered = key[order]
        for inside in (False, True):
            rows = order[((member == inside) & (rank > 0) & better)[order]]
            start = (2 * query[rows] + partner[rows]) * n_ranks
            first = np.searchsorted(ordered, start)
            n_worse = np.searchsorted(ordered, start + rank[rows]) - first
            before = np.append(0, np.cumsum(n_worse))
            if (n_all := int(before[-1])) > n_pairs:
                number = np.sort(self.rng.integers(n_all, size=n_pairs))
            else:
                number = np.arange(n_all)
            at = np.searchsorted(before, number, side="right") - 1
            yield rows[at], order[first[at] + number - before[at]]

    def draw(self, member: Array, better: Any = True) -> PreferencePairs | None:
        """Return pairs of a group against the rest, or None without any.

        They are those of `sides`. A pair counts the geometric mean of the weights of
        its rows, which is that of their query.
        """
        y, weight, drawn, weights = self.y, self.weight, [], []
        for i, j in self.sides(member, better):
            if self.keep is not None:
                kept = np.asarray(self.keep(i, j), dtype=bool).ravel()
                check_lengths(pairs=i.size, keep=kept.size)
                i, j = i[kept], j[kept]
            counts = np.sqrt(weight[i] * weight[j])
            if not counts.sum() > 0:
                return None
            drawn.append((i, j))
            weights.append(counts / (2 * counts.sum()))
        i, j = map(np.concatenate, zip(*drawn, strict=True))
        margin = y[i] - y[j]
        inside = member[i].astype(float)
        intra = self.comparison == "intra"
        membership = (2 * inside - 1 if intra else inside - member[j]) * margin
        if not np.ptp(membership) > 0:
            # "all" without a pair between groups.
            return None
        return PreferencePairs(i, j, margin, membership, np.concatenate(weights))

    def draw_by_group(
        self, groups: Groups, consequence: str, stratum: Array | None = None
    ) -> dict[Hashable, PreferencePairs | None]:
        """Return the pairs of each group against the rest; warn of those without any.

        Two groups without a row of both or of neither are one comparison, that of the
        first of them. The `consequence` ends the warning. With the `stratum` of each
        row, in which it is the better item, there are terms by group and stratum, of
        which those of a group count as one.
        """
        twice = len(groups) == 2 and (groups.mask(0) != groups.mask(1)).all()
        pairs: dict[Hashable, PreferencePairs | None] = {}
        without = []
        for k, label in enumerate(groups.labels[:1] if twice else groups.labels):
            drawn: dict[Hashable, PreferencePairs | None] = {}
            if stratum is None:
                drawn[label] = self.draw(groups.mask(k))
            else:
                for b in np.unique(stratum).tolist():
                    drawn[label, b] = self.draw(groups.mask(k), stratum == b)
            n_drawn = sum(term is not None for term in drawn.values())
            if not n_drawn:
                without.append(label)
            for key, term in drawn.items():
                pairs[key] = term and replace(term, share=1 / n_drawn)
        if without:
            warn_user(
                "There is no comparable pair (a better and a worse item of one query, "
                f"comparison={self.comparison!r}, with the better item once in the "
                "group and once outside it) for the groups "
                f"{quoted(without)}: {consequence}"
            )
        return pairs


def groups_and_queries(
    lengths: Mapping[str, int], **columns: Any
) -> tuple[Groups, Array, Array]:
    """Return the groups of rows, codes of their queries, and weights, 1 if not given.

    The `columns` are `sensitive_features`, `qid` and `sample_weight`. A row of weight 0
    is a query of its own, in no pair.
    """
    groups, codes, weights = read_labels(lengths, **columns)
    weight = weights.get("sample_weight", np.broadcast_to(1.0, groups.n_rows))
    alike = np.zeros(groups.n_rows, dtype=np.int64)
    query = codes["qid"].codes if "qid" in codes else alike
    alone = query.max(initial=0) + 1 + np.arange(groups.n_rows)
    return groups, np.where(weight > 0, query, alone), weight


#: Where |r| is rounded off: sqrt(r² + WIDTH²) - WIDTH.
WIDTH = 1e-3


def smooth_absolute(value: float, width: float = WIDTH) -> tuple[float, float]:
    """Return sqrt(r² + width²) - width and its derivative."""
    root = float(np.hypot(value, width))
    return root - width, value / root


#: How much a term of the penalty counts, and its correlation with the gradient.
Term = tuple[float, Callable[[Array], tuple[float, Array]]]


def absolute_correlations(
    terms: Iterable[Term], at: Array, width: float = WIDTH
) -> tuple[float, Array]:
    """Return the sum of smoothed absolute correlations, and its gradient."""
    total, gradient = 0.0, np.zeros(at.shape)
    for share, correlation in terms:
        value, slope = correlation(at)
        penalty, factor = smooth_absolute(value, width)
        total += share * penalty
        gradient += share * factor * slope
    return total, gradient


@dataclass(frozen=True)
class PairwisePenalty:
    """The penalty of scores that underrank a group, and its gradient.

    Made by `pairwise_penalty`.

    Attributes
    ----------
    pairs : dict
        The drawn pairs by group, or by (group, stratum) with engagement.
    n_rows : int
        Number of rows that have scores.
    least_spread : float
    """

    pairs: Mapping[Hashable, PreferencePairs]
    n_rows: int
    least_spread: float

    @property
    def terms(self) -> list[Term]:
        """The terms as functions of the scores."""
        terms: list[Term] = []
        for p in self.pairs.values():
            # The variance of A where all differences of scores are the least spread.
            floor = self.least_spread**2 * float(p.weight @ p.margin**2)
            terms.append((p.share, partial(p.correlation, floor=floor)))
        return terms

    def __call__(self, score: Any) -> tuple[float, Array]:
        """Return the penalty and its gradient.

        Parameters
        ----------
        score : array-like of shape (n,)
            Scores of the rows that the penalty was made for.

        Returns
        -------
        value : float
        gradient : ndarray of shape (n,)
        """
        return absolute_correlations(self.terms, self._checked(score))

    def of_heads(self, heads: Any, weights: Any = None) -> tuple[float, Array]:
        """Return the penalty of a score that several predictions make up.

        Parameters
        ----------
        heads : array-like of shape (n, h)
            Predictions of each row, such as those of the click and of the engagement
            after it, ``g(y, z)`` of the paper.
        weights : array-like of shape (h,) or None, default=None
            The score is the sum of the heads times these; None: their product.

        Returns
        -------
        value : float
        gradient : ndarray of shape (n, h)
            By each prediction.
        """
        heads = np.asarray(heads, dtype=float)
        if heads.ndim != 2:
            raise ValueError(f"heads must have shape (n, h); got {heads.shape}.")
        if weights is None:
            others = [np.delete(heads, h, 1).prod(1) for h in range(heads.shape[1])]
            score, slopes = heads.prod(axis=1), np.stack(others, axis=1)
        else:
            slopes = as_numbers(weights, "weights")[None]
            check_lengths(heads=heads.shape[1], weights=slopes.size)
            score = heads @ slopes[0]
        value, gradient = self(score)
        return value, gradient[:, None] * slopes

    def correlation(self, score: Any) -> dict[Hashable, float]:
        """Return the correlation of each term.

        Parameters
        ----------
        score : array-like of shape (n,)
            Scores of the rows that the penalty was made for.

        Returns
        -------
        dict
            By group, or by (group, stratum); negative: good items of the group win by
            less than good items of the rest. NaN where all scores are equal.
        """
        score = self._checked(score)
        return {
            key: pairs.correlation(score)[0] if pairs.spread(score) > 0 else np.nan
            for key, pairs in self.pairs.items()
        }

    def _checked(self, score: Any) -> Array:
        score = as_numbers(score, "score")
        check_lengths(rows=self.n_rows, score=score.size)
        return score


def pairwise_penalty(
    y_true: Any,
    *,
    sensitive_features: Any,
    qid: Any = None,
    engagement: Any = None,
    bins: Any = 4,
    comparison: str = "inter",
    sample_weight: Any = None,
    keep: Callable[[Array, Array], Any] | None = None,
    least_spread: float = 1e-6,
    max_pairs: int = 100_000,
    random_state: int | np.random.Generator | None = None,
) -> PairwisePenalty:
    """Make the penalty of scores that underrank a group, with its gradient.

    It is ``Σ_k |Corr_k(A, B)|`` over groups k, each against the rest (of two groups
    that are each other's rest, over one of them), and a function of scores alone: any
    model that takes the gradient of a loss of its scores can be trained with it. A =
    (s_i - s_j)(y_i - y_j) is how clearly the score tells a better item i from a worse
    item j of its query, B = (g_i - g_j)(y_i - y_j) whether the better one is in the
    group.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes or relevance, binary, graded or real; larger is better.
    sensitive_features : array-like of shape (n,) or (n, d)
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
    qid : array-like of shape (n,) or None, default=None
        Query of each row: items are compared and ranked only within one query. None
        makes all rows one list.
    engagement : array-like of shape (n,) or None, default=None
        Engagement after the click. Each group then has a term for each stratum of the
        engagement of the better item, whose mean is its part of the penalty. May be NaN
        where an item is better than no other.
    bins : int or sequence of float, default=4
        Number of strata of equal size, or their increasing edges.
    comparison : {"inter", "intra", "all"}, default="inter"
        Pairs of the penalty: an item in the group with one outside it, pairs inside the
        group and inside the rest, or all.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the row: a common factor changes nothing, and 0 leaves it out. A
        pair counts the geometric mean of the weights of its two rows, which is the
        weight of the query where that is constant.
    keep : callable or None, default=None
        Which pairs to keep: from the row numbers of better and of worse items, two
        arrays of shape (m,), to a boolean array of shape (m,). It takes out pairs of
        items that are too much alike for their order to mean anything.
    least_spread : float, default=1e-6
        Differences of scores with a smaller spread count as if they had this one, so
        that the penalty of equal scores is 0 and has a gradient.
    max_pairs : int, default=100000
        Number of pairs drawn for each term, at least 2: half of them have the better
        item in the group and half outside. Where there are no more, all are taken.
    random_state : int, Generator or None, default=None
        Seed or generator of the random numbers. None draws anew in each call. The
        pairs are drawn with it.

    Returns
    -------
    PairwisePenalty
        Called with scores it returns the penalty and its gradient.

    Raises
    ------
    ValueError
        If columns have different lengths, values are not finite, an option is outside
        its range, or the engagement of an item that is better than another is unknown.

    Warns
    -----
    UndefinedMetricWarning
        If a group has no comparable pair; its part of the penalty is then left out.

    See Also
    --------
    PairwiseFairRegressor : A linear model that is trained with it.
    pairwise_fairness_objective : The same for boosted models.

    Notes
    -----
    The correlation r is over pairs that are balanced, so that the better item is in the
    group half of the time, and ``|r|`` is smoothed to sqrt(r² + 10⁻⁶) - 10⁻³. The
    penalty does not change with the scale of the scores (above `least_spread`), nor
    with a constant that is added to all of them.

    References
    ----------
    Beutel, A., Chen, J., Doshi, T., et al. (2019). "Fairness in Recommendation Ranking
    through Pairwise Comparisons", section 5, equations 10 to 12, and 6.2. KDD '19.

    Examples
    --------
    A linear score, trained by plain gradient descent:

    >>> from skrankfair.datasets import make_underranked_items
    >>> from skrankfair.mitigation import pairwise_penalty
    >>> data = make_underranked_items(random_state=0)
    >>> who = {"sensitive_features": data.sensitive_features, "qid": data.qid}
    >>> penalty = pairwise_penalty(data.y_true, **who, random_state=0)
    >>> X, y = data.X - data.X.mean(axis=0), data.y_true - data.y_true.mean()
    >>> for strength in (0, 1):
    ...     coef = 0 * X[0]
    ...     for _ in range(200):
    ...         score = X @ coef
    ...         _, of_penalty = penalty(score)
    ...         gradient = (score - y) / y.size + 0.005 * strength * of_penalty
    ...         coef = coef - 0.5 * X.T @ gradient
    ...     print(f"{penalty(X @ coef)[0]:.2f}")
    0.39
    0.00
    """
    check_choice(comparison, "comparison", COMPARISONS)
    check_number(max_pairs, "max_pairs", 2, np.inf, integer=True)
    check_number(least_spread, "least_spread", 0, np.inf, inclusive=(False, False))
    if keep is not None and not callable(keep):
        raise ValueError(f"keep must be a function of two arrays; got {keep!r}.")
    check_given(sensitive_features=sensitive_features)
    columns = {"sensitive_features": sensitive_features, "qid": qid}
    columns["sample_weight"] = sample_weight
    check_aligned(y_true=y_true, engagement=engagement, **columns)
    y = as_numbers(y_true, "y_true")
    check_magnitude(y_true=y)
    groups, query, weight = groups_and_queries({"y_true": y.size}, **columns)
    stratum = None
    if engagement is not None:
        data = ranked_data(y, y, qid=qid, item_weight=sample_weight)
        stratum = np.zeros(y.size, dtype=int)
        of_rows, _, _ = strata_of(data, engagement, bins)
        stratum[data.kept] = of_rows[data.ranking.order]
    rng, n_pairs = generator(random_state), int(max_pairs)
    source = PairSource(y, query, comparison, n_pairs, rng, weight, keep)
    without = "their part of the penalty is left out."
    drawn = source.draw_by_group(groups, without, stratum)
    pairs = {key: term for key, term in drawn.items() if term is not None}
    return PairwisePenalty(pairs, y.size, float(least_spread))


LEAST_HESSIAN = 1e-6


@dataclass(frozen=True)
class _Rows:
    """Outcomes of rows, and their weights."""

    y: Array
    weight: Array


class SquaredRows(_Rows):
    """Σ (y - s)² / 2."""

    @property
    def constant(self) -> float:
        """The constant score with the smallest loss."""
        return float(np.average(self.y, weights=self.weight))

    @property
    def unit(self) -> float:
        """A usual difference of scores."""
        square = (self.y - self.constant) ** 2
        return float(np.sqrt(np.average(square, weights=self.weight)))

    def __call__(self, score: Array) -> tuple[float, Array, Array]:
        """Return the loss, its gradient, and the diagonal of its Hessian."""
        residual, w = score - self.y, self.weight
        return float((w * residual**2).sum()) / 2, w * residual, w.copy()


class LogisticRows(_Rows):
    """Σ log(1 + exp(-t s)), t = ±1 for the outcomes 1 and 0."""

    unit = 2.0

    @property
    def constant(self) -> float:
        """The constant score with the smallest loss, 0 with one outcome only."""
        rate = float(np.average(self.y, weights=self.weight))
        return float(logit(rate)) if 0 < rate < 1 else 0.0

    def __call__(self, score: Array) -> tuple[float, Array, Array]:
        """Return the loss, its gradient, and the diagonal of its Hessian."""
        p, w = expit(score), self.weight
        loss = np.logaddexp(0, score) - self.y * score
        curvature = np.maximum(w * p * (1 - p), LEAST_HESSIAN)
        return float((w * loss).sum()), w * (p - self.y), curvature
