"""Frames of Dask and Spark, measured part by part by the workers that hold them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

from ..metrics import GroupEstimates
from ._plan import MeasurePlan, Results, Source, added

# How many results one task of Dask adds up.
_AT_A_TIME = 8
# A worker of Spark has much less memory than a machine.
_ROWS_AT_A_TIME = 500_000


class DaskSource(Source):
    """A Dask DataFrame; without `n_partitions` shuffled rows have those of the data."""

    @cached_property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.data)

    def query_of_several(self, qid: str, cluster: str) -> Any:
        """Return a query with rows of several clusters, or None."""
        from dask.utils import M

        def several(pairs: Any) -> Any:
            pairs = pairs.drop_duplicates()
            return pairs[pairs[qid].duplicated()].head(1)

        pairs = self.data[[qid, cluster]]
        meta = pairs._meta
        pairs = pairs.map_partitions(M.drop_duplicates, meta=meta).shuffle(on=qid)
        split = pairs.map_partitions(several, meta=meta).compute()
        return split[qid].iloc[0] if len(split) else None

    def rows(self, choose: Callable[[Any], Any]) -> Any:
        """Return a frame of the rows that `choose` takes from each partition."""
        frame = self.data[self.plan.names]
        return frame.map_partitions(choose, meta=frame._meta).compute()

    def results(self, plan: MeasurePlan) -> list[Results]:
        """Return the total of all partitions, added by a tree of tasks."""
        from dask.delayed import delayed

        frame, by = self.data[plan.names], plan.partition_by
        if by is not None:
            n_partitions = self.n_partitions or frame.npartitions
            frame = frame.shuffle(on=by, npartitions=n_partitions)
        level = [delayed(_measured)(plan, part) for part in frame.to_delayed()]
        while len(level) > 1:
            level = [
                delayed(added)(level[start : start + _AT_A_TIME])
                for start in range(0, len(level), _AT_A_TIME)
            ]
        return [level[0].compute()]


def _measured(plan: MeasurePlan, frame: Any) -> Results:
    """Return the results of one partition; none if it has no rows."""
    return plan.measure(frame) if len(frame) else {}


class SparkSource(Source):
    """A Spark DataFrame, classic or Connect, with the partitions of its session."""

    @cached_property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.frame.count()

    @cached_property
    def frame(self) -> Any:
        """The columns that are needed, named by number.

        Spark interprets dots and backticks in names, so workers see safe names.
        """
        names = (name.replace("`", "``") for name in self.plan.names)
        return self.data.selectExpr(*(f"`{n}` AS c{i}" for i, n in enumerate(names)))

    def _safe(self, name: str) -> str:
        """Return the name of a column in `frame`."""
        return f"c{self.plan.names.index(name)}"

    def query_of_several(self, qid: str, cluster: str) -> Any:
        """Return a query with rows of several clusters, or None."""
        query, unit = self._safe(qid), self._safe(cluster)
        ends = self.frame.selectExpr(f"{query} AS q", f"{unit} AS low", f"{unit} AS up")
        ends = ends.groupBy("q").agg({"low": "min", "up": "max"})
        split = ends.where("`min(low)` <> `max(up)`").limit(1).collect()
        return split[0][0] if split else None

    def rows(self, choose: Callable[[Any], Any]) -> Any:
        """Return a table of the rows that `choose` takes from each batch."""
        names = self.plan.names
        chosen = partial(_chosen, names, choose)
        return _mapped(self.frame, chosen, self.frame.schema).rename_columns(names)

    def results(self, plan: MeasurePlan) -> Iterator[Results]:
        """Yield the results of each partition."""
        frame, by = self.frame, plan.partition_by
        if by is not None:
            keys = [] if self.n_partitions is None else [self.n_partitions]
            frame = frame.repartition(*keys, self._safe(by))
            frame = frame.sortWithinPartitions(self._safe(by))
        elif self.n_partitions is not None:
            frame = frame.repartition(self.n_partitions)
        table = _mapped(frame, partial(_answer, plan), "answer string")
        for answer in map(json.loads, table["answer"].to_pylist()):
            if "error" in answer:
                raise ValueError(answer["error"])
            texts = answer["results"].items()
            yield {name: GroupEstimates.from_json(text) for name, text in texts}


def _mapped(frame: Any, function: Callable[[Any], Any], schema: Any) -> Any:
    """Return a table of the rows that a function yields for each partition."""
    with warnings.catch_warnings():
        # From pandas 3, which Spark's Arrow batches do not use.
        warnings.filterwarnings("ignore", "PySpark does not yet", FutureWarning)
        return frame.mapInArrow(function, schema).toArrow()


def _chosen(
    names: Sequence[str], choose: Callable[[Any], Any], batches: Iterable[Any]
) -> Iterator[Any]:
    """Yield the rows that `choose` takes from each batch."""
    import pyarrow as pa

    for batch in batches:
        table = pa.Table.from_batches([batch.rename_columns(names)])
        yield from choose(table).rename_columns(batch.schema.names).to_batches()


def _answer(plan: MeasurePlan, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the total of a partition as JSON; nothing if it has no rows."""
    import pyarrow as pa

    try:
        named = (batch.rename_columns(plan.names) for batch in batches)
        tables = cut(named, plan.partition_by, _ROWS_AT_A_TIME)
        total = added(plan.measure(table) for table in tables)
        if not total:
            return
        texts = {name: result.to_json() for name, result in total.items()}
        answer: dict[str, Any] = {"results": texts}
    except ValueError as error:  # of the data: trying again would repeat it
        answer = {"error": str(error)}
    yield pa.RecordBatch.from_arrays([pa.array([json.dumps(answer)])], ["answer"])


def cut(batches: Iterable[Any], by: str | None, n_rows: int) -> Iterator[Any]:
    """Yield tables of about `n_rows` rows, of which no two share a cluster.

    Parameters
    ----------
    batches : iterable of pyarrow RecordBatch
        The rows of a cluster next to each other.
    by : str or None
        The column of the clusters; None for rows.
    n_rows : int
        A table is cut at the first border between clusters after this many rows, so
        that larger clusters stay whole.
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
    """Return the row at which the last run of equal values in a column begins."""
    import pyarrow.compute as pc

    ends = pc.run_end_encode(column.combine_chunks()).run_ends
    return ends[-2].as_py() if len(ends) > 1 else 0
