"""Metrics on data beyond memory: files through DuckDB, and frames of Dask and Spark."""

from ._measure import measure

__all__ = ["measure"]
