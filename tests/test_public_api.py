"""What is public is documented, and called by one name that means one thing."""

import dataclasses
import importlib
import inspect
import re
from collections import Counter
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
MODULES = (
    "skrankfair",
    "skrankfair.datasets",
    "skrankfair.display",
    "skrankfair.distributed",
    "skrankfair.inference",
    "skrankfair.metrics",
    "skrankfair.mitigation",
    "skrankfair.model_selection",
    "skrankfair.monitoring",
    "skrankfair.planning",
    "skrankfair.rankers",
    "skrankfair.scoring",
    "skrankfair.smoothing",
)


def documented_names():
    """Full names of what the API reference lists."""
    module, names = "", []
    for line in (DOCS / "api.rst").read_text(encoding="utf-8").splitlines():
        if found := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = found[1]
        elif found := re.match(r"   ([A-Za-z_]\w*)$", line):
            names.append(f"{module}.{found[1]}")
    return names


def public_objects():
    """Names and objects of what the modules export, each once, modules left out."""
    found = {}
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value):
                found.setdefault(value, f"{module.__name__}.{name}")
    return [(name, value) for value, name in found.items()]


PUBLIC = public_objects()
FUNCTIONS = [(name, value) for name, value in PUBLIC if inspect.isfunction(value)]


def test_every_subpackage_is_looked_at():
    package = DOCS.parent / "skrankfair"
    found = {
        f"skrankfair.{file.parent.name}" for file in package.glob("[!_]*/__init__.py")
    }
    assert found <= set(MODULES)


@pytest.mark.parametrize(("name", "value"), PUBLIC, ids=[name for name, _ in PUBLIC])
def test_is_in_the_api_reference(name, value):
    listed = [
        getattr(importlib.import_module(module), attribute)
        for module, _, attribute in (n.rpartition(".") for n in documented_names())
    ]
    assert value in listed


@pytest.mark.parametrize(
    ("name", "value"), FUNCTIONS, ids=[name for name, _ in FUNCTIONS]
)
def test_function_has_an_example_that_runs(name, value):
    assert ">>>" in value.__doc__


# One vocabulary


