"""Metrics as scikit-learn scorers, on columns of X by name or on metadata."""

from ._scorer import get_scorer, get_scorer_names, make_fairness_scorer, with_errors

__all__ = [
    "get_scorer",
    "get_scorer_names",
    "make_fairness_scorer",
    "with_errors",
]
