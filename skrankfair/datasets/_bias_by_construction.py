"""Scores whose calibration error is known, with one row or many rows per person."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import numpy as np
from scipy import special, stats
from sklearn.utils import Bunch

from .._inputs.validation import Array, check_choice, check_number, generator

_NODES = 20_000
#: Link functions and their inverses, by name.
_LINKS: dict[str, tuple[Any, Any]] = {
    "logit": (special.logit, special.expit),
    "probit": (special.ndtri, special.ndtr),
    "cloglog": (lambda p: np.log(-np.log1p(-p)), lambda x: -np.expm1(-np.exp(x))),
}


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
    if n_max is not None:
        check_number(n_max, "n_max", 1, 1000, integer=True)
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
