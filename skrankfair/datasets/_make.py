"""Simulated data of which the bias is known, and rankings as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from textwrap import dedent
from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats
from scipy.optimize import least_squares
from sklearn.utils import Bunch

from .._inputs.validation import Array, check_choice, check_number, generator

#: Of biased rankings: where the advantage is not the same at all places.
_EXCEPTIONS = {
    "constant": "",
    "decreasing": " at the top, which falls evenly to 0 at the bottom",
    "padded": " below the first {k}, which are not protected",
    "rooney": " below the first {k}, of which {tokens} are protected, at random places",
}
#: Of confounded queries: the biases of the paper, by type of query and of item.
_BIAS = ((1.5, 1.1), (0.9, 0.7))
_ROUNDING = 1e-12
#: Of underranked items: the gaps of the paper.
_GAPS = (1.083, 1.149, 1.356)
_LEVEL = 0.65  # pairwise accuracy among items of the rest
_NOISE = 4 / 9  # variance in the shared feature, in units of that of membership
_START = (-1.0, -1.8, -0.4, 0.8)
_NORMAL_NODES, _GRID, _WIDTH = 15, 801, 8.0
_TOLERANCE = 1e-6
#: Of scores with a bias by construction: the nodes over which errors are integrated.
_NODES = 20_000
#: Link functions and their inverses, by name.
_LINKS: dict[str, tuple[Any, Any]] = {
    "logit": (special.logit, special.expit),
    "probit": (special.ndtri, special.ndtr),
    "cloglog": (lambda p: np.log(-np.log1p(-p)), lambda x: -np.expm1(-np.exp(x))),
}


def rankings_to_columns(rankings: Iterable[Iterable[Any]]) -> dict[str, Any]:
    """Turn ordered lists of group labels into the columns of a metric.

    Papers and rankers often have one list of labels per ranking, the best item first.
    Metrics take one row per item, with its score and its query.

    Parameters
    ----------
    rankings : iterable of iterables
        One ordered list of group labels per ranking, from the top down. Lists of items
        work too: look up the labels of the items in the column afterwards.

    Returns
    -------
    columns : dict of str to ndarray or list
        By the names of a metric's arguments: "y_score", the number of places from the
        bottom, which is 1 for the last of a list; "sensitive_features", the labels; and
        "qid", the number of the list, from 0.

    Raises
    ------
    ValueError
        If there is no list, or one without items.

    See Also
    --------
    make_biased_rankings : Rankings with an advantage of known size.

    Examples
    --------
    >>> from skrankfair.datasets import rankings_to_columns
    >>> from skrankfair.metrics import pairwise_parity
    >>> columns = rankings_to_columns(["mmfmf", "mfmmf", "fmmmf"])
    >>> pairwise_parity(**columns, signed=True).estimate.round(3)
    array([-0.333,  0.333])
    """
    lists = [list(ranking) for ranking in rankings]
    lengths = [len(labels) for labels in lists]
    if min(lengths, default=0) == 0:
        raise ValueError(
            "rankings must be lists of at least one item each; got "
            f"{len(lists)} lists, of {lengths[:5]} items."
        )
    return {
        "y_score": np.concatenate([np.arange(n, 0, -1) for n in lengths]),
        "sensitive_features": [label for labels in lists for label in labels],
        "qid": np.repeat(np.arange(len(lists)), lengths),
    }


def make_biased_rankings(
    n_rankings: int = 100,
    n_items: int = 100,
    share: float = 0.5,
    advantage: float = 0.5,
    *,
    pattern: str = "constant",
    k: int = 10,
    random_state: int | np.random.Generator | None = None,
) -> Bunch:
    """Draw rankings in which a protected group has an advantage.

    Each ranking is filled from the top: while items of both groups remain, the next one
    is protected with probability `advantage`, whatever is above it; when one group is
    used up, the other follows.

    Parameters
    ----------
    n_rankings : int, default=100
    n_items : int, default=100
        Items of each ranking.
    share : float, default=0.5
        Share of the protected group; ``round(share * n_items)`` items are protected.
    advantage : float, default=0.5
        The α of Kuhlman et al.: 0 is a total disadvantage of the protected group, 1 a
        total advantage; near `share` there is none.
    pattern : {"constant", "decreasing", "padded", "rooney"}, default="constant"
        Where the advantage holds. "decreasing": the probability falls evenly from
        `advantage` at the top to 0 at the bottom. "padded": the first `k` are not
        protected. "rooney": of the first `k` a tenth is protected, and one at least, at
        random places. Below the first `k` the probability is `advantage`.
    k : int, default=10
        How many positions at the top "padded" and "rooney" fill in their own way.
    random_state : int, Generator or None, default=None
        Seed or generator of the random numbers. None draws anew in each call.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object; its columns have ``n_rankings * n_items`` rows, from the
        top of the first ranking down, and the names of a metric's arguments.

        y_score : ndarray of int
            ``n_items`` at the top, 1 at the bottom.
        sensitive_features : ndarray of str
            "protected" or "other".
        qid : ndarray of int
            Ranking, from 0.
        n_protected : int
            Protected items of each ranking.
        position_share : ndarray of shape (n_items,)
            The exact probability that the item at a position is protected.
        DESCR : str
            The distribution.

    Raises
    ------
    ValueError
        For a number outside its range, or a group that has too few items to fill the
        first `k` positions as the pattern asks.

    See Also
    --------
    skrankfair.metrics.expected_advantage : Metrics of position probabilities.

    Notes
    -----
    All patterns but "constant" are those of the supplement of Kuhlman et al., and break
    the assumptions of their theorems: the share of the group does not only fall, or
    only rise, from the top down. For a padding with the protected group, pass the share
    and the advantage of the others, and exchange the labels.

    The item at a position depends only on the number of protected items above it, and
    `position_share` follows the distribution of this number from the top down.

    References
    ----------
    Yang, K., Stoyanovich, J. (2017). "Measuring Fairness in Ranked Outputs". SSDBM.

    Kuhlman, C., Gerych, W., Rundensteiner, E. (2021). "Measuring Group Advantage: A
    Comparative Study of Fair Ranking Metrics". AIES. §6.

    Examples
    --------
    >>> from skrankfair.datasets import make_biased_rankings
    >>> from skrankfair.metrics import pairwise_parity
    >>> data = make_biased_rankings(50, 40, share=0.2, advantage=0.5, random_state=0)
    >>> pairwise_parity(
    ...     None,
    ...     data.y_score,
    ...     sensitive_features=data.sensitive_features,
    ...     qid=data.qid,
    ...     signed=True,
    ... ).estimate.round(2)
    array([-0.73,  0.73])
    >>> data.position_share[[0, 9, 19, 39]].round(3)
    array([0.5 , 0.49, 0.09, 0.  ])
    """
    check_number(n_rankings, "n_rankings", 1, np.inf, integer=True)
    check_number(n_items, "n_items", 1, np.inf, integer=True)
    check_number(share, "share", 0, 1)
    check_number(advantage, "advantage", 0, 1)
    check_choice(pattern, "pattern", tuple(_EXCEPTIONS))
    check_number(k, "k", 1, np.inf, integer=True)
    n_protected = round(float(share) * n_items)
    tokens = {"padded": 0, "rooney": max(1, k // 10)}.get(pattern)
    if tokens is not None and not k - n_items + n_protected <= tokens <= n_protected:
        raise ValueError(
            f"k must leave {tokens} of the first k places to the protected group, and "
            f"the others to the rest; got k={k} for {n_protected} of {n_items} items."
        )

    def chance(position: int, taken: Array) -> Array:
        """Return the probability of a protected item after `taken` of them."""
        probability = np.full(taken.size, float(advantage))
        if pattern == "decreasing":
            probability *= 1 - position / n_items
        elif tokens is not None and position < k:
            probability = (tokens - taken) / (k - position)
        probability[taken == n_protected] = 0.0
        probability[position - taken == n_items - n_protected] = 1.0
        return probability

    drawn = generator(random_state).random((int(n_rankings), int(n_items)))
    protected, taken = np.empty(drawn.shape, dtype=bool), np.zeros(len(drawn))
    for position in range(int(n_items)):
        protected[:, position] = drawn[:, position] < chance(position, taken)
        taken += protected[:, position]
    exception = _EXCEPTIONS[pattern].format(k=k, tokens=tokens)
    description = f"""\
        Biased rankings
        ===============

        {n_rankings:,} rankings of {n_items} items, {n_protected} of them protected,
        after Yang and Stoyanovich, "Measuring Fairness in Ranked Outputs". The data are
        simulated, not collected.

        Each ranking is filled from the top: while both groups have items left, the next
        one is protected with probability {advantage:g}{exception}; then the rest
        follows. An advantage of 0 puts the protected group last, 1 puts it first, and a
        value near its share ({share:g}) gives it about the same chance at every
        position.
        """
    return Bunch(
        y_score=np.tile(np.arange(n_items, 0, -1), n_rankings),
        sensitive_features=np.where(protected.ravel(), "protected", "other"),
        qid=np.repeat(np.arange(n_rankings), n_items),
        n_protected=n_protected,
        position_share=_position_share(int(n_items), n_protected, chance),
        DESCR=dedent(description),
    )


def _position_share(
    n_items: int, n_protected: int, chance: Callable[[int, Array], Array]
) -> Array:
    """Return the probability of a protected item at each position."""
    numbers, out = np.arange(n_protected + 1), np.empty(n_items)
    distribution = (numbers == 0).astype(float)
    for position in range(n_items):
        here = distribution * np.clip(chance(position, numbers), 0.0, 1.0)
        out[position] = here.sum()
        distribution -= here
        distribution[1:] += here[:-1]
    return np.clip(out, 0.0, 1.0)


def make_confounded_queries(
    n_queries: int = 1000,
    *,
    n_items: int = 10,
    bias: Any = _BIAS,
    share: Any = None,
    random_state: int | np.random.Generator | None = None,
) -> Bunch:
    """Draw queries whose ranker is biased and yet calibrated in each group.

    In every query an item of type 1 is more often relevant than one of type 2 with the
    same score, so type 1 is undervalued. In queries of one kind all scores are too low,
    in those of the other kind they are too high, and items of type 1 are mostly in the
    latter. Over all queries both types are therefore relevant exactly as often as their
    scores say. Calibration by group finds nothing, but matched pairs find the bias.

    Parameters
    ----------
    n_queries : int, default=1000
    n_items : int, default=10
        Items of each query.
    bias : array-like of shape (2, 2), default=((1.5, 1.1), (0.9, 0.7))
        The b of the query types u and v (rows) and the item types 1 and 2 (columns), in
        [0, 2]. At 1 the type is calibrated, above 1 it is undervalued. With equal
        columns the ranker is fair.
    share : array-like of shape (2,) or None, default=None
        Probability of an item of type 1 in queries u and v. None takes the shares that
        calibrate both types over all queries, which are (1/7, 5/7) for the default
        bias.
    random_state : int, Generator or None, default=None
        Seed or generator of the random numbers. None draws anew in each call.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object; its columns have ``n_queries * n_items`` rows and the
        names of a metric's arguments.

        y_true : ndarray of int
            1 if the item is relevant, else 0.
        y_score : ndarray of float
            The signal s, which the ranker forwards as its score.
        sensitive_features : ndarray of int
            Item type, 1 or 2.
        qid : ndarray of int
            Query, from 0.
        query_type : ndarray of str
            "u" or "v": the confounder, which an analyst does not see.
        expected : ndarray of float
            E[y_true], given everything else.
        share : ndarray of shape (2,)
            The shares that were used.
        DESCR : str
            The distribution.

    Raises
    ------
    ValueError
        If the bias is outside [0, 2] or the share outside [0, 1], or if `share` is None
        and no shares calibrate both types with this bias.

    See Also
    --------
    skrankfair.metrics.matched_pair_calibration : Finds the bias.

    Notes
    -----
    Type k is calibrated if ``P(u | k) b_uk + P(v | k) b_vk = 1``, so if
    ``P(u | k) = r_k = (1 - b_vk) / (b_uk - b_vk)``. With ``P(u) = 1/2`` the two
    conditions give ``P(1 | u) = r_1 t`` and ``P(1 | v) = (1 - r_1) t`` with
    ``t = (1 - 2 r_2) / (r_1 - r_2)``.

    For ``epsilon -> 0`` the matched pair calibration of type 1 is
    ``Σ_q p_q (1 - p_q) (b_q1 - b_q2) / Σ_q p_q (1 - p_q) / 4`` with
    ``p_q = P(1 | q)``: 0.06875 by default.

    References
    ----------
    Korevaar, H., McConnell, C., Tong, E., et al. "Matched Pair Calibration for Ranking
    Fairness", Appendix A, equation 8.

    Examples
    --------
    >>> from skrankfair.datasets import make_confounded_queries
    >>> from skrankfair.metrics import matched_pair_calibration
    >>> data = make_confounded_queries(5000, random_state=0)
    >>> matched_pair_calibration(
    ...     data.y_true,
    ...     data.y_score,
    ...     sensitive_features=data.sensitive_features,
    ...     qid=data.qid,
    ...     epsilon=0.05,
    ... )
    matched_pair_calibration(direction='below', average='pairs')
    group  estimate        95% interval  pairs    slope       p
    1        0.0411    [0.0206, 0.0615]  3,605  -0.0298  <0.001
    2       -0.1036  [-0.1243, -0.0830]  3,715  -0.0296  <0.001
    5,000 clusters; fair value 0 plus slope
    """
    check_number(n_queries, "n_queries", 1, np.inf, integer=True)
    check_number(n_items, "n_items", 1, np.inf, integer=True)
    b = _numbers(bias, "bias", (2, 2), 2.0)
    p = _calibrating(b) if share is None else _numbers(share, "share", (2,), 1.0)
    rng = generator(random_state)
    shape = (int(n_queries), int(n_items))
    in_v = rng.integers(0, 2, size=shape[0])
    is_two = (rng.random(shape) >= p[in_v, None]).astype(np.int64)
    score = rng.random(shape)
    slope = b[in_v[:, None], is_two]
    expected = np.where(score < 0.5, slope * score, 1.0 - (2.0 - slope) * (1.0 - score))
    relevant = rng.random(shape) < expected
    description = f"""\
        Confounded queries
        ==================

        {shape[0]:,} queries of {shape[1]} items, after Appendix A of Korevaar et al.,
        "Matched Pair Calibration for Ranking Fairness". The data are simulated, not
        collected.

        A query is of type "u" or "v" with equal chance. An item is of type 1 with
        probability {p[0]:.4g} in a query "u" and {p[1]:.4g} in a query "v", else of
        type 2. Its score s is uniform on [0, 1], and it is relevant with probability
        b*s for s < 1/2 and 1 - (2 - b)*(1 - s) above, where b is {b[0, 0]:g} and
        {b[0, 1]:g} for the types 1 and 2 in "u", {b[1, 0]:g} and {b[1, 1]:g} in "v".
        """
    return Bunch(
        y_true=relevant.ravel().astype(np.int64),
        y_score=score.ravel(),
        sensitive_features=is_two.ravel() + 1,
        qid=np.repeat(np.arange(shape[0]), shape[1]),
        query_type=np.repeat(np.array(["u", "v"])[in_v], shape[1]),
        expected=expected.ravel(),
        share=p,
        DESCR=dedent(description),
    )


def _numbers(values: Any, name: str, shape: tuple[int, ...], high: float) -> Array:
    """Return an array of a shape, with numbers between 0 and `high`."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError, OverflowError):
        array = np.empty(0)
    # Written so that NaN, for which comparisons are false, is refused too.
    if array.shape != shape or not ((array >= 0) & (array <= high)).all():
        raise ValueError(
            f"{name} must be an array of shape {shape} of numbers in [0, {high:g}]; "
            f"got {values!r}."
        )
    return array


