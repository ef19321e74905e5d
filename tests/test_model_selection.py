"""Searches under a bound: what they choose, what they say, and the Pareto front."""

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t, ttest_1samp
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    KFold,
    cross_val_score,
)

from benchmarks.simulations.common import Model
from skrankfair._inputs.validation import collected_warnings
from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.metrics import (
    make_metric,
    matched_pair_calibration,
    ndcg,
    pairwise_accuracy,
    selection_rate,
)
from skrankfair.model_selection import fairness_constrained, pareto_front
from skrankfair.scoring import get_scorer, make_fairness_scorer, with_errors

EPSILON = 2.0
# The less noise a candidate has, the more it is biased against group "a".
NOISE = {0: 2.0, 1: 1.2, 2: 0.7, 3: 0.1}
SHIFT = {0: 0.0, 1: -0.25, 2: -0.5, 3: -0.8}
GRID = {"candidate": list(NOISE)}


class Candidate(RegressorMixin, BaseEstimator):
    """Scores ``x`` with noise, and group "a" too low."""

    def __init__(self, candidate=0):
        self.candidate = candidate

    def fit(self, X, y):
        return self

    def predict(self, X):
        shift = SHIFT[self.candidate] * (X["group"] == "a")
        return X["x"] + NOISE[self.candidate] * X["noise"] + shift


@dataclass(frozen=True)
class Data:
    """Queries of 8 items whose true disparities `Model` has in closed form."""

    n_queries: int
    seed: int = 0
    n_groups: int = 2

    @cached_property
    def X(self):  # noqa: N802
        rng = np.random.default_rng(self.seed)
        n = 8 * self.n_queries
        X = pd.DataFrame({"x": rng.normal(size=n), "noise": rng.normal(size=n)})
        X["group"] = rng.choice(list("abcd"[: self.n_groups]), n)
        X["query"] = np.repeat(np.arange(self.n_queries), 8)
        return X

    @cached_property
    def y(self):
        rng = np.random.default_rng(self.seed + 1)
        return self.X["x"].to_numpy() + rng.normal(size=len(self.X))

    def splits(self, n_splits=4):
        return list(GroupKFold(n_splits).split(self.X, groups=self.X["query"]))


LARGE, SMALL = Data(3000), Data(40)


def true_model(candidate):
    return Model(score_shift=SHIFT[candidate], score_noise=NOISE[candidate])


def quality(estimator, X, y):
    return np.corrcoef(estimator.predict(X), y)[0, 1]


def scorer_of(metric, **options):
    columns = {"sensitive_features": "group", "qid": "query"}
    return make_fairness_scorer(metric, **{**columns, **options})


GAP = scorer_of(pairwise_accuracy, comparison="inter")
RATIO = scorer_of(pairwise_accuracy, comparison="inter", disparity="ratio")
CALIBRATION = scorer_of(matched_pair_calibration, epsilon=EPSILON)
SHARE = make_metric(
    lambda y_true, y_score: np.column_stack([y_score, np.ones(len(y_score))]),
    lambda totals: totals[..., 0] / totals[..., 1],
    name="share of yes (%)",
    support=1,
)
DISPARITIES = {
    "gap": (GAP, lambda c: np.ptp(true_model(c).inter_accuracy())),
    "calibration": (
        CALIBRATION,
        lambda c: np.abs(true_model(c).matched_pairs(EPSILON)).max(),
    ),
    "ratio": (RATIO, lambda c: np.divide(*np.sort(true_model(c).inter_accuracy()))),
}


def search(data, refit, scorer=GAP, kind=GridSearchCV, **options):
    scoring = with_errors({"quality": quality, "gap": scorer})
    options = {"cv": data.splits(), "scoring": scoring, **options}
    return kind(Candidate(), GRID, refit=refit, **options).fit(data.X, data.y)


def constrain(bound, *, ratio=False, **options):
    """The constraint on the disparity, or on the ratio, that is called "gap"."""
    side = "at_least" if ratio else "at_most"
    return fairness_constrained("quality", **{side: {"gap": bound}}, **options)


