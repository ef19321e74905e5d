"""Fairness of rankings and risk scores, for users of scikit-learn."""

from ._audit import AuditReport, audit
from ._audit_cv import audit_cv
from .metrics import GroupEstimates

__all__ = ["AuditReport", "GroupEstimates", "audit", "audit_cv"]

__version__ = "0.1.0"