#: What a parameter that several public callables share stands for.
MEANINGS = {
    "X": "the features, columns of groups and queries included",
    "a": "result or group that another is compared with",
    "adjacent": "only neighbours in the ranking make pairs",
    "alpha": "level of a test; in scikit-learn's models, weight of the coefficients",
    "at_least": "lower bounds of a search, by scorer",
    "at_most": "upper bounds of a search, by scorer",
    "average": "over what a metric is averaged: pairs, queries, shares",
    "axes": "several matplotlib Axes",
    "bandwidth": "width of a kernel in units of the score, or the rule for it",
    "b": "result or group that is compared with it",
    "bins": "number of quantile bins, or their edges",
    "calibrator": "what turns scores into expected outcomes",
    "cluster": "units that are independent of each other",
    "correlation": "of two items or queries of one cluster",
    "cluster_weight": "whether clusters or rows weigh alike",
    "comparison": "pairs of items within groups, between them, or all",
    "confidence_level": "coverage of intervals; one minus it is the size of a test",
    "correction": "for several tests at once",
    "cv": "folds, as in scikit-learn",
    "disparity": "how groups become one number",
    "drop_metadata_columns": "whether the wrapped model sees columns of metadata",
    "engagement": "what users did with an item after the click",
    "ensemble": "whether one model per fold predicts",
    "favorable": "which end of the score is good for a person",
    "epsilon": "largest difference of the scores of a matched pair",
    "estimator": "a scikit-learn estimator, or how pairs become an estimate",
    "gap": "a true difference that shall be found",
    "grid": "scores at which curves are evaluated",
    "item_weight": "weight of the item: a pair counts the product of two",
    "joint": "one value for all groups together",
    "k": "how many places at the top count",
    "kernel": "weight of a row by its distance",
    "learning_rate": "share of each step that is taken",
    "loss": "what a model minimises",
    "margin": "largest difference from fair that does not matter",
    "max_iter": "most iterations of an optimiser",
    "method": "which of several estimators or algorithms",
    "max_pairs": "most pairs to learn from",
    "metric": "a function that makes a result of data",
    "metrics": "names of metrics of an audit",
    "missing": "what becomes of rows without outcome, score or label",
    "impact_ratio": "whether a report has the ratios of the four-fifths rule",
    "min_group_size": "clusters below which a group is calibrated like all rows",
    "n_items": "items per query",
    "n_jobs": "folds or models at a time, as in joblib",
    "n_clusters": "number of independent units",
    "n_queries": "number of queries",
    "n_tests": "number of tests, by which the level is divided",
    "n_resamples": "number of resamples, shuffles or simulated draws",
    "name": "what results and messages call a metric",
    "normalize": "whether the largest possible value is 1",
    "objective": "scorer that a search maximises",
    "on_infeasible": "what a search does if no candidate keeps the bounds",
    "options": "passed on to the metric",
    "path": "a file or folder",
    "patience": "probability that a user goes on to the next place",
    "position_weight": "what a place is worth",
    "qid": "query of each row",
    "queries_per_cluster": "queries of each independent unit",
    "random_state": "seed or generator",
    "rate": "share of ones that is expected",
    "reference": "group that every other is compared with",
    "response_method": "which method of an estimator gives scores",
    "sample_weight": "weight of the query, or of the row where there are none",
    "sensitive_features": "groups of the rows",
    "share": "share of a group among items",
    "signed": "whether the direction is kept",
    "step": "items from cut to cut",
    "strength": "weight of the fairness penalty",
    "support": "number of the column that counts what an estimate rests on",
    "task": "what the scores are for",
    "threshold": "score from which a row is positive",
    "tol": "when an optimiser stops",
    "unit": "what the support of an estimate counts",
    "variance": "whether clusters or items are independent",
    "y": "outcomes, of a scikit-learn method",
    "y_score": "scores: higher scores rank first",
    "y_true": "outcomes or relevance",
    "zero_division": "the ratio to nothing",
}
#: Names that mean something which has a name already.
SYNONYMS = {
    **dict.fromkeys(("confidence", "level", "ci_level"), "confidence_level"),
    **dict.fromkeys(("top_k", "topk", "at", "depth"), "k"),
    **dict.fromkeys(("y_prob", "y_pred", "scores", "probas", "y_proba"), "y_score"),
    **dict.fromkeys(("labels_true", "relevance", "outcome"), "y_true"),
    **dict.fromkeys(("group_labels", "protected", "sensitive"), "sensitive_features"),
    **dict.fromkeys(("query", "queries", "query_id", "qids"), "qid"),
    **dict.fromkeys(("clusters", "cluster_id", "units"), "cluster"),
    **dict.fromkeys(("weight", "weights_rows", "sample_weights"), "sample_weight"),
    **dict.fromkeys(("std_error", "stderr", "se"), "standard_error"),
    **dict.fromkeys(("seed", "rng"), "random_state"),
    **dict.fromkeys(("n_boot", "n_bootstrap", "n_draws", "n_iter"), "n_resamples"),
    **dict.fromkeys(("regressor", "smoother"), "calibrator"),
    **dict.fromkeys(("passed", "significant"), "rejected"),
    **dict.fromkeys(("browsing", "discount", "exposure"), "position_weight"),
    "eps": "epsilon",
}
#: Results that are computed when they are first asked for, and must not change then;
#: and what parts have to agree on.
SEEDED = (
    "GroupEstimates.compact",
    "measure",
    "marginal_outcome_test",
    "positive_rate_shift",
    "predictive_parity_test",
    "rank_shift",
    "GroupEstimates.simultaneous_interval",
)


def members(value):
    """Public methods of a class of this package, by name."""
    return [
        (name, method)
        for name, method in inspect.getmembers(value, inspect.isroutine)
        if not name.startswith("_")
        and callable(method)  # to Python 3.13 a cached property is a routine too
        and (getattr(method, "__module__", None) or "").startswith("skrankfair")
    ]


