"""Metrics by group, each with its standard errors."""

from ._dissatisfaction import dips
from ._estimate import ConfidenceInterval, Estimate, GroupTest
from ._exposure import exposure, exposure_gap
from ._matched_pair import matched_pair_calibration
from ._matched_pair_curve import MatchedPairCurve, matched_pair_curve
from ._pairwise import pairwise_accuracy, pairwise_exposure, pairwise_preference
from ._result import GroupEstimates
from ._utility import ndcg

__all__ = [
    "ConfidenceInterval",
    "Estimate",
    "GroupEstimates",
    "GroupTest",
    "MatchedPairCurve",
    "dips",
    "exposure",
    "exposure_gap",
    "matched_pair_calibration",
    "matched_pair_curve",
    "ndcg",
    "pairwise_accuracy",
    "pairwise_exposure",
    "pairwise_preference",
]
