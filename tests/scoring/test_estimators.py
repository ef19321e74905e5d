"""Estimators that predict with the groups, and rankers, under our scorers."""

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer, mean_squared_error
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skrankfair.scoring import make_fairness_scorer
from tests.scoring.data import (
    DATA,
    GroupShift,
    GroupShiftClassifier,
    column_scorer,
    gap_of,
    metadata_scorer,
)

X, Y = DATA.pandas, DATA.y
GRID = {"groupshift__strength": [0.0, 1.0, 3.0]}
SPLITS = DATA.splits()
# Only its number is wanted; the groups are for the estimator.
ERROR = make_fairness_scorer(
    mean_squared_error, sensitive_features="group", greater_is_better=False
)


def pipeline(**options):
    return make_pipeline(FunctionTransformer(), GroupShift(**options))


def expected_scores(measure):
    """The search by hand: strengths × folds."""
    scores = np.empty((3, len(SPLITS)))
    for i, strength in enumerate(GRID["groupshift__strength"]):
        for j, (train, test) in enumerate(SPLITS):
            model = GroupShift(strength).fit(X.iloc[train], Y[train], DATA.group[train])
            predicted = model.predict(X.iloc[test], DATA.group[test])
            scores[i, j] = measure(predicted, test)
    return scores


def search_scores(search, name="score"):
    names = [f"split{i}_test_{name}" for i in range(len(SPLITS))]
    return np.column_stack([search.cv_results_[name] for name in names])


class TestGroupAwarePipeline:
    @pytest.mark.parametrize("n_jobs", [None, 2])
    def test_columns_without_routing(self, n_jobs):
        options = {"scoring": {"gap": column_scorer(), "error": ERROR}, "cv": SPLITS}
        search = GridSearchCV(
            pipeline(column="group"), GRID, refit="error", n_jobs=n_jobs, **options
        ).fit(X, Y)
        gaps = expected_scores(gap_of)
        np.testing.assert_array_equal(search_scores(search, "gap"), gaps)
        errors = expected_scores(lambda s, rows: -mean_squared_error(Y[rows], s))
        np.testing.assert_allclose(search_scores(search, "error"), errors)

    @pytest.mark.parametrize("alias", [True, "gender"])
    @pytest.mark.parametrize("data", [X, DATA.numpy], ids=["pandas", "numpy"])
    def test_metadata_with_routing(self, alias, data):
        name = "sensitive_features" if alias is True else alias
        with sklearn.config_context(enable_metadata_routing=True):
            step = GroupShift().set_fit_request(sensitive_features=alias)
            step.set_predict_request(sensitive_features=alias)
            scorer = metadata_scorer().set_score_request(sensitive_features=alias)
            model = make_pipeline(FunctionTransformer(), step)
            search = GridSearchCV(model, GRID, scoring=scorer, cv=SPLITS)
            search.fit(data, Y, qid=DATA.query, **{name: DATA.group})
        np.testing.assert_array_equal(search_scores(search), expected_scores(gap_of))

    def test_a_decision_function_in_a_pipeline_without_routing(self):
        """scikit-learn's `Pipeline.decision_function` takes no metadata then."""
        model = make_pipeline(
            FunctionTransformer(), GroupShiftClassifier(column="group")
        ).fit(X, Y)
        expected = column_scorer()(pipeline(column="group").fit(X, Y), X, Y)
        assert column_scorer()(model, X, Y) == expected

    def test_a_fitted_search_is_scored(self):
        search = GridSearchCV(
            pipeline(column="group"), GRID, scoring=column_scorer(), cv=SPLITS
        ).fit(X, Y)
        expected = column_scorer()(search.best_estimator_, X, Y)
        assert column_scorer()(search, X, Y) == search.score(X, Y) == expected

    def test_other_scorers_do_not_share_the_response(self):
        """One that gets no groups must not be handed predictions made with them."""

        class Optional(GroupShift):
            def predict(self, X, sensitive_features=None):
                if sensitive_features is None:
                    return np.asarray(X["x"])
                return super().predict(X, sensitive_features)

        scoring = {"gap": column_scorer(), "mse": make_scorer(mean_squared_error)}
        search = GridSearchCV(
            Optional(column="group"), {"strength": [3.0]}, scoring=scoring, refit="mse"
        )
        search.set_params(cv=SPLITS).fit(X, Y)
        expected = [
            mean_squared_error(Y[test], X["x"].iloc[test]) for _, test in SPLITS
        ]
        np.testing.assert_allclose(search_scores(search, "mse")[0], expected)


def test_randomised_predictions_of_fairlearn():
    """Of scikit-learn issue 27977: it needs the groups to predict.

    It draws from the state of NumPy, which is the same again each time.
    """
    post = pytest.importorskip("fairlearn.postprocessing")
    model = post.ThresholdOptimizer(
        estimator=LogisticRegression(), predict_method="predict_proba"
    )
    train, test = SPLITS[0]
    model.fit(X.iloc[train], Y[train], sensitive_features=DATA.group[train])
    rows, who = X.iloc[test], {"sensitive_features": DATA.group[test]}
    np.random.seed(0)  # noqa: NPY002
    predicted = model.predict(rows, **who)
    np.random.seed(0)  # noqa: NPY002
    accuracy = make_fairness_scorer(accuracy_score, sensitive_features=True)
    assert accuracy(model, rows, Y[test], **who) == accuracy_score(Y[test], predicted)
    np.random.seed(0)  # noqa: NPY002
    assert column_scorer()(model, rows, Y[test]) == gap_of(predicted, test)
