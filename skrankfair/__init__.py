"""Fairness of rankings and risk scores, for users of scikit-learn."""

from ._reports.audit import AuditReport, audit
from ._reports.audit_cv import audit_cv
from ._reports.mitigation import MitigationReport, mitigation_report
from .metrics import GroupEstimates

__all__ = [
    "AuditReport",
    "GroupEstimates",
    "MitigationReport",
    "audit",
    "audit_cv",
    "mitigation_report",
]

__version__ = "0.1.0"