def public_callables():
    """Functions, classes and methods, with their names without the module."""
    for name, value in PUBLIC:
        short = name.rpartition(".")[2]
        yield short, value
        if inspect.isclass(value):
            yield from ((f"{short}.{m}", method) for m, method in members(value))


#: Callables that functions of the package make, as it makes results and Displays.
MADE = (
    "Disparity",
    "FairnessConstrained",
    "FairnessScorer",
    "PairwiseFairnessObjective",
)


def is_result(value):
    """Whether a class is made by the package, not by its user."""
    return inspect.isclass(value) and (
        dataclasses.is_dataclass(value)
        or value.__name__.endswith("Display")
        or value.__name__ in MADE
    )


CALLABLES = dict(public_callables())
SIGNATURES = {
    name: inspect.signature(value).parameters
    for name, value in CALLABLES.items()
    if not (inspect.isclass(value) and issubclass(value, Warning))
}
BY_USERS = {
    name: parameters
    for name, parameters in SIGNATURES.items()
    if "." not in name and not is_result(CALLABLES[name])
}


def test_no_parameter_is_a_synonym():
    found = {
        f"{name}({parameter}=): say {SYNONYMS[parameter]}"
        for name, parameters in SIGNATURES.items()
        for parameter in parameters
        if parameter in SYNONYMS
    }
    assert not found


def test_a_shared_parameter_has_a_meaning():
    count = Counter(p for parameters in BY_USERS.values() for p in parameters)
    shared = {parameter for parameter, number in count.items() if number > 1}
    unknown = sorted(shared - set(MEANINGS))
    assert not unknown, f"say in MEANINGS what {unknown} are"
    assert not set(MEANINGS) & set(SYNONYMS)


@pytest.mark.parametrize(
    "parameter", ["sensitive_features", "qid", "cluster", "sample_weight"]
)
def test_columns_default_to_none(parameter):
    defaults = {
        name: parameters[parameter].default
        for name, parameters in SIGNATURES.items()
        if parameter in parameters and not is_result(CALLABLES[name])
    }
    assert len(defaults) > 20
    needed = {name for name, default in defaults.items() if default is not None}
    assert needed <= COMPARE_GROUPS.get(parameter, set())


#: Where there is nothing to do without the column, it has no default.
COMPARE_GROUPS = {
    "sensitive_features": {
        *("audit", "audit_cv", "mitigation_report", "pairwise_fairness_objective"),
        *("marginal_outcome_test", "predictive_parity_test"),
        *("monotonicity_test", "outcome_inequality_test"),
        *("demographic_parity_difference", "equal_opportunity_difference"),
        *("equalized_odds_difference", "equalized_odds_ratio", "impact_ratio"),
        "predictive_parity_difference",
    },
    "qid": {"monotonicity_test"},
}


def test_the_default_seed_is_none():
    for name, parameters in SIGNATURES.items():
        if "random_state" in parameters and not is_result(CALLABLES[name]):
            expected = 0 if name in SEEDED else None
            assert parameters["random_state"].default == expected, name


def test_the_default_confidence_is_95_percent():
    for name, parameters in BY_USERS.items():
        if "confidence_level" in parameters and name != "fairness_constrained":
            assert parameters["confidence_level"].default == 0.95, name


@pytest.mark.parametrize("module", ["skrankfair.metrics", "skrankfair.inference"])
def test_columns_come_first_and_options_by_name(module):
    for name, value in FUNCTIONS:
        parameters = inspect.signature(value).parameters
        if name.startswith(module) and "y_true" in parameters:
            by_position = [
                p.name for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD
            ]
            assert by_position == ["y_true", "y_score"], name


# One wording


