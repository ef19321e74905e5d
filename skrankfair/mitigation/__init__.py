"""Mitigations that plug into scikit-learn's Pipelines and searches."""

from ._boosting import PairwiseFairnessObjective, pairwise_fairness_objective
from ._calibrated import GroupCalibratedClassifier, GroupCalibratedRegressor
from ._group_calibrator import GroupCalibrator
from ._pairwise_fair import PairwiseFairClassifier, PairwiseFairRegressor
from ._thresholds import GroupThresholdClassifier

__all__ = [
    "GroupCalibratedClassifier",
    "GroupCalibratedRegressor",
    "GroupCalibrator",
    "GroupThresholdClassifier",
    "PairwiseFairClassifier",
    "PairwiseFairRegressor",
    "PairwiseFairnessObjective",
    "pairwise_fairness_objective",
]
