"""Searches that respect a bound on disparity."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._inputs.validation import Array, check_choice, check_number
from .exceptions import UndefinedMetricWarning
from .scoring._memory import Memory, pooled_estimates

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FairnessConstrained", "fairness_constrained", "pareto_front"]

#: How far beyond a bound a mean may be by rounding alone.
_ROUNDING = 1e-12


def _column(cv_results: Mapping[str, Any], key: str) -> Array:
    """Return the mean test scores of one metric of a search."""
    name = f"mean_test_{key}"
    if name not in cv_results:
        known = sorted(
            column.removeprefix("mean_test_")
            for column in cv_results
            if column.startswith("mean_test_")
        )
        raise ValueError(
            f"The search has no metric {key!r} in scoring=; it has {', '.join(known)}."
        )
    return np.asarray(cv_results[name], dtype=float)


def _splits(cv_results: Mapping[str, Any], key: str) -> Array:
    """Return the test scores of one metric, shape (n_candidates, n_splits)."""
    _column(cv_results, key)
    pattern = re.compile(rf"split(\d+)_test_{re.escape(key)}$")
    found = [(int(m[1]), name) for name in cv_results if (m := pattern.match(name))]
    columns = [np.asarray(cv_results[name], dtype=float) for _, name in sorted(found)]
    return np.column_stack(columns)


class FairnessConstrained:
    """A choice among the candidates of a search: the best that is fair enough.

    Made by `fairness_constrained`, and passed as ``refit=``.

    Parameters
    ----------
    objective : str
    subject_to : dict of str to float
    confidence : float or None
    on_infeasible : {"warn", "raise"}

    Attributes
    ----------
    table_ : DataFrame
        After the search: a row a candidate with its objective; for each constraint
        the disparity (positive) or ratio and, if asked for, its confidence bound; and
        whether all bounds hold.
    """

    def __init__(
        self,
        objective: str,
        subject_to: Mapping[str, float],
        confidence: float | None,
        on_infeasible: str,
    ) -> None:
        self.objective = objective
        self.subject_to = dict(subject_to)
        self.confidence = confidence
        self.on_infeasible = on_infeasible

    def __repr__(self) -> str:
        """Return the call that makes the choice."""
        confidence = ""
        if self.confidence is not None:
            confidence = f", confidence={self.confidence!r}"
        return (
            f"fairness_constrained({self.objective!r}, {self.subject_to!r}{confidence})"
        )

    def __call__(self, cv_results: Mapping[str, Any]) -> int:
        """Return the index of the chosen candidate.

        Parameters
        ----------
        cv_results : dict
            The ``cv_results_`` of a search.

        Returns
        -------
        int
        """
        import pandas as pd

        memory = Memory()
        objective = _column(cv_results, self.objective)
        _warn_undefined(self.objective, _splits(cv_results, self.objective))
        table = pd.DataFrame({self.objective: objective})
        violation = np.where(np.isnan(objective), np.inf, 0.0)
        for key, bound in self.subject_to.items():
            splits = _splits(cv_results, key)
            _warn_undefined(key, splits)
            sign = _sign(splits, cv_results, memory)
            value = sign * splits.mean(axis=1)
            table[key] = value
            if self.confidence is not None:
                value = self._bounds(key, splits, cv_results, memory)
                table[f"{key}_bound"] = value
            # A disparity (sign -1) is to be small, a ratio large.
            excess = value - bound if sign < 0 else bound - value
            excess = np.where(np.isnan(excess), np.inf, excess)
            violation = np.maximum(violation, excess)
        feasible = violation <= _ROUNDING
        table["feasible"] = feasible
        self.table_: pd.DataFrame = table
        if feasible.any():
            return int(np.argmax(np.where(feasible, objective, -np.inf)))
        return self._least_violating(violation, objective)

    def _bounds(
        self, key: str, splits: Array, cv_results: Mapping[str, Any], memory: Memory
    ) -> Array:
        """Return the confidence bound of the pooled disparity of each candidate."""
        level = 0.95 if self.confidence is None else self.confidence
        bounds = np.full(len(splits), np.nan)
        defined = ~np.isnan(splits).any(axis=1)
        for candidate in np.flatnonzero(defined):
            params = cv_results["params"][candidate]
            found = memory.find(splits[candidate], params, key)
            pooled, kind = pooled_estimates(found, key)
            if len(pooled.groups) < 2:
                raise ValueError(
                    f"confidence= bounds disparities between groups; {key!r} is "
                    f"{pooled.name}, one value for all. Use confidence=None."
                )
            bounds[candidate] = pooled.disparity_bound(level, kind)
        unknown = np.flatnonzero(defined & np.isnan(bounds)).tolist()
        if unknown:
            warnings.warn(
                f"{key} has no confidence bound (NaN), for too few clusters, for "
                f"candidates {unknown}, which rank last.",
                UndefinedMetricWarning,
                stacklevel=3,
            )
        return bounds

    def _least_violating(self, violation: Array, objective: Array) -> int:
        worth = np.where(np.isnan(objective), -np.inf, objective)
        least = violation.min()
        index = int(np.argmax(np.where(violation == least, worth, -np.inf)))
        bounds = ", ".join(f"{key} {bound:g}" for key, bound in self.subject_to.items())
        message = f"No candidate keeps the bounds ({bounds}); "
        if np.isinf(least):
            message += f"all are undefined. Candidate {index} is the best by "
            message += f"{self.objective}."
        else:
            message += f"candidate {index} violates them least, by {least:.4g}."
        if self.on_infeasible == "raise":
            raise ValueError(message)
        warnings.warn(message, UserWarning, stacklevel=3)
        return index


def _sign(splits: Array, cv_results: Mapping[str, Any], memory: Memory) -> int:
    """Return -1 for negated disparities, which are at most 0, and 1 for ratios."""
    largest = np.nanmax(splits, initial=-np.inf)
    if largest != 0 or np.nanmin(splits) < 0:
        return 1 if largest > 0 else -1
    # All are 0: the best of a disparity, the worst of a ratio.
    for scores, params in zip(splits, cv_results["params"], strict=True):
        try:
            found = memory.find(scores, params, "")
        except ValueError:
            continue
        return found[0][1].sign
    return -1


def _warn_undefined(key: str, splits: Array) -> None:
    undefined = np.isnan(splits)
    if undefined.any():
        candidates = np.flatnonzero(undefined.any(axis=1)).tolist()
        folds = np.flatnonzero(undefined.any(axis=0)).tolist()
        warnings.warn(
            f"{key} is undefined (NaN) in folds {folds} for candidates {candidates}, "
            "which rank last: a fold lacks the data of a group, or a fit failed.",
            UndefinedMetricWarning,
            stacklevel=3,
        )


def fairness_constrained(
    objective: str,
    subject_to: Mapping[str, float],
    confidence: float | None = None,
    on_infeasible: str = "warn",
) -> FairnessConstrained:
    """Choose the best candidate of a search whose disparity is within a bound.

    A callable for ``refit=`` of `GridSearchCV` and the other searches, with several
    metrics in ``scoring=``.

    Parameters
    ----------
    objective : str
        Key of ``scoring``: what to maximise, by its mean over the folds.
    subject_to : dict of str to float
        Keys of ``scoring`` and bounds. A disparity (a negated scorer, `neg_...`) must
        be at most the bound, given as a positive number; a ratio at least.
    confidence : float or None, default=None
        None compares the mean over the folds with the bound. A confidence level
        compares an upper confidence bound: the estimates of the folds are added up
        (their clusters are different), and the cluster-robust error of the sum counts.
    on_infeasible : {"warn", "raise"}, default="warn"
        When no candidate keeps the bounds: take the one that violates them least and
        warn, or raise.

    Returns
    -------
    FairnessConstrained
        ``table_`` says after the search what was compared.

    Raises
    ------
    ValueError
        For a bound that is no number, a level outside (0, 1); at the search for an
        unknown key, and with `confidence` for folds that cannot be added.

    Warns
    -----
    UndefinedMetricWarning
        For candidates with an undefined fold, which rank last.
    UserWarning
        If no candidate keeps the bounds.

    See Also
    --------
    pareto_front : All candidates that no other beats.

    Notes
    -----
    The upper bound of a maximum over groups is that of simultaneous intervals
    (`GroupEstimates.disparity_bound`), which is cautious; with several constraints each
    holds at the level. scikit-learn keeps only numbers of the folds; the estimates are
    found again by the value of the score, the candidate's parameters and the data, so
    the search must have run in this session.

    Scores that are at most 0 are taken for negated disparities, others for what is to
    be large. The halving searches of scikit-learn take one metric and ignore a
    callable ``refit=``.

    Examples
    --------
    >>> from skrankfair.model_selection import fairness_constrained
    >>> fairness_constrained("ndcg", {"gap": 0.03}, confidence=0.95)
    fairness_constrained('ndcg', {'gap': 0.03}, confidence=0.95)
    """
    if not isinstance(subject_to, Mapping) or not subject_to:
        raise ValueError(
            "subject_to must be a dict of metric and bound, with at least one; got "
            f"{subject_to!r}."
        )
    for key, bound in subject_to.items():
        check_number(bound, f"subject_to[{key!r}]", 0, np.inf)
    if confidence is not None:
        check_number(confidence, "confidence", 0, 1, inclusive=(False, False))
    check_choice(on_infeasible, "on_infeasible", ("warn", "raise"))
    return FairnessConstrained(objective, subject_to, confidence, on_infeasible)


def pareto_front(cv_results: Mapping[str, Any], metrics: Sequence[str]) -> Array:
    """Mark the candidates of a search that no other candidate beats.

    A candidate is beaten by one that is at least as good in every metric and better in
    one, by the means over the folds. Undefined candidates are never on the front.

    Parameters
    ----------
    cv_results : dict
        The ``cv_results_`` of a search.
    metrics : sequence of str
        Keys of ``scoring``, two or more; all are "higher is better", as scorers are.

    Returns
    -------
    ndarray of shape (n_candidates,), bool

    Raises
    ------
    ValueError
        For an unknown key or fewer than two metrics.

    Examples
    --------
    >>> from skrankfair.model_selection import pareto_front
    >>> results = {
    ...     "mean_test_ndcg": [0.9, 0.8, 0.7],
    ...     "mean_test_gap": [-0.2, -0.3, 0.0],
    ... }
    >>> pareto_front(results, ["ndcg", "gap"])
    array([ True, False,  True])
    """
    if isinstance(metrics, str) or len(metrics) < 2:
        raise ValueError(f"metrics must name at least two metrics; got {metrics!r}.")
    scores = np.column_stack([_column(cv_results, key) for key in metrics])
    defined = ~np.isnan(scores).any(axis=1)
    beaten = np.zeros(len(scores), dtype=bool)
    for row in scores[defined]:
        beaten |= (row >= scores).all(axis=1) & (row > scores).any(axis=1)
    return np.asarray(defined & ~beaten)
