"""Every tool of scikit-learn that takes ``scoring=``: columns, metadata."""

import functools
import re

import numpy as np
import pytest
import sklearn
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFECV, SequentialFeatureSelector
from sklearn.inspection import permutation_importance
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    RidgeClassifierCV,
    RidgeCV,
)
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
    cross_val_score,
    cross_validate,
    learning_curve,
    validation_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.metrics import matched_pair_calibration
from skrankfair.scoring import get_scorer, make_fairness_scorer
from tests.scoring.data import DATA, Data, column_scorer, metadata_scorer
from tests.seeds import one_in, rarely

MODEL = LogisticRegression(tol=0.01)
GRID = {"C": [0.01, 1.0]}
METADATA = functools.partial(sklearn.config_context, enable_metadata_routing=True)
# Old scikit-learn has no l1_ratios without a warning, and no use_legacy_attributes.
NEW_PATHS = parse_version(sklearn.__version__) >= parse_version("1.8")


def run_cross_validate(X, y, scoring, cv, params):
    found = cross_validate(MODEL, X, y, scoring=scoring, cv=cv, params=params)
    return found["test_score"]


def run_cross_val_score(X, y, scoring, cv, params):
    return cross_val_score(MODEL, X, y, scoring=scoring, cv=cv, params=params)


def run_multimetric(X, y, scoring, cv, params):
    """Beside a scorer of scikit-learn, with which it may share predictions."""
    both = {"gap": scoring, "auc": "roc_auc"}
    found = cross_validate(MODEL, X, y, scoring=both, cv=cv, params=params)
    alone = cross_validate(MODEL, X, y, scoring="roc_auc", cv=cv, params={})
    np.testing.assert_array_equal(found["test_auc"], alone["test_score"])
    return found["test_gap"]


def run_pipeline(X, y, scoring, cv, params):
    model = make_pipeline(StandardScaler(), MODEL)
    return cross_val_score(model, X, y, scoring=scoring, cv=cv, params=params)


def run_learning_curve(X, y, scoring, cv, params):
    sizes = [0.5, 1.0]
    found = learning_curve(
        MODEL, X, y, scoring=scoring, cv=cv, train_sizes=sizes, params=params
    )
    return found[2]


def run_validation_curve(X, y, scoring, cv, params):
    options = {"param_name": "C", "param_range": GRID["C"]}
    found = validation_curve(
        MODEL, X, y, scoring=scoring, cv=cv, params=params, **options
    )
    return found[1]


def run_grid_search(X, y, scoring, cv, params):
    search = GridSearchCV(MODEL, GRID, scoring=scoring, cv=cv)
    return search_scores(search.fit(X, y, **params))


def run_random_search(X, y, scoring, cv, params):
    search = RandomizedSearchCV(MODEL, GRID, n_iter=2, scoring=scoring, cv=cv)
    return search_scores(search.fit(X, y, **params))


def run_halving_search(X, y, scoring, cv, params):
    options = {"min_resources": 120, "random_state": 0}
    search = HalvingGridSearchCV(MODEL, GRID, scoring=scoring, cv=cv, **options)
    return search_scores(search.fit(X, y, **params))


def search_scores(search):
    names = [f"split{i}_test_score" for i in range(3)]
    return [search.cv_results_[name] for name in names]


def run_permutation_importance(X, y, scoring, cv, params):
    """It takes no metadata, so a function that has it already is given."""
    if params:
        scoring = functools.partial(scoring, **params)
    model = LogisticRegression().fit(X, y)
    found = permutation_importance(
        model, X, y, scoring=scoring, n_repeats=2, random_state=0
    )
    # Shuffling the columns of group and query is another thing in column mode.
    return found.importances[:2]


def run_rfecv(X, y, scoring, cv, params):
    search = RFECV(MODEL, scoring=scoring, cv=cv).fit(X, y, **params)
    return search.cv_results_["mean_test_score"]


def run_sequential_selector(X, y, scoring, cv, params):
    selector = SequentialFeatureSelector(
        MODEL, n_features_to_select=2, scoring=scoring, cv=cv
    )
    return selector.fit(X, y, **params).support_


def run_logistic_regression_cv(X, y, scoring, cv, params):
    options = {"l1_ratios": (0.0,), "use_legacy_attributes": False} if NEW_PATHS else {}
    model = LogisticRegressionCV(Cs=3, scoring=scoring, cv=cv, **options)
    scores = model.fit(X, y, **params).scores_
    return scores if NEW_PATHS else scores[1]


def run_tuned_threshold(X, y, scoring, cv, params):
    model = TunedThresholdClassifierCV(MODEL, scoring=scoring, cv=cv, thresholds=5)
    return model.fit(X, y, **params).best_score_


WITH_FRAME = {
    "cross_validate": run_cross_validate,
    "cross_val_score": run_cross_val_score,
    "multimetric": run_multimetric,
    "pipeline": run_pipeline,
    "learning_curve": run_learning_curve,
    "validation_curve": run_validation_curve,
    "GridSearchCV": run_grid_search,
    "RandomizedSearchCV": run_random_search,
    "HalvingGridSearchCV": run_halving_search,
    "permutation_importance": run_permutation_importance,
}
WITH_ARRAY = {
    "RFECV": run_rfecv,
    "SequentialFeatureSelector": run_sequential_selector,
    "LogisticRegressionCV": run_logistic_regression_cv,
    "TunedThresholdClassifierCV": run_tuned_threshold,
}


def with_metadata(run, X, data=DATA, **options):
    scorer = metadata_scorer(**options)
    with METADATA():
        return np.array(run(X, data.y, scorer, data.splits(), data.metadata))


@functools.cache
def on_arrays(run):
    return with_metadata(run, DATA.numpy)


