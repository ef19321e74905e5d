"""Metrics by group, each with its standard errors."""

from .._estimates.group_estimates import GroupEstimates
from ._calibration_error import calibration_error
from ._calibration_impact import positive_rate_shift, rank_shift
from ._dips import dips, item_dissatisfaction
from ._disparities import (
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds,
    equalized_odds_difference,
    equalized_odds_ratio,
    impact_ratio,
    predictive_parity_difference,
)
from ._expected_advantage import expected_advantage
from ._exposure import exposure, exposure_gap
from ._make_metric import make_metric
from ._matched_pair import matched_pair_calibration
from ._matched_pair_curve import matched_pair_curve
from ._mean_position import mean_position
from ._ndcg import boost_value, ndcg
from ._normalized_discounted import (
    ndkl,
    normalized_discounted_difference,
    normalized_discounted_kl,
    normalized_discounted_ratio,
)
from ._pairwise import auc, pairwise_accuracy, pairwise_exposure, pairwise_preference
from ._rates import (
    accuracy,
    balanced_accuracy,
    brier_score,
    calibration_in_the_large,
    f1,
    false_negative_rate,
    false_positive_rate,
    group_mean,
    log_loss,
    mean_absolute_error,
    mean_squared_error,
    precision,
    selection_rate,
    true_negative_rate,
    true_positive_rate,
)
from ._skew import skew_at_k
from ._statistical_parity import exposure_parity, pairwise_parity
from ._top_k import precision_at_k, recall_at_k, share_at_k

__all__ = [
    "GroupEstimates",
    "accuracy",
    "auc",
    "balanced_accuracy",
    "boost_value",
    "brier_score",
    "calibration_error",
    "calibration_in_the_large",
    "demographic_parity_difference",
    "dips",
    "equal_opportunity_difference",
    "equalized_odds",
    "equalized_odds_difference",
    "equalized_odds_ratio",
    "expected_advantage",
    "exposure",
    "exposure_gap",
    "exposure_parity",
    "f1",
    "false_negative_rate",
    "false_positive_rate",
    "group_mean",
    "impact_ratio",
    "item_dissatisfaction",
    "log_loss",
    "make_metric",
    "matched_pair_calibration",
    "matched_pair_curve",
    "mean_absolute_error",
    "mean_position",
    "mean_squared_error",
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
    "precision",
    "precision_at_k",
    "predictive_parity_difference",
    "rank_shift",
    "recall_at_k",
    "selection_rate",
    "share_at_k",
    "skew_at_k",
    "true_negative_rate",
    "true_positive_rate",
]
