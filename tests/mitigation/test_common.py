"""What all mitigations promise: columns, groups, weights, pipelines and searches."""

import inspect
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, make_scorer, r2_score
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tests import test_metaestimators_metadata_routing as metadata_routing
from sklearn.tests.metadata_routing_common import (
    ConsumingClassifier,
    ConsumingSplitter,
    _Registry,
    check_recorded_metadata,
)
from sklearn.utils import estimator_checks, get_tags

from skrankfair._inputs import sklearn_private
from skrankfair.mitigation import (
    FairReranker,
    GroupCalibratedClassifier,
    GroupCalibratedRegressor,
    GroupCalibrator,
    GroupThresholdClassifier,
    MultiObjectiveCalibrator,
    PairwiseFairClassifier,
    PairwiseFairRegressor,
)
from skrankfair.scoring import make_fairness_scorer
from skrankfair.smoothing import NadarayaWatsonRegressor
from tests.mitigation.common import FEATURES, MITIGATIONS, problem
from tests.seeds import one_in
from tests.versions import each_check, scored_with

pytestmark = pytest.mark.usefixtures("few_steps")
each = pytest.mark.parametrize("mitigation", MITIGATIONS.values(), ids=MITIGATIONS)
BY_GROUP = {name: m for name, m in MITIGATIONS.items() if m.by_group}
by_group = pytest.mark.parametrize("mitigation", BY_GROUP.values(), ids=BY_GROUP)
#: Columns of which none but that of groups is metadata.
GROUPED = (*FEATURES, "group")


# scikit-learn's own checks, nothing excused


# One of each class, and what the others have of their own.
CHECKED = [
    GroupCalibrator(),
    MultiObjectiveCalibrator(),
    GroupCalibratedClassifier(GaussianNB(), cv=3),
    GroupThresholdClassifier(GaussianNB(), cv=3),
    GroupCalibratedRegressor(Ridge()),
    PairwiseFairClassifier(),
    PairwiseFairRegressor(),
    FairReranker(),
    FairReranker(Ridge(), method="fa_ir"),
    FairReranker(method="amortized"),
]
ACCURATE = LogisticRegression(tol=1e-10)
RARELY_CHECKED = [
    FairReranker(method="exposure_lp"),
    GroupCalibrator(NadarayaWatsonRegressor(0.3), monotonic=True),
    GroupCalibrator("binning", n_bins=4),
    GroupCalibrator(LinearRegression()),
    GroupCalibrator(IsotonicRegression(out_of_bounds="clip")),
    MultiObjectiveCalibrator(NadarayaWatsonRegressor(0.3)),
    GroupCalibratedClassifier(ACCURATE, calibrator="platt", ensemble=True, cv=3),
    GroupThresholdClassifier(
        GaussianNB(), constraint="equalized_odds", randomize=True, random_state=0, cv=3
    ),
]


@pytest.fixture(name="same_classes_in_any_order")
def _same_classes_in_any_order(monkeypatch):
    """Mend scikit-learn 1.6, which makes two classes of three by the first row.

    In its check of weights rows are shuffled, so the two fits differ in their classes.
    """
    name = "_enforce_estimator_tags_y"
    original = getattr(estimator_checks, name)

    def two_classes(estimator, y):
        tags = get_tags(estimator).classifier_tags
        if tags is None or tags.multi_class or not y.size:
            return original(estimator, y)
        return np.where(y == y.min(), y, y.min() + 1)

    monkeypatch.setattr(estimator_checks, name, two_classes)


@pytest.mark.usefixtures("same_classes_in_any_order")
@each_check(*CHECKED, rarely=RARELY_CHECKED)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# Columns, groups and weights


@each
def test_columns_metadata_functions_and_libraries_agree(mitigation):
    X, y = mitigation.rows()
    expected = mitigation.numbers(mitigation.by_columns().fit(X, y), X)
    assert np.ptp(expected) > 0
    frame, data, group = pl.from_pandas(X), X[FEATURES].to_numpy(), X["group"]
    given = {"sensitive_features": group, mitigation.unit: X["user"]}
    functions = {name: lambda _, c=column: c for name, column in given.items()}
    for model, X_of_predict, passed in (
        (mitigation.by_columns().fit(frame, y), frame, None),
        (mitigation.new().fit(data, y, **given), data, group),
        (mitigation.new(**functions).fit(X[FEATURES], y), X[FEATURES], None),
    ):
        found = mitigation.numbers(model, X_of_predict, passed)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@each
