"""Thresholds drawn at random, with equal true and false positive rates."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from skrankfair.mitigation import GroupThresholdClassifier
from tests.mitigation.data import Score, mortgages, recidivism, thresholds_of

OPTIONS = {
    "constraint": "equalized_odds",
    "randomize": True,
    "random_state": 0,
    "sensitive_features": "group",
}
fitted = partial(thresholds_of, calibrator="isotonic", **OPTIONS)


def chances(model, X):
    """The probability that each row is positive, row by row."""
    return np.array(
        [
            sum(p for cut, p in model.randomized_thresholds_[g].items() if s >= cut)
            for g, s in zip(X["group"], X["score"], strict=True)
        ]
    )


def expected_rates(chance, X, y, weight=None):
    """By group the expected true and false positive rate."""
    weight = np.ones(len(y)) if weight is None else weight
    groups = [np.asarray(X["group"] == g) for g in np.unique(X["group"])]
    return np.array(
        [
            [np.average(chance[rows], weights=weight[rows]) for rows in (good, bad)]
            for good, bad in ((mine & (y == 1), mine & (y == 0)) for mine in groups)
        ]
    )


def expected_cost(chance, y, cost, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    wrong = np.where(y == 1, (1 - cost) * (1 - chance), cost * chance)
    return float(weight @ wrong)


def drawn(n, seed, groups=("a", "b"), decimals=None):
    """Scores that say more of some groups than of others."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"score": rng.random(n), "group": rng.choice(groups, n)})
    power = X["group"].map({g: 4.0 / (i + 1) for i, g in enumerate(groups)})
    y = (rng.random(n) < expit(power * 3 * (X["score"] - 0.5))).to_numpy(float)
    if decimals is not None:
        X["score"] = X["score"].round(decimals)
    return X, y


def least_cost(X, y, cost, weight):
    """The linear programme over the probabilities of all thresholds of all groups."""
    groups = np.unique(X["group"])
    columns, prices, owner = [], [], []
    for g in groups:
        mine = (X["group"] == g).to_numpy()
        for cut in [*np.unique(X["score"][mine]), np.inf]:
            chosen = mine & (X["score"] >= cut).to_numpy()
            good, bad = weight * (y == 1), weight * (y == 0)
            columns.append([good[chosen].sum() / good[mine].sum()])
            columns[-1].append(bad[chosen].sum() / bad[mine].sum())
            prices.append(cost * bad[chosen].sum() - (1 - cost) * good[chosen].sum())
            owner.append(g)
    columns, owner = np.array(columns).T, np.array(owner)
    rows = [(owner == g).astype(float) for g in groups]
    values = [1.0] * len(groups)
    for g in groups[1:]:
        sign = (owner == groups[0]) * 1.0 - (owner == g)
        rows += list(columns * sign)
        values += [0.0, 0.0]
    found = linprog(prices, A_eq=np.array(rows), b_eq=values)
    assert found.status == 0
    return found.fun + (1 - cost) * float(weight @ (y == 1))


class TestAgainstALinearProgramme:
    @pytest.mark.parametrize("seed", range(12))
    @pytest.mark.parametrize("groups", ["ab", "abc"])
    def test_cost_and_rates(self, seed, groups):
        X, y = drawn(150, seed, tuple(groups), decimals=None if seed % 2 else 1)
        rng = np.random.default_rng(seed)
        weight = rng.uniform(0.5, 2, 150) if seed % 3 == 0 else np.ones(150)
        cost = [0.5, 0.2, 0.7, 0.9][seed % 4]
        model = fitted(X, y, weight, threshold=cost)
        chance = chances(model, X)
        assert np.ptp(expected_rates(chance, X, y, weight), axis=0).max() < 1e-12
        found = expected_cost(chance, y, cost, weight)
        assert found == pytest.approx(least_cost(X, y, cost, weight), abs=1e-6)
        assert model.positive_rate_ == pytest.approx(np.average(chance, weights=weight))
        for shares in model.randomized_thresholds_.values():
            assert 1 <= len(shares) <= 4
            assert sum(shares.values()) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("rows", [mortgages, recidivism])
