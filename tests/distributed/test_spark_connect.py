"""Partitions measured through Spark Connect are the whole measured in memory.

A process has either a session of Connect or a plain one, so this has one of its own. It
runs where Java is found and ``pip install "pyspark[connect]"`` has been said.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = """
from pyspark.sql import SparkSession
from skrankfair.distributed import measure
from tests.distributed.logs import METRICS, WHO, assert_same, click_log

session = SparkSession.builder.remote("local[2]").getOrCreate()
log = click_log()
log.to_parquet("log.parquet")
table = session.read.parquet("log.parquet")
assert "connect" in type(table).__module__
metrics = {name: METRICS[name] for name in ("inter", "dips", "brier")}
results = measure(table, metrics, n_partitions=3, **WHO)
assert_same(results, measure(log, metrics, **WHO))
try:
    measure(table, "dips", **WHO | {"cluster": "s"})
except ValueError as error:
    print(error)
session.stop()
"""


def test_is_the_whole(tmp_path):
    environment = {
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CODE)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | environment,
        check=False,
    )
    assert "s must be constant within a query" in run.stdout, run.stderr
