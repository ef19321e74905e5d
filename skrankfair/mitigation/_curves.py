"""Curves of one score: how each method turns it into an expected outcome."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import expit, logit
from sklearn.base import clone, is_classifier
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import has_fit_parameter

from .._inputs.validation import (
    Array,
    check_choice,
    collected_warnings,
    weighted_quantile,
)
from ..smoothing import NadarayaWatsonRegressor

METHODS = ("nadaraya_watson", "isotonic", "platt", "binning")


def check_calibrator(calibrator: Any, methods: Sequence[str] = METHODS) -> None:
    """Raise a ValueError unless it is a method's name or can be fitted."""
    if isinstance(calibrator, str):
        check_choice(calibrator, "calibrator", methods)
    elif isinstance(calibrator, type) or not (
        hasattr(calibrator, "fit") and hasattr(calibrator, "predict")
    ):
        options = ", ".join(repr(method) for method in methods)
        raise ValueError(
            f"calibrator must be one of {options}, or a regressor or classifier; got "
            f"{calibrator!r}."
        )


@dataclass(frozen=True)
class CurveRows:
    """Rows of one group that a curve is fitted to, as clean arrays.

    A model of several scores or outcomes has a column for each of them.
    """

    score: Array  # shape (n,) or (n, d)
    outcome: Array  # shape (n,) or (n, K)
    weight: Array | None = None  # shape (n,): positive
    cluster: Array | None = None  # shape (n,), int64: 0, 1, ..., of which each occurs
    cluster_weight: str = "cluster"

    @cached_property
    def share(self) -> Array:
        """The weight of each row in the curve, shape (n,).

        With ``cluster_weight="cluster"`` it is divided by the number of rows of a
        cluster. With clusters the sum is the number of units; without them a weight of
        2 is two rows, as scikit-learn has it.
        """
        n_units = len(self.score)
        weight = np.ones(n_units) if self.weight is None else self.weight
        if self.cluster is None:
            return weight
        if self.cluster_weight == "cluster":
            size = np.bincount(self.cluster)
            weight, n_units = weight / size[self.cluster], size.size
        return weight * (n_units / weight.sum())

    @property
    def size(self) -> float:
        """The number of units: of clusters, or the weight of the rows."""
        return float(self.share.sum())


def fit_curve(
    calibrator: Any,
    rows: CurveRows,
    *,
    monotonic: bool = False,
    n_bins: int = 15,
    log_odds: bool = False,
) -> Curve:
    """Return the curve of the expected outcome of rows of one score.

    `monotonic` makes the curve non-decreasing, `n_bins` is for "binning", and
    `log_odds` says for "platt" whether the scores are probabilities.
    """
    score, outcome = rows.score, rows.outcome
    even = np.linspace(score.min(), score.max(), _KNOTS)
    curve: Curve
    if calibrator == "isotonic":
        # By rank, as scikit-learn takes scores within 1e-15 of each other for one.
        distinct, rank = np.unique(score, return_inverse=True)
        steps = IsotonicRegression().fit(rank, outcome, rows.share)
        curve = Line(distinct[steps.X_thresholds_.astype(int)], steps.y_thresholds_)
    elif calibrator == "platt":
        end = half_step(score) if log_odds else np.nan
        intercept, slopes = fit_platt(link_of(score, end)[:, None], outcome, rows.share)
        curve = Sigmoid(even, intercept, float(slopes[0]), end)
    elif calibrator == "binning":
        curve = fit_binning(rows, n_bins, monotonic)
    elif calibrator == "nadaraya_watson" and not log_odds:
        curve = _fit_smooth(rows)
    else:
        smoother = NadarayaWatsonRegressor(method="fast")
        model = smoother if isinstance(calibrator, str) else clone(calibrator)
        if is_classifier(model) and (outcome == outcome[0]).all():
            return Line(score[:1], outcome[:1])
        fit_model(model, rows)
        if isinstance(model, NadarayaWatsonRegressor):
            knots = knots_of(score, rows.share)
            curve = _smooth_line(model, knots, knots)
        else:
            curve = Fitted(np.unique(even), model)
    return project(curve, rows) if monotonic else curve


