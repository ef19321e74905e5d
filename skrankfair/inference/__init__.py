"""Tests and comparisons that need more than one estimate."""

from ._compare import compare
from ._marginal import MarginalOutcomeTest
from ._marginal_test import marginal_outcome_test
from ._parity import PredictiveParityTest
from ._parity_test import predictive_parity_test

__all__ = [
    "MarginalOutcomeTest",
    "PredictiveParityTest",
    "compare",
    "marginal_outcome_test",
    "predictive_parity_test",
]
