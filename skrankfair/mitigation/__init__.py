"""Mitigations that plug into scikit-learn's Pipelines and searches."""

from ._pairwise_fair import PairwiseFairClassifier, PairwiseFairRegressor

__all__ = ["PairwiseFairClassifier", "PairwiseFairRegressor"]