def fit_model(model: Any, rows: CurveRows) -> None:
    """Fit a model of scores, with clusters or the weights that they give."""
    column, outcome = rows.score.reshape(len(rows.score), -1), rows.outcome
    weight, cluster = rows.share, rows.cluster
    if isinstance(model, NadarayaWatsonRegressor):
        model.set_params(cluster=None, cluster_weight=rows.cluster_weight)
        model.fit(column, outcome, sample_weight=rows.weight, cluster=cluster)
        return
    weighs = has_fit_parameter(model, "sample_weight")
    repeats = cluster is None and not (weight % 1).any() and weight.sum() <= _MOST_ROWS
    if repeats and not weighs:
        times = weight.astype(np.int64)
        column, outcome = column.repeat(times, axis=0), outcome.repeat(times, axis=0)
        weight = np.ones(len(outcome))
    weighted = bool((weight != 1).any())
    if weighted and not weighs:
        raise ValueError(
            "calibrator must take sample_weight in fit, for the weights of rows or "
            f"clusters; {type(model).__name__} does not. With cluster_weight='row' and "
            "no sample_weight there are none, and without clusters whole weights that "
            f"add up to at most {_MOST_ROWS:,} are rows repeated."
        )
    if is_classifier(model):
        if not hasattr(model, "predict_proba") or (outcome % 1).any():
            raise ValueError(
                "calibrator must predict an expected outcome: a classifier needs "
                "predict_proba and outcomes that are integers, such as 0 and 1; got "
                f"{type(model).__name__}. A regressor takes any outcomes."
            )
        outcome = outcome.astype(np.int64)
    model.fit(column, outcome, **({"sample_weight": weight} if weighted else {}))


def _fit_smooth(rows: CurveRows) -> Line:
    """Return the smooth curve of the score, or of its ranks if they predict better.

    What is predicted is the mean outcome of cells of neighbouring scores, by the other
    cells. Ranks let one bandwidth serve a score of heavy tails.
    """
    score, share = rows.score, rows.share
    levels, knots = np.arange(1, _CELLS) / _CELLS, knots_of(score, share)
    cell = np.searchsorted(np.unique(weighted_quantile(score, levels, share)), score)
    mass = np.bincount(cell, share)
    x, mean = (np.bincount(cell, share * v) / mass for v in (score, rows.outcome))
    ranks = (np.cumsum(mass) - mass / 2) / mass.sum()
    of_score, of_knots = (np.interp(values, x, ranks) for values in (score, knots))
    fits, errors = [], []
    for cells, scale, points in ((x, score, knots), (ranks, of_score, of_knots)):
        model = NadarayaWatsonRegressor(method="fast")
        fit_model(model, replace(rows, score=scale))
        near = mass * np.exp(-(((cells - cells[:, None]) / model.bandwidth_) ** 2) / 2)
        np.fill_diagonal(near, 0)
        total = near.sum(axis=1)
        expected = np.full(total.size, np.average(mean, weights=mass))
        np.divide(near @ mean, total, out=expected, where=total > 0)
        errors.append((mean - expected) ** 2)
        fits.append((model, points))
    gain = mass * (errors[0] - errors[1])
    return _smooth_line(*fits[int(gain.sum() > _SURE * np.sqrt(gain @ gain))], knots)


def _smooth_line(model: Any, points: Array, knots: Array) -> Line:
    """Return a smoothed curve between many scores, without gaps of compact kernels."""
    with collected_warnings():
        outcome = estimator_response(model, points)
    defined = np.isfinite(outcome)
    return Line(knots[defined], outcome[defined])


_SMALLEST = np.finfo(float).eps
_KNOTS = 200
#: Of rows repeated for an estimator without weights: they take gigabytes of memory.
_MOST_ROWS = 10**8
#: 1,000 cells choose as these do, in twice the time.
_CELLS = 400
#: Standard errors by which ranks must predict better. By one, or by any, the log loss
#: of margins of Arrests rises by 1 or 2 × 10⁻⁴; by two it stays.
_SURE = 2.0
_SINGULAR = 1e-12


