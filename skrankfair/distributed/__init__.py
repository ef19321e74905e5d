"""The metrics on data beyond memory: files through DuckDB, Dask and Spark."""

from ._measure import measure
from ._ranking_audit import audit

__all__ = ["audit", "measure"]
