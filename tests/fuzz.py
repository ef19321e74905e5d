"""Everything public, called with what is good by construction and then spoilt.

A call that is spoilt is refused politely, and leaves its arguments alone. The order of
the rows does not matter, and threads find what one of them finds. `test_fuzz.py` makes
some calls, `benchmarks/fuzz.py` makes as many as there is time for.
"""

import copy
import inspect
import pickle
import traceback
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
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
from skrankfair.metrics import GroupEstimates
from tests.calls import OPTIONS as OF_METRICS
from tests.test_model_selection import make_results
from tests.test_read_only import results

NAN, INF = float("nan"), float("inf")
ALLOWED = (ValueError, TypeError, NotFittedError, ImportError)
#: What a call needs beside its columns.
NEEDED = {metric.__name__: options for metric, options in OF_METRICS.items()} | {
    "positive_rate_shift": {"threshold": 0.5, "n_resamples": 3},
    "rank_shift": {"n_resamples": 3},
    "recall_at_k": {"k": 2},
    "nadaraya_watson": {"grid": [0.2, 0.5], "bandwidth": 0.2},
    "matched_pair_calibration": {"epsilon": 0.2},
    "matched_pair_curve": {"epsilon": [0.1, 0.3]},
    "monotonicity_test": {"group": "a", "n_resamples": 20},
    "prefix_test": {"group": "a"},
    "marginal_outcome_test": {"threshold": 0.3, "n_resamples": 50},
    "predictive_parity_test": {"n_resamples": 50},
    "outcome_inequality_test": {"n_resamples": 50},
    "score_order_test": {"n_resamples": 50},
}
#: Options that are right wherever they are taken, or refused with a ValueError.
OPTIONS = {
    "comparison": ("all", "intra", "inter"),
    "average": ("pairs", "queries", "clusters", "amortized", "representation"),
    "variance": ("auto", "cluster", "item"),
    "position_weight": ("uniform", "dcg", "reciprocal", "geometric", "top", [1, 0.5]),
    "direction": ("below", "both"),
    "estimator": ("mean", "local_linear"),
    "adjacent": (True, False),
    "signed": (True, False),
    "divisor": (None, "sum", "maximum", "pairs"),
    "against": ("a",),
    "normalize": (True, False),
    "joint": (True, False),
    "target": ("expected", "relevance", "population", "equal"),
    "step": (1, 2),
    "gain": ("linear", "exponential"),
    "tie_cost": (0.0, 0.5, 1.0),
    "k": (1, 3),
    "bins": (2, 3),
    "method": ("smooth", "binned", "sweep", "bootstrap", "permutation", "exact"),
    "kernel": ("gaussian", "epanechnikov"),
    "cluster_weight": ("cluster", "row"),
    "reference": ("all", "rest", "a"),
    "adjust": ("both", "up", "down"),
    "favorable": ("high", "low"),
    "constraint": ("overall_positive_rate", None),
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
    *("n_bins", "b0", "b1", "rate"),
)


# A call is a `partial`, some of whose keywords are columns of as many rows; a `partial`
# of it changes them. What is given by position is part of the function.


def chosen(parameters, rng, share):
    """Return some of the options that are among the parameters."""
    return {
        key: values[int(rng.integers(len(values)))]
        for key, values in OPTIONS.items()
        if key in parameters and rng.random() < share
    }


# Functions of columns


def of_columns():
    """Return every public function that takes scores, by name."""
    functions = {
        name: getattr(module, name)
        for module in (metrics, inference, smoothing)
        for name in module.__all__
    }
    functions |= {"audit": skrankfair.audit, "make_metric": made}
    return {
        name: function
        for name, function in functions.items()
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
    who = {"sensitive_features": sensitive_features, "cluster": cluster}
    metric = metrics.make_metric(scores_and_hits, ratio_of_two, name="share_of_score")
    return metric(y_true, y_score, **who, sample_weight=sample_weight)


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
        "position": 1 + rng.permutation(n),
        "covariates": np.round(rng.random((n, 2)), 1),
    }


