"""Rows that lack an outcome, a score or a label, in every metric."""

import inspect

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from skrankfair import metrics
from skrankfair.inference import compare
from skrankfair.metrics import (
    GroupEstimates,
    make_metric,
    pairwise_accuracy,
    selection_rate,
)
from skrankfair.scoring import make_fairness_scorer
from tests.metrics.common import assert_identical
from tests.scoring.test_undefined import MODEL
from tests.seeds import together

N = 240
RNG = np.random.default_rng(0)
GROUP = RNG.choice(["f", "m"], N).astype(object)
QUERY = np.repeat(np.arange(N // 8), 8)
Y = (RNG.random(N) < 0.5).astype(float)
SCORE = RNG.integers(1, 20, N) / 20
NO_Y, NO_SCORE, NO_GROUP = (np.arange(N) % 24 == place for place in (3, 7, 11))
NO_Y[7] = True  # a row that lacks both
LACKING = {
    "y_true": np.where(NO_Y, np.nan, Y),
    "y_score": np.where(NO_SCORE, np.nan, SCORE),
    "sensitive_features": np.where(NO_GROUP, None, GROUP),
}
#: Metrics of which the missing values of an argument are not looked at.
UNUSED = {
    **dict.fromkeys(
        (
            *("selection_rate", "pairwise_exposure", "exposure", "exposure_parity"),
            *("pairwise_parity", "ndkl", "skew_at_k", "share_at_k"),
            *("normalized_discounted_difference", "normalized_discounted_ratio"),
            *("normalized_discounted_kl", "demographic_parity_difference"),
            "impact_ratio",
        ),
        "y_true",
    ),
    "pairwise_preference": "y_score",
}
#: Metrics in which rows without an outcome keep their place; see `test_shown`.
PLACED = ("dips", "exposure_gap", "precision_at_k", "recall_at_k")
OPTIONS = {
    "threshold": 0.5,
    "epsilon": 0.2,
    "step": 2,
    "n_resamples": 20,
    "bandwidth": 0.2,
    "boost": 0.2,
}
PUBLIC = {
    name: function
    for name in metrics.__all__
    if inspect.isfunction(function := getattr(metrics, name))
    and name not in ("make_metric", "expected_advantage", "item_dissatisfaction")
}
each_metric = together("name", [pytest.param(name, id=name) for name in PUBLIC])


def measured(name, missing="raise", rows=slice(None), **changed):
    """Call a metric with what it takes of some rows."""
    function = PUBLIC[name]
    parameters = inspect.signature(function).parameters
    given = {**LACKING, "qid": QUERY, **OPTIONS, **changed}
    if name == "group_mean":
        given["values"] = given["y_score"]
    if name.endswith("_at_k"):
        given |= {"k": 4, "step": None}
    if name == "matched_pair_curve":
        given["epsilon"] = [0.1, 0.2]
    if name == "ndcg":  # whose groups are of queries
        given["qid"] = np.arange(N)
    taken = {n: v for n, v in given.items() if n in parameters}
    if name == "exposure_gap":
        taken["target"] = "relevance"
    taken = {n: v[rows] if isinstance(v, np.ndarray) else v for n, v in taken.items()}
    return function(**taken, missing=missing)


def parts_of(result):
    """Return the results by group that a metric has returned."""
    result = getattr(result, "estimates", result)
    return getattr(result, "rates", getattr(result, "results", (result,)))


def lacking_of(name):
    """Return which rows lack an outcome or a score that the metric uses."""
    taken = inspect.signature(PUBLIC[name]).parameters
    lacking = {"y_true": NO_Y, "y_score": NO_SCORE, "values": NO_SCORE}
    return {n: m for n, m in lacking.items() if n in taken and n != UNUSED.get(name)}


@each_metric
@pytest.mark.parametrize("missing", ["drop", "group"])
@pytest.mark.filterwarnings("ignore::skrankfair.exceptions.UndefinedMetricWarning")
def test_rows_are_left_out_or_a_group_and_counted(name, missing):
    lacking = lacking_of(name)
    dropped, labels = np.any([*lacking.values(), np.zeros(N)], axis=0), {}
    counts = {n: m.sum() for n, m in lacking.items()}
    if missing == "drop":
        dropped |= NO_GROUP
        counts |= {"dropped": dropped.sum(), "sensitive_features": 10}
    else:
        labels["sensitive_features"] = np.where(NO_GROUP, "missing", GROUP)
        counts |= {"dropped": dropped.sum(), "labelled": (NO_GROUP & ~dropped).sum()}
    with pytest.warns(UserWarning, match="left out|no label") as said:
        result = measured(name, missing)
    if missing == "drop":
        assert sum("left out:" in str(one.message) for one in said) == 1
    expected = measured(name, rows=~dropped, **labels)
    for mine, other in zip(parts_of(result), parts_of(expected), strict=True):
        if name not in PLACED:
            assert_identical(mine, other)
        assert not other.missing
        assert missing == "drop" or "missing" in mine.groups
        assert mine.missing == {n: count for n, count in counts.items() if count}


@each_metric
def test_raise_refuses_what_the_metric_uses(name):
    complete = {"y_true": Y, "y_score": SCORE, "sensitive_features": GROUP}
    used = [n for n in ("y_true", "y_score") if n in lacking_of(name)]
    for column in (*used, "sensitive_features"):
        with pytest.raises(ValueError, match=f"{column} must"):
            measured(name, **{**complete, column: LACKING[column]})
    with pytest.raises(ValueError, match="missing must be one of 'raise', 'drop', 'gr"):
        measured(name, "ignore")


def of_accuracy(missing="drop", rows=slice(None), **changed):
    given = {**LACKING, "qid": QUERY, **changed}
    return pairwise_accuracy(**{n: v[rows] for n, v in given.items()}, missing=missing)


@pytest.mark.filterwarnings("ignore:.*left out:UserWarning")
def test_counts_survive_sums_compact_and_json():
    early = QUERY < 15
    a, b = of_accuracy(rows=early), of_accuracy(rows=~early)
    total = a + b
    whole = of_accuracy()
    assert total.missing == whole.missing == whole.compact().missing
    assert GroupEstimates.from_json(total.to_json()).missing == whole.missing
    clean = {"y_true": Y, "y_score": SCORE, "sensitive_features": GROUP}
    third = of_accuracy("raise", rows=early, **clean)
    assert not third.missing
    assert (whole + third).missing == whole.missing
    assert whole.against_rest().missing == whole.missing
    assert whole.to_frame().attrs == {"missing": whole.missing}
    assert third.to_frame().attrs == {}
    assert repr(whole).endswith("30 rows left out; tested: equality with the rest")
    assert "left out" not in repr(third)


@pytest.mark.filterwarnings("ignore:.*left out:UserWarning")
def test_models_that_lack_scores_of_different_rows_are_not_paired():
    def brier(row):
        score = np.where(np.arange(N) == row, np.nan, SCORE)
        return metrics.brier_score(Y, score, sensitive_features=GROUP, missing="drop")

    assert compare(brier(5), brier(5)).estimate is not None
    with pytest.raises(ValueError, match="on the same clusters"):
        compare(brier(5), brier(7))


@pytest.mark.filterwarnings("ignore:.*left out:UserWarning")
def test_rows_are_named_by_their_place_in_the_input():
    score = np.where(np.arange(N) == 200, 2.0, LACKING["y_score"])
    with pytest.raises(ValueError, match="in row 200"):
        metrics.brier_score(Y, score, missing="drop")


@pytest.mark.parametrize("dtype", [object, "string", "category"])
@pytest.mark.filterwarnings("ignore:.*(left out|no label):UserWarning")
def test_labels_that_are_pandas_na(dtype):
    """It has no truth value: to compare it with a label raises."""
    labels = pd.Series(np.where(NO_GROUP, pd.NA, GROUP), dtype=dtype)
    for missing in ("drop", "group"):
        mine = of_accuracy(missing, sensitive_features=labels)
        assert_identical(mine, of_accuracy(missing))
    labels = labels.astype(object).where(GROUP != "f", "missing")
    with pytest.raises(ValueError, match="has the label 'missing'"):
        of_accuracy("group", sensitive_features=labels)


@pytest.mark.filterwarnings("ignore:.*(left out|no label):UserWarning")
def test_numbers_categories_crossed_labels_and_memberships():
    def rate(groups, missing):
        return selection_rate(
            None, SCORE, sensitive_features=groups, threshold=0.5, missing=missing
        )

    code = np.where(NO_GROUP, np.nan, np.arange(N) % 2)
    pairs = np.empty(N, dtype=object)
    pairs[:] = [(label, 1) for label in GROUP]
    pairs[NO_GROUP] = None
    day = np.array(["2026-11-21", "2026-11-22"], "M8[D]")[np.arange(N) % 2]
    days = tuple(np.unique(day).tolist())
    day[NO_GROUP] = np.datetime64("NaT")
    for labels, known in (
        (code, (0.0, 1.0)),
        (pd.Series(LACKING["sensitive_features"]).astype("category"), ("f", "m")),
        (day, days),
        (day.astype("M8[ns]"), tuple(map(pd.Timestamp, days))),
    ):
        assert rate(labels, "drop").groups == known
        assert rate(labels, "group").groups == (*known, "missing")
    assert rate(pairs, "drop").groups == (("f", 1), ("m", 1))
    assert rate(pairs, "group").groups == ("missing", ("f", 1), ("m", 1))
    crossed = pd.DataFrame({"sex": LACKING["sensitive_features"], "code": code})
    assert ("missing", "missing") in rate(crossed, "group").groups
    assert len(rate(crossed, "drop").groups) == 4
    member = np.stack([code == 1, np.arange(N) % 3 == 0], axis=1).astype(object)
    complete = np.delete(member, 5, axis=0).astype(bool)
    member[5, 1] = None
    other = selection_rate(
        None, np.delete(SCORE, 5), sensitive_features=complete, threshold=0.5
    )
    assert_array_equal(rate(member, "drop").estimate, other.estimate)
    with pytest.raises(ValueError, match="must be 'drop' for a membership matrix"):
        rate(member, "group")
    with pytest.raises(ValueError, match="has the label 'missing'"):
        rate(np.where(NO_GROUP, None, np.where(GROUP == "f", "missing", "m")), "group")


@pytest.mark.filterwarnings("ignore:.*left out:UserWarning")
def test_nothing_is_left_and_nothing_lacks():
    with pytest.raises(ValueError, match="missing='drop' leaves no row"):
        of_accuracy(y_true=np.full(N, np.nan))
    with pytest.raises(ValueError, match="no row: each lacks .* or sensitive_features"):
        of_accuracy(sensitive_features=np.full(N, None))
    clean = {"y_true": Y, "y_score": SCORE, "sensitive_features": GROUP}
    assert_identical(of_accuracy("drop", **clean), of_accuracy("raise", **clean))


@pytest.mark.parametrize("per", ["row", "query"])
@pytest.mark.filterwarnings("ignore:.*left out:UserWarning")
def test_metrics_of_ones_own(per):
    def columns(score, price):
        return (price * score, price) if per == "row" else (price @ score, price.sum())

    metric = make_metric(
        columns,
        lambda totals: totals[..., 0] / totals[..., 1],
        name="mean_price",
        needs=("y_score", "price"),
        per=per,
    )
    price = np.where(np.arange(N) % 50 == 1, np.nan, 1.0 + np.arange(N) % 5)
    by_query = {} if per == "row" else {"qid": QUERY}
    mine = metric(y_score=LACKING["y_score"], price=price, **by_query, missing="drop")
    kept = ~(NO_SCORE | np.isnan(price))
    by_query = {name: column[kept] for name, column in by_query.items()}
    assert_identical(mine, metric(y_score=SCORE[kept], price=price[kept], **by_query))
    assert mine.missing == {"dropped": (~kept).sum(), "y_score": 10, "price": 5}
    with pytest.raises(ValueError, match="missing"):
        make_metric(
            columns, lambda t: t[..., 0], name="m", needs=("y_score", "missing")
        )


@pytest.mark.filterwarnings("ignore:.*(left out|no label):UserWarning")
def test_scorers_carry_the_option():
    X = pd.DataFrame({"g": LACKING["sensitive_features"], "score": LACKING["y_score"]})
    X["q"] = QUERY
    for missing, y in (("drop", Y), ("group", LACKING["y_true"])):
        scorer = make_fairness_scorer(
            pairwise_accuracy, sensitive_features="g", qid="q", missing=missing
        )
        score = scorer(MODEL, X, y)
        expected = of_accuracy(missing, y_true=y)
        assert score == -expected.disparity()
        assert score.estimates.missing == expected.missing
    X["g"] = X["g"].astype(pd.CategoricalDtype(["f", "m", "x"]))
    with pytest.warns(UserWarning, match="no pairs of x"):
        assert np.isnan(scorer(MODEL, X, Y))


@pytest.mark.filterwarnings("ignore:.*left out:UserWarning")
def test_outcomes_in_words_may_be_missing():
    words = np.where(NO_Y, None, np.where(Y == 1, "yes", "no"))
    X = pd.DataFrame({"g": GROUP, "score": SCORE, "q": QUERY})
    scorer = make_fairness_scorer(
        pairwise_accuracy, sensitive_features="g", qid="q", missing="drop"
    )
    mine, other = (scorer(MODEL, X, y) for y in (words, LACKING["y_true"]))
    assert mine == other
    refused = make_fairness_scorer(pairwise_accuracy, sensitive_features="g", qid="q")
    with pytest.raises(ValueError, match="y_true must be finite"):
        refused(MODEL, X, words)
