"""A log and its results. Spark is tested where Java is, Connect where gRPC is too."""

import importlib.util
import shutil

import pytest

from skrankfair.distributed import measure

from .logs import METRICS, WHO, click_log

collect_ignore = []
spark = importlib.util.find_spec("pyspark") is not None and shutil.which("java")
if not spark:
    collect_ignore.append("test_spark.py")
if not (spark and importlib.util.find_spec("grpc")):
    collect_ignore.append("test_spark_connect.py")


@pytest.fixture(scope="session", name="frame")
def _frame():
    return click_log()


@pytest.fixture(scope="session", name="whole")
def _whole(frame):
    return measure(frame, METRICS, **WHO)
