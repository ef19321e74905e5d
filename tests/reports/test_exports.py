"""Audits elsewhere say what the report says; files are whole, or as they were."""

import json
import math
import os
import re
import signal
import stat
import subprocess
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from skrankfair import AuditReport, audit
from skrankfair._reports.exports import write_text

from .common import data, written
from .test_catalog import profit

LABELS = ("a|b_*<i>", "50% & {up} \\\\x", "a/b", "a_b", "..")
METRICS = ["inter_group_accuracy", "pairwise_preference", "ndcg"]


@pytest.fixture(scope="module")
def report():
    return audit(**data(LABELS, n_queries=60), metrics=METRICS)


def test_flat_names_are_unique_and_allowed_by_trackers(report):
    found = report.to_dict(flat=True)
    frame = report.to_frame()
    names = ["estimate", "standard_error", "ci_low", "ci_high", "support"]
    names += ["difference", "pvalue", "pvalue_corrected"]
    # No number is lost, and none that is undefined is there.
    assert len(found) == int(frame[names].notna().to_numpy().sum())
    # As MLflow checks names of metrics: characters, and no part of a path.
    assert all(re.fullmatch(r"[/\w.\- ]+", name) for name in found)
    parts = [name.split("/") for name in found]
    assert {len(part) for part in parts} == {3}
    assert not {"", ".", ".."} & {group for _, group, _ in parts}
    by_group = frame.set_index(["metric", "group"])["estimate"]
    result = by_group["inter_group_accuracy"]
    first, second = (g for g in result.index if g in ("a/b", "a_b"))
    assert found["inter_group_accuracy/a_b/estimate"] == result[first]
    assert found["inter_group_accuracy/a_b_2/estimate"] == result[second]
    assert found["ndcg/all/estimate"] == by_group["ndcg"]["all"]


def test_markdown_has_all_tables_and_labels_as_text(report):
    text = report.to_markdown()
    assert text.startswith("# Fairness audit\n\n600 rows")
    tables = re.findall(r"(?:^\|.*\|\n)+", text, flags=re.MULTILINE)
    assert len(tables) == len(METRICS)
    for table, finding in zip(tables, report.findings, strict=True):
        header, rows = finding.cells()
        lines = [re.split(r"(?<!\\)\|", line) for line in table.splitlines()]
        assert {len(line) for line in lines} == {len(header) + 2}
        assert len(lines) == len(rows) + 2
        found = [re.sub(r"\\(.)", r"\1", line[1].strip()) for line in lines[2:]]
        assert found == [row[0] for row in rows]
    assert "<i>" not in text
    assert report.limits in text


def test_latex_has_all_tables_and_no_active_characters(report):
    text = report.to_latex()
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 3
    for finding in report.findings:
        header, _ = finding.cells()
        assert f"\\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}" in text
        assert f"\\subsection*{{{finding.metric.title}}}" in text
    # Each line of a table has as many cells as its header.
    for body in re.findall(r"toprule\n(.*?)\\bottomrule", text, flags=re.DOTALL):
        lines = [line for line in body.splitlines() if line.endswith(r" \\")]
        assert len({len(re.findall(r"(?<!\\)&", line)) for line in lines}) == 1
    assert r"50\% \& \{up\} \textbackslash{}" in text
    assert r"a|b\_*\textless{}i\textgreater{}" in text
    braces = re.sub(r"\\[{}]", "", text)
    assert braces.count("{") == braces.count("}")
    assert not set("–×~^<>") & set(text)


STORED = Path(__file__).parent / "stored"


def columns(n=600, labels=("a", "b", "c")):
    rng = np.random.default_rng(0)
    names = np.empty(len(labels), dtype=object)
    names[:] = labels
    score = rng.integers(1, 64, n) / 64
    return {
        "y_true": (rng.random(n) < score).astype(float),
        "y_score": score,
        "sensitive_features": names[rng.integers(len(labels), size=n)],
    }


