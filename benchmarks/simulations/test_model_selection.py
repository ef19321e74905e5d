"""How often the confidence bounds of a constrained search hold."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import check_scoring

from benchmarks.simulations.common import tolerance
from skrankfair.metrics import pairwise_accuracy
from skrankfair.scoring import get_scorer, with_errors
from tests.test_model_selection import Candidate, Data, Threshold, constrain, scorer_of

pytestmark = pytest.mark.simulation


def results_of(scoring, model, X, y, folds):
    """Return the `cv_results_` of a search with one candidate."""
    scores = [scoring(model, X.iloc[rows], y[rows]) for rows in folds]
    results = {"mean_test_quality": [1.0], "split0_test_quality": [1.0]}
    for name in scores[0]:
        values = [fold[name] for fold in scores]
        results |= {f"split{k}_test_{name}": [v] for k, v in enumerate(values)}
        results[f"mean_test_{name}"] = [np.mean(values)]
    return results


@pytest.mark.study
@pytest.mark.parametrize(("n_splits", "n_groups"), [(2, 2), (5, 4)])
def test_a_confidence_bound_holds_as_often_as_it_says(n_splits, n_groups):
    """Of a model that is biased, and of one that is not; few clusters per fold."""
    scorer, level, times = scorer_of(pairwise_accuracy), 0.9, 60
    scoring = with_errors({"gap": scorer})
    whole = Data(20_000, n_groups=n_groups)
    for candidate in (0, 3):
        model = Candidate(candidate).fit(whole.X, whole.y)
        truth = -scorer(model, whole.X, whole.y)
        held = 0
        for seed in range(times):
            data = Data(40, seed=seed + 1, n_groups=n_groups)
            folds = [rows for _, rows in data.splits(n_splits)]
            results = results_of(scoring, model, data.X, data.y, folds)
            choose = constrain(9, confidence_level=level)
            choose(results)
            held += choose.table_["gap_bound"][0] >= truth
        margin = tolerance(level, times)
        assert held / times >= level - margin, (candidate, held / times)


@pytest.mark.study
@pytest.mark.parametrize(
    ("n_rows", "rates", "minority", "name", "with_stored_errors"),
    [
        (1000, (0.2, 0.1), 0.1, "impact_ratio", True),  # some folds select none of it
        (400, (0.3, 0.1), 0.2, "worst_group_selection_rate", True),
        (1000, (0.2, 0.1), 0.1, "impact_ratio", False),
    ],
)
def test_a_lower_bound_holds_where_folds_have_few_rows(
    n_rows, rates, minority, name, with_stored_errors
):
    """The short side of the intervals of folds does not add up to that of all."""
    scorer, level, times = get_scorer(name, sensitive_features="group"), 0.95, 200
    scoring = with_errors({"gap": scorer})
    if not with_stored_errors:  # the spread of the folds tells the error
        scoring = check_scoring(LogisticRegression(), {"gap": scorer})
    truth = min(rates) / (max(rates) if name == "impact_ratio" else 1)
    choose = constrain(-9, ratio=True, confidence_level=level)
    held = 0
    for seed in range(times):
        rng = np.random.default_rng(seed)
        group = (rng.random(n_rows) < minority).astype(int)
        selected = rng.random(n_rows) < np.array(rates)[group]
        X, y = pd.DataFrame({"x": 1.0 * selected, "group": group}), 1 * selected
        folds = np.array_split(np.arange(n_rows), 5)
        model = Threshold().fit(X, y)
        choose(results_of(scoring, model, X, y, folds))
        held += not choose.table_["gap_bound"][0] > truth
    assert held / times >= level - tolerance(level, times), held / times


class Given(RegressorMixin, BaseEstimator):
    """A model that predicts a column."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return X["s"].to_numpy()


def decisions_of_markets(rng):
    """Decisions of five markets, which are folds; the rows of one weigh 20 times."""
    market, group = np.repeat(np.arange(5), 300), rng.random(1500) < 0.5
    chosen = rng.random(1500) < np.where(group, 0.4, 0.3)
    weight = np.where(market == 0, 20.0, 1.0)
    frame = pd.DataFrame({"s": chosen.astype(int), "group": group, "w": weight})
    return frame, [np.flatnonzero(market == m) for m in range(5)]


def long_lists_and_short_ones(rng):
    """Queries of 60 and of 6 items with effects of their own, in five folds."""
    length = np.repeat([60, 6], [6, 240])
    query, group = np.repeat(np.arange(246), length), rng.random(1800) < 0.4
    effect = (0.25 + 0.6 * rng.normal(size=246))[query]
    score = rng.normal(size=1800) + group * effect
    frame = pd.DataFrame({"s": score, "group": group, "query": query})
    return frame, [np.flatnonzero(query % 5 == k) for k in range(5)]


@pytest.mark.parametrize(
    ("draw", "name", "options", "truth"),
    [
        (
            decisions_of_markets,
            "neg_demographic_parity_difference",
            {"sample_weight": "w"},
            0.1,
        ),
        (
            long_lists_and_short_ones,
            "neg_pairwise_exposure",
            {"qid": "query"},
            norm.cdf(0.25 / np.sqrt(2.36)) - 0.5,
        ),
    ],
)
def test_a_bound_holds_where_folds_count_unlike(draw, name, options, truth):
    """A heavy fold makes most of the error, one of a long list has one df or so."""
    scorer = get_scorer(name, sensitive_features="group", **options)
    scoring, failed = with_errors({"gap": scorer}), 0
    for seed in range(200):
        X, folds = draw(np.random.default_rng(seed))
        results = results_of(scoring, Given(), X, X["s"].to_numpy(), folds)
        choose = constrain(9, confidence_level=0.95)
        choose(results)
        failed += choose.table_["gap_bound"][0] < truth
    assert failed / 200 < 0.05 + tolerance(0.05, 200)
