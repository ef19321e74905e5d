"""The page of a report needs nothing else, and labels are data in it."""

import re
import sys
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256

import matplotlib as mpl
import pytest

from skrankfair import audit
from skrankfair._reports.catalog import catalog
from skrankfair.display import _style as look

from .common import NAMES, Page, data, risks, written

SOME = ["inter_group_accuracy", "pairwise_exposure"]


@pytest.fixture(scope="module")
def report():
    return audit(**data())


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
    for part in (report.headline, "1,500", "6,750", report.limits):
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


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_many_groups_of_few_rows_have_no_empty_table(tmp_path):
    columns = data(groups=tuple(range(60)), n_queries=30)
    page = written(audit(**columns, metrics="intra_group_accuracy"), tmp_path)
    assert "No group has enough data for a test." in page
    assert page.count("<table") == 1  # the overview
    assert "<svg" not in page


def test_strata_of_engagement_and_a_single_query_are_named(tmp_path):
    report = audit(**data(), engagement=data()["y_score"])
    page = written(report, tmp_path)
    assert page.count("mean over 4 strata of the engagement") == 3
    with pytest.warns(match="standard error"):
        alone = audit(**data(n_queries=1), metrics="ndcg")
    assert "over 1 query" in written(alone, tmp_path)


def test_notebooks_show_all_that_is_known():
    report = audit(**risks(n_rows=600), favorable="low", threshold=0.5)
    html = report._repr_html_()
    assert html.count("<table>") == len(report.findings) + len(report.sections)
    assert f"<strong>{report.headline}</strong>" in html


def test_says_what_to_install(report, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r'pip install "skrankfair\[report\]"'):
        report.to_html(tmp_path / "a.html")
