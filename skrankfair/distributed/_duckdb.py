"""Files and tables through DuckDB: rows of a cluster in one file, then file by file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs

from ._plan import Plan, split_query

_ROWS_OF_A_PART = 2_000_000
_PART, _ROWS = "__part", "__rows"
_CSV = (".csv", ".csv.gz", ".tsv")
_MISSING = 'DuckDB is missing; pip install "skrankfair[duckdb]" brings it.'


def parts_of_duckdb(
    data: Any,
    plan: Plan,
    n_partitions: int | None,
    memory_limit: str | None,
    temp_directory: Any,
    n_jobs: int | None,
    progress: Callable[[str], object] | None,
) -> list[Mapping[Any, Any]]:
    """Return the results of the parts of a source that DuckDB can read."""
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
            n_rows = _first(connection, f"SELECT count(*) FROM {_ROWS}")[0]  # noqa: S608
            if n_partitions is None:
                enough = -(-n_rows // _ROWS_OF_A_PART)
                n_partitions = max(effective_n_jobs(n_jobs), enough)
            _write_parts(connection, plan, n_partitions, Path(folder) / "parts")
        except duckdb.Error as error:
            raise ValueError(f"data cannot be read by DuckDB: {error}") from error
        connection.close()  # its memory is wanted by the parts
        files = sorted((Path(folder) / "parts").rglob("*.parquet"))
        by_part: dict[str, list[Path]] = {}
        for file in files:
            by_part.setdefault(file.parent.name, []).append(file)
        results = Parallel(n_jobs=n_jobs, return_as="generator")(
            delayed(_measure_files)(plan, part) for part in by_part.values()
        )
        found, n_done = [], 0
        for result, n_of_part in results:
            found.append(result)
            n_done += n_of_part
            if progress is not None:
                progress(f"{n_done:,} of {n_rows:,} rows")
        return found


def _read(connection: Any, data: Any, folder: Path, plan: Plan) -> list[str]:
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


def _of_files(connection: Any, paths: Sequence[Any], plan: Plan) -> Any:
    """Return the rows of Parquet or CSV files of this computer, columns by name."""
    names = [os.fspath(path) for path in paths]
    for name in names:
        if "://" in name:
            raise ValueError(f"data must be files of this computer; got {name!r}.")
    is_csv = any(name.lower().endswith(_CSV) for name in names)
    read = connection.read_csv if is_csv else connection.read_parquet
    # Otherwise columns are those of the first file: its types, and in CSV its order.
    source = read(names, union_by_name=True)
    files = connection.execute("SELECT file FROM glob(?)", [names]).fetchall()
    for (file,) in files if len(files) > 1 else ():
        _check_file(file, read(file), source, plan, typed=not is_csv)
    return source


def _check_file(file: str, part: Any, whole: Any, plan: Plan, *, typed: bool) -> None:
    """Raise a ValueError for a file that lacks a column, or has text for numbers."""
    kinds, of_all = (
        dict(zip(source.columns, map(str, source.types), strict=True))
        for source in (part, whole)
    )
    for name in plan.names:
        if name not in kinds and name in of_all:
            raise ValueError(f"data has a file without the column {name!r}: {file}.")
        # Of numbers and text DuckDB would make text, and of 1 and "1" the same label.
        if typed and name in kinds and kinds[name] != of_all[name] == "VARCHAR":
            raise ValueError(
                f"data must have columns of one type; {name!r} is text in some files, "
                f"and {kinds[name]} in {file}."
            )


def _check_nested(connection: Any, plan: Plan) -> None:
    """Raise a ValueError for a query in two clusters, whose pairs would be lost."""
    nested = plan.nested
    if nested is None:
        return
    query, unit = map(_quoted, nested)
    split = _first(
        connection,
        f"SELECT {query} FROM {_ROWS} GROUP BY {query} "  # noqa: S608
        f"HAVING min({unit}) <> max({unit}) LIMIT 1",
    )
    if split is not None:
        raise split_query(plan, split[0])


def _write_parts(connection: Any, plan: Plan, n_partitions: int, folder: Path) -> None:
    """Write the columns that are needed, the rows of a cluster into one part."""
    columns = ", ".join(_quoted(name) for name in plan.names)
    by = plan.partition_by
    key = "random() * 1e9" if by is None else f"hash({_quoted(by)})"
    connection.sql(
        f"SELECT {columns}, CAST({key} AS UBIGINT) % {n_partitions} AS {_PART} "  # noqa: S608
        f"FROM {_ROWS}"
    ).write_parquet(str(folder), partition_by=[_PART])


def _first(connection: Any, query: str) -> Any:
    """Return the first row of a query, or None."""
    rows = connection.execute(query).fetchall()
    return rows[0] if rows else None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _measure_files(plan: Plan, files: Sequence[Path]) -> tuple[Mapping[Any, Any], int]:
    """Return the results of one part, and its number of rows."""
    import pyarrow.parquet as pq

    # Labels of groups are few, and cheaper as codes, which old Arrow cannot sort.
    groups = () if plan.n_replicates else plan.columns.get("sensitive_features", ())
    labels = {groups} if isinstance(groups, str) else set(groups)
    schema = pq.read_schema(files[0])
    text = [name for name in labels if str(schema.field(name).type) == "string"]
    table = pq.read_table(
        [str(file) for file in files], columns=plan.names, read_dictionary=text
    )
    return plan.measure(table), table.num_rows
