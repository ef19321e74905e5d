"""Queries of two kinds that hide a bias from calibration."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from .._inputs.validation import Array, check_number, generator

_BIAS = ((1.5, 1.1), (0.9, 0.7))
_ROUNDING = 1e-12


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
