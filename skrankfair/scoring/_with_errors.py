"""Several scorers as one, which scores the standard errors too."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

from scipy.special import stdtrit
from sklearn.metrics import check_scoring

from .._estimates.simultaneous import MOST_TOGETHER
from .._inputs.sklearn_private import MultimetricScorer
from .._inputs.validation import collected_warnings
from ..metrics import GroupEstimates
from ..metrics._disparities import EqualizedOdds
from ._score_function import Result
from ._scorer import FairnessScorer

#: Level of the bounds from which standard errors are recovered.
_LEVEL = 0.95


class ScorersWithErrors(MultimetricScorer):
    """Several scorers as one, made by `with_errors`.

    Parameters
    ----------
    scorers : dict of str to scorer
    """

    def __init__(self, scorers: Mapping[str, Any]) -> None:
        super().__init__(scorers={name: _keeping(s) for name, s in scorers.items()})

    def __repr__(self) -> str:
        """Return the call that makes the scorer."""
        return f"with_errors({self._scorers!r})"

    def __call__(self, estimator: Any, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Score an estimator.

        Parameters
        ----------
        estimator : estimator
            Fitted.
        *args : tuple
            X, and y if there is one.
        **kwargs : dict
            Metadata.

        Returns
        -------
        dict of str to float
        """
        scores: dict[str, float] = {}
        for name, score in super().__call__(estimator, *args, **kwargs).items():
            scores[name] = float(score)
            scorer = self._scorers[name]
            if isinstance(scorer, FairnessScorer) and score.estimates is not None:
                function, result = scorer._score_func, score.estimates
                kind = function.kind if function.compares_groups else "value"
                error, df = standard_error(result, kind)
                scores |= {f"{name}_standard_error": error, f"{name}_df": df}
        return scores


def _keeping(scorer: Any) -> Any:
    """Return a copy of a scorer of ours whose scores carry their estimates."""
    if isinstance(scorer, FairnessScorer):
        scorer = copy(scorer)
        scorer.keeps_estimates = True
    return scorer


def standard_error(result: Result, kind: str | None) -> tuple[float, float]:
    """Return the standard error of a disparity and its degrees of freedom.

    They give the disparity's confidence bound by Student's t. Of several contrasts
    they are those of the one with the most degrees of freedom, which is conservative:
    the errors of folds then shrink the least when they are combined.
    """
    if isinstance(result, EqualizedOdds):
        errors = [standard_error(rate, kind) for rate in result.rates]
        return max(errors, key=lambda error: (error[0] != error[0], error[0]))
    if kind == "value":
        return float(result.standard_error[0]), float(result.df[0])
    kind = result.metric.disparity if kind is None else kind
    with collected_warnings():
        margin = abs(result.disparity_bound(_LEVEL, kind) - result.disparity(kind))
        df = float(_df(result, kind).max(initial=0.0))
    return margin / float(stdtrit(df, (1 + _LEVEL) / 2)), df


def _df(result: GroupEstimates, kind: str) -> Any:
    """Return the degrees of freedom of all that a disparity's bound looks at."""
    pairs = kind in ("difference", "ratio") and 1 < len(result.groups) <= MOST_TOGETHER
    if pairs and result.metric.not_compared is None:
        return result.contrasts(kind)["df"].to_numpy()
    return result.df


def with_errors(scorers: Mapping[str, Any]) -> ScorersWithErrors:
    """Make one scorer of several, which scores the standard errors too.

    For ``scoring=`` of searches and of `cross_validate`. Each scorer of this package,
    say "gap", then has two more columns in ``cv_results_``, whose names end in
    "gap_standard_error" and "gap_df", and `fairness_constrained` can hold a confidence
    bound below a limit.

    Parameters
    ----------
    scorers : dict of str to scorer
        Scorers by name: those of this package, names of scikit-learn's scorers, and
        callables ``scorer(estimator, X, y)``.

    Returns
    -------
    callable
        ``scoring(estimator, X, y)``, which returns a dict of floats. It passes
        metadata on to the scorers that request them.

    Raises
    ------
    ValueError
        If `scorers` is not a dict of scorers.

    See Also
    --------
    skrankfair.model_selection.fairness_constrained : Search under a bound.

    Notes
    -----
    The standard error of a score on one test set is cluster-robust and takes the model
    as given. Of more than two groups a disparity is a maximum, which has none: it is
    then that of a normal estimate with the same `GroupEstimates.disparity_bound`.

    A scorer that fails raises, whatever ``error_score=`` of the search is.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skrankfair.scoring import get_scorer, with_errors
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"x": rng.normal(size=2000)})
    >>> X["female"] = rng.integers(0, 2, 2000)
    >>> y = (X["x"] + rng.normal(size=2000) > 0).astype(int)
    >>> gap = get_scorer(
    ...     "neg_demographic_parity_difference", sensitive_features="female"
    ... )
    >>> scoring = with_errors({"accuracy": "accuracy", "gap": gap})
    >>> scores = scoring(LogisticRegression().fit(X, y), X, y)
    >>> list(scores)
    ['accuracy', 'gap', 'gap_standard_error', 'gap_df']
    >>> round(scores["gap_standard_error"], 3)
    0.022
    """
    if not isinstance(scorers, Mapping):
        raise ValueError(
            f"scorers must be a dict of names and scorers; got {scorers!r}."
        )
    return ScorersWithErrors(check_scoring(scoring=dict(scorers))._scorers)
