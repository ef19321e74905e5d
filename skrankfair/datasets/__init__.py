"""Data sets, real and simulated, to try metrics of rankings and risk scores on."""

from skrankfair.datasets._bias_by_construction import make_bias_by_construction
from skrankfair.datasets._biased_rankings import make_biased_rankings
from skrankfair.datasets._confounded import make_confounded_queries
from skrankfair.datasets._movielens import fetch_movielens
from skrankfair.datasets._rankings import rankings_to_columns
from skrankfair.datasets._rdatasets import fetch_rdataset
from skrankfair.datasets._underranked import make_underranked_items

__all__ = [
    "fetch_movielens",
    "fetch_rdataset",
    "make_bias_by_construction",
    "make_biased_rankings",
    "make_confounded_queries",
    "make_underranked_items",
    "rankings_to_columns",
]