def test_several_columns_are_crossed(mitigation):
    X, y = mitigation.rows(800, GROUPED)
    X["sex"] = np.arange(len(y)) % 2
    crossed = X["group"] + X["sex"].astype(str)
    options, alone = {}, GroupCalibrator("platt", shrinkage=None)
    # One column of labels has no margins to shrink towards.
    if mitigation is MITIGATIONS["calibrator"]:
        options = alone.get_params()
    elif mitigation in (MITIGATIONS["classifier"], MITIGATIONS["regressor"]):
        options = {"calibrator": alone}
    by_name = mitigation.new(**options | {"sensitive_features": ["group", "sex"]})
    given = mitigation.new(**options).fit(X[FEATURES], y, sensitive_features=crossed)
    found = mitigation.numbers(by_name.fit(X, y), X)
    expected = mitigation.numbers(given, X[FEATURES], crossed)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@by_group
def test_unseen_groups_warn_once_and_are_like_all_rows(mitigation):
    X, y = mitigation.rows(columns=GROUPED)
    known = mitigation.model.get_params()
    options = {"cv": KFold(3)} if "cv" in known else {}
    options |= {"ensemble": True} if "ensemble" in known else {}
    model = mitigation.new(sensitive_features="group", **options).fit(X, y)
    new = X.assign(group=["c", "d", *X["group"][2:]])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = mitigation.numbers(model, new)
    (warning,) = caught
    assert "'c', 'd'" in str(warning.message)
    # What BLAS rounds depends on where rows are in memory.
    others = mitigation.numbers(model, X)[2:]
    np.testing.assert_allclose(found[2:], others, rtol=1e-12, atol=1e-14)
    if isinstance(model, GroupThresholdClassifier):
        proba = model.estimator_.predict_proba(X[FEATURES])[:2, 1]
        expected = proba - model.pooled_threshold_
    else:
        pooled = mitigation.new(**options).fit(X[FEATURES], y)
        expected = mitigation.numbers(pooled, X[FEATURES])[:2]
    np.testing.assert_allclose(found[:2], expected)


@by_group
def test_small_groups_warn_once(mitigation):
    X, y = mitigation.rows(columns=GROUPED)
    X.loc[:18, "group"] = "small"
    message = f"min_group_size=20 {mitigation.counted} .*: 'small'"
    with pytest.warns(UserWarning, match=message) as caught:
        mitigation.new(sensitive_features="group").fit(X, y)
    assert len(caught) == 1


@by_group
def test_rows_of_weight_0_do_not_count(mitigation):
    X, y = mitigation.rows(columns=GROUPED)
    model = mitigation.new(sensitive_features="group")
    model.fit(X, y, sample_weight=(X["group"] != "b").to_numpy(float))
    with pytest.warns(UserWarning, match=r"not seen .*'b' \(seen: 'a'\)"):
        mitigation.numbers(model, X)


BAD_OPTIONS = [
    ({"sensitive_features": "sex"}, "there is no 'sex'"),
    ({"sensitive_features": 0.5}, "sensitive_features must be a column name"),
    ({"sensitive_features": True}, "sensitive_features must be passed as metadata"),
    ({"calibrator": "spline"}, "calibrator must be one of"),
    ({"calibrator": LinearRegression}, "calibrator must be one of"),
    ({"cluster_weight": "user"}, "cluster_weight must be one of"),
    ({"min_group_size": 0}, "min_group_size must be an integer"),
    ({"monotonic": "yes"}, "monotonic must be one of"),
    ({"shrinkage": 0.5}, "shrinkage must be one of"),
    ({"n_bins": 2.5}, "n_bins must be an integer"),
    ({"ensemble": "auto"}, "ensemble must be one of"),
    ({"drop_metadata_columns": None}, "drop_metadata_columns must be one of"),
    ({"cluster": lambda X: X["group"], "cv": 5}, "at least cv=5 clusters; got 2"),
    ({"cv": []}, "cv must give at least one split; got none"),
    ({"cv": [([0, 9999], [1])]}, "cv must give pairs of.*as numbers below"),
    ({"cv": [([0], [1], [2])]}, "cv must give pairs of rows.*too many values"),
    ({"threshold": "auto"}, "threshold must be a number"),
    ({"adjust": "up"}, "adjust must be one of"),
    ({"constraint": "rate"}, "constraint must be one of"),
    ({"response_method": "predict"}, "response_method must be one of"),
    ({"randomize": "yes"}, "randomize must be one of"),
    ({"randomize": True}, "randomize=True needs constraint='equalized_odds'"),
    ({"strength": -1}, r"strength must be a number in \[0, inf\)"),
    ({"strength": np.nan}, "strength must be"),
    ({"alpha": -1}, "alpha must be"),
    ({"max_pairs": 1}, "max_pairs must be an integer"),
    ({"max_iter": 0}, "max_iter must be an integer"),
    ({"tol": 0}, "tol must be"),
    ({"comparison": "outer"}, "comparison must be one of"),
    ({"qid": True}, "qid must be passed as metadata"),
    ({"random_state": "x"}, "random_state must be"),
    ({"weights": [1]}, "one weight for each objective"),
    ({"weights": {"x": 1}}, "one weight for each objective"),
    ({"weights": [1, np.nan]}, "weights must be finite"),
]


