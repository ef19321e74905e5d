"""The metrics on data beyond memory: files through DuckDB, and Dask."""

from ._measure import measure

__all__ = ["measure"]
