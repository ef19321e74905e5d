"""`expected_advantage`: statistical parity of a distribution of rankings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from .._estimates import formatting as fmt
from .._inputs.groups import as_groups
from .._inputs.validation import (
    Array,
    check_choice,
    check_lengths,
    check_number,
    warn_user,
)
from ._normalized_discounted import Distance, TopShares
from ._position_weights import DCG, PositionWeight
from ._skew import SkewOfShares
from ._statistical_parity import MeanExposure

_SUM = 1e-6


def _as_probabilities(values: Any) -> Array:
    """Return a doubly stochastic matrix, whose sums are 1 up to rounding."""
    rule = "probabilities must be a square matrix of numbers in [0, 1]"
    try:
        matrix = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{rule}; it cannot be read as one ({error}).") from error
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"{rule}; got an array of shape {matrix.shape}.")
    if not ((matrix >= 0) & (matrix <= 1 + _SUM)).all():
        raise ValueError(f"{rule}; got {matrix.min()} to {matrix.max()}.")
    for name, sums in (("row", matrix.sum(axis=1)), ("column", matrix.sum(axis=0))):
        worst = int(np.argmax(np.abs(sums - 1)))
        if abs(sums[worst] - 1) > _SUM:
            raise ValueError(
                "probabilities must have rows (positions) and columns (items) that "
                f"sum to 1; {name} {worst} sums to {sums[worst]:.8g}."
            )
    return matrix


def _pairs(matrix: Array, member: Array, pairs: str) -> Array:
    """Return the signed advantage of pairs, |.| not taken, by group."""
    n, n_groups = member.shape
    size, places = member.sum(axis=0), np.arange(n)
    if pairs == "share":
        won = (n - 1 - places) @ matrix @ member - size * (size - 1) / 2
        with np.errstate(invalid="ignore", divide="ignore"):
            return 2 * won / (size * (n - size)) - 1
    rank = places @ matrix
    signs = np.sign(rank - rank[:, None])
    signs[np.isclose(rank[:, None], rank)] = 0.0
    out = np.full(n_groups, np.nan)
    for group in np.flatnonzero((size > 0) & (size < n)):
        inside = member[:, group]
        out[group] = signs[np.ix_(inside, ~inside)].mean()
    return out


def _warn_nan(table: pd.DataFrame) -> None:
    """Warn of metrics without a value."""
    missing = table.isna()
    if missing.to_numpy().any():
        metrics = [str(name) for name in table.columns[missing.any(axis=0)]]
        groups = [fmt.label(group) for group in table.index[missing.any(axis=1)]]
        warn_user(
            f"expected_advantage has no value (NaN) of {', '.join(metrics)} for "
            f"{', '.join(groups)}."
        )


def expected_advantage(
    probabilities: Any,
    *,
    sensitive_features: Any = None,
    step: int = 10,
    k: int = 10,
    position_weight: Any = None,
    patience: float | None = None,
    zero_division: float = 1.0,
    pairs: str = "share",
) -> pd.DataFrame:
    """Evaluate every metric of statistical parity on a distribution of rankings.

    A random ranking is described by the probabilities ``R_ij`` of item j at position i:
    it may be a policy that shuffles, a ranker with noise, or a model of group
    advantage. A single ranking is a matrix of zeros and ones, and gives the values of
    the metrics themselves; the means over many rankings give
    ``average="representation"``.

    Parameters
    ----------
    probabilities : array-like of shape (n, n)
        A doubly stochastic matrix, in which row i is position i from the top and column
        j is item j.
    sensitive_features : array-like of shape (n,) or (n, d)
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
    step : int, default=10
        Number of items between cuts. `normalized_discounted_difference` and its
        relatives use it.
    k : int, default=10
        How many positions count, from the top. `skew_at_k` and
        ``position_weight="top"`` use it.
    position_weight : {"uniform", "dcg", "reciprocal", "geometric", "top"}, callable, \
            array-like or None, default=None
        What rank r = 1, 2, ... is worth: 1, ``1 / log2(r + 1)``, ``1 / r``,
        ``patience**(r - 1)``, or 1 for the first `k` ranks and 0 for the rest. Or a
        function that takes the array of ranks and returns their weights, or an array
        of the weights of the first ranks, which zeros follow.
    patience : float or None, default=None
        The probability of going on to the next rank, in [0, 1], of which
        ``position_weight="geometric"`` takes powers; None means 0.8. It must be None
        for all other weights.
    zero_division : float, default=1.0
        The ratio where nothing outside the group is among the first k. Only
        `normalized_discounted_ratio` uses it.
    pairs : {"share", "sign"}, default="share"
        "share": the expected share of pairs that the group wins, as `pairwise_parity`
        counts them. "sign": a pair is won by the item with the better expected
        position (equation 19 of the paper), however close the two are.

    Returns
    -------
    DataFrame
        One row per group and one column per metric, by the names of their functions.

    Raises
    ------
    ValueError
        If the matrix is not doubly stochastic (sums may be off by 1e-6), if the number
        of labels is not that of the items, or if an option is unknown.

    Warns
    -----
    UndefinedMetricWarning
        If a value is NaN, because nobody or everybody is in the group, or because the
        cuts are not shorter than the ranking.

    See Also
    --------
    normalized_discounted_difference : Its ``average="representation"``, with errors.
    skrankfair.datasets.make_biased_rankings : Its `position_share` fills such a matrix.

    Notes
    -----
    A `position_weight` is that of all metrics that have one; with None each has its
    default, "reciprocal" for `exposure_parity` and "dcg" for
    `normalized_discounted_difference` and its relatives.

    With ``P_i = Σ_{j in group} R_ij``, the share of the group in the first k is
    ``Σ_{i ≤ k} P_i / k`` (equation 12), the mean exposure of its members
    ``Σ_i v(i) P_i / Σ_i P_i``, and the expected number of pairs won
    ``Σ_i (n - i) P_i - m (m - 1) / 2``, since it is linear in the members' positions.
    Equation 19 divides by the number of items where it means that of pairs.

    References
    ----------
    Kuhlman, C., Gerych, W., Rundensteiner, E. (2021). "Measuring Group Advantage: A
    Comparative Study of Fair Ranking Metrics". AIES. §3.

    Examples
    --------
    >>> import numpy as np
    >>> from skrankfair.metrics import expected_advantage
    >>> certain, uniform = np.eye(8), np.full((8, 8), 1 / 8)
    >>> group = ["a", "a", "b", "a", "b", "b", "b", "a"]
    >>> for noise in (0.0, 0.5, 1.0):
    ...     matrix = noise * uniform + (1 - noise) * certain
    ...     table = expected_advantage(matrix, sensitive_features=group, step=2, k=2)
    ...     print(table.loc["a", ["ndkl", "pairwise_parity"]].round(3).tolist())
    [0.31, 0.375]
    [0.06, 0.188]
    [0.0, 0.0]
    """
    matrix = _as_probabilities(probabilities)
    groups = as_groups(sensitive_features)
    n = check_lengths(probabilities=len(matrix), sensitive_features=groups.n_rows)
    check_number(step, "step", 1, np.inf, integer=True)
    check_number(k, "k", 1, np.inf, integer=True)
    check_number(zero_division, "zero_division", 0, np.finfo(float).max)
    check_choice(pairs, "pairs", ("share", "sign"))
    of_cut, exposure = DCG, PositionWeight("reciprocal")
    if position_weight is not None or patience is not None:
        of_cut = exposure = PositionWeight.of_first(position_weight, k, patience)
    member = np.stack([groups.mask(g) for g in range(len(groups))], axis=1)
    expected, size = matrix @ member, member.sum(axis=0).astype(float)
    above = np.cumsum(expected, axis=0)
    one = np.ones(1)

    def by_cuts(kind: str, every: int, divisor: str, weights: PositionWeight) -> Array:
        distance = Distance(kind, float(zero_division))
        kernel = TopShares(distance, every, weights, divisor)
        cuts = np.arange(every, n + 1, every)
        of_shares = kernel.of_mean_shares(n, len(groups))
        return of_shares.of_cuts((above[cuts - 1] / cuts[:, None]).T, size[:, None] / n)

    v = exposure.up_to(n)
    first = above[min(k, n) - 1] / min(k, n)
    columns = {
        f"normalized_discounted_{kind}": by_cuts(kind, step, "maximum", of_cut)
        for kind in ("difference", "ratio", "kl")
    }
    columns |= {
        "ndkl": by_cuts("kl", 1, "weights", DCG),
        "skew_at_k": SkewOfShares()(np.stack([first, (n > k) * size / n], axis=1), one),
        "exposure_parity": MeanExposure(signed=False)(
            np.stack([v @ expected, size], axis=1), np.array([v.sum(), n, 1.0])
        ),
        "pairwise_parity": np.abs(_pairs(matrix, member, pairs)),
    }
    table = fmt.groups_frame(groups.labels, columns)
    _warn_nan(table)
    return table
