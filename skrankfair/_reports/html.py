"""The report of an audit as one HTML file that needs nothing else."""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates import formatting as fmt
from ..display import _style as look
from .findings import MANY_GROUPS, GroupFinding, MetricFinding
from .forest import ForestPlot, Series
from .words import margin_verdict, margin_words, silence

if TYPE_CHECKING:
    import jinja2
    from markupsafe import Markup

    from .audit import AuditReport

_MISSING = 'The HTML report needs jinja2; pip install "skrankfair[report]" brings it.'
_COLORS = {
    "worse": look.WORSE,
    "better": look.BETTER,
    "lower": look.DIFFERENT,
    "higher": look.DIFFERENT,
    "within": look.WITHIN,
    "": look.UNCLEAR,
}
_MINUS = re.compile(r"-(?=\d)")
# If there are many groups, this many are in the overview whatever was found.
_FIRST = 10


def check_report_packages() -> None:
    """Raise an ImportError that says what to install, if something is missing."""
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        raise ImportError(_MISSING) from error


def html_report(report: AuditReport) -> str:
    """Return the report as the text of an HTML file."""
    check_report_packages()
    from markupsafe import Markup

    environment = _environment()
    forest = environment.get_template("forest.svg.jinja")

    def draw(plot: ForestPlot) -> Markup:
        return Markup(forest.render(plot.layout()))  # noqa: S704

    figures = {
        finding.metric.name: draw(_plot(finding))
        for finding in report.findings
        if finding.metric.by_group
    }
    extra = [draw(section.plot) if section.plot else "" for section in report.sections]
    script = environment.get_template("report.js").render()
    page = environment.get_template("report.html.jinja").render(
        script=Markup(script),  # noqa: S704
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
        report=report,
        headline=report.headlines,
        level=f"{100 * report.confidence_level:g}%",
        alpha=f"{1 - report.confidence_level:.3g}",
        sections=[_section(finding) for finding in report.findings],
        tested=[finding for finding in report.findings if finding.tested],
        overview=_overview(report),
        figures=figures,
        extra=list(zip(report.sections, extra, strict=True)),
        version=_version(),
        count=fmt.count,
        margin_verdict=margin_verdict,
        silence=silence,
    )
    return page.rstrip() + "\n"


