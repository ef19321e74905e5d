"""Tests and comparisons that need more than one estimate."""

from ._compare import compare
from ._outcome_inequality import OutcomeInequalityTest, outcome_inequality_test

__all__ = ["OutcomeInequalityTest", "compare", "outcome_inequality_test"]