def _calibrating(b: Array) -> Array:
    """Return the shares of type 1 in u and v that calibrate both item types."""
    with np.errstate(divide="ignore", invalid="ignore"):
        of_u = (1 - b[1]) / (b[0] - b[1])
        total = (1 - 2 * of_u[1]) / (of_u[0] - of_u[1])
        share: Array = np.array([of_u[0], 1 - of_u[0]]) * total
    # Both types have to occur, and rounding may push a share just beyond 1.
    within = (share > -_ROUNDING) & (share < 1 + _ROUNDING)
    if not (within.all() and _ROUNDING < share.mean() < 1 - _ROUNDING):
        raise ValueError(
            "share must be given: no shares calibrate both item types with this bias "
            f"({b.tolist()})."
        )
    return np.clip(share, 0.0, 1.0)


class Design(NamedTuple):
    """The parameters of the distribution, on the scale of the noise of the utility."""

    share: float
    rest: float
    subgroup: float
    match: float
    penalty: float

    @property
    def noise(self) -> float:
        """Standard deviation of the noise of the shared feature."""
        return float(np.sqrt(_NOISE * self.share * (1 - self.share)))


def make_underranked_items(
    n_queries: int = 2000,
    *,
    n_items: int = 20,
    share: float = 0.1,
    gaps: Any = _GAPS,
    n_signals: int = 3,
    random_state: int | np.random.Generator | None = None,
) -> Bunch:
    """Draw queries in which an honest model underranks a small group.

    Items of the subgroup are clicked less often. A feature that they share gives them
    away, so the model with the smallest squared error scores all of them low, and those
    that deserve a high rank lose their comparisons with the rest. Items of the
    subgroup are also harder to tell apart.

    Parameters
    ----------
    n_queries : int, default=2000
    n_items : int, default=20
        Items of each query.
    share : float, default=0.1
        Share of the subgroup, in (0, 1).
    gaps : array-like of shape (3,), default=(1.083, 1.149, 1.356)
        Ratios of the pairwise accuracies of the best linear model, rest over subgroup:
        overall, within groups and between groups. The default ratios are the paper's.
    n_signals : int, default=3
        Number of features over which the signal is spread.
    random_state : int, Generator or None, default=None
        Seed or generator of the random numbers. None draws anew in each call.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object; its columns have ``n_queries * n_items`` rows.

        X : ndarray of shape (n_queries * n_items, n_signals + 2)
            What a model may learn from.
        y_true : ndarray of int
            1 if the item is clicked, else 0.
        y_score : ndarray of float
            Score of the linear model with the smallest squared error in the population.
        engagement : ndarray of float
            Utility of a clicked item; 0 without a click.
        sensitive_features : ndarray of str
            "rest" or "subgroup".
        qid : ndarray of int
            Query, from 0.
        feature_names : list of str
            Columns of `X`.
        coef : ndarray of shape (n_signals + 2,)
            Coefficients of `y_score`, up to a factor.
        gaps : dict
            The population's ratios: "all", "intra" and "inter".
        accuracy : ndarray of shape (2, 2)
            The population's pairwise accuracies by the group of the clicked item (rest,
            subgroup) and of the other one.
        DESCR : str
            The distribution.

    Raises
    ------
    ValueError
        If the share is outside (0, 1), or if no distribution of this family has the
        gaps; the paper's gaps need a share of at most about 0.1.

    See Also
    --------
    skrankfair.metrics.pairwise_accuracy : Measures the gaps.

    Notes
    -----
    With utility u = x + m - d 1[subgroup] + e, where the signal x, the match m and the
    noise e are normal, Stein's lemma gives the coefficients of the best linear model in
    closed form. Given the match of both groups with the query, the score of a clicked
    item is skew normal, and so is that of one without a click; the accuracy between
    them is an integral on a line, averaged over the matches by Gauss-Hermite
    quadrature. The standard deviations of x (one for each group) and of m, and the size
    of d, are solved for so that the three ratios are the requested ones and the
    accuracy within the rest is 0.65.

    References
    ----------
    Beutel, A., Chen, J., Doshi, T., et al. (2019). "Fairness in Recommendation Ranking
    through Pairwise Comparisons", section 6.2. KDD '19.

    Examples
    --------
    >>> from skrankfair.datasets import make_underranked_items
    >>> from skrankfair.metrics import pairwise_accuracy
    >>> data = make_underranked_items(random_state=0)
    >>> r = pairwise_accuracy(
    ...     data.y_true,
    ...     data.y_score,
    ...     sensitive_features=data.sensitive_features,
    ...     qid=data.qid,
    ...     comparison="inter",
    ... )
    >>> print(r.contrast("rest", "subgroup", kind="ratio"))
    rest / subgroup: 1.367 (95% interval 1.297 to 1.445, p = 2.52e-35)
    """
    check_number(n_queries, "n_queries", 1, np.inf, integer=True)
    check_number(n_items, "n_items", 1, np.inf, integer=True)
    check_number(n_signals, "n_signals", 1, np.inf, integer=True)
    # A smaller one has no member in any data set, and a square of 0 at last.
    check_number(share, "share", 1e-9, 1, inclusive=(True, False))
    ratios = np.ravel(gaps).tolist()
    if len(ratios) != len(_GAPS):
        raise ValueError(
            f"gaps must be three numbers (overall, intra, inter); got {gaps!r}."
        )
    for ratio in ratios:
        check_number(ratio, "gaps", 0, np.inf, inclusive=(False, False))
    design = _solve(float(share), tuple(map(float, ratios)))
    rng = generator(random_state)
    shape = (int(n_queries), int(n_items))
    member = (rng.random(shape) < design.share).astype(np.int64)
    match = design.match * rng.standard_normal((shape[0], 2))
    match = np.take_along_axis(match, member, axis=1)
    scale = np.array([design.rest, design.subgroup])[member]
    signals = scale[..., None] * rng.standard_normal((*shape, int(n_signals)))
    signal = signals.sum(-1) / np.sqrt(n_signals)
    shared = member + design.noise * rng.standard_normal(shape)
    utility = signal + match - design.penalty * member + rng.standard_normal(shape)
    X = np.concatenate([match[..., None], signals, shared[..., None]], axis=-1)
    X = X.reshape(-1, int(n_signals) + 2)
    of_match, of_shared = _coefficients(design)
    weight = np.full(int(n_signals), 1 / np.sqrt(n_signals))
    parts = [f"signal_{i + 1}" for i in range(int(n_signals))]
    coef = np.concatenate([[of_match], weight, [of_shared]])
    accuracy, true_gaps = _accuracy(design)
    clicked = (utility > 0).ravel()
    description = f"""\
        Underranked items
        =================

        {shape[0]:,} queries of {shape[1]} items, with the gaps in pairwise accuracy of
        the recommender in section 6 of Beutel et al., "Fairness in Recommendation
        Ranking through Pairwise Comparisons". The data are simulated, not collected.

        An item is of the subgroup with probability {design.share:.4g}. Its utility is
        the sum of a signal with standard deviation {design.subgroup:.4g} in the
        subgroup and {design.rest:.4g} in the rest, of how well its group matches the
        query (one number per query and group, standard deviation {design.match:.4g}),
        and of standard normal noise, minus {design.penalty:.4g} in the subgroup. It is
        clicked if its utility is positive.

        Features: the match, {n_signals} parts of the signal, and the shared feature,
        which is 1 in the subgroup and 0 in the rest, plus noise of standard deviation
        {design.noise:.4g}.
        """
    return Bunch(
        X=X,
        y_true=clicked.astype(np.int64),
        y_score=X @ coef,
        engagement=np.maximum(utility, 0).ravel(),
        sensitive_features=np.array(["rest", "subgroup"])[member.ravel()],
        qid=np.repeat(np.arange(shape[0]), shape[1]),
        feature_names=["match", *parts, "shared"],
        coef=coef,
        gaps=dict(zip(("all", "intra", "inter"), true_gaps, strict=True)),
        accuracy=accuracy,
        DESCR=dedent(description),
    )


