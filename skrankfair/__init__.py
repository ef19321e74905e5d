"""Fairness of rankings and risk scores, for users of scikit-learn."""

from ._audit import AuditReport, audit
from .metrics import GroupEstimates

__all__ = ["AuditReport", "GroupEstimates", "audit"]

__version__ = "0.1.0"