def bound_between(name, best):
    """A bound between the disparities of this candidate and of the next."""
    _, truth = DISPARITIES[name]
    beyond = 0.5 if name == "ratio" else 1.5
    return (truth(best) + (truth(best + 1) if best < 3 else beyond * truth(3))) / 2


@cache
def large_results(name):
    """The results of one search on the large data, and the choices made in it."""
    choices = {
        (best, level): constrain(
            bound_between(name, best), ratio=name == "ratio", confidence_level=level
        )
        for best in range(4)
        for level in (None, 0.95)
    }
    results = search(LARGE, "quality", DISPARITIES[name][0]).cv_results_
    picked = {key: choose(results) for key, choose in choices.items()}
    return results, {key: (picked[key], choices[key].table_) for key in choices}


class TestKnownTradeOff:
    @pytest.mark.parametrize("name", DISPARITIES)
    @pytest.mark.parametrize("best", [0, 1, 2, 3])
    @pytest.mark.parametrize("confidence_level", [None, 0.95])
    def test_picks_the_known_candidate(self, name, best, confidence_level):
        """The bound lies between the disparities of this candidate and the next."""
        index, table = large_results(name)[1][best, confidence_level]
        assert index == best
        assert table["feasible"].tolist() == [c <= best for c in range(4)]
        assert table["gap"][3] == pytest.approx(DISPARITIES[name][1](3), rel=0.1)

    def test_several_bounds(self):
        scoring = {"quality": quality, "gap": GAP, "calibration": CALIBRATION}
        truth = {name: DISPARITIES[name][1] for name in ("gap", "calibration")}
        loose, tight = truth["gap"](3) + 0.05, truth["calibration"](1) + 0.05
        bounds = {"gap": loose, "calibration": tight}
        refit = fairness_constrained("quality", at_most=bounds)
        assert search(LARGE, refit, scoring=scoring).best_params_ == {"candidate": 1}


class Threshold(ClassifierMixin, BaseEstimator):
    """Decides by ``x`` and a threshold."""

    def __init__(self, candidate=0.0):
        self.candidate = candidate

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X):
        return (X["x"] > self.candidate).astype(int)


CUTS = {"candidate": [-0.6, 0.0, 0.6]}


def cut_results(scorers, data, X, y):
    """Return the results of a search for a threshold."""
    options = {"scoring": with_errors(scorers), "refit": False, "cv": data.splits(5)}
    return GridSearchCV(Threshold(), CUTS, **options).fit(X, y).cv_results_


class TestFoldsTogether:
    """With the sums of groups the disparity of small ones is not that of chance."""

    NAMES = (
        *("neg_demographic_parity_difference", "neg_equalized_odds_difference"),
        *("impact_ratio", "equalized_odds_ratio", "worst_group_true_positive_rate"),
        "worst_group_neg_false_positive_rate",
    )

    def test_is_the_disparity_of_all_predictions(self):
        data = Data(80, n_groups=4)
        X, y = data.X.copy(), (data.y > 0).astype(int)
        X["group"] = X["group"].map({"a": 1, "b": "1", "c": "c", "d": "d"})
        X["weight"] = 1.0 + X["query"] % 5  # each fold has weights of its own
        who = {"sensitive_features": "group", "sample_weight": "weight"}
        scorers = {name: get_scorer(name, **who) for name in self.NAMES}
        fitted = [Threshold(candidate).fit(X, y) for candidate in CUTS["candidate"]]
        found = cut_results(scorers, data, X, y)
        for name, scorer in scorers.items():
            side, bound = ("at_most", 1) if "difference" in name else ("at_least", -1)
            choose = fairness_constrained(name, **{side: {name: bound}})
            choose(found)
            expected = [scorer(model, X, y) for model in fitted]
            pooled = choose.table_[name].abs()
            assert pooled.to_numpy() == pytest.approx(np.abs(expected), rel=1e-12)
        pooled = fairness_constrained("impact_ratio", at_most={self.NAMES[0]: 1})
        pooled(found)
        mean = -found[f"mean_test_{self.NAMES[0]}"]
        assert (mean > 1.3 * pooled.table_[self.NAMES[0]]).all()

    @pytest.mark.filterwarnings("ignore:One or more of the test scores")
    @pytest.mark.parametrize("metric", [selection_rate, SHARE], ids=["known", "own"])
    def test_groups_that_only_some_folds_have(self, metric):
        """A group that the first fold lacks, and does not expect, has no sums."""
        data, options = Data(50, n_groups=3), {"disparity": "difference"}
        y, options["response_method"] = (data.y > 0).astype(int), "predict"
        first, last = data.splits(5)[0][1], data.splits(5)[-1][1]
        cases = [(last, None, True), (first, None, False), (first, list("abc"), True)]
        for lacking, expected, known in cases:
            who = {"sensitive_features": "group", "sample_weight": "weight"}
            who["expected_groups"] = expected
            X = data.X.copy()
            scorer = make_fairness_scorer(metric, **who, **options)
            X["weight"] = np.where(X["group"] == "c", 1e-6, 1.0)  # however small
            X.loc[X.index.isin(lacking) & (X["group"] == "c"), "group"] = "a"
            choose = fairness_constrained("gap", at_most={"gap": 1})
            with collected_warnings() as said:
                choose(cut_results({"gap": scorer}, data, X, y))
            models = [Threshold(cut).fit(X, y) for cut in CUTS["candidate"]]
            whole = [-scorer(model, X, y) if known else np.nan for model in models]
            np.testing.assert_allclose(choose.table_["gap"], whole)
            told = "the first fold lacks a group" in " ".join(text for _, text in said)
            assert told != known


