"""Audits in Markdown, in LaTeX and under flat names say what the report says."""

import re

import numpy as np
import pytest

from skrankfair import audit

LABELS = ("a|b_*<i>", "50% & {up} \\\\x", "a/b", "a_b", "..")
METRICS = ["inter_group_accuracy", "pairwise_preference", "ndcg"]


@pytest.fixture(scope="module")
def report():
    rng = np.random.default_rng(0)
    query = np.repeat(np.arange(60), 10)
    quality = rng.normal(size=query.size)
    return audit(
        quality + rng.normal(size=query.size) > 0,
        quality,
        sensitive_features=np.array(LABELS)[rng.integers(5, size=query.size)],
        qid=query,
        metrics=METRICS,
    )


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
