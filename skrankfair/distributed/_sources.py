"""Where data of any size come from: files and tables by DuckDB, Dask, and Spark.

Text columns of a file become labels, numbers or truth values, by one rule each.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from glob import escape
from pathlib import Path
from typing import Any

import narwhals as nw
import pandas as pd
from joblib import Parallel, delayed, effective_n_jobs

from .._inputs.validation import NoRowError, check_exact
from ..datasets._fetch import UNREADABLE
from ..metrics import GroupEstimates
from ._plan import MeasurePlan, Results, Source, added

#: The arguments whose columns hold numbers; those of others hold labels.
NUMBERS = "y_true", "y_score", "engagement", "position", "sample_weight", "item_weight"
#: Cells of a column of numbers that hold none; among labels "NA" is a label.
NO_NUMBER = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None")

_BLANKS = " \t\r\n"
_INFINITE = ("inf", "+inf", "-inf", "infinity", "+infinity", "-infinity")
_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_COMMA = r"^[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?$"
# Numbers whose commas may separate thousands.
_THOUSANDS = r"^[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+$"
# Text that is no whole number as programs write it: "007" is a name.
_NOT_WHOLE = r"[^0-9]|^0.|^.{19}|^$"
# Whole numbers of as many digits as 2**53, beyond which float64 rounds; longer ones
# than these are infinite in it.
_LARGE = r"^[+-]?[0-9]{16,300}$"
_ROWS_OF_A_PART = 2_000_000
# The column with the number of the part, which no column of the data is called.
_PART = "skrankfair part"
_CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
_MISSING = 'DuckDB is missing; pip install "skrankfair[duckdb]" brings it.'
# How many results one task of Dask adds up.
_AT_A_TIME = 8
# A worker of Spark has much less memory than a machine.
_ROWS_AT_A_TIME = 500_000


@dataclass
class DuckdbSource(Source):
    """A relation of DuckDB, whose rows are written to a folder per part.

    `n_jobs` and `progress` are those of `measure`.
    """

    connection: Any
    folder: Path
    n_jobs: int | None
    progress: Callable[[str], object]

    def query_of_several(self, qid: str, cluster: str) -> Any:
        """Return a query with rows of several clusters, or None."""
        query, unit = sql_name(qid), sql_name(cluster)
        several = f"{query}, min({unit}) <> max({unit}) AS several"
        queries = self.data.aggregate(several, query).filter("several")
        with reading():
            split = queries.limit(1).fetchall()
        return split[0][0] if split else None

    @cached_property
    def parts(self) -> list[Path]:
        """The folders of the parts, each with all rows of its clusters."""
        import duckdb

        by_size = -(-self.n_rows // _ROWS_OF_A_PART) or 1
        n_partitions = self.n_partitions or by_size
        by, folder = self.plan.partition_by, self.folder / "parts"
        key = "row_number() OVER ()" if by is None else f"hash({sql_name(by)})"
        number = f"{key} % {n_partitions} AS {sql_name(_PART)}"
        rows = self.data.project(", ".join([*map(sql_name, self.plan.names), number]))
        with reading(), ThreadPoolExecutor(1) as pool:
            # DuckDB turns signals into an error of its own, but not in another thread.
            write = partial(rows.write_parquet, str(folder), partition_by=[_PART])
            try:
                pool.submit(write).result()
            except duckdb.IOException as error:
                raise ValueError(
                    f"temp_directory must have room for the parts of the data: {error}"
                ) from error
            except BaseException:
                self.connection.interrupt()
                raise
        self.connection.close()  # so that the parts have its memory
        return sorted(folder.iterdir())

    def rows(self, choose: Callable[[Any], Any]) -> Any:
        """Return a table of the rows that `choose` takes from each part."""
        import pyarrow as pa
        from pyarrow.parquet import read_table

        parts = (read_table(part, partitioning=None) for part in self.parts)
        return pa.concat_tables(map(choose, parts))

    def results(self, plan: MeasurePlan) -> Iterator[Results]:
        """Yield the results of each part."""
        tasks = (delayed(_measured_part)(plan, part) for part in self.parts)
        # A process of its own for a single part would take longer than the part.
        n_jobs = max(1, min(effective_n_jobs(self.n_jobs), len(self.parts)))
        of_parts = Parallel(n_jobs=n_jobs, return_as="generator")(tasks)
        n_measured = 0
        for result, n_rows in of_parts:
            yield result
            n_measured += n_rows
            self.progress(f"{n_measured:,} of {self.n_rows:,} rows")


def _measured_part(plan: MeasurePlan, part: Path) -> tuple[Results, int]:
    """Return the results of one part, and its number of rows."""
    from pyarrow.parquet import read_table

    # Labels of groups are few, so that codes need less memory.
    others = (plan.columns.get("qid"), plan.partition_by)
    few = [name for name in plan.names if name not in others]
    table = read_table(part, partitioning=None, read_dictionary=few)
    return plan.measure(table), table.num_rows


@contextmanager
def duckdb_source(
    data: Any,
    plan: MeasurePlan,
    memory_limit: str | None = None,
    temp_directory: Any = None,
    n_partitions: int | None = None,
    n_jobs: int | None = None,
    progress: Callable[[str], object] = lambda text: None,
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
        with reading("memory_limit"):
            for name, value in options.items():
                text = str(value).replace("'", "''")
                connection.execute(f"SET {name} = '{text}'")
        with reading():
            relation = _read(connection, data, Path(folder), plan)
        yield DuckdbSource(
            relation, plan, n_partitions, connection, Path(folder), n_jobs, progress
        )


@contextmanager
def reading(what: str = "data") -> Iterator[None]:
    """Turn errors of DuckDB and of files into a ValueError that names the argument."""
    import duckdb

    try:
        yield
    except (duckdb.Error, OSError) as error:
        # What DuckDB says of its own options is nothing that a caller could set.
        why = re.split(r"\s+(?:The search|Possible)", str(error))[0]
        if "CSV" in why:
            why += ". All lines must be UTF-8 and have as many cells as the header."
        raise ValueError(f"{what} cannot be read by DuckDB: {why}") from error


def _read(connection: Any, data: Any, folder: Path, plan: MeasurePlan) -> Any:
    """Return the data as a relation."""
    import pyarrow as pa

    if isinstance(data, str | os.PathLike):
        data = [data]
    kind = type(data).__module__.partition(".")[0]
    listed = isinstance(data, Sequence)
    if listed and all(isinstance(path, str | os.PathLike) for path in data):
        return _of_files(connection, data, folder, plan)
    if type(data).__name__ == "LazyFrame":
        try:
            data = data.collect().to_arrow()
        except pa.ArrowInvalid as error:
            raise ValueError(f"data has a type that Arrow lacks: {error}.") from error
    elif kind in ("duckdb", "_duckdb"):
        # A relation belongs to another connection, so it is read as batches.
        data = data.to_arrow_reader()
    elif kind != "pyarrow":
        raise ValueError(
            "data must be a path, a list of paths, a pandas or polars frame, a pyarrow "
            "table, dataset or reader, a DuckDB relation, or a Dask or Spark frame; "
            f"got {type(data).__name__}."
        )
    source = connection.from_arrow(data)
    plan.check_columns(data.schema.names, cased=False)
    once = isinstance(data, pa.RecordBatchReader)  # which can be read only once
    return _as_parquet(connection, source, folder) if once else source


def _as_parquet(connection: Any, source: Any, folder: Path) -> Any:
    """Return a relation that can be read again and by column."""
    whole = str(folder / "whole.parquet")
    source.write_parquet(whole)
    return connection.read_parquet(whole)


def _of_files(
    connection: Any, paths: Sequence[Any], folder: Path, plan: MeasurePlan
) -> Any:
    """Return the rows of Parquet or CSV files of this computer, columns by name."""
    from pyarrow.parquet import read_schema

    # The name of a file that is there is no pattern, even with brackets.
    names = [escape(n) if os.path.lexists(n) else n for n in map(os.fspath, paths)]
    is_csv = any(name.lower().endswith(_CSV) for name in names)
    found = connection.execute("SELECT file FROM glob(?)", [names]).fetchall()
    files = [file for (file,) in found]
    if len({*map(os.path.realpath, files)}) < len(files):
        raise ValueError(f"data must name each file once; {names} has one twice.")
    separators = set()
    for file in files:
        try:
            if is_csv:
                read_csv = partial(pd.read_csv, file, encoding="utf-8-sig")
                header, sep = csv_header(read_csv)
                separators.add(sep)
            else:
                header = read_schema(file).names
        except UNREADABLE as error:
            message = f"{file} must be Parquet, or .csv or .csv.gz in UTF-8: {error}"
            raise ValueError(message) from error
        plan.check_columns(header, "data" if len(files) == 1 else file, cased=False)
    if len(separators) > 1:
        raise ValueError(f"data has files of several separators: {separators}.")
    # Columns are matched by name, as files may have other orders and types. The type of
    # a CSV column follows from all of its cells, not from a guess at the first rows.
    options: dict[str, Any] = {"union_by_name": True}
    if is_csv:
        options |= {"all_varchar": True, "header": True, "skiprows": 0, "comment": ""}
        options |= {"delimiter": min(separators, default=",")}
        options |= {"quotechar": '"', "escapechar": '"'}
    read = connection.read_csv if is_csv else connection.read_parquet
    source = read(names, **options)
    numbers = {
        column: f"{argument} (column {column!r})"
        for argument, column in plan.columns.items()
        if argument in NUMBERS
    }
    for metric in plan.metrics.values():
        options = getattr(metric, "keywords", {})
        if isinstance(options.get("pos_label"), str):  # classes, not yes for 1
            for argument in ("y_true", "y_score")[: 1 if "threshold" in options else 2]:
                numbers.pop(plan.columns.get(argument, ""), None)
    labels = {*plan.names} - {*numbers} if is_csv else set()
    if is_csv:
        source = source.project(", ".join(map(sql_name, plan.names)))
        source = _as_parquet(connection, source, folder)
    return nw.to_native(typed(nw.from_native(source), labels, numbers))


def sql_name(name: str) -> str:
    """Return the name of a column, quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'


