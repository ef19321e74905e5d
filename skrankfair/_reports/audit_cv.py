"""Cross-validation and audit in one step."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, check_cv
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.parallel import Parallel, delayed

from .._inputs.columns import resolve_column
from .._inputs.missing import MISSING
from .._inputs.sklearn_private import (
    call_once,
    consumed_metadata,
    n_rows_of,
    needed_to_fit,
    positive_class,
    response_values,
    routing_enabled,
    rows_of,
    tags_of,
)
from .._inputs.validation import Array, check_choice, check_lengths, check_number
from ..mitigation._fold_scores import fitted_fold
from ..scoring._score_function import as_outcomes
from .audit import AuditReport
from .catalog import BY_NAME, chosen_metrics
from .findings import CORRECTION_NAMES
from .margins import Margin, margins_of
from .out_of_fold import Options, OutOfFold, audit_out_of_fold

_RESPONSES = ("decision_function", "predict_proba", "predict")
_N_SPLITS = 5


def audit_cv(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    qid: Any = None,
    cluster: Any = None,
    engagement: Any = None,
    item_weight: Any = None,
    cv: Any = None,
    groups: Any = None,
    task: str | None = None,
    favorable: str | None = None,
    threshold: float | None = None,
    k: int | None = None,
    metrics: str | Sequence[str] | None = None,
    response_method: str | Sequence[str] = "auto",
    params: Mapping[str, Any] | None = None,
    confidence_level: float = 0.95,
    correction: str = "holm",
    margin: Margin = None,
    missing: str = "raise",
    impact_ratio: bool = False,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> AuditReport:
    """Audit an estimator by cross-validation, on scores of rows it did not see.

    The estimator is cloned and fitted on every training set, and scores the test set.
    All out-of-fold scores go into one audit, in which items are compared only within
    the scores of one model, because the scores of two models need not have the same
    scale.

    Parameters
    ----------
    estimator : estimator
        It is not changed. It sees all columns of X, including those named below.
    X : frame or array of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Outcomes; the second of two classes is the better one.
    sensitive_features, qid, cluster, engagement, item_weight : str, list of str, \
            callable or array-like of shape (n_samples,)
        Groups, queries, independent units, engagement and weights of items as in
        `audit`: columns of X by name, a function of X, or the values. Only
        `sensitive_features` is needed. Without `qid` each test set is one list, whose
        items are the independent units. Weights of items are for the audit; `params`
        has those for `fit`.
    cv : int, splitter, iterable of splits or None, default=None
        As in `cross_validate`. None means five folds, of whole clusters or queries
        (`GroupKFold`) if there are any, or else as in scikit-learn.
    groups : str or array-like of shape (n_samples,), default=None
        Groups for the splitter: a column of X or the values. None with ``cv=None``
        takes the clusters, or the queries.
    task : {"ranking", "risk", "decision"} or None, default=None
        What the scores are for, as in `audit`.
    favorable : {"high", "low"} or None, default=None
        Which end of the score is good for the person, as in `audit`.
    threshold : float or None, default=None
        Score above which a row is accepted, as in `audit`, the same for all models.
    k : int or None, default=None
        How many positions of a query count, from the top, as in `audit`.
    metrics : str, sequence of str or None, default=None
        As in `audit`.
    response_method : str or sequence of str, default="auto"
        "auto": `decision_function`, else the positive class of `predict_proba`, else
        `predict`.
    params : dict or None, default=None
        Passed to `fit`, in a Pipeline as ``step__name``. What has one value per row is
        cut to the training set. With metadata routing on, `params` and the columns
        above go where the estimator requests them; with it off, `fit` gets those of the
        columns that it cannot do without, as fairlearn's models cannot.
    confidence_level : float, default=0.95
        Confidence level of the intervals and the verdicts.
    correction : {"holm", "fdr_bh"}, default="holm"
        Correction for the number of groups, as in `audit`.
    margin : float, mapping of str to float, or None, default=None
        Largest difference from fair that does not matter, as in `audit`.
    missing : {"raise", "drop", "group"}, default="raise"
        What becomes of rows without an outcome, score or label that is needed (NaN or
        None). "raise" refuses them, "drop" leaves them out, and "group" makes those
        without a label the group "missing" and leaves out the others. The result and a
        warning say how many there are. The
        estimator is fitted on all rows, those too.
    impact_ratio : bool, default=False
        Whether to add the impact ratios of the four-fifths rule, as in `audit`.
    n_jobs : int or None, default=None
        Number of folds at a time, as in joblib.
    verbose : bool, default=False
        Whether to show progress, on a terminal and if rich is installed.

    Returns
    -------
    AuditReport
        Its results are the sums of the results of the folds.

    Raises
    ------
    ValueError
        If a column is missing or has another length, a query is in two clusters or a
        metric is unknown, and where `audit` raises. Errors of `fit` are not caught.

    Warns
    -----
    UndefinedMetricWarning
        For groups without an estimate over all folds. A group that only one fold lacks
        does no harm.

    See Also
    --------
    audit : The audit of scores that exist already.
    skrankfair.scoring.make_fairness_scorer : One number per fold, for searches.

    Notes
    -----
    Dependent rows are summed before squares are taken, over all folds: the unit is
    `cluster`, or the query, which may straddle folds or be scored by several models of
    a repeated cross-validation; without either it is the row. The errors take the
    models as given: they are about measuring these scores, not about training again.
    Without `qid` the small term of pairs that are measured again by another model is
    left out of the variance, which is then slightly too large.

    A threshold or bin that is chosen from the data (`matched_pair_calibration`, strata
    of engagement) is chosen once for all folds.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from skrankfair import audit_cv
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"query": np.repeat(np.arange(300), 10)})
    >>> X["region"] = rng.choice(["north", "south"], size=len(X))
    >>> X["quality"] = rng.normal(size=len(X))
    >>> X["seen"] = X["quality"] - 0.5 * (X["region"] == "north")
    >>> clicked = X["quality"] + rng.normal(size=len(X)) > 0
    >>> model = make_pipeline(
    ...     make_column_transformer(("passthrough", ["seen"])), LogisticRegression()
    ... )
    >>> report = audit_cv(
    ...     model,
    ...     X,
    ...     clicked,
    ...     sensitive_features="region",
    ...     qid="query",
    ...     metrics="inter_group_accuracy",
    ... )
    >>> report.headline
    '1 of 2 groups is worse off beyond chance: north.'
    """
    check_number(confidence_level, "confidence_level", 0, 1, inclusive=(False, False))
    check_choice(correction, "correction", tuple(CORRECTION_NAMES))
    if k is not None:
        check_number(k, "k", 1, np.inf, integer=True)
        if qid is None:
            raise ValueError(f"k must be None without qid, which has places; got {k}.")
    # Which of them the task has is known with the scores.
    chosen = chosen_metrics(metrics, task, k)
    check_choice(missing, "missing", MISSING)
    margins_of(margin, BY_NAME.values(), confidence_level)
    given = {
        "sensitive_features": sensitive_features,
        "qid": qid,
        "cluster": cluster,
        "engagement": engagement,
        "item_weight": item_weight,
        "groups": groups,
    }
    if sensitive_features is None:
        raise ValueError("sensitive_features must be given; got None.")
    if engagement is not None and not any(metric.by_engagement for metric in chosen):
        raise ValueError(
            "engagement is for the accuracies only, and metrics has none of them."
        )
    columns = _columns(X, y, given)
    split_by = columns.pop("groups", None)
    if cv is None and split_by is None:
        split_by = columns.get("cluster", columns.get("qid"))
        cv = None if split_by is None else GroupKFold(_N_SPLITS)
    classifier = tags_of(estimator).estimator_type == "classifier"
    splitter = check_cv(cv, y, classifier=classifier)
    splits = list(splitter.split(X, y, split_by))
    if isinstance(response_method, str):
        auto = response_method == "auto"
        response_method = _RESPONSES if auto else (response_method,)
    out = _scored(
        *(estimator, X, y, splits, columns, params or {}, response_method),
        n_jobs=n_jobs,
        verbose=verbose,
    )
    tests = [np.arange(len(y))[test] for _, test in splits]
    rows = np.concatenate(tests)
    scored = OutOfFold(
        rows=rows,
        fold=np.repeat(np.arange(len(tests)), [test.size for test in tests]),
        score=np.concatenate([np.asarray(scores) for _, scores in out]),
        y_true=np.concatenate([np.asarray(outcomes) for outcomes, _ in out]),
        columns={name: rows_of(values, rows) for name, values in columns.items()},
    )
    options = Options(
        metrics, confidence_level, task, favorable, threshold, k, impact_ratio
    )
    report = audit_out_of_fold(scored, options, missing)
    margins = margins_of(
        margin, [BY_NAME[name] for name in report.results], confidence_level
    )
    return replace(report, correction=correction, margin=margins)


def _columns(X: Any, y: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the given columns, which must be as long as X."""
    lengths = {"X": n_rows_of(X), "y": len(y)}
    found = {}
    for name, spec in given.items():
        if spec is None:
            continue
        values = resolve_column(X, spec, name)
        if not hasattr(values, "__len__"):
            raise ValueError(f"{name} must be a column of X or an array; got {spec!r}.")
        found[name], lengths[name] = values, len(values)
    check_lengths(**lengths)
    return found


