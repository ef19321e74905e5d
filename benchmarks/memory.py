"""Memory and time of every metric with many groups, each in a process of its own.

Of 10,000 groups in a million rows, with errors and degrees of freedom. The memory is
what tracemalloc sees beyond the inputs (NumPy reports to it); the time is in units of
that of two groups, without it. What fails, or takes more than `LIMIT`, says so.
"""

from __future__ import annotations

import argparse
import datetime as dt
import inspect
import json
import pathlib
import resource
import signal
import subprocess
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from skrankfair import metrics

DOCS = pathlib.Path(__file__).parents[1] / "docs" / "performance.md"
MARK = "## Ten thousand groups"
RULE = "|---|---|---|---|"
#: Address space of a process, in bytes; how many seconds of processor time it has, and
#: after how many it is not timed again.
LIMIT, PATIENCE, ENOUGH = 6 << 30, 600, 20

#: What is no metric of outcomes, scores and groups: it takes another function, or the
#: chances of all orders of one list.
OTHERS = ("make_metric", "expected_advantage")
#: Every other function of the package's metrics, so that a new one is measured too.
METRICS = {
    name: set(inspect.signature(getattr(metrics, name)).parameters)
    for name in metrics.__all__
    if inspect.isfunction(getattr(metrics, name)) and name not in OTHERS
}
OPTIONS: dict[str, dict[str, Any]] = {
    "boost_value": {"boost": 0.3},
    "matched_pair_calibration": {"epsilon": 0.01},
    "matched_pair_curve": {"epsilon": [0.001, 0.003, 0.01, 0.03, 0.1]},
    "positive_rate_shift": {"threshold": 0.5, "n_resamples": 20},
    "rank_shift": {"n_resamples": 20},
}
#: Metrics that are measured more than once, with these options.
VARIANTS: dict[str, dict[str, Any]] = {
    "calibration_error, binned": {
        "method": "binned",
        "bins": list(np.linspace(0, 1, 11)),
    },
    "calibration_error, smooth": {},
    "calibration_error, sweep": {"method": "sweep"},
    "matched_pair_calibration, exact quantile": {"epsilon": None},
}


def all_names() -> list[str]:
    """Return what the table has a row of."""
    return sorted([*METRICS.keys() - {"calibration_error"}, *VARIANTS])


def call(name: str, n_rows: int, n_groups: int) -> Callable[[], Any]:
    """Return the call of a metric with its errors."""
    rng = np.random.default_rng(0)
    options = VARIANTS.get(name, {})
    name = name.partition(", ")[0]
    options = OPTIONS.get(name, {}) | options
    takes = METRICS[name]
    y = (rng.random(n_rows) < 0.3).astype(float)
    score = rng.permutation(n_rows) / n_rows
    who: dict[str, Any] = {"sensitive_features": rng.integers(0, n_groups, n_rows)}
    if "qid" in takes:
        who["qid"] = rng.integers(0, max(1, n_rows // 50), n_rows)
    if name == "ndcg":  # whose groups are of queries
        who["sensitive_features"] = who["qid"] % n_groups
    if "threshold" in takes and "threshold" not in options:
        score = (score > 0.7).astype(float)
    columns = (y, score) if "y_score" in takes else (y,)
    metric = getattr(metrics, name)

    def measured() -> None:
        result = metric(*columns, **who, **options)
        _ = getattr(result, "standard_error", None), getattr(result, "df", None)

    return measured


def of_process(name: str, n_rows: int, n_groups: int, traced: bool) -> dict[str, Any]:
    """Measure in this process, which may die of it."""
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE, PATIENCE))
    warnings.simplefilter("ignore")
    work = call(name, n_rows, n_groups)
    if not traced:
        times: list[float] = []
        while len(times) < 3 and sum(times) < ENOUGH:
            start = time.process_time()
            work()
            times.append(time.process_time() - start)
        return {"seconds": min(times)}
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    work()
    return {"bytes": tracemalloc.get_traced_memory()[1] - before}


def measure(name: str, n_rows: int, n_groups: int, traced: bool) -> dict[str, Any]:
    """Measure in a process of its own; an error is its last line."""
    command = [sys.executable, __file__, "--one", name, str(n_rows), str(n_groups)]
    command.append(str(int(traced)))
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return {"error": f"more than {PATIENCE} s"}
    if run.returncode:
        lines = run.stderr.strip().splitlines() or ["killed"]
        # Of a refusal what it says before what to do.
        return {"error": lines[-1].removeprefix("ValueError: ").partition(":")[0]}
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def row_of(name: str, n_rows: int, n_groups: int) -> str:
    """Return a line of the table."""
    two = measure(name, n_rows, 2, False)
    many = measure(name, n_rows, n_groups, False)
    memory = measure(name, n_rows, n_groups, True)
    title = f"`{name.partition(', ')[0]}`{name[len(name.partition(', ')[0]) :]}"
    for part in (two, many, memory):
        if "error" in part:
            return f"| {title} | | | {part['error']} |"
    allowed = 300 * n_rows + 1000 * n_groups
    return (
        f"| {title} | {many['seconds'] / two['seconds']:.1f} "
        f"| {memory['bytes'] / n_rows:.0f} | {memory['bytes'] / allowed:.2f} |"
    )


def table(names: list[str], n_rows: int, n_groups: int) -> list[str]:
    """Return the section of the page, printing its lines as they come."""
    lines = [
        MARK,
        "",
        f"{n_groups:,} groups in {n_rows:,} rows, lists of about 50 items, with",
        "standard errors and degrees of freedom. The time is in units of that of two",
        "groups (must 6); bytes are the peak memory beyond the inputs, also as a share",
        "of what is allowed: 300 bytes per row and 1,000 per group. The curve has 5",
        "thresholds, and the shifts have 20 resamples.",
        "",
        f"Measured {dt.date.today().isoformat()} on the machine named above, with",
        "`python benchmarks/memory.py`.",
        "",
        "| metric | time | bytes per row | of what is allowed |",
        RULE,
    ]
    for name in names:
        lines.append(row_of(name, n_rows, n_groups))
        print(lines[-1], flush=True)
    return [*lines, ""]


def rows_of(lines: list[str]) -> list[str]:
    """Return the rows of the table among these lines."""
    return [line for line in lines if line.startswith("| `")]


def main() -> int:
    """Measure all metrics, or one in this process."""
    if sys.argv[1:2] == ["--one"]:
        name, n_rows, n_groups, traced = sys.argv[2:]
        found = of_process(name, int(n_rows), int(n_groups), traced == "1")
        print(json.dumps(found))
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--groups", type=float, default=1e4)
    parser.add_argument(
        "--write", action="store_true", help="renew the rows of the page"
    )
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    names = options.names or all_names()
    lines = table(names, int(options.rows), int(options.groups))
    if options.write:  # what is said below the rows stays
        page, _, before = DOCS.read_text(encoding="utf-8").partition(MARK)
        before, *later = before.partition("\n## ")
        kept = {line.split("|")[1]: line for line in rows_of(before.splitlines())}
        after = before.partition(RULE)[2].splitlines()[1 + len(kept) :]
        kept |= {line.split("|")[1]: line for line in rows_of(lines)}
        head = lines[: lines.index(RULE) + 1]
        whole = [*head, *(kept[title] for title in sorted(kept)), *after]
        text = "\n".join([page.rstrip(), "", *whole, "".join(later)])
        DOCS.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
