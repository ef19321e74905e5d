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
from tests.golden.of_rankings import STORED, room

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
        yield f"scorers/by_name/{name}", partial(scored, name)


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
#: By name: what it predicts with, and the wrapper.
WRAPPED = {
    "classifier": (
        "predict_proba",
        mitigation.GroupCalibratedClassifier(CLASSIFIER, cv=2),
    ),
    "classifier-ensemble": (
        "predict_proba",
        mitigation.GroupCalibratedClassifier(CLASSIFIER, cv=2, ensemble=True),
    ),
    "regressor": (
        "predict",
        mitigation.GroupCalibratedRegressor(LinearRegression(), cv=2),
    ),
    **{
        f"thresholds-{adjust}-{constraint}": (
            "predict",
            THRESHOLDS(adjust=adjust, constraint=constraint),
        )
        for adjust in ("both", "raise", "lower")
        for constraint in ("overall_positive_rate", "equalized_odds", None)
        if constraint != "equalized_odds" or adjust == "both"
    },
    "random": (
        "predict",
        THRESHOLDS(constraint="equalized_odds", randomize=True, random_state=0),
    ),
}
PAIRWISE = {"max_iter": 20, "random_state": 0}


def mitigations():
    """Yield what every mitigation predicts, with each of its options."""
    X, y = table()
    features, both = X[["score", "x"]].to_numpy(), np.column_stack([y, 1 - y])
    who = {"sensitive_features": X["group"].to_numpy()}
    ranked = {**who, "qid": X["query"].to_numpy()}
    weight = {"sample_weight": 1.0 + np.arange(y.size) % 3}
    models = {}  # arguments of `fitted`, and what it passes on
    for name in ("nadaraya_watson", "isotonic", "platt", "binning"):
        model = mitigation.GroupCalibrator(name)
        given = model, "transform", features[:, :1], y
        models[f"mitigation/calibrator/{name}"] = given, who
        models[f"mitigation-weights/calibrator/{name}"] = given, {**who, **weight}
        alone = mitigation.GroupCalibrator(name, shrinkage=None)
        models[f"mitigation/alone/{name}"] = (alone, *given[1:]), who
    for weights in (None, [1.0, 2.0]):
        model = mitigation.MultiObjectiveCalibrator(weights=weights)
        given = model, "predict", features, both
        models[f"mitigation/objectives/{weights}"] = given, who
    for name, (method, model) in WRAPPED.items():
        models[f"mitigation/wrapped/{name}"] = (model, method, features, y), who
    for name in ("inter", "intra", "all"):
        model = mitigation.PairwiseFairClassifier(comparison=name, **PAIRWISE)
        given = model, "predict_proba", features, y
        models[f"mitigation/pairwise/{name}"] = given, ranked
    given = mitigation.PairwiseFairRegressor(**PAIRWISE), "predict", features, y
    models["mitigation/pairwise/regressor"] = given, ranked
    for name, (given, passed) in models.items():
        yield name, partial(fitted, *given, **passed)
    yield "mitigation/objective/gradient", partial(gradient, features, y, ranked)


def fitted(model, method, X, y, **passed):
    """Return what a model predicts of the rows to which it is fitted."""
    model.fit(X, y, **passed)
    asked = {"sensitive_features": passed["sensitive_features"]}
    if "Pairwise" in type(model).__name__:
        asked = {}
    return np.asarray(getattr(model, method)(X, **asked), dtype=float)


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
    "audits/ranking/plain": (columns, {}),
    "audits/ranking/margin": (
        columns,
        {"margin": 0.05, "correction": "fdr_bh", "confidence_level": 0.9},
    ),
    "audits/ranking/k": (columns, {"k": 3}),
    "audits/ranking/users": (columns, {"cluster": USERS}),
    "audits/ranking/twenty": (partial(columns, n=800, n_groups=20), {}),
    "audits/ranking/all": (
        columns,
        {"engagement": np.arange(480) % 7 / 7, "metrics": "all"},
    ),
    "audits-weights/ranking/weights": (columns, {"sample_weight": WEIGHT}),
    "audits-weights/ranking/item_weight": (columns, {"item_weight": WEIGHT}),
    "audits-item/ranking/list": (
        partial(columns, n=120, ranked=False),
        {"task": "ranking"},
    ),
    "audits-item/risk/plain": (risk, {"threshold": 0.5}),
    "audits-item/risk/clusters": (
        risk,
        {"cluster": PERSONS, "threshold": 0.5, "favorable": "low"},
    ),
    "audits/decision/plain": (decided, {"favorable": "high", "impact_ratio": True}),
    "audits/decision/clusters": (decided, {"cluster": PERSONS}),
}


def audited(name):
    """Return the audit of a name."""
    make, options = AUDITED[name]
    return skrankfair.audit(**make(), **options)


def audited_cv():
    """Return the audit of a ranker over folds."""
    X, y = table()
    who = {"sensitive_features": X["group"], "qid": X["query"]}
    return skrankfair.audit_cv(Given(), X[["score"]], y, cv=KFold(3), **who)


AUDITS = {
    **{name: partial(audited, name) for name in AUDITED},
    "audits/cv/ranking": audited_cv,
    "audits/mitigation/ranking": lambda: mitigated(np.arange(480) // 8),
    "audits-item/mitigation/risk": lambda: mitigated(None),
    "audits/changes/ranking": lambda: changed(columns()),
}


def audits():
    """Yield the tables of audits."""
    yield from AUDITS.items()
    for path in sorted(STORED.glob("report_*.json")):
        name = path.stem.removeprefix("report_")
        label = room("stored", item="item" in name, weights="weights" in name)
        yield f"{label}/report {name}/read", partial(read_report, path)


def read_report(path):
    """Return a stored report."""
    return AuditReport.from_json(path.read_text(encoding="utf-8"))


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
        path = shutil.copy(STORED / "monitor.jsonl", folder)
        monitor = Monitor.open(path)
        monitor.update(day(10), when="2026-01-11")
        return shown(monitor)


def monitors():
    """Yield monitors of ten days."""
    yield "monitoring/run/plain", lambda: shown(watched())
    yield "monitoring/run/margin", lambda: shown(watched(margin=0.1, baseline=3))
    yield "stored-compact/monitor/read", reopened


# Files


FIRST_PASS = {
    "quantile": partial(metrics.matched_pair_calibration, quantile=0.3),
    "rate_shift": partial(metrics.positive_rate_shift, threshold=0.5, n_resamples=5),
    "rank_shift": partial(metrics.rank_shift, n_resamples=5),
}


def files():
    """Yield the metrics of a log that is read by DuckDB."""
    for name in METRICS:
        yield f"measured/duckdb/{name}", lambda name=name: measured(METRICS)[name]
    for name in FIRST_PASS:
        label = f"first-pass-files/duckdb/{name}"
        yield label, lambda name=name: measured(FIRST_PASS, 5)[name]


def measured(chosen, n_replicates=0):
    """Return metrics of a log that is read in three parts."""
    return _measured(tuple(chosen), n_replicates)


@functools.cache
def _measured(names, n_replicates):
    log = click_log()
    chosen = {name: {**METRICS, **FIRST_PASS}[name] for name in names}
    return measure(
        pa.Table.from_pandas(log[log["q"] < 150]),
        chosen,
        n_partitions=3,
        n_replicates=n_replicates,
        **WHO,
    )


MAKERS = (scorers, mitigations, audits, monitors, files)
