"""Tests and comparisons that need more than one estimate."""

from ._compare import compare, compare_independent
from ._marginal_outcome import marginal_outcome_test
from ._monotonicity import monotonicity_test, recommend_metrics
from ._outcome_inequality import outcome_inequality_test
from ._predictive_parity import predictive_parity_test
from ._prefix_test import prefix_test

__all__ = [
    "compare",
    "compare_independent",
    "marginal_outcome_test",
    "monotonicity_test",
    "outcome_inequality_test",
    "predictive_parity_test",
    "prefix_test",
    "recommend_metrics",
]