class TestConfidence:
    @pytest.mark.parametrize("name", DISPARITIES)
    def test_the_bound_has_the_errors_of_the_folds(self, name):
        """Their variances add up, with Satterthwaite's degrees of freedom."""
        scorer, ratio = DISPARITIES[name][0], name == "ratio"
        refit = constrain(0.1 if ratio else 9.0, ratio=ratio, confidence_level=0.9)
        search(SMALL, refit, scorer)
        for candidate in GRID["candidate"]:
            model = Candidate(candidate).fit(SMALL.X, SMALL.y)
            folds = [(SMALL.X.iloc[rows], SMALL.y[rows]) for _, rows in SMALL.splits()]
            results = [scorer(model, *fold).estimates for fold in folds]
            support = np.array([result.support for result in results])
            estimates = [result.estimate for result in results]
            values = np.average(estimates, axis=0, weights=support)
            scores = [with_errors({"gap": scorer})(model, *fold) for fold in folds]
            error, df = (
                np.array([score[f"gap_{name}"] for score in scores])
                for name in ("standard_error", "df")
            )
            variances = (error * support.sum(axis=1) / support.sum()) ** 2
            variance = variances.sum()
            df = variance**2 / np.sum(variances**2 / df)
            margin = t.ppf(0.9, df) * np.sqrt(variance)
            gap = {
                "gap": np.ptp(values),
                "ratio": values.min() / values.max(),
                "calibration": np.abs(values).max(),
            }[name]
            expected = gap + (-margin if ratio else margin)
            table = refit.table_.loc[candidate]
            assert table["gap"] == pytest.approx(gap, rel=1e-12)
            assert table["gap_bound"] == pytest.approx(expected, rel=1e-9)
            assert table["gap_standard_error"] == pytest.approx(np.sqrt(variance))

    def test_a_score_of_one_value_has_a_bound(self):
        data = Data(40)
        data.y[:] = np.abs(data.y)
        refit = constrain(0.1, ratio=True, confidence_level=0.95)
        search(data, refit, make_fairness_scorer(ndcg, qid="query"))
        assert (refit.table_["gap_bound"] < refit.table_["gap"]).all()

    @pytest.mark.parametrize("made", [dict, with_errors])
    def test_scores_without_errors_have_those_of_the_spread(self, made):
        refit = fairness_constrained("gap", at_least={"gap": -1}, confidence_level=0.9)
        found = search(SMALL, refit, scoring=made({"gap": quality})).cv_results_
        folds = [found[f"split{k}_test_gap"] for k in range(4)]
        low = ttest_1samp(folds, 0).confidence_interval(0.8).low
        assert refit.table_["gap_bound"].tolist() == pytest.approx(low)

    def test_equal_folds_do_not_tell_their_error(self):
        results = make_results([1, 2], [[-0.1, -0.2], [-0.1, -0.1]])
        with pytest.warns(UndefinedMetricWarning, match=r"\[1\], which rank last"):
            assert constrain(9, confidence_level=0.95)(results) == 0

    def test_after_a_halving_search(self):
        """It ignores ``refit=``; candidates of earlier iterations saw fewer rows."""
        options = {"scoring": with_errors({"score": quality, "gap": GAP}), "factor": 2}
        found = search(
            SMALL, "score", kind=HalvingGridSearchCV, min_resources=160, **options
        )
        loose, tight = (
            fairness_constrained("score", at_most={"gap": gap}, confidence_level=0.95)
            for gap in (9, 0)
        )
        assert loose(found.cv_results_) == found.best_index_
        with pytest.warns(UserWarning, match="No candidate keeps the bounds"):
            index = tight(found.cv_results_)
        assert found.cv_results_["iter"][index] == max(found.cv_results_["iter"]) > 0

    def test_too_few_clusters(self):
        results = make_results([1, 2], [[-0.1, -0.1], [-0.2, -0.2]])
        for name in ("standard_error", "df"):
            folds = (f"split{k}" for k in range(2))
            results |= {f"{k}_test_gap_{name}": [NAN, NAN] for k in (*folds, "mean")}
        with (
            pytest.warns(UndefinedMetricWarning, match="gap has no confidence bound"),
            pytest.warns(UserWarning, match="No candidate keeps.*all are undefined"),
        ):
            constrain(9, confidence_level=0.95)(results)