def _coefficients(d: Design) -> tuple[float, float]:
    """Return the best linear model's weights of match and shared; the signal's is 1."""
    share = np.array([1 - d.share, d.share])
    variance = np.array([d.rest, d.subgroup]) ** 2
    spread = np.sqrt(1 + variance + d.match**2)
    at = np.array([0.0, -d.penalty]) / spread
    # The probability of a click, and its mean slope, in both groups.
    rate = special.ndtr(at)
    slope = np.exp(-(at**2) / 2) / np.sqrt(2 * np.pi) / spread
    of_signal = (share * variance * slope).sum() / (share * variance).sum()
    of_match = (share * slope).sum()
    of_shared = (rate[1] - rate[0]) / (1 + _NOISE)
    return float(of_match / of_signal), float(of_shared / of_signal)


def _accuracy(d: Design) -> tuple[Array, list[float]]:
    """Return the population's accuracies of the best linear model, and their gaps.

    Index 0 is the rest, 1 the subgroup. Gaps are ratios of the rest to the subgroup:
    overall, within groups and between groups.
    """
    node, mass = np.polynomial.hermite_e.hermegauss(_NORMAL_NODES)
    mass = mass / mass.sum()
    match = d.match * node
    of_match, of_shared = _coefficients(d)
    signal = np.array([d.rest, d.subgroup]) ** 2
    variance = signal + (of_shared * d.noise) ** 2
    spread = np.sqrt(variance + (of_match * d.match) ** 2).max()
    grid = of_shared / 2 + _WIDTH * spread * np.linspace(-1, 1, _GRID)[:, None]
    clicked, other = [], []
    for group in (0, 1):
        # One column per value of the match: density of the score, with and without a
        # click.
        centre = grid - group * of_shared - of_match * match
        density = np.exp(-(centre**2) / 2 / variance[group])
        density /= density.sum(0)
        slope = signal[group] / variance[group]
        utility = match - group * d.penalty + slope * centre
        click = special.ndtr(utility / np.sqrt(1 + signal[group] * (1 - slope)))
        clicked.append(density * click)
        other.append(density * (1 - click))
    share = np.array([1 - d.share, d.share])
    won, pairs = np.empty((2, 2)), np.empty((2, 2))
    for a in (0, 1):
        for b in (0, 1):
            below = np.cumsum(other[b], axis=0) - other[b] / 2
            number = clicked[a].sum(0)[:, None] * other[b].sum(0)
            above = clicked[a].T @ below
            # Two items of one group share one match with the query; others have two.
            joint = np.diag(mass) if a == b else np.outer(mass, mass)
            won[a, b] = share[a] * share[b] * (joint * above).sum()
            pairs[a, b] = share[a] * share[b] * (joint * number).sum()
    accuracy, overall = won / pairs, won.sum(1) / pairs.sum(1)
    gaps = [
        overall[0] / overall[1],
        accuracy[0, 0] / accuracy[1, 1],
        accuracy[0, 1] / accuracy[1, 0],
    ]
    return accuracy, list(map(float, gaps))


