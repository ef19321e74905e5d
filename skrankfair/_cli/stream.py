"""Files that are audited part by part: several of them, or too large for memory."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.arrays import memory_limit
from .._inputs.columns import OneWayError
from .._inputs.validation import collected_warnings
from .._reports.audit import AuditReport, of_users_alone
from .._reports.catalog import chosen_metrics, not_named, without_unfit
from ..distributed import measure
from ..distributed._plan import MeasurePlan, make_plan
from ..distributed._sources import duckdb_source, reading, sql_name
from .input import STANDARD_INPUT, given, option, split_names
from .options import COLUMNS
from .terminal import InputError

# The peak of memory, in bytes, for a byte of a file.
_PER_BYTE = {".parquet": 30, ".csv": 6, ".tsv": 6}
#: Options of the report; options, one of them a column, that are refused as they need
#: all rows in memory; and options of the parts.
_PASSED = ("favorable", "confidence_level", "correction", "margin", "reference")
_REFUSED = (
    *("engagement", "threshold", "overlapping", "by", "positive", "sep", "decimal"),
    *("max_groups", "impact_ratio", "paired", "within"),
)
_PARTS = ("memory", "jobs", "temp_directory")


def is_streamed(arguments: argparse.Namespace, path: str) -> bool:
    """Return whether files are to be audited part by part."""
    file = Path(path)
    if ("*" in path or "?" in path) and not file.exists():
        return True
    if any(getattr(arguments, name, None) is not None for name in _PARTS):
        return True
    per_byte = _PER_BYTE.get(file.suffix.lower(), 0)
    large = file.is_file() and file.stat().st_size * per_byte > memory_limit()
    return large and not _needing_memory(arguments)


def streamed(
    arguments: argparse.Namespace, path: str, say: Callable[[str], object]
) -> AuditReport:
    """Return the audit of one file or of all that fit a pattern."""
    _check(arguments, path)
    columns = {n: getattr(arguments, n) for n in COLUMNS if n not in _REFUSED}
    groups = split_names(columns["sensitive_features"])
    columns["sensitive_features"] = groups if len(groups) > 1 else groups[0]
    ways = split_names(columns["cluster"] or "")
    columns["cluster"] = (ways if len(ways) > 1 else ways[0]) or None
    options = given(arguments, _PASSED)
    chosen = chosen_metrics(arguments.metrics, "ranking", getattr(arguments, "k", None))
    memory, jobs, folder = (getattr(arguments, name, None) for name in _PARTS)
    plan = make_plan({metric.name: metric.on_columns for metric in chosen}, columns)
    with duckdb_source(path, plan, memory, folder) as source, reading():
        counts, facts = _counted(source.data, columns)
    facts["weighed"] = columns["item_weight"] is not None
    chosen, notes = without_unfit(chosen, not_named(arguments.metrics), **facts)
    alone = [m for m in chosen if len(ways) > 1 and not _takes_items(plan, m.name)]
    if alone:
        notes.append(of_users_alone([metric.title for metric in alone]))
    results: dict[str, Any] = dict.fromkeys(metric.name for metric in chosen)
    of_users = {**columns, "cluster": ways[0]}
    both = [metric for metric in chosen if metric not in alone]
    for metrics, by in ((both, columns), (alone, of_users)):
        if metrics:
            results |= measure(
                path,
                {metric.name: metric.on_columns for metric in metrics},
                **by,
                memory_limit=memory,
                temp_directory=folder,
                n_jobs=jobs,
                progress=lambda text: say(f"auditing {text}"),
            )
    overlapping = len(groups) > 1 and groups == [*counts["group_rows"]]
    named = "" if overlapping else " × ".join(map(fmt.label, groups))
    report = AuditReport.from_results(
        results, task="ranking", **options, **counts, notes=notes
    )
    return replace(report, overlapping=overlapping, by=named)


def _takes_items(plan: MeasurePlan, name: str) -> bool:
    """Return whether a metric has two-way errors, over users and items."""
    rows: dict[str, Any] = {"y_true": [1, 0], "y_score": [1, 0], "qid": [0, 0]}
    rows |= {"cluster": [[0, 0], [0, 1]], "sensitive_features": ["a", "b"]}
    with collected_warnings():
        try:
            plan.result(name, rows)
        except OneWayError:
            return False
    return True


def _counted(
    rows: Any, columns: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return counts of rows, queries, pairs and groups, and facts of the outcomes.

    The facts are the smallest outcome, and whether all outcomes are 0 or 1. Rows of
    weight 0 do not count. `rows` is a relation of DuckDB.
    """
    groups = columns["sensitive_features"]
    several = not isinstance(groups, str)
    label = ", ".join(map(sql_name, groups if several else [groups]))
    outcome, query = sql_name(columns["y_true"]), sql_name(columns["qid"])
    weights = [columns[name] for name in ("sample_weight", "item_weight")]
    where = " AND ".join(f"{sql_name(name)} > 0" for name in weights if name) or "true"
    kept = rows.filter(where)
    of_queries = kept.aggregate("count(*) AS n", query)
    totals = of_queries.aggregate("sum(n), count(*), sum(n * (n - 1) // 2)")
    n_rows, n_queries, n_pairs = totals.fetchall()[0]
    by_group = kept.aggregate(f"count(*), {label}", label).fetchall()
    facts = rows.aggregate(f"min({outcome}), bool_and({outcome} IN (0, 1))")
    lowest, binary = facts.fetchall()[0]
    try:
        sizes = {tuple(group) if several else group[0]: n for n, *group in by_group}
    except TypeError as error:
        raise InputError(f"groups must have hashable labels ({error}).") from None
    members = several and all(isinstance(of, bool) for label in sizes for of in label)
    if members:
        of_columns = np.array([*sizes.values()]) @ np.array([*sizes])
        sizes = dict(zip(groups, of_columns.tolist(), strict=True))
    counts = {"n_rows": n_rows, "n_queries": n_queries, "n_pairs": n_pairs}
    outcomes = {"lowest": float(lowest or 0), "binary": bool(binary)}
    return {**counts, "group_rows": sizes}, outcomes


def _needing_memory(arguments: argparse.Namespace) -> list[str]:
    """Return the options, given or missing, that need all rows in memory."""
    refused = [name for name in _REFUSED if getattr(arguments, name, None)]
    if arguments.task not in (None, "ranking"):
        refused.append("task")
    if (cross := getattr(arguments, "cross", True)) is not True:
        refused.append("cross" if cross else "by")
    if getattr(arguments, "missing", None) not in (None, "raise"):
        refused.append("missing")
    # Outcome, score, groups and queries.
    lacking = [name for name in [*COLUMNS][:4] if not getattr(arguments, name)]
    return [option(name) for name in refused] + [f"no {option(n)}" for n in lacking]


def _check(arguments: argparse.Namespace, path: str) -> None:
    """Raise an error that names an option which needs all rows in memory."""
    if "://" in path:
        raise InputError(f"{path} cannot be opened: it is no file of this computer.")
    standard = [STANDARD_INPUT] if path == STANDARD_INPUT else []
    if refused := standard + _needing_memory(arguments):
        raise InputError(
            f"{path} is audited part by part, which needs queries and groups and does "
            f"not take all options; got {', '.join(refused)}."
        )
