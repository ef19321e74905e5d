"""Thresholds by group with equal outcomes of those who just pass, or equal rates."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.stats import rankdata
from sklearn.base import ClassifierMixin

from .._inputs.score_rows import ScoreRows
from .._inputs.validation import Array, check_choice, check_number, generator, warn_user
from ..smoothing import nadaraya_watson
from ._by_group import fits_of_rows, quoted, rows_by_group, within_unit
from ._curves import Curve, CurveRows, Line, check_calibrator, fit_curve
from ._wrapper import FitRows, ModelWrapper, ScoresByGroup, scores_of

#: What `constraint` makes equal between groups, instead of marginal outcomes.
RATES = ("demographic_parity", "equal_opportunity", "equalized_odds")
# A line through fewer rows above the threshold says little.
_NEAR_ROWS, _NEAR_SHARE = 50, 0.25


@dataclass(frozen=True, kw_only=True)
class Side(CurveRows):
    """The out-of-fold scores of a group, and the outcome to expect at each of them.

    Outcomes are NaN where they are unknown. Only the known rows have clusters.
    """

    known: CurveRows  # the rows of known outcome
    curve: Curve  # does not decrease

    @property
    def lowest(self) -> float:
        """The lowest score of a known outcome, or -inf if all are known."""
        if self.known.score.size == self.score.size:
            return -np.inf
        return float(self.known.score.min(initial=np.inf))

    @cached_property
    def expected(self) -> Array:
        """The outcome to expect in each row, shape (n,)."""
        return self.curve.predict(self.score)

    def outcome_at(self, threshold: float) -> float:
        """Return the outcome to expect at a threshold."""
        return float(self.curve.predict(np.array([threshold]))[0])

    def threshold_of(self, outcome: float) -> float:
        """Return the lowest score at which an outcome is to be expected."""
        return float(self.curve.inverse(np.array([outcome]))[0])

    def positive(self, threshold: float) -> float:
        """Return the weight of the rows that reach a threshold."""
        return float(self.share @ (self.score >= threshold))

    def error_at(self, threshold: float) -> float:
        """Return the standard error of the outcome at a threshold.

        It is NaN without data, and where all outcomes near it are of one kind.
        """
        score = self.known.score
        low, high = score.min(initial=np.inf), score.max(initial=-np.inf)
        if not low <= threshold <= high or low == high:
            return np.nan
        curve = nadaraya_watson(
            self.known.outcome,
            score,
            [threshold],
            cluster=self.known.cluster,
            sample_weight=self.known.weight,
        )
        return float(curve.standard_error[0]) or np.nan


def extrapolated(curve: Curve, known: CurveRows, low: float) -> Line:
    """Return the curve, with a line below the lowest score of a known outcome (§6.1).

    The line is that of least squares through the nearest quarter of the rows, at least
    50. It does not fall. The curve does not either; it is fitted to the rows of `known`
    outcomes, and `low` is the lowest score of all rows.
    """
    score, outcome = known.score, known.outcome
    order = np.argsort(score, kind="stable")
    near = order[: max(_NEAR_ROWS, int(_NEAR_SHARE * score.size))]
    weight = np.ones(near.size) if known.weight is None else known.weight[near]
    mean, level = np.average([score[near], outcome[near]], axis=1, weights=weight)
    centred = score[near] - mean
    pull, spread = weight * centred, float(weight @ centred**2)
    slope = max(float(pull @ outcome[near]) / spread, 0.0) if spread > 0 else 0.0
    below = np.array([low, score.min()])
    knots, values = curve.knots
    above = knots > score.min()
    line = np.append(level + slope * (below - mean), values[above])
    return Line(np.append(below, knots[above]), np.maximum.accumulate(line))


def common_thresholds(
    sides: Sequence[Side], positive: float
) -> tuple[float, list[float]]:
    """Return an outcome, and the thresholds at it with which as many rows are positive.

    Rows are taken by the outcome to expect of them; where a curve is flat, by score.
    `positive` is the weight that is to be positive. The threshold of each group is the
    nearest to the outcome that only the rows taken reach.
    """
    expected = np.concatenate([side.expected for side in sides])
    weight = np.concatenate([side.share for side in sides])
    ranks = [rankdata(side.score, "dense") for side in sides]
    rank = np.concatenate([place / (place.max() + 1) for place in ranks])
    order = np.lexsort((-rank, -expected))
    reached = np.concatenate(([0.0], np.cumsum(weight[order])))
    # Rows that tie are taken together.
    same = np.zeros(reached.size, dtype=bool)
    same[1:-1] = (np.diff(expected[order]) == 0) & (np.diff(rank[order]) == 0)
    n_taken = int(np.argmin(np.where(same, np.inf, np.abs(reached - positive))))
    taken = np.zeros(expected.size, dtype=bool)
    taken[order[:n_taken]] = True
    level = float(expected[order[max(n_taken - 1, 0) : n_taken + 1]].mean())
    ends, thresholds = np.cumsum([side.score.size for side in sides]), []
    for side, passes in zip(sides, np.split(taken, ends[:-1]), strict=True):
        threshold = side.threshold_of(level)
        if not passes.all():
            highest = side.score[~passes].max()
            threshold = max(threshold, float(np.nextafter(highest, np.inf)))
        if passes.any():
            threshold = min(threshold, float(side.score[passes].min()))
        thresholds.append(threshold)
    return level, thresholds


def rate_shares(constraint: str | None, expected: Array, weight: Array) -> Array:
    """Return the part that each row of a group adds to the constrained rate, (n,).

    It is the row's share of all rows, of the good outcomes, or the mean of its shares
    of good and of bad outcomes. The sum is 1.
    """
    expected = np.clip(expected, 0, 1)
    good, bad = weight * expected, weight * (1 - expected)
    if constraint == "demographic_parity":
        return weight / weight.sum()
    if not good.any() or (constraint == "equalized_odds" and not bad.any()):
        raise ValueError(
            f"constraint={constraint!r} needs good and bad outcomes in every group; a "
            "group has outcomes of one kind."
        )
    good_share = good / good.sum()
    if constraint == "equal_opportunity":
        return good_share
    return (good_share + bad / bad.sum()) / 2


@dataclass(frozen=True)
class RateCurve:
    """The rate and the positives at each threshold of a group, from the highest on."""

    threshold: Array  # shape (k,): decreasing, between the scores
    rate: Array  # shape (k,): from 0 to 1
    positive: Array  # shape (k,): weight of the rows that are positive

    @classmethod
    def of_rows(cls, score: Array, share: Array, weight: Array) -> RateCurve:
        """Return the curve of rows, each of which adds its share to the rate."""
        values, place = np.unique(-score, return_inverse=True)
        values = -values
        between = (values[:-1] + values[1:]) / 2
        between = np.where(between > values[1:], between, values[:-1])
        ends = np.nextafter(values[:1], np.inf), values[-1:]
        return cls(
            np.concatenate([ends[0], between, ends[1]]),
            np.append(0.0, np.cumsum(np.bincount(place, share))),
            np.append(0.0, np.cumsum(np.bincount(place, weight))),
        )

    @property
    def changes(self) -> Array:
        """Levels at which the nearest rate is that of the next threshold."""
        return (self.rate[1:] + self.rate[:-1]) / 2

    def at(self, level: Any) -> Any:
        """Return the number of the threshold whose rate is nearest to the level."""
        return np.searchsorted(self.changes, level, side="right")

    def threshold_at(self, level: float) -> float:
        """Return the threshold whose rate is nearest to the level."""
        return float(self.threshold[self.at(level)])


@dataclass(frozen=True)
class Hull:
    """The rates of a group that thresholds reach, one at a time or drawn between.

    It is the upper convex hull of the ROC curve (Hardt et al. 2016, §3.2), with the sum
    of both rates as the abscissa, so that no edge is vertical.
    """

    threshold: Array  # shape (k,): decreasing
    total: Array  # shape (k,): true plus false positive rate, from 0 to 2
    ahead: Array  # shape (k,): true minus false positive rate, concave
    positive: Array  # shape (k,): weight of the rows that are positive

    @classmethod
    def of_rows(cls, score: Array, expected: Array, weight: Array) -> Hull:
        """Return the hull of rows with outcomes, or expected outcomes, in [0, 1]."""
        good, bad = weight * expected, weight * (1 - expected)
        true = RateCurve.of_rows(score, good / good.sum(), weight)
        false = RateCurve.of_rows(score, bad / bad.sum(), weight)
        total, ahead = true.rate + false.rate, true.rate - false.rate
        # The ends are exact, whatever is rounded in the sums.
        total[-1], ahead[-1] = 2, 0
        rising = np.flatnonzero(np.append(True, np.diff(total) > 0))
        step = np.diff(total[rising])
        slopes = np.diff(ahead[rising]) / step
        # The slopes of a concave majorant are a decreasing isotonic regression.
        pooled = isotonic_regression(slopes, weights=step, increasing=False)
        kept = rising[pooled.blocks]
        return cls(true.threshold[kept], total[kept], ahead[kept], true.positive[kept])

    def mixture(self, total: float, ahead: float) -> dict[float, float]:
        """Return the thresholds to draw between, with their probabilities.

        Their expected rates are those of the point if it is on the hull or below it. If
        it is above the hull, only its total is reached.
        """
        right = int(np.searchsorted(self.total, total, side="right"))
        left = min(max(right - 1, 0), self.total.size - 2)
        if np.interp(total, self.total, self.ahead) - ahead <= _ON_HULL:
            vertices = np.array([left, left + 1])
            share = (total - self.total[left]) / np.diff(self.total[vertices])[0]
            chances = np.array([1 - share, share])
        else:
            vertices, chances = self._chord(total, ahead)
        drawn: dict[float, float] = {}
        for threshold, chance in zip(self.threshold[vertices], chances, strict=True):
            if chance > _NO_CHANCE:
                drawn[float(threshold)] = drawn.get(threshold, 0.0) + float(chance)
        return drawn

    def _chord(self, total: float, ahead: float) -> tuple[Array, Array]:
        """Return four vertices of the hull to mix for a point below it, and shares.

        A chord through the point joins two edges of the hull, whose ends the vertices
        are. It is the chord through a vertex with the least variance of the decisions:
        it leaves the decisions of the fewest people to chance.
        """
        right = int(np.searchsorted(self.total, total, side="right"))
        left = int(np.searchsorted(self.total, total, side="left"))
        before = (ahead - self.ahead[:left]) / (total - self.total[:left])
        after = (self.ahead[right:] - ahead) / (self.total[right:] - total)
        # Seen from the point, the vertices are in the order of their slopes.
        slope = np.concatenate([before, after])
        slope = slope[(slope >= after[-1]) & (slope <= before[0])]
        start = np.searchsorted(-before, -slope, side="right") - 1
        end = right + np.searchsorted(-after, -slope, side="left")
        vertices = np.array([start, start + 1, end - 1, end])
        above = self.ahead[vertices] - ahead - slope * (self.total[vertices] - total)
        first = np.clip(above[0] / (above[0] - above[1]), 0, 1)
        last = np.clip(above[2] / (above[2] - above[3]), 0, 1)
        at = self.total[vertices]
        low = at[0] + first * (at[1] - at[0])
        high = at[2] + last * (at[3] - at[2])
        of_high = (total - low) / (high - low)
        accepted = np.array([of_high + (1 - of_high) * first, of_high, of_high * last])
        rows = np.diff(self.positive[vertices], axis=0)
        best = int(np.argmin((rows * accepted * (1 - accepted)).sum(axis=0)))
        share = -np.diff(np.concatenate([[1.0], accepted[:, best], [0.0]]))
        return vertices[:, best], share


# So near the hull a point is on it, and a threshold of so small a chance is not drawn.
_ON_HULL, _NO_CHANCE = 1e-12, 1e-15


def cheapest_point(hulls: Sequence[Hull], slope: float) -> tuple[float, float]:
    """Return the point below all hulls that is highest above a line with this slope.

    The point is (total, ahead) as in `Hull`: a vertex of a hull, or a point where two
    hulls cross.
    """
    vertices = np.unique(np.concatenate([hull.total for hull in hulls]))
    heights = [np.interp(vertices, hull.total, hull.ahead) for hull in hulls]
    totals = [vertices]
    for first, second in combinations(heights, 2):
        gap = first - second
        before = np.flatnonzero(gap[:-1] * gap[1:] < 0)
        share = gap[before] / (gap[before] - gap[before + 1])
        totals.append(vertices[before] + share * np.diff(vertices)[before])
    total = np.unique(np.concatenate(totals))
    ahead = np.min([np.interp(total, hull.total, hull.ahead) for hull in hulls], axis=0)
    best = int(np.argmax(ahead - slope * total))
    return float(total[best]), float(ahead[best])


#: The thresholds of each group, with the chance of each, and that of all rows.
Cuts = tuple[list[dict[float, float]], float]

_RESPONSES = ("predict_proba", "decision_function")


class GroupThresholdClassifier(ScoresByGroup, ClassifierMixin, ModelWrapper):
    """Decide by thresholds at which all groups have the same expected outcome, or rate.

    A common threshold holds a group to a higher standard if its rows that just pass
    have better outcomes than those of another group. Here ``f̂_a(t_a) = f̂_b(t_b)``
    (eq. 3), f̂_g the mean outcome at a score in group g, made non-decreasing; and, with
    ``adjust="both"``, as many rows are positive as before. The decisions are those of
    calibrating the scores by group and applying one threshold.

    Parameters
    ----------
    estimator : classifier
        For two classes, with `predict_proba` or `decision_function`. In a
        `sklearn.frozen.FrozenEstimator` it is not fitted again; the rows of `fit` must
        then be new to it.
    threshold : float, default=0.5
        Score from which a row is accepted. It is the common threshold that is in use
        now.
    favorable : {"high", "low"}, default="high"
        Which end of the score is good for the person. "low": a row is accepted, and
        predicted to be of the first class, up to its threshold, as a loan is given at a
        low risk of default; the good outcome is the first class. Outcomes may be
        unknown above the threshold, and "raise" and "lower" are said of standards: to
        raise one is to accept fewer rows, here by a lower threshold.
    adjust : {"both", "raise", "lower"}, default="both"
        "both" moves thresholds up in some groups and down in others. "raise" moves them
        to the highest of the groups' marginal outcomes; this needs no outcomes below
        the threshold, and fewer rows are positive. "lower" moves them to the lowest,
        and more rows are positive.
    constraint : {"overall_positive_rate", "demographic_parity", \
            "equal_opportunity", "equalized_odds"} or None, \
            default="overall_positive_rate"
        "overall_positive_rate" and None give all groups the same expected outcome. With
        ``adjust="both"``, "overall_positive_rate" keeps the share of positives among
        all rows, up to one row or the rows of one score (what eq. 4 means), and None
        takes the outcome of all rows together at the threshold. The others give all
        groups another rate in place of that outcome: the share of positives among their
        rows ("demographic_parity"), among their good outcomes ("equal_opportunity"), or
        the mean of those among good and among bad outcomes ("equalized_odds"). A rate p
        of n rows is known to about ``sqrt(p (1 - p) / n)``, and gaps on new rows do not
        get smaller than that. "both" keeps the share of positives, "raise" takes the
        lowest rate of a group and "lower" the highest.
    randomize : bool, default=False
        Whether thresholds are drawn at random, which makes both rates of
        "equalized_odds" equal in expectation, at the least expected cost (see Notes).
        It needs ``constraint="equalized_odds"`` and ``adjust="both"``. Two people of a
        group with equal scores may then be treated differently.
    response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
        What the score is; "auto" is the probability of the second class, or else the
        decision function.
    calibrator : {"nadaraya_watson", "isotonic", "platt", "binning"} or estimator, \
            default="nadaraya_watson"
        How f̂ is estimated, as in `GroupCalibrator`.
    sensitive_features : str, list of str, callable, True or None, default=None
        Where the groups come from: the name of a column of X, a list of names (the
        columns are crossed), or a function of X. True means that they must be passed as
        metadata. None means that they may be passed as metadata; all rows are one group
        if they are not. If there is only one group its threshold does not change.
    cluster : str, callable, True or None, default=None
        Where the independent units, such as users, come from, in the same way; only
        `fit` needs them.
    cv : int, splitter, iterable or None, default=None
        How to split into folds. It works as in `GroupCalibratedClassifier`.
    min_group_size : int, default=20
        A group with fewer known outcomes has the curve of all rows, with a warning. A
        group with fewer rows does not set the common rate of all groups either, and has
        the threshold at which all rows together have that rate.
    drop_metadata_columns : bool, default=False
        Whether the columns that the constructor names are hidden from the model, which
        otherwise gets all columns of X.
    n_jobs : int or None, default=None
        Number of folds that are fitted at a time, as in joblib.
    random_state : int, Generator or None, default=None
        Seed or generator of the random numbers. None draws anew in each call. With
        `randomize` the thresholds of the rows are drawn with it, in their order, in
        each call of `predict` or `decision_function`: an int gives the same decisions
        to the same rows.

    Attributes
    ----------
    thresholds_ : dict of float
        The threshold of each group; with `randomize`, the mean of those that are drawn.
        What is said of outcomes at the threshold is then at this mean.
    randomized_thresholds_ : dict of dict
        By group its thresholds, of which there is one without `randomize` and at most
        four with it, and the probability of each. The chance that a person is accepted
        is the sum of the probabilities of the thresholds up to the person's score, or
        from it on with ``favorable="low"``.
    marginal_outcomes_, marginal_outcomes_before_ : dict of float
        Expected share of the second class by group, at its own threshold and at the
        common threshold. The former are equal by construction, up to the grid of
        scores, where the curves of all groups reach the level.
    marginal_outcome_errors_ : dict of float
        Standard errors of the outcomes at the groups' own thresholds, cluster-robust:
        those of `skrankfair.smoothing.nadaraya_watson` at the out-of-fold scores of the
        group, whichever the calibrator. They say how unequal the outcomes may still be
        where the curves are smooth; they are too small for "isotonic" and "binning",
        whose curves have steps, and where a curve is so steep that smoothing flattens
        it. NaN where a group has no known outcomes around its threshold, or outcomes of
        one kind.
    positive_rate_, positive_rate_before_ : float
        Share of accepted rows among the out-of-fold scores; with `randomize`, the
        expected share.
    pooled_threshold_ : float
        The threshold for groups that `fit` has not seen.
    estimator_ : classifier
        Fitted to all rows.
    classes_ : ndarray of shape (2,)
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Their names, if X has names.

    See Also
    --------
    GroupCalibratedClassifier : Makes all scores comparable, not only at a threshold.

    Notes
    -----
    Those who are refused often have no outcome. Numeric outcomes may be NaN: such rows
    count in the positive rate, but are used to train neither the model nor the curves.
    Below the lowest score with an outcome the curves are extended by a line (§6.1). A
    threshold that ends up there is only suggestive, and a warning says so (Remark 5);
    ``adjust="raise"`` avoids this.

    Rates among good and bad outcomes are those that f̂ expects, so they need no known
    outcome in every row. Two rates cannot both be equal by one threshold per group in
    general: at equal means of the two, what one group is ahead in true positives it is
    behind in false positives, and the larger of the two distances between two groups is
    as small as it can be.

    With ``randomize=True`` both are equal in expectation (Hardt et al. 2016, §3.2).
    Mixtures of thresholds reach all points below the convex hull of a group's ROC
    curve, and all groups reach those below all hulls. Of these the one with the least
    expected cost is taken: a false positive costs p and a false negative 1 − p, where
    p is the `threshold` if the score is a probability (0.5 counts both errors alike),
    and otherwise the outcome that the curve of all rows expects at the `threshold`.
    A group on its own hull mixes two neighbouring thresholds; the others mix more
    distant ones, of which one may be the constant that accepts all or nobody. Of the
    mixtures through a vertex of the hull, that with the least variance of the decisions
    is taken. The rates are those of the out-of-fold scores, with the observed outcomes;
    f̂ stands in where they are unknown and in groups below `min_group_size`. Groups of
    fewer rows than that have no say in the choice, and get the thresholds at which the
    rates of all rows come nearest to it.

    For a person this is a lottery: who is above all thresholds of the group is
    accepted, who is below all of them is refused, and for those between them chance
    decides, so that two people of one group with equal scores may be treated
    differently, and one person differently if asked again or at another place among the
    rows. Draw once and keep the decision. Some laws do not allow this, and the groups
    with the better ROC curve pay for the equality with worse decisions.

    The thresholds are estimates: on new rows the outcomes at them differ by what
    ``marginal_outcome_errors_`` says, most of all for a small group.
    `skrankfair.inference.marginal_outcome_test` tests it on new rows.

    References
    ----------
    DiCiccio, C., Hsu, B., Yu, Y., Nandy, P., Basu, K. (2023). "Detection and Mitigation
    of Algorithmic Bias via Predictive Parity". FAccT '23, §6.1, Theorem 4.

    Hardt, M., Price, E., Srebro, N. (2016). "Equality of Opportunity in Supervised
    Learning". NeurIPS. §3, and §3.2 for drawn thresholds.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skrankfair.mitigation import GroupThresholdClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"x": rng.normal(size=8000)})
    >>> X["group"] = rng.choice(["a", "b"], size=8000)
    >>> y = X["x"] + rng.logistic(size=8000) > (X["group"] == "b")
    >>> model = GroupThresholdClassifier(
    ...     LogisticRegression(), sensitive_features="group", drop_metadata_columns=True
    ... ).fit(X, y)
    >>> model.thresholds_["a"] < 0.5 < model.thresholds_["b"]
    True
    >>> bool(abs(model.positive_rate_ - model.positive_rate_before_) < 0.001)
    True
    """

    def __init__(
        self,
        estimator: Any,
        *,
        threshold: float = 0.5,
        favorable: str = "high",
        adjust: str = "both",
        constraint: str | None = "overall_positive_rate",
        randomize: bool = False,
        response_method: str = "auto",
        calibrator: Any = "nadaraya_watson",
        sensitive_features: Any = None,
        cluster: Any = None,
        cv: Any = None,
        min_group_size: int = 20,
        drop_metadata_columns: bool = False,
        n_jobs: Any = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.estimator = estimator
        self.threshold = threshold
        self.favorable = favorable
        self.adjust = adjust
        self.constraint = constraint
        self.randomize = randomize
        self.response_method = response_method
        self.calibrator = calibrator
        self.sensitive_features = sensitive_features
        self.cluster = cluster
        self.cv = cv
        self.min_group_size = min_group_size
        self.drop_metadata_columns = drop_metadata_columns
        self.n_jobs = n_jobs
        self.random_state = random_state

    _unknown_outcomes = True

    def _fit(self, rows: FitRows) -> None:
        """Fit the model, and find the common outcome and its thresholds."""
        given = self.response_method
        methods = _RESPONSES if given == "auto" else (given,)
        folds = self._out_of_fold(rows, methods)
        self.estimator_, scored, score = self._joined(folds, rows)
        known = (m for m in methods if hasattr(self.estimator_, m))
        self._response, self._favorable = next(known, "predict"), self.favorable
        outcome = rows.outcome if self.favorable == "high" else 1 - rows.outcome
        calibration = rows.calibration(scored, self._oriented(score), outcome)
        self._set_thresholds(*self._sides(calibration))

    def _oriented(self, score: Any) -> Any:
        """Return scores of which the higher is the better, or such scores as given."""
        if self.favorable == "high":
            return score
        return (1.0 if self._by_probability else 0.0) - score

    def decision_function(self, X: Any, sensitive_features: Any = None) -> Array:
        """Return the score minus the largest number below its group's threshold.

        It is positive where the score reaches the threshold, as `predict` decides;
        where low scores are favorable, the score minus the threshold, positive above
        it. With `randomize` the threshold of each row is drawn.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
        sensitive_features : array-like of shape (n_samples,) or (n_samples, d), or \
                None, default=None
            Group labels, if the constructor names no column of X.

        Returns
        -------
        ndarray of shape (n_samples,)

        Warns
        -----
        UserWarning
            It names the groups that `fit` has not seen, which get the threshold of all
            rows together.
        """
        features, labels, metadata = self._predict_rows(X, sensitive_features)
        score = scores_of(self.estimator_, features, metadata, [self._response])
        chance = generator(self.random_state).random(score.size)
        threshold = np.empty(score.size)
        fits, pooled = self.randomized_thresholds_, {self.pooled_threshold_: 1.0}
        fate = "get the threshold of all rows together"
        for rows, shares in fits_of_rows(score.size, labels, fits, pooled, fate):
            upper = np.cumsum(list(shares.values())[:-1])
            drawn = np.searchsorted(upper, chance[rows], "right")
            threshold[rows] = np.array(list(shares))[drawn]
        low = self._favorable == "low"
        return score - (threshold if low else np.nextafter(threshold, -np.inf))

    def predict(self, X: Any, sensitive_features: Any = None) -> Array:
        """Return the second class where the score reaches the group's threshold.

        Where low scores are favorable, the first class up to the threshold.

        With `randomize` the threshold of each row is drawn.

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
        positive = self.decision_function(X, sensitive_features) > 0
        return self.classes_[positive.astype(int)]

    @property
    def _cut(self) -> float:
        """The common threshold, of scores of which the higher is the better."""
        return float(self._oriented(self.threshold))

    def _as_score(self, cut: float) -> float:
        """Return the last score that is accepted at a cut of oriented scores."""
        score = float(self._oriented(cut))
        if self.favorable == "low" and self._by_probability:
            # Several probabilities may be rounded to the same distance from 1.
            score += (cut - float(np.nextafter(cut, -np.inf))) / 2
            if 1.0 - score < cut:
                score = float(np.nextafter(score, -np.inf))
        return score

    @property
    def _by_probability(self) -> bool:
        """Whether the scores are probabilities."""
        return self._response == "predict_proba"

    def _check_options(self) -> None:
        check_number(self.threshold, "threshold", -np.inf, np.inf)
        check_choice(self.favorable, "favorable", ("high", "low"))
        check_choice(self.adjust, "adjust", ("both", "raise", "lower"))
        choices = ("overall_positive_rate", *RATES, None)
        check_choice(self.constraint, "constraint", choices)
        check_choice(self.randomize, "randomize", (False, True))
        drawn = self.constraint == "equalized_odds" and self.adjust == "both"
        if self.randomize and not drawn:
            raise ValueError(
                "randomize=True needs constraint='equalized_odds' and adjust='both'; "
                f"got constraint={self.constraint!r} and adjust={self.adjust!r}."
            )
        generator(self.random_state)
        check_choice(self.response_method, "response_method", ("auto", *_RESPONSES))
        check_choice(self.drop_metadata_columns, "drop_metadata_columns", (False, True))
        check_number(self.min_group_size, "min_group_size", 1, np.inf, integer=True)
        check_calibrator(self.calibrator)

    def _sides(self, rows: ScoreRows) -> tuple[dict[Hashable, Side], Side]:
        """Return the scores and curves of the groups, and those of all rows."""
        odds = within_unit(rows.x)

        def side_of(rows: ScoreRows, of_all: Curve | None) -> Side:
            """Return rows with their own curve, or with that of all if they are few."""
            score, outcome, curve = rows.x[:, 0], rows.y[:, 0], of_all
            some = rows.take(np.flatnonzero(np.isfinite(outcome)))
            columns = some.x[:, 0], some.y[:, 0], some.weight, some.cluster_codes
            known = CurveRows(*columns)
            if curve is None or known.score.size >= self.min_group_size:
                curve = fit_curve(self.calibrator, known, monotonic=True, log_odds=odds)
                if (low := float(score.min())) < known.score.min():
                    curve = extrapolated(curve, known, low)
            return Side(score, outcome, rows.weight, known=known, curve=curve)

        pooled = side_of(rows, None)
        of_all = pooled.curve if self._grouped else None
        sides = {label: side_of(some, of_all) for label, some in rows_by_group(rows)}
        if small := [g for g, side in sides.items() if side.curve is pooled.curve]:
            warn_user(
                f"Groups with fewer than min_group_size={self.min_group_size} known "
                f"outcomes have the curve of all rows: {quoted(small)}.",
                UserWarning,
            )
        return sides, pooled

    def _set_thresholds(self, sides: dict[Hashable, Side], pooled: Side) -> None:
        """Set the thresholds of groups, their outcomes and the rate of positives."""
        now, find = self._cut, self._equal_marginals
        if self.constraint in RATES and len(sides) > 1:
            find = self._random if self.randomize else self._equal_rates
        drawn, cut_of_all = find([*sides.values()], pooled)
        self.pooled_threshold_ = self._as_score(cut_of_all)
        self.thresholds_: dict[Hashable, float] = {}
        self.randomized_thresholds_: dict[Hashable, dict[float, float]] = {}
        self.marginal_outcomes_before_: dict[Hashable, float] = {}
        self.marginal_outcomes_: dict[Hashable, float] = {}
        self.marginal_outcome_errors_: dict[Hashable, float] = {}
        positive, below = 0.0, []
        for (label, side), cuts in zip(sides.items(), drawn, strict=True):
            mean = sum(cut * share for cut, share in cuts.items())
            drawn_scores = {self._as_score(cut): share for cut, share in cuts.items()}
            self.thresholds_[label] = self._as_score(mean)
            self.randomized_thresholds_[label] = drawn_scores
            self.marginal_outcomes_before_[label] = self._outcome(side, now)
            self.marginal_outcomes_[label] = self._outcome(side, mean)
            self.marginal_outcome_errors_[label] = side.error_at(mean)
            positive += sum(share * side.positive(cut) for cut, share in cuts.items())
            if min(cuts) < min(side.lowest, now):
                below.append(label)
        total = float(pooled.share.sum())
        self.positive_rate_ = positive / total
        self.positive_rate_before_ = pooled.positive(now) / total
        if below:
            where = "below" if self.favorable == "high" else "above"
            warn_user(
                f"The thresholds of {quoted(below)} are {where} all known outcomes, "
                "where a line is assumed: they are suggestive. Move them in steps and "
                "fit again with the new outcomes, or take adjust='raise'.",
                UserWarning,
            )

    def _outcome(self, side: Side, cut: float) -> float:
        """Return the outcome to expect at a cut, as the share of the second class."""
        good = side.outcome_at(cut)
        return good if self.favorable == "high" else 1 - good

    def _equal_marginals(self, sides: Sequence[Side], pooled: Side) -> Cuts:
        """Return the thresholds at one outcome of those who just pass."""
        now = [side.outcome_at(self._cut) for side in sides]
        if self.adjust == "both" and self.constraint is not None and len(sides) > 1:
            level, thresholds = common_thresholds(sides, pooled.positive(self._cut))
        else:
            level = {
                "both": pooled.outcome_at(self._cut),
                "raise": max(now),
                "lower": min(now),
            }[self.adjust]
            # Where a curve ends before the level, so does the search for it.
            low = self._cut if self.adjust == "raise" else -np.inf
            high = self._cut if self.adjust == "lower" else np.inf
            thresholds = [
                self._cut
                if outcome == level
                else min(max(side.threshold_of(level), low), high)
                for side, outcome in zip(sides, now, strict=True)
            ]
        return [{cut: 1.0} for cut in thresholds], pooled.threshold_of(level)

    def _equal_rates(self, sides: Sequence[Side], pooled: Side) -> Cuts:
        """Return the thresholds at one rate of positives."""
        whole, now_of_all = self._rates_of(pooled)
        rates, curves, few = [], [], 0.0
        for side in sides:
            if side.score.size < self.min_group_size:
                rates.append((whole, now_of_all))
                few += side.share.sum() / pooled.share.sum()
            else:
                rates.append(self._rates_of(side))
                curves.append(rates[-1][0])
        if few:  # small groups together are like so many of all rows
            curves.append(replace(whole, positive=few * whole.positive))
        # The rate of all groups at which as many rows are positive.
        levels = np.unique(np.concatenate([[0.0], *(c.changes for c in curves)]))
        total = np.sum([curve.positive[curve.at(levels)] for curve in curves], axis=0)
        nearest = np.argmin(np.abs(total - pooled.positive(self._cut)))
        level = {
            "both": float(levels[nearest]),
            "raise": min(now for _, now in rates),
            "lower": max(now for _, now in rates),
        }[self.adjust]
        thresholds = [
            self._cut
            if self.adjust != "both" and now == level
            else curve.threshold_at(level)
            for curve, now in rates
        ]
        return [{cut: 1.0} for cut in thresholds], whole.threshold_at(level)

    def _rates_of(self, side: Side) -> tuple[RateCurve, float]:
        """Return the rate at each threshold, and the present one."""
        share = rate_shares(self.constraint, side.expected, side.share)
        curve = RateCurve.of_rows(side.score, share, side.share)
        return curve, float(share @ (side.score >= self._cut))

    def _random(self, sides: Sequence[Side], pooled: Side) -> Cuts:
        """Return the thresholds that are drawn between."""
        expected, hulls = [], {}
        for number, side in enumerate(sides):
            outcome, fitted = side.outcome, np.clip(side.expected, 0, 1)
            observed = np.isfinite(outcome) & (side.curve is not pooled.curve)
            expected.append(np.where(observed, outcome, fitted))
            if side.score.size >= self.min_group_size:
                # It raises for outcomes of one kind, which have no hull.
                rate_shares(self.constraint, expected[-1], side.share)
                hulls[number] = Hull.of_rows(side.score, expected[-1], side.share)
        score = np.concatenate([side.score for side in sides])
        weight = np.concatenate([side.share for side in sides])
        outcome = np.concatenate(expected)
        good, cost = float(weight @ outcome), self._cut
        if not self._by_probability:
            cost = pooled.outcome_at(cost)
        # A false positive costs `cost`, and a false negative one minus it.
        cost = float(np.clip(cost, 0, 1))
        loss, gain = cost * (float(weight.sum()) - good), (1 - cost) * good
        share = rate_shares(self.constraint, outcome, weight)
        whole = Hull.of_rows(score, outcome, weight)
        of_groups = [hulls.get(number, whole) for number in range(len(sides))]
        enough = list(hulls.values()) or of_groups
        total, ahead = cheapest_point(enough, (loss - gain) / (loss + gain))
        of_all = RateCurve.of_rows(score, share, weight).threshold_at(total / 2)
        return [hull.mixture(total, ahead) for hull in of_groups], of_all
