"""Audits beyond memory against what the engine alone needs for the same columns.

``python benchmarks/scale.py [--rows 1e6 1e7] [--engines duckdb dask spark] [--write]``.
Three groups, queries of 20 items, 4 queries a user, in Parquet files whose rows are
shuffled. DuckDB has two cores and 4 GB; alone it sorts the columns by user and scans
them. Dask and Spark alone shuffle the columns by user and count the rows. Each run is
a process of its own, which is timed from when it has imported what it needs; its peak
memory is that of all its processes. ``--folder`` keeps the files for the next time;
temporary files go where TMPDIR says. ``--write`` puts the rows into the table of
docs/performance.md, in the place of those of as many rows and the same engine.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

MARK = "## Beyond memory"
#: Of DuckDB in GB, and the cores of every engine.
LIMIT, CORES = 4, 2
#: Seconds between two looks at the processes.
PAUSE = 0.05
OF_A_QUERY, OF_A_USER, ROWS_OF_A_FILE = 20, 4, 5_000_000
COLUMNS = {
    "y_true": "clicked",
    "y_score": "score",
    "sensitive_features": "region",
    "qid": "query",
    "cluster": "user",
}
METRICS = ["pairwise_accuracy"]


def write_log(folder: pathlib.Path, n_rows: int) -> None:
    """Write files of a log whose rows are in no order.

    A multiplication modulo a prime-free power of two permutes the rows, so that no
    step needs all of them in memory.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    size = 1 << (n_rows - 1).bit_length()
    rng = np.random.default_rng(0)
    start = 0
    for number, first in enumerate(range(0, size, ROWS_OF_A_FILE)):
        place = np.arange(first, min(first + ROWS_OF_A_FILE, size), dtype=np.uint64)
        row = (place * np.uint64(0x9E3779B97F4A7C15) + np.uint64(12345)) % np.uint64(
            size
        )
        query = row[row < n_rows].astype(np.int64) // OF_A_QUERY
        score = rng.random(query.size)
        start += query.size
        table = {
            "query": query,
            "user": query // OF_A_USER,
            "region": np.array(["east", "north", "south"])[
                rng.integers(0, 3, query.size)
            ],
            "score": score,
            "clicked": (rng.random(query.size) < score).astype(np.int8),
            "unused": rng.random(query.size),
        }
        pq.write_table(pa.table(table), folder / f"{number:04}.parquet")
    if start != n_rows:
        raise RuntimeError(f"{start} rows were written, not {n_rows}.")


# What a process of its own does.


def ready() -> None:
    """Say that the work begins, and what has been spent until now."""
    spent = sum(cpu for cpu, _ in _processes(os.getpgid(0)).values())
    print(spent, flush=True)


def of_duckdb(folder: str, alone: bool) -> None:
    """Measure by DuckDB, or let it sort by user and scan."""
    import duckdb

    from skrankfair.distributed import measure

    ready()
    files = f"{folder}/*.parquet"
    if not alone:
        limit = f"{LIMIT}GB"
        measure(files, METRICS, memory_limit=limit, n_jobs=CORES, **COLUMNS)
        return
    names = ", ".join(f'"{name}"' for name in COLUMNS.values())
    with tempfile.TemporaryDirectory() as spill, duckdb.connect() as connection:
        connection.execute(f"SET memory_limit = '{LIMIT}GB'")
        connection.execute(f"SET threads = {CORES}")
        connection.execute(f"SET temp_directory = '{spill}'")
        query = f"SELECT {names} FROM '{files}' ORDER BY \"user\""
        reader = connection.sql(query).to_arrow_reader(100_000)
        total = sum(batch.num_rows for batch in reader)
    assert total


def of_dask(folder: str, alone: bool) -> None:
    """Measure by two processes of Dask, or let them shuffle and count."""
    import dask
    import dask.dataframe as dd

    from skrankfair.distributed import measure

    ready()
    parts = 2 * CORES
    with dask.config.set(scheduler="processes", num_workers=CORES):
        frame = dd.read_parquet(folder, columns=list(COLUMNS.values()))
        if alone:
            shuffled = frame.shuffle(on="user", npartitions=parts)
            shuffled.map_partitions(len).compute()
        else:
            measure(frame, METRICS, n_partitions=parts, **COLUMNS)


def of_spark(folder: str, alone: bool) -> None:
    """Measure by ``local[2]`` of Spark, or let it shuffle, sort and count."""
    from pyspark.sql import SparkSession

    from skrankfair.distributed import measure

    os.environ["PYSPARK_PYTHON"] = sys.executable
    options = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "3g",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(8 * CORES),
    }
    builder = SparkSession.builder.master(f"local[{CORES}]")
    session = builder.config(map=options).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    ready()
    table = session.read.parquet(folder)
    if alone:
        shuffled = table.select(*COLUMNS.values()).repartition("user")
        sorted_rows = shuffled.sortWithinPartitions("user")
        sorted_rows.mapInArrow(_counted, "n long").collect()
    else:
        measure(table, METRICS, **COLUMNS)
    time.sleep(3 * PAUSE)
    session.stop()


def _counted(batches: Any) -> Any:
    import pyarrow as pa

    total = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_pydict({"n": [total]})


ENGINES = {"duckdb": of_duckdb, "dask": of_dask, "spark": of_spark}


# Processes of their own, watched.


