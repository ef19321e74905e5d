"""Metrics of one's own in an audit."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skrankfair import audit, audit_cv
from skrankfair.metrics import make_metric

RNG = np.random.default_rng(0)
N = 2000
QUERY = np.repeat(np.arange(N // 20), 20)
GROUP = RNG.choice(["f", "m"], N)
SCORE = RNG.random(N)
Y = (RNG.random(N) < 0.3 + 0.3 * (GROUP == "m")).astype(float)
DATA = {"y_true": Y, "y_score": SCORE, "sensitive_features": GROUP}


def ratio(totals):
    return totals[..., 0] / totals[..., 1]


profit = make_metric(
    lambda y_true, y_score: (y_true * (y_score > 0.5) * 9 - (y_score > 0.5), 1.0),
    ratio,
    name="profit_per_person",
    better="high",
)
bias = make_metric(
    lambda y_true, y_score: (y_score - y_true, 1.0),
    ratio,
    name="bias",
    fair_value=0.0,
)
first_place = make_metric(
    lambda y_true, y_score, member: (y_true[0] * member[0], member[0]),
    ratio,
    name="good_first_places",
    needs=("y_true", "y_score", "member"),
    per="query",
    share=True,
)


def test_it_is_measured_tested_and_reported_beside_the_others():
    report = audit(**DATA, metrics=[profit, "brier_score", bias])
    assert list(report.results) == ["profit_per_person", "brier_score", "bias"]
    expected = profit(Y, SCORE, sensitive_features=GROUP)
    found = report.results["profit_per_person"]
    assert_array_equal(found.estimate, expected.estimate)
    assert_array_equal(found.standard_error, expected.standard_error)
    by_name = {f.metric.name: f for f in report.findings}
    assert by_name["profit_per_person"].tested
    assert by_name["profit_per_person"].metric.title == "Profit per person"
    frame = report.to_frame().set_index(["metric", "group"])
    assert frame.loc[("profit_per_person", "f"), "pvalue_corrected"] < 1e-6
    assert "=> Lower: f" in repr(report)
    assert "Fair is the value 0." in report.to_dict()["metrics"][2]["meaning"]


def test_who_is_worse_off_follows_from_what_is_better():
    report = audit(**DATA, metrics=profit, favorable="high")
    (finding,) = report.findings
    assert [row.group for row in finding.on("worse")] == ["f"]


def test_rows_of_a_query_depend_on_each_other():
    report = audit(**DATA, qid=QUERY, metrics=bias)
    clustered = bias(Y, SCORE, sensitive_features=GROUP, cluster=QUERY)
    found = report.results["bias"]
    assert_array_equal(found.standard_error, clustered.standard_error)


def test_a_metric_of_queries_gets_them():
    report = audit(**DATA, qid=QUERY, metrics=first_place)
    expected = first_place(Y, SCORE, sensitive_features=GROUP, qid=QUERY)
    assert_array_equal(report.results["good_first_places"].estimate, expected.estimate)
    assert "Nothing to test" in repr(report)


def test_what_is_refused():
    taken = make_metric(lambda y_true, y_score: (y_true, 1.0), ratio, name="ndcg")
    cost = make_metric(
        lambda y_true, amount: (y_true * amount, amount),
        ratio,
        name="cost",
        needs=("y_true", "amount"),
    )
    for metrics, message in (
        (taken, "ndcg is a metric of the audit; give yours another name"),
        (cost, "cost also needs amount"),
        ([profit, "none"], "or metrics of make_metric; got 'none'"),
        ([], "got none"),
        ([profit, print], "got <built-in function print>"),
    ):
        with pytest.raises(ValueError, match=message):
            audit(**DATA, metrics=metrics)
    with pytest.raises(ValueError, match="metrics must be among"):
        audit_cv({}, None, Y, sensitive_features=GROUP, metrics=[profit])
