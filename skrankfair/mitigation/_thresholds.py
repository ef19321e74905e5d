"""Thresholds by group with equal outcomes of those who just pass, or equal rates."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from .._estimates.metric import warn_user
from .._inputs.groups import Groups
from .._inputs.sklearn_private import fit_parameters, rows_of
from .._inputs.validation import (
    Array,
    check_choice,
    check_lengths,
    check_number,
    generator,
)
from ..smoothing import nadaraya_watson
from ._curves import Curve, Line, check_calibrator, fit_curve
from ._equal_rates import (
    RATES,
    Hull,
    RateCurve,
    common_rate,
    random_thresholds,
    rate_shares,
)
from ._fold_scores import labelled, out_of_fold, scores_of, taken
from ._metadata import disjoint_groups, quoted
from ._wrapper import FitRows, ModelWrapper, ScoresByGroup

# A line through fewer rows above the threshold says little.
_NEAR_ROWS, _NEAR_SHARE = 50, 0.25


def extrapolated(curve: Curve, score: Array, outcome: Array, low: float) -> Line:
    """Return the curve, with a line below the lowest score of a known outcome (§6.1).

    The line is that of least squares through the nearest quarter of the rows, at least
    50. It does not fall. The curve does not either; it is fitted to the scores and
    outcomes, shape (n,), and `low` is the lowest score of all rows.
    """
    order = np.argsort(score, kind="stable")
    near = order[: max(_NEAR_ROWS, int(_NEAR_SHARE * score.size))]
    start, mean = float(score[order[0]]), float(score[near].mean())
    centred = score[near] - mean
    spread = float(centred @ centred)
    slope = max(float(centred @ outcome[near]) / spread, 0.0) if spread > 0 else 0.0
    level = float(outcome[near].mean()) + slope * (start - mean)
    knots, values = curve.knots
    above = knots > start
    points = np.concatenate([[min(low, start), start], knots[above]])
    line = np.concatenate(
        [[level - slope * (start - min(low, start)), level], values[above]]
    )
    points, first = np.unique(points, return_index=True)
    return Line(points, np.maximum.accumulate(line[first]))


def common_level(
    curves: Sequence[Curve],
    score: Array,
    group: Array,
    weight: Array,
    positive: float,
) -> tuple[float, Array]:
    """Return the level of outcomes at which as many rows are positive, and which are.

    Rows are taken by the outcome to expect of them; where a curve is flat, by score.
    The curves do not decrease; `positive` is the weight that is to be positive.
    """
    expected = np.empty(score.size)
    rank = np.empty(score.size)
    for g, curve in enumerate(curves):
        rows = np.flatnonzero(group == g)
        expected[rows] = curve.predict(score[rows])
        values, place = np.unique(score[rows], return_inverse=True)
        rank[rows] = (place + 1) / (values.size + 1)
    order = np.lexsort((-rank, -expected))
    reached = np.concatenate(([0.0], np.cumsum(weight[order])))
    # Rows that tie are taken together.
    same = np.zeros(reached.size, dtype=bool)
    same[1:-1] = (np.diff(expected[order]) == 0) & (np.diff(rank[order]) == 0)
    distance = np.where(same, np.inf, np.abs(reached - positive))
    n_chosen = int(np.argmin(distance))
    chosen = np.zeros(score.size, dtype=bool)
    chosen[order[:n_chosen]] = True
    edges = expected[order[max(n_chosen - 1, 0) : n_chosen + 1]]
    return float(edges.mean()), chosen


def threshold_at(curve: Curve, level: float, score: Array, chosen: Array) -> float:
    """Return the threshold of a group at the level, that parts its chosen rows."""
    threshold = float(curve.inverse(np.array([level]))[0])
    if not chosen.all():
        threshold = max(threshold, float(np.nextafter(score[~chosen].max(), np.inf)))
    if chosen.any():
        threshold = min(threshold, float(score[chosen].min()))
    return threshold


_RESPONSES = ("predict_proba", "decision_function")
# The constraint and adjustment for which thresholds can be drawn.
_DRAWN = ("equalized_odds", "both")


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
    adjust : {"both", "raise", "lower"}, default="both"
        "both" moves thresholds up in some groups and down in others. "raise" moves them
        to the highest of the groups' marginal outcomes; this needs no outcomes below
        the threshold, and fewer rows are positive. "lower" moves them to the lowest,
        and more rows are positive.
    constraint : {"positive_rate", "demographic_parity", "equal_opportunity", \
            "equalized_odds"} or None, default="positive_rate"
        "positive_rate" and None give all groups the same expected outcome. With
        ``adjust="both"``, "positive_rate" keeps the share of positives, up to one row
        (what eq. 4 means), and None takes the outcome of all rows together at the
        threshold. The others give all groups another rate in place of that outcome:
        the share of positives among their rows ("demographic_parity"), among their good
        outcomes ("equal_opportunity"), or the mean of those among good and among bad
        outcomes ("equalized_odds"). "both" keeps the share of positives, "raise" takes
        the lowest rate of a group and "lower" the highest.
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
        if they are not. The threshold of one group stays as it is.
    cluster : str, callable, True or None, default=None
        Where the independent units, such as users, come from, in the same way; only
        `fit` needs them.
    cv : int, splitter, iterable or None, default=None
        How to split into folds. It works as in `GroupCalibratedClassifier`.
    min_group_size : int, default=20
        A group with fewer known outcomes has the curve of all rows, with a warning.
    drop_metadata_columns : bool, default=False
        Whether the columns named by `sensitive_features` and `cluster` are hidden from
        the model, which otherwise gets X as it is.
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
        is the sum of the probabilities of the thresholds up to the person's score.
    marginal_outcomes_, marginal_outcomes_before_ : dict of float
        Expected outcome by group, at its own threshold and at the common threshold.
        The former are equal by construction, up to the grid of scores.
    marginal_outcome_errors_ : dict of float
        Standard errors of the outcomes at the groups' own thresholds, cluster-robust:
        those of `skrankfair.smoothing.nadaraya_watson` at the out-of-fold scores of the
        group, whichever the calibrator. They say how unequal the outcomes may still be.
        NaN where a group has no known outcomes around its threshold.
    positive_rate_, positive_rate_before_ : float
        Share of positives among the out-of-fold scores; with `randomize`, the expected
        share.
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
    f̂ stands in where they are unknown and in groups below `min_group_size`.

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
        adjust: str = "both",
        constraint: str | None = "positive_rate",
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
        """Fit the model and find the thresholds."""
        folds = out_of_fold(
            self.estimator,
            rows.X,
            rows.y,
            rows.metadata,
            cv=self.cv,
            cluster=rows.cluster_codes,
            classifier=True,
            n_jobs=self.n_jobs,
            methods=self._methods(),
        )
        self.estimator_ = clone(self.estimator)
        if not isinstance(self.estimator, FrozenEstimator):
            known = labelled(rows.y, np.arange(len(rows.y)))
            fit = fit_parameters(self.estimator, rows.metadata)
            fit = taken(fit, known, len(rows.y))
            self.estimator_.fit(rows_of(rows.X, known), rows.y[known], **fit)
        scored = np.concatenate([fold.rows for fold in folds])
        self._find(rows, scored, np.concatenate([fold.scores for fold in folds]))

    def decision_function(self, X: Any, sensitive_features: Any = None) -> Array:
        """Return the score minus the threshold of the row's group.

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

        Warns
        -----
        UserWarning
            It names the groups that `fit` has not seen, which get the threshold of all
            rows together.
        """
        check_is_fitted(self)
        features, labels, metadata = self._predict_rows(X, sensitive_features)
        score = scores_of(self.estimator_, features, metadata, self._methods())
        groups = (
            Groups.of_everyone(score.size)
            if labels is None
            else disjoint_groups(labels)
        )
        check_lengths(X=score.size, sensitive_features=groups.n_rows)
        if unseen := [g for g in groups.labels if g not in self.thresholds_]:
            warn_user(
                "Groups that fit has not seen get the threshold of all rows together: "
                f"{quoted(unseen)} (seen: {quoted(list(self.thresholds_))}).",
                UserWarning,
            )
        thresholds = np.array(
            [self.thresholds_.get(g, self.pooled_threshold_) for g in groups.labels]
        )
        threshold = thresholds[groups.values]
        self._draw(groups, threshold)
        return score - threshold

    def _draw(self, groups: Groups, threshold: Array) -> None:
        """Draw the threshold of each row whose group has several."""
        several = {g: s for g, s in self.randomized_thresholds_.items() if len(s) > 1}
        if not several:
            return
        chance = generator(self.random_state).random(threshold.size)
        for label, rows in zip(groups.labels, groups_rows(groups), strict=True):
            if label in several:
                values = np.array(list(several[label]))
                shares = list(several[label].values())
                place = np.searchsorted(np.cumsum(shares[:-1]), chance[rows], "right")
                threshold[rows] = values[place]

    def predict(self, X: Any, sensitive_features: Any = None) -> Array:
        """Return the second class where the score reaches the group's threshold.

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
        positive = self.decision_function(X, sensitive_features) >= 0
        return self.classes_[positive.astype(int)]

    def _methods(self) -> tuple[str, ...]:
        return _RESPONSES if self.response_method == "auto" else (self.response_method,)

    def _check_options(self) -> None:
        check_number(self.threshold, "threshold", -np.inf, np.inf)
        check_choice(self.adjust, "adjust", ("both", "raise", "lower"))
        check_choice(self.constraint, "constraint", ("positive_rate", *RATES, None))
        check_choice(self.randomize, "randomize", (False, True))
        if self.randomize and (self.constraint, self.adjust) != _DRAWN:
            raise ValueError(
                "randomize=True needs constraint='equalized_odds' and adjust='both'; "
                f"got constraint={self.constraint!r} and adjust={self.adjust!r}."
            )
        generator(self.random_state)
        check_choice(self.response_method, "response_method", ("auto", *_RESPONSES))
        check_choice(self.drop_metadata_columns, "drop_metadata_columns", (False, True))
        check_number(self.min_group_size, "min_group_size", 1, np.inf, integer=True)
        check_calibrator(self.calibrator)

    def _find(self, rows: FitRows, scored: Array, score: Array) -> None:
        """Find the common outcome and the thresholds that go with it."""
        groups = Groups.of_everyone(len(rows.y)) if rows.groups is None else rows.groups
        weight = np.ones(len(rows.y)) if rows.weight is None else rows.weight
        counted = np.flatnonzero(weight[scored] > 0)
        scored, score = scored[counted], score[counted]
        weight, groups = weight[scored], groups.take(scored).without_unused()
        outcome = (rows.y[scored] == self.classes_[1]).astype(float)
        if rows.y.dtype.kind == "f":
            outcome[np.isnan(rows.y[scored])] = np.nan
        curves = self._curves(rows, scored, score, outcome, groups)
        pooled, by_group = curves[-1], curves[:-1]
        before = score >= self.threshold
        at = np.array([self.threshold])
        marginal = [float(curve.predict(at)[0]) for curve in by_group]
        if len(by_group) == 1:
            level = marginal[0]
            found: list[Any] = [float(self.threshold)]
            self.pooled_threshold_ = float(pooled.inverse(np.array([level]))[0])
        elif self.randomize:
            found = self._random(curves, groups, score, outcome, weight)
        elif self.constraint in RATES:
            found = self._equal_rates(curves, groups, score, weight)
        else:
            found = self._equal_marginals(curves, groups, score, weight, marginal)
        drawn = [t if isinstance(t, dict) else {t: 1.0} for t in found]
        self.randomized_thresholds_: dict[Hashable, dict[float, float]] = dict(
            zip(groups.labels, drawn, strict=True)
        )
        means = [sum(cut * share for cut, share in s.items()) for s in drawn]
        thresholds = dict(zip(groups.labels, means, strict=True))
        self.thresholds_: dict[Hashable, float] = thresholds
        self.marginal_outcomes_before_ = dict(zip(groups.labels, marginal, strict=True))
        self.marginal_outcomes_ = {
            label: float(curve.predict(np.array([thresholds[label]]))[0])
            for label, curve in zip(groups.labels, by_group, strict=True)
        }
        self.marginal_outcome_errors_ = self._errors(
            rows, scored, score, outcome, groups
        )
        positive = np.empty(score.size)
        for mine, shares in zip(groups_rows(groups), drawn, strict=True):
            positive[mine] = np.sum(
                [share * (score[mine] >= cut) for cut, share in shares.items()], axis=0
            )
        self.positive_rate_ = float(np.average(positive, weights=weight))
        self.positive_rate_before_ = float(np.average(before, weights=weight))
        self._warn_of_lines(groups)

    def _equal_marginals(
        self,
        curves: Sequence[Curve],
        groups: Groups,
        score: Array,
        weight: Array,
        marginal: list[float],
    ) -> list[float]:
        """Return the thresholds of the groups at one outcome of those who just pass."""
        *by_group, pooled = curves
        if self.adjust == "both" and self.constraint is not None:
            positive = float(weight @ (score >= self.threshold))
            level, chosen = common_level(
                by_group, score, groups.values, weight, positive
            )
            found = [
                threshold_at(curve, level, score[mine], chosen[mine])
                for curve, mine in zip(by_group, groups_rows(groups), strict=True)
            ]
        else:
            level = {
                "both": float(pooled.predict(np.array([self.threshold]))[0]),
                "raise": max(marginal),
                "lower": min(marginal),
            }[self.adjust]
            found = [
                float(self.threshold)
                if marginal[g] == level
                else float(curve.inverse(np.array([level]))[0])
                for g, curve in enumerate(by_group)
            ]
        self.pooled_threshold_ = float(pooled.inverse(np.array([level]))[0])
        return found

    def _equal_rates(
        self, curves: Sequence[Curve], groups: Groups, score: Array, weight: Array
    ) -> list[float]:
        """Return the thresholds of the groups at one rate of positives."""
        rates, now = [], []
        everybody = np.arange(score.size)
        for rows, curve in zip([*groups_rows(groups), everybody], curves, strict=True):
            expected = curve.predict(score[rows])
            share = rate_shares(str(self.constraint), expected, weight[rows])
            if np.isnan(share).any():
                raise self._one_kind()
            rates.append(RateCurve.of_rows(score[rows], share, weight[rows]))
            now.append(float(share @ (score[rows] >= self.threshold)))
        *by_group, pooled = rates
        level = {
            "both": common_rate(by_group, float(weight @ (score >= self.threshold))),
            "raise": min(now[:-1]),
            "lower": max(now[:-1]),
        }[self.adjust]
        self.pooled_threshold_ = float(pooled.threshold[pooled.at(level)])
        stays = [self.adjust != "both" and rate == level for rate in now[:-1]]
        return [
            float(self.threshold if stay else curve.threshold[curve.at(level)])
            for curve, stay in zip(by_group, stays, strict=True)
        ]

    def _random(
        self,
        curves: Sequence[Curve],
        groups: Groups,
        score: Array,
        outcome: Array,
        weight: Array,
    ) -> list[dict[float, float]]:
        """Return the thresholds of the groups that are drawn, with probabilities."""
        pooled, hulls = curves[-1], []
        expected = np.empty(score.size)
        for mine, curve in zip(groups_rows(groups), curves[:-1], strict=True):
            fitted = np.clip(curve.predict(score[mine]), 0, 1)
            observed = np.isfinite(outcome[mine]) & (curve is not pooled)
            expected[mine] = np.where(observed, outcome[mine], fitted)
            good = float(weight[mine] @ expected[mine])
            if not 0 < good < weight[mine].sum():
                raise self._one_kind()
            hulls.append(Hull.of_rows(score[mine], expected[mine], weight[mine]))
        response = next(m for m in self._methods() if hasattr(self.estimator_, m))
        cost = float(self.threshold)
        if response != "predict_proba":
            cost = float(pooled.predict(np.array([cost]))[0])
        good = float(weight @ expected)
        bad = float(weight.sum()) - good
        found, level = random_thresholds(hulls, good, bad, float(np.clip(cost, 0, 1)))
        share = rate_shares(str(self.constraint), expected, weight)
        of_all = RateCurve.of_rows(score, share, weight)
        self.pooled_threshold_ = float(of_all.threshold[of_all.at(level)])
        return found

    def _one_kind(self) -> ValueError:
        return ValueError(
            f"constraint={self.constraint!r} needs good and bad outcomes in every "
            "group; a group has outcomes of one kind."
        )

    def _curves(
        self,
        rows: FitRows,
        scored: Array,
        score: Array,
        outcome: Array,
        groups: Groups,
    ) -> list[Curve]:
        """Return the curves of the groups and, last, that of all rows."""
        known = ~np.isnan(outcome)
        odds = bool(score.min() >= 0 and score.max() <= 1)

        def fitted(mine: Array) -> Curve:
            used = np.flatnonzero(mine & known)
            which = scored[used]
            codes = rows.cluster_codes
            curve = fit_curve(
                self.calibrator,
                score[used],
                outcome[used],
                weight=None if rows.weight is None else rows.weight[which],
                cluster=None if codes is None else codes[which],
                monotonic=True,
                log_odds=odds,
            )
            low = float(score[mine].min())
            if used.size == np.count_nonzero(mine) or low >= score[used].min():
                return curve
            return extrapolated(curve, score[used], outcome[used], low)

        pooled = fitted(np.ones(scored.size, dtype=bool))
        curves, small, lowest = [], [], {}
        for g, label in enumerate(groups.labels):
            mine = groups.mask(g)
            n_known = np.count_nonzero(mine & known)
            if self._grouped and n_known < self.min_group_size:
                small.append(label)
            curves.append(pooled if label in small else fitted(mine))
            if n_known < np.count_nonzero(mine):
                lowest[label] = float(score[mine & known].min(initial=np.inf))
        self._lowest = lowest
        if small:
            warn_user(
                f"Groups with fewer than min_group_size={self.min_group_size} known "
                f"outcomes have the curve of all rows: {quoted(small)}.",
                UserWarning,
            )
        return [*curves, pooled]

    def _errors(
        self,
        rows: FitRows,
        scored: Array,
        score: Array,
        outcome: Array,
        groups: Groups,
    ) -> dict[Hashable, float]:
        """Return the standard error of each group's outcome at its threshold."""
        errors = {}
        known = ~np.isnan(outcome)
        for g, label in enumerate(groups.labels):
            own, errors[label] = np.flatnonzero(groups.mask(g) & known), np.nan
            at = self.thresholds_[label]
            low, high = score[own].min(initial=np.inf), score[own].max(initial=-np.inf)
            if not low <= at <= high or low == high:
                continue
            which = scored[own]
            weight, codes = rows.weight, rows.cluster_codes
            curve = nadaraya_watson(
                outcome[own],
                score[own],
                [at],
                cluster=None if codes is None else codes[which],
                sample_weight=None if weight is None else weight[which],
            )
            errors[label] = float(curve.standard_error[0])
        return errors

    def _warn_of_lines(self, groups: Groups) -> None:
        lowest = {g: min(shares) for g, shares in self.randomized_thresholds_.items()}
        below = [
            label
            for label in groups.labels
            if lowest[label] < min(self._lowest.get(label, -np.inf), self.threshold)
        ]
        if below:
            warn_user(
                f"The thresholds of {quoted(below)} are below all known outcomes, "
                "where a line is assumed: they are suggestive. Lower them in steps and "
                "fit again with the new outcomes, or take adjust='raise'.",
                UserWarning,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def groups_rows(groups: Groups) -> list[Array]:
    """Return the rows of each group."""
    return [np.flatnonzero(groups.mask(g)) for g in range(len(groups))]
