"""Every tool of scikit-learn that takes ``scoring=``: columns, metadata."""

import functools
import re

import numpy as np
import pytest
import sklearn
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFECV, SequentialFeatureSelector
from sklearn.inspection import permutation_importance
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    RidgeClassifierCV,
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
from skrankfair.scoring import make_fairness_scorer
from tests.scoring.data import DATA, Data, column_scorer, metadata_scorer
from tests.seeds import one_in

MODEL = LogisticRegression(tol=0.01)
GRID = {"C": [0.01, 1.0]}
METADATA = functools.partial(sklearn.config_context, enable_metadata_routing=True)
# Old scikit-learn has no l1_ratios without a warning, and no use_legacy_attributes.
NEW_PATHS = parse_version(sklearn.__version__) >= parse_version("1.8")


def fitted(tool, X, y, params, **options):
    """Fit a tool with metadata, and the options that tools have in common."""
    return tool.set_params(**options).fit(X, y, **params)


def scores_of(search, X, y, params, **options):
    found = fitted(search, X, y, params, **options).cv_results_
    return [found[f"split{i}_test_score"] for i in range(3)]


def multimetric(X, y, scoring, cv, params):
    """Beside a scorer of scikit-learn, with which it may share predictions."""
    both = {"gap": scoring, "auc": "roc_auc"}
    found = cross_validate(MODEL, X, y, scoring=both, cv=cv, params=params or {})
    alone = cross_validate(MODEL, X, y, scoring="roc_auc", cv=cv, params={})
    np.testing.assert_array_equal(found["test_auc"], alone["test_score"])
    return found["test_gap"]


def importance(X, y, scoring, cv, params):
    """It takes no metadata, so a function that has it already is given."""
    if params:
        scoring = functools.partial(scoring, **params)
    options = {"n_repeats": 2, "random_state": 0}
    model = LogisticRegression().fit(X, y)
    found = permutation_importance(model, X, y, scoring=scoring, **options)
    # Shuffling the columns of group and query is another thing in column mode.
    return found.importances[:2]


def regularised(X, y, params, **options):
    new = {"l1_ratios": (0.0,), "use_legacy_attributes": False} if NEW_PATHS else {}
    model = fitted(LogisticRegressionCV(Cs=3, **new), X, y, params, **options)
    return model.scores_ if NEW_PATHS else model.scores_[1]


def selected(X, y, params, **options):
    selector = SequentialFeatureSelector(MODEL, n_features_to_select=2)
    return fitted(selector, X, y, params, **options).support_


def tuned(X, y, params, **options):
    tuned = TunedThresholdClassifierCV(MODEL, thresholds=5)
    return fitted(tuned, X, y, params, **options).best_score_


def part_of(tool, part, **fixed):
    """Return a function that calls a tool with the model, and returns a part."""
    return lambda *data, **options: tool(MODEL, *data, **fixed, **options)[part]


HALVING = {"min_resources": 120, "random_state": 0}
# Of X, y, and as options ``scoring``, ``cv`` and ``params``, the metadata.
WITH_FRAME = {
    "cross_validate": part_of(cross_validate, "test_score"),
    "cross_val_score": functools.partial(cross_val_score, MODEL),
    "multimetric": multimetric,
    "pipeline": functools.partial(
        cross_val_score, make_pipeline(StandardScaler(), MODEL)
    ),
    "learning_curve": part_of(learning_curve, 2, train_sizes=[0.5, 1.0]),
    "validation_curve": part_of(
        validation_curve, 1, param_name="C", param_range=GRID["C"]
    ),
    "GridSearchCV": functools.partial(scores_of, GridSearchCV(MODEL, GRID)),
    "RandomizedSearchCV": functools.partial(
        scores_of, RandomizedSearchCV(MODEL, GRID, n_iter=2)
    ),
    "HalvingGridSearchCV": functools.partial(
        scores_of, HalvingGridSearchCV(MODEL, GRID, **HALVING)
    ),
    "permutation_importance": importance,
}
WITH_ARRAY = {
    "RFECV": lambda *data, **options: fitted(
        RFECV(MODEL), *data, **options
    ).cv_results_["mean_test_score"],
    "SequentialFeatureSelector": selected,
    "LogisticRegressionCV": regularised,
    "TunedThresholdClassifierCV": tuned,
}


def with_metadata(run, X, data=DATA, **options):
    scorer = metadata_scorer(**options)
    with METADATA():
        options = {"cv": data.splits(), "params": data.metadata}
        return np.array(run(X, data.y, scoring=scorer, **options))


@functools.cache
def on_arrays(run):
    return with_metadata(run, DATA.numpy)


def with_columns(run, X, data=DATA, **options):
    scorer = column_scorer(**options)
    return np.array(run(X, data.y, scoring=scorer, cv=data.splits(), params={}))


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
        with_columns(selected, DATA.pandas)


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
    options = {"sensitive_features": True, "qid": True, "direction": "both"}
    scorer = make_fairness_scorer(matched_pair_calibration, epsilon=1.0, **options)
    scores = []
    with METADATA():
        for y in (DATA.y, np.array(labels)[DATA.y]):
            options = {"cv": DATA.splits(), "params": DATA.metadata}
            scores.append(tuned(DATA.numpy, y, scoring=scorer, **options))
    assert scores[0] == scores[1] < 0


# A fold, the first, whose queries have no row of group 1.
LACKING = Data(seed=3)
LACKING.pandas.loc[LACKING.splits()[0][1], "group"] = 0
UNDEFINED = re.escape(
    "The score of pairwise_accuracy is undefined (NaN) on this test set: it has "
)


@pytest.mark.parametrize("score", [with_columns, with_metadata])
@pytest.mark.parametrize("tool", ["cross_validate", "GridSearchCV"])
@pytest.mark.filterwarnings("ignore:One or more of the test scores:UserWarning")
def test_a_fold_without_a_group_is_nan_and_said(tool, score):
    with pytest.warns(UndefinedMetricWarning, match=UNDEFINED + r".*groups there: 0"):
        scores = score(WITH_FRAME[tool], LACKING.pandas, LACKING)
    assert np.isnan(scores[0]).all()
    assert np.isfinite(scores[1:]).all()
    assert np.all(scores[1:] != 0)
