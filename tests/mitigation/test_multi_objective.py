"""Several scores calibrated at once: parity of every composite."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from scipy.special import logit
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

from skrankfair.mitigation import GroupCalibrator, MultiObjectiveCalibrator, _curves
from skrankfair.smoothing import NadarayaWatsonRegressor
from tests.mitigation.data import SCORES, two_scores

COLUMNS = {"sensitive_features": "group", "cluster": "user"}


def of_one_group(n=300, seed=0):
    """Two scores without groups, and two outcomes."""
    X, y, _ = two_scores(n, seed)
    return X[SCORES], y


def appendix_b(n, seed):
    """Y1 = S1 + S2 and Y2 = S2 + noise: each score is calibrated for its own."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.column_stack([X.sum(1), X[:, 1] + rng.normal(size=n)])


class TestTheory:
    @pytest.mark.parametrize("calibrator", ["nadaraya_watson", LinearRegression()])
    def test_appendix_b(self, calibrator):
        X, y = appendix_b(20_000, 0)
        model = MultiObjectiveCalibrator(calibrator).fit(X, y)
        fresh, outcome = appendix_b(5000, 1)
        fresh, outcome = fresh[inside := (np.abs(fresh) < 1.5).all(1)], outcome[inside]
        expected = fresh[:, 0] + 2 * fresh[:, 1]
        np.testing.assert_allclose(model.predict(fresh), expected, atol=0.35)
        one_by_one = GroupCalibrator(LinearRegression())
        alone = sum(
            one_by_one.fit(X[:, [k]], y[:, k]).transform(fresh[:, [k]])[:, 0]
            for k in range(2)
        )
        error = np.mean((outcome.sum(1) - model.predict(fresh)) ** 2)
        # What the scores one by one leave out is S2, whose variance is below 1.
        gain = np.mean((outcome.sum(1) - alone) ** 2) - error
        assert gain == pytest.approx(np.mean(fresh[:, 1] ** 2), abs=0.12)
        parts = np.mean((outcome - model.transform(fresh)) ** 2, axis=0)
        assert parts[0] < 0.05
        assert parts[1] == pytest.approx(1, abs=0.1)

    @pytest.mark.parametrize(
        "calibrator", ["nadaraya_watson", "platt", LinearRegression()]
    )
    def test_clusters_outweigh_rows(self, calibrator):
        """A user of 5000 rows, whose outcomes are 0.4 higher, among 1000."""
        rng = np.random.default_rng(0)
        user = np.concatenate([np.arange(2000) // 2, np.full(5000, 1000)])
        X = rng.uniform(0.1, 0.5, (user.size, 2))
        y = rng.random(X.shape) < X + 0.4 * (user == 1000)[:, None]
        grid = np.full((1, 2), 0.3)
        model = MultiObjectiveCalibrator(calibrator).fit(X, y, cluster=user)
        np.testing.assert_allclose(model.transform(grid), 0.3, atol=0.06)
        model.set_params(cluster_weight="row").fit(X, y, cluster=user)
        assert (model.transform(grid) > 0.5).all()


class TestMethods:
    def test_platt_is_a_logistic_regression_of_each_outcome(self):
        X, y = of_one_group(1000)
        links = logit(X.to_numpy())
        found = MultiObjectiveCalibrator("platt").fit(X, y).transform(X)
        for k, name in enumerate(SCORES):
            plain = LogisticRegression(C=np.inf, tol=1e-10).fit(links, y[name])
            expected = plain.predict_proba(links)[:, 1]
            # Platt's outcomes are not quite 0 and 1.
            np.testing.assert_allclose(found[:, k], expected, atol=5e-3)

    @pytest.mark.parametrize("many", [20_000, 1000])
    def test_a_grid_is_the_smoother(self, monkeypatch, many):
        """Of many rows between the nodes of a grid, of few at each row."""
        monkeypatch.setattr(_curves, "_MANY", many)
        (X, y), (fresh, _) = of_one_group(6000), of_one_group(300, 1)
        found = MultiObjectiveCalibrator().fit(X, y).transform(fresh)
        for k, name in enumerate(SCORES):
            expected = NadarayaWatsonRegressor().fit(X, y[name]).predict(fresh)
            np.testing.assert_allclose(found[:, k], expected, atol=2e-3)

    @pytest.mark.parametrize(
        ("calibrator", "at_once"),
        [
            (RandomForestRegressor(5, random_state=0), True),
            (GradientBoostingRegressor(n_estimators=5, random_state=0), False),
        ],
    )
    def test_any_estimator(self, calibrator, at_once):
        X, y = of_one_group()
        found = MultiObjectiveCalibrator(calibrator).fit(X, y).transform(X)
        data, outcomes = X.to_numpy(), [y] if at_once else [y[k] for k in SCORES]
        expected = [clone(calibrator).fit(data, one).predict(data) for one in outcomes]
        np.testing.assert_allclose(found, np.column_stack(expected))
        assert not hasattr(calibrator, "n_features_in_")

    def test_a_classifier_is_fitted_to_each_outcome(self):
        X, y = of_one_group()
        y["share"] = 1.0
        found = MultiObjectiveCalibrator(LogisticRegression()).fit(X, y).transform(X)
        plain = LogisticRegression().fit(X, y["click"])
        np.testing.assert_allclose(found[:, 0], plain.predict_proba(X)[:, 1])
        assert (found[:, 1] == 1).all()


class TestWeights:
    def test_may_change_after_the_fit(self):
        X, y = of_one_group()
        model = MultiObjectiveCalibrator("platt", [1, 2]).fit(X, y)
        parts = model.transform(X)
        np.testing.assert_allclose(model.predict(X), parts @ [1, 2])
        for weights in ([0.5, -3], {"share": -3, "click": 0.5}):
            model.set_params(weights=weights)
            np.testing.assert_allclose(model.predict(X), parts @ [0.5, -3])

    def test_score_is_that_of_the_composite(self):
        X, y, _ = two_scores(1000)
        model = MultiObjectiveCalibrator("platt", [1, 2], **COLUMNS).fit(X, y)
        composite = y.to_numpy() @ [1, 2]
        rest = np.mean((composite - model.predict(X)) ** 2)
        assert model.score(X, y) == pytest.approx(1 - rest / np.var(composite))


class TestGroupsAndInput:
    def test_names_of_objectives(self):
        X, y = of_one_group(100)
        model = MultiObjectiveCalibrator("platt").fit(X, pl.from_pandas(y))
        assert model.objectives_ == SCORES
        assert model.fit(X.to_numpy(), y.to_numpy()).objectives_ == ["x0", "x1"]

    def test_bad_input_raises(self):
        X, y, _ = two_scores(100)
        with pytest.raises(ValueError, match="calibrator must be one of"):
            MultiObjectiveCalibrator("isotonic").fit(X[SCORES], y)
        model = MultiObjectiveCalibrator("platt", **COLUMNS)
        for wrong, message in [
            (2 * y, r"y must be in \[0, 1\] for calibrator='platt'"),
            (y.assign(click=np.nan), "must be finite"),
            (y.rename(columns={"click": "composite"}), "named 'composite'"),
            (np.zeros((100, 2, 1)), "one column of outcomes per objective"),
        ]:
            with pytest.raises(ValueError, match=message):
                model.fit(X, wrong)
        model.fit(X, y)
        with pytest.raises(ValueError, match="y must have a column for each"):
            model.score(X, y["click"])
        with pytest.raises(ValueError, match="y must have its rows in the order of X"):
            model.score(X, y[::-1])
        with pytest.raises(ValueError, match="one weight for each objective"):
            model.set_params(weights=[1]).predict(X)
        alone = MultiObjectiveCalibrator("platt").fit(X[SCORES], y)
        with pytest.raises(ValueError, match="sensitive_features must be given"):
            alone.audit_objectives(X[SCORES], y)


class TestAudit:
    def test_names_numbers_and_pictures(self):
        plt = pytest.importorskip("matplotlib.pyplot")
        X, y, _ = two_scores(3000)
        fresh, outcome, _ = two_scores(1000, 1)
        model = MultiObjectiveCalibrator("platt", {"click": 1, "share": 3}, **COLUMNS)
        audit = model.fit(X, y).audit_objectives(fresh, outcome)
        frame = audit.to_frame()
        assert list(frame.index) == [*SCORES, "composite"]
        composite = outcome.to_numpy() @ [1, 3]
        error = np.mean((composite - model.predict(fresh)) ** 2)
        assert frame.loc["composite", "mean_squared_error"] == pytest.approx(error)
        raw = np.mean((composite - fresh[SCORES].to_numpy() @ [1, 3]) ** 2)
        moved = frame.loc["composite", "mean_squared_error_change"]
        assert moved == pytest.approx(error - raw)
        assert frame.loc["composite", "ci_high"] < 0
        assert "composite" in repr(audit)
        assert "composite" in audit._repr_html_()
        assert "before: click" in audit.summary()
        # Both and their composite are tested together.
        weak = dict.fromkeys(frame.index, SimpleNamespace(pvalue=0.02))
        assert "before: shown for none" in replace(audit, before=weak).summary()
        assert len(audit.plot().arrows_) == 3
        plt.close("all")

    def test_of_one_outcome_there_is_no_before(self):
        X, y, _ = two_scores(1000)
        model = MultiObjectiveCalibrator("platt", **COLUMNS).fit(X, y["click"])
        audit = model.audit_objectives(X, y["click"])
        assert audit.before == {}
        assert audit.to_frame()["pvalue_before"].isna().all()
        assert list(model.get_feature_names_out()) == ["objective0"]