class DaskSource(Source):
    """A Dask DataFrame; without `n_partitions` shuffled rows have those of the data."""

    def query_of_several(self, qid: str, cluster: str) -> Any:
        """Return a query with rows of several clusters, or None."""
        queries = self.data.groupby(qid, sort=False, observed=True)
        number = queries[cluster].nunique(split_out=self.data.npartitions)
        split = number[number > 1].head(1, npartitions=-1)
        return split.index[0] if len(split) else None

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
        level = [delayed(_measured_frame)(plan, part) for part in frame.to_delayed()]
        while len(level) > 1:
            starts = range(0, len(level), _AT_A_TIME)
            level = [delayed(added)(level[i : i + _AT_A_TIME]) for i in starts]
        return [level[0].compute()]


def _measured_frame(plan: MeasurePlan, frame: Any) -> Results:
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
            yield {name: NoRowError(*args) for name, args in answer["without"].items()}


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
        errors = {n: r for n, r in total.items() if isinstance(r, NoRowError)}
        texts = {n: r.to_json() for n, r in total.items() if n not in errors}
        without = {name: (str(e), e.missing) for name, e in errors.items()}
        answer: dict[str, Any] = {"results": texts, "without": without}
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


def csv_header(
    read: Callable[..., Any], sep: str | None = None
) -> tuple[list[str], str]:
    """Return the names of the columns without blanks around them, and the separator.

    `read` is ``pandas.read_csv`` of a file. Names are read as cells, as it would number
    the second of two equal names. If `sep` is None the header decides.
    """
    first: dict[str, Any] = {"header": None, "nrows": 1, "dtype": str}
    if sep is None:
        sep = max(",;\t", key=",".join(read(**first).iloc[0].fillna("")).count)
    return [*read(sep=sep, **first).iloc[0].fillna("").str.strip()], sep


