"""Several scores calibrated at once: parity of every composite."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy.special import expit, logit
from scipy.stats import binom
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import make_scorer, r2_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from skrankfair.mitigation import GroupCalibrator, MultiObjectiveCalibrator
from skrankfair.scoring import make_fairness_scorer
from skrankfair.smoothing import NadarayaWatsonRegressor
from tests.mitigation.data import parity_pvalue
from tests.seeds import rarely

SCORES = ["click", "share"]


def problem(n=2000, seed=0):
    """Two scores whose outcomes depend on both, differently in two groups."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(0.05, 0.95, (n, 2)), columns=SCORES)
    X["group"] = rng.choice(["a", "b"], n)
    X["user"] = np.arange(n) // 2
    expected = truth(X)
    y = pd.DataFrame(rng.random((n, 2)) < expected, columns=SCORES).astype(float)
    return X, y, expected


def truth(X):
    first, second = logit(X["click"]), logit(X["share"])
    b = (X["group"] == "b").to_numpy()
    both = [first + 0.5 * second - b, second + 0.6 * first * b]
    return expit(np.column_stack(both))


COLUMNS = {"sensitive_features": "group", "cluster": "user"}


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

    @pytest.mark.parametrize("calibrator", ["nadaraya_watson", "platt"])
    @pytest.mark.simulation
    def test_every_composite_has_parity_afterwards(self, calibrator):
        """Theorem 2: for weights that the fit does not know."""
        rejected, n_seeds = [], 12
        for seed in range(n_seeds):
            X, y, _ = problem(6000, seed)
            fresh, outcome, _ = problem(2000, 1000 + seed)
            model = MultiObjectiveCalibrator(calibrator, sensitive_features="group")
            model.fit(X.drop(columns="user"), y)
            fresh = fresh.drop(columns="user")
            weights = np.random.default_rng(seed).normal(size=2)
            model.set_params(weights=weights)
            y = outcome.to_numpy()
            outcomes = [*y.T, y @ weights, y @ weights]
            scores = [*model.transform(fresh).T, model.predict(fresh)]
            scores.append(fresh[SCORES].to_numpy() @ weights)
            rejected.append(
                [
                    parity_pvalue(*pair, fresh["group"]) < 0.05
                    for pair in zip(outcomes, scores, strict=True)
                ]
            )
        *after, before = np.sum(rejected, axis=0)
        assert before >= 9
        assert (np.array(after) <= binom.ppf(0.999, n_seeds, 0.07)).all()

    @pytest.mark.parametrize("calibrator", ["nadaraya_watson", "platt"])
    def test_finds_the_truth(self, calibrator):
        X, y, _ = problem(40_000)
        fresh, _, expected = problem(2000, 1)
        model = MultiObjectiveCalibrator(calibrator, **COLUMNS).fit(X, y)
        error = model.transform(fresh) - expected
        assert np.sqrt(np.mean(error**2)) < 0.035

    def test_clusters_outweigh_rows(self):
        """A user of 5000 rows, whose outcomes are 0.4 higher, among 1000."""
        rng = np.random.default_rng(0)
        user = np.concatenate([np.arange(2000) // 2, np.full(5000, 1000)])
        X = rng.uniform(0.1, 0.5, (user.size, 2))
        y = rng.random(X.shape) < X + 0.4 * (user == 1000)[:, None]
        grid = np.full((1, 2), 0.3)
        for calibrator in ("nadaraya_watson", "platt", LinearRegression()):
            model = MultiObjectiveCalibrator(calibrator).fit(X, y, cluster=user)
            np.testing.assert_allclose(model.transform(grid), 0.3, atol=0.06)
            model.set_params(cluster_weight="row").fit(X, y, cluster=user)
            assert (model.transform(grid) > 0.5).all()


class TestMethods:
    def test_platt_is_a_logistic_regression_of_each_outcome(self):
        X, y, _ = problem(1000)
        links = logit(X[SCORES].to_numpy())
        found = MultiObjectiveCalibrator("platt").fit(X[SCORES], y)
        for k, name in enumerate(SCORES):
            plain = LogisticRegression(C=np.inf, tol=1e-10).fit(links, y[name])
            np.testing.assert_allclose(
                found.transform(X[SCORES])[:, k],
                plain.predict_proba(links)[:, 1],
                atol=5e-3,  # Platt's outcomes are not quite 0 and 1
            )

    def test_a_grid_is_the_smoother(self):
        """Of many rows between the nodes of a grid, of few at each row."""
        X, y, _ = problem(6000)
        model = MultiObjectiveCalibrator().fit(X[SCORES], y)
        fresh = problem(300, 1)[0][SCORES]
        for k, name in enumerate(SCORES):
            smoother = NadarayaWatsonRegressor().fit(X[SCORES], y[name])
            np.testing.assert_allclose(
                model.transform(fresh)[:, k], smoother.predict(fresh), atol=2e-3
            )

    def test_weights_and_repeated_rows_agree(self):
        X, y, _ = problem(300)
        weight = np.random.default_rng(0).integers(0, 3, 300)
        rows = np.repeat(np.arange(300), weight)
        for calibrator in ("nadaraya_watson", "platt", LinearRegression()):
            model = MultiObjectiveCalibrator(calibrator, sensitive_features="group")
            model.set_params(min_group_size=1)
            found = model.fit(X.drop(columns="user"), y, sample_weight=weight)
            found = found.transform(X.drop(columns="user"))
            more = X.drop(columns="user").iloc[rows]
            again = clone(model).fit(more, y.iloc[rows])
            np.testing.assert_allclose(
                again.transform(X.drop(columns="user")), found, atol=1e-8
            )

    @pytest.mark.parametrize(
        "calibrator",
        [
            RandomForestRegressor(5, random_state=0),  # of several outcomes
            GradientBoostingRegressor(n_estimators=5, random_state=0),  # of one
        ],
    )
    def test_any_estimator(self, calibrator):
        X, y, _ = problem(300)
        found = MultiObjectiveCalibrator(calibrator).fit(X[SCORES], y)
        if isinstance(calibrator, RandomForestRegressor):
            plain = clone(calibrator).fit(X[SCORES].to_numpy(), y).predict
            expected = plain(X[SCORES].to_numpy())
        else:
            expected = np.column_stack(
                [
                    clone(calibrator)
                    .fit(X[SCORES].to_numpy(), y[name])
                    .predict(X[SCORES].to_numpy())
                    for name in SCORES
                ]
            )
        np.testing.assert_allclose(found.transform(X[SCORES]), expected)
        assert not hasattr(calibrator, "n_features_in_")

    def test_a_classifier_is_fitted_to_each_outcome(self):
        X, y, _ = problem(300)
        y["share"] = 1.0
        found = MultiObjectiveCalibrator(LogisticRegression()).fit(X[SCORES], y)
        plain = LogisticRegression().fit(X[SCORES].to_numpy(), y["click"])
        np.testing.assert_allclose(
            found.transform(X[SCORES])[:, 0],
            plain.predict_proba(X[SCORES].to_numpy())[:, 1],
        )
        assert (found.transform(X[SCORES])[:, 1] == 1).all()


class TestWeights:
    def test_may_change_after_the_fit(self):
        X, y, _ = problem(300)
        model = MultiObjectiveCalibrator("platt", [1, 2]).fit(X[SCORES], y)
        parts = model.transform(X[SCORES])
        np.testing.assert_allclose(model.predict(X[SCORES]), parts @ [1, 2])
        for weights in ([0.5, -3], {"share": -3, "click": 0.5}):
            model.set_params(weights=weights)
            np.testing.assert_allclose(model.predict(X[SCORES]), parts @ [0.5, -3])

    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            ([1], "one weight for each objective"),
            ({"click": 1}, "one weight for each objective"),
            ([1, np.nan], "weights must be finite"),
            ("click", "weights"),
        ],
    )
    def test_wrong_ones_raise(self, weights, message):
        X, y, _ = problem(100)
        with pytest.raises(ValueError, match=message):
            MultiObjectiveCalibrator("platt", weights).fit(X[SCORES], y)
        model = MultiObjectiveCalibrator("platt").fit(X[SCORES], y)
        with pytest.raises(ValueError, match=message):
            model.set_params(weights=weights).predict(X[SCORES])

    def test_score_is_that_of_the_composite(self):
        X, y, _ = problem(1000)
        model = MultiObjectiveCalibrator("platt", [1, 2], **COLUMNS).fit(X, y)
        composite = y.to_numpy() @ [1, 2]
        rest = np.mean((composite - model.predict(X)) ** 2)
        assert model.score(X, y) == pytest.approx(1 - rest / np.var(composite))