@lru_cache(maxsize=32)
def _solve(share: float, gaps: tuple[float, float, float]) -> Design:
    """Return the distribution with these gaps."""

    def design(z: Array) -> Design:
        rest, subgroup, match = np.exp(z[:3]).tolist()
        return Design(share, rest, subgroup, match, float(z[3]))

    def miss(z: Array) -> Array:
        accuracy, reached = _accuracy(design(z))
        return np.array([*reached, accuracy[0, 0] / _LEVEL]) - [*gaps, 1.0]

    low, high = [-6.0, -6.0, -6.0, 0.0], [1.5, 1.5, 1.5, 6.0]
    solution = least_squares(miss, _START, bounds=(low, high), xtol=1e-12, ftol=1e-12)
    if np.abs(solution.fun).max() > _TOLERANCE:
        best = ", ".join(f"{gap:.4g}" for gap in _accuracy(design(solution.x))[1])
        raise ValueError(
            f"gaps must be ratios that a subgroup with a share of {share:g} can have; "
            f"the nearest to {gaps} are ({best}). Choose a smaller share or those."
        )
    return design(solution.x)


def _outcome(score: Array, b0: Any, b1: Any, link: str) -> Array:
    to_link, from_link = _LINKS[link]
    inside = np.clip(score, np.finfo(float).tiny, 1 - np.finfo(float).epsneg)
    with np.errstate(over="ignore"):
        return np.asarray(from_link(b0 + b1 * to_link(inside)))


