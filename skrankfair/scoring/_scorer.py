"""`make_fairness_scorer`, `with_errors`: fairness metrics as scikit-learn scorers.

Two rules make most names of `get_scorer` from a metric: ``neg_NAME_difference`` is the
largest minus the smallest group, and ``worst_group_NAME`` the group that is worst off,
which is ``worst_group_neg_NAME`` where low values are better. A third makes
``neg_NAME`` of a metric that is itself a distance from parity. The others are listed.
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
from scipy.special import stdtrit
from sklearn.metrics import check_scoring
from sklearn.utils.metadata_routing import MetadataRequest

from .. import metrics
from .._estimates.estimates import contrasts_of
from .._estimates.finalize import MeanOfRatios
from .._estimates.simultaneous import KINDS, MOST_TOGETHER
from .._inputs.by_name import RESPONSES, ColumnSpec, check_spec, column_of
from .._inputs.groups import as_scalar
from .._inputs.sklearn_private import (
    BaseScorer,
    MultimetricScorer,
    call_once,
    is_column,
    positive_class,
    response_values,
)
from .._inputs.validation import (
    check_aligned,
    check_choice,
    collected_warnings,
    did_you_mean,
)
from ..metrics import GroupEstimates
from ..metrics._disparities import DISPARITIES, EqualizedOdds, rates_of
from ._score_function import (
    COLUMNS,
    Result,
    ScoreFunction,
    as_outcomes,
    own_columns,
    unwrapped,
)

#: The order in which an audit looks for a response, and a threshold for its scale.
AUDITED_RESPONSES = ("predict_proba", "decision_function", "predict")
# Metrics whose scores are on the scale of the outcomes, such as probabilities.
_ON_SCALE = (
    metrics.brier_score,
    metrics.calibration_error,
    metrics.calibration_in_the_large,
    metrics.log_loss,
    metrics.mean_absolute_error,
    metrics.mean_squared_error,
    metrics.positive_rate_shift,
)

Entry = tuple[Callable[..., Any], dict[str, Any], str | None]

_INTER, _INTRA = {"comparison": "inter"}, {"comparison": "intra"}

#: Metrics of which high values are better for a group.
_GAINS = (
    *("accuracy", "auc", "balanced_accuracy", "f1", "inter_group_accuracy"),
    *("intra_group_accuracy", "ndcg", "pairwise_accuracy", "precision"),
    *("precision_at_k", "recall_at_k", "selection_rate", "true_negative_rate"),
    "true_positive_rate",
)
#: Metrics of which low values are better for a group.
_LOSSES = (
    *("brier_score", "calibration_error", "dips", "false_negative_rate"),
    *("false_positive_rate", "log_loss", "mean_absolute_error", "mean_position"),
    "mean_squared_error",
)
#: Metrics without a better end, so that there is no worst group.
_NEUTRAL = ("calibration_in_the_large", "cross_group_auc", "share_at_k")
# Their differences have names of their own, in `DISPARITIES` and below.
_NAMED = ("dips", "precision", "selection_rate", "true_positive_rate")
#: Metrics that are distances from parity.
_DISTANCES = (
    *("exposure_parity", "matched_pair_calibration", "ndkl"),
    *("normalized_discounted_difference", "normalized_discounted_kl"),
    *("normalized_discounted_ratio", "pairwise_exposure", "pairwise_parity"),
    *("positive_rate_shift", "rank_shift", "skew_at_k"),
)
#: Those of these names that are not functions without options.
_WITH_OPTIONS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "cross_group_auc": (metrics.auc, _INTER),
    "inter_group_accuracy": (metrics.pairwise_accuracy, _INTER),
    "intra_group_accuracy": (metrics.pairwise_accuracy, _INTRA),
    "positive_rate_shift": (metrics.positive_rate_shift, {"threshold": 0.5}),
    "skew_at_k": (metrics.skew_at_k, {"average": "representation"}),
}


def _entry(name: str, disparity: str) -> Entry:
    """Return the metric of a name, its options, and how groups become one number."""
    metric, options = _WITH_OPTIONS.get(name) or (getattr(metrics, name), {})
    return metric, options, disparity


#: Every scorer by name: metric, its options, and how groups become one number.
SCORERS: dict[str, Entry] = {
    **{
        f"neg_{name}_difference": _entry(name, "difference")
        for name in (*_GAINS, *_LOSSES, *_NEUTRAL)
        if name not in _NAMED
    },
    **{f"worst_group_{name}": _entry(name, "worst") for name in _GAINS},
    **{f"worst_group_neg_{name}": _entry(name, "worst") for name in _LOSSES},
    **{f"neg_{name}": _entry(name, "max_abs") for name in _DISTANCES},
    **{
        name if kind == "ratio" else f"neg_{name}": (metric, {}, kind)
        for name, (metric, kind) in DISPARITIES.items()
    },
    "inter_group_accuracy_ratio": _entry("inter_group_accuracy", "ratio"),
    "intra_group_accuracy_ratio": _entry("intra_group_accuracy", "ratio"),
    "ndcg": (metrics.ndcg, {}, None),
    "neg_dips": _entry("dips", "difference"),
    "neg_exposure_gap": _entry("exposure_gap", "l1"),
    "pairwise_accuracy_ratio": _entry("pairwise_accuracy", "ratio"),
}


class FairnessScore(float):
    """A score that carries the estimates behind it.

    Parameters
    ----------
    value : float
    estimates : GroupEstimates, EqualizedOdds or None, default=None

    Attributes
    ----------
    estimates : GroupEstimates, EqualizedOdds or None
        The result by group, without its table of clusters. None for a metric of
        scikit-learn, and where scikit-learn scores several metrics at once.
    """

    estimates: Result | None

    def __new__(cls, value: float, estimates: Result | None = None) -> FairnessScore:
        """Make the float, with the estimates as an attribute."""
        score = super().__new__(cls, value)
        score.estimates = estimates
        return score


class FairnessScorer(BaseScorer):
    """A scikit-learn scorer of a fairness metric, made by `make_fairness_scorer`.

    Parameters
    ----------
    function : ScoreFunction
    sign : {-1, 1}
    response_method : str or list of str
    """

    def __init__(
        self, function: ScoreFunction, sign: int, response_method: Any
    ) -> None:
        super().__init__(function, sign, {}, response_method)
        self._requests = {n: spec is True for n, spec in function.columns.items()}
        #: Whether scores for scikit-learn carry the estimates, for `with_errors`.
        self.keeps_estimates = False

    def __repr__(self) -> str:
        """Return the calls that make the scorer."""
        function: ScoreFunction = self._score_func
        columns = function.columns.items()
        shown = {name: getattr(spec, "__name__", repr(spec)) for name, spec in columns}
        options: tuple[tuple[str, Any, Any], ...] = (
            ("disparity", function.disparity, None),
            ("on_undefined", function.on_undefined, "warn"),
            ("expected_groups", list(function.expected_groups), []),
            ("greater_is_better", self._sign > 0, _default_sign(function) > 0),
            ("response_method", self._response_method, _default_response(function)),
        )
        shown |= {name: repr(value) for name, value in function.params.items()}
        shown |= {n: repr(value) for n, value, default in options if value != default}
        given = "".join(f", {name}={text}" for name, text in shown.items())
        return f"make_fairness_scorer({function.__name__}{given})"

    def __call__(
        self, estimator: Any, X: Any, y_true: Any = None, **metadata: Any
    ) -> FairnessScore:
        """Score an estimator on X, with or without metadata.

        Parameters
        ----------
        estimator : estimator
            Fitted.
        X : frame or array of shape (n_samples, n_features)
        y_true : array-like of shape (n_samples,)
        **metadata : dict
            Columns that are not in X, such as ``sensitive_features``.

        Returns
        -------
        FairnessScore
            A float that carries the estimates by group as ``.estimates``.
        """
        known = self._get_metadata_request().score.requests
        if unknown := set(metadata) - set(known):
            raise ValueError(
                f"The scorer takes {', '.join(known)} as metadata; got "
                f"{', '.join(sorted(unknown))}."
            )
        keeping = copy(self)
        keeping.keeps_estimates = True
        score = keeping._score(call_once, estimator, X, y_true, **metadata)
        score.estimates = score.estimates and score.estimates.compact()
        return score

    def set_score_request(self, **kwargs: Any) -> FairnessScorer:
        """Say which metadata the scorer takes, as on scikit-learn's scorers.

        Other requests are not changed. Groups and queries that the metric does not take
        are for the estimator, such as a `FairReranker` whose NDCG is scored.

        Parameters
        ----------
        **kwargs : dict
            ``parameter=True``, an alias, False (never) or None (an error if passed).

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For metadata that the scorer does not take, or an alias that is no name.
        """
        of_metric = self._score_func.columns_taken
        known = dict.fromkeys((*of_metric, "sensitive_features", "qid"))
        for name in kwargs:
            if name not in known:
                raise ValueError(
                    f"{name} is not metadata of the scorer, which takes "
                    f"{', '.join(known)}."
                )
        requests = {**self._requests, **kwargs}
        self._request_of(requests)
        self._requests = requests
        return self

    def _request_of(self, requests: Mapping[str, Any]) -> MetadataRequest:
        request = MetadataRequest(owner=self)
        for name in dict.fromkeys((*self._score_func.columns_taken, *requests)):
            request.score.add_request(param=name, alias=requests.get(name))
        return request

    def _get_metadata_request(self) -> MetadataRequest:
        return self._request_of(self._requests)

    def _score(
        self,
        method_caller: Callable[..., Any],
        estimator: Any,
        X: Any,
        y_true: Any,
        **metadata: Any,
    ) -> FairnessScore:
        """Return the score for scikit-learn, without the estimates unless wanted.

        A search keeps its scores to the end, and estimates of many groups are large.
        """
        function: ScoreFunction = self._score_func
        columns = {k: v for k, v in metadata.items() if v is not None}
        for name, spec in function.columns.items():
            if name not in columns and is_column(spec):
                columns[name] = column_of(X, spec, name)
        check_aligned(X=X, y_true=y_true, **columns)
        passed: dict[str, Any] = {}
        for name, value in columns.items():
            alias = self._requests.get(name)
            passed[alias if isinstance(alias, str) else name] = value
        method = self._response_method
        scores = response_values(estimator, X, method, passed, method_caller)
        if function.by_group:
            positive = positive_class(estimator)
            decided = positive is not None and self._response_method == "predict"
            y_true, scores = as_outcomes(y_true, scores, positive, two_classes=decided)
        value, estimates = function.evaluate(y_true, scores, **columns)
        value *= self._sign
        return FairnessScore(value, estimates if self.keeps_estimates else None)


def _default_sign(function: ScoreFunction) -> int:
    """Return -1 for a disparity, of which smaller values are better, else 1."""
    kind = function.kind
    compares = kind is None and function.compares_groups
    return -1 if compares or kind in ("difference", "max_abs", "l1") else 1


def _default_response(function: ScoreFunction) -> str | list[str]:
    """Return the responses to try in order; `predict` for rates of decisions."""
    options = inspect.signature(function.metric).parameters
    decides = "threshold" in options and options["threshold"].default is None
    if not function.by_group or (decides and function.params.get("threshold") is None):
        return "predict"
    if decides:
        return list(AUDITED_RESPONSES)
    return list(RESPONSES[1:] if unwrapped(function.metric) in _ON_SCALE else RESPONSES)


def make_fairness_scorer(
    metric: Callable[..., Any],
    *,
    sensitive_features: ColumnSpec = None,
    qid: ColumnSpec = None,
    cluster: ColumnSpec = None,
    engagement: ColumnSpec = None,
    sample_weight: ColumnSpec = None,
    item_weight: ColumnSpec = None,
    disparity: str | None = None,
    response_method: str | list[str] = "auto",
    greater_is_better: bool | None = None,
    on_undefined: str = "warn",
    expected_groups: Sequence[Hashable] | None = None,
    **metric_params: Any,
) -> FairnessScorer:
    """Make a scorer of a fairness metric, for ``scoring=`` anywhere in scikit-learn.

    The groups, the queries and the clusters come from columns of X by name, which needs
    no metadata routing, or from metadata. The scorer also passes on what the
    estimator's response method asks for. So it can score estimators that predict with
    ``sensitive_features``, which scikit-learn's own scorers cannot do.

    Parameters
    ----------
    metric : callable
        A metric of `skrankfair.metrics`, or a function of yours that returns such a
        result (then pass `disparity`). Or any ``metric(y_true, y_pred)`` of
        scikit-learn, which then is merely computed from predictions made with metadata.
    sensitive_features, qid, cluster, engagement, sample_weight, item_weight : str, \
            list of str, callable, True or None, default=None
        Where the argument of the metric comes from: a column of X, several that are
        crossed (of `cluster` users and items, which recur among them), a function of X,
        or True for metadata of that name. `set_score_request`
        changes requests of metadata as on scikit-learn's scorers, aliases included.
    disparity : {"difference", "ratio", "max_abs", "l1", "worst"} or None, default=None
        How the groups become one number (`GroupEstimates.disparity`); None is the
        metric's own way. A metric with a single value, such as `ndcg`, needs none.
    response_method : str or list of str, default="auto"
        "auto" takes `decision_function`, or else the positive class of `predict_proba`,
        or else `predict`. For a metric on the scale of outcomes, which are losses,
        `calibration_error` and `positive_rate_shift`, it takes `predict_proba`, or else
        `predict`. For a metric of scikit-learn, and for rates of decisions without
        ``threshold=``, it takes `predict`; for rates with ``threshold=`` probabilities
        before a decision function, as `FixedThresholdClassifier` of scikit-learn does.
    greater_is_better : bool or None, default=None
        None means False, which negates the number, for the disparities "difference",
        "max_abs" and "l1", and True for a ratio, for the worst group and for metrics
        with a single value. It must be given for a function of others that takes
        `sensitive_features`, such as fairlearn's, or whose name ends like that of an
        error or a loss.
    on_undefined : {"warn", "raise"}, default="warn"
        What to do if a group has no data or if there is only one group: score NaN with
        an `UndefinedMetricWarning` that names the group, or raise. It holds for metrics
        of others too, and for infinite numbers, which are scored as infinite.
    expected_groups : sequence of labels or None, default=None
        Groups that every test set must have; otherwise its score is undefined. A test
        fold without rows of a group knows of the group only if the column is a
        categorical of pandas or an Enum of polars, whose categories are all expected.
    **metric_params : dict
        Further options of the metric, such as ``comparison="inter"``, and where the
        columns of its own come from: `position` and `covariates`, and those of a metric
        that `make_metric` made.

    Returns
    -------
    FairnessScorer
        Called as ``scorer(estimator, X, y, **metadata)``. Its floats carry the
        estimates by group as ``.estimates``.

    Raises
    ------
    ValueError
        If the metric is not callable, lacks an option, or does not take a column; when
        scoring, if X lacks a column or if metadata was not passed.

    Warns
    -----
    UndefinedMetricWarning
        When a test set lacks the data of a group.

    See Also
    --------
    get_scorer : Ready-made scorers by name.
    skrankfair.model_selection.fairness_constrained : Search under a bound.

    Notes
    -----
    Columns work wherever scikit-learn hands the scorer a frame. `RFECV`,
    `SequentialFeatureSelector`, `LogisticRegressionCV`, `TunedThresholdClassifierCV`
    and `RidgeCV` without ``cv=`` turn it into an array, or call the metric alone: pass
    metadata there. Without metadata they raise, except `SequentialFeatureSelector`,
    which only warns that scoring failed. `RidgeClassifierCV` also needs ``cv=`` and a
    scorer with ``set_score_request(sample_weight=False)``, as it passes weights of its
    own; `HistGradientBoostingClassifier` and forests give their scorers neither names
    nor metadata. `permutation_importance` takes no metadata and shuffles all columns,
    including that of the group, so give it ``functools.partial(scorer,
    sensitive_features=...)``, with all rows (``max_samples=1.0``).

    With metadata routing on, a column reaches the estimator's response method if it is
    requested (``set_predict_request``); with routing off, if the method has a parameter
    of that name.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GroupKFold, cross_val_score
    >>> from skrankfair.metrics import pairwise_accuracy
    >>> from skrankfair.scoring import make_fairness_scorer
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"x": rng.normal(size=2000)})
    >>> X["female"] = rng.integers(0, 2, 2000)
    >>> X["query"] = np.repeat(np.arange(100), 20)
    >>> y = (X["x"] + rng.normal(size=2000) > 0).astype(int)
    >>> gap = make_fairness_scorer(
    ...     pairwise_accuracy,
    ...     comparison="inter",
    ...     sensitive_features="female",
    ...     qid="query",
    ... )
    >>> scores = cross_val_score(
    ...     LogisticRegression(), X, y, scoring=gap, cv=GroupKFold(5), groups=X["query"]
    ... )
    >>> bool((scores <= 0).all())
    True
    """
    given = locals()
    if not callable(metric):
        raise ValueError(
            f"metric must be a function of skrankfair.metrics; got {metric!r}."
        )
    check_choice(disparity, "disparity", (None, *KINDS))
    check_choice(on_undefined, "on_undefined", ("warn", "raise"))
    specs: dict[str, ColumnSpec] = {name: given[name] for name in COLUMNS}
    for name in own_columns(metric):
        specs[name] = metric_params.pop(name, None)
    for name, spec in specs.items():
        check_spec(spec, name)
    if isinstance(expected_groups, str):
        raise ValueError(
            f"expected_groups must be a sequence of labels; got {expected_groups!r}."
        )
    columns = {name: spec for name, spec in specs.items() if spec is not None}
    labels = () if expected_groups is None else expected_groups
    expected = tuple(map(as_scalar, labels))
    function = ScoreFunction(
        metric, metric_params, disparity, on_undefined, columns, expected
    )
    _check_options(function)
    if greater_is_better is None:
        _check_direction(function)
        sign = _default_sign(function)
    else:
        sign = 1 if greater_is_better else -1
    if response_method == "auto":
        response_method = _default_response(function)
    return FairnessScorer(function, sign, response_method)


#: Ends of the names of metrics that should be small, in scikit-learn and fairlearn.
_SMALL = ("_error", "_loss", "_deviance", "_difference", "_disparity", "_gap")


def _check_direction(function: ScoreFunction) -> None:
    """Raise a ValueError if it is unknown which end of a metric of others is good."""
    if function.by_group:
        return
    disparity = "sensitive_features" in function.accepted
    if disparity or function.__name__.endswith(_SMALL):
        why = "compares groups" if disparity else "may be better the smaller it is"
        raise ValueError(
            f"greater_is_better must be given for {function.__name__}, which is not a "
            f"metric of skrankfair and {why}: False for a disparity, an error or a "
            "loss, which is then negated; True for what is to be large, such as a "
            "ratio. If it returns GroupEstimates, pass disparity."
        )


def _check_options(function: ScoreFunction) -> None:
    """Raise a ValueError for options that the metric of skrankfair does not have."""
    parameters = inspect.signature(function.metric).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return
    for name in function.params:
        if name not in parameters:
            raise ValueError(
                f"{name} must be an option of {function.__name__}; it has "
                f"{', '.join(parameters)}."
            )
    if not function.by_group:
        return
    for name in function.columns:
        if name not in parameters:
            raise ValueError(
                f"{name} is not taken by {function.__name__}, which takes "
                f"{', '.join(function.accepted)}."
            )
    if (
        "sensitive_features" in function.accepted
        and "sensitive_features" not in function.columns
    ):
        raise ValueError(
            f"sensitive_features must be given for {function.__name__}: a column of X, "
            "or True for metadata."
        )


def get_scorer_names() -> list[str]:
    """Return the names that `get_scorer` knows.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from skrankfair.scoring import get_scorer_names
    >>> "neg_matched_pair_calibration" in get_scorer_names()
    True
    """
    return sorted(SCORERS)


def get_scorer(name: str, **options: Any) -> FairnessScorer:
    """Return a ready-made scorer by name.

    Parameters
    ----------
    name : str
        One of `get_scorer_names`. ``neg_`` scorers are negated disparities, whose best
        value is 0; ratios are best at 1; ``worst_group_`` scorers are the value of the
        group that is worst off, negated where low values are better.
    **options : dict
        Passed to `make_fairness_scorer`: where the groups and the queries come from,
        and options of the metric.

    Returns
    -------
    FairnessScorer

    Raises
    ------
    ValueError
        If the name or an option is unknown.

    Examples
    --------
    >>> from skrankfair.scoring import get_scorer
    >>> get_scorer("ndcg", qid="query_id", k=10)
    make_fairness_scorer(ndcg, qid='query_id', k=10)
    """
    if name not in SCORERS:
        raise ValueError(
            f"name must be one of {', '.join(get_scorer_names())}; got {name!r}."
            f"{did_you_mean(name, SCORERS)}"
        )
    metric, params, disparity = SCORERS[name]
    return make_fairness_scorer(metric, **{"disparity": disparity, **params, **options})


#: What the name of a scorer and "_" begin in the names of its columns.
_COLUMN_ENDS = f"standard_error|df|neg|(neg_)?({'|'.join(KINDS)})_(of_.*|support)"
#: Level of the bounds from which standard errors are recovered.
_LEVEL = 0.95


class ScorersWithErrors(MultimetricScorer):
    """Several scorers as one, made by `with_errors`.

    Parameters
    ----------
    scorers : dict of str to scorer
    """

    def __init__(self, scorers: Mapping[str, Any]) -> None:
        super().__init__(scorers={name: copy(s) for name, s in scorers.items()})
        for name, scorer in self._scorers.items():
            columns = re.compile(rf"{re.escape(name)}_({_COLUMN_ENDS})", re.DOTALL)
            for other in filter(columns.fullmatch, scorers):
                raise ValueError(
                    f"scorers must not have both the names {name!r} and {other!r}, "
                    "with which columns of the former in cv_results_ begin."
                )
            if isinstance(scorer, FairnessScorer):
                scorer.keeps_estimates = True

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
        # The sums of groups that a test set lacks are 0.
        scores: dict[str, float] = defaultdict(float)
        for name, score in super().__call__(estimator, *args, **kwargs).items():
            scores[name] = float(score)
            scorer = self._scorers[name]
            if isinstance(scorer, FairnessScorer) and score.estimates is not None:
                function, result = scorer._score_func, score.estimates
                kind = "value"
                if function.compares_groups:
                    kind = function.kind or rates_of(result)[0].metric.disparity
                error, df = standard_error(result, kind)
                scores |= {f"{name}_standard_error": error, f"{name}_df": df}
                if function.compares_groups:
                    sign = "neg_" if scorer._sign < 0 else ""
                    expected = function.expected_groups
                    scores |= group_sums(f"{name}_{sign}{kind}", result, kind, expected)
        return scores


def group_sums(
    name: str, result: Result, kind: str, expected: Iterable[Hashable] = ()
) -> dict[str, float]:
    """Return the sums that say what a disparity is over several test sets together.

    Each group has its support, and its support times its estimate. The estimate is
    minus the fair value where the disparity is a distance from it, and negated where
    the worst group has the largest value. Supports have the weights of rows; that of a
    ratio is its denominator, or counts queries where their mean is taken. Those of
    expected groups that are absent are 0.
    """
    sums = dict[str, float]()
    for rate in rates_of(result):
        value, ratio, totals = rate.estimate, rate.metric.finalize, rate.sums.totals
        support = rate.metric.support(*totals)
        if isinstance(ratio, MeanOfRatios) and ratio.n_buckets == 1:
            support = ratio.by_bucket(*totals)[1][:, 0]
        if kind in ("max_abs", "l1"):
            value = value - rate.metric.fair_value
        elif kind == "worst" and rate.metric.better == "low":
            value = -value
        total = np.where(np.isnan(value), 0.0, value) * support
        of_groups = zip(total, support * ~np.isnan(value), strict=True)
        numbers = dict.fromkeys(expected, (0.0, 0.0))
        numbers |= dict(zip(rate.groups, of_groups, strict=True))
        for label, of_group in numbers.items():
            column = f"{name}_of_{rate.name}[{label!r}]"  # 1 is not "1"
            sums[column], sums[f"{column}_support"] = map(float, of_group)
    sums[f"{name}_support"] = sum(v for n, v in sums.items() if n.endswith("_support"))
    return sums


def standard_error(result: Result, kind: str) -> tuple[float, float]:
    """Return the standard error of a disparity and its degrees of freedom.

    By Student's t they give the disparity's confidence bound, that of a ratio on the
    scale of the logarithm. On the side of the bound the interval of a small share or
    ratio is the short one, which over the folds would add up to too little: the error
    of a worst or furthest group, or of a difference, is at least that of the group's
    estimate or of the contrast, and a ratio of 0 has that of its upper limit.
    For several contrasts the degrees of freedom are the most of any of them, which is
    conservative: the errors of folds then shrink least when they are combined.
    """
    if isinstance(result, EqualizedOdds):
        errors = [standard_error(rate, kind) for rate in result.rates]
        return max(errors, key=lambda error: (error[0] != error[0], error[0]))
    if kind == "value":
        return float(result.standard_error[0]), float(result.df[0])
    estimate, least = result.estimate, 0.0
    with collected_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        value, bound = result.disparity(kind), result.disparity_bound(_LEVEL, kind)
        df = float(_df(result, kind).max(initial=0.0))
        margin = abs(bound - value)
        if kind == "ratio" and bound > 0:
            margin = value * np.log(value / bound)
        elif kind == "ratio" and not np.isnan(bound):
            _, high = result.confidence_interval(2 * _LEVEL - 1)
            margin = np.asarray(high)[estimate.argmin()] / estimate.max() - value
        elif kind == "worst":
            loss = -estimate if result.metric.better == "high" else estimate
            least = result.standard_error[loss.argmax()]
        elif kind == "max_abs":
            distance = np.nan_to_num(np.abs(estimate - result.fair_value))
            least = result.standard_error[distance.argmax()]
        elif kind == "difference" and result.metric.not_compared is None:
            order = estimate.argsort()
            widest = contrasts_of(result, order[-1:], order[:1], kind)
            least = widest.scale.standard_error[0]
    return float(np.maximum(margin / stdtrit(df, _LEVEL), least)), df


def _df(result: GroupEstimates, kind: str) -> Any:
    """Return the degrees of freedom of all that a disparity's bound looks at."""
    pairs = kind in ("difference", "ratio") and 1 < len(result.groups) <= MOST_TOGETHER
    if pairs and result.metric.not_compared is None:
        return contrasts_of(result, *np.triu_indices(len(result.groups), 1), kind).df
    return result.df