class TestGroupsAndInput:
    def test_columns_metadata_functions_and_libraries_agree(self):
        X, y, _ = problem(300)
        expected = MultiObjectiveCalibrator(**COLUMNS).fit_transform(X, y)
        model = MultiObjectiveCalibrator(**COLUMNS)
        found = model.fit_transform(pl.from_pandas(X), pl.from_pandas(y))
        np.testing.assert_allclose(found, expected)
        assert model.objectives_ == SCORES
        given = {"sensitive_features": X["group"], "cluster": X["user"]}
        model = MultiObjectiveCalibrator()
        found = model.fit_transform(X[SCORES].to_numpy(), y.to_numpy(), **given)
        np.testing.assert_allclose(found, expected)
        assert model.objectives_ == ["x0", "x1"]

    def test_each_group_is_fitted_alone(self):
        X, y, _ = problem(400)
        model = MultiObjectiveCalibrator(sensitive_features="group")
        model.fit(X.drop(columns="user"), y)
        for group in "ab":
            rows = (X["group"] == group).to_numpy()
            part = X.loc[rows, SCORES]
            alone = MultiObjectiveCalibrator().fit(part, y[rows])
            found = model.calibrators_[group].predict(part.to_numpy())
            np.testing.assert_allclose(found, alone.transform(part))

    def test_unseen_groups_warn_once_and_are_pooled(self):
        X, y, _ = problem(400)
        model = MultiObjectiveCalibrator("platt", **COLUMNS).fit(X, y)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = model.transform(X.assign(group="c"))
        (warning,) = caught
        assert "'c'" in str(warning.message)
        pooled = MultiObjectiveCalibrator("platt", cluster="user")
        pooled.fit(X.drop(columns="group"), y)
        np.testing.assert_allclose(found, pooled.transform(X.drop(columns="group")))

    def test_small_groups_are_pooled(self):
        X, y, _ = problem(400)
        X.loc[:9, "group"] = "small"
        model = MultiObjectiveCalibrator("platt", sensitive_features="group")
        with pytest.warns(UserWarning, match="min_group_size=20 rows .*: 'small'"):
            model.fit(X, y)
        assert model.calibrators_["small"] is model.pooled_calibrator_

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"calibrator": "isotonic"}, "calibrator must be one of"),
            ({"calibrator": LinearRegression}, "calibrator must be one of"),
            ({"cluster_weight": "user"}, "cluster_weight must be one of"),
            ({"min_group_size": 0}, "min_group_size must be an integer"),
            ({"sensitive_features": "sex"}, "there is no 'sex'"),
            ({"sensitive_features": True}, "must be passed as metadata"),
        ],
    )
    def test_bad_options_raise(self, options, message):
        X, y, _ = problem(100)
        with pytest.raises(ValueError, match=message):
            MultiObjectiveCalibrator(**{**COLUMNS, **options}).fit(X, y)

    def test_bad_input_raises(self):
        X, y, _ = problem(100)
        model = MultiObjectiveCalibrator("platt", **COLUMNS)
        for wrong, message in [
            (y[1:], "same number of rows"),
            (2 * y, r"y must be in \[0, 1\] for calibrator='platt'"),
            (y.assign(click=np.nan), "must be finite"),
            (y.rename(columns={"click": "composite"}), "named 'composite'"),
            (np.zeros((100, 2, 1)), "one column of outcomes per objective"),
            (None, "requires y"),
        ]:
            with pytest.raises(ValueError, match=message):
                model.fit(X, wrong)
        membership = np.ones((100, 2), dtype=bool)
        with pytest.raises(ValueError, match="must be disjoint groups"):
            MultiObjectiveCalibrator().fit(X[SCORES], y, sensitive_features=membership)
        model.fit(X, y)
        with pytest.raises(ValueError, match="y must have a column for each"):
            model.score(X, y["click"])


