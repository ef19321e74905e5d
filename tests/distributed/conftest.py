"""Tests of Spark run where it and its Java are."""

import importlib.util
import shutil

collect_ignore = []
if importlib.util.find_spec("pyspark") is None or shutil.which("java") is None:
    collect_ignore.append("test_spark.py")
