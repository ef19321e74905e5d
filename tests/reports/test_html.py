"""The page of a report needs nothing else, and labels are data in it and its plots."""

import re
import sys
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from xml.etree import ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest

from skrankfair import audit
from skrankfair._reports.catalog import catalog
from skrankfair._reports.html import ForestPlot, _environment, _ticks
from skrankfair.display import _style as look

from .common import NAMES, Page, data, risks, written

SOME = ["inter_group_accuracy", "pairwise_exposure"]


@pytest.fixture(scope="module")
def page(report, tmp_path_factory):
    return written(report, tmp_path_factory.mktemp("html"))


def test_needs_nothing_else(page):
    parsed = Page(page)
    assert not {"link", "img", "iframe", "object"} & set(parsed.tags)
    for name, value in parsed.attributes:
        assert not name.startswith("on")
        if name in {"href", "xlink:href", "src"}:
            assert value.startswith("#")
    # Names of XML namespaces are fetched by nobody.
    text = page.replace("http://www.w3.org/", "")
    assert not any(word in text for word in ("http:", "https:", "@import"))


def test_has_a_section_a_plot_and_a_table_for_each_metric(page, report):
    for metric in (catalog()[name] for name in NAMES):
        assert f'<h2 id="{metric.name}">{metric.title}' in page
    assert page.count("<svg ") == page.count('role="img" aria-label="') == 6
    assert page.count("<table") == 7
    text = " ".join(Page(page).text)
    answers = [text for both in report.answers for text in both]
    for part in (*answers, "1,500", "6,750", report.limits):
        assert part in text
    assert all('scope="' in tag for tag in re.findall(r"<th[ >][^>]*", page))


def test_ids_are_unique_and_references_meet_them(page):
    ids = [value for name, value in Page(page).attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="|url\()#([^")]+)', page)) <= set(ids)
    for name in set(NAMES) - {"ndcg"}:
        assert f'<a href="#plot-{name}-1">' in page


def test_is_made_for_the_dark_for_phones_and_for_print(page):
    for rule in ("prefers-color-scheme: dark", "max-width: 40rem", "print"):
        assert f"@media {rule}" in page.replace("(", "").replace(")", "")
    # Colours that the dark style exchanges are those that plots have.
    style, plots = page.split("</style>")
    for color in re.findall(r'svg \[(?:fill|stroke)="(#\w+)"\]', style):
        assert color in [*vars(look).values()]
    assert 'stroke="#333333"' in plots


def test_is_the_same_in_threads_and_whatever_matplotlib_is(
    page, report, tmp_path, monkeypatch
):
    def write(i):
        return report.to_html(tmp_path / f"{i}.html").read_text(encoding="utf-8")

    before = dict(mpl.rcParams)
    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(write, range(10))) == {page}
    assert dict(mpl.rcParams) == before
    with mpl.rc_context({"font.size": 30, "svg.fonttype": "path"}):
        assert write("settings") == page
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert write("without") == page


@pytest.mark.parametrize(
    "label",
    [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "--><script>alert(1)</script>",
        "]]></style><script>alert(1)</script>",
        "{{ 7 * 7 }}{% raw %}",
        "</title></svg><script>alert(1)</script>",
        '$x$ id="y" url(#z)',
        "日本語 \U0001f600 \x00\x1b",
    ],
)
def test_labels_and_titles_are_data(label, tmp_path):
    report = audit(**data(groups=(label, "m"), n_queries=40), metrics=SOME)
    page = written(replace(report, notes=(label,)), tmp_path, title=label)
    parsed = Page(page)
    assert "img" not in parsed.tags
    # The one script is the package's own, and the page allows no other.
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert parsed.tags.count("script") == 1
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'\"" in page
    assert "default-src 'none'" in page
    assert not any(name.startswith("on") for name, _ in parsed.attributes)
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in label)
    assert "".join(parsed.text).count(shown) >= 2 * 2  # a table and a plot each
    assert not {"script", "img"} & set(Page(report._repr_html_()).tags)
    assert "\x1b" not in repr(report)


def test_many_groups(tmp_path):
    groups = tuple(f"group {i}" for i in range(40))
    report = audit(**data(groups=groups, n_queries=300), metrics=SOME)
    page = written(report, tmp_path)
    shown = sum(len(finding.shown) for finding in report.findings)
    assert 10 <= page.count('<th scope="row"') - shown < 40
    assert 10 <= shown / 2 < 40
    assert "more groups do not differ beyond chance" in page
    assert "by their ranks in the metrics, which may be chance." in page


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_many_groups_of_few_rows_have_no_empty_table(tmp_path):
    columns = data(groups=tuple(range(60)), n_queries=30)
    page = written(audit(**columns, metrics="intra_group_accuracy"), tmp_path)
    assert "No group has enough data, or enough variation in them, for" in page
    assert page.count("<table") == 1  # the overview
    assert "<svg" not in page