def typed(
    frame: nw.LazyFrame[Any], labels: Iterable[str], numbers: Mapping[str, str]
) -> nw.LazyFrame[Any]:
    """Return a frame of any engine, with text columns converted if all cells allow it.

    Labels stay text, unless all of them are truth values, or all are whole numbers
    without leading zeros: "7" and "07" are two labels. Numbers are decimal, with points
    or with commas, or all of them yes and no (or true and false), which are 1 and 0;
    blanks around them and cells of `NO_NUMBER` do not count. Commas that may all
    separate thousands are refused. Other columns stay unchanged.

    Parameters
    ----------
    frame : LazyFrame of narwhals
    labels : iterable of str
        The columns that hold labels.
    numbers : dict of str to str
        The columns that hold numbers, and what an error calls them.
    """
    schema = frame.collect_schema()
    texts = [name for name, dtype in schema.items() if dtype == nw.String]
    rules = {n: _of_numbers(nw.col(n)) for n in texts if n in numbers}
    rules |= {n: _of_labels(nw.col(n)) for n in {*texts} & {*labels} - {*numbers}}
    fits = {(n, i): rule[0] for n, some in rules.items() for i, rule in enumerate(some)}
    if not fits:
        return frame
    every = [fit.all().alias(str(key)) for key, fit in fits.items()]
    found = frame.select(*every).collect().rows(named=True)[0]
    values = []
    for name, of_column in rules.items():
        # Without rows every rule holds, and DuckDB's answer is None.
        true = [found[str((name, i))] is not False for i in range(len(of_column))]
        fitting = [rule[1] for i, rule in enumerate(of_column) if true[i]]
        if fitting and fitting[0] is None:
            raise ValueError(
                f"{numbers[name]} has commas that may be decimal commas or separate "
                "thousands; give --decimal , or write it without them."
            )
        if fitting:
            values.append(fitting[0].alias(name))
        elif name in numbers:
            word, number = fits[name, 0], fits[name, 1]
            # The error shows a cell that is neither, or else a word among numbers.
            cells = frame.with_columns(wrong=word.cast(nw.Int64)).filter(~number)
            wrong = cells.sort("wrong").select(name).head(1).collect().item()
            if re.match(_LARGE, wrong.strip(_BLANKS)):
                check_exact([int(wrong)], [None], numbers[name])
            raise ValueError(
                f"{numbers[name]} must hold numbers, or only yes and no (true and "
                f"false); it has {wrong!r}. Write labels as "
                "1 and 0 (--positive does so with outcomes)."
            )
    return frame.with_columns(*values) if values else frame