class Curve(metaclass=ABCMeta):
    """The expected outcome as a function of one score."""

    #: Shape (k,): scores between which the curve is (nearly) straight.
    score: Array

    @property
    def knots(self) -> tuple[Array, Array]:
        """Scores and outcomes between which the curve is (nearly) straight."""
        return self.score, self.predict(self.score)

    @abstractmethod
    def predict(self, score: Array) -> Array:
        """Return the expected outcomes at scores."""

    def inverse(self, outcome: Array) -> Array:
        """Return the lowest scores at which the curve reaches outcomes."""
        low, high = (np.full(np.shape(outcome), self.score[end]) for end in (0, -1))
        high = np.where(self.predict(low) >= outcome, low, high)
        for _ in range(np.finfo(float).nmant):
            middle = (low + high) / 2
            reached = self.predict(middle) >= outcome
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return high

    @property
    def increasing(self) -> bool:
        """Whether the curve falls nowhere."""
        return bool((np.diff(self.knots[1]) >= 0).all())


@dataclass(frozen=True)
class Line(Curve):
    """Straight between the knots, constant outside of them."""

    score: Array  # shape (k,): not decreasing
    outcome: Array  # shape (k,)

    def predict(self, score: Array) -> Array:
        return np.interp(score, self.score, self.outcome)

    def inverse(self, outcome: Array) -> Array:
        # From the highest outcome down, so that of a flat part it is the lowest score.
        return np.interp(-outcome, -self.outcome[::-1], self.score[::-1])

    @property
    def knots(self) -> tuple[Array, Array]:
        return self.score, self.outcome


@dataclass(frozen=True)
class Sigmoid(Curve):
    """``σ(intercept + slope · s)``, of the score or of its log-odds."""

    score: Array
    intercept: float
    slope: float
    end: float  # as `link_of` has it

    def predict(self, score: Array) -> Array:
        return expit(self.intercept + self.slope * link_of(score, self.end))


@dataclass(frozen=True)
class Fitted(Curve):
    """A fitted scikit-learn regressor or classifier of one column."""

    score: Array
    estimator: Any

    def predict(self, score: Array) -> Array:
        return estimator_response(self.estimator, score)

    def inverse(self, outcome: Array) -> Array:
        return Line(*self.knots).inverse(outcome)


def estimator_response(estimator: Any, score: Array) -> Array:
    """Return the probability of the outcome 1, or the prediction."""
    columns = np.asarray(score, dtype=float).reshape(len(score), -1)
    if not hasattr(estimator, "classes_"):
        return np.asarray(estimator.predict(columns), dtype=float)
    proba = estimator.predict_proba(columns)
    return proba @ np.asarray(estimator.classes_, dtype=float)


def link_of(score: Array, end: Array | float = _SMALLEST) -> Array:
    """Return the log-odds of probabilities, or the scores where `end` is NaN.

    Probabilities nearer to 0 or 1 than `end` are taken to be as far from there.
    """
    return np.where(np.isnan(end), score, logit(np.clip(score, end, 1 - end)))


def half_step(score: Array) -> float:
    """Return half of the smallest distance above 0 of probabilities from 0 or 1.

    It stands for the distances of 0 and 1 themselves, so that their log-odds are no
    outliers: a forest of 100 trees says 0 where it cannot say 0.005.
    """
    distance = np.minimum(score, 1 - score)
    return max(float(distance[distance > 0].min(initial=0.5)) / 2, _SMALLEST)


def project(curve: Curve, rows: CurveRows) -> Curve:
    """Return the non-decreasing curve nearest to this one, in weighted squares."""
    if curve.increasing:
        return curve
    score = np.union1d(curve.score, knots_of(rows.score, rows.share))
    nearest = np.searchsorted((score[1:] + score[:-1]) / 2, rows.score)
    mass = np.bincount(nearest, rows.share, minlength=score.size)
    floor = 1e-9 * rows.share.sum() / score.size
    outcome = isotonic_regression(curve.predict(score), weights=mass + floor).x
    return Line(score, outcome)


