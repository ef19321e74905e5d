"""A Dask DataFrame: shuffled by cluster, measured part by part where it lives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._first_pass import first_pass
from ._plan import MeasurePlan, split_query

# Results that one task adds up.
_AT_A_TIME = 8
# What a task returns: results, what is wrong with the data, or None without rows.
_Answer = Mapping[Any, Any] | ValueError | None


def parts_of_dask(
    data: Any, plan: MeasurePlan, n_partitions: int | None
) -> list[Mapping[Any, Any]]:
    """Return the total of the parts of a Dask DataFrame; nothing of one without rows.

    The results are added by a tree of tasks where they are.
    """
    from dask.base import compute
    from dask.delayed import delayed

    plan.check_columns(data.columns)
    frame = data[plan.names]
    shuffled, by = frame, plan.partition_by
    if by is not None:
        shuffled = frame.shuffle(on=by, npartitions=n_partitions or data.npartitions)
    parts = shuffled.to_delayed()
    split_queries = _split_queries(shuffled, parts, plan)
    results: list[Mapping[Any, Any]] = []
    try:
        plan, results = first_pass(
            plan,
            lambda: len(frame),
            lambda choose: frame.map_partitions(choose, meta=frame._meta).compute(),
        )
    except ValueError as error:
        level: list[Any] = [error]
    else:
        level = [delayed(_measure_part)(plan, part) for part in parts]
    while len(level) > 1:
        level = [
            delayed(_add_parts)(plan, level[start : start + _AT_A_TIME])
            for start in range(0, len(level), _AT_A_TIME)
        ]
    total, split = compute(level[0], split_queries)
    for query in split:
        if query is not None:
            raise split_query(plan, query)
    if isinstance(total, ValueError):
        raise total
    return results if total is None else [*results, total]


def _measure_part(plan: MeasurePlan, frame: Any) -> _Answer:
    """Return the results of one part; None of one without rows."""
    try:
        return plan.measure(frame) if len(frame) else None
    except ValueError as error:  # of the data, and a split query explains it better
        return error


def _add_parts(plan: MeasurePlan, parts: Sequence[_Answer]) -> _Answer:
    """Return the results of some parts; None if none of them has rows."""
    found = []
    for part in parts:
        if isinstance(part, ValueError):
            return part
        if part is not None:
            found.append(part)
    return plan.added(found) if found else None


def _split_queries(frame: Any, parts: Sequence[Any], plan: MeasurePlan) -> list[Any]:
    """Return tasks that find queries of two clusters, from those of each part."""
    if plan.nested is None:
        return []
    from dask.dataframe import from_delayed
    from dask.delayed import delayed

    names = list(plan.nested)
    pairs = from_delayed(
        [delayed(_pairs)(part, names) for part in parts], meta=frame._meta[names]
    )
    return [
        delayed(_split_query)(part, names[0])
        for part in pairs.shuffle(on=names[0]).to_delayed()
    ]


def _pairs(part: Any, names: list[str]) -> Any:
    """Return the queries of a part with their clusters."""
    return part[names].drop_duplicates()


def _split_query(pairs: Any, qid: str) -> Any:
    """Return a query that has several clusters, or None."""
    split = pairs[qid][pairs[qid].duplicated()]
    return split.iloc[0] if len(split) else None