def test_strata_of_engagement_and_a_single_query_are_named(tmp_path):
    page = written(audit(**data(), engagement=data()["y_score"]), tmp_path)
    assert page.count("mean over 4 strata of the engagement") == 3
    with pytest.warns(match="standard error"):
        alone = audit(**data(n_queries=1), metrics="ndcg")
    assert "over 1 query" in written(alone, tmp_path)


def test_notebooks_show_all_that_is_known():
    report = audit(**risks(n_rows=600), favorable="low", threshold=0.5)
    html = report._repr_html_()
    assert html.count("<table>") == len(report.findings) + len(report.sections)
    for line in report.headline.splitlines():
        assert f"<strong>{line}</strong>" in html


def test_says_what_to_install(report, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r'pip install "skrankfair\[report\]"'):
        report.to_html(tmp_path / "a.html")


NAN = np.nan


def plot(estimate=(1.0, 3.0, NAN), low=(0.0, NAN, NAN), high=(2.0, NAN, NAN), **change):
    columns = (np.array(part, dtype=float) for part in (estimate, low, high))
    labels, colors = list("abc")[: len(estimate)], ["red"] * len(estimate)
    given = dict(zip(("estimate", "low", "high"), columns, strict=True))
    given |= {"labels": labels, "colors": colors, "xlabel": "gap", "line": 0.0}
    return ForestPlot(**{**given, "alt": "gap by group", **change})


def drawn(forest):
    template = _environment().get_template("forest.svg.jinja")
    return ET.fromstring(template.render(forest.layout()))


def texts(element):
    return ["".join(part.itertext()) for part in element if part.tag.endswith("text")]


def test_positions_are_proportional_to_the_numbers():
    layout = plot().layout()
    (_, x, low, high, _), (_, second, *_) = layout["marks"]
    assert low == pytest.approx(layout["line"])
    assert (x - low) / (high - low) == pytest.approx(0.5)
    assert (second - low) / (high - low) == pytest.approx(1.5)
    assert layout["left"] < low < high < layout["right"]
    ((_, _, low, high, _),) = plot([1.0], [-np.inf], [np.inf]).layout()["marks"]
    assert (low, high) == (layout["left"], layout["right"])


def test_a_row_without_a_number_says_so_and_one_without_error_is_open():
    element = drawn(plot())
    assert texts(element)[:4] == ["a", "b", "c", "no data"]
    paths = [part for part in element if part.tag.endswith("path")]
    assert [path.get("fill") for path in paths] == ["red", "white"]
    assert element.get("aria-label") == "gap by group"
    element = drawn(plot([1.0, -np.inf], [0.0, NAN], [2.0, NAN]))
    assert texts(element)[:3] == ["a", "b", "off the axis"]
    assert len([part for part in element if part.tag.endswith("path")]) == 1
    nothing = plot([NAN], [NAN], [NAN], line=None)
    assert nothing.layout()["marks"] == nothing.layout()["ticks"] == []
    assert texts(drawn(nothing)) == ["a", "no data", "gap"]


def test_labels_in_plots_are_data_and_cut_where_they_are_long():
    labels = ["<b>&\"'", "_x", "$x$"]
    assert texts(drawn(plot(labels=labels)))[:3] == labels
    # Letter by letter the second would take minutes.
    element = drawn(plot(labels=["long " * 20, "日本" * 100_000, "{{ 7 * 7 }}"]))
    shown = [part.text for part in element if part.tag.endswith("text")]
    assert all(text.endswith("…") for text in shown[:2])
    assert len(shown[1]) < len(shown[0]) < 40
    assert texts(element)[0] == shown[0] + "long " * 20


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-2.2, 8.0, ["-2", "0", "2", "4", "6", "8"]),
        (0.41, 0.59, ["0.45", "0.50", "0.55"]),
        (-1e-7, 1e-7, ["-1e-07", "-5e-08", "0", "5e-08", "1e-07"]),
        (0.0, 3e7, ["0", "5e+06", "1e+07", "1.5e+07", "2e+07", "2.5e+07", "3e+07"]),
    ],
)
def test_ticks_are_round(low, high, expected):
    values, words = zip(*_ticks(low, high), strict=True)
    assert list(words) == expected
    np.testing.assert_allclose(values, np.array(expected, dtype=float), atol=1e-20)