@each
def test_bad_options_raise(mitigation):
    X, y = mitigation.rows(100)
    for options, message in BAD_OPTIONS:
        if set(options) <= set(mitigation.model.get_params()):
            with pytest.raises(ValueError, match=message):
                mitigation.by_columns().set_params(**options).fit(X, y)


@each
def test_bad_input_raises(mitigation):
    X, y = mitigation.rows(100)
    backwards = pd.DataFrame(np.asarray(y), X.index[::-1]).squeeze()
    who, model = {"sensitive_features": X["group"]}, mitigation.by_columns()
    for columns, outcome, given, message in (
        (X, y, who, "sensitive_features must be given once"),
        (X.assign(group=[None, *X["group"][1:]]), y, {}, "missing labels"),
        (X, y[1:], {}, "same number of rows|inconsistent numbers"),
        (X, None, {}, "requires y"),
        (X, np.full(100, "x"), {}, "y must be numeric|one class"),
        (X, backwards, {}, "y must have its rows in the order of X"),
        (X, y, {"sample_weight": X["x"][::-1]}, "sample_weight must have its rows in"),
        (X, y, {"sample_weight": -np.ones(100)}, "must not be negative"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(columns, outcome, **given)
    with pytest.raises(NotFittedError):
        mitigation.numbers(model, X)
    for unit in ("sensitive_features", mitigation.unit):
        with pytest.raises(ValueError, match=f"same number of rows; got .*{unit}: 99"):
            mitigation.new().fit(X[FEATURES], y, **{unit: X["user"][1:]})
    if mitigation.by_group:
        membership = np.ones((100, 2), dtype=bool)
        with pytest.raises(ValueError, match="must be disjoint groups"):
            mitigation.new().fit(X[FEATURES], y, sensitive_features=membership)
        fitted = mitigation.new().fit(X[FEATURES], y)
        with pytest.raises(ValueError, match="both to fit and afterwards, or to nei"):
            mitigation.numbers(fitted, X[FEATURES], X["group"])


@pytest.mark.parametrize("name", ["classifier", "thresholds", "pairwise classifier"])
def test_classes_that_are_not_two_raise(name):
    mitigation, (X, _) = MITIGATIONS[name], problem(90)
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        mitigation.by_columns().fit(X, np.arange(90) % 3)
    with pytest.raises(ValueError, match="one class, 1"):
        mitigation.by_columns().fit(X, np.ones(90, dtype=int))
    with pytest.raises(ValueError, match="y must not have missing labels; 30 of 90"):
        mitigation.by_columns().fit(X, np.array(["no", "yes", None] * 30, dtype=object))


class Unprintable(LogisticRegression):
    """Its representation takes as long as that of a large pipeline."""

    def __repr__(self, N_CHAR_MAX=700):
        raise AssertionError


def test_predictions_print_no_model():
    X, y = problem(90)
    model = GroupThresholdClassifier(Unprintable(), cv=2).fit(X[FEATURES], y)
    assert model.predict(X[FEATURES][:1]).size == 1


@by_group
def test_clusters_are_needed_in_fit_only(mitigation):
    X, y = mitigation.rows()
    model = mitigation.by_columns().fit(X, y)
    found = mitigation.numbers(model, X.drop(columns="user"))
    np.testing.assert_array_equal(found, mitigation.numbers(model, X))


@pytest.mark.parametrize("finds", [False, True])
def test_names_of_polars_columns(finds, monkeypatch):
    """With scikit-learn 1.6 to 1.8, too, which do not find those of polars 2."""
    monkeypatch.setattr(
        sklearn_private, "_FINDS_NAMES", finds and sklearn_private._FINDS_NAMES
    )
    X, y = problem(60)
    X = pl.from_pandas(X)
    model = MITIGATIONS["calibrator"].by_columns(min_group_size=1).fit(X, y)
    assert model.feature_names_in_.tolist() == [*FEATURES, "group"]
    assert model.get_feature_names_out().tolist() == FEATURES
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(X.rename({"x": "other"}))
    numbered = X.to_pandas()[["group", *FEATURES, "user"]].set_axis(range(4), axis=1)
    model.set_params(sensitive_features=0, cluster=3).fit(numbered, y)
    assert model.get_feature_names_out(["group", *FEATURES]).tolist() == FEATURES


@each
def test_pickle_clone_html_and_set_output(mitigation):
    X, y = mitigation.rows()
    model = mitigation.by_columns().fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    expected = mitigation.numbers(model, X)
    np.testing.assert_array_equal(mitigation.numbers(again, X), expected)
    assert type(model).__name__ in model._repr_html_()
    for library, frame in (("pandas", pd.DataFrame), ("polars", pl.DataFrame)):
        if hasattr(model, "transform"):
            out = sklearn.clone(model).set_output(transform=library).fit_transform(X, y)
            assert isinstance(out, frame)
            assert list(out.columns) == FEATURES


# Searches of a step in a Pipeline, both ways to say the group


def search(mitigation, metadata):
    fair, scoring = mitigation.by_columns(), make_scorer(mitigation.metric)
    if metadata:
        fair.set_params(sensitive_features=True, **{mitigation.unit: True})
        how = {"sensitive_features": True, "response_method": "predict"}
        scoring = make_fairness_scorer(mitigation.metric, greater_is_better=True, **how)
    steps = [("same", FunctionTransformer()), ("fair", fair)]
    if mitigation.method == "transform":
        steps.append(("fit", LinearRegression()))
    grid = {f"fair__{option}": values for option, values in mitigation.grid.items()}
    how = {"cv": KFold(2), "error_score": "raise"}
    return GridSearchCV(Pipeline(steps), grid, scoring=scoring, **how)


@each
def test_search_by_metadata_is_that_by_column(mitigation):
    X, y = mitigation.rows()
    by_column = search(mitigation, metadata=False).fit(X, y)
    data = X[FEATURES].to_numpy()
    given = {"sensitive_features": X["group"]}
    with sklearn.config_context(enable_metadata_routing=True):
        routed = search(mitigation, metadata=True)
        routed.fit(data, y, **given, **{mitigation.unit: X["user"]})
        given = given if mitigation.by_group else {}
        found = routed.best_estimator_.predict(data, **given)
    scores = (one.cv_results_["mean_test_score"] for one in (routed, by_column))
    np.testing.assert_allclose(*scores)
    np.testing.assert_allclose(found, by_column.predict(X), atol=1e-12)


# Other tools of scikit-learn, with groups as metadata


CLASSIFIERS = ("classifier", "thresholds")


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_cross_validation_without_a_scorer(name):
    X, y = problem()
    X, group = X.drop(columns="user"), X["group"]
    options = {"params": {"sensitive_features": group}, "error_score": "raise"}
    with sklearn.config_context(enable_metadata_routing=True):
        model = MITIGATIONS[name].new(sensitive_features=True)
        model = scored_with(model, "sensitive_features")
        found = cross_val_score(model, X[FEATURES], y, cv=3, **options)
        search = GridSearchCV(model, {"cv": [2, 3]}, cv=2, error_score="raise")
        search.fit(X[FEATURES], y, sensitive_features=group)
        assert 0.6 < search.score(X[FEATURES], y, sensitive_features=group) < 1
    by_column = MITIGATIONS[name].new(sensitive_features="group")
    np.testing.assert_allclose(found, cross_val_score(by_column, X, y, cv=3))


@pytest.mark.parametrize("name", [*CLASSIFIERS, "regressor"])
def test_score_is_that_of_the_predictions(name):
    X, y = problem()
    who, weight = {"sensitive_features": X["group"]}, np.arange(len(y)) + 1.0
    model = MITIGATIONS[name].new().fit(X[FEATURES], y, **who)
    predicted = model.predict(X[FEATURES], **who)
    measure = r2_score if name == "regressor" else accuracy_score
    assert model.score(X[FEATURES], y, **who) == measure(y, predicted)
    found = model.score(X[FEATURES], y, sample_weight=weight, **who)
    assert found == measure(y, predicted, sample_weight=weight)


@pytest.mark.skipif(
    "params" not in inspect.signature(BaggingClassifier.predict).parameters,
    reason="BaggingClassifier.predict takes metadata from scikit-learn 1.7 on",
)
def test_bagging_routes_groups_to_both():
    """It makes an array of X, which has no columns to name."""
    X, y = problem()
    who = {"sensitive_features": X["group"]}
    model = MITIGATIONS["classifier"].new(sensitive_features=True)
    with sklearn.config_context(enable_metadata_routing=True):
        bag = BaggingClassifier(model, n_estimators=2, random_state=0)
        bag.fit(X[FEATURES], y, **who)
        found, data = bag.predict_proba(X[FEATURES], **who), X[FEATURES].to_numpy()
        alone = [one.predict_proba(data, **who) for one in bag.estimators_]
    np.testing.assert_allclose(found, np.mean(alone, axis=0))
    with pytest.raises(ValueError, match="without column names"):
        BaggingClassifier(MITIGATIONS["classifier"].by_columns()).fit(X, y)


@pytest.mark.parametrize(
    "tool",
    [
        lambda model: StackingClassifier([("fair", model)], cv=2),
        lambda model: VotingClassifier([("fair", model)]),
        lambda model: CalibratedClassifierCV(model, cv=2),
    ],
    ids=["stacking", "voting", "calibrated"],
)
def test_tools_that_predict_without_groups(tool):
    """The message does not say to turn on what is on, and the way it names works."""
    X, y = problem()
    who, model = X["group"], MITIGATIONS["classifier"].new(sensitive_features=True)
    with (
        sklearn.config_context(enable_metadata_routing=True),
        pytest.raises(ValueError, match="Name a column of X instead"),
    ):
        tool(model).fit(X[FEATURES], y, sensitive_features=who).predict(X[FEATURES])
    by_column = tool(MITIGATIONS["classifier"].by_columns())
    assert by_column.fit(X, y).predict(X).shape == y.shape


# What scikit-learn tests of its own; later versions have more.
ROUTING = (
    "default_request",
    "error_on_missing_requests_for_sub_estimator",
    "metadata_is_routed_correctly_to_splitter",
    "metadata_routed_to_group_splitter",
    "metadata_routed_to_sub_estimator_in_pipeline",
    "non_consuming_estimator_works",
    "setting_request_on_sub_estimator_removes_error",
)
WRAPPERS = (*CLASSIFIERS, "regressor")


@one_in(3, name={n: n for n in WRAPPERS}, test={t: t for t in ROUTING})
def test_metadata_is_routed_as_in_scikit_learn(name, test):
    model = MITIGATIONS[name].new()
    case = {
        "metaestimator": type(model),
        "init_args": {"threshold": 0.5} if name == "thresholds" else {},
        "estimator_name": "estimator",
        "estimator": "regressor" if name == "regressor" else "classifier",
        "X": metadata_routing.X,
        "y": metadata_routing.y_binary,
        "estimator_routing_methods": ["fit"],
        "preserves_metadata": "subset",
        "cv_name": "cv",
        "cv_routing_methods": ["fit"],
    }
    if own := getattr(metadata_routing, f"test_{test}", None):
        own(case)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_other_metadata_without_routing(name):
    """It is the model's, but for groups; under another name with routing it is."""
    X, y = problem(120)
    users, registry, of_cv = X["user"].to_numpy(), _Registry(), _Registry()
    given = {"sample_weight": np.arange(120) + 1.0, "metadata": np.arange(120)}
    plain = MITIGATIONS[name].new(estimator=ConsumingClassifier(registry))
    plain.set_params(cv=GroupKFold(3)).fit(X[FEATURES], y, groups=users, **given)
    check_recorded_metadata(registry[-1], "fit", "fit", **given)
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        plain.set_params(cv=2).fit(X[FEATURES], y, other=1)
    splitter = ConsumingSplitter(of_cv)
    with sklearn.config_context(enable_metadata_routing=True):
        splitter.set_split_request(groups="apart", metadata=False)
        plain.set_params(cv=splitter).fit(X[FEATURES], y, apart=users)
    check_recorded_metadata(of_cv[-1], "split", "fit", groups=users)


def test_groups_that_only_fit_is_passed():
    X, y = problem()
    model = CalibratedClassifierCV(MITIGATIONS["classifier"].new())
    with pytest.raises(ValueError, match="Tools that pass metadata to fit alone need"):
        model.fit(X[FEATURES], y, sensitive_features=X["group"])
