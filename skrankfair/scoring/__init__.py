"""Metrics as scikit-learn scorers, on columns of X by name or on metadata."""

from ._memory import FairnessScore
from ._scorer import (
    FairnessScorer,
    get_scorer,
    get_scorer_names,
    make_fairness_scorer,
)

__all__ = [
    "FairnessScore",
    "FairnessScorer",
    "get_scorer",
    "get_scorer_names",
    "make_fairness_scorer",
]
