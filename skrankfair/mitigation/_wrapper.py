"""What the estimators around a model share: columns, metadata, folds, checks."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import check_cv
from sklearn.utils import assert_all_finite, column_or_1d, indexable
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, validate_data

from .._estimates import formatting as fmt
from .._inputs.by_name import (
    RESPONSES,
    TakesMetadata,
    metadata_columns,
    take_column,
    take_columns,
    without_columns,
    without_units,
)
from .._inputs.groups import Codes, Groups
from .._inputs.score_rows import ScoreRows
from .._inputs.sklearn_private import (
    fit_parameters,
    parameters_of_rows,
    response_values,
    routing_enabled,
    rows_of,
    tags_of,
    with_names,
)
from .._inputs.validation import Array, as_numbers, as_weights, check_aligned, warn_user
from ._by_group import check_given_alike, columns_of_rows, two_classes


@dataclass(frozen=True)
class FitRows:
    """The columns of a fit, validated."""

    X: Any  # shape (n, d): for the wrapped model
    y: Array  # shape (n,)
    outcome: Array  # shape (n,): 1 for the second class, or y; NaN where it is unknown
    known: Array  # shape (n,), bool: whether the outcome is known
    groups: Groups  # disjoint
    cluster: Codes | None
    weight: Array | None  # shape (n,) or None
    metadata: dict[str, Any]  # that the wrapped model may take when it predicts
    fit: dict[str, Any]  # parameters of its fit
    split: dict[str, Any]  # parameters of the splitter

    def calibration(self, rows: Array, score: Array, outcome: Array) -> ScoreRows:
        """Return some rows with their scores, for the fit of a calibration.

        `outcome` is that of all rows. Scores that several folds give to a row are a
        cluster.
        """
        cluster = self.cluster
        if cluster is None and np.unique(rows).size < rows.size:
            cluster = Codes(np.arange(self.y.size), np.arange(self.y.size))
        of_all = ScoreRows(
            outcome[rows, None],
            score[:, None],
            self.groups.take(rows),
            None if cluster is None else cluster.take(rows),
            None if self.weight is None else as_weights(self.weight[rows]),
            rows,
        )
        return of_all.of_positive_weight()


METHODS = ("decision_function", "predict_proba")


class Fold(NamedTuple):
    """A fitted model, and scores of rows by models that were not fitted to them."""

    estimator: Any
    rows: Array  # shape (m,), int64
    scores: Array  # shape (m,)


def fit_clone(
    estimator: Any, X: Any, y: Any, rows: Array, fit: Mapping[str, Any]
) -> Any:
    """Return a clone that is fitted to some rows; `fit` are parameters of its `fit`."""
    model = clone(estimator)
    parameters = parameters_of_rows(X, fit, rows)
    return model.fit(rows_of(X, rows), rows_of(y, rows), **parameters)


def splits_of(
    cv: Any,
    X: Any,
    y: Any,
    strata: Array,
    unit: Array | None,
    parameters: Mapping[str, Any] | None = None,
) -> list[tuple[Array, Array]]:
    """Return the numbers of the training and the test rows of each fold.

    An integer `cv` (None is 5) shuffles, always in the same way, and keeps units whole
    and the share of every stratum: a unit belongs to the rarest that it has rows of.
    Else it is a splitter, which gets the units as groups unless its `parameters` have
    some, or a list of splits, which may be numbers or masks.
    """
    rows = np.arange(strata.size)
    if not (cv is None or isinstance(cv, Integral)):
        given = {"groups": unit, **(parameters or {})}
        known = check_cv(cv)
        # The errors of a splitter are its own.
        splits = [*known.split(X, y, **given)] if hasattr(cv, "split") else known.cv
        try:
            folds = [(rows[np.asarray(a)], rows[np.asarray(b)]) for a, b in splits]
        except (IndexError, TypeError, ValueError) as error:
            raise ValueError(
                "cv must give pairs of rows to fit and rows to score, as numbers below "
                f"{rows.size} or masks; {error}."
            ) from error
        if not folds:
            raise ValueError("cv must give at least one split; got none.")
        return folds
    n_splits = 5 if cv is None else int(cv)
    unit = rows if unit is None else unit
    n_units, name = int(unit.max()) + 1, "rows" if unit is rows else "clusters"
    if not 2 <= n_splits <= n_units:
        raise ValueError(
            f"cv must be at least 2, and there must be at least cv={n_splits} {name}; "
            f"got {n_units} (n_samples={rows.size})."
        )
    rarity = np.argsort(np.argsort(np.bincount(strata)))
    rarest = np.full(n_units, rarity.size)
    np.minimum.at(rarest, unit, rarity[strata])
    fold = np.empty(n_units, dtype=np.int64)
    order = np.lexsort([np.random.default_rng(0).random(n_units), rarest])
    fold[order] = np.arange(n_units) % n_splits
    of_row = fold[unit]
    return [(rows[of_row != i], rows[of_row == i]) for i in range(n_splits)]


def warn_of_folds(
    splits: Sequence[tuple[Array, Array]], group: Array, labels: Sequence[Hashable]
) -> None:
    """Warn of groups that a model scores and has not seen.

    `group` is the number of the group of each row, or negative where it has none.
    """
    unseen = [np.setdiff1d(group[test], group[train]) for train, test in splits]
    lacking = np.unique(np.concatenate(unseen))
    lacking = lacking[lacking >= 0]
    if lacking.size:
        names = fmt.some_groups(labels[i] for i in lacking)
        warn_user(
            f"A fold is fitted without rows of these groups, and scores them: {names}. "
            "Pass cv= with rows of each group in every training set.",
            UserWarning,
        )


def scores_of(
    estimator: Any,
    X: Any,
    metadata: Mapping[str, Any],
    methods: Sequence[str] = METHODS,
) -> Array:
    """Return the scores of a fitted model, one per row.

    The first response of a classifier that it has, the probability being that of the
    second class; the prediction of a regressor.
    """
    name = type(estimator).__name__
    if not hasattr(estimator, "classes_"):
        methods = ("predict",)
    elif not any(hasattr(estimator, method) for method in methods):
        raise ValueError(
            f"estimator must have {' or '.join(methods)}; {name} has none."
        )
    values = response_values(estimator, X, list(methods), metadata)
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(
            f"estimator must give one finite score per row; {name} gives shape "
            f"{values.shape}, "
            f"{int(np.isfinite(values).sum())} of {values.size} values finite."
        )
    return values


def _fitted_fold(estimator: Any, rows: FitRows, split: Any, methods: Any) -> Fold:
    """Fit a clone to some rows and let it score others."""
    train, test = split
    model = fit_clone(estimator, rows.X, rows.y, train, rows.fit)
    metadata = parameters_of_rows(rows.X, rows.metadata, test)
    return Fold(model, test, scores_of(model, rows_of(rows.X, test), metadata, methods))


class ModelWrapper(MetaEstimatorMixin, TakesMetadata, metaclass=ABCMeta):
    """An estimator around `estimator`, with `sensitive_features` and `cluster`."""

    estimator: Any
    sensitive_features: Any
    cluster: Any
    cv: Any
    drop_metadata_columns: bool
    n_jobs: Any
    _unknown_outcomes = False

    def get_metadata_routing(self) -> Any:
        """Return the metadata that this estimator and the wrapped one request.

        Returns
        -------
        MetadataRouter
        """
        request, callers = super().get_metadata_routing(), (*RESPONSES, "score")
        router = router_of(self, request, callers)
        if hasattr(self.cv, "split"):
            to_split = MethodMapping().add(caller="fit", callee="split")
            router.add(splitter=self.cv, method_mapping=to_split)
        return router

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        sensitive_features: Any = None,
        cluster: Any = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the model, and what is done with its scores in each group.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of two classes for a classifier, else numbers.
            `GroupThresholdClassifier` takes NaN where the outcome is unknown.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weight of the row: a weight of 2 counts the row twice, as scikit-learn has
            it; with clusters a curve takes it as importance, which has no scale.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, d), or \
                None, default=None
            Group labels, if the constructor names no column of X.
        cluster : array-like of shape (n_samples,) or None, default=None
            Independent units, if the constructor names no column of X.
        **fit_params : dict
            Metadata that the model's `fit` and the splitter `cv` request; without
            metadata routing ``groups`` are for the splitter, all others for the model.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If an option is unknown, if groups overlap, if a column is given twice, is
            missing or has another length, or if a classifier gets other than two
            classes.

        Warns
        -----
        UserWarning
            It names small groups, says that the model takes no weights, or names groups
            whose threshold is on the extrapolated line below all known outcomes.
        """
        self._check_options()
        passed = {"sensitive_features": sensitive_features, "cluster": cluster}
        columns = take_columns(self, X, passed, y=y, sample_weight=sample_weight)
        check_features(self, X, y, reset=True)
        y = column_or_1d(y, warn=True)
        X, y = indexable(X, y)
        assert_all_finite(y, input_name="y", allow_nan=self._unknown_outcomes)
        classifier = isinstance(self, ClassifierMixin)
        if not classifier:
            y = outcome = as_numbers(y, "y")
        groups, clusters, weight = columns_of_rows(len(y), sample_weight, **columns)
        known = ~np.isnan(y) if y.dtype.kind == "f" else np.ones(y.shape, dtype=bool)
        if classifier:
            counted = known if weight is None else known & (weight > 0)
            self.classes_ = two_classes(y[counted])
            outcome = np.where(known, y == self.classes_[1], np.nan)
        metadata = {"sample_weight": weight, **columns}
        given = {name: value for name, value in metadata.items() if value is not None}
        if routing_enabled():
            passed = {"sample_weight": sample_weight, **passed, **fit_params}
            # It raises for what nobody requests, and where a request is missing.
            routed = process_routing(self, "fit", **passed)
            fit = fit_parameters(self.estimator, {**fit_params, **given})
            split = routed["splitter"]["split"] if "splitter" in routed else {}
        else:
            fit = {**fit_parameters(self.estimator, given), **fit_params}
            split = {"groups": fit.pop("groups")} if "groups" in fit else {}
        trained = weight is not None and not isinstance(self.estimator, FrozenEstimator)
        if trained and not any(value is weight for value in fit.values()):
            warn_user(
                f"{type(self.estimator).__name__} does not take sample_weight, or does "
                "not request it: only what comes after it is weighted.",
                UserWarning,
            )
        self._grouped = "sensitive_features" in given
        X, given = for_model(self, X), {**fit_params, **given}
        rows = X, y, outcome, known, groups, clusters, weight
        self._fit(FitRows(*rows, given, fit, split))
        return self

    @abstractmethod
    def _check_options(self) -> None:
        """Raise a ValueError for an option that is out of its range."""

    @abstractmethod
    def _fit(self, rows: FitRows) -> None:
        """Fit to rows that are validated."""

    def _out_of_fold(
        self, rows: FitRows, methods: Sequence[str] = METHODS
    ) -> list[Fold]:
        """Return the models of the folds, with their scores of the rows left out.

        A `FrozenEstimator` is not fitted and scores all rows, in one fold. `methods`
        are the responses of a classifier that may be the score, the best one first.
        """
        estimator, cv = self.estimator, self.cv
        if isinstance(estimator, FrozenEstimator):
            scores = scores_of(estimator, rows.X, rows.metadata, methods)
            return [Fold(estimator, np.arange(len(rows.y)), scores)]
        y, group = rows.y, rows.groups.values
        unit = None if rows.cluster is None else rows.cluster.codes
        strata = group
        if isinstance(self, ClassifierMixin):
            # Rows of unknown outcome are a class of their own.
            y = np.unique(y, return_inverse=True)[1]
            strata = group * (y.max() + 1) + y
        splits = splits_of(cv, rows.X, y, strata, unit, rows.split)
        splits = [(train[rows.known[train]], test) for train, test in splits]
        warn_of_folds(splits, group, rows.groups.labels)
        return Parallel(n_jobs=self.n_jobs)(
            delayed(_fitted_fold)(estimator, rows, split, methods) for split in splits
        )

    def _joined(self, folds: Sequence[Fold], rows: FitRows) -> Fold:
        """Return the model of all known outcomes, with the scores of the folds."""
        model, (_, scored, scores) = self.estimator, zip(*folds, strict=True)
        if not isinstance(model, FrozenEstimator):
            known = np.flatnonzero(rows.known)
            model = fit_clone(model, rows.X, rows.y, known, rows.fit)
        return Fold(model, np.concatenate(scored), np.concatenate(scores))

    def _predict_rows(
        self, X: Any, sensitive_features: Any
    ) -> tuple[Any, Any, dict[str, Any]]:
        """Return X for the model, labels of groups and metadata for the model."""
        check_is_fitted(self, ["estimators_", "thresholds_"], all_or_any=any)
        labels = take_column(self, X, "sensitive_features", sensitive_features)
        check_given_alike(labels, self._grouped)
        check_features(self, X, reset=False)
        metadata = {} if labels is None else {"sensitive_features": labels}
        return for_model(self, X), labels, metadata

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = tags_of(self.estimator).input_tags
        tags.target_tags.required = True
        return tags


