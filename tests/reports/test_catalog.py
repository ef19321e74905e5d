"""metrics.toml: complete, read once, and true for both ends of the score."""

import subprocess
import sys
from dataclasses import fields

import pytest

from skrankfair import metrics as library
from skrankfair._reports.catalog import AuditMetric, catalog, table

WORDS = {"title", "short", "measures", "reading", "untested", "axis", "lower", "higher"}
TRAITS = {field.name for field in fields(AuditMetric)} & {
    *("tasks", "per", "needs", "cut", "on_request")
}
OTHERS = {"function", "options", "topic", "merit", "share", "by_group", "worse"}
VALUES = {
    "per": {"pair", "row", "query"},
    "needs": {"", "binary", "shares", "not negative"},
    "cut": {"", "k", "top", "required"},
}


@pytest.mark.parametrize("name", catalog())
def test_entries_hold_what_is_explained_and_nothing_else(name):
    entry, metric = table()["metrics"][name], catalog()[name]
    overrides = {"scored", "favorable_low"}
    assert set(entry) <= WORDS | TRAITS | OTHERS | overrides
    assert all(set(entry.get(key, {})) <= WORDS for key in overrides)
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
    if words.worse is None:
        assert set(words.sides) == {"lower", "higher"}
        return
    bad, good = ("lower", "higher") if words.worse == "low" else ("higher", "lower")
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
