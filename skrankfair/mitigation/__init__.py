"""Mitigations that plug into scikit-learn's Pipelines and searches."""

from ._boosting import pairwise_fairness_objective
from ._group_calibrator import (
    GroupCalibratedClassifier,
    GroupCalibratedRegressor,
    GroupCalibrator,
)
from ._multi_objective import MultiObjectiveCalibrator
from ._pairwise_fair import PairwiseFairClassifier, PairwiseFairRegressor
from ._pairwise_penalty import pairwise_penalty
from ._reranker import FairReranker
from ._thresholds import GroupThresholdClassifier

__all__ = [
    "FairReranker",
    "GroupCalibratedClassifier",
    "GroupCalibratedRegressor",
    "GroupCalibrator",
    "GroupThresholdClassifier",
    "MultiObjectiveCalibrator",
    "PairwiseFairClassifier",
    "PairwiseFairRegressor",
    "pairwise_fairness_objective",
    "pairwise_penalty",
]
