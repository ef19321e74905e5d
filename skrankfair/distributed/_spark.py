"""A Spark DataFrame: repartitioned by cluster, measured where its batches are."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ._first_pass import first_pass
from ._plan import MeasurePlan, split_query

# A worker of Spark has much less memory than a machine.
_ROWS_AT_A_TIME = 500_000


def parts_of_spark(
    data: Any, plan: MeasurePlan, n_partitions: int | None
) -> list[Mapping[Any, Any]]:
    """Return the results of the partitions of a Spark DataFrame, classic or Connect."""
    plan.check_columns(data.columns)
    # Spark reads dots and backticks in names, so that its workers see others.
    safe = {name: f"c{number}" for number, name in enumerate(plan.names)}
    frame = data.selectExpr(
        *(f"{_backticked(name)} AS {c}" for name, c in safe.items())
    )
    _check_nested_frame(frame, plan, safe)
    names = plan.names
    plan, results = first_pass(
        plan,
        frame.count,
        lambda choose: _mapped(
            frame, partial(_chosen, names, choose), frame.schema
        ).rename_columns(names),
    )
    if results and not plan.metrics:
        return results
    by = plan.partition_by
    if by is not None:
        keys = [] if n_partitions is None else [n_partitions]
        frame = frame.repartition(*keys, safe[by]).sortWithinPartitions(safe[by])
    elif n_partitions is not None:
        frame = frame.repartition(n_partitions)
    table = _mapped(frame, partial(_measured, plan), "part int, answer string")
    rows = zip(table["part"].to_pylist(), table["answer"].to_pylist(), strict=True)
    for answer in map(json.loads, answers_of(rows)):
        if "error" in answer:
            raise ValueError(answer["error"])
        results.append(plan.from_text(answer["results"]))
    return results


def _mapped(frame: Any, function: Callable[[Any], Any], schema: Any) -> Any:
    """Return what a function yields of the batches of each partition, as a table."""
    with warnings.catch_warnings():
        # Of pandas 3, which has no part in Spark's batches of Arrow.
        warnings.filterwarnings("ignore", "PySpark does not yet", FutureWarning)
        return frame.mapInArrow(function, schema).toArrow()


def _chosen(
    names: Sequence[str], choose: Callable[[Any], Any], batches: Iterable[Any]
) -> Iterator[Any]:
    """Yield the rows that a function takes of each batch."""
    import pyarrow as pa

    for batch in batches:
        table = pa.Table.from_batches([batch.rename_columns(names)])
        yield from choose(table).rename_columns(batch.schema.names).to_batches()


def _measured(plan: MeasurePlan, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the total of a partition as JSON; nothing of one without rows."""
    import pyarrow as pa
    from pyspark import TaskContext

    try:
        named = (batch.rename_columns(plan.names) for batch in batches)
        tables = cut(named, plan.partition_by, _ROWS_AT_A_TIME)
        results = [plan.measure(table) for table in tables]
        if not results:
            return
        answer = {"results": plan.to_text(plan.added(results))}
    except ValueError as error:  # of the data: another attempt would find it again
        answer = {"error": str(error)}
    part = pa.array([TaskContext.get().partitionId()], pa.int32())
    texts = pa.array([json.dumps(answer)])
    yield pa.RecordBatch.from_arrays([part, texts], ["part", "answer"])


def answers_of(rows: Iterable[Any]) -> list[str]:
    """Return the answer of each partition once, however often it was delivered.

    Spark itself takes the result of one attempt of a task and drops that of others,
    such as speculative copies; nothing here relies on it.
    """
    return list(dict(rows).values())


def cut(batches: Iterable[Any], by: str | None, n_rows: int) -> Iterator[Any]:
    """Yield tables of about so many rows, no cluster in two of them.

    Parameters
    ----------
    batches : iterable of pyarrow RecordBatch
        The rows of a cluster next to each other.
    by : str or None
        The column of the clusters; None for rows.
    n_rows : int
        A table is cut at the first border behind so many rows, so that a cluster that
        is larger is whole.
    """
    import pyarrow as pa

    waiting: list[Any] = []
    size, enough = 0, n_rows
    for batch in batches:
        waiting.append(batch)
        size += batch.num_rows
        if size < enough:
            continue
        table = pa.Table.from_batches(waiting)
        border = size if by is None else _last_border(table[by])
        if border:
            yield table.slice(0, border)
        waiting = table.slice(border).to_batches()
        size -= border
        enough = max(n_rows, 2 * size)
    if size:
        yield pa.Table.from_batches(waiting)


def _last_border(column: Any) -> int:
    """Return where the run of equal values at the end of a column begins."""
    import pyarrow.compute as pc

    ends = pc.run_end_encode(column.combine_chunks()).run_ends
    return ends[-2].as_py() if len(ends) > 1 else 0


def _check_nested_frame(frame: Any, plan: MeasurePlan, safe: Mapping[str, str]) -> None:
    """Raise a ValueError for a query in two clusters, whose pairs would be lost."""
    if plan.nested is None:
        return
    query, unit = (safe[name] for name in plan.nested)
    ends = frame.selectExpr(f"{query} AS q", f"{unit} AS low", f"{unit} AS high")
    ends = ends.groupBy("q").agg({"low": "min", "high": "max"})
    for row in ends.where("`min(low)` <> `max(high)`").limit(1).collect():
        raise split_query(plan, row[0])


def _backticked(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
