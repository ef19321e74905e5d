"""The report of an audit as one HTML file that needs nothing else.

The forest plots in it are written as SVG and not drawn by matplotlib, whose SVG depends
on settings of the whole process that no figure can have for itself: without
``svg.hashsalt`` each file has other ids, and ``svg.fonttype`` decides whether labels
stay text. Here threads that write reports share nothing, what the caller has set does
not matter, and equal reports are equal bytes, with labels in the reader's font.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from base64 import b64encode
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimates import formatting as fmt
from .._estimates.storage import stored
from .._inputs.validation import Array
from ..display import _style as look
from .catalog import table
from .findings import (
    CHANGES,
    CORRECTION_NAMES,
    DIFFERENCE,
    FIRST_SHOWN,
    MANY_GROUPS,
    VALUE,
    VERDICTS,
    GroupFinding,
    MetricFinding,
)

if TYPE_CHECKING:
    import jinja2

    from .audit import AuditReport

_COLORS = {
    "worse": look.WORSE,
    "better": look.BETTER,
    "lower": look.DIFFERENT,
    "higher": look.DIFFERENT,
    "within": look.WITHIN,
    "": look.UNCLEAR,
}
_MINUS = re.compile(r"(?<!\w)-(?=\d)")
_WIDTH, _ROW, _TOP, _BOTTOM, _FONT = 400.0, 22.0, 8.0, 44.0, 11.0
_WIDEST_LABEL = 0.5 * _WIDTH


def check_report_packages() -> None:
    """Raise an ImportError that says what to install, if something is missing."""
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        brings = 'pip install "skrankfair[report]" brings it.'
        raise ImportError(f"The HTML report needs jinja2; {brings}") from error


def html_report(report: AuditReport) -> str:
    """Return the report as the text of an HTML file."""
    check_report_packages()
    from markupsafe import Markup

    environment = _environment()
    forest = environment.get_template("forest.svg.jinja")
    script = environment.get_template("report.js").render()
    tested = [finding for finding in report.findings if finding.tested]
    compared = [finding for finding in tested if finding.metric.by_group]
    page = environment.get_template("report.html.jinja").render(
        script=Markup(script),  # noqa: S704
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
        draw=lambda plot: Markup(forest.render(plot.layout())),  # noqa: S704
        report=report,
        level=f"{100 * report.confidence_level:g}%",
        alpha=f"{1 - report.confidence_level:.3g}",
        tested=tested,
        compared=compared,
        what=table()["texts"][report.texts]["overview"],
        overview=_overview(compared),
        sides=CHANGES if report.texts == "change" else VERDICTS,
        correction=CORRECTION_NAMES[report.correction],
        version=sys.modules[__name__.partition(".")[0]].__version__,
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
    environment.globals |= {
        "count": fmt.count,
        "pvalue": fmt.pvalue,
        "value": _value,
        "interval": _interval,
        "says": _says,
        "plot_of": _plot,
        "look": look,
        "width": _WIDTH,
        "top": _TOP,
        "font_size": _FONT,
    }
    return environment


def _overview(tested: list[MetricFinding]) -> list[list[GroupFinding]]:
    """Return a row by metric for each group, those worse off by most metrics first."""
    rows: dict[Hashable, list[GroupFinding]] = {}
    rank_sum = Counter[Hashable]()
    for finding in tested:
        for row in finding.rows:
            rows.setdefault(row.group, []).append(row)
        rank_sum.update({row.group: i for i, row in enumerate(finding.ordered)})

    def rank(group: Hashable) -> tuple[int, int]:
        sides = [row.side for row in rows[group]]
        return sides.count("better") - sides.count("worse"), rank_sum[group]

    ordered = [rows[group] for group in sorted(rows, key=rank)]
    # The verdicts say how many groups are left out, and why.
    first = FIRST_SHOWN if len(ordered) > MANY_GROUPS else len(ordered)
    rest = [group for group in ordered[first:] if any(row.side for row in group)]
    return ordered[:first] + rest


def _says(finding: MetricFinding, row: GroupFinding) -> str:
    """Return the words for the finding on a group."""
    if row.missing:
        return row.missing
    what = "change" if finding.metric.is_change else "difference"
    within = f"shown to be {finding.margin_words}" if row.within else ""
    said = filter(None, (finding.metric.sides.get(row.side), within))
    return ", ".join(said) or (f"no {what} shown" if finding.tested else "")


def _value(finding: MetricFinding, value: float) -> str:
    if not np.isfinite(value):
        return "–"
    if finding.metric.is_change:
        return finding.gap_text(value)
    if finding.metric.share:
        return f"{100 * value:.1f}%"
    return fmt.number(value)


def _interval(finding: MetricFinding, row: GroupFinding) -> str:
    if np.isnan(row.ci_low):
        return ""
    if finding.metric.share:
        return f"[{100 * row.ci_low:.1f}, {100 * row.ci_high:.1f}]"
    return fmt.interval(row.ci_low, row.ci_high)


def _plot(finding: MetricFinding) -> ForestPlot:
    """Return the forest plot of a metric, the worst off on top."""
    rows, metric = finding.shown, finding.metric
    scale = 100.0 if metric.share else 1.0
    names = VALUE
    fair_value = finding.result.fair_value
    label = metric.axis or metric.title.lower()
    if metric.is_change:
        label = f"change{', percentage points' if metric.share else ''}"
    elif metric.share and not metric.axis:
        label = f"share of {finding.result.metric.unit}, %"
    if finding.against_rest:
        names, fair_value = DIFFERENCE, 0.0
        label = f"percentage points above {finding.compared_with}"
    elif finding.compared_with:
        names = DIFFERENCE
        label = f"{label}, without {finding.compared_with}"
    estimate, low, high = (
        scale * np.array([getattr(row, name) for row in rows]) for name in names
    )
    if finding.against_rest:  # a reference does not differ from itself
        same = [row.group in finding.references.values() for row in rows]
        estimate = np.where(same, 0.0, estimate)
    colors = [_COLORS[row.kind] for row in rows]
    margin = None if finding.margin is None else scale * finding.margin
    return ForestPlot(
        [row.group for row in rows],
        *(estimate, low, high, colors),
        label,
        f"{metric.title} by group; the table beside it has the numbers.",
        line=None if fair_value is None else scale * fair_value,
        margin=margin,
        name=metric.name,
    )


@stored("ForestPlot")
@dataclass(frozen=True)
class ForestPlot:
    """Points with intervals, one row per group, from the top down."""

    labels: Sequence[Hashable]  # sequence of hashable, length R
    #: Shape (R,). NaN where there is none.
    estimate: Array
    low: Array
    high: Array
    colors: Sequence[str]  # sequence of str, length R
    xlabel: str
    alt: str  # what the plot shows, for readers who cannot see it
    line: float | None = None  # where the vertical line is
    margin: float | None = None  # how far a band reaches to both sides of it
    name: str = ""  # by which a table links to the rows

    def layout(self) -> dict[str, Any]:
        """Return where everything is, in pixels, for the template."""
        texts = [_shortened(fmt.label(group)) for group in self.labels]
        left = 12 + max((_text_width(text) for text, _ in texts), default=0)
        right, bottom = _WIDTH - 12, _TOP + _ROW * len(texts)
        reach = 0.0 if self.margin is None else self.margin
        band = () if self.line is None else (self.line - reach, self.line + reach)
        low, high = _limits(np.concatenate([band, self.estimate, self.low, self.high]))

        def x(value: Any) -> Any:
            share = (np.clip(value, low, high) - low) / (high - low)
            return left + share * (right - left)

        drawn = np.isfinite(self.estimate)
        absent = np.where(np.isinf(self.estimate), "off the axis", "no data")
        middles = _TOP + _ROW * (np.arange(len(texts)) + 0.5)
        columns = (x(self.estimate), x(self.low), x(self.high), middles)
        marks = zip(self.colors, *columns, strict=True)
        return {
            "plot": self,
            "height": bottom + _BOTTOM,
            "left": left,
            "right": right,
            "bottom": bottom,
            "rows": list(zip(texts, middles, np.where(drawn, "", absent), strict=True)),
            "marks": list(compress(marks, drawn)),
            "line": None if self.line is None else x(self.line),
            "band": None if self.margin is None else [*map(x, band)],
            "ticks": [
                (x(value), text) for value, text in _ticks(low, high) if drawn.any()
            ],
            # In the middle of the axis, unless it would end beyond the plot.
            "middle": min((left + right) / 2, _WIDTH - _text_width(self.xlabel) / 2),
        }


def _limits(values: Array) -> tuple[float, float]:
    """Return the ends of the axis: all that is finite, with some room."""
    values = values[np.isfinite(values)]
    if not values.size:
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    room = 0.05 * (high - low) or 0.1 * abs(high) or 1.0
    return low - room, high + room


def _text_width(text: str) -> float:
    """Return about how wide a text is; the font is the reader's."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return _FONT * (0.58 * (len(text) - wide) + 1.05 * wide)


def _shortened(text: str) -> tuple[str, str]:
    """Return a label that fits, and the whole one if that is another."""
    if _text_width(text) <= _WIDEST_LABEL:
        return text, ""
    # Wide letters may need a few steps more, but a long text not one for each letter.
    short = text[: int(_WIDEST_LABEL / _text_width("n")) + 2]
    while _text_width(short) > _WIDEST_LABEL:
        short = short[:-2].rstrip() + "…"
    return short, text


def _ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Return three to seven round values within the limits, and their texts."""
    raw = (high - low) / 6
    size = 10.0 ** np.floor(np.log10(raw))
    step = size * next(m for m in (1, 2, 5, 10) if m * size >= raw * (1 - 1e-9))
    values = step * np.arange(np.ceil(low / step), np.floor(high / step) + 1)
    decimals = int(max(0, -np.floor(np.log10(step) + 1e-9)))
    small = decimals <= 4 and max(abs(low), abs(high)) < 1e6
    texts = [f"{v + 0.0:.{decimals}f}" if small else f"{v + 0.0:.3g}" for v in values]
    return list(zip(values.tolist(), texts, strict=True))
