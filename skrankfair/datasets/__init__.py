"""Data sets, real and simulated, to try metrics of rankings and risk scores on."""

from skrankfair.datasets._fetch import fetch_movielens, fetch_rdataset
from skrankfair.datasets._make import (
    make_bias_by_construction,
    make_biased_rankings,
    make_confounded_queries,
    make_underranked_items,
    rankings_to_columns,
)

__all__ = [
    "fetch_movielens",
    "fetch_rdataset",
    "make_bias_by_construction",
    "make_biased_rankings",
    "make_confounded_queries",
    "make_underranked_items",
    "rankings_to_columns",
]