def with_errors(scorers: Mapping[str, Any]) -> ScorersWithErrors:
    """Make one scorer of several, which scores the standard errors too.

    For ``scoring=`` of searches and of `cross_validate`. Each scorer of this package,
    say "gap", then has two more columns in ``cv_results_``, whose names end in
    "gap_standard_error" and "gap_df", and for each group its value times its support,
    and its support. `fairness_constrained` takes from these the disparity of all folds
    together, and can hold a confidence bound below a limit.

    Parameters
    ----------
    scorers : dict of str to scorer
        Scorers by name: those of this package, names of scikit-learn's scorers, and
        callables ``scorer(estimator, X, y)``.

    Returns
    -------
    callable
        ``scoring(estimator, X, y)``, which returns a dict of floats, in which groups
        that the test set lacks have the sums 0. It passes metadata on to the scorers
        that request them.

    Raises
    ------
    ValueError
        If `scorers` is not a dict of scorers, or columns of one begin like another.

    See Also
    --------
    skrankfair.model_selection.fairness_constrained : Search under a bound.

    Notes
    -----
    The standard error of a score on one test set is cluster-robust and takes the model
    as given. For more than two groups a disparity is a maximum, which has no standard
    error: the one reported gives the same `GroupEstimates.disparity_bound`, that of a
    ratio on the scale of the logarithm. The one of a worst group or of a difference is
    at least that of the group's own estimate or of the contrast of the two groups,
    since the errors of several folds are added up.

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
    >>> list(scores)[:4]
    ['accuracy', 'gap', 'gap_standard_error', 'gap_df']
    >>> list(scores)[4:6]
    ['gap_neg_difference_of_selection_rate[0]',
     'gap_neg_difference_of_selection_rate[0]_support']
    >>> round(scores["gap_standard_error"], 3)
    0.022
    """
    if not isinstance(scorers, Mapping):
        raise ValueError(
            f"scorers must be a dict of names and scorers; got {scorers!r}."
        )
    return ScorersWithErrors(check_scoring(scoring=dict(scorers))._scorers)