@contextmanager
def _progress(total: int, verbose: bool) -> Iterator[Callable[[], object]]:
    """Show a bar on standard error, if that is a terminal and rich is there."""
    if not (verbose and sys.stderr.isatty() and find_spec("rich")):
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("folds", total=total)
        yield lambda: progress.advance(bar)


def _scored(
    estimator: Any,
    X: Any,
    y: Any,
    splits: Sequence[tuple[Array, Array]],
    columns: Mapping[str, Any],
    params: Mapping[str, Any],
    response_method: Sequence[str],
    *,
    n_jobs: int | None,
    verbose: bool,
) -> list[tuple[Any, Any]]:
    """Return the outcomes and scores of each test set."""
    metadata = {**columns, **params}
    if routing_enabled():
        _check_requested(estimator, params, response_method)
        fit = consumed_metadata(estimator, "fit", metadata)
    else:
        fit = needed_to_fit(estimator, params, columns)
    out = []
    with (
        _asking_for_params(estimator, columns),
        _progress(len(splits), verbose) as advance,
    ):
        for found in Parallel(n_jobs=n_jobs, return_as="generator")(
            delayed(_fold_scores)(
                *(estimator, X, y, *split, response_method), fit=fit, metadata=metadata
            )
            for split in splits
        ):
            out.append(found)
            advance()
    return out


