"""A report that is loaded is the one that was stored, and nothing else is loaded."""

import json
import math
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from skrankfair import AuditReport, audit
from skrankfair.metrics import make_metric

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


def risk():
    return audit(
        **columns(n=300, labels=[("f", 30), (date(2020, 1, 1), True)]),
        cluster=np.arange(300) // 3,
        threshold=0.5,
        favorable="low",
        correction="fdr_bh",
    )


REPORTS = {
    "ranking": lambda: ranking(margin=0.05),
    "k": lambda: ranking(k=3, metrics=["ndcg", "share_at_k"]),
    "risk": risk,
}


def page(report, tmp_path):
    return report.to_html(tmp_path / "page.html").read_text(encoding="utf-8")


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
    assert page(again, tmp_path) == page(report, tmp_path)
    assert [type(group) for group in again.group_rows] == [
        type(group) for group in report.group_rows
    ]
    for metric, result in report.results.items():
        compact = result.compact()
        assert again.results[metric].to_json() == compact.to_json()
        if metric != "calibration_error":  # which fits a curve to all rows
            total = again.results[metric] + compact
            assert total.n_clusters == 2 * result.n_clusters


def test_numbers_are_those_of_the_tables():
    """Many clusters are stored by sums that are exact to first order only."""
    report = audit(**columns(n=3000), qid=np.arange(3000) // 3)
    again = AuditReport.from_json(report.to_json())
    rows = repr(report.findings[0].rows)  # in which NaN is NaN
    assert repr(again.findings[0].rows) == rows
    assert repr(replace(again, recorded={}).findings[0].rows) != rows


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
    fresh = {"ranking": ranking, "risk": risk}[path.stem.partition("_")[0]]().results
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
        ("[", "text must be JSON"),
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
    profit = make_metric(
        lambda y_true, y_score: np.column_stack([y_true, np.ones(len(y_true))]),
        lambda totals: totals[..., 0] / totals[..., 1],
        name="profit",
    )
    report = ranking(metrics=[profit])
    text = report.to_json(tmp_path / "a.json").read_text(encoding="utf-8")
    assert json.loads(text)["metrics"][0]["metric"] == "profit"
    with pytest.raises(ValueError, match=r"the numbers of a report only: .*Functions"):
        AuditReport.from_json(text)