def fit_binning(rows: CurveRows, n_bins: int, rising: bool) -> Line:
    """Return the means of bins of equal mass; equal scores are in one bin.

    The line jumps where a bin starts. If it is rising, neighbouring bins of which the
    later one has the smaller mean are one.
    """
    x, levels = rows.score, np.arange(1, n_bins) / n_bins
    # A bin starts where there is more than the level, whatever is rounded.
    starts = weighted_quantile(x, levels + 2e-12, rows.share)
    edges = np.unique(starts[starts > x.min()])
    place = np.searchsorted(edges, x, side="right")
    mass = np.bincount(place, rows.share)
    outcome = np.bincount(place, rows.share * rows.outcome) / mass
    if rising:
        outcome = isotonic_regression(outcome, weights=mass).x
    ends = np.concatenate(([x.min()], edges, [x.max()]))
    return Line(np.repeat(ends, 2)[1:-1], np.repeat(outcome, 2))


def knots_of(x: Array, weight: Array, n_each: int = _KNOTS) -> Array:
    """Return scores to evaluate a smooth curve at: even ones, and as many quantiles."""
    ranks = weighted_quantile(x, (np.arange(n_each) + 0.5) / n_each, weight)
    return np.unique(np.concatenate([ranks, np.linspace(x.min(), x.max(), n_each)]))


#: Of more rows, bins of scores tell how much a curve borrows. On 30,000 and 200,000
#: rows it changes that by less than another draw of the folds, and takes a fifth.
_MANY, _BINS = 20_000, 4096


def sums_suffice(calibrator: Any, cluster: Any, cluster_weight: str) -> bool:
    """Return whether the curve of rows is that of their sums by score."""
    rule = rule_of(calibrator)
    by_row = cluster is not None and cluster_weight == "row"
    if isinstance(rule, str) and (rule == "cv" or by_row):
        return False
    return isinstance(calibrator, str | NadarayaWatsonRegressor)


def rule_of(calibrator: Any) -> Any:
    """Return the bandwidth of a smoother; None of a method without one."""
    if isinstance(calibrator, NadarayaWatsonRegressor):
        return calibrator.bandwidth
    return "rule_of_thumb" if calibrator == "nadaraya_watson" else None


def binned(x: Array, weight: Array, n_bins: int = _BINS) -> Array:
    """Return scores, replaced by the means of their bins if there are many rows."""
    if x.size <= _MANY:
        return x
    edges = np.unique(weighted_quantile(x, np.linspace(0, 1, n_bins + 1)[1:-1], weight))
    place = np.searchsorted(edges, x)
    return (np.bincount(place, weight * x) / np.bincount(place, weight))[place]


def fit_platt(score: Array, y: Array, weight: Array) -> tuple[float, Array]:
    """Return intercept and slopes of a logistic regression, with Platt's outcomes.

    Of scores of shape (n, d) and outcomes in [0, 1]; the slope of a column without
    spread is 0. A row is fitted as two, of the outcomes 1 and 0.
    """
    positive = float(weight @ y)
    negative = float(weight.sum()) - positive
    target = y * (positive + 1) / (positive + 2) + (1 - y) / (negative + 2)
    mean = np.average(score, axis=0, weights=weight)
    scale = np.sqrt(np.average((score - mean) ** 2, axis=0, weights=weight))
    scale[(np.ptp(score, axis=0) == 0) | (scale == 0)] = np.inf
    centred = (score - mean) / scale
    value, vector = np.linalg.eigh((centred.T * weight) @ centred / weight.sum())
    # Columns that follow from others say nothing more.
    whitening = (vector / np.sqrt(np.maximum(value, _SINGULAR)))[:, value > _SINGULAR]
    if not whitening.size:
        level = float(logit(np.average(target, weights=weight)))
        return level, np.zeros(score.shape[1])
    rows = np.tile(centred @ whitening, (2, 1))
    shares = np.concatenate([weight * target, weight * (1 - target)]) / weight.sum()
    model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-14)
    model.fit(rows, np.repeat([1, 0], y.size), shares)
    slopes = whitening @ model.coef_[0] / scale
    return float(model.intercept_[0] - slopes @ mean), slopes
