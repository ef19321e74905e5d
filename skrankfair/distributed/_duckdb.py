"""Files and tables through DuckDB: rows of a cluster in one file, then file by file."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from ._plan import MeasurePlan, Results

_ROWS_OF_A_PART, _ROWS_OF_A_BATCH = 2_000_000, 100_000
# Seconds that processes must save, since each takes about two to start; and how often
# one that is killed is replaced.
_START, _REPLACED = 5.0, 2
_PART, _ROWS = "__part", "__rows"
_CSV = (".csv", ".csv.gz", ".tsv")
_MISSING = 'DuckDB is missing; pip install "skrankfair[duckdb]" brings it.'


class Part(NamedTuple):
    """Rows of a file of Arrow that hold whole clusters."""

    path: str
    start: int
    n_rows: int

    def table(self) -> Any:
        """Return the rows, which are read from the file as their columns are used."""
        import pyarrow as pa

        with pa.memory_map(self.path) as file:
            return pa.ipc.open_file(file).read_all().slice(self.start, self.n_rows)


@dataclass
class DuckdbSource:
    """A view of rows in a connection of DuckDB, which closes once these are parted.

    Attributes
    ----------
    connection : duckdb.DuckDBPyConnection
    columns : list of str
    plan : MeasurePlan
    n_partitions : int or None
        None is one for 2 million rows.
    folder : Path
        Where the parts are written.
    n_jobs, progress
        As `measure` takes them.
    """

    connection: Any
    columns: list[str]
    plan: MeasurePlan
    n_partitions: int | None
    folder: Path
    n_jobs: int | None
    progress: Callable[[str], object] | None

    @cached_property
    def n_rows(self) -> int:
        """The number of rows."""
        query = f"SELECT count(*) FROM {_ROWS}"  # noqa: S608
        return int(self.connection.execute(query).fetchall()[0][0])

    def query_of_several(self, qid: str, cluster: str) -> Any:
        """Return a query with rows of several clusters, or None."""
        query, unit = _quoted(qid), _quoted(cluster)
        with _reading():
            split = self.connection.execute(
                f"SELECT {query} FROM {_ROWS} GROUP BY {query} "  # noqa: S608
                f"HAVING min({unit}) <> max({unit}) LIMIT 1"
            ).fetchone()
        return None if split is None else split[0]

    @cached_property
    def parts(self) -> list[Part]:
        """Parts of the rows, which are written when they are first asked for."""
        with _reading():
            n_partitions = self.n_partitions
            if n_partitions is None:
                n_partitions = max(1, -(-self.n_rows // _ROWS_OF_A_PART))
            parts = _parts(self.connection, self.plan, n_partitions, self.folder)
        self.connection.close()  # its memory is wanted by the parts
        return parts

    def rows(self, choose: Callable[[Any], Any]) -> Any:
        """Return a table of the rows that a function takes of each part."""
        import pyarrow as pa

        return pa.concat_tables(choose(part.table()) for part in self.parts)

    def results(self, plan: MeasurePlan) -> Iterator[Results]:
        """Yield the results of each part."""
        n_rows, n_done = self.n_rows, 0
        for result, n_of_part in _measured(plan, self.parts, self.n_jobs):
            yield result
            n_done += n_of_part
            if self.progress is not None:
                self.progress(f"{n_done:,} of {n_rows:,} rows")


@contextmanager
def duckdb_source(
    data: Any,
    plan: MeasurePlan,
    n_partitions: int | None,
    *,
    memory_limit: str | None,
    temp_directory: Any,
    n_jobs: int | None,
    progress: Callable[[str], object] | None,
) -> Iterator[DuckdbSource]:
    """Read files or a table by DuckDB, in a folder that is deleted afterwards."""
    try:
        import duckdb
    except ImportError as error:
        raise ImportError(_MISSING) from error
    if temp_directory is not None and not Path(temp_directory).is_dir():
        raise ValueError(
            f"temp_directory must be a folder that is there; got {temp_directory!r}."
        )
    with (
        tempfile.TemporaryDirectory(prefix="skrankfair-", dir=temp_directory) as folder,
        duckdb.connect() as connection,
    ):
        options = {"temp_directory": folder, "preserve_insertion_order": False}
        if memory_limit is not None:
            options["memory_limit"] = memory_limit
        for name, value in options.items():
            connection.execute(f"SET {name} = '{value}'")
        with _reading():
            columns = _read(connection, data, Path(folder), plan)
        yield DuckdbSource(
            connection, columns, plan, n_partitions, Path(folder), n_jobs, progress
        )


@contextmanager
def _reading() -> Iterator[None]:
    """Raise a ValueError of the data or of the folder for what DuckDB cannot do."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise ValueError(f"data cannot be read by DuckDB: {error}") from error
    except OSError as error:
        raise ValueError(
            f"temp_directory must have room for the parts of the data: {error}"
        ) from error


