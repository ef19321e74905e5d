"""Files and tables through DuckDB: rows of a cluster in one file, then file by file."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from ._first_pass import first_pass
from ._plan import MeasurePlan, split_query

_ROWS_OF_A_PART, _ROWS_OF_A_BATCH = 2_000_000, 100_000
# Seconds that processes must save, since each takes about two to start; and how often
# one that is killed is replaced.
_START, _REPLACED = 5.0, 2
_PART, _ROWS = "__part", "__rows"
_CSV = (".csv", ".csv.gz", ".tsv")
_MISSING = 'DuckDB is missing; pip install "skrankfair[duckdb]" brings it.'


def parts_of_duckdb(
    data: Any,
    plan: MeasurePlan,
    n_partitions: int | None,
    memory_limit: str | None,
    temp_directory: Any,
    n_jobs: int | None,
    progress: Callable[[str], object] | None,
) -> list[Mapping[Any, Any]]:
    """Return the total of the parts of a source; nothing of one without rows."""
    import pyarrow as pa

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
        try:
            plan.check_columns(_read(connection, data, Path(folder), plan))
            _check_nested(connection, plan)
            count = connection.execute(f"SELECT count(*) FROM {_ROWS}")  # noqa: S608
            n_rows = count.fetchall()[0][0]
            if n_partitions is None:
                n_partitions = max(1, -(-n_rows // _ROWS_OF_A_PART))
            parts = _parts(connection, plan, n_partitions, Path(folder))
        except duckdb.Error as error:
            raise ValueError(f"data cannot be read by DuckDB: {error}") from error
        except OSError as error:
            raise ValueError(
                f"temp_directory must have room for the parts of the data: {error}"
            ) from error
        connection.close()  # its memory is wanted by the parts
        plan, results = first_pass(
            plan,
            lambda: n_rows,
            lambda choose: pa.concat_tables(choose(_opened(part)) for part in parts),
        )
        if results and not plan.metrics:
            return results
        n_done = 0
        for result, n_of_part in _measured(plan, parts, n_jobs):
            results = [plan.added([*results, result])]  # which may be large
            n_done += n_of_part
            if progress is not None:
                progress(f"{n_done:,} of {n_rows:,} rows")
        return results


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


def _check_nested(connection: Any, plan: MeasurePlan) -> None:
    """Raise a ValueError for a query in two clusters, whose pairs would be lost."""
    if plan.nested is None:
        return
    query, unit = map(_quoted, plan.nested)
    split = connection.execute(
        f"SELECT {query} FROM {_ROWS} GROUP BY {query} "  # noqa: S608
        f"HAVING min({unit}) <> max({unit}) LIMIT 1"
    ).fetchone()
    if split is not None:
        raise split_query(plan, split[0])


def _parts(
    connection: Any, plan: MeasurePlan, n_partitions: int, folder: Path
) -> list[Any]:
    """Return parts of the columns that are needed, with all rows of a cluster in one.

    Each is a file of Arrow; a table if it is the only one. Rows are sorted by the
    numbers of their parts, in half the time that DuckDB takes to write files by part.
    """
    import pyarrow as pa

    columns = ", ".join(_quoted(name) for name in plan.names)
    if n_partitions == 1:
        whole = connection.sql(f"SELECT {columns} FROM {_ROWS}").to_arrow_table()  # noqa: S608
        return [whole] if whole.num_rows else []
    by = plan.partition_by
    key = "random() * 1e9" if by is None else f"hash({_quoted(by)})"
    part = f"CAST(CAST({key} AS UBIGINT) % {n_partitions} AS UINTEGER)"
    rows = connection.sql(
        f"SELECT {columns}, {part} AS {_PART} FROM {_ROWS} ORDER BY {_PART}"  # noqa: S608
    ).to_arrow_reader(_ROWS_OF_A_BATCH)
    schema = rows.schema.remove(len(rows.schema) - 1)
    paths: list[str] = []
    file: Any = None
    for batch in rows:
        numbers = batch.column(_PART).to_numpy()
        values = pa.RecordBatch.from_arrays(batch.columns[:-1], schema=schema)
        borders = np.flatnonzero(np.diff(numbers, prepend=-1.0)).tolist()
        for start, stop in pairwise([*borders, numbers.size]):
            path = str(folder / f"{numbers[start]}.arrow")
            if path not in paths[-1:]:
                if file is not None:
                    file.close()
                paths.append(path)
                file = pa.ipc.new_file(path, schema)
            file.write_batch(values.slice(start, stop - start))
    if file is not None:
        file.close()
    return paths


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _measured(
    plan: MeasurePlan, parts: Sequence[Any], n_jobs: int | None
) -> Iterator[tuple[Mapping[Any, Any], int]]:
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


def _opened(part: Any) -> Any:
    """Return the table of a part, of which a file is read as its columns are used."""
    import pyarrow as pa

    if isinstance(part, str):
        return pa.ipc.open_file(pa.memory_map(part)).read_all()
    return part


def _measure_part(plan: MeasurePlan, part: Any) -> tuple[Mapping[Any, Any], int]:
    """Return the results of one part, and its number of rows."""
    import pyarrow as pa

    part = _opened(part)
    # Labels of groups are few, and cheaper as codes.
    groups = plan.columns.get("sensitive_features", ())
    for name in {groups} if isinstance(groups, str) else set(groups):
        if pa.types.is_string(part[name].type):
            place = part.schema.get_field_index(name)
            part = part.set_column(place, name, part[name].dictionary_encode())
    return plan.measure(part), part.num_rows
