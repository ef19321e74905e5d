"""metrics.toml: complete, read once, true for both ends; and metrics of one's own."""

import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skrankfair import audit, audit_cv
from skrankfair import metrics as library
from skrankfair._reports.catalog import AuditMetric, catalog, table
from skrankfair.metrics import make_metric

KNOWN = {field.name for field in fields(AuditMetric)}
READ = {"name", "ordered", "bad", "sides", "is_change"}  # not in the file
VALUES = {
    "per": {"pair", "row", "query"},
    "needs": {"", "binary", "shares", "not negative"},
    "cut": {"", "k", "top", "required"},
}


@pytest.mark.parametrize("name", catalog())
def test_entries_hold_what_is_explained_and_nothing_else(name):
    entry, metric = table()["metrics"][name], catalog()[name]
    assert set(entry) <= KNOWN - READ
    assert {*metric.scored, *metric.favorable_low} <= KNOWN - READ
    assert entry["topic"] in table()["topics"]
    assert set(metric.tasks) <= set(table()["tasks"])
    assert all(getattr(metric, key) in values for key, values in VALUES.items())
    assert hasattr(library, entry.get("function", name))


@pytest.mark.parametrize("name", catalog())
@pytest.mark.parametrize("favorable", ["high", "low", None])
@pytest.mark.parametrize("task", ["ranking", "risk", "decision"])
def test_every_end_of_the_score_has_words(name, task, favorable):
    words = catalog()[name].read_as(task, favorable)
    assert words.title
    assert words.short
    assert words.measures.endswith("?")
    assert words.reading.endswith(".")
    assert words.question.endswith("?")
    assert bool(words.untested) != bool(words.sides["lower"] and words.sides["higher"])
    if words.bad is None:
        assert set(words.sides) == {"lower", "higher"}
        return
    bad, good = ("lower", "higher") if words.bad == "low" else ("higher", "lower")
    assert words.sides["worse"] == words.sides[bad]
    assert words.sides["better"] == words.sides[good]


def test_metrics_are_in_the_order_of_the_questions():
    topics = [entry["topic"] for entry in table()["metrics"].values()]
    assert topics == sorted(topics, key=list(table()["topics"]).index)


def test_a_higher_bar_is_said_only_where_the_decision_is_good():
    reading = catalog()["precision"].read_as
    assert "clear a higher bar" in reading("decision", "high").reading
    assert "on weaker grounds" in reading("decision", "low").reading


def test_the_table_is_read_where_it_is_needed_and_once():
    assert table() is table()
    code = (
        "import skrankfair, sys; from skrankfair import audit;"
        "from skrankfair._reports import catalog;"
        "print(catalog.table.cache_info().misses, catalog.catalog.cache_info().misses)"
    )
    run = [sys.executable, "-c", code]
    found = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert found.split() == ["0", "0"]


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
