"""What is public is documented, and called by one name that means one thing."""

import dataclasses
import importlib
import inspect
import re
from collections import defaultdict
from pathlib import Path
from pkgutil import resolve_name

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


def documented():
    """Return the objects of the API reference by the names that it has for them."""
    module, names = "", []
    for line in (DOCS / "api.rst").read_text(encoding="utf-8").splitlines():
        if current := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = current[1]
        elif match := re.match(r"   ~?([A-Za-z_][\w.]*)$", line):
            names.append(f"{module}.{match[1]}")
    return {name: resolve_name(name) for name in names}


def exported():
    """Return the objects that modules export by their names, each once."""
    names = {}
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value):
                names.setdefault(value, f"{module.__name__}.{name}")
    return {name: value for value, name in names.items()}


DOCUMENTED = documented()
EXPORTED = exported()
#: Results are not exported, but documented; what a user sees of them is public too.
RESULTS = {name: v for name, v in DOCUMENTED.items() if v not in EXPORTED.values()}
PUBLIC = list({**EXPORTED, **RESULTS}.items())
FUNCTIONS = [(name, value) for name, value in PUBLIC if inspect.isfunction(value)]


def test_every_subpackage_is_looked_at():
    package = DOCS.parent / "skrankfair"
    found = {
        f"skrankfair.{file.parent.name}" for file in package.glob("[!_]*/__init__.py")
    }
    assert found <= set(MODULES)


def test_the_api_reference_lists_what_is_exported():
    assert set(EXPORTED.values()) <= set(DOCUMENTED.values())


def test_every_function_has_an_example_that_runs():
    assert [name for name, value in FUNCTIONS if ">>>" not in value.__doc__] == []


# One vocabulary


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
    "score_order_test",
    "GroupEstimates.simultaneous_interval",
    "MatchedPairCurve.simultaneous_interval",
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


def is_result(value):
    """Return whether a class is made by the package, not by its user."""
    return inspect.isclass(value) and (
        dataclasses.is_dataclass(value)
        or value.__name__.endswith("Display")
        or value in RESULTS.values()
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
        *("audit", "audit_cv", "mitigation_report", "pairwise_penalty"),
        *("marginal_outcome_test", "predictive_parity_test"),
        *("monotonicity_test", "outcome_inequality_test", "prefix_test"),
        "score_order_test",
        *("demographic_parity_difference", "equal_opportunity_difference"),
        *("equalized_odds_difference", "equalized_odds_ratio", "impact_ratio"),
        "predictive_parity_difference",
    },
    "qid": {"draw_pairs", "monotonicity_test"},
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


#: How many starts the descriptions of a shared parameter have: one for each kind of
#: callable. More sentences may follow, about what only that callable does.
N_WORDINGS = {
    **dict.fromkeys(("missing", "patience", "ax", "cv", "kernel", "cluster_weight"), 1),
    **dict.fromkeys(("normalize", "zero_division", "drop_metadata_columns"), 1),
    **dict.fromkeys(("item_weight", "position_weight", "variance", "epsilon"), 2),
    "target": 3,
    **dict.fromkeys(("n_jobs", "engagement", "larger_is_fairer"), 2),
    "step": 3,
    **dict.fromkeys(("random_state", "n_resamples", "correction", "axes"), 3),
    "threshold": 4,
    **dict.fromkeys(("sensitive_features", "qid", "average", "margin"), 5),
    **dict.fromkeys(("y_true", "y_score", "k"), 6),
    "sample_weight": 7,
    "cluster": 9,
    "reference": 3,
    "kind": 7,
    "confidence_level": 8,
}
#: Callables whose data come as columns of X *or* arrays describe several together.
OWN_WORDS = (
    *("audit_cv", "make_fairness_scorer", "mitigation_report", "QueryRanker"),
    *("CalibrationByGroupDisplay.from_estimator", "NadarayaWatsonRegressor"),
)


def entries(section):
    """Yield the names, the type and the start of the description of parameters."""
    for entry in re.split(r"^(?=\S)", section.strip(), flags=re.MULTILINE):
        head, _, description = entry.replace("\\\n", " ").partition("\n")
        names, _, kind = head.partition(" : ")
        kind, _, _ = " ".join(kind.split()).partition(", default=")
        start = re.split(r"(?<=[.:,])\s(?=[A-Z\"(])", " ".join(description.split()))[0]
        yield names.split(", "), kind, start


def documented_parameters(value):
    """Return by name the type and the start of the description of each parameter."""
    _, _, text = (inspect.getdoc(value) or "").partition("Parameters\n----------\n")
    section = re.split(r"\n\n\w[\w ]*\n--+\n", text)[0]
    return {
        name: (kind, start) for names, kind, start in entries(section) for name in names
    }


WORDINGS = defaultdict(set)
for _name, _value in CALLABLES.items():
    if not is_result(_value) and _name not in OWN_WORDS:
        for _parameter, _wording in documented_parameters(_value).items():
            WORDINGS[_parameter].add(_wording)


@pytest.mark.parametrize("parameter", N_WORDINGS)
def test_one_parameter_has_one_wording(parameter):
    wordings = WORDINGS[parameter]
    listed = "\n".join(f"    {kind} | {text}" for kind, text in sorted(wordings))
    assert len(wordings) == N_WORDINGS[parameter], f"{parameter}:\n{listed}"