def column_call(name, rng):
    """Return a call of a function of columns, with some of its options."""
    function = of_columns()[name]
    parameters = set(inspect.signature(function).parameters)
    given = {k: v for k, v in columns(rng).items() if k in parameters}
    some = ("cluster", "sample_weight", "engagement", "position", "covariates", "qid")
    for optional in some:
        if optional in given and rng.random() < (0.2 if optional == "qid" else 0.5):
            del given[optional]
    if "covariates" in given:
        given["epsilon"] = 0.3
    if name.startswith("pairwise") and "engagement" not in given:
        parameters -= {"bins"}
    if name == "calibration_error":
        given["bandwidth"] = 0.2
    if "threshold" in parameters:
        given["threshold"] = 0.5
    options = chosen(parameters, rng, 0.2)
    return partial(function, **{**given, **NEEDED.get(name, {}), **options})


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
    names = ("sensitive_features", "cluster", "qid", "sample_weight")
    passed = {name: arguments.pop(name) for name in names if name in arguments}
    X, y = arguments.pop("X"), arguments.pop("y")
    model = clone(make(**arguments))
    model.fit(X, y, **passed)
    asked = inspect.signature(getattr(model, method)).parameters
    asked = {k: v for k, v in passed.items() if k in asked}
    answer = getattr(model, method)(X, **asked)
    again = getattr(pickle.loads(pickle.dumps(model)), method)(X, **asked)
    if not np.array_equal(np.asarray(answer), np.asarray(again), equal_nan=True):
        raise AssertionError(f"the copy predicts {again}, not {answer}")
    return answer


FOLDS = {"estimator": LogisticRegression(), "cv": 2}
OF_NUMBERS = {"estimator": LinearRegression(), "cv": 2}
STEPS = {"max_iter": 5, "random_state": 0}
ESTIMATORS = {
    mitigation.GroupCalibrator: ("transform", {}),
    mitigation.FairReranker: ("transform", {"random_state": 0}),
    mitigation.MultiObjectiveCalibrator: ("predict", {}),
    mitigation.GroupCalibratedClassifier: ("predict_proba", FOLDS),
    mitigation.GroupCalibratedRegressor: ("predict", OF_NUMBERS),
    mitigation.GroupThresholdClassifier: ("predict", FOLDS),
    mitigation.PairwiseFairClassifier: ("predict_proba", STEPS),
    mitigation.PairwiseFairRegressor: ("predict", STEPS),
    smoothing.NadarayaWatsonRegressor: ("predict", {}),
    rankers.QueryRanker: ("predict", {"estimator": Given()}),
}


def estimator_call(make, rng):
    """Return a call that fits an estimator and asks it."""
    method, needed = ESTIMATORS[make]
    c = columns(rng)
    X = np.column_stack([c["y_score"], rng.normal(size=c["y_score"].size)])
    y = (c["y_true"] > 0.4).astype(float)
    if make in (mitigation.GroupCalibrator, smoothing.NadarayaWatsonRegressor):
        X = X[:, :1]
    if make is mitigation.MultiObjectiveCalibrator:
        y = np.column_stack([y, 1 - y])
    accepted = inspect.signature(make.fit).parameters
    names = ("sensitive_features", "cluster", "qid", "sample_weight")
    passed = {k: c[k] for k in names if k in accepted and rng.random() < 0.6}
    options = chosen(set(inspect.signature(make).parameters) - {"kernel"}, rng, 0.3)
    options = {k: v for k, v in options.items() if k != "estimator"}
    return partial(fit_and_ask, make, method, X=X, y=y, **needed, **passed, **options)


# Scorers, reports, and what else is not made of columns


def scored(make, X, y, **options):
    """Score a ranker by a metric whose columns are columns of X."""
    scorer = make(**options)
    repr(scorer)
    return scorer(Given().fit(X), X, y)


def objective(score, y_true, **options):
    """Return gradient and Hessian of a boosting objective."""
    made = mitigation.pairwise_fairness_objective(y_true, **options)
    return np.concatenate([np.asarray(part) for part in made(y_true, score)])


def penalty(score, y_true, **options):
    """Return the penalty of pairs and its gradient."""
    made = mitigation.pairwise_penalty(y_true, **options)
    return np.append(*made(score)[::-1])


def searched(**options):
    """Choose a candidate of a search."""
    found = make_results([0.5, 0.6, 0.7], [[-0.1] * 2, [-0.2] * 2, [-0.3] * 2])
    choose = model_selection.fairness_constrained(**options)
    front = model_selection.pareto_front(found, ["quality", "gap"])
    return np.array([choose(found), *front])


