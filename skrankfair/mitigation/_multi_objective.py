"""Several scores replaced at once by the outcomes to expect of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.interpolate import RegularGridInterpolator
from scipy.special import expit
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyRegressor
from sklearn.metrics import r2_score
from sklearn.utils import get_tags

from .._estimates import formatting as fmt
from .._estimates.estimates import correct
from .._inputs.by_name import numeric_features, take_columns
from .._inputs.groups import frame_columns
from .._inputs.score_rows import ScoreRows
from .._inputs.validation import (
    Array,
    as_numbers,
    as_weights,
    check_aligned,
    unique_rows,
)
from ..inference import compare, predictive_parity_test
from ..inference._predictive_parity import PredictiveParityTest
from ..metrics import GroupEstimates, mean_squared_error
from ..smoothing import NadarayaWatsonRegressor
from ._by_group import CalibratesByGroup, outcome_matrix, score_names
from ._curves import (
    CurveRows,
    binned,
    check_calibrator,
    estimator_response,
    fit_model,
    fit_platt,
    half_step,
    knots_of,
    link_of,
    sums_suffice,
)

if TYPE_CHECKING:
    from ..display._mitigation import BeforeAfterDisplay

COMPOSITE = "composite"


@dataclass(frozen=True, eq=False, repr=False)
class ObjectiveParity:
    """Tests of predictive parity by objective, before and after calibration.

    Made by `MultiObjectiveCalibrator.audit_objectives`; "composite" is the weighted sum
    of the objectives.

    Attributes
    ----------
    weights : dict of float
        Weights of the objectives in the composite.
    after : dict of PredictiveParityTest
        Tests of the calibrated scores, by objective.
    before : dict of PredictiveParityTest
        Tests of the original scores; empty if there is not one score for each
        objective.
    error_change : dict of GroupEstimates
        Paired change in mean squared error by objective, negative if the calibrated
        scores are better; empty if `before` is.
    error : dict of GroupEstimates
        Mean squared error of the calibrated scores, by objective.
    """

    weights: Mapping[str, float]
    after: Mapping[str, PredictiveParityTest]
    before: Mapping[str, PredictiveParityTest]
    error_change: Mapping[str, GroupEstimates]
    error: Mapping[str, GroupEstimates]

    def to_frame(self, confidence_level: float = 0.95) -> pd.DataFrame:
        """Return one row per objective, and one for the composite.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Confidence level of the intervals. They are those of the change in mean
            squared error.

        Returns
        -------
        DataFrame
            Indexed by objective: weight, pvalue_before, pvalue_after, largest_before
            and largest_after (the largest difference between groups on the grid),
            mean_squared_error, mean_squared_error_change, ci_low, ci_high.
        """
        columns: dict[str, Mapping[str, float]] = {"weight": self.weights}
        for name, number in (("pvalue", "pvalue"), ("largest", "largest_difference")):
            for side, tests in (("before", self.before), ("after", self.after)):
                values = {n: float(getattr(test, number)) for n, test in tests.items()}
                columns[f"{name}_{side}"] = values
        for name, means in (("", self.error), ("_change", self.error_change)):
            values = {n: float(mean.estimate[0]) for n, mean in means.items()}
            columns[f"mean_squared_error{name}"] = values
        changes = self.error_change.items()
        ends = {n: c.confidence_interval(confidence_level) for n, c in changes}
        for name, end in (("ci_low", "low"), ("ci_high", "high")):
            columns[name] = {n: getattr(ci, end)[0] for n, ci in ends.items()}
        frame = pd.DataFrame(columns, index=list(self.after), dtype=float)
        return frame.rename_axis("objective")

    def plot(self, ax: Any = None, **kwargs: Any) -> BeforeAfterDisplay:
        """Draw the largest difference between groups, before and after.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None creates a new figure.
        **kwargs : dict
            Passed to `BeforeAfterDisplay.plot`.

        Returns
        -------
        BeforeAfterDisplay
        """
        from ..display._mitigation import BeforeAfterDisplay

        frame = self.to_frame()
        display = BeforeAfterDisplay(
            list(frame.index),
            frame["largest_before"],
            frame["largest_after"],
            pvalue_before=frame["pvalue_before"],
            pvalue_after=frame["pvalue_after"],
            name="largest difference of outcomes at equal scores",
        )
        return display.plot(ax=ax, **kwargs)

    def summary(self) -> str:
        """Return the objectives that fail the test, before and after, in words.

        Those of one side are tested at 5% together, by Holm's correction.

        Returns
        -------
        str
        """
        sentences = []
        for when, tests in (("before", self.before), ("after", self.after)):
            pvalues = correct(np.array([t.pvalue for t in tests.values()]), "holm")
            named = zip(tests, pvalues, strict=True)
            failing = [fmt.label(n) for n, p in named if p < 0.05]
            where = ", ".join(failing) or "shown for none of the objectives"
            if tests:
                sentences.append(f"Unequal outcomes at equal scores {when}: {where}.")
        return " ".join(sentences)

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        header = ["objective", "largest gap", "p", "error", "change", "95% interval"]
        rows, sides = [], ("before", "after")
        for name, row in self.to_frame().iterrows():
            gap = [fmt.number(row[f"largest_{side}"], 3) for side in sides]
            p = [fmt.pvalue(row[f"pvalue_{side}"]) for side in sides]
            errors = row[["mean_squared_error", "mean_squared_error_change"]]
            cells = [fmt.label(name), " → ".join(gap), " → ".join(p)]
            cells += [fmt.number(error, 3) for error in errors]
            rows.append([*cells, fmt.interval(row["ci_low"], row["ci_high"], 3)])
        return header, rows

    def __repr__(self) -> str:
        """Return a table, one row per objective, and the summary."""
        return (
            f"Predictive parity of {len(self.weights)} objectives and their composite\n"
            f"{fmt.text_table(*self._cells())}\n{self.summary()}"
        )

    def _repr_html_(self) -> str:
        return f"{fmt.html_table(*self._cells())}<p>{escape(self.summary())}</p>"


# More rows than this are smoothed on a grid, with so many scores per column.
_EXACT_ROWS = 2000
_GRID = {1: 400, 2: 100, 3: 40}


@dataclass(frozen=True)
class Logistic:
    """``σ(intercept + slopes · s)``, of scores or of their log-odds."""

    intercept: Array  # shape (K,)
    slopes: Array  # shape (K, d)
    ends: Array  # shape (d,): as `link_of` has them

    def predict(self, score: Array) -> Array:
        return expit(self.intercept + link_of(score, self.ends) @ self.slopes.T)


@dataclass(frozen=True)
class Models:
    """Fitted scikit-learn models: one of all outcomes, or one of each."""

    estimators: tuple[Any, ...]

    def predict(self, score: Array) -> Array:
        outcomes = [estimator_response(model, score) for model in self.estimators]
        return np.column_stack(outcomes)


@dataclass(frozen=True)
class Grid:
    """Linear between the nodes of a grid, constant outside of it."""

    axes: tuple[Array, ...]  # scores of each column, increasing
    values: Array  # shape (k_1, ..., k_d, K)

    def predict(self, score: Array) -> Array:
        low = [axis[0] for axis in self.axes]
        high = [axis[-1] for axis in self.axes]
        interpolated = RegularGridInterpolator(self.axes, self.values)
        return interpolated(np.clip(score, low, high))


#: The expected outcomes as a function of the scores: ``predict(score)`` maps shape
#: (n, d) to (n, K).
Surface = Logistic | Models | Grid


def _in_bins(rows: CurveRows, n_bins: int) -> CurveRows:
    """Return the sums of rows by bins of each of their scores."""
    bins = [binned(column, rows.share, n_bins) for column in rows.score.T]
    score, cell = unique_rows(np.column_stack(bins))
    weight = np.bincount(cell, rows.share)
    totals = [np.bincount(cell, rows.share * y) for y in rows.outcome.T]
    outcome = np.column_stack(totals) / weight[:, None]
    return CurveRows(score, outcome, weight, None, rows.cluster_weight)


def fit_surface(calibrator: Any, rows: CurveRows, log_odds: list[bool]) -> Surface:
    """Return the expected outcomes as a function of all scores.

    Scores have shape (n, d), outcomes (n, K). `log_odds` says for "platt" which of the
    d scores are probabilities.
    """
    score, outcome = rows.score, rows.outcome
    if calibrator == "platt":
        columns = zip(score.T, log_odds, strict=True)
        ends = np.array([half_step(s) if odds else np.nan for s, odds in columns])
        links = link_of(score, ends)
        fits = [fit_platt(links, y, rows.share) for y in outcome.T]
        levels, slopes = map(np.array, zip(*fits, strict=True))
        return Logistic(levels, slopes, ends)
    model = NadarayaWatsonRegressor() if isinstance(calibrator, str) else calibrator
    smooth = isinstance(model, NadarayaWatsonRegressor) and model.kernel == "gaussian"
    n_each = _GRID.get(score.shape[1]) if smooth and len(score) > _EXACT_ROWS else None
    adds_up = sums_suffice(calibrator, rows.cluster, rows.cluster_weight)
    if n_each and adds_up and score.shape[1] < 3:  # bins of three have a row each
        # Several bins between two nodes change 100,000 rows' outcomes by 1e-4.
        rows = _in_bins(rows, 4 * n_each)
    several = get_tags(model).target_tags.multi_output and not is_classifier(model)
    together = several and rows.outcome.shape[1] > 1
    fitted = []
    for y in [rows.outcome] if together else rows.outcome.T:
        constant = is_classifier(model) and (y == y[0]).all()
        one = DummyRegressor() if constant else clone(model)
        fit_model(one, replace(rows, outcome=y))
        fitted.append(one)
    if n_each:
        axes = tuple(knots_of(x, rows.share, n_each // 2) for x in rows.score.T)
        if min(axis.size for axis in axes) > 1:
            values = [one.predict_grid(axes) for one in fitted]
            return Grid(axes, np.stack(values, axis=-1))
    return Models(tuple(fitted))


class MultiObjectiveCalibrator(CalibratesByGroup):
    """Replace several scores by the outcomes expected given all of them and the group.

    ``S̃_k = E[Y_k | S_1, ..., S_K, G]``: after it equal scores mean equal outcomes in
    all groups, up to its error, for each objective and for the composite ``Σ_k w_k
    S̃_k`` with any weights (Theorem 2). Scores calibrated one by one do not promise
    that, and scores that were fair are less so by that error: test them first. X holds
    the columns of scores and y the columns of outcomes; columns of X named by
    `sensitive_features` or `cluster` are taken out of X first.

    Parameters
    ----------
    calibrator : {"nadaraya_watson", "platt"} or estimator, default="nadaraya_watson"
        "nadaraya_watson": the kernel smoother, its kernel a product over the scores; of
        a group with more than 2000 rows at the nodes of a grid, linear between them,
        for up to three scores. It assumes nothing but smooth outcomes, and needs many
        rows for each further score. "platt": a logistic regression of each outcome, in
        [0, 1], on all scores, or on their log-odds where all scores of the fit are in
        [0, 1]. An estimator: any regressor of several outcomes; one that takes a
        single outcome, and a classifier (0 and 1), is fitted to each outcome.
    weights : array-like of shape (K,), dict or None, default=None
        Weights of the objectives in the composite, in their order or by name. None
        gives each objective weight 1. They may be set after `fit`, which does not use
        them.
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
    min_group_size : int, default=20
        A group with fewer clusters (or rows, without clusters) gets the calibration of
        all rows together, with a warning.

    Attributes
    ----------
    objectives_ : list of str
        Names of the outcomes: those of the columns of y, or of the scores where there
        are as many, or "objective0" and so on.
    calibrators_ : dict
        The fitted functions by group; the ``predict(scores)`` of each maps scores of
        the group, shape (n, d), to calibrated scores, shape (n, K).
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
    GroupCalibrator : For one score, or for several scores each on its own.

    Notes
    -----
    Of all functions of the scores and the group, the conditional mean has the least
    squared error, so with enough rows each objective is predicted at least as well as
    by its own score calibrated alone. It gains where outcomes depend on several scores:
    in a simulation of 500 and 6,000 rows the squared error of a sum on new rows fell
    from 0.373 to 0.360 and from 0.369 to 0.347 ("platt": 0.348 and 0.344). It does not
    where a score says all that the others say: on MovieLens, with scores of the same
    features and 13 genres, the error of liked plus loved rose from 0.398 to 0.406, and
    with "platt" from 0.397 to 0.399. `audit_objectives` measures it on new rows.

    Small groups borrow nothing from the others here, unlike in `GroupCalibrator`. Of
    two objectives and a group like the other, which had 1,000 rows, the mean squared
    error of its probabilities was 0.049, 0.024 and 0.012 with 25, 60 and 150 rows
    ("platt": 0.020, 0.009 and 0.004), and 0.003 (0.0005) by the calibration of all
    rows. Where its log-odds differed by a standard deviation of 0.5, its own
    calibration was better from between 150 and 400 rows on ("platt": 60 to 150), which
    `min_group_size` should be near.

    The scores must not be those of the rows that the models were trained with.

    References
    ----------
    DiCiccio, C., Hsu, B., Yu, Y., Nandy, P., Basu, K. (2023). "Detection and Mitigation
    of Algorithmic Bias via Predictive Parity". FAccT '23, §5, Theorem 2, appendix B.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from sklearn.linear_model import LinearRegression
    >>> from skrankfair.mitigation import MultiObjectiveCalibrator
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame(rng.normal(size=(4000, 2)), columns=["like", "comment"])
    >>> noise = rng.normal(size=4000)
    >>> y = pd.DataFrame({"like": X["like"] + X["comment"]})
    >>> y["comment"] = X["comment"] + noise
    >>> model = MultiObjectiveCalibrator(LinearRegression()).fit(X, y)
    >>> scores = pd.DataFrame({"like": [1.0, 0.0], "comment": [0.0, 1.0]})
    >>> model.predict(scores).round()  # like + 2 comment
    array([1., 2.])
    >>> model.set_params(weights={"like": 1, "comment": 3}).predict(scores).round()
    array([1., 4.])
    """

    def __init__(
        self,
        calibrator: Any = "nadaraya_watson",
        weights: Any = None,
        *,
        sensitive_features: Any = None,
        cluster: Any = None,
        cluster_weight: str = "cluster",
        min_group_size: int = 20,
    ) -> None:
        self.calibrator = calibrator
        self.weights = weights
        self.sensitive_features = sensitive_features
        self.cluster = cluster
        self.cluster_weight = cluster_weight
        self.min_group_size = min_group_size

    _multi_output = True

    def _check_options(self) -> None:
        check_calibrator(self.calibrator, ("nadaraya_watson", "platt"))
        super()._check_options()

    def _read(self, X: Any, y: Any, *args: Any, **kwargs: Any) -> ScoreRows:
        """Validate the arguments of `fit`, and name the objectives."""
        rows = super()._read(X, y, *args, **kwargs)
        names: list[Any] = [str(name) for name in score_names(self, None)]
        if (columns := frame_columns(y)) is not None:
            names = columns[1]
        elif len(names) != rows.y.shape[1]:
            names = [f"objective{k}" for k in range(rows.y.shape[1])]
        if COMPOSITE in names:
            raise ValueError(
                f"y must not have an objective named {COMPOSITE!r}, which is their "
                f"weighted sum; got {names}."
            )
        self.objectives_ = names
        self._weights()
        return rows

    def _fitted(self, rows: ScoreRows, log_odds: list[bool]) -> Surface:
        columns = rows.x, rows.y, rows.weight, rows.cluster_codes
        of_curve = CurveRows(*columns, self.cluster_weight)
        return fit_surface(self.calibrator, of_curve, log_odds)

    def _weights(self, weights: Any = None) -> Array:
        """Return the weights of the objectives, in their order."""
        weights = self.weights if weights is None else weights
        names = self.objectives_
        if weights is None:
            return np.ones(len(names))
        rule = f"weights must have one weight for each objective {names}; got"
        if isinstance(weights, Mapping):
            if set(weights) != set(names):
                raise ValueError(f"{rule} {list(weights)}.")
            weights = [weights[name] for name in names]
        values = as_numbers(weights, "weights")
        if values.size != len(names):
            raise ValueError(f"{rule} {values.size}.")
        return values

    def predict(self, X: Any, sensitive_features: Any = None) -> Array:
        """Return the composite: the weighted sum of the calibrated scores.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
        sensitive_features : array-like of shape (n_samples,) or (n_samples, d), or \
                None, default=None
            Group labels, if the constructor names no column of X.

        Returns
        -------
        ndarray of shape (n_samples,)

        Raises
        ------
        ValueError
            If the weights do not fit the objectives.
        """
        return self._calibrated(X, sensitive_features) @ self._weights()

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, sensitive_features: Any = None
    ) -> float:
        """Return R² of the composite as a prediction of the composite outcome.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
        y : frame or array of shape (n_samples, K) or (n_samples,)
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
        outcome = self._outcomes(y) @ self._weights()
        weight = None if sample_weight is None else as_weights(sample_weight)
        return float(r2_score(outcome, predicted, sample_weight=weight))

    def audit_objectives(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        cluster: Any = None,
        sample_weight: Any = None,
        weights: Any = None,
        **options: Any,
    ) -> ObjectiveParity:
        """Test predictive parity of each objective and of the composite.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
            Rows that are new to the calibration.
        y : frame or array of shape (n_samples, K) or (n_samples,)
        sensitive_features : array-like of shape (n_samples,) or (n_samples, d), or \
                None, default=None
            Group labels, if the constructor names no column of X.
        cluster : array-like of shape (n_samples,) or None, default=None
            Independent units, if the constructor names no column of X.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Importance of the row: a common factor changes nothing, and 0 leaves it out.
        weights : array-like of shape (K,), dict or None, default=None
            Weights of the composite. None takes those of the constructor.
        **options : dict
            Passed to `skrankfair.inference.predictive_parity_test`.

        Returns
        -------
        ObjectiveParity
            The tests of the calibrated scores and, where there is a score for each
            objective, of the scores as they came, with the squared errors of both.

        Raises
        ------
        ValueError
            Without groups, for weights that do not fit the objectives, or columns of
            different lengths.
        """
        calibrated = self._calibrated(X, sensitive_features)
        passed = {"sensitive_features": sensitive_features, "cluster": cluster}
        labels, units = take_columns(self, X, passed, y=y).values()
        if labels is None:
            raise ValueError(
                "sensitive_features must be given to audit the objectives; the "
                "calibrator was fitted without groups."
            )
        score, outcome = numeric_features(self, X, "scores"), self._outcomes(y)
        weights, names = self._weights(weights), [*self.objectives_, COMPOSITE]
        rows = {"cluster": units, "sample_weight": sample_weight}
        options |= {"sensitive_features": labels, **rows}

        def audited(scores: Array) -> tuple[dict[str, Any], dict[str, Any]]:
            tests, errors = {}, {}
            both = [np.column_stack([v, v @ weights]).T for v in (outcome, scores)]
            for name, *columns in zip(names, *both, strict=True):
                tests[name] = predictive_parity_test(*columns, **options)
                errors[name] = mean_squared_error(*columns, **rows)
            return tests, errors

        after, error = audited(calibrated)
        before, raw = audited(score) if score.shape == calibrated.shape else ({}, {})
        changes = {name: compare(error[name], raw[name]) for name in raw}
        weight_of = dict(zip(self.objectives_, weights.tolist(), strict=True))
        return ObjectiveParity(weight_of, after, before, changes, error)

    def _outcomes(self, y: Any) -> Array:
        outcome, (_, names) = outcome_matrix(y), frame_columns(y) or ([], [])
        if len({*names} & {*self.objectives_}) == len(names) == len(self.objectives_):
            outcome = outcome[:, [names.index(name) for name in self.objectives_]]
        if outcome.shape[1] != len(self.objectives_):
            raise ValueError(
                f"y must have a column for each objective {self.objectives_}; got "
                f"{outcome.shape[1]}."
            )
        return outcome
