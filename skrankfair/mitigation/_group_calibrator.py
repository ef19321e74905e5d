"""Scores of each group replaced by the outcomes to expect: predictive parity.

`GroupCalibrator` calibrates scores, and the two other estimators calibrate a model by
its out-of-fold scores.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._estimates.resampled import label_hashes
from .._inputs.groups import number_of, sort_labels
from .._inputs.score_rows import ScoreRows
from .._inputs.validation import Array, check_choice, check_number, once_each
from ..smoothing import NadarayaWatsonRegressor
from ..smoothing._regressor import Pooled, adds_up
from ._by_group import (
    CalibratesByGroup,
    check_outcomes,
    quoted,
    rows_by_group,
    within_unit,
)
from ._curves import (
    METHODS,
    Curve,
    CurveRows,
    binned,
    check_calibrator,
    fit_curve,
    link_of,
    rule_of,
    sums_suffice,
)
from ._shrinkage import N_FOLDS, Fit, FoldedRows, shrink
from ._wrapper import FitRows, ModelWrapper, ScoresByGroup, scores_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..display._calibration import GroupCalibratorDisplay


@dataclass(frozen=True)
class ScoreCurves:
    """The calibration of one group: a curve for each column of scores."""

    curves: tuple[Curve, ...]  # length d

    def predict(self, score: Any) -> Array:
        """Return the expected outcomes at the scores, shape (n,) or (n, d)."""
        return _by_column([curve.predict for curve in self.curves], score)

    def inverse(self, outcome: Array) -> Array:
        """Return the lowest scores with these outcomes, of the same shape."""
        return _by_column([curve.inverse for curve in self.curves], outcome)

    @property
    def increasing(self) -> bool:
        """Whether no curve falls anywhere."""
        return all(curve.increasing for curve in self.curves)


def _by_column(functions: Sequence[Callable[[Array], Array]], values: Any) -> Array:
    """Return a function of each column of the values, shape (n,) or (n, d)."""
    values = np.asarray(values, dtype=float)
    columns = values[:, None] if values.ndim == 1 else values
    out = [f(column) for f, column in zip(functions, columns.T, strict=True)]
    return np.column_stack(out).reshape(values.shape)


def _moved(score: Array, start: ScoreCurves | None, end: ScoreCurves | None) -> Array:
    """Return the scores of other curves with equal outcomes; None is for outcomes."""
    if start is end:
        return score
    outcome = score if start is None else start.predict(score)
    return outcome if end is None else end.inverse(outcome)


#: The largest sum of weights that counts units: beyond it one more is lost in rounding.
_MOST_UNITS = 1 / np.finfo(float).eps


@dataclass(frozen=True)
class ScoreSums:
    """Sums over rows of one group, batch by batch, to which its curves are fitted."""

    #: Length d: one for each column of scores, by score and by the fold of the cluster
    #: or, without clusters, the outcome.
    columns: tuple[Pooled, ...]
    n_clusters: int  # of rows, if there are no clusters
    cluster: Array | None  # shape (N_FOLDS,): units in each fold, if there are clusters
    square: float  # sum over rows of weight times squared outcome
    within_unit: bool  # whether all outcomes are in [0, 1]

    @classmethod
    def of(
        cls,
        rows: ScoreRows,
        cluster_weight: str,
        *,
        bins: bool = False,
        outcomes: bool = False,
    ) -> ScoreSums:
        """Return the sums over the rows of a batch, by score or by bins of scores.

        `outcomes` says whether they are by outcome too where there are clusters.
        """
        y, keys, units, hashes = rows.y[:, 0], [], None, np.empty(0, np.uint64)
        weight = np.ones(y.size) if rows.weight is None else rows.weight
        if rows.cluster is not None:
            hashes, cluster = label_hashes(rows.cluster_labels), rows.cluster.codes
            of_cluster = (hashes % N_FOLDS).astype(np.int64)
            folds = of_units = of_cluster[cluster]
            if cluster_weight == "cluster":
                weight, of_units = weight / np.bincount(cluster)[cluster], of_cluster
            units = np.bincount(of_units, minlength=N_FOLDS)
            keys.append(folds)
        if outcomes or units is None:
            keys.append(y)
        scores = [binned(score, weight) for score in rows.x.T] if bins else rows.x.T
        totals = np.stack([weight * y, weight])
        columns = tuple(
            Pooled.of(np.column_stack([score, *keys]), totals, hashes, cluster_weight)
            for score in scores
        )
        square, within = float(weight @ y**2), within_unit(rows.y)
        return cls(columns, rows.n_clusters, units, square, within)

    def __add__(self, other: ScoreSums) -> ScoreSums:
        """Return the sums over both batches, which share no cluster."""
        columns = zip(self.columns, other.columns, strict=True)
        return ScoreSums(
            tuple(a + b for a, b in columns),
            self.n_clusters + other.n_clusters,
            None if self.cluster is None else self.cluster + other.cluster,
            self.square + other.square,
            self.within_unit and other.within_unit,
        )

    def rows_of_columns(self) -> list[FoldedRows]:
        """Return the sums of each column as rows that curves are fitted to."""
        columns = []
        for pooled in self.columns:
            of_outcome, weight = pooled.sums
            total = weight.sum()
            options: dict[str, Any] = {"within_unit": self.within_unit}
            size = min(total, _MOST_UNITS)
            if self.cluster is not None:  # weights have no scale
                size = self.cluster.sum()
                options |= {"fold": pooled.features[:, 1], "n_units": self.cluster}
            rows = pooled.features[:, 0], of_outcome / weight, weight * (size / total)
            columns.append(FoldedRows(*rows, square=self.square / total, **options))
        return columns


def _adds_up(model: GroupCalibrator) -> bool:
    """Return True if sums by score are enough; raise an AttributeError if not."""
    if not isinstance(model.calibrator, str | NadarayaWatsonRegressor):
        raise AttributeError(
            f"partial_fit needs a calibrator that is one of {', '.join(METHODS)} or a "
            f"NadarayaWatsonRegressor; got {model.calibrator!r}."
        )
    return adds_up(rule_of(model.calibrator))


class GroupCalibrator(CalibratesByGroup):
    """Replace a score by the expected outcome at that score in its group.

    ``t(s, g) = f̂_g(s)`` is an estimate of ``E[Y | S = s, G = g]``. After it equal
    scores mean equal outcomes in all groups, up to its error, which is predictive
    parity; scores that were fair are less so by that error, so test them first, with
    `skrankfair.inference.predictive_parity_test` on new rows. X holds the column of
    scores (several columns are each calibrated on their own); columns of X named by
    `sensitive_features` or `cluster` are taken out of it first.

    Parameters
    ----------
    calibrator : {"nadaraya_watson", "isotonic", "platt", "binning"} or estimator, \
            default="nadaraya_watson"
        "nadaraya_watson": the kernel smoother at 400 scores (200 even in range, 200 in
        rank), linear between them and constant outside; needs neither a monotone curve
        nor a model, but many rows (§4.1). If scores lie beyond [0, 1], it smooths over
        their ranks where these predict held-out outcomes better by two standard errors,
        as they do for heavy tails. "isotonic": the non-decreasing curve with the least
        squared error, equal scores pooled, linear between them. "platt": a logistic
        curve of the score, or of its log-odds where all scores of the fit are in
        [0, 1], with Platt's smoothed outcomes; outcomes must be in [0, 1]. Scores of
        0 and 1 are taken to be half as far from there as the nearest other score.
        "binning": means of `n_bins` bins of equal mass. An estimator: any regressor or
        classifier (0 and 1) of one column, such as
        ``NadarayaWatsonRegressor(bandwidth=0.05)``, whose options a search may tune.
    sensitive_features : str, list of str, callable, True or None, default=None
        Where the groups come from: the name of a column of X, a list of names (the
        columns are crossed), or a function of X. True means that they must be passed as
        metadata. None means that they may be passed as metadata; all rows are one group
        if they are not.
    cluster : str, callable, True or None, default=None
        Where the independent units, such as users, come from, in the same way; only
        `fit` needs them.
    cluster_weight : {"cluster", "row"}, default="cluster"
        Whether every cluster has weight one in the curve of a group, or every row. With
        "row" a single user may dominate.
    reference : hashable or None, default=None
        A group whose scores do not change: those of every other group become the scores
        at which the reference has the same expected outcome, ``f̂_r(t) = f̂_g(s)``
        (§4). Its curve must not decrease, as with ``monotonic=True``. None gives the
        expected outcomes themselves.
    monotonic : bool, default=False
        Whether the curve is projected onto the nearest non-decreasing one, so that the
        order within a group is kept.
    shrinkage : {"auto", None}, default="auto"
        "auto": the curve of each group borrows strength from those of the others, more
        so the fewer data it has (see the notes). None: each group is fitted on its own.
    min_group_size : int, default=20
        A group with fewer clusters (or rows, without clusters) gets the calibration of
        all rows together, with a warning.
    n_bins : int, default=15
        The number of bins of "binning".

    Attributes
    ----------
    calibrators_ : dict
        The fitted curves by group; the ``predict(scores)`` of each calibrates scores of
        the group.
    pooled_calibrator_ : object
        The calibration of all rows, used for small groups and groups that `fit` has not
        seen.
    groups_ : tuple
        The labels seen in `fit`.
    n_features_in_ : int
        Number of columns of X, those of group and cluster included.
    feature_names_in_ : ndarray of str
        Their names, if X has names.

    See Also
    --------
    GroupCalibratedClassifier : Calibrates a classifier with out-of-fold scores.
    skrankfair.smoothing.NadarayaWatsonRegressor : The smoother.

    Notes
    -----
    The scores must not be those of the rows that the model was trained on, because
    there they are too good.

    With ``shrinkage="auto"`` the curve of a group is ``w f̂_g + (1 - w) m_g``, where
    ``f̂_g`` is fitted to its own rows. ``m_g`` is the curve of all rows with a shift and
    a slope per group, on the log-odds where all outcomes are in [0, 1]. The prior of
    both is Student's t with 2 degrees of freedom, which lets a group be unlike all
    others; its mean and covariance are the most likely ones (empirical Bayes). Where
    groups are crossed columns there are shifts and slopes of each column, and of the
    cell. The share is ``w = n / (n + κ)`` for n clusters (or rows); κ, at least 1, has
    the least squared error over all groups in three folds of held-out clusters, which
    also decides whether the curve of all rows is by `calibrator` or by "platt". So a
    group with few data is like the others, one with many has its own curve, and a group
    with a single outcome is not certain to have it. Folds depend on the labels of the
    clusters, or on scores and outcomes, and not on the order of rows.

    Each method makes the assumption stated above: isotonic regression fails where a
    curve falls and Platt's method where it is not logistic, and binning is biased
    within its bins. Without clusters a row of weight 2 is the row seen twice; with
    clusters weights are importance: a row counts its weight over the number of rows of
    its cluster, and the number of clusters stays the same. A factor common to all
    weights then changes nothing; a `cluster` of row numbers is for rows of such
    weights.

    References
    ----------
    DiCiccio, C., Hsu, B., Yu, Y., Nandy, P., Basu, K. (2023). "Detection and Mitigation
    of Algorithmic Bias via Predictive Parity". FAccT '23, §4 and appendix C.

    Platt, J. (1999). "Probabilistic outputs for support vector machines". Advances in
    Large Margin Classifiers.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from skrankfair.mitigation import GroupCalibrator
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"score": rng.uniform(size=4000)})
    >>> X["group"] = rng.choice(["a", "b"], size=4000)
    >>> fair = X["score"].where(X["group"] == "a", X["score"] ** 2)
    >>> y = rng.random(4000) < fair
    >>> calibrator = GroupCalibrator(sensitive_features="group").fit(X, y)
    >>> equal = pd.DataFrame({"score": [0.5, 0.5], "group": ["a", "b"]})
    >>> calibrator.transform(equal).round(1)
    array([[0.5],
           [0.3]])
    """

    # `fit` and `transform` are those of `CalibratesByGroup`, which asks `_fitted` for
    # the curves of some rows and `_of_groups` for those of the groups.

    #: All rows of the batches, and those of each group.
    _sums: tuple[ScoreSums, dict[Hashable, ScoreSums]] | None

    def __init__(
        self,
        calibrator: Any = "nadaraya_watson",
        *,
        sensitive_features: Any = None,
        cluster: Any = None,
        cluster_weight: str = "cluster",
        reference: Hashable | None = None,
        monotonic: bool = False,
        shrinkage: str | None = "auto",
        min_group_size: int = 20,
        n_bins: int = 15,
    ) -> None:
        self.calibrator = calibrator
        self.sensitive_features = sensitive_features
        self.cluster = cluster
        self.cluster_weight = cluster_weight
        self.reference = reference
        self.monotonic = monotonic
        self.shrinkage = shrinkage
        self.min_group_size = min_group_size
        self.n_bins = n_bins

    @available_if(_adds_up)
    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        sensitive_features: Any = None,
        cluster: Any = None,
    ) -> GroupCalibrator:
        """Add a batch of rows to those of the calls before.

        The curves are those of a fit to all rows at once. What is kept by group is a
        sum for each distinct score and outcome, or with clusters for each score and
        fold, and a hash of each cluster, whose rows must be in one batch. Scores that
        are rounded, of a few outcomes, therefore take little memory, however many rows
        there are. After `fit` it starts anew. With another estimator than
        `~skrankfair.smoothing.NadarayaWatsonRegressor`, or one whose bandwidth is
        chosen by cross-validation, there is no `partial_fit`.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
            Scores, with the columns of group and cluster that the constructor names.
        y : array-like of shape (n_samples,)
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
        GroupCalibrator

        Raises
        ------
        ValueError
            As `fit` does, for a cluster of two batches, for batches with and without
            clusters or with another `cluster_weight`, and for a bandwidth by a rule
            with clusters and ``cluster_weight="row"``, which sums do not tell.

        Warns
        -----
        UserWarning
            It names the groups with fewer than `min_group_size` clusters until now.
        """
        self._check_options()
        known = getattr(self, "_sums", None)
        passed = {"sensitive_features": sensitive_features, "cluster": cluster}
        rows = self._read(X, y, sample_weight, passed, reset=known is None)
        if not sums_suffice(self.calibrator, rows.cluster, self.cluster_weight):
            raise ValueError(
                "calibrator must have a bandwidth that is a number for partial_fit "
                "with clusters and cluster_weight='row', such as "
                "NadarayaWatsonRegressor(bandwidth=0.05); got "
                f"{rule_of(self.calibrator)!r}."
            )
        check_outcomes(rows.y, self.calibrator)
        whole = ScoreSums.of(rows, self.cluster_weight)
        sums = {g: ScoreSums.of(r, self.cluster_weight) for g, r in rows_by_group(rows)}
        if known is not None:
            whole = known[0] + whole
            for label, before in known[1].items():
                sums[label] = before + sums[label] if label in sums else before
        sums = {label: sums[label] for label in sort_labels(list(sums))}
        odds = [within_unit(column.features[:, 0]) for column in whole.columns]
        self._fit_groups(whole, sums.items(), odds)
        self._sums = whole, sums
        return self

    def inverse_transform(self, X: Any, sensitive_features: Any = None) -> Any:
        """Return the lowest scores that have these expected outcomes.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
            Expected outcomes in the place of scores, or scores of the reference.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, d), or \
                None, default=None
            Group labels, if the constructor names no column of X.

        Returns
        -------
        ndarray of shape (n_samples, n_scores)
            In the range of the scores of the fit.

        Raises
        ------
        ValueError
            If a curve falls somewhere; ``monotonic=True`` prevents that.
        """
        target = self._target()
        falling = [g for g, c in self.calibrators_.items() if not c.increasing]
        if falling or not self.pooled_calibrator_.increasing:
            raise ValueError(
                "inverse_transform must have curves that fall nowhere; that of "
                f"{quoted(falling) or 'all rows'} does. Fit with monotonic=True."
            )
        return self._mapped(
            X, sensitive_features, lambda fit, s: _moved(s, target, fit)
        )

    def _target(self) -> ScoreCurves | None:
        """Return the curves whose scores all groups get, if there is a reference."""
        check_is_fitted(self, "calibrators_")
        if self.reference is None:
            return None
        number_of(self.reference, self.groups_, "reference")
        target: ScoreCurves = self.calibrators_[self.reference]
        if not target.increasing:
            raise ValueError(
                "reference must have a curve that falls nowhere; that of "
                f"{self.reference!r} does. Fit with monotonic=True."
            )
        return target

    def _calibrated(self, X: Any, sensitive_features: Any) -> Array:
        target = self._target()
        return self._mapped(
            X, sensitive_features, lambda fit, s: _moved(s, fit, target)
        )

    def plot(
        self, *, column: int = 0, ax: Axes | None = None, **kwargs: Any
    ) -> GroupCalibratorDisplay:
        """Draw the curve of each group.

        Parameters
        ----------
        column : int, default=0
            Which column of the scores to draw.
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
        **kwargs : dict
            Passed to `GroupCalibratorDisplay.plot`.

        Returns
        -------
        GroupCalibratorDisplay
        """
        from ..display._calibration import GroupCalibratorDisplay

        return GroupCalibratorDisplay(self).plot(column=column, ax=ax, **kwargs)

    def _check_options(self) -> None:
        super()._check_options()
        check_calibrator(self.calibrator)
        check_choice(self.monotonic, "monotonic", (False, True))
        check_choice(self.shrinkage, "shrinkage", ("auto", None))
        check_number(self.n_bins, "n_bins", 1, np.inf, integer=True)

    def _fit_rows(self, rows: ScoreRows) -> None:
        super()._fit_rows(rows)
        self._sums = None

    def _fitted(self, rows: ScoreRows | ScoreSums, log_odds: list[bool]) -> ScoreCurves:
        if isinstance(rows, ScoreSums):
            columns: Sequence[CurveRows] = rows.rows_of_columns()
        else:
            given = rows.y[:, 0], rows.weight, rows.cluster_codes, self.cluster_weight
            columns = [CurveRows(score, *given) for score in rows.x.T]
        odds = zip(log_odds, columns, strict=True)
        curves = [self._fit_with(self.calibrator, of)(column) for of, column in odds]
        return ScoreCurves(tuple(curves))

    def _fit_with(self, calibrator: Any, log_odds: bool) -> Fit:
        """Return the function that fits curves of a score to rows."""
        # A "platt" curve that groups are shrunken to must not fall either.
        rising = self.monotonic or self.calibrator == "isotonic"
        options: dict[str, Any] = {"monotonic": rising, "n_bins": self.n_bins}
        return partial(fit_curve, calibrator, log_odds=log_odds, **options)

    def _of_groups(
        self,
        whole: Any,
        groups: dict[Hashable, Any],
        log_odds: list[bool],
        pooled: ScoreCurves,
    ) -> dict[Hashable, ScoreCurves]:
        """Return the curves of the groups, with what they borrow from the others."""
        alone = super()._of_groups(whole, groups, log_odds, pooled)
        if self.shrinkage is None or len(groups) < 2:
            return alone
        columns = []
        whole, *each = map(self._to_split, [whole, *groups.values()])
        for k, (of_all, odds) in enumerate(zip(whole, log_odds, strict=True)):
            calibrators = [self.calibrator]
            if of_all.within_unit and self.calibrator != "platt":
                calibrators.append("platt")
            fits = [self._fit_with(calibrator, odds) for calibrator in calibrators]
            of_groups = {g: rows[k] for g, rows in zip(groups, each, strict=True)}
            curves = [of_group.curves[k] for of_group in alone.values()]
            columns.append(shrink(of_all, of_groups, curves, pooled.curves[k], fits))
        shrunken = map(ScoreCurves, zip(*columns, strict=True))
        return dict(zip(groups, shrunken, strict=True))

    def _to_split(self, rows: ScoreRows | ScoreSums) -> list[FoldedRows]:
        """Return the sums of rows that tell how much a curve borrows."""
        if isinstance(rows, ScoreRows):
            known = isinstance(self.calibrator, str | NadarayaWatsonRegressor)
            # Other estimators get the outcomes, as a classifier takes no means of them.
            options = {"bins": known, "outcomes": not known}
            rows = ScoreSums.of(rows, self.cluster_weight, **options)
        return rows.rows_of_columns()


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
        self._new_calibrator()._check_options()
        check_choice(self.ensemble, "ensemble", (False, True))
        check_choice(self.drop_metadata_columns, "drop_metadata_columns", (False, True))

    def _new_calibrator(self) -> GroupCalibrator:
        if isinstance(self.calibrator, GroupCalibrator):
            calibrator = clone(self.calibrator)
            return calibrator.set_params(sensitive_features=None, cluster=None)
        # The score of a classifier rises with this outcome: its curve must not fall.
        rising = isinstance(self, ClassifierMixin)
        return GroupCalibrator(self.calibrator, monotonic=rising, cluster_weight="row")

    def _fit(self, rows: FitRows) -> None:
        """Fit models and calibrators."""
        folds = self._out_of_fold(rows)
        if not self.ensemble:
            folds = [self._joined(folds, rows)]
        calibrators = [self._new_calibrator() for _ in folds]
        with once_each():
            for calibrator, fold in zip(calibrators, folds, strict=True):
                # Its only column is the score; the labels are given with it, or not.
                calibrator.n_features_in_, calibrator._grouped = 1, self._grouped
                scores = rows.calibration(fold.rows, fold.scores, rows.outcome)
                calibrator._fit_rows(scores)
        self.estimators_ = [fold.estimator for fold in folds]
        self.group_calibrators_ = calibrators

    def _calibrated(self, X: Any, sensitive_features: Any) -> Array:
        """Return the expected outcomes, the mean of those of the models."""
        features, labels, metadata = self._predict_rows(X, sensitive_features)
        models = zip(self.estimators_, self.group_calibrators_, strict=True)
        total: Any = 0.0
        with once_each():
            for model, calibrator in models:
                scores = scores_of(model, features, metadata)
                total = total + calibrator._calibrated(scores[:, None], labels)[:, 0]
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
        As in `GroupCalibrator`, with non-decreasing curves, since the score of a
        classifier rises with the probability of the second class. A `GroupCalibrator`
        may be passed for its options, of which ``monotonic=False`` is the default
        there; its columns of group and cluster are replaced by those given here.
    sensitive_features : str, list of str, callable, True or None, default=None
        Where the groups come from: the name of a column of X, a list of names (the
        columns are crossed), or a function of X. True means that they must be passed as
        metadata. None means that they may be passed as metadata; all rows are one group
        if they are not.
    cluster : str, callable, True or None, default=None
        Where the independent units, such as users, come from, in the same way; only
        `fit` needs them. No unit is in both the training and the test part of a fold.
        All rows have the same weight in the calibration, as in the model; with a
        `GroupCalibrator` that is passed every unit has the same weight, unless it has
        ``cluster_weight="row"``.
    cv : int, splitter, iterable or None, default=None
        How to split into folds. None means 5 folds; an integer is the number of folds,
        of whole clusters, shuffled (always in the same way), each with its share of
        every group and class. A splitter gets the clusters as ``groups``, and splits
        may be given as numbers of rows or masks. Without clusters the scores that
        several folds give to one row are a cluster.
    ensemble : bool, default=False
        False fits one calibrator to all out-of-fold scores, for the model trained on
        all rows; this is the default because groups are small. True fits a model and a
        calibrator for each fold and averages their probabilities.
    drop_metadata_columns : bool, default=False
        Whether the columns that the constructor names are hidden from the model, which
        otherwise gets all columns of X.
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
        `fit` needs them. No unit is in both the training and the test part of a fold.
        All rows have the same weight in the calibration, as in the model; with a
        `GroupCalibrator` that is passed every unit has the same weight, unless it has
        ``cluster_weight="row"``.
    cv : int, splitter, iterable or None, default=None
        How to split into folds. None means 5 folds; an integer is the number of folds,
        of whole clusters, shuffled (always in the same way), each with its share of
        every group. A splitter gets the clusters as ``groups``, and splits may be given
        as numbers of rows or masks. Without clusters the scores that several folds give
        to one row are a cluster.
    ensemble : bool, default=False
        False fits one calibrator to all out-of-fold predictions, for the model trained
        on all rows. True fits a model and a calibrator for each fold and averages their
        predictions.
    drop_metadata_columns : bool, default=False
        Whether the columns that the constructor names are hidden from the model, which
        otherwise gets all columns of X.
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
