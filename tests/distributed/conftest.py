"""Tests of Spark run where it and its Java are, those of Connect with gRPC too."""

import importlib.util
import shutil

collect_ignore = []
spark = importlib.util.find_spec("pyspark") is not None and shutil.which("java")
if not spark:
    collect_ignore.append("test_spark.py")
if not (spark and importlib.util.find_spec("grpc")):
    collect_ignore.append("test_spark_connect.py")
