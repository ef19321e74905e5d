"""What mitigations by group share: columns of a fit, and a calibration per group."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import TransformerMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted

from .._inputs.by_name import (
    TakesMetadata,
    frame_numbers,
    metadata_columns,
    numeric_features,
    take_column,
    take_columns,
)
from .._inputs.columns import check_one_way, read_labels
from .._inputs.groups import Codes, Groups, frame_columns
from .._inputs.score_rows import CLUSTER_WEIGHTS, ScoreRows
from .._inputs.sklearn_private import names_of_features
from .._inputs.validation import (
    Array,
    as_numbers,
    check_choice,
    check_magnitude,
    check_number,
    warn_user,
)


def columns_of_rows(
    n_rows: int, sample_weight: Any = None, *, sensitive_features: Any, **units: Any
) -> tuple[Groups, Codes | None, Array | None]:
    """Return disjoint groups, and units and weights or None, of all rows of X."""
    units |= {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
    groups, codes, weights = read_labels({"X": n_rows}, **units)
    groups.check_disjoint("mitigations (labels, .astype(str), are crossed)")
    check_one_way(codes.get("item"))
    of_rows = [codes[name] for name in units if name in codes]
    return groups, of_rows[0] if of_rows else None, weights.get("sample_weight")


def two_classes(y: Array) -> Array:
    """Return the two classes of the rows that count, in order."""
    if not y.size:
        raise ValueError("Input y contains NaN in all rows of positive weight.")
    if missing := np.count_nonzero(pd.isna(y)):
        raise ValueError(
            f"y must not have missing labels; {missing:,} of {y.size:,} are missing. "
            "GroupThresholdClassifier takes NaN among numbers for unknown outcomes."
        )
    check_classification_targets(y)
    classes, kind = np.unique(y), type_of_target(y, input_name="y")
    if kind != "binary":
        raise ValueError(
            "Only binary classification is supported. The type of the target is "
            f"{kind}; regressors take graded outcomes."
        )
    if classes.size < 2:
        raise ValueError(
            "y must have two classes in rows of positive weight; there is only one "
            f"class, {classes.tolist()[0]!r}."
        )
    return classes


def quoted(labels: list[Hashable]) -> str:
    """Return labels for a message, the first ten of them."""
    text = ", ".join(repr(label) for label in labels[:10])
    return text + (f" and {len(labels) - 10} more" if len(labels) > 10 else "")


def check_given_alike(labels: Any, in_fit: bool) -> None:
    """Raise a ValueError if groups are given to `fit` alone, or to all but `fit`."""
    if (labels is not None) != in_fit:
        raise ValueError(
            "sensitive_features must be given both to fit and afterwards, or to "
            f"neither; fit had {'some' if in_fit else 'none'}. Tools that pass "
            "metadata to fit alone need a column of X, by name."
        )


def warn_of_unseen(groups: Groups, known: Collection[Hashable], fate: str) -> None:
    """Warn of groups that `fit` has not seen, and say what becomes of them."""
    seen = set(known)
    if unseen := [label for label in groups.labels if label not in seen]:
        warn_user(
            f"Groups that fit has not seen {fate}: {quoted(unseen)} "
            f"(seen: {quoted(list(known))}).",
            UserWarning,
        )


def fits_of_rows(
    n_rows: int, labels: Any, fits: dict[Hashable, Any], pooled: Any, fate: str
) -> Iterator[tuple[Array, Any]]:
    """Yield the rows of each group and its fit, for an unseen group the pooled one."""
    groups, _, _ = columns_of_rows(n_rows, sensitive_features=labels)
    warn_of_unseen(groups, fits, fate)
    for g, label in enumerate(groups.labels):
        yield np.flatnonzero(groups.values == g), fits.get(label, pooled)


class CalibratesByGroup(TransformerMixin, TakesMetadata, metaclass=ABCMeta):
    """A calibration of score columns for each group, and one of all rows."""

    calibrator: Any
    sensitive_features: Any
    cluster: Any
    cluster_weight: str
    min_group_size: int
    _multi_output = False
    _grouped: bool

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        sensitive_features: Any = None,
        cluster: Any = None,
    ) -> Self:
        """Fit the expected outcomes as functions of the scores, in each group.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
            Scores, with the columns of group and cluster that the constructor names.
        y : array-like of shape (n_samples,), or frame or array of shape (n_samples, K)
            Outcomes; `MultiObjectiveCalibrator` takes one column per objective.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weight of the row: a weight of 2 counts the row twice, as scikit-learn has
            it; with clusters a curve takes it as importance, which has no scale.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, d), or \
                None, default=None
            Group labels, if the constructor names no column of X.
        cluster : array-like of shape (n_samples,) or None, default=None
            Independent units, if the constructor names no column of X.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If an option is unknown, if weights do not fit the objectives, if groups
            overlap, if outcomes or scores are not finite, or if a column is given
            twice, is missing or has another length.

        Warns
        -----
        UserWarning
            It names the groups with fewer than `min_group_size` clusters.
        """
        self._check_options()
        passed = {"sensitive_features": sensitive_features, "cluster": cluster}
        self._fit_rows(self._read(X, y, sample_weight, passed))
        return self

    def transform(self, X: Any, sensitive_features: Any = None) -> Any:
        """Return the outcomes to expect.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
        sensitive_features : array-like of shape (n_samples,) or (n_samples, d), or \
                None, default=None
            Group labels, if the constructor names no column of X.

        Returns
        -------
        ndarray or frame of shape (n_samples, n_scores) or (n_samples, K)
            One column for each column of scores, or for each objective.

        Raises
        ------
        ValueError
            If groups are given here but not to `fit`, or the other way round, and for a
            `reference` that is no group of the fit, or whose curve falls.

        Warns
        -----
        UserWarning
            It names the groups that `fit` has not seen, which get the calibration of
            all rows together.
        """
        return self._calibrated(X, sensitive_features)

    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        sensitive_features: Any = None,
        cluster: Any = None,
    ) -> Any:
        """Fit, and return the outcomes to expect in the rows of the fit.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or frame or array of shape (n_samples, K)
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weight of the row: a weight of 2 counts the row twice, as scikit-learn has
            it; with clusters a curve takes it as importance, which has no scale.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, d), or \
                None, default=None
            Group labels, if the constructor names no column of X.
        cluster : array-like of shape (n_samples,) or None, default=None
            Independent units, if the constructor names no column of X.

        Returns
        -------
        ndarray or frame of shape (n_samples, n_scores) or (n_samples, K)
        """
        self.fit(X, y, sample_weight, sensitive_features, cluster)
        return self.transform(X, sensitive_features)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the columns that `transform` returns.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns of X, if it had none.

        Returns
        -------
        ndarray of str
            The names of the scores, or of the objectives.
        """
        names = score_names(self, input_features)
        return np.array(getattr(self, "objectives_", names), dtype=object)

    def _check_options(self) -> None:
        check_choice(self.cluster_weight, "cluster_weight", CLUSTER_WEIGHTS)
        check_number(self.min_group_size, "min_group_size", 1, np.inf, integer=True)

    @abstractmethod
    def _fitted(self, rows: Any, log_odds: list[bool]) -> Any:
        """Return the calibration of rows; `log_odds`: scores that are in [0, 1]."""

    def _fit_rows(self, rows: ScoreRows) -> None:
        """Fit to validated rows."""
        check_outcomes(rows.y, self.calibrator)
        odds = [within_unit(score) for score in rows.x.T]
        self._fit_groups(rows, rows_by_group(rows), odds)

    def _calibrated(self, X: Any, sensitive_features: Any) -> Array:
        return self._mapped(X, sensitive_features, lambda fit, s: fit.predict(s))

    def _read(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        passed: dict[str, Any],
        reset: bool = True,
    ) -> ScoreRows:
        """Validate the arguments of `fit`; rows of weight 0 are left out."""
        columns = take_columns(self, X, passed, y=y, sample_weight=sample_weight)
        # Columns that are left out may be of any kind, which scikit-learn does not
        # take. Nor does it read several outcomes from the frames of every library.
        several, named = self._multi_output, bool(metadata_columns(self))
        if (named and y is not None) or (several and frame_columns(y) is not None):
            y = outcome_matrix(y) if several else as_numbers(y, "y")
        options = {"y": y, "reset": reset, "y_numeric": True, "multi_output": several}
        score, y = numeric_features(self, X, "scores", **options)
        outcome = np.asarray(y, dtype=np.float64).reshape(len(score), -1)
        groups, clusters, weight = columns_of_rows(len(score), sample_weight, **columns)
        labels, kept = columns["sensitive_features"], np.arange(len(score))
        if not reset:
            check_given_alike(labels, self._grouped)
        self._grouped = labels is not None
        rows = ScoreRows(outcome, score, groups, clusters, weight, kept)
        return rows.of_positive_weight()

    def _fit_groups(
        self, whole: Any, groups: Iterable[tuple[Hashable, Any]], log_odds: list[bool]
    ) -> None:
        """Fit the calibration of the whole and of each group that is large enough."""
        pooled, every = self._fitted(whole, log_odds), dict(groups)
        enough = self.min_group_size if self._grouped else np.inf
        alone = {g: rows for g, rows in every.items() if rows.n_clusters >= enough}
        calibrators = dict.fromkeys(every, pooled)
        calibrators |= self._of_groups(whole, alone, log_odds, pooled)
        # Only when all is fitted: if the fit fails, the old curves stay.
        self.groups_ = tuple(calibrators)
        self.pooled_calibrator_ = pooled
        self.calibrators_ = calibrators
        small = [label for label in every if label not in alone]
        if self._grouped and small:
            units = "rows" if whole.cluster is None else "clusters"
            warn_user(
                f"Groups with fewer than min_group_size={self.min_group_size} {units} "
                f"are calibrated like all rows together: {quoted(small)}.",
                UserWarning,
            )

    def _of_groups(
        self, whole: Any, groups: dict[Hashable, Any], log_odds: list[bool], pooled: Any
    ) -> dict[Hashable, Any]:
        """Return the calibrations of the groups that are large enough."""
        return {g: self._fitted(of_group, log_odds) for g, of_group in groups.items()}

    def _mapped(
        self, X: Any, sensitive_features: Any, function: Callable[[Any, Array], Array]
    ) -> Array:
        """Return a function of the group's calibration and each row's scores."""
        check_is_fitted(self, "calibrators_")
        labels = take_column(self, X, "sensitive_features", sensitive_features)
        check_given_alike(labels, self._grouped)
        score, pooled = numeric_features(self, X, "scores"), self.pooled_calibrator_
        fate = "are calibrated like all rows together"
        parts = fits_of_rows(len(score), labels, self.calibrators_, pooled, fate)
        rows, fits = zip(*parts, strict=True)
        values = [function(fit, score[of]) for fit, of in zip(fits, rows, strict=True)]
        out = np.empty((len(score), *values[0].shape[1:]))
        out[np.concatenate(rows)] = np.concatenate(values)
        return out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = self._multi_output
        return tags


