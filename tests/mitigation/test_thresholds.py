"""Thresholds by group with equal marginal outcomes."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedKFold
from sklearn.svm import LinearSVC

from skrankfair.mitigation import GroupThresholdClassifier
from tests.mitigation.common import FEATURES, problem
from tests.mitigation.data import thresholds_of, uniform

# f_a(s) = s and f_b(s) = s², scores uniform, groups of one size, threshold 1/2. With
# the level c: t_a = c, t_b = √c, and (1 - c + 1 - √c) / 2 = 1/2: √c = (√5 - 1) / 2.
ROOT = (np.sqrt(5) - 1) / 2
TRUTH = {"a": ROOT**2, "b": ROOT}


class TestClosedForm:
    @pytest.mark.parametrize("calibrator", ["nadaraya_watson", "isotonic"])
    def test_theorem_4(self, calibrator):
        found = []
        for seed in range(10):
            model = thresholds_of(*uniform(20_000, seed)[:2], calibrator=calibrator)
            found.append([model.thresholds_[g] for g in "ab"])
        # Ten fits; isotonic regression is the rougher one.
        np.testing.assert_allclose(np.mean(found, 0), [*TRUTH.values()], atol=0.01)
        assert np.std(found, 0).max() < 0.05

    def test_same_positive_rate_and_equal_marginal_outcomes(self):
        X, y, _ = uniform(20_000, 0)
        model = thresholds_of(X, y)
        positive = model.predict(X)
        assert abs(positive.sum() - (X["score"] >= 0.5).sum()) <= 1
        assert model.positive_rate_ == positive.mean()
        assert np.ptp(list(model.marginal_outcomes_.values())) < 1e-3
        before = model.marginal_outcomes_before_
        assert before["a"] - before["b"] == pytest.approx(0.25, abs=0.05)

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({"adjust": "raise"}, {"a": 0.5, "b": np.sqrt(0.5)}),
            ({"adjust": "lower"}, {"a": 0.25, "b": 0.5}),
            # The outcome of all rows at 1/2 is (1/2 + 1/4) / 2.
            ({"constraint": None}, {"a": 0.375, "b": np.sqrt(0.375)}),
        ],
    )
    def test_other_levels(self, options, expected):
        model = thresholds_of(*uniform(40_000, 0)[:2], **options)
        assert model.thresholds_ == pytest.approx(expected, abs=0.04)
        if "adjust" in options:
            assert 0.5 in model.thresholds_.values()

    def test_raising_accepts_nobody_who_was_refused(self):
        X, y, _ = uniform(2000, 0)
        X["score"] *= np.where(X["group"] == "b", 0.4, 1)
        model = thresholds_of(X, y * (X["group"] == "a"), adjust="raise")
        assert model.thresholds_ == {"a": 0.5, "b": 0.5}

    def test_outcomes_missing_below_the_threshold(self):
        X, y, _ = uniform(40_000, 0)
        missing = np.where(X["score"] < 0.5, np.nan, y)
        with pytest.warns(UserWarning, match="thresholds of 'a' are below all known"):
            model = thresholds_of(X, missing)
        # The line at 1/2 is the tangent of the curve, which for a is the curve.
        assert model.thresholds_ == pytest.approx(TRUTH, abs=0.04)
        assert model.positive_rate_ == pytest.approx(model.positive_rate_before_)
        # Without what is missing: no warning.
        raised = thresholds_of(X, missing, adjust="raise")
        assert raised.thresholds_["b"] == pytest.approx(np.sqrt(0.5), abs=0.04)

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"adjust": "raise"},
            {"calibrator": "platt"},
            {"constraint": "equal_opportunity"},
            {"constraint": "equalized_odds", "randomize": True, "random_state": 0},
        ],
    )
    def test_low_scores_that_are_good(self, options):
        """Risks of default are one minus chances to repay, and so are decisions."""
        X, y, _ = uniform(2000, 0)
        risk = X.assign(score=1 - X["score"])
        high = thresholds_of(X, y, threshold=0.4, **options)
        low = thresholds_of(risk, 1 - y, threshold=0.6, favorable="low", **options)
        accepted = low.predict(risk) == 0
        np.testing.assert_array_equal(accepted, high.predict(X) == 1)
        np.testing.assert_array_equal(accepted, low.decision_function(risk) <= 0)
        for name in ("thresholds_", "marginal_outcomes_"):
            turned = {group: 1 - value for group, value in getattr(low, name).items()}
            assert turned == pytest.approx(getattr(high, name))
        for name in ("positive_rate_", "positive_rate_before_"):
            assert getattr(low, name) == pytest.approx(getattr(high, name))

    def test_outcomes_missing_above_the_threshold_of_a_risk(self):
        X, y, _ = uniform(4000, 0)
        risk = X.assign(score=(1 - X["score"]).round(2))
        known = np.where(risk["score"] > 0.5, np.nan, 1 - y)
        with pytest.warns(UserWarning, match="'a' are above all known outcomes"):
            low = thresholds_of(risk, known, favorable="low")
        assert low.thresholds_["b"] < 0.5 < low.thresholds_["a"]
        at = risk.assign(score=[low.thresholds_[g] for g in risk["group"]])
        assert (low.decision_function(at) <= 1e-15).all()
        low = thresholds_of(risk, known, favorable="low", threshold=0.2, adjust="raise")
        accepted = risk["score"] <= risk["group"].map(low.thresholds_)
        np.testing.assert_array_equal(low.predict(risk) == 0, accepted)

    def test_ties_and_weights(self):
        X, y, _ = uniform(4000, 0)
        X["score"] = X["score"].round(2)
        weight = np.random.default_rng(0).integers(0, 3, 4000)
        model = thresholds_of(X, y, weight)
        again = thresholds_of(X.loc[X.index.repeat(weight)], y.repeat(weight))
        assert model.thresholds_ == pytest.approx(again.thresholds_)
        # A score of one group is a hundredth of its rows.
        assert abs(model.positive_rate_ - model.positive_rate_before_) < 0.01


COLUMNS = {"sensitive_features": "group", "cluster": "user"}
COLUMNS["drop_metadata_columns"] = True


class TestModel:
    def test_one_group_keeps_its_threshold(self):
        """And a score at it is accepted, by the sign of the decisions too."""
        X, y = problem(1000, columns=FEATURES)
        proba = LogisticRegression().fit(X, y).predict_proba(X)[:, 1]
        for threshold in (0.6, float(proba[0])):
            model = GroupThresholdClassifier(LogisticRegression(), threshold=threshold)
            predicted = model.fit(X, y).predict(X)
            np.testing.assert_array_equal(predicted == 1, proba >= threshold)
            decisions = model.decision_function(X)
            np.testing.assert_array_equal(decisions > 0, proba >= threshold)

    @pytest.mark.parametrize(
        ("estimator", "options"),
        [
            (LogisticRegression(), {}),
            (LogisticRegression(), {"response_method": "decision_function"}),
            (LinearSVC(), {"threshold": 0.0}),
        ],
    )
    def test_any_classifier(self, estimator, options):
        X, y = problem(3000)
        model = GroupThresholdClassifier(estimator, **COLUMNS, **options)
        positive = model.fit(X, y).predict(X) == 1
        assert model.thresholds_["a"] < model.thresholds_["b"]
        assert abs(model.positive_rate_ - model.positive_rate_before_) < 0.01
        assert 0.1 < positive.mean() < 0.7
        model.set_params(favorable="low", response_method="decision_function")
        np.testing.assert_array_equal(model.decision_function(X) > 0, positive)

    def test_missing_outcomes_do_not_train_the_model(self):
        X, y = problem(1000)
        known = np.random.default_rng(0).random(1000) < 0.7
        y = np.where(known, y, np.nan)
        model = GroupThresholdClassifier(LogisticRegression(), **COLUMNS).fit(X, y)
        plain = LogisticRegression().fit(X.loc[known, FEATURES], y[known])
        np.testing.assert_array_equal(model.estimator_.coef_, plain.coef_)
        found = model.predict(X)
        assert set(found) == {0.0, 1.0}
        nullable = X.assign(group=(X["group"] == "b").astype("boolean"))
        model.fit(nullable, pd.Series(y, dtype="boolean"))
        np.testing.assert_array_equal(model.predict(nullable), found)

    def test_scores_that_several_folds_give_to_a_row_are_one(self):
        X, y = problem(600)
        cv = [*RepeatedKFold(n_splits=3, n_repeats=3, random_state=0).split(X)]
        columns = {"sensitive_features": "group", "drop_metadata_columns": True}
        model = GroupThresholdClassifier(LogisticRegression(), **columns, cv=cv)
        errors = model.fit(X, y).marginal_outcome_errors_
        assert errors == model.fit(X, y, cluster=X.index).marginal_outcome_errors_
        once = model.set_params(cv=3).fit(X, y).marginal_outcome_errors_
        assert errors["a"] > 0.8 * once["a"]

    def test_bad_input_raises(self):
        X, y = problem(100, columns=FEATURES)
        model = GroupThresholdClassifier(LogisticRegression())
        with pytest.raises(ValueError, match="contains NaN in all rows"):
            model.fit(X, np.full(100, np.nan))
        svc = GroupThresholdClassifier(LinearSVC(), response_method="predict_proba")
        with pytest.raises(ValueError, match="estimator must have predict_proba"):
            svc.fit(X, y)


RATES = ("demographic_parity", "equal_opportunity", "equalized_odds")


def rates_of(model, X, y):
    """By group the shares of positives: of all rows, of good and of bad outcomes."""
    chosen, every = model.predict(X) == 1, np.full(len(y), True)
    groups = [np.asarray(X["group"] == g) for g in np.unique(X["group"])]
    outcomes = (every, y == 1, y == 0)
    return np.array([[chosen[mine & o].mean() for o in outcomes] for mine in groups])


class TestRates:
    """Other rates than marginal outcomes made equal, by the same curves."""

    X, Y, _ = uniform(20_000, 0)

    @pytest.mark.parametrize("constraint", RATES)
    @pytest.mark.parametrize("adjust", ["both", "raise", "lower"])
    def test_are_equal(self, constraint, adjust):
        model = thresholds_of(self.X, self.Y, constraint=constraint, adjust=adjust)
        share, good, bad = np.diff(rates_of(model, self.X, self.Y), axis=0)[0]
        # Three standard errors of a difference of shares of about 5,000 rows each.
        if constraint == "demographic_parity":
            assert abs(share) < 2e-4  # no outcome is estimated
        elif constraint == "equal_opportunity":
            assert abs(good) < 0.03
        else:
            assert abs(good + bad) < 0.04
        moved = model.positive_rate_ - model.positive_rate_before_
        if adjust == "both":
            assert abs(moved) < 2e-4
        else:
            assert moved * (1 if adjust == "lower" else -1) > 0
            assert 0.5 in model.thresholds_.values()

    def test_equalized_odds_share_the_distance(self):
        """No other pair of thresholds with as many positives has a smaller one."""
        model = thresholds_of(self.X, self.Y, constraint="equalized_odds")
        *_, expected = uniform(20_000, 0)
        in_a, score = (self.X["group"] == "a").to_numpy(), self.X["score"].to_numpy()

        def distance(*cuts):
            chosen = score >= np.where(in_a, *cuts)
            rates = [
                [np.average(chosen[mine], weights=w[mine]) for mine in (in_a, ~in_a)]
                for w in (expected, 1 - expected)
            ]
            return np.abs(np.diff(rates)).max()

        found = distance(model.thresholds_["a"], model.thresholds_["b"])
        in_b = np.sort(score[~in_a])[::-1]
        positive = int((model.decision_function(self.X) > 0).sum())
        others = [
            distance(cut, in_b[positive - (score[in_a] >= cut).sum()])
            for cut in np.linspace(0.3, 0.6, 61)
        ]
        assert found < min(others) + 0.01

    @pytest.mark.parametrize("adjust", ["both", "raise", "lower"])
    def test_three_rows_do_not_decide_for_all(self, adjust):
        """The lowest or highest scores alone would refuse or accept everybody."""
        X, y, rank = self.X[:2000], self.Y[:2000], self.X["score"][:2000].rank()
        X = X.assign(group=X["group"].mask(rank < 4, "low").mask(rank > 1997, "high"))
        for randomize in {False, adjust == "both"}:
            options = {"adjust": adjust, "randomize": randomize}
            options["constraint"] = "equalized_odds"
            with pytest.warns(UserWarning, match="have the curve of all rows"):
                model = thresholds_of(X, y, **options)
            # Without the six rows it is 0.46 ("raise") to 0.53 ("lower").
            assert 0.4 < model.positive_rate_ < 0.6
            assert np.isnan(model.marginal_outcome_errors_["low"])

    def test_a_group_with_one_kind_of_outcome(self):
        y = np.where(self.X["group"] == "b", 0.0, self.Y)
        options = {"calibrator": "isotonic", "constraint": "equal_opportunity"}
        with pytest.raises(ValueError, match="good and bad outcomes in every group"):
            thresholds_of(self.X, y, **options)