def _fold_scores(
    estimator: Any,
    X: Any,
    y: Any,
    train: Array,
    test: Array,
    response_method: Sequence[str],
    **parameters: Any,
) -> tuple[Any, Any]:
    """Return the outcomes and the scores of the test set, as numbers."""

    def respond(model: Any, rows: Any, metadata: Mapping[str, Any]) -> Any:
        return response_values(call_once, model, rows, list(response_method), metadata)

    fold = fitted_fold(estimator, X, y, train, test, respond=respond, **parameters)
    return as_outcomes(rows_of(y, test), fold.scores, positive_class(fold.estimator))


@contextmanager
def _asking_for_params(estimator: Any, columns: Mapping[str, Any]) -> Iterator[None]:
    """Raise a ValueError where `fit` misses a column that its signature hides."""
    try:
        yield
    except TypeError as error:
        lacking = [name for name in columns if f"argument: {name!r}" in str(error)]
        if "missing" not in str(error) or not lacking:
            raise
        how = f"pass params={{{lacking[0]!r}: values}}"
        if routing_enabled():
            how = f"request it with set_fit_request({lacking[0]}=True)"
        raise ValueError(
            f"{type(estimator).__name__} needs {lacking[0]} to fit: {how}."
        ) from error


def _check_requested(
    estimator: Any, params: Mapping[str, Any], response_method: Sequence[str]
) -> None:
    """Raise a ValueError for metadata that would go nowhere."""
    routing = get_routing_for_object(estimator)
    wanted = {
        name
        for method in ("fit", *response_method)
        for name in routing.consumes(method, params.keys())
    }
    for name in params:
        if name not in wanted:
            raise ValueError(
                f"params has {name!r}, which {type(estimator).__name__} does not "
                f"request; set_fit_request({name}=True) of it or of its step does."
            )