#: Each shared parameter with its types and how its description starts: one wording for
#: each kind of callable. More sentences may follow, about what only that callable does.
WORDINGS = r"""
sensitive_features : array-like of shape (n,) or (n, d), or None
    Group labels of any type; several columns are crossed. A boolean matrix or frame is
    a membership matrix with one column per group, and its groups may overlap. None
    makes all rows one group, "all".
sensitive_features : array-like of shape (n,) or (n, d)
    Group labels of any type; several columns are crossed. A boolean matrix or frame is
    a membership matrix with one column per group, and its groups may overlap.
sensitive_features : str, list of str, callable, True or None
    Where the groups come from: the name of a column of X, a list of names (the columns
    are crossed), or a function of X. True means that they must be passed as metadata.
    None means that they may be passed as metadata; all rows are one group if they are
    not.
sensitive_features : array-like of shape (n_samples,) or (n_samples, d), or None
    Group labels, if the constructor names no column of X.
qid : array-like of shape (n,) or None
    Query of each row: items are compared and ranked only within one query. None makes
    all rows one list.
qid : array-like of shape (n,)
    Query of each row: items are compared and ranked only within one query.
qid : str, callable, True or None
    Where the queries come from, in the same way; all rows are one query if there are
    none.
qid : array-like of shape (n_samples,) or None
    Query of each row, if the constructor names no column of X.
cluster : array-like of shape (n,) or None
    Independent units that contain whole queries, such as users with several queries.
    None makes each query its own unit.
cluster : array-like of shape (n,) or None
    Independent units that contain whole queries, such as users with several queries, or
    items of one list. None makes each query its own unit, or each item of one list.
cluster : array-like of shape (n,) or None
    Independent units, such as the person that a row is about. None makes each row its
    own unit.
cluster : str, callable, True or None
    Where the independent units, such as users, come from, in the same way; only `fit`
    needs them.
cluster : array-like of shape (n_samples,) or None
    Independent units, if the constructor names no column of X.
sample_weight : array-like of shape (n,) or None
    Importance of the query, constant within it: a common factor changes nothing.
sample_weight : array-like of shape (n,) or None
    Importance of the row: a common factor changes nothing, and 0 leaves it out.
sample_weight : array-like of shape (n_samples,) or None
    Weight of the row: a weight of 2 counts the row twice.
item_weight : array-like of shape (n,) or None
    Weight of the item, such as a survey weight: a pair counts the product of the
    weights of its two items. `sample_weight` weighs whole queries.
missing : {"raise", "drop", "group"}
    What becomes of rows without an outcome, score or label that is needed (NaN or
    None). "raise" refuses them, "drop" leaves them out, and "group" makes those without
    a label the group "missing" and leaves out the others. The result and a warning say
    how many there are.
y_true : array-like of shape (n,)
    Outcomes or relevance, binary, graded or real; larger is better.
y_true : array-like of shape (n,)
    Outcomes, binary, graded or real.
y_true : array-like of shape (n,)
    Outcomes, 0 or 1.
y_true : array-like of shape (n,) or None
    Outcomes or relevance, binary, graded or real; larger is better.
y_true : array-like of shape (n,) or None
    Not used; it is accepted so that all metrics are called alike.
y_score : array-like of shape (n,)
    Scores, not ranks: higher scores rank first.
y_score : array-like of shape (n,)
    Scores on the scale of the outcomes, such as probabilities.
y_score : array-like of shape (n,)
    Scores on any scale.
y_score : array-like of shape (n,)
    Decisions, 0 or 1; or scores, of which `threshold` makes decisions.
y_score : array-like of shape (n,) or None
    Not used; it is accepted so that all metrics are called alike.
position_weight : {"uniform", "dcg", "reciprocal", "geometric", "top"}, callable or \
        array-like
    What rank r = 1, 2, ... is worth: 1, ``1 / log2(r + 1)``, ``1 / r``,
    ``patience**(r - 1)``, or 1 for the first `k` ranks and 0 for the rest. Or a
    function that takes the array of ranks and returns their weights, or an array of the
    weights of the first ranks, which zeros follow.
position_weight : {"uniform", "dcg", "reciprocal", "geometric", "top"}, callable, \
        array-like or None
    What rank r = 1, 2, ... is worth: 1, ``1 / log2(r + 1)``, ``1 / r``,
    ``patience**(r - 1)``, or 1 for the first `k` ranks and 0 for the rest. Or a
    function that takes the array of ranks and returns their weights, or an array of the
    weights of the first ranks, which zeros follow.
patience : float or None
    The probability of going on to the next rank, in [0, 1], of which
    ``position_weight="geometric"`` takes powers; None means 0.8. It must be None for
    all other weights.
random_state : int
    Seed of the replicates, the same for all results that are to be added.
random_state : int, Generator or None
    Seed or generator of the random numbers. None draws anew in each call.
random_state : int, Generator or None
    Seed or generator of the random numbers, 0 so that a result that is computed when it
    is first asked for can be repeated.
n_jobs : int or None
    Number of folds that are fitted at a time, as in joblib.
margin : float, mapping of str to float, or None
    Largest difference from fair that does not matter,
margin : float or tuple of float
    Largest
margin : float or None
    Largest gap that does not matter:
confidence_level : float
    Confidence level of the intervals.
confidence_level : float
    Confidence level of the intervals and the verdicts.
confidence_level : float
    Confidence level of the bands.
confidence_level : float
    Confidence level of the bound.
confidence_level : float
    One minus the size of the test, to which the critical value belongs.
confidence_level : float or None
    Confidence level. None takes that of the test.
confidence_level : float or None
    None compares the mean over the folds with the bound.
n_resamples : int
    Number of resamples.
n_resamples : int
    Number of simulated draws.
n_resamples : int
    Number of shuffles.
k : int or None
    How many ranks ``position_weight="top"`` counts; None means 10. It must be None for
    all other weights.
k : int or None
    How many positions count, from the top.
k : int or None
    How many positions count, from the top: only pairs with an item in the first k of
    its query, whose exchange would change what is there. Tied items are there with the
    probability that a random order gives them. None takes all pairs.
k : int
    How many positions count, from the top.
average : {"items", "queries"}
    "items" pools the items of all queries. "queries" takes the mean over queries
average : {"pairs", "queries"}
    "pairs" pools all pairs. "queries" takes the mean over queries with a pair.
average : {"pairs", "queries"}
    "pairs" pools all items of the group. "queries" takes the mean over queries of their
    mean of the items of the group.
average : {"queries", "amortized"}
    "queries" takes the mean of the metric over lists.
average : {"queries", "representation"}
    "queries" takes the mean of the metric over lists.
variance : {"auto", "cluster", "item"}
    "cluster": queries (or `cluster`) are independent. "item": items are, and pairs that
    share one are not. "auto" is "item" for one list without `qid` and with no `cluster`
    or several, and "cluster" otherwise: with `qid` also for one query, which has no
    standard error then, but can be added to other parts of the data.
variance : {"auto", "cluster", "item"}
    As in `pairwise_accuracy`.
epsilon : float, mapping of group to float, or None
    Largest difference of the scores of a matched pair, in units of the score.
epsilon : array-like of shape (E,) or None
    Largest difference of the scores of a matched pair, in units of the score.
threshold : float
    Score from which a row is accepted.
threshold : float or None
    Score from which a row is accepted. None takes `y_score` for decisions.
threshold : float
    Score above which a row is accepted.
threshold : float or None
    Score above which a row is accepted.
correction : {"holm", "fdr_bh"}
    Correction for the number of groups.
correction : {"sup_t", "bonferroni", "holm", "fdr_bh"}
    Correction for the number of contrasts.
correction : str
    Method of statsmodels' `multipletests` for ``pvalue_corrected``.
kernel : {"gaussian", "epanechnikov", "tricube", "uniform", "gaussian4", "flat_top"}
    Weight of a row by its distance in the score.
cluster_weight : {"cluster", "row"}
    Whether every cluster has weight one in the curve of a group, or every row.
reference : hashable or None
    A group to compare every other with; None compares all pairs.
kind : {"difference", "ratio"}
    ``a - b`` or ``a / b``.
kind : {"difference", "ratio", "max_abs", "l1", "worst"} or None
    "difference": largest minus smallest estimate; "ratio": smallest over largest;
    "max_abs": largest distance from the fair value; "l1": their sum; "worst": the
    estimate of the group that is worst off, a loss negated. None is the metric's own.
kind : {"difference", "ratio", "max_abs", "l1", "worst"} or None
    As in `disparity`.
kind : {"difference", "ratio"} or None
    "difference": largest minus smallest estimate; "ratio": smallest over largest, of
    which the smaller one is taken. None is "difference".
kind : {"difference", "ratio"} or None
    As in `disparity`.
kind : {"simultaneous", "pointwise"}
    "simultaneous" bands hold at all points of all contrasts at once, by the simulated
    largest deviation (Bonferroni's for another `correction`).
kind : {"simultaneous", "pointwise"}
    "simultaneous" bands hold at all points of the curve at once, for each group on its
    own.
ax : matplotlib Axes or None
    None creates a new figure.
axes : sequence of two matplotlib Axes or None
    None creates a new figure. The Axes are for the curves and the differences.
axes : sequence of three matplotlib Axes or None
    None creates a new figure. The Axes are for the disparities, their changes and the
    costs.
axes : sequence of array-like of shape (k_j,)
    The nodes along each column of features.
cv : int, splitter, iterable or None
    How to split into folds.
drop_metadata_columns : bool
    Whether the columns named by `sensitive_features` and `cluster` are hidden from the
    model, which otherwise gets X as it is.
engagement : array-like of shape (n,) or None
    Engagement after the click.
larger_is_fairer : bool
    Whether the disparity is a ratio, or another score that is to be large, and no
    negated disparity.
larger_is_fairer : bool or None
    Whether the disparity is a ratio, or another score that is to be large, and no
    negated disparity.
normalize : bool
    False leaves out the division by the maximum.
step : int
    Number of items between cuts.
zero_division : float
    The ratio where nothing outside the group is among the first k.
y_true : str or None
    Column of the outcomes.
y_score : str or None
    Column of the scores.
sensitive_features : str, list of str or None
    Column of the groups;
qid : str or None
    Column of the query,
cluster : str or None
    Column of the independent units,
engagement : str or None
    Column of the engagement after the click.
sample_weight : str or None
    Column of the weight,
item_weight : str or None
    Column of the weight of the item,
n_jobs : int or None
    Number of parts that are measured at a time,
"""
#: Callables whose data come as columns of X *or* arrays describe several together.
OWN_WORDS = (
    *("audit_cv", "make_fairness_scorer", "mitigation_report", "QueryRanker"),
    *("CalibrationByGroupDisplay.from_estimator", "NadarayaWatsonRegressor"),
)


