"""A Spark DataFrame: repartitioned by cluster, measured where its batches are."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

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
    by = plan.partition_by
    if by is not None:
        keys = [] if n_partitions is None else [n_partitions]
        frame = frame.repartition(*keys, safe[by]).sortWithinPartitions(safe[by])
    elif n_partitions is not None:
        frame = frame.repartition(n_partitions)
    with warnings.catch_warnings():
        # Of pandas 3, which has no part in Spark's batches of Arrow.
        warnings.filterwarnings("ignore", "PySpark does not yet", FutureWarning)
        rows = frame.mapInArrow(_Task(plan), "part int, answer string").collect()
    return [_answer_from(plan, text) for text in answers_of(rows)]


@dataclass(frozen=True)
class _Task:
    """What a worker does with the batches of one partition."""

    plan: MeasurePlan

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the total of the partition as JSON; nothing of one without rows."""
        import pyarrow as pa
        from pyspark import TaskContext

        try:
            named = (batch.rename_columns(self.plan.names) for batch in batches)
            parts = cut(named, self.plan.partition_by, _ROWS_AT_A_TIME)
            found = [self.plan.measure(part) for part in parts]
            if not found:
                return
            answer = {"results": self.plan.to_text(self.plan.added(found))}
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


def _answer_from(plan: MeasurePlan, text: str) -> Mapping[Any, Any]:
    answer = json.loads(text)
    if "error" in answer:
        raise ValueError(answer["error"])
    return plan.from_text(answer["results"])


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
    nested = plan.nested
    if nested is None:
        return
    query, unit = (safe[name] for name in nested)
    ends = frame.selectExpr(f"{query} AS q", f"{unit} AS low", f"{unit} AS high")
    ends = ends.groupBy("q").agg({"low": "min", "high": "max"})
    for row in ends.where("`min(low)` <> `max(high)`").limit(1).collect():
        raise split_query(plan, row[0])


def _backticked(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