def _errors(
    rate: float,
    n_max: int | None,
    alpha: float,
    beta: float,
    b0: float,
    b1: float,
    link: str,
) -> tuple[float, float]:
    """Return the true errors: each cluster with weight one, and each row.

    They are integrated at midpoints of quantiles of the scores, or of the scores where
    the distributions of clusters differ.
    """
    nodes = (np.arange(_NODES) + 0.5) / _NODES
    if n_max is None:
        score = special.betaincinv(alpha, beta, nodes)
        error = float(np.sqrt(np.mean((score - _outcome(score, b0, b1, link)) ** 2)))
        return error, error
    sizes = np.arange(1, n_max + 1)
    # All clusters of n_max rows or more are of one kind.
    share = stats.poisson.pmf(sizes - 1, rate)
    share[-1] = stats.poisson.sf(n_max - 2, rate) if n_max > 1 else 1.0
    rows = sizes * share
    rows[-1] = 1 + rate - rows[:-1].sum()
    # Density and mean outcome by score, for weights by cluster and by row.
    mass, total = np.zeros((2, 2, _NODES))
    for size, weights in zip(sizes, np.stack([share, rows], axis=1), strict=True):
        z = size / n_max
        density = np.outer(weights, size * nodes ** (size - 1.0))
        mass += density
        total += density * _outcome(nodes, b0 * (1 - z), b1 + z * (1 - b1), link)
    gap = np.zeros(mass.shape)
    np.divide(nodes * mass - total, mass, out=gap, where=mass > 0)
    by_cluster, by_row = np.sqrt((gap**2 * mass).sum(1) / mass.sum(1))
    return float(by_cluster), float(by_row)