def score_names(estimator: Any, input_features: Any) -> Array:
    """Return the names of the columns of X that are scores."""
    check_is_fitted(estimator)
    names: Array = names_of_features(estimator, input_features)
    return np.delete(names, estimator._others)


def rows_by_group(rows: ScoreRows) -> Iterator[tuple[Hashable, ScoreRows]]:
    """Yield the groups that have rows, with their rows."""
    groups = rows.groups.without_unused()
    for g, label in enumerate(groups.labels):
        yield label, rows.take(np.flatnonzero(groups.values == g))


def outcome_matrix(y: Any) -> Array:
    """Return outcomes as floats, shape (n, K)."""
    columns = frame_numbers(y, "y")
    if columns is None:
        array = np.asarray(y)
        if array.ndim < 2:
            return as_numbers(y, "y")[:, None]
        if array.ndim > 2 or not array.shape[1]:
            raise ValueError(
                "y must have one column of outcomes per objective; got an array of "
                f"shape {array.shape}."
            )
        columns = [as_numbers(column, "y") for column in array.T]
    if not columns:
        raise ValueError("y must have a column of outcomes; it has none.")
    return np.column_stack(columns)


def check_outcomes(outcome: Array, calibrator: Any) -> None:
    """Raise a ValueError for outcomes that a calibrator does not take."""
    check_magnitude(y=outcome)
    wrong = outcome[(outcome < 0) | (outcome > 1)]
    if calibrator == "platt" and wrong.size:
        raise ValueError(
            "y must be in [0, 1] for calibrator='platt'; got "
            f"{wrong[0]}. Other methods take any outcomes."
        )


def within_unit(values: Array) -> bool:
    """Return whether all values may be probabilities."""
    return bool(values.min() >= 0 and values.max() <= 1)