def _processes(group: int) -> dict[str, tuple[float, int]]:
    """Return CPU seconds and bytes of the processes of a group, by id.

    Of shared pages each process has its part.
    """
    found, ticks = {}, os.sysconf("SC_CLK_TCK")
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.getpgid(int(folder.name)) == group:
                memory_text = (folder / "smaps_rollup").read_text(encoding="ascii")
                held = 1024 * int(memory_text.partition("\nPss:")[2].split()[0])
                numbers = (folder / "stat").read_text().rpartition(")")[2].split()
                cpu = (int(numbers[11]) + int(numbers[12])) / ticks
                found[folder.name] = cpu, held
        except (OSError, IndexError, ValueError):  # it has just ended
            continue
    return found


def run(engine: str, folder: pathlib.Path, alone: bool) -> tuple[float, int]:
    """Return the CPU seconds and the peak memory in bytes of all processes."""
    command = [sys.executable, __file__, "--one", engine, str(folder), str(int(alone))]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=environment,
    )
    peak, cpu = 0, {}
    while process.poll() is None:
        found = _processes(process.pid)
        peak = max(peak, sum(held for _, held in found.values()))
        cpu |= {number: seconds for number, (seconds, _) in found.items()}
        time.sleep(PAUSE)
    if process.returncode:
        raise RuntimeError(f"{engine} failed on {folder}.")
    assert process.stdout is not None
    return sum(cpu.values()) - float(process.stdout.read().split()[0]), peak


NAMES = {"duckdb": "DuckDB", "dask": "Dask", "spark": "Spark"}


def measured(sizes: list[int], engines: list[str], folder: pathlib.Path) -> list[str]:
    """Return the rows of the table, printing them as they come."""
    today, lines = dt.date.today().isoformat(), []
    for n_rows in sizes:
        log = folder / str(n_rows)
        if not log.exists():
            log.mkdir(parents=True)
            write_log(log, n_rows)
        for engine in engines:
            alone, its_peak = run(engine, log, alone=True)
            seconds, peak = run(engine, log, alone=False)
            lines.append(
                f"| {n_rows:,} | {NAMES[engine]} | {1e6 * seconds / n_rows:.2f} "
                f"| {seconds / alone:.2f} | {peak / 1e9:.2f} | {its_peak / 1e9:.2f} "
                f"| {today} |"
            )
            print(lines[-1], flush=True)
    return lines


def write(lines: list[str]) -> None:
    """Put rows into the page; those that were measured before stay."""
    import memory

    page = memory.DOCS.read_text(encoding="utf-8")
    before, _, others = page.partition(memory.MARK)
    before, _, section = before.partition(MARK)
    rows = {
        _place(line): line
        for line in [*section.splitlines(), *lines]
        if line[:3].strip("| ").isdigit()
    }
    parts = [before.rstrip(), "", *SECTION, *(rows[place] for place in sorted(rows))]
    page = "\n".join([*parts, "", memory.MARK + others])
    memory.DOCS.write_text(page, encoding="utf-8")


def _place(line: str) -> tuple[int, int]:
    """Return the place of a row in the table: by engine, then by the number of rows."""
    n_rows, name = (cell.strip() for cell in line.split("|")[1:3])
    return list(NAMES.values()).index(name), int(n_rows.replace(",", ""))


SECTION = [
    MARK,
    "",
    "`pairwise_accuracy` of a log in Parquet files, rows shuffled: three groups,",
    f"queries of {OF_A_QUERY} items, {OF_A_USER} queries a user, two cores. DuckDB",
    f"has {LIMIT} GB; the ratio is to what it alone needs to sort the same columns",
    "by user and scan them (must 2 for a hundred million rows; fewer fit in memory,",
    "where it sorts ten million twice as fast). Of Dask and Spark it is to the",
    "same engine shuffling the same columns by user and counting them (must 1.5 for",
    "ten million). Memory is",
    f"the peak of all processes (must {LIMIT + 0.5} GB with DuckDB), and that of the",
    "engine alone. Time is the CPU time of all processes, those that are started for",
    "the work with their imports, and without those of the first and the start of",
    "Spark; per row it must grow at most 1.5 times from a million rows to a hundred",
    "million. A million rows are one part, measured in one process; ten million are",
    "five parts, for which two processes take two to three seconds of imports.",
    "",
    "Run it with `python benchmarks/scale.py`; `--rows 1e8` and `--engines dask spark`",
    "measure the others, and `--write` renews their rows.",
    "",
    "| rows | engine | CPU µs per row | ratio | peak GB | alone | measured |",
    "|---|---|---|---|---|---|---|",
]


def main() -> int:
    """Measure all sizes and engines, or one in this process."""
    if sys.argv[1:2] == ["--one"]:
        engine, folder, alone = sys.argv[2:]
        ENGINES[engine](folder, alone == "1")
        time.sleep(3 * PAUSE)  # so that all of it is seen
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6, 1e7])
    parser.add_argument("--engines", nargs="+", default=["duckdb"], choices=ENGINES)
    parser.add_argument("--folder", help="where the logs are kept; none: nowhere")
    parser.add_argument("--write", action="store_true", help="renew the page")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(options.folder or temporary)
        sizes = [int(size) for size in options.rows]
        lines = measured(sizes, options.engines, folder)
    if options.write:
        write(lines)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