@pytest.mark.parametrize("seed", [0, 1])
def test_is_no_less_accurate_than_fairlearns(rows, seed):
    fairlearn = pytest.importorskip("fairlearn.postprocessing")
    X, y = rows()
    part = np.random.default_rng(seed).permutation(len(y))[: 2000 if seed else len(y)]
    X, y = X.iloc[part].reset_index(drop=True), y[part]
    other = fairlearn.ThresholdOptimizer(
        estimator=Score(),
        constraints="equalized_odds",
        predict_method="predict_proba",
        prefit=True,
    ).fit(X, y, sensitive_features=X["group"])
    theirs = other._pmf_predict(X, sensitive_features=X["group"])[:, 1]
    ours = chances(fitted(X, y), X)
    theirs_rates, rates = (expected_rates(c, X, y) for c in (theirs, ours))
    assert np.ptp(theirs_rates, axis=0).max() < 1e-9
    assert np.ptp(rates, axis=0).max() < 1e-12
    accuracy, reached = (np.mean(np.where(y, c, 1 - c)) for c in (ours, theirs))
    # Their grid has steps of a thousandth of the false positive rate.
    assert -1e-9 <= accuracy - reached < 2e-3


class TestDraws:
    X, Y = drawn(2000, 0)

    def test_an_int_gives_the_same_decisions(self):
        model = fitted(self.X, self.Y)
        first = model.predict(self.X)
        again = pickle.loads(pickle.dumps(model))
        for same in (model, again, clone(model).fit(self.X, self.Y)):
            np.testing.assert_array_equal(first, same.predict(self.X))
        np.testing.assert_array_equal(first == 1, model.decision_function(self.X) >= 0)
        for state in (1, np.random.default_rng(0), None):
            model.set_params(random_state=state)
            draws = [model.predict(self.X) for _ in range(2)]
            assert (draws[0] == draws[1]).all() == (state == 1)
            assert (draws[1] != first).any()

    def test_equal_scores_may_be_treated_differently(self):
        model = fitted(self.X, self.Y)
        group, shares = max(
            model.randomized_thresholds_.items(), key=lambda item: len(item[1])
        )
        equal = pd.DataFrame({"score": [max(shares) - 1e-9] * 200, "group": group})
        assert set(model.predict(equal)) == {0, 1}

    def test_without_randomize_nothing_is_drawn(self):
        model = fitted(self.X, self.Y, randomize=False, random_state=None)
        found = {g: {t: 1.0} for g, t in model.thresholds_.items()}
        assert model.randomized_thresholds_ == found
        np.testing.assert_array_equal(model.predict(self.X), model.predict(self.X))

    def test_unknown_outcomes_are_those_to_expect(self):
        hidden = np.random.default_rng(1).random(2000) < 0.3
        model = fitted(self.X, np.where(hidden, np.nan, self.Y))
        known = fitted(self.X[~hidden], self.Y[~hidden])
        gaps = np.ptp(expected_rates(chances(model, self.X), self.X, self.Y), axis=0)
        # Four standard errors of the share of 600 hidden outcomes.
        assert gaps.max() < 0.08
        assert model.thresholds_ == pytest.approx(known.thresholds_, abs=0.15)

    def test_cost_of_a_score_that_is_no_probability(self):
        """The threshold of log-odds costs as the probability that it stands for."""
        rng = np.random.default_rng(0)
        group = rng.choice(["a", "b"], 8000)
        X = pd.DataFrame({"x": rng.normal(size=8000), "group": group})
        y = rng.random(8000) < expit(2 * X["x"] * np.where(group == "a", 1, 0.5))
        options, rates = {**OPTIONS, "drop_metadata_columns": True}, []
        for threshold, response in (
            (0.7, "predict_proba"),
            (np.log(7 / 3), "decision_function"),
            (0.3, "predict_proba"),
        ):
            options |= {"threshold": threshold, "response_method": response}
            model = GroupThresholdClassifier(LogisticRegression(), **options)
            rates.append(model.fit(X, y).positive_rate_)
        assert rates[0] == pytest.approx(rates[1], abs=0.06)
        assert rates[2] > rates[0] + 0.2

    @pytest.mark.parametrize("seed", range(4))
    def test_ends(self, seed):
        """Costs of 0 and 1: all good outcomes are accepted, or all bad ones refused."""
        X, y = drawn(100, seed)
        for cost, column, rate in ((0.0, 0, 1.0), (1.0, 1, 0.0)):
            rates = expected_rates(chances(fitted(X, y, threshold=cost), X), X, y)
            np.testing.assert_allclose(rates[:, column], rate, atol=1e-12)
            assert np.ptp(rates, axis=0).max() < 1e-12
