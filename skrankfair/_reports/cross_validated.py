"""Cross-validation and audit in one step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.parallel import Parallel, delayed

from .._inputs.by_name import resolved_columns
from .._inputs.columns import may_lack, users_of, without_missing
from .._inputs.groups import as_columns, encode, frame_columns
from .._inputs.sklearn_private import (
    chosen_response,
    consumed_metadata,
    n_rows_of,
    needed_to_fit,
    parameters_of_rows,
    positive_class,
    response_values,
    routing_enabled,
    rows_of,
    tags_of,
)
from .._inputs.validation import (
    Array,
    check_choice,
    check_given,
    check_lengths,
    progress_shown,
    to_numpy,
    to_vector,
)
from ..mitigation._wrapper import fit_clone, splits_of, warn_of_folds
from ..scoring._score_function import COLUMNS, as_outcomes
from ..scoring._scorer import AUDITED_RESPONSES
from .audit import AuditReport, Margin, audit_of_rows, check_taken
from .catalog import catalog, chosen_metrics, note
from .findings import margins_of
from .rows import AuditOptions, AuditRows, with_task


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
    reference: Any = None,
    within: Any = None,
    cross: bool | str = True,
    n_jobs: int | None = None,
    progress: bool | Callable[[str], object] = False,
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
        items are the independent units, and there are no metrics of queries such as
        NDCG. Weights of items are for the audit; `params` has those for `fit`. Two
        columns of `cluster` are users and the items that recur among them. Where X has
        such a column and `cluster` does not, a note says so.
    cv : int, splitter, iterable of splits or None, default=None
        An integer is the number of folds (None means five) of whole clusters or queries
        (of users) if there are any, shuffled, always in the same way, each with its
        share of every group, and of both classes of a classifier. Else as in
        `cross_validate`; splits may be given as numbers of rows or masks.
    groups : str, callable or array-like of shape (n_samples,), default=None
        Groups for the splitter: a column of X, a function of X or the values. None with
        an integer `cv` takes the clusters, or the queries.
    task : {"ranking", "risk", "decision"} or None, default=None
        What the scores are for, as in `audit`.
    favorable : {"high", "low"} or None, default=None
        Which end of the score is good for the person, as in `audit`.
    threshold : float or None, default=None
        Score from which the decision on a row is 1, as in `audit`, the same for all
        models.
    k : int or None, default=None
        How many positions of a query count, from the top, as in `audit`.
    metrics : str, function, sequence of them, or None, default=None
        As in `audit`, but for metrics that `make_metric` made.
    response_method : str or sequence of str, default="auto"
        "auto": the positive class of `predict_proba`, else `decision_function`, else
        `predict`. A note says which it was.
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
        warning say how many there are. The estimator is fitted on all rows, those too.
    impact_ratio : bool, default=False
        Whether to add the impact ratios of the four-fifths rule, as in `audit`.
    reference : hashable, dict or None, default=None
        A group with which others are compared, as in `audit`.
    within : str, callable, array-like of shape (n_samples,) or None, default=None
        A column that is held fixed, as in `audit`.
    cross : {True, False, "both"}, default=True
        What becomes of several columns of labels, as in `audit`.
    n_jobs : int or None, default=None
        Number of folds at a time, as in joblib.
    progress : bool or callable, default=False
        Whether to show how far it is, as in `audit`: folds, and then metrics.

    Returns
    -------
    AuditReport
        Its results are the sums of the results of the folds.

    Raises
    ------
    ValueError
        If a column is missing or has another length, a query is in two clusters, a
        metric is unknown or `k` is given without `qid`, and where `audit` raises.
        Errors of `fit` are not caught.

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
    >>> print(report.headline)
    Who suffers the mistakes? Ranked above worse items less often: north (71.7%; 93.2%
    of the rest).
    """
    arguments = locals()
    options = AuditOptions.of(arguments)
    if k is not None and qid is None:
        raise ValueError(f"k must be None without qid, which has places; got {k}.")
    may_lack(missing)
    margins_of(margin, catalog().values(), confidence_level)
    check_given(X=X, y=y, sensitive_features=sensitive_features)
    outcome = to_vector(y, "y")
    y = outcome if np.ndim(y) > 1 else y
    # Which of them the task has is known with the scores.
    check_taken(
        "engagement", engagement, "the accuracies", chosen_metrics(metrics, task, k)
    )
    names = [n for n in (*COLUMNS, "groups", "within") if n in arguments]
    columns = resolved_columns(X, {n: arguments[n] for n in names}, y=y)
    lengths = {name: len(values) for name, values in columns.items()}
    check_lengths(X=n_rows_of(X), y=len(y), **lengths)
    splits = _splits(cv, X, y, columns, columns.pop("groups", None), estimator)
    if not isinstance(response_method, list | tuple):
        check_choice(response_method, "response_method", ("auto", *AUDITED_RESPONSES))
        auto = response_method == "auto"
        response_method = AUDITED_RESPONSES if auto else (str(response_method),)
    params = params or {}
    fit = _parameters_of_fit(estimator, columns, params, response_method)
    fold = list(response_method), fit, {**columns, **params}
    with progress_shown(progress) as say:
        folds = Parallel(n_jobs=n_jobs, return_as="generator")(
            delayed(_fold_scores)(estimator, X, y, *split, *fold) for split in splits
        )
        scored = []
        for done in folds:
            scored.append(done)
            say(f"{len(scored)} of {len(splits)} folds")
    tests = [test for _, test in splits]
    rows = np.concatenate(tests)
    outcomes, scores, responses = zip(*scored, strict=True)
    everything = {
        "y_true": np.concatenate(outcomes),
        "y_score": np.concatenate(scores),
        "row": rows,
        "model": np.repeat(np.arange(len(tests)), [test.size for test in tests]),
        **{name: rows_of(values, rows) for name, values in columns.items()},
    }
    everything, said, lacking = without_missing(everything, missing)
    options = with_task(options, everything.get("qid"), everything["y_score"])
    response = " and ".join(dict.fromkeys(responses))
    audited, notes = _rows_of_models(everything, response, cross)
    if audited.data.item is None:
        notes += _catalogue(X, columns)
    with progress_shown(progress) as say:
        report = audit_of_rows(audited, options, [*notes, *said], lacking, say)
    lists = None if audited.are_of_models else report.n_queries  # folds are no queries
    return replace(report, title="Cross-validated fairness audit", n_queries=lists)


