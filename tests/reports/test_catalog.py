"""metrics.toml: complete, read once, true for both ends; and metrics of one's own."""

from dataclasses import fields, replace

import numpy as np
import pytest

from skrankfair import audit, audit_cv
from skrankfair import metrics as library
from skrankfair._reports.catalog import AuditMetric, catalog, table
from skrankfair.metrics import make_metric
from tests.metrics.common import assert_same as same

KNOWN = {field.name for field in fields(AuditMetric)}
READ = {"name", "ordered", "bad", "sides", "is_change", "favorable"}  # not in the file
VALUES = {
    "per": {"pair", "row", "query"},
    "needs": {"", "binary", "shares", "not negative"},
    "cut": {"", "k", "top", "required"},
}


@pytest.mark.parametrize("name", catalog())
def test_entries_hold_what_is_explained_and_nothing_else(name):
    entry, metric = table()["metrics"][name], catalog()[name]
    assert set(entry) <= KNOWN - READ
    assert {*metric.scored, *metric.flagged} <= KNOWN - READ
    assert entry["topic"] in table()["topics"]
    assert set(metric.tasks) <= set(table()["tasks"])
    assert all(getattr(metric, key) in values for key, values in VALUES.items())
    assert hasattr(library, entry.get("function", name))


@pytest.mark.parametrize("name", catalog())
@pytest.mark.parametrize("favorable", ["high", "low", None])
@pytest.mark.parametrize("task", ["ranking", "risk", "decision"])
def test_every_end_of_the_score_has_words(name, task, favorable):
    words = catalog()[name].read_as(task, favorable)
    assert all((words.title, words.short))
    assert words.measures[-1] == words.question[-1] == "?"
    assert words.reading.endswith(".")
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


# What is done to the scores (or decisions, or places) of group "a".
DOWN, UP, BLURRED, SHARPENED = "moved down", "moved up", "blurred", "sharpened"


def both(sentence, lower="less", higher="more", done=(DOWN, UP)):
    """What is true of the group after each of two things done to it."""
    return dict(
        zip(done, (sentence.format(lower), sentence.format(higher)), strict=True)
    )


SELECTED = {
    "true_positive_rate": both("selected {} often among those with the outcome"),
    "false_positive_rate": both("selected {} often among those without the outcome"),
    "selection_rate": both("selected {} often"),
}
WITHIN = {"done": (BLURRED, SHARPENED)}
#: One row per metric, task and thing done: what is then true of the group.
SAID = {
    "ranking": {
        "pairwise_accuracy": both("ranked {} accurately"),
        "intra_group_accuracy": both("ranked {} accurately within the group", **WITHIN),
        "inter_group_accuracy": both("ranked above worse items {} often"),
        "recall_at_k": both("good items shown {} often"),
        "pairwise_exposure": both("ranked {}", "lower", "higher"),
        "exposure_gap": both("shown {} than its outcomes merit"),
        "matched_pair_calibration": both("{}valued", "under", "over"),
        "precision_at_k": both("{} often good in the first places", "more", "less"),
    },
    "risk": {
        "pairwise_accuracy": both("has its higher outcomes recognised {} often"),
        "intra_group_accuracy": both("scored {} accurately within the group", **WITHIN),
        "inter_group_accuracy": both(
            "scored above people with lower outcomes {} often"
        ),
        "pairwise_exposure": both("scored {}", "lower", "higher"),
        **dict.fromkeys(
            ("calibration_in_the_large", "matched_pair_calibration"),
            both("has {} outcomes than others for its scores", "higher", "lower"),
        ),
        **SELECTED,
    },
    "decision": {
        **SELECTED,
        "precision": both("selected with the outcome {} often", "more", "less"),
    },
}
ROWS = [
    (task, name, done)
    for task, metrics in SAID.items()
    for name, of in metrics.items()
    for done in of
]


def test_every_tested_metric_is_in_the_table():
    tested = {
        task: {m.name for m in catalog().values() if task in m.tasks and not m.untested}
        for task in table()["tasks"]
    }
    assert {task: {*metrics} for task, metrics in SAID.items()} == tested


@pytest.mark.parametrize(("task", "name", "done"), ROWS)
def test_no_sentence_says_the_opposite_of_the_truth(task, name, done):
    """Whose scores are moved against their chances is worse off, and how is true."""
    rng = np.random.default_rng(3)
    n = 8000 if task == "ranking" else 3000
    group, chance = rng.choice(["a", "b"], n), rng.uniform(0.1, 0.9, n)
    own = group == "a"
    noise = rng.normal(scale=0.5, size=n) * (own if done == BLURRED else ~own)
    change = {DOWN: -0.3 * own, UP: 0.3 * own}.get(done, noise)
    score = np.clip(chance + change, 0, 1) if task == "risk" else chance + change
    outcome = (rng.random(n) < chance) * 1
    extra = {"threshold": 0.5} if task == "risk" else {}
    if task == "ranking":
        extra = {"qid": np.arange(n) // 40, "k": 8 if name.endswith("at_k") else None}
    if task == "decision":
        score = (score > 0.5) * 1.0
    who = {"sensitive_features": group, "metrics": name, "task": task}
    report = audit(outcome, score, favorable="high", **who, **extra)
    for favorable in ("high", "low"):
        check_sentences(replace(report, favorable=favorable), name, done)
    if name in SELECTED:
        among = {
            "true_positive_rate": outcome == 1,
            "false_positive_rate": outcome == 0,
        }
        sides = []
        for side in (own, ~own):
            counted = side & among.get(name, True)
            hits = int((score[counted] >= 0.5).sum())
            sides.append((f"{hits:,} of {counted.sum():,}", hits / counted.sum()))
        (first, rate), (rest, rate_of_rest) = sides if done == DOWN else sides[::-1]
        counts = f"({first}, {rate:.1%}; {rest} of the rest, {rate_of_rest:.1%})"
        assert counts in report.headline


def check_sentences(report, name, done):
    """Check that the group is on the right side, and in the right sentence."""
    said = SAID[report.task][name]
    if report.favorable == "low":
        said = {key: text.replace("selected", "flagged") for key, text in said.items()}
    words, (opposite,) = said[done], {*said.values()} - {said[done]}
    (finding,) = report.findings
    row = next(row for row in finding.rows if row.group == "a")
    assert row.pvalue_corrected < 0.01
    assert finding.metric.sides[row.side] == words
    harmed = done == BLURRED
    if done in (DOWN, UP):
        harmed = (done == DOWN) == (report.favorable == "high")
    side = "worse" if harmed else "better"
    if name == "pairwise_accuracy" and report.favorable == "low":  # nobody knows
        side = "lower" if done == DOWN else "higher"
    if name.startswith("precision"):  # which alone does not say who
        side = "higher" if done == DOWN else "lower"
    assert row.side == side
    true, false = (text[0].upper() + text[1:] for text in (words, opposite))
    assert f"{true}: a (" in report.headline or f"{false}: b (" in report.headline
    assert f"{true}: b (" not in report.headline
    assert f"{false}: a (" not in report.headline


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
    assert [row.group for row in finding.groups_on("worse")] == ["f"]
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
        ([profit, print], "got <built-in function print>"),
    ):
        with pytest.raises(ValueError, match=message):
            audit(**DATA, metrics=metrics)
    with pytest.raises(ValueError, match="metrics must be among"):
        audit_cv({}, Y, Y, sensitive_features=GROUP, metrics=[profit])
