"""Calls of everything public, good by construction, and what spoils an argument."""

import functools
import inspect
import pickle
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold
from sklearn.utils import check_array

import skrankfair
from skrankfair import (
    datasets,
    inference,
    metrics,
    mitigation,
    model_selection,
    planning,
    rankers,
    scoring,
    smoothing,
)

NAN, INF = float("nan"), float("inf")
COLUMNS = (
    *("y_true", "y_score", "sensitive_features", "qid", "cluster", "sample_weight"),
    *("engagement", "X", "y", "before", "after", "values"),
)
#: What a call needs beside its columns.
NEEDED = {
    "positive_rate_shift": {"threshold": 0.5, "n_resamples": 3},
    "rank_shift": {"n_resamples": 3},
    "nadaraya_watson": {"grid": [0.2, 0.5], "bandwidth": 0.2},
    "matched_pair_calibration": {"epsilon": 0.2},
    "matched_pair_curve": {"epsilon": [0.1, 0.3]},
    "skew_at_k": {"k": 2},
    "monotonicity_test": {"group": "a", "n_resamples": 20},
    "marginal_outcome_test": {"threshold": 0.3, "n_resamples": 50},
    "predictive_parity_test": {"n_resamples": 50},
    "outcome_inequality_test": {"n_resamples": 50},
    **{
        f"normalized_discounted_{kind}": {"step": 2}
        for kind in ("difference", "ratio", "kl")
    },
}
#: Options that are right wherever they are taken, or refused with a ValueError.
OPTIONS = {
    "comparison": ("all", "intra", "inter"),
    "average": ("pairs", "queries", "amortized", "representation"),
    "variance": ("auto", "cluster", "item"),
    "position_weight": ("uniform", "dcg", "reciprocal", "geometric", "top", [1, 0.5]),
    "direction": ("below", "both"),
    "estimator": ("mean", "local_linear"),
    "adjacent": (True, False),
    "signed": (True, False),
    "normalize": (True, False),
    "joint": (True, False),
    "target": ("expected", "relevance", "population"),
    "gain": ("linear", "exponential"),
    "tie_cost": (0.0, 0.5, 1.0),
    "k": (1, 3),
    "bins": (2, 3),
    "method": ("smooth", "binned", "sweep", "bootstrap", "permutation", "exact"),
    "kernel": ("gaussian", "epanechnikov"),
    "cluster_weight": ("cluster", "row"),
    "reference": ("all", "rest", "a"),
    "adjust": ("both", "up", "down"),
    "constraint": ("positive_rate", None),
    "monotonic": (True, False),
    "calibrator": ("nadaraya_watson", "isotonic", "platt", "binning"),
}
SPOILT = (
    *(None, NAN, INF, -INF, 0, -1, 1, 2, 0.5, 1e308, 5e-324, 2**63, 10**400, True),
    *("", "a", b"a", [], {}, (), object(), object, 1j, slice(3), np.zeros(0)),
    *(np.zeros((2, 3)), np.array(0.5), np.array([NAN]), np.datetime64("NaT")),
)
#: How much work is asked for: large numbers are no mistake, but take for ever.
AMOUNTS = (
    *("n_resamples", "n_permutations", "n_jobs", "grid_size", "n_queries", "n_items"),
    *("n_clusters", "n_rankings", "n_max", "n_signals", "max_iter", "max_pairs", "cv"),
    *("n_bins", "b0", "b1", "rate", "verbose"),
)


@dataclass(frozen=True)
class Call:
    """A function with arguments, some of which are columns of as many rows."""

    name: str
    function: object
    arguments: dict

    def __call__(self):
        """Return what the function returns."""
        return self.function(**self.arguments)

    def but(self, **changed):
        """Return the call with other arguments."""
        return replace(self, arguments={**self.arguments, **changed})

    @property
    def n_rows(self):
        """Number of rows of the columns; 0 without any."""
        return max((len(column) for column in self.columns.values()), default=0)

    @property
    def columns(self):
        """The arguments that are columns as they were made."""
        return {
            name: value
            for name, value in self.arguments.items()
            if name in COLUMNS
            and isinstance(value, np.ndarray | pd.DataFrame)
            and value.ndim
        }

    def take(self, rows):
        """Return the call with some of the rows."""
        n_rows = self.n_rows
        return self.but(
            **{
                name: value.iloc[rows]
                if isinstance(value, pd.DataFrame)
                else value[rows]
                for name, value in self.columns.items()
                if len(value) == n_rows
            }
        )


# Functions of columns