def _parameters_of_fit(
    estimator: Any,
    columns: Mapping[str, Any],
    params: Mapping[str, Any],
    methods: Sequence[str],
) -> dict[str, Any]:
    """Return what `fit` gets; with metadata routing, a ValueError for idle `params`."""
    if not routing_enabled():
        return needed_to_fit(estimator, params, columns)
    routing = get_routing_for_object(estimator)
    for name in params:
        if not any(routing.consumes(m, [name]) for m in ("fit", *methods)):
            raise ValueError(
                f"params has {name!r}, which {type(estimator).__name__} does not "
                f"request; set_fit_request({name}=True) of it or of its step does."
            )
    return consumed_metadata(estimator, "fit", {**columns, **params})


def _splits(
    cv: Any, X: Any, y: Any, columns: Mapping[str, Any], unit: Any, estimator: Any
) -> list[tuple[Array, Array]]:
    """Return the rows of each fold; without a splitter of whole clusters or queries."""
    if unit is None and (cv is None or isinstance(cv, int)):
        unit = users_of(columns.get("cluster", columns.get("qid")))
    if unit is not None:
        unit = pd.factorize(to_numpy(unit, "groups"))[0]
    labels = as_columns(columns["sensitive_features"], "sensitive_features")[0]
    group, names = pd.MultiIndex.from_arrays(labels).factorize()
    strata = group
    if tags_of(estimator).estimator_type == "classifier":
        codes = pd.factorize(to_numpy(y, "y"))[0] + 1
        strata = group * (codes.max() + 1) + codes
    splits = splits_of(cv, X, y, strata, unit)
    known = ~np.any([pd.isna(column) for column in labels], axis=0)
    warn_of_folds(splits, np.where(known, group, -1), names.tolist())
    return splits


def _catalogue(X: Any, columns: Mapping[str, Any]) -> list[str]:
    """Return a note on a column of X, such as the film, whose values have one group.

    They recur among the users, who have items of several groups: errors of users alone
    are those of this catalogue.
    """
    users, frame = columns.get("cluster", columns.get("qid")), frame_columns(X)
    if users is None or frame is None:
        return []
    labels = as_columns(columns["sensitive_features"], "sensitive_features")[0]
    rows = pd.DataFrame({"group": pd.MultiIndex.from_arrays(labels).factorize()[0]})
    rows["user"] = pd.factorize(to_numpy(users, "cluster"))[0]
    n_groups = rows["group"].nunique()
    if rows.groupby("user")["group"].nunique().max() < 2:
        return []
    sizes = {}
    for column, name in zip(*frame, strict=True):
        values = to_numpy(column, "X")
        if values.dtype.kind in "iuOU":
            number = rows.groupby(pd.factorize(values)[0]).nunique()
            recurs = number["user"].mean() >= 2 and len(number) > n_groups
            if recurs and number["group"].max() == 1:
                sizes[name] = len(number)
    return [note("recurring", name=max(sizes, key=sizes.__getitem__))] if sizes else []


def _fold_scores(
    estimator: Any,
    X: Any,
    y: Any,
    train: Array,
    test: Array,
    methods: list[str],
    fit: Mapping[str, Any],
    metadata: Mapping[str, Any],
) -> tuple[Any, Any, str]:
    """Return the outcomes and the scores of the test set, and what made the scores."""
    model = fit_clone(estimator, X, y, train, fit)
    of_test = parameters_of_rows(X, metadata, test)
    scores = response_values(model, rows_of(X, test), methods, of_test)
    outcomes, scores = as_outcomes(rows_of(y, test), scores, positive_class(model))
    return outcomes, scores, chosen_response(model, methods)


def _rows_of_models(
    columns: Mapping[str, Any], response: str, cross: bool | str
) -> tuple[AuditRows, list[str]]:
    """Return the rows of an audit of which only those of one model are compared.

    Each row has the caller's number of it and that of the model that scored it. The
    notes say how the scores were made.
    """
    columns = dict(columns)
    row, model = columns.pop("row"), columns.pop("model")
    number, repeated = np.unique(model).size, np.unique(row).size < row.size
    notes = [note("out_of_fold", response=response, number=number)]
    notes += [note("repeated")] if repeated else []
    if "qid" not in columns:
        rows = AuditRows.of({"cluster": row, **columns, "qid": None}, model, cross)
        if "cluster" in columns and rows.data.cluster_of_query is not None:
            # Each list is of one cluster as a whole, as a query is.
            rows = replace(rows, qid=model, data=replace(rows.data, has_queries=True))
        return rows, notes
    queries = encode(columns["qid"], "qid")
    # A query that several models scored is several queries of one cluster.
    scored = model * queries.size + queries.codes
    split = np.unique(scored).size
    if not repeated and split > queries.size:
        notes.append(note("split", number=queries.size, parts=split))
    columns.setdefault("cluster", queries.of_rows)
    return AuditRows.of({**columns, "qid": scored}, cross=cross), notes
