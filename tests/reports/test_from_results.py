"""The report of results is that of the audit of the same rows."""

from functools import partial

import pytest

from skrankfair import AuditReport, audit
from skrankfair.distributed import measure
from skrankfair.metrics import (
    matched_pair_calibration,
    ndcg,
    pairwise_exposure,
    precision,
    recall_at_k,
)
from tests.distributed.logs import WHO, assert_same, click_log

MATCHED = "matched_pair_calibration"


@pytest.fixture(scope="module", name="log")
def _log():
    return click_log()


@pytest.fixture(scope="module", name="rows")
def _rows(log):
    return {argument: log[column] for argument, column in WHO.items()}


@pytest.mark.parametrize("engine", ["memory", "dask"])
def test_is_the_audit_of_all_rows(engine, log, rows, tmp_path):
    options = {"margin": 0.05, "correction": "fdr_bh", "favorable": "low"}
    metrics = {
        "inter_group_accuracy": "inter_group_accuracy",
        "pairwise_exposure": pairwise_exposure,
        MATCHED: matched_pair_calibration,
        "ndcg": partial(ndcg, sensitive_features=None),
    }
    whole = audit(**rows, metrics=[*metrics], **options)
    data = log
    if engine == "dask":
        data = pytest.importorskip("dask.dataframe").from_pandas(log, npartitions=3)
        epsilon = whole.results[MATCHED].first_pass["epsilon"]
        metrics[MATCHED] = partial(matched_pair_calibration, epsilon=epsilon)
    counts = ("n_rows", "n_queries", "n_pairs", "group_rows")
    report = AuditReport.from_results(
        measure(data, metrics, **WHO),
        **options,
        **{name: getattr(whole, name) for name in counts},
    )
    # Clusters with hardly any pair are summed to first order.
    compact = {name: result.compact() for name, result in whole.results.items()}
    assert_same(report.results, compact)
    for name in (*counts, "n_clusters", "task", "favorable", "margin", "correction"):
        assert getattr(report, name) == getattr(whole, name), name
    assert report.headline == whole.headline
    assert report.counts == whole.counts
    for one, other in zip(report.findings, whole.findings, strict=True):
        assert one.verdict == other.verdict
    page = report.to_html(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Inter-group accuracy" in page
    assert "2,400" in page


def test_shows_what_is_known(rows, tmp_path):
    results = {"recall_at_k": recall_at_k(**rows, k=3)}
    report = AuditReport.from_results(results, notes=["Counted by nobody."])
    assert report.k == 3
    assert report.counts == f"{report.n_clusters:,} clusters, 3 groups"
    assert report.notes == ("Counted by nobody.",)
    assert report.favorable == "high"
    again = AuditReport.from_json(report.to_json())
    assert repr(again) == repr(report)
    page = report.to_html(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "None" not in page
    assert "<dt>rows</dt>" not in page


def test_the_task_is_one_of_all_metrics(rows):
    exposure = {"pairwise_exposure": pairwise_exposure(**rows)}
    assert AuditReport.from_results(exposure).task == "ranking"
    report = AuditReport.from_results(exposure, task="risk")
    assert (report.task, report.favorable) == ("risk", None)
    decided = (rows["y_true"] > 0) * 1, (rows["y_score"] > 0.5) * 1
    groups = {"sensitive_features": rows["sensitive_features"]}
    rates = {"precision": precision(*decided, **groups)}
    assert AuditReport.from_results(rates).task == "decision"
    with pytest.raises(ValueError, match="results must be of metrics of one task"):
        AuditReport.from_results(exposure | rates)


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        ([], {}, "metrics must be among .*; got none"),
        (["exposure"], {}, "metrics must be among .*; got 'exposure'"),
        (["ndcg"], {"task": "sorting"}, "task must be one of"),
        (["ndcg"], {"margin": 0.1, "confidence_level": 0.5}, "must be above 0.5"),
        (["ndcg"], {"confidence_level": 2}, "confidence_level must be a number"),
        (["ndcg"], {"correction": "none"}, "correction must be"),
    ],
)
def test_what_is_wrong_is_named(names, options, message, rows):
    result = pairwise_exposure(**rows)
    with pytest.raises(ValueError, match=message):
        AuditReport.from_results(dict.fromkeys(names, result), **options)


def test_measure_knows_the_names_of_audits(log):
    results = measure(log, ["inter_group_accuracy", "pairwise_exposure"], **WHO)
    assert list(results) == ["inter_group_accuracy", "pairwise_exposure"]
    assert results["inter_group_accuracy"].parameters["comparison"] == "inter"