def make_bias_by_construction(
    n_clusters: int = 1000,
    *,
    b0: float = 0.5,
    b1: float = 1.0,
    alpha: float = 1.0,
    beta: float = 1.0,
    link: str = "logit",
    rate: float = 0.0,
    n_max: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Bunch:
    """Draw scores and outcomes whose calibration error is known.

    ``E[Y | s] = g⁻¹(b0 + b1 g(s))`` for a link g: the scores are calibrated for b0 = 0
    and b1 = 1. A cluster (a person) has ``N = 1 + Poisson(rate)`` rows. With `n_max`
    those who have more rows have higher scores that are better calibrated, so that rows
    and persons differ in the mean outcome at a score, and in the calibration error.
    Each group of a design of several is a call of its own, with clusters of its own.

    Parameters
    ----------
    n_clusters : int, default=1000
    b0, b1 : float, default=0.5, 1.0
        Intercept and slope on the scale of the link.
    alpha, beta : float, default=1.0, 1.0
        Scores are Beta(alpha, beta), without `n_max`.
    link : {"logit", "probit", "cloglog"}, default="logit"
        The scale on which mean outcomes are straight in the scores.
    rate : float, default=0.0
        Expected number of rows of a cluster beyond the first.
    n_max : int or None, default=None
        A cluster of N rows has scores Beta(min(N, n_max), 1), and b0 and b1 move to 0
        and 1 by ``z = min(N / n_max, 1)``: b0 (1 - z) and b1 + z (1 - b1). None means
        that all clusters are alike.
    random_state : int, Generator or None, default=None
        Seed or generator of the random numbers. None draws anew in each call.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object; its columns have the names of a metric's arguments.

        y_true : ndarray of int
            0 or 1.
        y_score : ndarray of float
            In (0, 1).
        cluster : ndarray of int
            From 0.
        expected : ndarray of float
            E[y_true] of the row, given its score and its cluster.
        true_error : float
            ``(E[(S - E[Y | S])²])^(1/2)`` for a row drawn from a cluster that is drawn
            at random: what `calibration_error` estimates.
        true_error_by_row : float
            The same for a row drawn at random.
        DESCR : str
            The distribution.

    Raises
    ------
    ValueError
        For parameters out of range.

    See Also
    --------
    skrankfair.metrics.calibration_error : Estimates the error.

    Notes
    -----
    True errors are integrated numerically over the scores: with p_N the share of
    clusters of N rows (by row: N p_N) and f_N the density of their scores,
    ``E[Y | s] = Σ p_N f_N(s) μ_N(s) / Σ p_N f_N(s)``. The paper prints max(N, N_max),
    but then the scores would not depend on N as it says they do.

    References
    ----------
    DiCiccio, C., Hsu, B., Yu, Y., Nandy, P., Basu, K. (2023). "Detection and Mitigation
    of Algorithmic Bias via Predictive Parity". FAccT '23, §8.

    Roelofs, R., Cain, N., Shlens, J., Mozer, M. C. (2022). "Mitigating bias in
    calibration error estimation". AISTATS.

    Examples
    --------
    >>> from skrankfair.datasets import make_bias_by_construction
    >>> from skrankfair.metrics import calibration_error
    >>> data = make_bias_by_construction(20_000, b0=1.0, random_state=0)
    >>> round(data.true_error, 3)
    0.177
    >>> r = calibration_error(
    ...     data.y_true, data.y_score, sensitive_features=["all"] * data.y_true.size
    ... )
    >>> bool(abs(r.estimate[0] - data.true_error) < 0.01)
    True
    """
    check_number(n_clusters, "n_clusters", 1, np.inf, integer=True)
    for name, value in (("b0", b0), ("b1", b1)):
        check_number(value, name, -np.inf, np.inf, inclusive=(False, False))
    for name, value in (("alpha", alpha), ("beta", beta)):
        check_number(value, name, 0, np.inf, inclusive=(False, False))
    check_choice(link, "link", tuple(_LINKS))
    check_number(rate, "rate", 0, np.inf, inclusive=(True, False))
    check_number(n_max, "n_max", 1, 1000, integer=True, optional=True)
    rng = generator(random_state)
    sizes = 1 + rng.poisson(rate, n_clusters)
    cluster = np.repeat(np.arange(n_clusters), sizes)
    z: Any = 0.0
    if n_max is None:
        score = rng.beta(alpha, beta, cluster.size)
        scores, moving = f"Scores Beta({alpha:g}, {beta:g}).", ""
    else:
        size = np.minimum(sizes, n_max)[cluster]
        z, score = size / n_max, rng.beta(size, 1.0)
        scores = f"Scores Beta(min(N, {n_max}), 1)."
        moving = f", moving to 0 and 1 with min(N / {n_max}, 1)"
    expected = _outcome(score, b0 * (1 - z), b1 + z * (1 - b1), link)
    true_error, true_error_by_row = _errors(rate, n_max, alpha, beta, b0, b1, link)
    description = f"""\
        Bias by construction

        {n_clusters} clusters, {cluster.size} rows; 1 + Poisson({rate:g}) rows per
        cluster. {scores} link(E[Y | s]) = b0 + b1 link(s), {link}, b0 = {b0:g},
        b1 = {b1:g}{moving}. Root mean square of s - E[Y | s]: {true_error:.6g} with
        every cluster weighing one, {true_error_by_row:.6g} with every row weighing one.
        """
    return Bunch(
        y_true=(rng.random(cluster.size) < expected).astype(np.int64),
        y_score=score,
        cluster=cluster,
        expected=expected,
        true_error=true_error,
        true_error_by_row=true_error_by_row,
        DESCR=dedent(description),
    )