def router_of(estimator: Any, request: Any, callers: Sequence[str]) -> MetadataRouter:
    """Return the routes of a fit, and from callers to responses, of the model inside.

    `request` is what the estimator requests itself.
    """
    mapping = MethodMapping().add(caller="fit", callee="fit")
    for method in RESPONSES:
        for caller in callers:
            mapping.add(caller=caller, callee=method)
    router = MetadataRouter(owner=type(estimator).__name__)
    router.add_self_request(request)
    return router.add(estimator=estimator.estimator, method_mapping=mapping)


def for_model(estimator: Any, X: Any) -> Any:
    """Return X as the wrapped model gets it."""
    names = metadata_columns(estimator) if estimator.drop_metadata_columns else []
    return without_columns(X, names)


class ScoresByGroup:
    """The usual score of a classifier or regressor that predicts with groups.

    It is a base before scikit-learn's mixins, whose `score` passes no groups.
    """

    predict: Callable[..., Array]

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, sensitive_features: Any = None
    ) -> float:
        """Return the accuracy of a classifier, or R² of a regressor.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Importance of the row: a common factor changes nothing, and 0 leaves it out.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, d), or \
                None, default=None
            Group labels, if the constructor names no column of X.

        Returns
        -------
        float
        """
        check_aligned(X=X, y=y, sample_weight=sample_weight)
        predicted = self.predict(X, sensitive_features)
        measure = accuracy_score if isinstance(self, ClassifierMixin) else r2_score
        return float(measure(y, predicted, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags: Any = super().__sklearn_tags__()  # type: ignore[misc]
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_class = False
        return tags


def check_features(
    estimator: Any, X: Any, y: Any = "no_validation", *, reset: bool
) -> None:
    """Raise a ValueError unless X is a table with some row and the names of the fit.

    A column of clusters that is hidden from the model may be missing.
    """
    shape = getattr(X, "shape", (1, 1))
    if len(shape) != 2:
        raise ValueError(
            f"X must be 2-dimensional, one row per sample; got shape {shape}. Reshape "
            "your data, with .reshape(-1, 1) if it is one column."
        )
    if shape[0] == 0:
        raise ValueError(
            f"X must have at least one row (n_samples); got shape {shape}."
        )
    X = without_units(estimator, X) if estimator.drop_metadata_columns else X
    validate_data(estimator, with_names(X), y, reset=reset, skip_check_array=True)
