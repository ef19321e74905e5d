"""Hyperparameter searches that respect a bound on disparity."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count, takewhile
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit
from sklearn.exceptions import NotFittedError

from ._estimates.scales import check_level
from ._inputs.validation import Array, check_choice, check_number, warn_user

__all__ = ["fairness_constrained", "pareto_front"]

#: How far beyond a bound a mean may be by rounding alone.
_ROUNDING = 1e-12


def _column(cv_results: Mapping[str, Any], key: str) -> Array:
    """Return the mean test scores of one metric of a search."""
    prefix = "mean_test_"
    if prefix + key not in cv_results:
        columns = [name for name in cv_results if name.startswith(prefix)]
        has = ", ".join(sorted(name.removeprefix(prefix) for name in columns))
        raise ValueError(f"The search has no metric {key!r} in scoring=; it has {has}.")
    return np.asarray(cv_results[prefix + key], dtype=float)


def fold_scores(cv_results: Mapping[str, Any], key: str) -> Array:
    """Return the test scores of one metric, shape (n_candidates, n_splits)."""
    none = np.empty((len(_column(cv_results, key)), 0))
    names = (f"split{number}_test_{key}" for number in count())
    columns = [cv_results[name] for name in takewhile(cv_results.__contains__, names)]
    return np.column_stack([none, *columns]).astype(float)


#: By kind, a function from values by candidate and group to disparities.
_DISPARITIES = {
    "difference": lambda values: np.ptp(values, axis=1),
    "ratio": lambda values: values.min(axis=1) / values.max(axis=1),
    "max_abs": lambda values: np.abs(values).max(axis=1),
    "l1": lambda values: np.abs(values).sum(axis=1),
    "worst": lambda values: values.min(axis=1),
}


def search_scores(cv_results: Mapping[str, Any], key: str) -> tuple[Array, Array]:
    """Return the score of each candidate, and what each of its folds counts, (C, K).

    It is the score of all folds together, in which a fold counts by its support, if
    `with_errors` has stored the sums of groups, or else the mean over the folds.
    scikit-learn stores the sums of a group only if the first fold has or expects it:
    where the sums of a group are missing the score is NaN.
    """
    column = re.compile(
        rf"mean_test_(({re.escape(key)}_(neg_)?({'|'.join(_DISPARITIES)}))"
        r"_of_([^\[]+)\[.*\])_support",
        re.DOTALL,
    )
    matches = [match for name in cv_results if (match := column.fullmatch(name))]
    mean, splits = _column(cv_results, key), fold_scores(cv_results, key)
    if not matches:
        return mean, np.ones_like(splits)
    rates: dict[str, list[str]] = {}
    for match in matches:
        rates.setdefault(match[5], []).append(match[1])
    _, name, sign, kind, _ = matches[0].groups()
    known, scores = np.zeros(len(mean)), []
    for names in rates.values():
        totals = [_column(cv_results, of) for of in names]
        supports = [_column(cv_results, f"{of}_support") for of in names]
        known += np.sum(supports, axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = _DISPARITIES[kind](np.transpose(totals) / np.transpose(supports))
        scores.append(-value if sign else value)
    of_all = _column(cv_results, f"{name}_support")
    whole = np.isclose(known, of_all, rtol=1e-12, atol=0)
    support = fold_scores(cv_results, f"{name}_support")
    # Larger scores are better, so the smaller is that of the worse rate.
    score = np.where(whole, np.min(scores, axis=0), np.nan)
    return score, np.where(whole[:, None], support, 1.0)


def search_error(
    cv_results: Mapping[str, Any], key: str, weight: Array
) -> tuple[Array, Array]:
    """Return the standard error of each candidate's score, and degrees of freedom.

    `with_errors` has stored the errors e of the folds, which count w (`search_scores`):
    the variance is ``Σ w² e² / (Σ w)²``, with Satterthwaite's degrees of freedom.
    Without them the error is that of the mean of the folds by their spread, with one
    degree of freedom less than there are folds. It is NaN where all folds are equal,
    which do not tell it.
    """
    if f"mean_test_{key}_standard_error" in cv_results:
        share = weight / weight.sum(axis=1, keepdims=True)
        variance = (share * fold_scores(cv_results, f"{key}_standard_error")) ** 2
        total = variance.sum(axis=1)
        with np.errstate(invalid="ignore"):
            of_folds = variance**2 / fold_scores(cv_results, f"{key}_df")
            df = total**2 / of_folds.sum(axis=1)
        return np.sqrt(total), df
    splits = fold_scores(cv_results, key)
    n_splits = splits.shape[1]
    with np.errstate(invalid="ignore"):  # of infinite scores
        squares = np.sum((splits - splits.mean(axis=1, keepdims=True)) ** 2, axis=1)
        squares[np.ptp(splits, axis=1) == 0] = np.nan
    error = np.sqrt(squares / n_splits / max(n_splits - 1, 1))
    return error, np.full_like(error, n_splits - 1)


def _in_last_iteration(cv_results: Mapping[str, Any]) -> Array:
    """Return which candidates are of the last iteration, as earlier saw fewer rows.

    True if the search has no iterations.
    """
    iteration = np.asarray(cv_results.get("iter", 0))
    return np.asarray(iteration == iteration.max())


@dataclass(eq=False, repr=False)
class FairnessConstrained:
    """A rule that chooses the best candidate of a search that is fair enough.

    It is made by `fairness_constrained` and passed as ``refit=``.

    Parameters
    ----------
    objective : str
    at_most, at_least : dict of str to float
    confidence_level : float or None
    on_infeasible : {"warn", "raise"}

    Attributes
    ----------
    table_ : DataFrame
        After the search: one row per candidate with its objective; for each constraint
        the disparity (positive) or ratio, its standard error (`with_errors`) and, if
        asked for, its confidence bound; and whether all bounds hold. It is that of the
        last search with this rule.
    cv_results_ : dict
        Only after a search in which the rule raised: the results, which scikit-learn
        then does not store.
    """

    objective: str
    at_most: Mapping[str, float]
    at_least: Mapping[str, float]
    confidence_level: float | None
    on_infeasible: str

    @property
    def table_(self) -> pd.DataFrame:
        """The compared numbers, one row per candidate, stored as arrays for skops."""
        if not hasattr(self, "_columns"):
            raise NotFittedError("table_ is there after a search of this refit=.")
        return pd.DataFrame(self._columns)

    def __repr__(self) -> str:
        """Return the call that makes the choice."""
        text = f"fairness_constrained({self.objective!r}"
        for name in ("at_most", "at_least", "confidence_level"):
            if value := getattr(self, name):
                text += f", {name}={value!r}"
        raises = self.on_infeasible == "raise"
        return f"{text}, on_infeasible='raise')" if raises else f"{text})"

    def __call__(self, cv_results: Mapping[str, Any]) -> int:
        """Return the index of the chosen candidate.

        Parameters
        ----------
        cv_results : dict
            The ``cv_results_`` of a search. Of a halving search the candidates of the
            last iteration are compared.

        Returns
        -------
        int
        """
        try:
            return self._choice(cv_results)
        except ValueError as error:
            self.cv_results_ = cv_results
            error.add_note("cv_results_ of the rule in refit= has the scores.")
            raise

    def _choice(self, cv_results: Mapping[str, Any]) -> int:
        """Return the index of the chosen candidate, and store the table."""
        objective = _column(cv_results, self.objective)
        _warn_undefined(self.objective, fold_scores(cv_results, self.objective))
        table = {self.objective: objective}
        objective = np.where(_in_last_iteration(cv_results), objective, np.nan)
        violation = np.where(np.isnan(objective), np.inf, 0.0)
        for key, bound in {**self.at_most, **self.at_least}.items():
            score, weight = search_scores(cv_results, key)
            splits = fold_scores(cv_results, key)
            # The score of all folds together is defined though a fold lacks a group.
            _warn_undefined(key, np.where(np.isnan(score)[:, None], splits, 0.0))
            _warn_last(
                f"{key} is undefined (NaN) over all folds",
                np.isnan(score) & ~np.isnan(splits).any(axis=1),
                "the first fold lacks a group, which expected_groups= of the scorer "
                "has to name",
            )
            sign = 1 if key in self.at_least else -1
            if sign < 0:
                check_negated(key, splits)
            value = 0.0 + sign * score
            table[key] = value
            error, df = search_error(cv_results, key, weight)
            if f"mean_test_{key}_standard_error" in cv_results:
                table[f"{key}_standard_error"] = error
            if self.confidence_level is not None:
                margin = np.where(error, stdtrit(df, self.confidence_level) * error, 0)
                _warn_last(
                    f"{key} has no confidence bound (NaN)",
                    np.isnan(margin) & ~np.isnan(score),
                    "there are too few clusters in a fold, a fold lacks the data of a "
                    "group, or all folds have the same score",
                )
                value = value - sign * margin
                table[f"{key}_bound"] = value
            violation = np.maximum(violation, sign * (bound - value))
        violation[np.isnan(violation)] = np.inf
        feasible = violation <= _ROUNDING
        table["feasible"] = feasible
        self._columns: dict[str, Array] = table
        least = violation.min()
        candidates = np.flatnonzero(violation <= max(least, _ROUNDING))
        worth = np.where(np.isnan(objective), -np.inf, objective)[candidates]
        index = int(candidates[np.argmax(worth)])
        if not feasible.any():
            self._warn_infeasible(least, index)
        return index

    def _warn_infeasible(self, least: float, index: int) -> None:
        """Warn of the candidate that violates the bounds least, or raise."""
        bounds = [f"{key} at most {bound:g}" for key, bound in self.at_most.items()]
        bounds += [f"{key} at least {bound:g}" for key, bound in self.at_least.items()]
        message = f"No candidate keeps the bounds ({', '.join(bounds)}); "
        if np.isinf(least):
            message += f"all are undefined. Candidate {index} is the best by "
            message += f"{self.objective}."
        else:
            message += f"candidate {index} violates them least, by {least:.4g}."
        for key in self.at_least:
            if self.table_[key].max() < 0 < self.at_least[key]:
                message += (
                    f" All scores of {key!r} are negative, as those of a disparity "
                    "are, which at_most bounds."
                )
        if self.on_infeasible == "raise":
            raise ValueError(message)
        warn_user(message, UserWarning)


def check_negated(key: str, scores: Array) -> None:
    """Raise a ValueError if scores are not those of a disparity, which is negated."""
    largest = np.nanmax(scores, initial=-np.inf)
    if largest > _ROUNDING:
        raise ValueError(
            f"{key!r} has scores above 0 (up to {largest:.4g}), so they are not those "
            "of a disparity, which a scorer negates: a ratio, or another score that is "
            "to be large, is bounded by at_least, and drawn with larger_is_fairer=True."
        )


def _warn_undefined(key: str, splits: Array) -> None:
    """Warn of candidates that are undefined, or raise if no score is defined."""
    undefined = np.isnan(splits)
    if undefined.all():
        raise ValueError(
            f"{key} is undefined (NaN) in every fold for every candidate, so there is "
            "nothing to choose by. A group that no test set has does this, such as a "
            "category without rows (.cat.remove_unused_categories() drops it), and so "
            "do fits that fail; error_score='raise' of the search says why."
        )
    folds = np.flatnonzero(undefined.any(axis=0)).tolist()
    _warn_last(
        f"{key} is undefined (NaN) in folds {folds}",
        undefined.any(axis=1),
        "a fold lacks the data of a group, or a fit failed",
    )


def _warn_last(what: str, candidates: Any, why: str) -> None:
    """Warn of the candidates that rank last, if there are some."""
    if candidates.any():
        numbers = np.flatnonzero(candidates).tolist()
        warn_user(f"{what} for candidates {numbers}, which rank last: {why}.")


def fairness_constrained(
    objective: str,
    *,
    at_most: Mapping[str, float] | None = None,
    at_least: Mapping[str, float] | None = None,
    confidence_level: float | None = None,
    on_infeasible: str = "warn",
) -> FairnessConstrained:
    """Choose the best candidate of a search whose disparity is within a bound.

    It returns a callable for ``refit=`` of `GridSearchCV` and the other searches, with
    several metrics in ``scoring=``.

    Parameters
    ----------
    objective : str
        Key of ``scoring``: what to maximise, by its mean over the folds.
    at_most : dict of str to float or None, default=None
        Keys of ``scoring`` and upper bounds of disparities, or of other numbers that
        should be small. Their scorers (`neg_...`, or ``greater_is_better=False``)
        negate them, because scikit-learn maximises scores. The bound is on the number
        before it was negated: ``{"gap": 0.03}`` asks for a score of -0.03 or more.
    at_least : dict of str to float or None, default=None
        Keys of ``scoring`` and lower bounds of ratios, or of other scores that should
        be large. ``{"ratio": 0.8}`` asks for a score of 0.8 or more.
    confidence_level : float or None, default=None
        None compares the score with the bound. A level between 0 and 1 compares a
        confidence bound of it, which is an upper one for `at_most` and a lower one for
        `at_least`. Pass ``scoring=with_errors({...})`` to the search
        (`skrankfair.scoring.with_errors`) for the bound of all folds together; without
        it the bound is that of the mean of the folds, by their spread.
    on_infeasible : {"warn", "raise"}, default="warn"
        What to do if no candidate keeps the bounds: take the one that violates them
        least and warn, or raise.

    Returns
    -------
    FairnessConstrained
        After the search its ``table_`` has the numbers that were compared.

    Raises
    ------
    ValueError
        If there is no bound, if a key is in both `at_most` and `at_least`, if a bound
        is not a number, or if the level is outside (0, 1). During the search it is
        raised for an unknown key, for a key of `at_most` with a score above 0, which no
        negated disparity has, and for a metric that is undefined in every fold for
        every candidate.

    Warns
    -----
    UndefinedMetricWarning
        For candidates with an undefined fold, which rank last.
    UserWarning
        If no candidate keeps the bounds.

    See Also
    --------
    skrankfair.scoring.with_errors : Scores with their standard errors.
    pareto_front : All candidates that no other candidate beats.

    Notes
    -----
    With ``scoring=with_errors({...})`` a disparity is that of all folds together: the
    value of each group is the ratio of its sums, weights included, where the metric is
    one, and else the mean of the folds by their supports; a group that the first fold
    lacks has to be one of the scorer's `expected_groups`. Without it the disparity is
    the mean of those of the folds. It is too large for small groups, since chance makes
    the groups of every fold differ, so that a bound may seem out of reach. The best of
    many candidates is still lucky: compare its disparity, and the standard error of it
    in ``table_``, with a test set.

    In a confidence bound of scores `with_errors` the variances of the folds add up, by
    the squares of their shares of the support, and Student's t has Satterthwaite's
    degrees of freedom. Other scores bring no errors:
    there the standard error of the mean is that of the spread of the K folds,
    ``s / sqrt(K)``, with K - 1 degrees of freedom. A 95% bound of it failed in 0% to 7%
    of simulated searches with 2 to 10 folds, mostly in fewer than 5%, since the mean
    disparity of folds is too large already. Both take the models as given and the folds
    as independent, so split by cluster, as `GroupKFold` does, and do not repeat the
    split.
    Where clusters are users and items, it ignores that items recur in several folds.
    With several constraints, each of them holds at the level. So does the bound of each
    candidate on its own: among 20 unrelated candidates that all are just beyond the
    limit, half of the searches find one that seems to keep 95% bounds. For all of n
    candidates together, take the level ``1 - 0.05 / n``.

    The choice needs ``cv_results_`` alone: it works in any number of processes, and
    ``constraint(search.cv_results_)`` makes it again after the search. scikit-learn
    calls it after all fits, and has not told it the keys of ``scoring`` before: a wrong
    one is found only then. The fits are not lost: the rule has the results as its own
    ``cv_results_``, with which a corrected rule is called. The halving
    searches of scikit-learn ignore a callable ``refit=`` and maximise the score that is
    called "score". They take ``with_errors({"score": ..., "gap": ...})`` and
    ``refit="score"`` (False and True fail there), and then the constraint is called
    after the search.

    Examples
    --------
    >>> from skrankfair.model_selection import fairness_constrained
    >>> fairness_constrained("ndcg", at_most={"gap": 0.03}, confidence_level=0.95)
    fairness_constrained('ndcg', at_most={'gap': 0.03}, confidence_level=0.95)
    """
    upper = _checked_bounds(at_most, "at_most", 0.0)
    lower = _checked_bounds(at_least, "at_least", -np.inf)
    if not upper and not lower:
        raise ValueError("at_most or at_least must name a metric; got none.")
    for key in (objective, *upper, *lower):
        if not isinstance(key, str):
            raise ValueError(f"objective and bounds must name metrics; got {key!r}.")
    if both := sorted(set(upper) & set(lower)):
        raise ValueError(
            f"at_most and at_least must name different metrics; both name {both[0]!r}."
        )
    if confidence_level is not None:
        check_level(confidence_level)
    check_choice(on_infeasible, "on_infeasible", ("warn", "raise"))
    return FairnessConstrained(objective, upper, lower, confidence_level, on_infeasible)


def _checked_bounds(bounds: Any, name: str, least: float) -> dict[str, float]:
    bounds = {} if bounds is None else bounds
    if not isinstance(bounds, Mapping):
        raise ValueError(f"{name} must be a dict of metric and bound; got {bounds!r}.")
    for key, bound in bounds.items():
        check_number(bound, f"{name}[{key!r}]", least, np.inf)
    return dict(bounds)


def pareto_front(cv_results: Mapping[str, Any], metrics: Sequence[str]) -> Array:
    """Mark the candidates of a search that no other candidate beats.

    A candidate is beaten by one that is at least as good in every metric and better in
    one, by the scores that `fairness_constrained` compares. Undefined candidates are
    never on the front.

    Parameters
    ----------
    cv_results : dict
        The ``cv_results_`` of a search. Of a halving search only candidates of the last
        iteration can be on the front.
    metrics : sequence of str
        Two or more keys of ``scoring``. Larger scores are better, as with all scorers,
        which negate disparities.

    Returns
    -------
    ndarray of shape (n_candidates,), bool

    Raises
    ------
    ValueError
        If a key is unknown, or if there are fewer than two metrics.

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
    scores = np.column_stack([search_scores(cv_results, key)[0] for key in metrics])
    compared = ~np.isnan(scores).any(axis=1) & _in_last_iteration(cv_results)
    beaten = np.zeros(len(scores), dtype=bool)
    for row in scores[compared]:
        beaten |= (row >= scores).all(axis=1) & (row > scores).any(axis=1)
    return np.asarray(compared & ~beaten)
