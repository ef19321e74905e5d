"""The metrics of an audit of decisions."""

from __future__ import annotations

from ..metrics import (
    false_positive_rate,
    precision,
    selection_rate,
    true_positive_rate,
)
from .audit_metric import DECISIONS, EQUAL_SCORES, MISTAKES, PLACES, AuditMetric

OF_DECISIONS = (
    AuditMetric(
        name="selection_rate",
        estimates=selection_rate,
        title="Selection rate",
        short="Selected",
        measures="How often is the decision 1, whatever the outcomes?",
        reading=(
            "Demographic parity is the same share for the group and for all others; "
            "unlike outcomes can be a reason for unlike rates."
        ),
        low="selected less often",
        high="selected more often",
        worse="low",
        worse_if_low="high",
        merit=False,
        question=PLACES,
        tasks=DECISIONS,
        of_rows=True,
    ),
    AuditMetric(
        name="true_positive_rate",
        estimates=true_positive_rate,
        title="True positive rate",
        short="TPR",
        measures="Of those with the outcome 1, how many have the decision 1?",
        reading=(
            "Equal opportunity is the same share for the group and for all others; "
            "equalized odds asks it of the false positive rate too."
        ),
        low="selected less often among those with the outcome",
        high="selected more often among those with the outcome",
        worse="low",
        worse_if_low="high",
        question=MISTAKES,
        tasks=DECISIONS,
        of_rows=True,
        binary_only=True,
    ),
    AuditMetric(
        name="false_positive_rate",
        estimates=false_positive_rate,
        title="False positive rate",
        short="FPR",
        measures="Of those with the outcome 0, how many have the decision 1?",
        reading="Equalized odds is the same share for the group and for all others.",
        low="selected less often among those without the outcome",
        high="selected more often among those without the outcome",
        worse="low",
        worse_if_low="high",
        question=MISTAKES,
        tasks=DECISIONS,
        of_rows=True,
        binary_only=True,
    ),
    AuditMetric(
        name="precision",
        estimates=precision,
        title="Precision",
        short="Precision",
        measures="Of those with the decision 1, how many have the outcome 1?",
        reading=(
            "Predictive parity is the same share for the group and for all others; a "
            "group with a higher share had to clear a higher bar."
        ),
        low="selected with the outcome less often",
        high="selected with the outcome more often",
        worse="high",
        worse_if_low="low",
        question=EQUAL_SCORES,
        tasks=DECISIONS,
        of_rows=True,
        binary_only=True,
    ),
)