def entries(section):
    """Names, type without its default and description of a section's parameters."""
    for entry in re.split(r"^(?=\S)", section.strip(), flags=re.MULTILINE):
        head, _, description = entry.replace("\\\n", " ").partition("\n")
        names, _, kind = head.partition(" : ")
        kind, _, _ = " ".join(kind.split()).partition(", default=")
        yield names.split(", "), kind, " ".join(description.split())


def documented_parameters(value):
    """By name the type and the description of each parameter."""
    _, _, text = (inspect.getdoc(value) or "").partition("Parameters\n----------\n")
    section = re.split(r"\n\n\w[\w ]*\n--+\n", text)[0]
    return {
        name: (kind, description)
        for names, kind, description in entries(section)
        for name in names
    }


DOCUMENTED = {
    name: documented_parameters(value)
    for name, value in CALLABLES.items()
    if not is_result(value) and name not in OWN_WORDS
}


@pytest.mark.parametrize(
    "parameter", sorted({names[0] for names, *_ in entries(WORDINGS)})
)
def test_one_parameter_has_one_wording(parameter):
    wordings = {
        (kind, start)
        for names, kind, start in entries(WORDINGS)
        if names == [parameter]
    }
    used = set()
    for name, documented in DOCUMENTED.items():
        if parameter in documented:
            kind, text = documented[parameter]
            fits = {
                (expected, start)
                for expected, start in wordings
                if kind == expected and f"{text} ".startswith(f"{start} ")
            }
            assert fits, f"{name}({parameter}=) : {kind}\n    {text}"
            used |= fits
    assert used == wordings
