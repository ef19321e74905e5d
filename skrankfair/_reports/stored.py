"""An audit as JSON: numbers and verdicts for readers, and the report to load again.

The document is that of `AuditReport.to_dict`, and ``stored`` within it: results, each
in the schema of `GroupEstimates.to_json`, and the other parts of the report. The rows
of the findings are read from the numbers that everybody reads. They were computed with
the tables of clusters, which are not stored.
"""

from __future__ import annotations

import json
import math
from dataclasses import fields
from typing import Any

from .._estimates import storage
from ..metrics import GroupEstimates
from .audit import AuditReport
from .catalog import catalog
from .findings import GroupFinding
from .sections import ReportSection

SCHEMA = "skrankfair.AuditReport"
# Fields that are stored in another form, or not at all.
_OTHERS = {"results", "made", "recorded", "rates"}
# Of a row of the findings, what is no number.
_WORDS = {"side", "missing", "within"}


def report_to_text(report: AuditReport) -> str:
    """Return the report as JSON."""
    numbers = json.dumps(
        report.to_dict(), indent=2, ensure_ascii=False, allow_nan=False
    )
    try:
        if type(report) is not AuditReport:
            raise ValueError("of changes; store the two audits.")
        parts = {
            field.name: getattr(report, field.name)
            for field in fields(AuditReport)
            if field.name not in _OTHERS
        }
        kept = json.loads(storage.to_text(parts, SCHEMA))
        kept["results"] = {
            name: json.loads(result.to_json())
            for name, result in report.results.items()
        }
        if report.rates is not None:
            kept["rates"] = json.loads(report.rates.to_json())
    except ValueError as error:  # the numbers are there nevertheless
        kept = {"refused": str(error)}
    return f'{numbers[:-2]},\n  "stored": {json.dumps(kept)}\n}}\n'


def report_of_text(text: Any) -> AuditReport:
    """Return the report that is stored in JSON."""
    document = storage.read_json(text)
    kept: Any = document.get("stored") if isinstance(document, dict) else None
    if isinstance(kept, dict) and "refused" in kept:
        raise ValueError(f"text has the numbers of a report only: {kept['refused']}")
    storage.check_schema(kept, SCHEMA)
    with storage.understood():
        names = {field.name for field in fields(AuditReport)} - _OTHERS
        parts = {name: storage.decoded(kept[name]) for name in names & set(kept)}
        results = {
            name: GroupEstimates.from_json(json.dumps(result))
            for name, result in kept["results"].items()
        }
        if "rates" in kept:
            parts["rates"] = GroupEstimates.from_json(json.dumps(kept["rates"]))
        report = AuditReport(results=results, **parts)
        recorded = {
            finding["metric"]: (
                report.settings_of(finding["metric"]),
                _rows(finding["groups"], results[finding["metric"]]),
            )
            for finding in document["metrics"]
        }
        report = AuditReport(results=results, recorded=recorded, **parts)
        known = results.keys()
        if not (known <= catalog().keys() and known == recorded.keys()):
            raise TypeError("unknown metrics, or others than the numbers")
        if not all(isinstance(section, ReportSection) for section in report.sections):
            raise TypeError("sections that are none")
        repr(report), report.to_dict()  # as reports do
    return report


def _rows(
    written: list[dict[str, Any]], result: GroupEstimates
) -> tuple[GroupFinding, ...]:
    """Return the findings by group; NaN and infinite numbers are no JSON."""
    names = [field.name for field in fields(GroupFinding) if field.name != "group"]
    rows = []
    for group, row in zip(result.groups, written, strict=True):
        values = {name: row[name] for name in names}
        for name in set(names) - _WORDS:
            values[name] = math.nan if row[name] is None else float(row[name])
        rows.append(GroupFinding(group=group, **values))
    return tuple(rows)