def with_columns(run, X, data=DATA, **options):
    scorer = column_scorer(**options)
    return np.array(run(X, data.y, scorer, data.splits(), {}))


def every_tool(tools):
    return pytest.mark.parametrize("run", tools.values(), ids=tools)


@every_tool(WITH_FRAME | WITH_ARRAY)
def test_metadata(run):
    scores = with_metadata(run, DATA.pandas)
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(scores, on_arrays(run))


@one_in(
    2,
    tool={
        f"{name}-{kind}": (name, kind)
        for name in WITH_FRAME
        for kind in ("pandas", "polars")
        # scikit-learn turns a frame of polars into an array there.
        if (name, kind) != ("permutation_importance", "polars")
    },
    routing={"off": False, "on": True},
)
def test_columns_score_as_metadata(tool, routing):
    run, kind = WITH_FRAME[tool[0]], tool[1]
    with sklearn.config_context(enable_metadata_routing=routing):
        scores = with_columns(run, getattr(DATA, kind))
    np.testing.assert_array_equal(scores, on_arrays(run))
    assert np.any(scores != 0)


MESSAGE = "pass it as metadata.*enable_metadata_routing=True"


@every_tool({k: v for k, v in WITH_ARRAY.items() if k != "SequentialFeatureSelector"})
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_columns_of_an_array_raise_what_to_do(run, kind):
    with pytest.raises(ValueError, match=MESSAGE):
        with_columns(run, getattr(DATA, kind))


def test_columns_in_the_sequential_selector_say_what_to_do():
    """It scores with ``error_score=nan``, which makes any error a warning."""
    with pytest.warns(UserWarning, match=f"(?s)Scoring failed.*{MESSAGE}"):
        with_columns(run_sequential_selector, DATA.pandas)


def test_columns_in_permutation_importance_of_an_array_raise():
    with pytest.raises(ValueError, match=MESSAGE):
        with_columns(run_permutation_importance, DATA.polars)


@pytest.mark.parametrize("tool", [RidgeCV, HistGradientBoostingClassifier])
def test_columns_in_tools_that_score_arrays_raise(tool):
    options = {} if tool is RidgeCV else {"early_stopping": True, "max_iter": 1}
    with pytest.raises(ValueError, match=MESSAGE):
        tool(scoring=column_scorer(), **options).fit(DATA.pandas, DATA.y)


def test_ridge_with_folds():
    model = RidgeCV(scoring=column_scorer(), cv=DATA.splits())
    assert model.fit(DATA.pandas, DATA.y).best_score_ < 0


@pytest.mark.filterwarnings("ignore:One or more of the test scores:UserWarning")
def test_ridge_classifier_with_folds_and_metadata():
    """It makes an array of X, and passes a weight that nobody has given."""
    columns = RidgeClassifierCV(scoring=column_scorer(), cv=DATA.splits())
    with pytest.warns(UserWarning, match=f"(?s)Scoring failed.*{MESSAGE}"):
        assert np.isnan(columns.fit(DATA.pandas, DATA.y).best_score_)
    with METADATA():
        scorer = metadata_scorer().set_score_request(sample_weight=False)
        model = RidgeClassifierCV(scoring=scorer, cv=DATA.splits())
        model.fit(DATA.numpy, DATA.y, **DATA.metadata)
    assert model.best_score_ < 0


@pytest.mark.parametrize("labels", [(-1, 1), (1, 2), ("no", "yes")])
def test_tuned_threshold_reads_any_labels_as_0_and_1(labels):
    """It calls the metric with class labels, whose distance must not matter."""
    scorer = make_fairness_scorer(
        matched_pair_calibration,
        sensitive_features=True,
        qid=True,
        epsilon=1.0,
        direction="both",
    )
    scores = []
    with METADATA():
        for y in (DATA.y, np.array(labels)[DATA.y]):
            found = run_tuned_threshold(
                DATA.numpy, y, scorer, DATA.splits(), DATA.metadata
            )
            scores.append(found)
    assert scores[0] == scores[1] < 0


def test_a_scorer_of_one_value_needs_no_routing():
    scorer = get_scorer("ndcg", response_method="predict")
    selector = SequentialFeatureSelector(
        MODEL, n_features_to_select=1, scoring=scorer, cv=DATA.splits()
    )
    assert selector.fit(DATA.pandas, DATA.y).get_support()[0]


# A fold, the first, whose queries have no row of group 1.
LACKING = Data(seed=3)
LACKING.pandas.loc[
    np.isin(LACKING.query, LACKING.query[LACKING.splits()[0][1]]), "group"
] = 0
UNDEFINED = re.escape(
    "The score of pairwise_accuracy is undefined (NaN) on this test set: it has "
)


@pytest.mark.parametrize(
    ("run", "score"),
    [(run, with_columns) for run in WITH_FRAME.values()]
    + [(run, with_metadata) for run in WITH_ARRAY.values()]
    + rarely(*((run, with_metadata) for run in WITH_FRAME.values())),
)
@pytest.mark.filterwarnings("ignore:One or more of the test scores:UserWarning")
def test_a_fold_without_a_group_is_nan_and_said(run, score):
    if run is run_permutation_importance:
        run = importance_of_the_lacking_fold
    with pytest.warns(UndefinedMetricWarning, match=UNDEFINED + r".*groups there: 0"):
        scores = score(run, LACKING.pandas, LACKING)
    if run is not run_sequential_selector:
        assert np.isnan(scores).any()
    assert not np.any(scores == 0) or scores.dtype == bool


def importance_of_the_lacking_fold(X, y, scoring, cv, params):
    rows = cv[0][1]
    params = {name: values[rows] for name, values in params.items()}
    return run_permutation_importance(X.iloc[rows], y[rows], scoring, None, params)