def compared(name, y_true, y_score, **who):
    """Compare two scores of the same rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        a, b = (
            metrics.pairwise_accuracy(y_true, s, **who) for s in (y_score, -y_score)
        )
    return partial(getattr(inference, name), a=a, b=b)


def others(rng):
    """Return a call of each of the others, by name."""
    c = columns(rng)
    y, group = (c["y_true"] > 0.4).astype(float), c["sensitive_features"]
    label = group if group.ndim == 1 else group[:, 0]
    X = pd.DataFrame({"score": c["y_score"], "group": label, "query": c["qid"]})
    scorer = {"X": X, "y": c["y_true"], "qid": "query", "sensitive_features": "group"}
    names = [name for name in scoring.get_scorer_names() if "ndcg" not in name]
    by_name = {**scorer, "name": names[int(rng.integers(len(names)))]}
    model = {"estimator": Given(), "X": X[["score"]], "y": y, "cv": KFold(2)}
    who = {"sensitive_features": group}
    scores = {"before": c["y_score"], "after": 1 - c["y_score"], "y_true": y}
    given = {**who, "y_true": c["y_true"], "qid": c["qid"]}
    of_pairs = {**given, "random_state": 0}
    both = {**given, "y_score": c["y_score"]}
    lot = {"probabilities": np.full((6, 6), 1 / 6), "step": 2, "k": 2}
    lot["sensitive_features"] = np.array(list("aababb"))
    rates = {"rate": 0.3, "share": 0.2, "correlation": 0.1, "n_items": 4}
    pairs = {"accuracy": 0.7, "rate": 0.3, "share": 0.2, "n_items": 8}
    calls = {
        "make_fairness_scorer": partial(
            scored, scoring.make_fairness_scorer, **scorer, metric=metrics.dips
        ),
        "get_scorer": partial(scored, scoring.get_scorer, **by_name),
        "audit_cv": partial(skrankfair.audit_cv, **model, **who, qid=c["qid"]),
        "mitigation_report": partial(skrankfair.mitigation_report, **scores, **who),
        "pairwise_fairness_objective": partial(objective, c["y_score"], **of_pairs),
        "pairwise_penalty": partial(penalty, c["y_score"], **of_pairs),
        "fairness_constrained": partial(
            searched, objective="quality", at_most={"gap": 0.2}
        ),
        "expected_advantage": partial(metrics.expected_advantage, **lot),
        "rankings_to_columns": partial(
            datasets.rankings_to_columns, rankings=[["a", "b", "a"], ["b", "a"]]
        ),
        "recommend_metrics": partial(
            inference.recommend_metrics, test=some_results()["MonotonicityTest"]
        ),
        "compare": compared("compare", **both),
        "compare_independent": compared("compare_independent", **both),
        "plan_rates": partial(planning.plan_rates, **rates),
        "draw_pairs": partial(planning.draw_pairs, qid=c["qid"], random_state=0),
        "plan_pairs": partial(planning.plan_pairs, **pairs),
        "power_curve": partial(
            planning.power_curve,
            pilot=planning.plan_rates(0.3, share=0.2),
            gap=[0.05, 0.1],
        ),
    }
    sizes = {"n_clusters": 5, "n_rankings": 3, "n_items": 6, "n_queries": 4}
    for name in datasets.__all__:
        if name.startswith("make_"):
            make = getattr(datasets, name)
            options = {
                k: sizes.get(k, p.default)
                for k, p in inspect.signature(make).parameters.items()
            }
            calls[name] = partial(make, **{**options, "random_state": 0})
    return calls


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
LEFT_OUT = ("plot", "to_html", "to_excel", "to_json", "ends", "covariances")


@cache
def some_results():
    """Return a result of every kind, by its name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {type(result).__name__: result for result in results()}


def methods():
    """Return the names of the public methods of results."""
    return [
        f"{kind}.{name}"
        for kind, result in some_results().items()
        for name in dir(type(result))
        if isinstance(
            inspect.getattr_static(type(result), name),
            type(methods) | classmethod,
        )
        if not name.startswith("_") and name not in LEFT_OUT
    ]


def method_call(name, rng):
    """Return a call of a method of a result."""
    kind, _, method = name.partition(".")
    function = getattr(some_results()[kind], method)
    given = {
        key: ARGUMENTS.get(key)
        for key, p in inspect.signature(function).parameters.items()
        if p.default is p.empty or (key in ARGUMENTS and rng.random() < 0.5)
        if p.kind is not p.VAR_KEYWORD
    }
    return partial(function, **given)


# All of them, and what must hold


def call_of(name, rng):
    """Return a good call of a name."""
    by_name = {make.__name__: make for make in ESTIMATORS}
    if name in by_name:
        return estimator_call(by_name[name], rng)
    if "." in name:
        return method_call(name, rng)
    return column_call(name, rng) if name in of_columns() else others(rng)[name]


