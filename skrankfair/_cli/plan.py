"""What an audit of more data would find: its results as pilots."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.power import RequiredSize, largest_distance
from .._inputs.validation import Array
from .._reports.audit import AuditReport
from .._reports.exports import write_text
from .._reports.findings import jsonable

_MATCHED = "matched_pair_calibration"


@dataclass(frozen=True, eq=False)
class AuditPlan:
    """How much data of the kind of a file finds a gap, by metric and group."""

    report: AuditReport
    gap: float
    power: float
    alpha: float
    #: By metric, the sizes, and the gaps that the data find as they are.
    sizes: dict[str, RequiredSize]
    detectable: dict[str, Array]
    #: By metric, the largest distance from fair that there can be.
    largest: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers in a form that JSON can hold."""
        metrics = [
            {
                "metric": name,
                "largest_possible": jsonable(self.largest[name]),
                "groups": [
                    {
                        "group": jsonable(group),
                        "minimum_detectable": jsonable(float(self.detectable[name][i])),
                        "factor": jsonable(float(sizes.factor[i])),
                        "n_clusters": jsonable(float(sizes.n_clusters[i])),
                        "promised": bool(sizes.promised[i]),
                    }
                    for i, group in enumerate(sizes.groups)
                ],
            }
            for name, sizes in self.sizes.items()
        ]
        return {
            "gap": self.gap,
            "power": self.power,
            "alpha": self.alpha,
            "n_clusters": self.report.n_clusters,
            "metrics": metrics,
        }

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str | Path:
        """Return the numbers as JSON, or write them."""
        text = json.dumps(self.to_dict(), indent=2) + "\n"
        return text if path is None else write_text(path, text)

    def __repr__(self) -> str:
        """Return a table for each metric."""
        level = f"level {self.alpha:g}, divided by the number of groups"
        unit = self.report.cluster_unit
        asked = f"To find a gap of {self.gap:g} with power {self.power:g} ({level}):"
        blocks = [f"Pilot: {self.report.counts}\n{asked}"]
        header = ["group", "finds now", "times these data", f"{unit}s in all"]
        for name, sizes in self.sizes.items():
            rows = [
                [
                    fmt.label(group),
                    self._gap_in_words(name, i),
                    fmt.number(sizes.factor[i], 2),
                    fmt.count(sizes.n_clusters[i]),
                ]
                for i, group in enumerate(sizes.groups)
            ]
            blocks.append(f"{name}\n{fmt.text_table(header, rows)}")
            if self.gap > self.largest[name]:
                most = f"{self.largest[name]:g}"
                blocks[-1] += f"\nNo gap of {name} is that large: {most} at most."
        findings = (finding.metric.name for finding in self.report.findings)
        if without := [name for name in findings if name not in self.sizes]:
            blocks.append(f"Without a test to plan: {fmt.some(without)}.")
        return "\n\n".join(blocks)

    def _gap_in_words(self, name: str, group: int) -> str:
        """Return the gap that a group finds, in words if there is no such gap."""
        gap = float(self.detectable[name][group])
        return "no possible gap" if gap > self.largest[name] else fmt.number(gap)


def plan_of(
    report: AuditReport, gap: float, power: float, alpha: float, outcomes: Array
) -> AuditPlan:
    """Return how much data finds a gap; a ValueError if no metric has a test."""
    results = {f.metric.name: f.result for f in report.findings if f.tested}
    if not results:
        raise ValueError("None of the metrics has a test that could find a gap.")
    largest = {name: largest_distance(r) for name, r in results.items()}
    if _MATCHED in largest:  # of two outcomes
        largest[_MATCHED] = float(np.ptp(outcomes))
    return AuditPlan(
        report,
        gap,
        power,
        alpha,
        {name: r.required(gap, power, alpha) for name, r in results.items()},
        {name: r.minimum_detectable(power, alpha) for name, r in results.items()},
        largest,
    )
