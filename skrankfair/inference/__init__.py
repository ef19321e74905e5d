"""Tests and comparisons that need more than one estimate."""

from ._compare import compare, compare_independent
from ._marginal_outcome import MarginalOutcomeTest, marginal_outcome_test
from ._monotonicity import MonotonicityTest, monotonicity_test
from ._outcome_inequality import OutcomeInequalityTest, outcome_inequality_test
from ._predictive_parity import PredictiveParityTest, predictive_parity_test
from ._recommend import MetricRecommendation, recommend_metrics

__all__ = [
    "MarginalOutcomeTest",
    "MetricRecommendation",
    "MonotonicityTest",
    "OutcomeInequalityTest",
    "PredictiveParityTest",
    "compare",
    "compare_independent",
    "marginal_outcome_test",
    "monotonicity_test",
    "outcome_inequality_test",
    "predictive_parity_test",
    "recommend_metrics",
]