class TestAudit:
    def test_names_numbers_and_pictures(self):
        plt = pytest.importorskip("matplotlib.pyplot")
        X, y, _ = problem(3000)
        fresh, outcome, _ = problem(1000, 1)
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
        display = audit.plot()
        assert len(display.arrows_) == 3
        plt.close("all")

    def test_of_one_outcome_there_is_no_before(self):
        X, y, _ = problem(1000)
        model = MultiObjectiveCalibrator("platt", **COLUMNS).fit(X, y["click"])
        audit = model.audit_objectives(X, y["click"])
        assert audit.before == {}
        assert audit.to_frame()["pvalue_before"].isna().all()
        assert list(model.get_feature_names_out()) == ["objective0"]

    def test_without_groups_raises(self):
        X, y, _ = problem(100)
        model = MultiObjectiveCalibrator("platt").fit(X[SCORES], y)
        with pytest.raises(ValueError, match="sensitive_features must be given"):
            model.audit_objectives(X[SCORES], y)


def composite_r2(y_true, y_score):
    return r2_score(np.asarray(y_true).sum(1), y_score)


class TestInsideScikitLearn:
    grid = property(
        lambda self: {
            "fit__calibrator": ["platt", NadarayaWatsonRegressor(0.05)],
            "fit__weights": [[1, 2], [2, 1]],
        }
    )

    def search(self, scoring=None, **options):
        steps = [
            ("same", FunctionTransformer()),
            ("fit", MultiObjectiveCalibrator(**options)),
        ]
        return GridSearchCV(
            Pipeline(steps),
            self.grid,
            scoring=scoring,
            cv=KFold(3),
            error_score="raise",
        )

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_search_by_column(self, library):
        X, y, _ = problem(400)
        if library == "polars":
            X, y = pl.from_pandas(X), pl.from_pandas(y)
        search = self.search(**COLUMNS).fit(X, y)
        assert search.best_params_["fit__calibrator"] == "platt"
        assert search.predict(X).shape == (400,)

    @pytest.mark.parametrize("library", ["numpy", *rarely("pandas", "polars")])
    def test_search_by_metadata_is_that_by_column(self, library):
        X, y, _ = problem(400)
        # Without one scikit-learn 1.6 hands a Pipeline's score no metadata.
        scoring = make_fairness_scorer(
            composite_r2,
            sensitive_features=True,
            greater_is_better=True,
            response_method="predict",
        )
        by_column = self.search(make_scorer(composite_r2), sensitive_features="group")
        by_column.fit(X.drop(columns="user"), y)
        data, outcome = X[SCORES], y
        if library == "numpy":
            data, outcome = data.to_numpy(), y.to_numpy()
        elif library == "polars":
            data, outcome = pl.from_pandas(data), pl.from_pandas(y)
        with sklearn.config_context(enable_metadata_routing=True):
            search = self.search(scoring, sensitive_features=True)
            search.fit(data, outcome, sensitive_features=X["group"])
            found = search.best_estimator_.predict(data, sensitive_features=X["group"])
        np.testing.assert_allclose(
            found, by_column.predict(X.drop(columns="user")), atol=1e-12
        )

    def test_set_output_clone_pickle_and_html(self):
        X, y, _ = problem(300)
        model = MultiObjectiveCalibrator("platt", **COLUMNS)
        for library, frame in (("pandas", pd.DataFrame), ("polars", pl.DataFrame)):
            out = clone(model).set_output(transform=library).fit_transform(X, y)
            assert isinstance(out, frame)
            assert list(out.columns) == SCORES
        model.fit(X, y)
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.transform(X), model.transform(X))
        assert "MultiObjectiveCalibrator" in model._repr_html_()
