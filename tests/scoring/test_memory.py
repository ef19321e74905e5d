"""What is behind the scores of a search is found again by value and origin."""

import numpy as np
import pytest
from sklearn.ensemble import BaggingRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skrankfair.metrics import pairwise_exposure
from skrankfair.scoring import FairnessScore
from skrankfair.scoring import _memory as _scores


class TestMemory:
    """Scores are found again by value; equal ones by their origin."""

    def make(self, value, label, origin):
        rng = np.random.default_rng(label)
        y, s = rng.normal(size=(2, 20))
        estimates = pairwise_exposure(
            y,
            s,
            sensitive_features=np.arange(20) % 2,
            qid=np.arange(20) // 4 + 5 * label,
        )
        scorer, model, test_set = origin
        made = _scores.Origin.of(scorer, -1, model, test_set, estimates)
        return FairnessScore(value, estimates.compact(), None, made)

    @pytest.fixture(autouse=True)
    def forget(self, monkeypatch):
        monkeypatch.setattr(_scores, "_SCORES", {})

    def found(self, values, params):
        pairs = _scores.Memory().find(np.array(values), params, "gap")
        return [score for score, _ in pairs]

    def test_equal_scores_of_two_candidates_and_two_folds(self):
        made = {
            (candidate, fold): self.make(
                -0.5, fold, ("s", Ridge(alpha=candidate), [fold])
            )
            for candidate in (0, 1)
            for fold in (0, 1)
        }
        for candidate in (0, 1):
            found = self.found([-0.5, -0.5], {"alpha": candidate})
            expected = [made[candidate, fold] for fold in (0, 1)]
            assert {id(score) for score in found} == {id(score) for score in expected}

    def test_scorers_are_not_mixed(self):
        a = [
            self.make(-0.1, 0, ("a", Ridge(alpha=0), [0])),
            self.make(-0.2, 1, ("a", Ridge(alpha=0), [1])),
        ]
        self.make(-0.1, 2, ("b", Ridge(alpha=0), [0]))
        assert self.found([-0.1, -0.2], {"alpha": 0}) == a
        with pytest.raises(ValueError, match="not made in this session"):
            self.found([-0.1, -0.3], {"alpha": 0})

    def test_the_newest_of_the_same_origin(self):
        self.make(-0.1, 0, ("a", Ridge(alpha=0), [0]))
        new = self.make(-0.1, 0, ("a", Ridge(alpha=0), [0]))
        assert self.found([-0.1], {"alpha": 0})[0] is new
        assert len(_scores._SCORES) == 1

    def test_the_oldest_are_forgotten(self, monkeypatch):
        monkeypatch.setattr(_scores, "_KEPT", 2)
        for label in range(3):
            self.make(-0.1 * (label + 1), label, ("a", Ridge(alpha=0), [label]))
        kept = [float(score) for score in _scores._SCORES.values()]
        assert kept == pytest.approx([-0.2, -0.3])


def test_parameters_as_text():
    """Those of nested estimators too; arrays are left out."""
    ridge = Ridge(alpha=np.float64(2), solver="svd")
    texts = _scores.described(
        {"a": 1, "b": None, "c": [1], "d": np.zeros(2), "e": np.mean, "f": ridge}
    )
    assert texts["f"] == "Ridge"
    assert texts["f__solver"] == "'svd'"
    assert {k: v for k, v in texts.items() if k < "f"} == {
        "a": "1",
        "b": "None",
        "e": "mean",
    }
    outer = make_pipeline(StandardScaler(), BaggingRegressor(ridge))
    name = "baggingregressor__estimator__alpha"
    assert _scores.described(outer.get_params())[name] == texts["f__alpha"]
