"""The table of the scorers that `get_scorer` knows by name.

Two rules make most of them from a metric: ``neg_NAME_difference`` is the largest minus
the smallest group, and ``worst_group_NAME`` the group that is worst off, which is
``worst_group_neg_NAME`` where low values are better. A third makes ``neg_NAME`` of a
metric that is itself a distance from parity. The others are listed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import metrics
from ..metrics._disparities import DISPARITIES

Entry = tuple[Callable[..., Any], dict[str, Any], str | None]

# Rates need decisions, which only `predict` makes.
_DECISION = {"response_method": "predict"}
_INTER, _INTRA = {"comparison": "inter"}, {"comparison": "intra"}

#: Metrics of which high values are better for a group.
_GAINS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "accuracy": (metrics.accuracy, _DECISION),
    "auc": (metrics.auc, {}),
    "balanced_accuracy": (metrics.balanced_accuracy, _DECISION),
    "f1": (metrics.f1, _DECISION),
    "inter_group_accuracy": (metrics.pairwise_accuracy, _INTER),
    "intra_group_accuracy": (metrics.pairwise_accuracy, _INTRA),
    "ndcg": (metrics.ndcg, {}),
    "pairwise_accuracy": (metrics.pairwise_accuracy, {}),
    "precision": (metrics.precision, _DECISION),
    "precision_at_k": (metrics.precision_at_k, {}),
    "recall_at_k": (metrics.recall_at_k, {}),
    "selection_rate": (metrics.selection_rate, _DECISION),
    "true_negative_rate": (metrics.true_negative_rate, _DECISION),
    "true_positive_rate": (metrics.true_positive_rate, _DECISION),
}
#: Metrics of which low values are better for a group.
_LOSSES: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "brier_score": (metrics.brier_score, {}),
    "calibration_error": (metrics.calibration_error, {}),
    "dips": (metrics.dips, {}),
    "false_negative_rate": (metrics.false_negative_rate, _DECISION),
    "false_positive_rate": (metrics.false_positive_rate, _DECISION),
    "log_loss": (metrics.log_loss, {}),
    "mean_absolute_error": (metrics.mean_absolute_error, {}),
    "mean_position": (metrics.mean_position, {}),
    "mean_squared_error": (metrics.mean_squared_error, {}),
}
#: Metrics without a better end, so that there is no worst group.
_NEUTRAL: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "calibration_in_the_large": (metrics.calibration_in_the_large, {}),
    "cross_group_auc": (metrics.auc, _INTER),
    "share_at_k": (metrics.share_at_k, {}),
}
# Their differences have names of their own, in `DISPARITIES` and below.
_NAMED = ("dips", "precision", "selection_rate", "true_positive_rate")

#: Metrics that are distances from parity, with their options.
_DISTANCES: dict[Callable[..., Any], dict[str, Any]] = {
    metrics.exposure_parity: {},
    metrics.matched_pair_calibration: {},
    metrics.ndkl: {},
    metrics.normalized_discounted_difference: {},
    metrics.normalized_discounted_kl: {},
    metrics.normalized_discounted_ratio: {},
    metrics.pairwise_exposure: {},
    metrics.pairwise_parity: {},
    metrics.positive_rate_shift: {"threshold": 0.5},
    metrics.rank_shift: {},
    metrics.skew_at_k: {"average": "representation"},
}

#: Every scorer by name: metric, its options, and how groups become one number.
SCORERS: dict[str, Entry] = {
    **{
        f"neg_{name}_difference": (metric, options, "difference")
        for name, (metric, options) in (_GAINS | _LOSSES | _NEUTRAL).items()
        if name not in _NAMED
    },
    **{
        f"worst_group_{name}": (metric, options, "worst")
        for name, (metric, options) in _GAINS.items()
    },
    **{
        f"worst_group_neg_{name}": (metric, options, "worst")
        for name, (metric, options) in _LOSSES.items()
    },
    **{
        f"neg_{metric.__name__}": (metric, options, "max_abs")
        for metric, options in _DISTANCES.items()
    },
    **{
        name if kind == "ratio" else f"neg_{name}": (metric, _DECISION, kind)
        for name, (metric, kind) in DISPARITIES.items()
    },
    "inter_group_accuracy_ratio": (metrics.pairwise_accuracy, _INTER, "ratio"),
    "intra_group_accuracy_ratio": (metrics.pairwise_accuracy, _INTRA, "ratio"),
    "ndcg": (metrics.ndcg, {}, None),
    "neg_dips": (metrics.dips, {}, "difference"),
    "neg_exposure_gap": (metrics.exposure_gap, {}, "l1"),
    "pairwise_accuracy_ratio": (metrics.pairwise_accuracy, {}, "ratio"),
}
