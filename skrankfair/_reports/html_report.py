"""The report of an audit as one HTML file that needs nothing else."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates import formatting as fmt
from ..display import GroupEstimatesDisplay
from .findings import GroupFinding, MetricFinding, headline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .audit import AuditReport

_MISSING = (
    'The HTML report needs jinja2 and matplotlib; pip install "skrankfair[report]" '
    "brings them."
)
_WIDTH, _ROW_HEIGHT, _MARGIN_HEIGHT = 5.2, 0.29, 0.75
_STYLE = {
    "svg.fonttype": "none",  # text stays text: small, and in the fonts of the page
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "font.size": 10.0,
}
_MINUS = re.compile(r"-(?=\d)")


@dataclass(frozen=True)
class ReportSection:
    """One more section of a report: text, a plot and a table.

    Attributes
    ----------
    title : str
    paragraphs : tuple of str
    header : tuple of str
        Of the table; the first column names the rows.
    rows : tuple of tuple of str
    draw : callable or None, default=None
        Draws the plot on the axes it is given.
    n_lines : int
        Height of the plot, in lines of a forest plot.
    alt : str
        What the plot shows, for readers who cannot see it.
    """

    title: str
    paragraphs: tuple[str, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    draw: Callable[[Axes], object] | None = None
    n_lines: int = 0
    alt: str = ""


def check_report_packages() -> None:
    """Raise an ImportError that says what to install, if something is missing."""
    try:
        import jinja2  # noqa: F401
        import matplotlib as mpl  # noqa: F401
    except ImportError as error:
        raise ImportError(_MISSING) from error


def html_report(report: AuditReport) -> str:
    """Return the report as the text of an HTML file.

    Raises
    ------
    ImportError
        Without jinja2 or matplotlib.
    """
    check_report_packages()
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("skrankfair._reports", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["minus"] = lambda text: _MINUS.sub("\N{MINUS SIGN}", text)
    figures = {
        f.metric.name: Markup(_finding_svg(f))  # noqa: S704
        for f in report.findings
        if f.metric.name != "ndcg"
    }
    extra = [
        Markup(_svg(section.draw, f"section-{i}", section.n_lines, section.alt))  # noqa: S704
        if section.draw
        else ""
        for i, section in enumerate(report.sections)
    ]
    page = environment.get_template("report.html.jinja").render(
        report=report,
        headline=headline(report.findings),
        level=f"{100 * report.confidence_level:g}%",
        alpha=f"{1 - report.confidence_level:.3g}",
        sections=[_section(finding) for finding in report.findings],
        tested=[finding for finding in report.findings if finding.tested],
        overview=_overview(report),
        figures=figures,
        extra=list(zip(report.sections, extra, strict=True)),
        version=_version(),
        count=fmt.count,
    )
    return page.rstrip() + "\n"


def _version() -> str:
    try:
        return version("skrankfair")
    except PackageNotFoundError:
        return ""


def _overview(report: AuditReport) -> list[dict[str, Any]]:
    """Return one row per group, those worse off by most metrics first."""
    tested = [finding for finding in report.findings if finding.tested]
    rows: dict[Any, list[GroupFinding]] = {}
    place: dict[Any, int] = {}
    for finding in tested:
        for row in finding.rows:
            rows.setdefault(row.group, []).append(row)
        for i, row in enumerate(finding.ordered):
            place[row.group] = place.get(row.group, 0) + i
    sides = {
        group: [row.side for row, f in zip(found, tested, strict=True)]
        for group, found in rows.items()
    }
    order = sorted(
        rows,
        key=lambda group: (
            sides[group].count("better") - sides[group].count("worse"),
            place[group],
        ),
    )
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
        "side": row.side or ("missing" if row.missing else "unsure"),
        "text": row.missing if unknown else finding.signed(row.difference),
        "says": _says(row, finding),
    }


def _says(row: GroupFinding, finding: MetricFinding) -> str:
    """Return what is found of a group, in words."""
    if row.missing:
        return row.missing
    if row.side:
        worse = row.side == "worse"
        return finding.metric.detriment if worse else finding.metric.benefit
    return "no difference shown" if finding.tested else ""


def _section(finding: MetricFinding) -> dict[str, Any]:
    """Return what the template shows of a metric."""
    result = finding.result
    epsilon = result.first_pass.get("epsilon")
    edges = result.first_pass.get("engagement_edges")
    return {
        "finding": finding,
        "metric": finding.metric,
        "kind": "worse" if finding.worse else "better" if finding.better else "none",
        "unit": result.metric.unit,
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
            }
            for row in finding.ordered
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
    if np.isnan(value):
        return "–"
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
        return "The line is the rest of the items."
    if not finding.tested:
        return ""
    fair = _value(finding, finding.result.fair_value or 0.0)
    return f"The line is the fair value, {fair.removesuffix('.0000')}."


def _finding_svg(finding: MetricFinding) -> str:
    """Return the forest plot of a metric, the worst off on top."""
    rows, metric = finding.ordered, finding.metric
    scale = 100.0 if metric.share else 1.0
    names = ("estimate", "ci_low", "ci_high")
    fair_value = finding.result.fair_value
    label = "share of pairs, %" if metric.share else "difference of outcomes"
    if finding.against_rest:
        names = ("difference", "difference_low", "difference_high")
        fair_value, label = 0.0, "percentage points above the rest"
    columns = [scale * np.array([getattr(row, name) for row in rows]) for name in names]
    display = GroupEstimatesDisplay(
        [row.group for row in rows],
        *columns,
        # The words and the colours of the table, from the same corrected p-values.
        pvalue=[0.0 if row.side else 1.0 for row in rows],
        fair_value=None if fair_value is None else scale * fair_value,
        worse="above" if metric.worse == "high" else "below",
    )

    def draw(ax: Axes) -> None:
        display.plot(ax=ax, sort=None, xlabel=label)
        if display.legend_ is not None:
            display.legend_.remove()

    alt = f"{metric.title} by group; the table beside it has the numbers."
    return _svg(draw, f"plot-{metric.name}", len(rows), alt)


def _svg(draw: Callable[[Axes], object], prefix: str, n_lines: int, alt: str) -> str:
    """Return a plot as an SVG element whose ids start with the prefix."""
    import warnings

    import matplotlib.style
    from matplotlib.figure import Figure

    height = _MARGIN_HEIGHT + _ROW_HEIGHT * max(n_lines, 2)
    written = io.StringIO()
    with (
        matplotlib.style.context(["default", {**_STYLE, "svg.hashsalt": prefix}]),
        warnings.catch_warnings(),
    ):
        # The fonts of the page have signs that matplotlib's own has not.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        draw(figure.subplots())
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(written, format="svg", metadata=nothing)
    return _embedded(written.getvalue(), prefix, alt)


def _embedded(svg: str, prefix: str, alt: str) -> str:
    """Return the element of an SVG file, to stand in a page with others."""
    from markupsafe import escape

    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # Only within tags: the text of labels stays as it is.
    svg = re.sub(r"<[^<>]+>", lambda tag: _prefixed(tag[0], prefix), svg)
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(alt)}"', 1)


def _prefixed(tag: str, prefix: str) -> str:
    """Return a tag whose ids, and references to them, start with the prefix."""
    tag = re.sub(r'\b(id=")', rf"\g<1>{prefix}-", tag)
    return re.sub(r'((?:href="|url\()#)', rf"\g<1>{prefix}-", tag)