def ranking(**options):
    return audit(**columns(), qid=np.arange(600) // 10, **options)


def risk(**options):
    return audit(
        **columns(n=300, labels=[("f", 30), (date(2020, 1, 1), True)]),
        cluster=np.arange(300) // 3,
        threshold=0.5,
        favorable="low",
        correction="fdr_bh",
        **options,
    )


REPORTS = {
    "ranking": lambda: ranking(margin=0.05),
    "k": lambda: ranking(k=3, metrics=["ndcg", "share_at_k"]),
    "risk": risk,
}


@pytest.mark.parametrize("name", REPORTS)
def test_shows_what_was_stored(name, tmp_path):
    report = REPORTS[name]()
    text = report.to_json()
    json.loads(text, parse_constant=pytest.fail)
    again = AuditReport.from_json(text)
    assert repr(again) == repr(report)
    assert again.to_json() == text
    assert again._repr_html_() == report._repr_html_()
    assert again.to_markdown() == report.to_markdown()
    assert written(again, tmp_path) == written(report, tmp_path)
    assert [type(group) for group in again.group_rows] == [
        type(group) for group in report.group_rows
    ]
    for metric, result in report.results.items():
        compact = result.compact()
        assert again.results[metric].to_json() == compact.to_json()
        if metric != "calibration_error":  # which fits a curve to all rows
            assert (again.results[metric] + compact).n_clusters == 2 * result.n_clusters


def test_numbers_are_those_of_the_tables():
    """Many clusters are stored by sums that are exact to first order only."""
    report = audit(**columns(n=3000), qid=np.arange(3000) // 3)
    again = AuditReport.from_json(report.to_json())
    rows = repr(report.findings[0].rows)  # in which NaN is NaN
    assert repr(again.findings[0].rows) == rows
    assert repr(replace(again, recorded=None).findings[0].rows) != rows


def test_other_levels_are_computed():
    again = replace(AuditReport.from_json(ranking().to_json()), confidence_level=0.8)
    whole = replace(ranking(), confidence_level=0.8)
    for one, two in zip(again.findings, whole.findings, strict=True):
        np.testing.assert_allclose(
            [row.ci_low for row in one.rows], [row.ci_low for row in two.rows]
        )


@pytest.mark.parametrize("path", sorted(STORED.glob("*.json")), ids=lambda p: p.stem)
def test_files_of_old_versions(path):
    """Written by the versions in their names, and read by all that follow."""
    text = path.read_text(encoding="utf-8")
    written = json.loads(text)
    report = AuditReport.from_json(text)
    assert report.headline
    assert list(report.results) == [found["metric"] for found in written["metrics"]]
    for finding, found in zip(report.findings, written["metrics"], strict=True):
        result = report.results[finding.metric.name]
        for row, numbers, estimate in zip(
            finding.rows, found["groups"], result.estimate, strict=True
        ):
            for name in ("estimate", "standard_error", "ci_low", "pvalue", "support"):
                known = math.nan if numbers[name] is None else numbers[name]
                np.testing.assert_equal(getattr(row, name), known)
            np.testing.assert_allclose(estimate, row.estimate, rtol=1e-12)
    fresh = {"ranking": ranking, "risk": risk}[path.stem.partition("_")[0]](
        metrics="all"
    ).results
    for name, result in report.results.items():
        if not result.first_pass and name != "calibration_error":
            assert (result + fresh[name]).n_clusters == 2 * result.n_clusters


GOOD = json.loads(ranking(metrics="pairwise_exposure").to_json())


def changed(**parts):
    return json.dumps({**GOOD, "stored": {**GOOD["stored"], **parts}})


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (None, "text must be what to_json"),
        ("3", "must have the schema 'skrankfair.AuditReport'.*got None"),
        (json.dumps({**GOOD, "stored": None}), "got None"),
        (changed(schema="skrankfair.GroupEstimates"), "got 'skrankfair.GroupEstimates"),
        (changed(schema_version=2), "got 2, .*Update skrankfair"),
        (changed(results={"other": {}}), "must have the schema"),
        (changed(n_rows={"object": "os.system"}), "wrong or missing parts"),
        (changed(sections=[3]), "sections that are none"),
        (json.dumps({**GOOD, "metrics": []}), "wrong or missing parts"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_errors(text, match):
    with pytest.raises(ValueError, match=match):
        AuditReport.from_json(text)


def test_what_cannot_be_stored_says_so(tmp_path):
    report = ranking(metrics=[profit])
    text = report.to_json(tmp_path / "a.json").read_text(encoding="utf-8")
    assert json.loads(text)["metrics"][0]["metric"] == profit.__name__
    with pytest.raises(ValueError, match=r"the numbers of a report only: .*Functions"):
        AuditReport.from_json(text)


posix = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_writes_utf8_with_plain_line_ends(tmp_path):
    path = tmp_path / "a.txt"
    assert write_text(str(path), "é\n") == path
    assert path.read_bytes() == b"\xc3\xa9\n"
    assert names(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left")])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path, monkeypatch, error
):
    path = tmp_path / "a.txt"
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", Mock(side_effect=error))
    for file in (path, tmp_path / "new.txt"):
        with pytest.raises(type(error)):
            write_text(file, "new")
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_a_name_that_cannot_be_leaves_nothing(tmp_path):
    for path in (tmp_path / ("x" * 300), tmp_path / "nowhere" / "a.txt"):
        with pytest.raises(OSError, match="too long|No such file") as caught:
            write_text(path, "new")
        # Not that of the file beside it.
        assert caught.value.filename == str(path)
    assert names(tmp_path) == []


@posix
def test_the_next_write_removes_what_a_killed_process_has_left(tmp_path):
    """And nothing of a process that is still writing."""
    folder = f"pathlib.Path({str(tmp_path)!r})"
    code = (
        "import os, pathlib, signal, time\n"
        "from skrankfair._reports.exports import write_text\n"
        "child = os.fork()\n"
        "status = os.waitpid(child, 0)[1] if child else None\n"
        "kill = lambda: os.kill(os.getpid(), signal.SIGKILL)\n"
        "wait = lambda: print(status, flush=True) or time.sleep(99)\n"
        "os.fsync = lambda number: wait() if child else kill()\n"
        f"write_text({folder} / 'b.txt', 'b')"
    )
    alive = subprocess.Popen([sys.executable, "-c", code], stdout=-1)
    assert int(alive.stdout.readline()) == signal.SIGKILL  # and the parent sleeps
    before = set(names(tmp_path))
    write_text(tmp_path / "a.txt", "a")
    (left,) = set(names(tmp_path)) - {"a.txt"}
    assert left in before
    alive.kill()
    alive.communicate()
    write_text(tmp_path / "a.txt", "a")
    assert names(tmp_path) == ["a.txt"]


@posix
def test_permissions_are_kept(tmp_path):
    path = tmp_path / "a.txt"
    mask = os.umask(0o027)
    try:
        write_text(path, "old")
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o604)
    write_text(path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    assert path.read_text() == "new"


@posix
def test_what_must_not_be_written_is_not_replaced(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("old")
    # The superuser may write everything.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


@posix
def test_links_are_followed(tmp_path):
    (tmp_path / "there").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "there" / "a.txt")
    for text in ("old", "new"):  # without and with a file at the other end
        write_text(link, text)
        assert link.is_symlink()
        assert (tmp_path / "there" / "a.txt").read_text() == text
    assert names(tmp_path / "there") == ["a.txt"]


@posix
def test_a_device_is_written_to():
    write_text("/dev/null", "text")
    assert not os.path.isfile("/dev/null")  # noqa: PTH113
    with pytest.raises(OSError, match="No space left"):
        write_text("/dev/full", "text")


def test_a_lone_surrogate_is_escaped(tmp_path):
    labels = ["a\ud800b", "c"]
    report = audit(**data(labels, n_queries=40), metrics="pairwise_exposure")
    text = report.to_json(tmp_path / "a.json").read_text("utf-8")
    assert [group["group"] for group in json.loads(text)["groups"]] == labels
    assert written(report, tmp_path).rstrip().endswith("</html>")
