"""Sums become estimates with standard errors, intervals, tests and contrasts."""
