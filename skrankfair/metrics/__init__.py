"""Metrics by group, each with its standard errors."""

from ._advantage import (
    normalized_discounted_difference,
    normalized_discounted_kl,
    normalized_discounted_ratio,
)
from ._calibration import calibration_error
from ._dissatisfaction import dips
from ._estimate import ConfidenceInterval, Estimate, GroupTest
from ._expected import expected_advantage
from ._exposure import exposure, exposure_gap
from ._impact import positive_rate_shift
from ._losses import log_loss, squared_error
from ._matched_pair import matched_pair_calibration
from ._matched_pair_curve import MatchedPairCurve, matched_pair_curve
from ._pairwise import pairwise_accuracy, pairwise_exposure, pairwise_preference
from ._parity import exposure_parity, pairwise_parity
from ._rank_shift import rank_shift
from ._result import GroupEstimates
from ._skew import ndkl, skew_at_k
from ._utility import ndcg

__all__ = [
    "ConfidenceInterval",
    "Estimate",
    "GroupEstimates",
    "GroupTest",
    "MatchedPairCurve",
    "calibration_error",
    "dips",
    "expected_advantage",
    "exposure",
    "exposure_gap",
    "exposure_parity",
    "log_loss",
    "matched_pair_calibration",
    "matched_pair_curve",
    "ndcg",
    "ndkl",
    "normalized_discounted_difference",
    "normalized_discounted_kl",
    "normalized_discounted_ratio",
    "pairwise_accuracy",
    "pairwise_exposure",
    "pairwise_parity",
    "pairwise_preference",
    "positive_rate_shift",
    "rank_shift",
    "skew_at_k",
    "squared_error",
]
