"""Tests and comparisons that need more than one estimate."""

from ._compare import compare
from ._monotonicity import MonotonicityTest, monotonicity_test
from ._outcome_inequality import OutcomeInequalityTest, outcome_inequality_test
from ._recommend import MetricRecommendation, recommend_metrics

__all__ = [
    "MetricRecommendation",
    "MonotonicityTest",
    "OutcomeInequalityTest",
    "compare",
    "monotonicity_test",
    "outcome_inequality_test",
    "recommend_metrics",
]