def spoil(value, rng):
    """Return something else than a good argument."""
    column = isinstance(value, np.ndarray) and value.ndim == 1 and value.size
    other = SPOILT[int(rng.integers(len(SPOILT)))]
    if not column or rng.random() < 0.2:
        return other
    wrong = value.astype(object)
    wrong[int(rng.integers(value.size))] = other
    repeated = np.repeat(value[:1], value.size)
    shapes = (value[:-1], value[:0], value.reshape(-1, 1), repeated)
    return (*shapes, wrong, wrong.tolist())[int(rng.integers(6))]


def spoilt(call, rng):
    """Return the call with one or two arguments spoilt."""
    options = set(call.keywords)
    if not call.args:
        options |= set(inspect.signature(call.func).parameters)
    options = sorted(options - {"kwargs", "options", "metric_params"})
    for _ in range(int(rng.integers(1, 3)) if options else 0):
        key = options[int(rng.integers(len(options)))]
        value = spoil(call.keywords.get(key), rng)
        large = isinstance(value, int | float) and not abs(value) < 1000
        if not (key in AMOUNTS and large):
            call = partial(call, **{key: value})
    return call


def outcome(call, shown=False):
    """Return what a call returns, and print it; None if it is refused as it may be."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)  # of a computation gone wrong
        try:
            result = call()
            if shown:
                repr(result)
        except ALLOWED:
            return None
        except Exception as error:
            if of_scikit_learn(error):
                return None
            raise
    return result


def of_scikit_learn(error):
    """Whether an error is from scikit-learn: its check of X or y, or a model's fit."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    ours = max((i for i, file in enumerate(files) if "/skrankfair/" in file), default=0)
    return any("/sklearn/" in file for file in files[ours:])


def differences(one, two, tolerance=1e-6):
    """Return in what numbers two results differ that do not depend on chance."""
    if one is None or two is None:
        return []
    names = ("estimate", "curves", "outcomes")
    if isinstance(one, GroupEstimates):
        random = not one.sums.adds_up
        names = ("estimate", "support", *(("standard_error",) * (not random)))
    found = []
    for name in names:
        if hasattr(one, name):
            both = [np.asarray(getattr(r, name), dtype=float) for r in (one, two)]
            if not np.allclose(*both, rtol=tolerance, atol=1e-9, equal_nan=True):
                found.append(f"{name}: {both}")
    return found


def polite(call, rng):
    """A spoilt call is refused politely, and leaves its arguments alone."""
    call = spoilt(call, rng)
    before = copy.deepcopy(call.keywords)
    outcome(call, shown=True)
    for key, value in before.items():
        now = call.keywords[key]
        if isinstance(value, np.ndarray) and value.dtype != object:
            nan = value.dtype.kind == "f"
            assert np.array_equal(value, now, equal_nan=nan), f"changed {key}"
        elif isinstance(value, pd.DataFrame):
            assert value.equals(now), f"changed {key}"


def row_order(call, rng):
    """The order of the rows does not matter."""
    given = call.keywords
    in_order = {"adjacent", "covariates"} & given.keys()  # tied items
    if "y_score" in given and not in_order:
        order = rng.permutation(len(given["y_score"]))
        shuffled = {
            name: value[order]
            for name, value in given.items()
            if isinstance(value, np.ndarray) and len(value) == order.size
        }
        assert differences(outcome(call), outcome(partial(call, **shuffled))) == []


def threads(call, rng):
    """Threads find what one of them finds."""
    alone = outcome(call)
    if alone is not None:
        with warnings.catch_warnings(), ThreadPoolExecutor(3) as pool:
            warnings.simplefilter("ignore")
            for result in pool.map(lambda _: call(), range(3)):
                assert differences(alone, result, 1e-12) == []


CHECKS = {check.__name__: check for check in (polite, row_order, threads)}


def tasks():
    """Return all pairs of a name that is called and of a check."""
    first = np.random.default_rng(0)
    named = [*(make.__name__ for make in ESTIMATORS), *others(first), *methods()]
    tasks = [(name, check) for name in of_columns() for check in CHECKS]
    return tasks + [(name, "polite") for name in named]


def attempt(name, check, seed, call_of=call_of, checks=CHECKS):
    """Make one call with its check, and say how to repeat what is wrong."""
    rng = np.random.default_rng([seed, zlib.crc32(f"{name} {check}".encode())])
    call = call_of(name, rng)
    try:
        checks[check](call, rng)
    except Exception as error:
        error.add_note(f"{name}({call.keywords})")
        error.add_note(f"benchmarks.fuzz --only {name} --check {check} --seed {seed}")
        raise
