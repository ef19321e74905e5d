"""metrics.toml: complete, read once, true for both ends; and metrics of one's own."""

import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest

from skrankfair import audit, audit_cv
from skrankfair import metrics as library
from skrankfair._reports.catalog import AuditMetric, catalog, table
from skrankfair.metrics import make_metric

from .common import same

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
    assert {*metric.scored} <= KNOWN - READ
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


# What is done to group "a", by scores or decisions, and the outcome that it then has.
TOO_LOW, TOO_HIGH = "scored too low", "scored too high"
SAID = {
    "inter_group_accuracy": {
        TOO_LOW: "scored below people with lower outcomes more often",
        TOO_HIGH: "scored below people with lower outcomes less often",
    },
    "pairwise_exposure": {TOO_LOW: "scored lower", TOO_HIGH: "scored higher"},
    "matched_pair_calibration": {
        TOO_LOW: "scored too low for its outcomes",
        TOO_HIGH: "scored too high for its outcomes",
    },
    "true_positive_rate": {
        TOO_LOW: "selected less often among those with the outcome",
        TOO_HIGH: "selected more often among those with the outcome",
    },
    "false_positive_rate": {
        TOO_LOW: "selected less often among those without the outcome",
        TOO_HIGH: "selected more often among those without the outcome",
    },
    "selection_rate": {
        TOO_LOW: "selected less often",
        TOO_HIGH: "selected more often",
    },
    "precision": {
        TOO_LOW: "selected with the outcome more often",
        TOO_HIGH: "selected with the outcome less often",
    },
}


@pytest.mark.parametrize("name", SAID)
@pytest.mark.parametrize("favorable", ["high", "low"])
@pytest.mark.parametrize("done", [TOO_LOW, TOO_HIGH])
def test_no_sentence_says_the_opposite_of_the_truth(name, favorable, done):
    """A group whose scores are moved against its chances is the one worse off."""
    rng = np.random.default_rng(3)
    group, chance = rng.choice(["a", "b"], 4000), rng.random(4000)
    moved = np.where(group == "a", -0.2 if done == TOO_LOW else 0.2, 0.0)
    score = chance + moved
    decision = "decision" in catalog()[name].tasks
    report = audit(
        (rng.random(4000) < chance) * 1,
        (score > 0.5) * 1 if decision else score,
        sensitive_features=group,
        task="decision" if decision else "risk",
        favorable=favorable,
        metrics=name,
    )
    finding = report.findings[0]
    row = next(row for row in finding.rows if row.group == "a")
    assert row.pvalue_corrected < 0.01
    harmed = (done == TOO_LOW) == (favorable == "high")
    assert row.side == ("worse" if harmed else "better")
    assert finding.metric.sides[row.side] == SAID[name][done]


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
GROUP, SCORE = RNG.choice(["f", "m"], N), RNG.random(N)
Y = (RNG.random(N) < 0.3 + 0.3 * (GROUP == "m")).astype(float)
DATA = {"y_true": Y, "y_score": SCORE, "sensitive_features": GROUP}


def made(function, name, **options):
    return make_metric(function, lambda t: t[..., 0] / t[..., 1], name=name, **options)


profit = made(
    lambda y_true, y_score: (y_true * (y_score > 0.5) * 9 - (y_score > 0.5), 1.0),
    "profit_per_person",
    better="high",
)
bias = made(lambda y_true, y_score: (y_score - y_true, 1.0), "bias", fair_value=0.0)
first_place = made(
    lambda y_true, y_score, member: (y_true[0] * member[0], member[0]),
    "good_first_places",
    needs=("y_true", "y_score", "member"),
    per="query",
    share=True,
)


def test_a_metric_of_ones_own_is_tested_and_reported_beside_the_others():
    report = audit(**DATA, metrics=[profit, "brier_score", bias], favorable="high")
    assert list(report.results) == ["profit_per_person", "brier_score", "bias"]
    same(report.results["profit_per_person"], profit(**DATA))
    finding = report.findings[0]
    assert finding.tested
    assert finding.metric.title == "Profit per person"
    assert finding.rows[0].pvalue_corrected < 1e-6
    assert [row.group for row in finding.on("worse")] == ["f"]
    assert "=> Lower: f" in repr(report)
    assert "Fair is the value 0." in report.to_dict()["metrics"][2]["meaning"]


def test_its_rows_of_a_query_depend_on_each_other_and_it_gets_queries():
    query = np.repeat(np.arange(N // 20), 20)
    report = audit(**DATA, qid=query, metrics=[bias, first_place])
    same(report.results["bias"], bias(**DATA, cluster=query))
    same(report.results["good_first_places"], first_place(**DATA, qid=query))
    assert "Nothing to test" in repr(report)


def test_what_is_refused():
    taken = made(lambda y_true, y_score: (y_true, 1.0), "ndcg")
    needs = ("y_true", "amount")
    cost = made(lambda y_true, amount: (y_true * amount, amount), "cost", needs=needs)
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
