"""Entries of scorers, mitigations, audits, monitoring, and measuring of files."""

import functools
import shutil
import tempfile
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold

import skrankfair
from skrankfair import AuditReport, metrics, mitigation, scoring
from skrankfair.distributed import measure
from skrankfair.monitoring import Monitor
from tests.distributed.logs import METRICS, WHO, click_log
from tests.fuzz import Given
from tests.golden.of_rankings import STORED

# Scorers and mitigations


@functools.cache
def table(n=240):
    """Return features with a group, a query and a user, and outcomes of 0 and 1."""
    rng = np.random.default_rng(11)
    X = pd.DataFrame({"score": rng.random(n).round(2), "x": rng.normal(size=n)})
    X["group"] = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    X["query"] = np.arange(n) // 8
    X["user"] = np.arange(n) // 16
    chance = np.where(X["group"] == "a", X["score"], X["score"] ** 2)
    return X, (rng.random(n) < chance).astype(float)


def scorers():
    """Yield the value of every scorer that has a name."""
    for name in scoring.get_scorer_names():
        if "mean_position" in name:  # younger than the frozen numbers
            continue
        yield f"scorers/by_name/{name}", scored, name


def scored(name):
    """Return the score of the first column of X."""
    X, y = table()
    group = "side" if "ndcg" in name else "group"
    X = X.assign(side=np.where(X["query"] % 3 == 0, "left", "right"))
    for options in (
        {"qid": "query"},
        {},
        {"threshold": 0.5},
        {"qid": "query", "n_resamples": 3},
        {"threshold": 0.5, "n_resamples": 3},
    ):
        try:
            scorer = scoring.get_scorer(name, sensitive_features=group, **options)
            return float(scorer(Given().fit(X), X, y))
        except (TypeError, ValueError):  # takes no queries, or needs a threshold
            continue
    raise AssertionError(f"{name} needs other options.")


CLASSIFIER = LogisticRegression()
THRESHOLDS = partial(mitigation.GroupThresholdClassifier, CLASSIFIER, cv=2)
CALIBRATED = partial(mitigation.GroupCalibratedClassifier, CLASSIFIER, cv=2)
WRAPPED = {
    "classifier": CALIBRATED(),
    "classifier-ensemble": CALIBRATED(ensemble=True),
    "regressor": mitigation.GroupCalibratedRegressor(LinearRegression(), cv=2),
    **{
        f"thresholds-{adjust}-{constraint}": THRESHOLDS(
            adjust=adjust, constraint=constraint
        )
        for adjust in ("both", "raise", "lower")
        for constraint in ("overall_positive_rate", "equalized_odds", None)
        if constraint != "equalized_odds" or adjust == "both"
    },
    "random": THRESHOLDS(constraint="equalized_odds", randomize=True, random_state=0),
}
PAIRWISE = {"max_iter": 20, "random_state": 0}


def mitigations():
    """Yield what every mitigation predicts, with each of its options."""
    X, y = table()
    features, both = X[["score", "x"]].to_numpy(), np.column_stack([y, 1 - y])
    who = {"sensitive_features": X["group"].to_numpy()}
    ranked = {**who, "qid": X["query"].to_numpy()}
    weight = {"sample_weight": 1.0 + np.arange(y.size) % 3}
    for name in ("nadaraya_watson", "isotonic", "platt", "binning"):
        model, given = mitigation.GroupCalibrator(name), (features[:, :1], y)
        yield f"mitigation/calibrator/{name}", fitted, model, *given, who
        weighted = {**who, **weight}
        yield f"mitigation/calibrator weights/{name}", fitted, model, *given, weighted
        alone = mitigation.GroupCalibrator(name, shrinkage=None)
        yield f"mitigation/alone/{name}", fitted, alone, *given, who
    for weights in (None, [1.0, 2.0]):
        model = mitigation.MultiObjectiveCalibrator(weights=weights)
        yield f"mitigation/objectives/{weights}", fitted, model, features, both, who
    for name, model in WRAPPED.items():
        yield f"mitigation/wrapped/{name}", fitted, model, features, y, who
    for name in ("inter", "intra", "all"):
        model = mitigation.PairwiseFairClassifier(comparison=name, **PAIRWISE)
        yield f"mitigation/pairwise/{name}", fitted, model, features, y, ranked
    model = mitigation.PairwiseFairRegressor(**PAIRWISE)
    yield "mitigation/pairwise/regressor", fitted, model, features, y, ranked
    yield "mitigation/objective/gradient", gradient, features, y, ranked


#: What a model predicts with, unless it is a regressor or decides.
METHODS = {
    mitigation.GroupCalibrator: "transform",
    mitigation.GroupCalibratedClassifier: "predict_proba",
    mitigation.PairwiseFairClassifier: "predict_proba",
}


def fitted(model, X, y, columns):
    """Return what a model predicts of the rows to which it is fitted."""
    predict = getattr(model.fit(X, y, **columns), METHODS.get(type(model), "predict"))
    if "qid" in columns:  # and no groups are needed to predict
        return predict(X).astype(float)
    return predict(X, sensitive_features=columns["sensitive_features"]).astype(float)


def gradient(X, y, ranked):
    """Return gradient, Hessian and value of the objective for boosting."""
    objective = mitigation.pairwise_fairness_objective(y, random_state=0, **ranked)
    first, second = objective(y, X[:, 0])
    return {"gradient": first, "hessian": second, "value": objective.value(X[:, 0])}


# Audits


