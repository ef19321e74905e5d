"""The scorers that `get_scorer` knows by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import metrics

# Scores on the scale of the outcomes.
_PROBABILITY = {"response_method": ["predict_proba", "predict"]}

Entry = tuple[Callable[..., Any], dict[str, Any], str | None]

_OF_RANKINGS: dict[str, Entry] = {
    "inter_group_accuracy_ratio": (
        metrics.pairwise_accuracy,
        {"comparison": "inter"},
        "ratio",
    ),
    "intra_group_accuracy_ratio": (
        metrics.pairwise_accuracy,
        {"comparison": "intra"},
        "ratio",
    ),
    "ndcg": (metrics.ndcg, {}, None),
    "neg_calibration_error_difference": (
        metrics.calibration_error,
        _PROBABILITY,
        "difference",
    ),
    "neg_dips": (metrics.dips, {}, "difference"),
    "neg_exposure_gap": (metrics.exposure_gap, {}, "l1"),
    "neg_exposure_parity": (metrics.exposure_parity, {}, "max_abs"),
    "neg_inter_group_accuracy_difference": (
        metrics.pairwise_accuracy,
        {"comparison": "inter"},
        "difference",
    ),
    "neg_intra_group_accuracy_difference": (
        metrics.pairwise_accuracy,
        {"comparison": "intra"},
        "difference",
    ),
    "neg_matched_pair_calibration": (metrics.matched_pair_calibration, {}, "max_abs"),
    "neg_ndkl": (metrics.ndkl, {}, "max_abs"),
    "neg_normalized_discounted_difference": (
        metrics.normalized_discounted_difference,
        {},
        "max_abs",
    ),
    "neg_normalized_discounted_kl": (metrics.normalized_discounted_kl, {}, "max_abs"),
    "neg_normalized_discounted_ratio": (
        metrics.normalized_discounted_ratio,
        {},
        "max_abs",
    ),
    "neg_pairwise_accuracy_difference": (metrics.pairwise_accuracy, {}, "difference"),
    "neg_pairwise_exposure": (metrics.pairwise_exposure, {}, "max_abs"),
    "neg_pairwise_parity": (metrics.pairwise_parity, {}, "max_abs"),
    "neg_positive_rate_shift": (
        metrics.positive_rate_shift,
        {"threshold": 0.5, **_PROBABILITY},
        "max_abs",
    ),
    "neg_rank_shift": (metrics.rank_shift, {}, "max_abs"),
    "neg_skew_at_k": (metrics.skew_at_k, {"average": "representation"}, "max_abs"),
    "pairwise_accuracy_ratio": (metrics.pairwise_accuracy, {}, "ratio"),
}

# Rates are of decisions, which only `predict` makes.
_DECISION = {"response_method": "predict"}

_OF_DECISIONS: dict[str, Entry] = {
    "equalized_odds_ratio": (metrics.equalized_odds, _DECISION, "ratio"),
    "impact_ratio": (metrics.selection_rate, _DECISION, "ratio"),
    **{
        f"neg_{name}_difference": (metric, _DECISION, "difference")
        for name, metric in {
            "accuracy": metrics.accuracy,
            "balanced_accuracy": metrics.balanced_accuracy,
            "demographic_parity": metrics.selection_rate,
            "equal_opportunity": metrics.true_positive_rate,
            "equalized_odds": metrics.equalized_odds,
            "f1": metrics.f1,
            "false_negative_rate": metrics.false_negative_rate,
            "false_positive_rate": metrics.false_positive_rate,
            "predictive_parity": metrics.precision,
            "true_negative_rate": metrics.true_negative_rate,
        }.items()
    },
}

_OF_TOP_K = {
    metric.__name__: metric
    for metric in (metrics.precision_at_k, metrics.recall_at_k, metrics.share_at_k)
}

_LOSSES = {
    "brier_score": metrics.brier_score,
    "log_loss": metrics.log_loss,
    "mean_absolute_error": metrics.mean_absolute_error,
    "mean_squared_error": metrics.mean_squared_error,
}

_OF_WORST: dict[str, Entry] = {
    "worst_group_inter_group_accuracy": (
        metrics.pairwise_accuracy,
        {"comparison": "inter"},
        "worst",
    ),
    "worst_group_intra_group_accuracy": (
        metrics.pairwise_accuracy,
        {"comparison": "intra"},
        "worst",
    ),
    "worst_group_auc": (metrics.auc, {}, "worst"),
    "worst_group_ndcg": (metrics.ndcg, {}, "worst"),
    **{
        f"worst_group_{name}": (metric, {}, "worst")
        for name, metric in _OF_TOP_K.items()
        if name != "share_at_k"
    },
    "worst_group_pairwise_accuracy": (metrics.pairwise_accuracy, {}, "worst"),
    **{
        f"worst_group_{metric.__name__}": (metric, _DECISION, "worst")
        for metric in (
            metrics.accuracy,
            metrics.balanced_accuracy,
            metrics.f1,
            metrics.precision,
            metrics.selection_rate,
            metrics.true_negative_rate,
            metrics.true_positive_rate,
        )
    },
    # Named as in scikit-learn, where a loss that is negated says so.
    **{
        f"worst_group_neg_{metric.__name__}": (metric, _DECISION, "worst")
        for metric in (metrics.false_negative_rate, metrics.false_positive_rate)
    },
    **{
        f"worst_group_neg_{name}": (metric, _PROBABILITY, "worst")
        for name, metric in _LOSSES.items()
    },
    "worst_group_neg_dips": (metrics.dips, {}, "worst"),
    "worst_group_neg_calibration_error": (
        metrics.calibration_error,
        _PROBABILITY,
        "worst",
    ),
}

#: Every scorer by name: metric, its options, and how groups become one number.
SCORERS: dict[str, Entry] = {
    **_OF_RANKINGS,
    **_OF_DECISIONS,
    "neg_auc_difference": (metrics.auc, {}, "difference"),
    "neg_cross_group_auc_difference": (
        metrics.auc,
        {"comparison": "inter"},
        "difference",
    ),
    "neg_ndcg_difference": (metrics.ndcg, {}, "difference"),
    **{
        f"neg_{name}_difference": (metric, {}, "difference")
        for name, metric in _OF_TOP_K.items()
    },
    **{
        f"neg_{name}_difference": (metric, _PROBABILITY, "difference")
        for name, metric in _LOSSES.items()
    },
    **_OF_WORST,
}
