"""Standard errors beside the scores, wherever scikit-learn scores."""

import numpy as np
import pytest
import sklearn
from joblib import parallel_config
from scipy.stats import t
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, cross_validate

from skrankfair.metrics import equalized_odds, ndcg
from skrankfair.scoring import get_scorer, make_fairness_scorer, with_errors
from tests.scoring.data import DATA, Data, column_scorer, metadata_scorer

X, Y, SPLITS = DATA.pandas, DATA.y, DATA.splits()
WHO = {"sensitive_features": "group", "qid": "query"}
GRID = {"C": [0.01, 1.0]}
NDCG = get_scorer("ndcg", qid="query")


@pytest.fixture(scope="module")
def model():
    return LogisticRegression().fit(X, Y)


class TestNumbers:
    def test_of_one_value_are_its_own(self, model):
        scores = with_errors({"ndcg": NDCG})(model, X, Y)
        result = ndcg(Y, model.decision_function(X), qid=DATA.query)
        assert scores == {
            "ndcg": result.estimate[0],
            "ndcg_standard_error": result.standard_error[0],
            "ndcg_df": result.df[0],
        }

    @pytest.mark.parametrize("n_groups", [2, 5, 34])
    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            ("neg_pairwise_accuracy_difference", "difference"),
            ("pairwise_accuracy_ratio", "ratio"),
            ("neg_pairwise_exposure", "max_abs"),
            ("neg_exposure_gap", "l1"),
            ("worst_group_pairwise_accuracy", "worst"),
        ],
    )
    def test_give_the_confidence_bound_of_the_disparity(self, n_groups, name, kind):
        data = Data(60, 40, n_groups)
        fitted = LogisticRegression().fit(data.pandas, data.y)
        scorer = get_scorer(name, **WHO)
        scores = with_errors({"gap": scorer})(fitted, data.pandas, data.y)
        result = scorer(fitted, data.pandas, data.y).estimates
        margin = scores["gap_standard_error"] * t.ppf(0.95, scores["gap_df"])
        bound, value = result.disparity_bound(0.95, kind), result.disparity(kind)
        if kind == "ratio":
            bound = value * (1 - np.log(value / bound))
        expected = abs(bound - value)
        ends = [result.groups[i] for i in result.estimate.argsort()[[-1, 0]]]
        errors = {"worst": result.standard_error[result.estimate.argmin()]}
        furthest = np.abs(result.estimate - 0.5).argmax()
        errors["max_abs"] = result.standard_error[furthest]
        errors["difference"] = result.contrast(*ends).standard_error
        expected = max(expected, errors.get(kind, 0.0) * t.ppf(0.95, scores["gap_df"]))
        assert margin == pytest.approx(expected)
        dfs = result.df
        if kind in ("difference", "ratio") and n_groups < 33:
            dfs = result.contrasts(kind)["df"]
        assert scores["gap_df"] == pytest.approx(max(dfs))

    def test_of_equalized_odds_are_those_of_the_rate_known_less(self, model):
        scorer = get_scorer("neg_equalized_odds_difference", sensitive_features="group")
        scores = with_errors({"odds": scorer})(model, X, Y)
        odds = equalized_odds(Y, model.predict(X), sensitive_features=DATA.group)
        contrasts = [rate.contrast(0, 1) for rate in odds.rates]
        errors = [contrast.standard_error for contrast in contrasts]
        assert scores["odds_df"] == contrasts[int(np.argmax(errors))].df
        assert scores["odds_standard_error"] == pytest.approx(max(errors), rel=0.1)

    def test_of_one_cluster_are_undefined(self, model):
        one = np.asarray(X["query"]) == 0
        scores = with_errors({"gap": column_scorer()})(model, X[one], Y[one])
        assert np.isfinite(scores["gap"])
        assert np.isnan(scores["gap_standard_error"])


def test_other_scorers_are_scored_alone(model):
    scorers = {
        "auc": "roc_auc",
        "accuracy": make_fairness_scorer(accuracy_score),
        "mine": lambda estimator, X, y: 0.5,
    }
    scores = with_errors(scorers)(model, X, Y)
    assert list(scores) == ["auc", "accuracy", "mine"]
    assert scores["accuracy"] == accuracy_score(Y, model.predict(X))


HALVING = {"resource": "max_iter", "min_resources": 100, "max_resources": 200}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (GridSearchCV, {}),
        (GridSearchCV, {"n_jobs": 2, "return_train_score": True}),
        (GridSearchCV, {"n_jobs": 2, "backend": "threading"}),
        (HalvingGridSearchCV, {"factor": 2, **HALVING}),
    ],
    ids=["grid", "processes", "threads", "halving"],
)
def test_searches_keep_them(kind, options):
    scoring = with_errors({"score": NDCG, "gap": column_scorer()})
    options = {"cv": SPLITS, "scoring": scoring, "refit": "score", **options}
    with parallel_config(backend=options.pop("backend", "loky")):
        found = kind(LogisticRegression(), GRID, **options).fit(X, Y).cv_results_
    for i, params in enumerate(found["params"]):
        for j, (train, test) in enumerate(SPLITS):
            fitted = LogisticRegression(**params).fit(X.iloc[train], Y[train])
            for name, value in scoring(fitted, X.iloc[test], Y[test]).items():
                assert found[f"split{j}_test_{name}"][i] == value
    # Both groups have a value and a support, which have a sum.
    assert len([name for name in found if "split0_test" in name]) == 6 + 2 * 2 + 1


def test_cross_validation_with_metadata():
    data, options = (LogisticRegression(), X, Y), {"cv": SPLITS}
    scoring = with_errors({"gap": metadata_scorer(), "accuracy": "accuracy"})
    with sklearn.config_context(enable_metadata_routing=True):
        params = DATA.metadata
        found = cross_validate(*data, scoring=scoring, params=params, **options)
    scoring = with_errors({"gap": column_scorer()})
    expected = cross_validate(*data, scoring=scoring, **options)
    for name in ("gap", "gap_standard_error", "gap_df"):
        np.testing.assert_array_equal(found[f"test_{name}"], expected[f"test_{name}"])


def test_what_is_refused(model):
    for name in ("gap_neg", "gap_df", "gap_ratio_of_x"):
        with pytest.raises(ValueError, match=f"not have .*'gap' and '{name}', with"):
            with_errors(dict.fromkeys(["gap", "gap_of_ndcg", name], "accuracy"))
    with pytest.raises(ValueError, match="scorers must be a dict .*got 'accuracy'"):
        with_errors("accuracy")
    strict = with_errors({"gap": column_scorer(on_undefined="raise")})
    search = GridSearchCV(LogisticRegression(), GRID, scoring=strict, refit="gap")
    with pytest.raises(ValueError, match="no pairs of 0"):
        search.set_params(cv=SPLITS).fit(X.assign(group=0), Y)