def columns(n=480, n_groups=3, ranked=True):
    """Return columns of an audit."""
    rng = np.random.default_rng(n_groups)
    score = rng.integers(1, 64, n) / 64
    group = rng.choice(n_groups, n)
    outcome = rng.random(n) < np.where(group == 0, score, score**1.5)
    given = {
        "y_true": outcome.astype(float),
        "y_score": score,
        "sensitive_features": np.array([f"group {i}" for i in range(n_groups)])[group],
    }
    return {**given, "qid": np.arange(n) // 8} if ranked else given


def risk():
    """Return columns of an audit of a risk."""
    return columns(n=300, n_groups=2, ranked=False)


def decided():
    """Return columns of an audit of decisions."""
    given = risk()
    return {**given, "y_score": given["y_score"] > 0.4}


WEIGHT = 1.0 + np.arange(480) // 8 % 3
USERS, PERSONS = np.arange(480) // 16, np.arange(300) // 3
#: By name: what makes the columns, and the options of the audit.
AUDITED = {
    "ranking/plain": (columns, {}),
    "ranking/margin": (
        columns,
        {"margin": 0.05, "correction": "fdr_bh", "confidence_level": 0.9},
    ),
    "ranking/k": (columns, {"k": 3}),
    "ranking/users": (columns, {"cluster": USERS}),
    "ranking/twenty": (partial(columns, n=800, n_groups=20), {}),
    "ranking/all": (columns, {"engagement": np.arange(480) % 7 / 7, "metrics": "all"}),
    "ranking/weights": (columns, {"sample_weight": WEIGHT}),
    "ranking/item_weight": (columns, {"item_weight": WEIGHT}),
    "ranking/list": (partial(columns, n=120, ranked=False), {"task": "ranking"}),
    "risk/plain": (risk, {"threshold": 0.5}),
    "risk/clusters": (risk, {"cluster": PERSONS, "threshold": 0.5, "favorable": "low"}),
    "decision/plain": (decided, {"favorable": "high", "impact_ratio": True}),
    "decision/clusters": (decided, {"cluster": PERSONS}),
}


def audits():
    """Yield the tables of audits."""
    for name, (make, options) in AUDITED.items():
        yield f"audits/{name}", partial(skrankfair.audit, **make(), **options)
    X, y = table()
    who = {"sensitive_features": X["group"], "qid": X["query"]}
    cv = partial(skrankfair.audit_cv, Given(), X[["score"]], y, cv=KFold(3), **who)
    yield "audits/cv/ranking", cv
    yield "audits/mitigation/ranking", mitigated, np.arange(480) // 8
    yield "audits/mitigation/risk", mitigated, None
    yield "audits/changes/ranking", changed, columns()
    for path in sorted(STORED.glob("report_*.json")):
        name = path.stem.removeprefix("report_")
        text = path.read_text(encoding="utf-8")
        yield f"stored/report {name}/read", AuditReport.from_json, text


def mitigated(query):
    """Return the report of two scores."""
    given = columns(ranked=False)
    score = given.pop("y_score")
    return skrankfair.mitigation_report(score, score**2, **given, qid=query)


def changed(given):
    """Return what has changed between two scores."""
    before = skrankfair.audit(**given)
    after = skrankfair.audit(**{**given, "y_score": given["y_score"] ** 2 % 0.7})
    return after.changes_since(before)


# Monitoring


def day(seed, n=200):
    """Return the selection rates of a day, of which a group's falls."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["f", "m"], n)
    chosen = rng.random(n) < 0.5 - 0.03 * seed * (group == "f")
    return metrics.selection_rate(None, chosen, sensitive_features=group)


def watched(path=None, **settings):
    """Return a monitor of ten days."""
    monitor = Monitor(path, **settings)
    for seed in range(10):
        monitor.update(day(seed), when=f"2026-01-{seed + 1:02}")
    return monitor


def shown(monitor):
    """Return all that a monitor says."""
    return {
        "frame": monitor.to_frame(),
        "rolling": monitor.rolling(3),
        "result": monitor.result(),
        "last": monitor.result(last=2).contrasts(),
        "alarms": [x for a in monitor.alarms for x in (a.evidence, a.low, a.high)],
    }


def reopened():
    """Return what a stored monitor says, after one more day."""
    with tempfile.TemporaryDirectory() as folder:
        monitor = Monitor.open(shutil.copy(STORED / "monitor.jsonl", folder))
        monitor.update(day(10), when="2026-01-11")
        return shown(monitor)


def monitors():
    """Yield monitors of ten days."""
    yield "monitoring/run/plain", lambda: shown(watched())
    yield "monitoring/run/margin", lambda: shown(watched(margin=0.1, baseline=3))
    yield "stored/monitor/read", reopened


# Files


FIRST_PASS = {
    "quantile": partial(metrics.matched_pair_calibration, quantile=0.3),
    "rate_shift": partial(metrics.positive_rate_shift, threshold=0.5, n_resamples=5),
    "rank_shift": partial(metrics.rank_shift, n_resamples=5),
}


def files():
    """Yield the metrics of a log that is read by DuckDB."""
    for name in METRICS:
        yield f"measured/duckdb/{name}", measured, name, False
    for name in FIRST_PASS:
        yield f"measured/first pass/{name}", measured, name, True


def measured(name, first_pass):
    """Return a metric of a log that is read in three parts."""
    return all_measured(first_pass)[name]


@functools.cache
def all_measured(first_pass):
    """Return the metrics with a first pass, or those without."""
    log = click_log()
    return measure(
        pa.Table.from_pandas(log[log["q"] < 150]),
        FIRST_PASS if first_pass else METRICS,
        n_partitions=3,
        n_replicates=5 if first_pass else 0,
        **WHO,
    )


MAKERS = (scorers, mitigations, audits, monitors, files)
