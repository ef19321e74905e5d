"""Models whose scores are calibrated by group, with out-of-fold scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._inputs.validation import Array, check_choice
from ._curves import check_calibrator, link_of
from ._group_calibrator import GroupCalibrator
from ._wrapper import FitRows, ModelWrapper, ScoresByGroup, joined, once_each, scores_of


def _decides(model: _GroupCalibrated) -> bool:
    """Return whether the model, or the first of the fitted ones, has decisions."""
    models = getattr(model, "estimators_", [model.estimator])
    return hasattr(models[0], "decision_function")


class _GroupCalibrated(ModelWrapper):
    """Base of the classifier and of the regressor."""

    def __init__(
        self,
        estimator: Any,
        *,
        calibrator: Any = "nadaraya_watson",
        sensitive_features: Any = None,
        cluster: Any = None,
        cv: Any = None,
        ensemble: bool = False,
        drop_metadata_columns: bool = False,
        n_jobs: Any = None,
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.sensitive_features = sensitive_features
        self.cluster = cluster
        self.cv = cv
        self.ensemble = ensemble
        self.drop_metadata_columns = drop_metadata_columns
        self.n_jobs = n_jobs

    def _check_options(self) -> None:
        if not isinstance(self.calibrator, GroupCalibrator):
            check_calibrator(self.calibrator)
        check_choice(self.ensemble, "ensemble", (False, True))
        check_choice(self.drop_metadata_columns, "drop_metadata_columns", (False, True))

    def _new_calibrator(self) -> GroupCalibrator:
        if isinstance(self.calibrator, GroupCalibrator):
            calibrator = clone(self.calibrator)
            return calibrator.set_params(sensitive_features=None, cluster=None)
        # A probability is one of the same outcome, which it does not turn around.
        monotonic = isinstance(self, ClassifierMixin)
        return GroupCalibrator(self.calibrator, monotonic=monotonic)

    def _fit(self, rows: FitRows) -> None:
        """Fit models and calibrators."""
        outcome = rows.y
        if isinstance(self, ClassifierMixin):
            outcome = (rows.y == self.classes_[1]).astype(float)
        folds = self._out_of_fold(rows)
        if self.ensemble:
            models = [fold.estimator for fold in folds]
            scored = [(fold.rows, fold.scores) for fold in folds]
        else:
            models, scored = [self._fit_model(rows)], [joined(folds)]
        with once_each():
            calibrators = [
                self._new_calibrator()._fit_scores(
                    rows.calibration(chosen, scores, outcome[chosen]),
                    grouped=self._grouped,
                )
                for chosen, scores in scored
            ]
        self.estimators_, self.group_calibrators_ = models, calibrators

    def _calibrated(self, X: Any, sensitive_features: Any) -> Array:
        """Return the expected outcomes, the mean of those of the models."""
        check_is_fitted(self)
        features, labels, metadata = self._predict_rows(X, sensitive_features)
        total = 0.0
        with once_each():
            for model, calibrator in zip(
                self.estimators_, self.group_calibrators_, strict=True
            ):
                scores = scores_of(model, features, metadata)
                total = total + calibrator.transform(scores[:, None], labels)[:, 0]
        return np.asarray(total) / len(self.estimators_)


class GroupCalibratedClassifier(ScoresByGroup, ClassifierMixin, _GroupCalibrated):
    """A classifier whose probabilities mean the same in every group.

    A `GroupCalibrator` is fitted to scores of rows that the model has not seen: the
    decision function, or else the probability of the second class, of models trained on
    the other folds. After it predictive parity holds: among rows with the same
    probability, the share of positives is that probability in each group.

    Parameters
    ----------
    estimator : classifier
        For two classes, with `decision_function` or `predict_proba`. In a
        `sklearn.frozen.FrozenEstimator` it is not fitted again; the rows of `fit` must
        then be new to it.
    calibrator : {"nadaraya_watson", "isotonic", "platt", "binning"}, estimator or \
            GroupCalibrator, default="nadaraya_watson"
        As in `GroupCalibrator`, with curves that fall nowhere, since the score is one
        of the same outcome. A `GroupCalibrator` may be passed for its options, of which
        ``monotonic=False`` is the default there; its columns of group and cluster are
        replaced by those given here.
    sensitive_features : str, list of str, callable, True or None, default=None
        Where the groups come from: the name of a column of X, a list of names (the
        columns are crossed), or a function of X. True means that they must be passed as
        metadata. None means that they may be passed as metadata; all rows are one group
        if they are not.
    cluster : str, callable, True or None, default=None
        Where the independent units, such as users, come from, in the same way; only
        `fit` needs them. No unit is in both the training and the test part of a fold,
        and all units have the same weight.
    cv : int, splitter, iterable or None, default=None
        How to split into folds. None means 5 folds; an integer means so many folds of
        whole clusters, shuffled (always in the same way), each with its share of every
        group and class. A splitter gets the clusters as ``groups``, and splits may be
        given as numbers of rows or masks.
    ensemble : bool, default=False
        False fits one calibrator to all out-of-fold scores, for the model trained on
        all rows; this is the default because groups are small. True fits a model and a
        calibrator for each fold and averages their probabilities.
    drop_metadata_columns : bool, default=False
        Whether the columns that the constructor names are hidden from the model, which
        otherwise gets X as it is.
    n_jobs : int or None, default=None
        Number of folds that are fitted at a time, as in joblib.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    estimators_ : list of classifier
        One, or one per fold.
    group_calibrators_ : list of GroupCalibrator
        One for each estimator; ``group_calibrators_[0].plot()`` shows the curves of the
        groups.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Their names, if X has names.

    See Also
    --------
    GroupCalibrator : The calibration itself, for scores.
    GroupCalibratedRegressor : The same for regressors.
    sklearn.calibration.CalibratedClassifierCV : Calibrates all rows together.

    Notes
    -----
    ``sample_weight`` weighs rows in the model, if it takes weights, and in the
    calibration.

    References
    ----------
    DiCiccio, C., Hsu, B., Yu, Y., Nandy, P., Basu, K. (2023). "Detection and Mitigation
    of Algorithmic Bias via Predictive Parity". FAccT '23, §4.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skrankfair.mitigation import GroupCalibratedClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"x": rng.normal(size=4000)})
    >>> X["b"] = rng.integers(0, 2, size=4000)
    >>> y = X["x"] + rng.logistic(size=4000) > X["b"]
    >>> model = GroupCalibratedClassifier(
    ...     LogisticRegression(), sensitive_features="b", drop_metadata_columns=True
    ... ).fit(X, y)
    >>> equal = pd.DataFrame({"x": [0.0, 0.0], "b": [0, 1]})
    >>> model.predict_proba(equal)[:, 1].round(1)
    array([0.5, 0.3])
    """

    def predict_proba(self, X: Any, sensitive_features: Any = None) -> Array:
        """Return the calibrated probabilities.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
        sensitive_features : array-like of shape (n_samples,) or (n_samples, d), or \
                None, default=None
            Group labels, if the constructor names no column of X.

        Returns
        -------
        ndarray of shape (n_samples, 2)
        """
        positive = np.clip(self._calibrated(X, sensitive_features), 0, 1)
        return np.column_stack([1 - positive, positive])

    @available_if(_decides)
    def decision_function(self, X: Any, sensitive_features: Any = None) -> Array:
        """Return the log-odds of the calibrated probabilities.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
        sensitive_features : array-like of shape (n_samples,) or (n_samples, d), or \
                None, default=None
            Group labels, if the constructor names no column of X.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return link_of(self.predict_proba(X, sensitive_features)[:, 1])

    def predict(self, X: Any, sensitive_features: Any = None) -> Array:
        """Return the class whose calibrated probability is above one half.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
        sensitive_features : array-like of shape (n_samples,) or (n_samples, d), or \
                None, default=None
            Group labels, if the constructor names no column of X.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        positive = self.predict_proba(X, sensitive_features)[:, 1] > 0.5
        return self.classes_[positive.astype(int)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class GroupCalibratedRegressor(ScoresByGroup, RegressorMixin, _GroupCalibrated):
    """A regressor whose predictions mean the same in every group.

    A `GroupCalibrator` is fitted to predictions of rows that the model has not seen, so
    that among rows with the same prediction the mean outcome is that prediction in each
    group.

    Parameters
    ----------
    estimator : regressor
        In a `sklearn.frozen.FrozenEstimator` it is not fitted again; the rows of `fit`
        must then be new to it.
    calibrator : {"nadaraya_watson", "isotonic", "platt", "binning"}, estimator or \
            GroupCalibrator, default="nadaraya_watson"
        As in `GroupCalibrator`. A `GroupCalibrator` may be passed for its other
        options; its columns of group and cluster are replaced by those given here.
    sensitive_features : str, list of str, callable, True or None, default=None
        Where the groups come from: the name of a column of X, a list of names (the
        columns are crossed), or a function of X. True means that they must be passed as
        metadata. None means that they may be passed as metadata; all rows are one group
        if they are not.
    cluster : str, callable, True or None, default=None
        Where the independent units, such as users, come from, in the same way; only
        `fit` needs them. No unit is in both the training and the test part of a fold,
        and all units have the same weight.
    cv : int, splitter, iterable or None, default=None
        How to split into folds. None means 5 folds; an integer means so many folds of
        whole clusters, shuffled (always in the same way), each with its share of every
        group. A splitter gets the clusters as ``groups``, and splits may be given
        as numbers of rows or masks.
    ensemble : bool, default=False
        False fits one calibrator to all out-of-fold predictions, for the model trained
        on all rows. True fits a model and a calibrator for each fold and averages their
        predictions.
    drop_metadata_columns : bool, default=False
        Whether the columns that the constructor names are hidden from the model, which
        otherwise gets X as it is.
    n_jobs : int or None, default=None
        Number of folds that are fitted at a time, as in joblib.

    Attributes
    ----------
    estimators_ : list of regressor
        One, or one per fold.
    group_calibrators_ : list of GroupCalibrator
        One for each estimator; ``group_calibrators_[0].plot()`` shows the curves of the
        groups.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Their names, if X has names.

    See Also
    --------
    GroupCalibrator : The calibration itself, for scores.
    GroupCalibratedClassifier : The same for classifiers.

    References
    ----------
    DiCiccio, C., Hsu, B., Yu, Y., Nandy, P., Basu, K. (2023). "Detection and Mitigation
    of Algorithmic Bias via Predictive Parity". FAccT '23, §4.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from sklearn.linear_model import LinearRegression
    >>> from skrankfair.mitigation import GroupCalibratedRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"x": rng.normal(size=4000)})
    >>> X["b"] = rng.integers(0, 2, size=4000)
    >>> y = X["x"] - 2 * X["b"] + rng.normal(size=4000)
    >>> model = GroupCalibratedRegressor(
    ...     LinearRegression(), sensitive_features="b", drop_metadata_columns=True
    ... ).fit(X, y)
    >>> equal = pd.DataFrame({"x": [0.0, 0.0], "b": [0, 1]})
    >>> model.predict(equal).round() + 0.0
    array([ 0., -2.])
    """

    def predict(self, X: Any, sensitive_features: Any = None) -> Array:
        """Return the calibrated predictions.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
        sensitive_features : array-like of shape (n_samples,) or (n_samples, d), or \
                None, default=None
            Group labels, if the constructor names no column of X.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._calibrated(X, sensitive_features)