@functools.cache
def of_columns():
    """Return every public function that takes scores, by name."""
    found = {
        name: getattr(module, name)
        for module in (metrics, inference, smoothing)
        for name in module.__all__
    }
    found["audit"] = skrankfair.audit
    found["make_metric"] = made
    return {
        name: function
        for name, function in found.items()
        if inspect.isfunction(function)
        and {"y_true", "y_score", "values"}
        & set(inspect.signature(function).parameters)
    }


def scores_and_hits(y_true, y_score):
    """Return two columns."""
    return y_true * y_score, y_score


def ratio_of_two(totals):
    """Return the ratio of the first two columns."""
    return totals[..., 0] / totals[..., 1]


def made(y_true, y_score, *, sensitive_features=None, cluster=None, sample_weight=None):
    """Measure by a metric that is made here."""
    metric = metrics.make_metric(scores_and_hits, ratio_of_two, name="share_of_score")
    return metric(
        y_true,
        y_score,
        sensitive_features=sensitive_features,
        cluster=cluster,
        sample_weight=sample_weight,
    )


def columns(rng):
    """Return columns of one data set: ties, ragged queries, two or three groups."""
    n = int(rng.integers(12, 40))
    query = np.sort(rng.integers(0, max(1, n // 6), n))
    labels = [list("abc"), [1, 2, 3], [True, False]][int(rng.integers(4)) // 2]
    group = rng.choice(np.array(labels)[: rng.integers(2, 4)], n)
    if rng.random() < 0.1:
        group = rng.random((n, 3)) < 0.5
    outcomes = (rng.integers(0, 2, n), rng.integers(0, 5, n) / 4, rng.random(n))
    return {
        "y_true": outcomes[int(rng.integers(3))].astype(float),
        "y_score": np.round(rng.random(n), int(rng.integers(1, 4))),
        "sensitive_features": group,
        "qid": query,
        "cluster": query // 2,
        "sample_weight": rng.integers(1, 3, n)[query].astype(float),
        "engagement": np.round(rng.random(n), 2),
        "values": rng.normal(size=n),
    }


def column_call(name, function, rng):
    """Return a call of a function of columns, with some of its options."""
    parameters = inspect.signature(function).parameters
    given = {k: v for k, v in columns(rng).items() if k in parameters}
    for optional in ("cluster", "sample_weight", "engagement", "qid"):
        if optional in given and rng.random() < (0.2 if optional == "qid" else 0.5):
            del given[optional]
    if name == "pairwise_accuracy" and "engagement" not in given:
        parameters = {k: v for k, v in parameters.items() if k != "bins"}
    chosen = {
        key: values[int(rng.integers(len(values)))]
        for key, values in OPTIONS.items()
        if key in parameters and rng.random() < 0.2
    }
    if name == "calibration_error" and rng.random() < 0.7:
        chosen["bandwidth"] = 0.2
    needed = {"threshold": 0.5} if "threshold" in parameters else {}
    return Call(name, function, {**given, **needed, **NEEDED.get(name, {}), **chosen})


# Estimators, which are fitted, copied and asked


class Given(BaseEstimator):
    """A ranker that predicts the first column of X."""

    def fit(self, X, y=None):
        """Fit nothing."""
        self.fitted_ = True
        return self

    def predict(self, X):
        """Return the first column."""
        columns = X.iloc[:, [0]] if isinstance(X, pd.DataFrame) else X
        return check_array(columns)[:, 0].astype(float)


def fit_and_ask(make, method, **arguments):
    """Fit an estimator, copy it, and return what it and its copy predict alike."""
    passed = {}
    for name in ("sensitive_features", "cluster", "qid", "sample_weight"):
        if name in arguments:
            passed[name] = arguments.pop(name)
    X, y = arguments.pop("X"), arguments.pop("y")
    model = clone(make(**arguments))
    fit = {k: v for k, v in passed.items() if accepts(model.fit, k)}
    model.fit(X, y, **fit)
    ask = getattr(model, method)
    asked = {k: v for k, v in passed.items() if k in inspect.signature(ask).parameters}
    answer = ask(X, **asked)
    again = getattr(pickle.loads(pickle.dumps(model)), method)(X, **asked)
    if not np.array_equal(np.asarray(answer), np.asarray(again), equal_nan=True):
        raise AssertionError(f"the copy predicts {again}, not {answer}")
    return answer


def accepts(method, name):
    """Whether a method takes an argument."""
    parameters = inspect.signature(method).parameters
    kinds = [p.kind for p in parameters.values()]
    return name in parameters or inspect.Parameter.VAR_KEYWORD in kinds


ESTIMATORS = {
    "GroupCalibrator": (mitigation.GroupCalibrator, "transform", {}),
    "MultiObjectiveCalibrator": (mitigation.MultiObjectiveCalibrator, "predict", {}),
    "GroupCalibratedClassifier": (
        mitigation.GroupCalibratedClassifier,
        "predict_proba",
        {"estimator": LogisticRegression(), "cv": 2},
    ),
    "GroupCalibratedRegressor": (
        mitigation.GroupCalibratedRegressor,
        "predict",
        {"estimator": LinearRegression(), "cv": 2},
    ),
    "GroupThresholdClassifier": (
        mitigation.GroupThresholdClassifier,
        "predict",
        {"estimator": LogisticRegression(), "cv": 2},
    ),
    "PairwiseFairClassifier": (
        mitigation.PairwiseFairClassifier,
        "predict_proba",
        {"max_iter": 5, "random_state": 0},
    ),
    "PairwiseFairRegressor": (
        mitigation.PairwiseFairRegressor,
        "predict",
        {"max_iter": 5, "random_state": 0},
    ),
    "NadarayaWatsonRegressor": (smoothing.NadarayaWatsonRegressor, "predict", {}),
    "QueryRanker": (rankers.QueryRanker, "predict", {"estimator": Given()}),
}


def estimator_call(name, rng):
    """Return a call that fits an estimator and asks it."""
    make, method, needed = ESTIMATORS[name]
    c = columns(rng)
    X = np.column_stack([c["y_score"], rng.normal(size=c["y_score"].size)])
    y = (c["y_true"] > 0.4).astype(float)
    given = {"X": X, "y": y}
    if name in ("GroupCalibrator", "NadarayaWatsonRegressor"):
        given["X"] = X[:, :1]
    if name == "MultiObjectiveCalibrator":
        given["y"] = np.column_stack([y, 1 - y])
    for key in ("sensitive_features", "cluster", "qid", "sample_weight"):
        if accepts(make.fit, key) and rng.random() < 0.6:
            given[key] = c[key]
    parameters = inspect.signature(make).parameters
    for key in ("calibrator", "adjust", "constraint", "monotonic", "comparison"):
        if key in parameters and rng.random() < 0.3:
            given[key] = OPTIONS[key][int(rng.integers(len(OPTIONS[key])))]
    return Call(name, functools.partial(fit_and_ask, make, method), {**needed, **given})


# Scorers, reports, and what else takes a model or a table


def scored(metric, X, y, **options):
    """Score a ranker by a metric whose columns are columns of X."""
    scorer = scoring.make_fairness_scorer(metric, **options)
    repr(scorer)
    return scorer(Given().fit(X), X, y)


def scored_by_name(name, X, y, **options):
    """Score a ranker by the name of a scorer."""
    return scoring.get_scorer(name, **options)(Given().fit(X), X, y)


def table_of(c):
    """Return columns as one frame: score, group, query."""
    group = c["sensitive_features"]
    return pd.DataFrame(
        {
            "score": c["y_score"],
            "group": group if group.ndim == 1 else group[:, 0],
            "query": c["qid"],
        }
    )


def scorer_call(name, rng):
    """Return a call of a scorer."""
    c = columns(rng)
    given = {"X": table_of(c), "y": c["y_true"], "qid": "query"}
    if name == "get_scorer":
        names = scoring.get_scorer_names()
        given["name"] = names[int(rng.integers(len(names)))]
        if given["name"] not in ("ndcg", "ndcg@10"):
            given["sensitive_features"] = "group"
        return Call(name, scored_by_name, given)
    given["metric"] = getattr(
        metrics, ("pairwise_accuracy", "exposure_gap", "dips")[int(rng.integers(3))]
    )
    return Call(name, scored, {**given, "sensitive_features": "group"})


def report_call(name, rng):
    """Return a call of a report of two scores, or of an estimator."""
    c = columns(rng)
    y = (c["y_true"] > 0.4).astype(float)
    who = {"sensitive_features": c["sensitive_features"]}
    if name == "audit_cv":
        given = {"X": table_of(c)[["score"]], "y": y, "cv": KFold(2), "qid": c["qid"]}
        model = {"estimator": Given()}
        return Call(name, skrankfair.audit_cv, {**model, **given, **who})
    given = {"before": c["y_score"], "after": 1 - c["y_score"], "y_true": y}
    return Call(name, skrankfair.mitigation_report, {**given, **who})


def objective(score, y_true, **options):
    """Return gradient and Hessian of a boosting objective."""
    made = mitigation.pairwise_fairness_objective(y_true, **options)
    return np.concatenate([np.asarray(part) for part in made(y_true, score)])


def searched(**options):
    """Choose a candidate of a search."""
    scores = {"utility": [0.5, 0.6, 0.7], "gap": [-0.1, -0.2, -0.3]}
    chosen = model_selection.fairness_constrained(**options)
    found = {
        **{f"mean_test_{k}": np.asarray(v) for k, v in scores.items()},
        **{f"split0_test_{k}": np.asarray(v) for k, v in scores.items()},
        "params": [{}] * 3,
    }
    return np.array([chosen(found), *model_selection.pareto_front(found, list(scores))])


PLANS = {
    "plan_rates": {"rate": 0.3, "share": 0.2, "correlation": 0.1, "n_items": 4},
    "plan_pairs": {"accuracy": 0.7, "rate": 0.3, "share": 0.2, "n_items": 8},
}


def other_call(name, rng):
    """Return a call of what is not made of columns."""
    c = columns(rng)
    if name == "expected_advantage":
        given = {
            "probabilities": np.full((6, 6), 1 / 6),
            "sensitive_features": np.array(list("aababb")),
            "step": 2,
            "k": 2,
        }
        return Call(name, metrics.expected_advantage, given)
    if name == "pairwise_fairness_objective":
        given = {k: c[k] for k in ("y_true", "sensitive_features", "qid")}
        function = functools.partial(objective, c["y_score"])
        return Call(name, function, {**given, "random_state": 0})
    if name == "fairness_constrained":
        return Call(name, searched, {"objective": "utility", "at_most": {"gap": 0.2}})
    if name == "recommend_metrics":
        test = some_results("MonotonicityTest", int(rng.integers(3)))
        return Call(name, inference.recommend_metrics, {"test": test})
    if name in ("compare", "compare_independent"):
        who = {k: c[k] for k in ("sensitive_features", "qid", "sample_weight")}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            a, b = (
                metrics.pairwise_accuracy(c["y_true"], s, **who)
                for s in (c["y_score"], -c["y_score"])
            )
        return Call(name, getattr(inference, name), {"a": a, "b": b})
    if name in PLANS:
        return Call(name, getattr(planning, name), dict(PLANS[name]))
    if name == "power_curve":
        given = {"pilot": planning.plan_rates(0.3, share=0.2), "gap": [0.05, 0.1]}
        return Call(name, planning.power_curve, given)
    sizes = {"n_clusters": 5, "n_rankings": 3, "n_items": 6, "n_queries": 4}
    make = getattr(datasets, name)
    accepted = inspect.signature(make).parameters
    given = {k: v for k, v in sizes.items() if k in accepted}
    options = {k: p.default for k, p in accepted.items() if k not in given}
    return Call(name, make, {**options, **given, "random_state": 0})


OTHERS = (
    *("expected_advantage", "pairwise_fairness_objective", "fairness_constrained"),
    *("recommend_metrics", "compare", "compare_independent", "power_curve", *PLANS),
    *(name for name in datasets.__all__ if name.startswith("make_")),
)


# Methods of results

ARGUMENTS = {
    "confidence_level": 0.9,
    "n_resamples": 20,
    "random_state": 0,
    "a": "a",
    "b": "b",
    "kind": "difference",
    "correction": "holm",
    "method": "t",
    "reference": None,
    "text": "{}",
    "power": 0.8,
    "gap": 0.1,
    "margin": 0.1,
    "name": "mean",
    "table": np.ones((4, 2, 2)),
    "groups": ["a", "b"],
    "finalize": ratio_of_two,
}
#: Pictures and files; and what takes numbers of other methods only.
LEFT_OUT = ("plot", "to_html", "to_excel", "ends", "covariances")


@functools.cache
def some_results(kind, seed):
    """Return a result of a kind; they do not change, so one serves many calls."""
    rng = np.random.default_rng(seed)
    n = 60
    y, s = rng.integers(0, 2, n).astype(float), np.round(rng.random(n), 2)
    who = {"sensitive_features": rng.choice(list("ab"), n)}
    ranked = {**who, "qid": np.arange(n) // 6}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MAKERS[kind](y, s, who, ranked)


MAKERS = {
    "GroupEstimates": lambda y, s, who, ranked: (
        metrics.pairwise_accuracy(y, s, **ranked),
        metrics.exposure_gap(y, s, **ranked),
        metrics.log_loss(y, s, **who).compact(),
        metrics.skew_at_k(None, s, k=2, **ranked),
        metrics.pairwise_accuracy(y, s, **who),
        metrics.rank_shift(y, s, n_resamples=3, **ranked),
    )[int(y.sum()) % 6],
    "GroupTest": lambda y, s, who, ranked: metrics.dips(y, s, **ranked).test(),
    "Estimate": lambda y, s, who, ranked: metrics.log_loss(y, s, **who).contrast(
        "a", "b", kind="ratio"
    ),
    "MatchedPairCurve": lambda y, s, who, ranked: metrics.matched_pair_curve(
        y, s, epsilon=[0.1, 0.3], **ranked
    ),
    "PredictiveParityTest": lambda y, s, who, ranked: inference.predictive_parity_test(
        y, s, n_resamples=20, **who
    ),
    "MarginalOutcomeTest": lambda y, s, who, ranked: inference.marginal_outcome_test(
        y, s, threshold=0.5, n_resamples=20, **who
    ),
    "MonotonicityTest": lambda y, s, who, ranked: inference.monotonicity_test(
        s, group="a", n_resamples=20, **ranked
    ),
    "OutcomeInequalityTest": lambda y, s, who, ranked: (
        inference.outcome_inequality_test(y, s, n_resamples=20, **ranked)
    ),
    "SmoothCurve": lambda y, s, who, ranked: smoothing.nadaraya_watson(
        y, s, [0.3, 0.6]
    ),
    "AuditReport": lambda y, s, who, ranked: skrankfair.audit(y, s, **ranked),
    "ChangeReport": lambda y, s, who, ranked: skrankfair.audit(
        y, s, **ranked
    ).changes_since(skrankfair.audit(y, -s, **ranked)),
    "MitigationReport": lambda y, s, who, ranked: skrankfair.mitigation_report(
        s, 1 - s, y, **who
    ),
}


@functools.cache
def methods():
    """Return the names of the public methods of results."""
    found = []
    for kind in MAKERS:
        thing = some_results(kind, 0)
        for name in dir(type(thing)):
            attribute = inspect.getattr_static(type(thing), name)
            routine = inspect.isfunction(attribute)
            routine |= isinstance(attribute, classmethod)
            if routine and not name.startswith("_") and name not in LEFT_OUT:
                found.append(f"{kind}.{name}")
    return found


def method_call(name, rng):
    """Return a call of a method of a result."""
    kind, _, method = name.partition(".")
    function = getattr(some_results(kind, int(rng.integers(6))), method)
    parameters = inspect.signature(function).parameters
    given = {
        key: ARGUMENTS.get(key)
        for key, p in parameters.items()
        if p.default is p.empty or (key in ARGUMENTS and rng.random() < 0.5)
        if p.kind is not p.VAR_KEYWORD
    }
    return Call(name, function, given)


# All of them


def names():
    """Return the names of all that is called, by kind."""
    return {
        "columns": list(of_columns()),
        "estimators": list(ESTIMATORS),
        "scorers": ["make_fairness_scorer", "get_scorer"],
        "reports": ["audit_cv", "mitigation_report"],
        "others": list(OTHERS),
        "methods": [name for name in methods() if not name.endswith(".to_json")]
        + ["GroupEstimates.to_json"],
    }


def make(kind, name, rng):
    """Return a good call."""
    if kind == "columns":
        return column_call(name, of_columns()[name], rng)
    makers = {
        "estimators": estimator_call,
        "scorers": scorer_call,
        "reports": report_call,
        "others": other_call,
        "methods": method_call,
    }
    return makers[kind](name, rng)


def spoil(value, rng):
    """Return something else than a good argument."""
    column = isinstance(value, np.ndarray) and value.ndim == 1 and value.size
    if not column or rng.random() < 0.2:
        return SPOILT[int(rng.integers(len(SPOILT)))]
    how, row = int(rng.integers(6)), int(rng.integers(value.size))
    if how == 0:
        return value[:-1]
    if how == 1:
        return value[:0]
    if how == 2:
        return value.reshape(-1, 1)
    if how == 3:
        return np.repeat(value[:1], value.size)
    out = value.astype(object)
    out[row] = SPOILT[int(rng.integers(len(SPOILT)))]
    return out if how == 4 else out.tolist()


def spoilt(call, rng):
    """Return the call with one or two arguments spoilt."""
    options = set(call.arguments)
    if not isinstance(call.function, functools.partial):
        options |= set(inspect.signature(call.function).parameters)
    options = sorted(options - {"kwargs", "options", "metric_params"})
    changed = {}
    for _ in range(int(rng.integers(1, 3)) if options else 0):
        key = options[int(rng.integers(len(options)))]
        value = spoil(call.arguments.get(key), rng)
        large = isinstance(value, int | float) and not abs(value) < 1000
        if not (key in AMOUNTS and large):
            changed[key] = value
    return call.but(**changed)