@cache
def _environment() -> jinja2.Environment:
    """Return the templates with what they need to write numbers."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("skrankfair._reports", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["minus"] = lambda text: _MINUS.sub("\N{MINUS SIGN}", text)
    environment.filters["px"] = lambda number: f"{number:.6g}"
    return environment


def _version() -> str:
    try:
        return version("skrankfair")
    except PackageNotFoundError:
        return ""


def _overview(report: AuditReport) -> list[dict[str, Any]]:
    """Return one row per group, those worse off by most metrics first."""
    tested = [finding for finding in report.findings if finding.compares_groups]
    rows: dict[Any, list[GroupFinding]] = {}
    place: dict[Any, int] = {}
    for finding in tested:
        for row in finding.rows:
            rows.setdefault(row.group, []).append(row)
        for i, row in enumerate(finding.ordered):
            place[row.group] = place.get(row.group, 0) + i
    sides = {
        group: [row.side for row in by_metric] for group, by_metric in rows.items()
    }
    order = sorted(
        rows,
        key=lambda group: (
            sides[group].count("better") - sides[group].count("worse"),
            place[group],
        ),
    )
    if len(order) > MANY_GROUPS:
        # The verdicts say how many groups are left out, and why.
        order = [
            group for i, group in enumerate(order) if i < _FIRST or any(sides[group])
        ]
    return [
        {
            "label": rows[group][0].label,
            "count": report.group_rows[group],
            "cells": [
                _overview_cell(row, finding)
                for row, finding in zip(rows[group], tested, strict=True)
            ],
        }
        for group in order
    ]


def _overview_cell(row: GroupFinding, finding: MetricFinding) -> dict[str, str]:
    unknown = np.isnan(row.difference)
    return {
        "side": row.kind or ("missing" if row.missing else "unsure"),
        "text": row.missing if unknown else finding.signed(row.difference),
        "says": _says(row, finding),
    }


def _says(row: GroupFinding, finding: MetricFinding) -> str:
    """Return the words for the finding on a group."""
    if row.missing:
        return row.missing
    parts = [finding.metric.sides[row.side]] if row.side else []
    if row.within:
        parts.append(f"shown to be {margin_words(finding)}")
    silence = "no difference shown" if finding.tested else ""
    return ", ".join(parts) or silence


def _section(finding: MetricFinding) -> dict[str, Any]:
    """Return what the template shows of a metric."""
    result = finding.result
    epsilon = result.first_pass.get("epsilon")
    edges = result.first_pass.get("engagement_edges")
    return {
        "finding": finding,
        "reference": _reference(finding),
        "epsilon": epsilon is not None,
        "strata": 0 if edges is None else len(edges) - 1,
        "rows": [
            {
                "row": row,
                "estimate": _value(finding, row.estimate),
                "interval": _interval(finding, row),
                "difference": finding.signed(row.difference),
                "difference_interval": _ends(finding, row),
                "support": fmt.count(row.support),
                "pvalue": fmt.pvalue(row.pvalue),
                "corrected": fmt.pvalue(row.pvalue_corrected),
                "epsilon": "" if epsilon is None else _threshold(epsilon[row.group]),
                "says": _says(row, finding),
                "kind": row.kind,
                "verdict": finding.verdict_on(row),
            }
            for row in finding.shown
        ],
    }


def _threshold(epsilon: float) -> str:
    return "–" if np.isnan(epsilon) else f"{epsilon:#.3g}"


def _ends(finding: MetricFinding, row: GroupFinding) -> str:
    if np.isnan(row.difference_low):
        return ""
    low, high = row.difference_low, row.difference_high
    return f"[{finding.signed(low)}, {finding.signed(high)}]"


def _value(finding: MetricFinding, value: float) -> str:
    if not np.isfinite(value):
        return "–"
    if finding.metric.is_change:
        return finding.signed(value) + finding.points
    if finding.metric.share:
        return f"{100 * value:.1f}%"
    return fmt.number(value)


def _interval(finding: MetricFinding, row: GroupFinding) -> str:
    if np.isnan(row.ci_low):
        return ""
    if finding.metric.share:
        return f"[{100 * row.ci_low:.1f}, {100 * row.ci_high:.1f}]"
    return fmt.interval(row.ci_low, row.ci_high)


def _reference(finding: MetricFinding) -> str:
    """Say what the vertical line of the plot is."""
    if finding.against_rest:
        said = "The line marks the value of the rest of the items"
    elif finding.tested:
        fair = _value(finding, finding.result.fair_value or 0.0)
        said = f"The line marks the fair value, {fair.removesuffix('.0000')}"
    else:
        return ""
    return said + (", and the band the margin." if finding.margin is not None else ".")


def _plot(finding: MetricFinding) -> ForestPlot:
    """Return the forest plot of a metric, the worst off on top."""
    rows, metric = finding.shown, finding.metric
    scale = 100.0 if metric.share else 1.0
    names = ("estimate", "ci_low", "ci_high")
    fair_value = finding.result.fair_value
    label = metric.axis or metric.title.lower()
    if metric.is_change:
        label = f"change{', percentage points' if metric.share else ''}"
    elif metric.share and not metric.axis:
        label = f"share of {finding.result.metric.unit}, %"
    if finding.against_rest:
        names = ("difference", "difference_low", "difference_high")
        fair_value, label = 0.0, "percentage points above the rest"
    estimate, low, high = (
        scale * np.array([getattr(row, name) for row in rows]) for name in names
    )
    colors = [_COLORS[row.kind] for row in rows]
    margin = None if finding.margin is None else scale * finding.margin
    return ForestPlot(
        [row.group for row in rows],
        [Series(estimate, low, high, colors)],
        label,
        f"{metric.title} by group; the table beside it has the numbers.",
        line=None if fair_value is None else scale * fair_value,
        margin=margin,
        name=metric.name,
    )
