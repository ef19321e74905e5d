"""The metrics on data beyond memory: files through DuckDB, Dask and Spark."""

from ._measure import measure

__all__ = ["measure"]