def _read(connection: Any, data: Any, folder: Path, plan: MeasurePlan) -> list[str]:
    """Let the connection see the data as a view; return the names of the columns."""
    import pyarrow as pa

    if isinstance(data, str | os.PathLike):
        data = [data]
    kind = type(data).__module__.partition(".")[0]
    if isinstance(data, Sequence):
        source = _of_files(connection, data, plan)
    elif kind == "polars":
        source = connection.from_arrow(data.collect().to_arrow())
    elif kind == "pyarrow":
        source = connection.from_arrow(data)
    elif kind in ("duckdb", "_duckdb"):
        # A relation belongs to the connection that made it, and comes as batches.
        data = data.to_arrow_reader()
        source = connection.from_arrow(data)
    else:
        raise ValueError(
            "data must be a path, a list of paths, a pandas or polars frame, a pyarrow "
            "table, dataset or reader, a DuckDB relation, or a Dask or Spark frame; "
            f"got {type(data).__name__}."
        )
    if isinstance(data, pa.RecordBatchReader):  # which can be read only once
        whole = folder / "whole.parquet"
        source.write_parquet(str(whole))
        source = connection.read_parquet(str(whole))
    source.create_view(_ROWS)
    return list(source.columns)


def _of_files(connection: Any, paths: Sequence[Any], plan: MeasurePlan) -> Any:
    """Return the rows of Parquet or CSV files of this computer, columns by name."""
    names = [os.fspath(path) for path in paths]
    for name in names:
        if "://" in name:
            raise ValueError(f"data must be files of this computer; got {name!r}.")
    is_csv = any(name.lower().endswith(_CSV) for name in names)
    read = connection.read_csv if is_csv else connection.read_parquet
    # Otherwise columns are those of the first file: its types, and in CSV its order.
    source = read(names, union_by_name=True)
    types = dict(zip(source.columns, map(str, source.types), strict=True))
    files = connection.execute("SELECT file FROM glob(?)", [names]).fetchall()
    for (file,) in files if len(files) > 1 else ():
        one = read(file)
        its_types = dict(zip(one.columns, map(str, one.types), strict=True))
        for name in types.keys() & plan.names:
            if name not in its_types:
                raise ValueError(
                    f"data has a file without the column {name!r}: {file}."
                )
            # Of numbers and text DuckDB would make text, of 1 and "1" the same label.
            if not is_csv and its_types[name] != types[name] == "VARCHAR":
                raise ValueError(
                    f"data must have columns of one type; {name!r} is text in some "
                    f"files, and {its_types[name]} in {file}."
                )
    return source


def _parts(
    connection: Any, plan: MeasurePlan, n_partitions: int, folder: Path
) -> list[Part]:
    """Write the columns that are needed, all rows of a cluster in one part.

    Rows are sorted by the numbers of their parts, in half the time that DuckDB takes to
    write a file for each part.
    """
    import pyarrow as pa

    by = plan.partition_by
    key = "random() * 1e9" if by is None else f"hash({_quoted(by)})"
    part = f"CAST(CAST({key} AS UBIGINT) % {n_partitions} AS UINTEGER)"
    columns = ", ".join(_quoted(name) for name in plan.names)
    query = f"SELECT {columns}, {part} AS {_PART} FROM {_ROWS}"  # noqa: S608
    if n_partitions > 1:
        query += f" ORDER BY {_PART}"
    rows = connection.sql(query).to_arrow_reader(_ROWS_OF_A_BATCH)
    schema = rows.schema.remove(len(rows.schema) - 1)
    path, sizes = str(folder / "rows.arrow"), np.zeros(n_partitions, dtype=int)
    with pa.ipc.new_file(path, schema) as file:
        for batch in rows:
            sizes += np.bincount(batch.column(_PART), minlength=n_partitions)
            file.write_batch(batch.select(schema.names))
    starts = np.cumsum(sizes) - sizes
    parts = zip(starts.tolist(), sizes.tolist(), strict=True)
    return [Part(path, start, n_rows) for start, n_rows in parts if n_rows]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _measured(
    plan: MeasurePlan, parts: Sequence[Part], n_jobs: int | None
) -> Iterator[tuple[Results, int]]:
    """Yield the result of each part, in order and once, with its number of rows.

    Processes are started if the first part says that it saves time. Parts that a killed
    process leaves without a result are measured again.
    """
    n_done, begun = 0, time.process_time()
    for part in parts[:1]:
        yield _measure_part(plan, part)
        n_done = 1
    rest = (len(parts) - n_done) * (time.process_time() - begun)
    if rest * (1 - 1 / effective_n_jobs(n_jobs)) <= _START:
        n_jobs = 1
    for attempt in range(1 + _REPLACED):
        tasks = (delayed(_measure_part)(plan, part) for part in parts[n_done:])
        try:
            for result in Parallel(n_jobs=n_jobs, return_as="generator")(tasks):
                n_done += 1
                yield result
            return
        except BrokenProcessPool as error:
            if attempt == _REPLACED:
                raise RuntimeError(
                    "Processes that measured parts of the data were killed, as for "
                    f"lack of memory, {attempt + 1} times; take fewer at a time by "
                    "n_jobs=, or smaller parts by n_partitions=."
                ) from error


def _measure_part(plan: MeasurePlan, part: Part) -> tuple[Results, int]:
    """Return the results of one part, and its number of rows."""
    import pyarrow as pa

    table = part.table()
    # Labels of groups are few, and cheaper as codes.
    groups = plan.columns.get("sensitive_features", ())
    for name in {groups} if isinstance(groups, str) else set(groups):
        if pa.types.is_string(table[name].type):
            column = table.schema.get_field_index(name)
            table = table.set_column(column, name, table[name].dictionary_encode())
    return plan.measure(table), part.n_rows