def make_results(objective, gap, name="gap"):
    """The `cv_results_` of a search with two folds."""
    objective, gap = np.array(objective, dtype=float), np.array(gap, dtype=float)
    return {
        "params": [{"candidate": i} for i in range(len(objective))],
        "split0_test_quality": objective,
        "split1_test_quality": objective,
        "mean_test_quality": objective,
        f"split0_test_{name}": gap[:, 0],
        f"split1_test_{name}": gap[:, 1],
        f"mean_test_{name}": gap.mean(axis=1),
    }


NAN = float("nan")
AT_MOST = {"at_most": {"gap": 0.1}}


class TestRules:
    @pytest.mark.parametrize(
        ("ratio", "objective", "gap", "bound", "index"),
        [
            (False, [1, 2, 3], [[-0.1, -0.1], [-0.2, -0.2], [-0.4, -0.4]], 0.25, 1),
            (False, [1, 2, 3], [[-0.1, -0.1], [-0.2, -0.4], [-0.3, -0.3]], 0.3, 2),
            (False, [3, 2, 1], [[-0.1, -0.1], [-0.2, -0.2], [-0.4, -0.4]], 0.25, 0),
            (False, [2, -np.inf], [[-0.4, -0.4], [0, 0]], 0.0, 1),
            (False, [1, 2, 2], [[0, 0], [0, 0], [0, 0]], 0.0, 1),
            (False, [1, 2], [[-0.1, -0.3], [-0.15, -0.25]], 0.2, 1),
            (True, [1, 2, 3], [[0.9, 0.9], [0.8, 0.8], [0.5, 0.5]], 0.8, 1),
            (True, [1, 2], [[0.9, 0.9], [0.0, 0.0]], 0.8, 0),
            (True, [1, 2], [[-0.3, -0.3], [-0.4, -0.4]], -0.35, 0),
        ],
    )
    def test_the_best_within_the_bound(self, ratio, objective, gap, bound, index):
        """Scores that are disparities are negated, and their bound is not."""
        choose = constrain(bound, ratio=ratio)
        assert choose(make_results(objective, gap)) == index
        mean = np.mean(gap, axis=1) if ratio else np.abs(gap).mean(axis=1)
        np.testing.assert_allclose(choose.table_["gap"], mean)

    def test_ratios_that_are_all_zero_are_the_worst(self):
        """Nothing is above zero that would tell them from disparities."""
        results = make_results([1, 2], [[0, 0], [0, 0]])
        with pytest.raises(ValueError, match=r"\(gap at least 0.5\); candidate 1"):
            constrain(0.5, ratio=True, on_infeasible="raise")(results)
        assert constrain(0.5)(results) == 1

    def test_ratios_and_disparities_are_told_apart(self):
        results = make_results([1, 2], [[0.0, 0.0], [0.9, 0.8]])
        message = r"'gap' has scores above 0 \(up to 0.9\).*bounded by at_least"
        with pytest.raises(ValueError, match=message):
            constrain(0.95)(results)
        results = make_results([1, 2], [[-0.1, -0.1], [-0.2, -0.2]])
        with pytest.warns(UserWarning, match="All scores of 'gap' are neg.*at_most"):
            assert constrain(0.03, ratio=True)(results) == 0

    def test_no_candidate_keeps_the_bound(self):
        results = make_results([3, 2, 1], [[-0.4, -0.4], [-0.2, -0.2], [-0.3, -0.3]])
        choose = constrain(0.1)
        message = r"keeps the bounds \(gap at most 0.1\); candidate 1 violates"
        with pytest.warns(UserWarning, match=message + " them least, by 0.1"):
            assert choose(results) == 1
        assert not choose.table_["feasible"].any()
        with pytest.raises(ValueError, match=message):
            constrain(0.1, on_infeasible="raise")(results)

    def test_undefined_candidates_rank_last(self):
        gap = [[-0.1, NAN], [-0.2, -0.2], [-0.1, -0.1]]
        message = r"gap is undefined \(NaN\) in folds \[1\] for candidates \[0\], which"
        with pytest.warns(UndefinedMetricWarning, match=message):
            assert constrain(0.25)(make_results([9, 2, 1], gap)) == 1
        gap = [[-0.9, -0.9], [-0.2, -0.2], [-0.1, -0.1]]
        message = r"quality is undefined \(NaN\) in folds \[0, 1\] for candidates \[1\]"
        with pytest.warns(UndefinedMetricWarning, match=message):
            assert constrain(0.25)(make_results([9, NAN, 1], gap)) == 2

    @pytest.mark.parametrize(
        ("objective", "gap", "message"),
        [
            ([9, 1], [[NAN, 0], [-0.5, -0.5]], "candidate 1 violates them least"),
            ([1, 9], [[NAN, -0.1], [NAN, -0.1]], "undefined. Candidate 1 is the best"),
        ],
    )
    def test_an_undefined_candidate_is_worse_than_a_violation(
        self, objective, gap, message
    ):
        with (
            pytest.warns(UndefinedMetricWarning, match=r"folds \[0\]"),
            pytest.warns(UserWarning, match=message),
        ):
            assert constrain(0.1)(make_results(objective, gap)) == 1

    @pytest.mark.parametrize("key", ["quality", "gap"])
    def test_nothing_to_choose_by(self, key):
        results = make_results([1, 9], [[-0.1, -0.1], [-0.2, -0.2]])
        results |= {k: [NAN, NAN] for k in results if k.endswith(key)}
        with pytest.raises(ValueError, match=f"^{key} is undefined .* every fold"):
            constrain(0.1)(results)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({}, "at_most or at_least must name a metric; got none"),
            ({"at_most": "gap"}, "at_most must be a dict of metric and bound"),
            ({"at_most": {1: 0.1}}, "objective and bounds must name metrics; got 1"),
            ({"at_most": {"gap": -0.1}}, r"at_most\['gap'\] must be a number in \[0"),
            ({"at_least": {"gap": NAN}}, r"at_least\['gap'\] must be a number"),
            (
                {"at_most": {"a": 1, "gap": 0.1}, "at_least": {"gap": 0.1}},
                "at_most and at_least must name different.*both name 'gap'",
            ),
            ({**AT_MOST, "confidence_level": 1.0}, "confidence_level must be a number"),
            ({**AT_MOST, "on_infeasible": "stop"}, "on_infeasible must be one of"),
        ],
    )
    def test_arguments(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            fairness_constrained("quality", **arguments)

    def test_unknown_keys(self):
        results = make_results([1], [[-0.1, -0.1]])
        for choose in (
            fairness_constrained("auc", at_most={"gap": 1}),
            fairness_constrained("quality", at_most={"mpc": 1}),
            fairness_constrained("quality", at_least={"mpc": 1}),
        ):
            with pytest.raises(ValueError, match=r"it has gap, quality\.") as caught:
                choose(results)
            assert choose.cv_results_ is results
            assert "cv_results_" in caught.value.__notes__[0]

    def test_keys_that_begin_alike(self):
        results = make_results([1, 2], [[-0.1, -0.1], [-0.4, -0.4]])
        results |= make_results([1, 2], [[-0.4, -0.4], [-0.1, -0.1]], name="other_gap")
        results |= make_results([1, 2], [[-0.4, -0.4], [-0.1, -0.1]], name="gap.2")
        for key, index in (("gap", 0), ("gap.2", 1)):
            assert fairness_constrained("quality", at_most={key: 0.2})(results) == index

    @pytest.mark.parametrize(
        "text",
        [
            "fairness_constrained('auc', at_most={'gap': 0.05}, confidence_level=0.9)",
            "fairness_constrained('auc', at_most={'gap': 1}, at_least={'ratio': 0.8})",
        ],
    )
    def test_repr(self, text):
        assert repr(eval(text)) == text


@pytest.mark.parametrize("confidence_level", [None, 0.9])
def test_saved_by_skops(confidence_level):
    io = pytest.importorskip("skops.io")
    choose = constrain(0.9, confidence_level=confidence_level)
    fitted = search(SMALL, choose, scorer=GAP)
    fitted.scoring = fitted.scorer_ = None  # of them `quality` is of this test
    fitted.estimator = fitted.best_estimator_ = Ridge()  # and so is `Candidate`
    data = io.dumps(fitted)
    trusted = io.get_untrusted_types(data=data)
    ours = {name for name in trusted if name.startswith("skrankfair")}
    assert ours == {"skrankfair.model_selection.FairnessConstrained"}
    again = io.loads(data, trusted=trusted)
    pd.testing.assert_frame_equal(again.refit.table_, choose.table_)


class TestSearches:
    def test_one_metric_is_called_score(self):
        """The bound is then on the objective itself: the fairest is chosen."""
        refit = fairness_constrained("score", at_most={"score": 0.9})
        found = search(SMALL, refit, scoring=GAP)
        assert found.best_index_ == np.argmax(found.cv_results_["mean_test_score"])

    @pytest.mark.parametrize("n_jobs", [None, 2])
    def test_inside_cross_validation(self, n_jobs):
        scoring = with_errors({"quality": quality, "gap": GAP})
        options = {"scoring": scoring, "refit": constrain(0.25, confidence_level=0.95)}
        inner = GridSearchCV(Candidate(), GRID, cv=KFold(2), **options)
        scores = cross_val_score(
            inner, LARGE.X, LARGE.y, scoring=GAP, cv=LARGE.splits(2), n_jobs=n_jobs
        )
        assert (scores > -0.25).all()
        assert not hasattr(inner.refit, "table_")


class TestParetoFront:
    @pytest.mark.parametrize("seed", range(20))
    def test_naive(self, seed):
        rng = np.random.default_rng(seed)
        scores = rng.integers(0, 6, rng.integers((1, 2), (30, 4))).astype(float)
        scores[rng.random(scores.shape) < 0.1] = NAN
        names = [f"m{i}" for i in range(scores.shape[1])]
        results = {f"mean_test_m{i}": scores[:, i].tolist() for i in range(len(names))}
        results["iter"] = rng.integers(0, 1 + seed % 2, len(scores))  # of halving
        scores[results["iter"] < max(results["iter"])] = NAN
        known = ~np.isnan(scores).any(axis=1)
        for place, (row, expected) in enumerate(zip(scores, known, strict=True)):
            beaten = any((o >= row).all() and (o > row).any() for o in scores[known])
            assert pareto_front(results, names)[place] == (expected and not beaten)

    def test_of_a_search(self):
        assert pareto_front(large_results("gap")[0], ["quality", "gap"]).all()

    def test_errors(self):
        results = make_results([1], [[-0.1, -0.1]])
        for metrics in ("quality", ["quality"]):
            with pytest.raises(ValueError, match="metrics must name at least two"):
                pareto_front(results, metrics)