def _of_labels(cell: nw.Expr) -> list[tuple[nw.Expr, nw.Expr]]:
    """Return which cells fit each rule, and what they are by it."""
    text = cell.fill_null("")  # which fits none
    lower = text.str.to_lowercase()
    return [
        (lower.is_in(["true", "false"]), lower == "true"),
        (~text.str.contains(_NOT_WHOLE), text.cast(nw.Int64)),
    ]


def _of_numbers(cell: nw.Expr) -> list[tuple[nw.Expr, Any]]:
    """Return which cells fit each rule, and what they are by it; None: ambiguous."""
    text = cell.fill_null("").str.strip_chars(_BLANKS)
    lower, absent = text.str.to_lowercase(), text.is_in(NO_NUMBER)
    yes, no = lower.is_in(["yes", "true"]), lower.is_in(["no", "false"])
    # Nine digits, as old narwhals finds no tail of a shorter text.
    large = nw.when(text.str.contains(_LARGE)).then(text).otherwise(nw.lit("0" * 9))
    exact = large.cast(nw.Float64).abs() % 1e9 == large.str.tail(9).cast(nw.Float64)
    number = text.str.contains(_NUMBER) & exact | lower.is_in(_INFINITE)
    plain = number & ~text.str.contains(".", literal=True)
    commas = plain | text.str.contains(_COMMA)
    points = text.str.replace_all(",", ".", literal=True)
    rules: list[tuple[nw.Expr, Any]] = [
        (absent | fits, nw.when(~absent).then(value).cast(nw.Float64))
        for fits, value in ((yes | no, yes), (number, text), (commas, points))
    ]
    rules.insert(2, (absent | plain | text.str.contains(_THOUSANDS), None))
    return rules
