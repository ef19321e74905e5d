"""The audit of parts is that of all data in memory."""

import dask.dataframe as dd
import numpy as np
import pytest

import skrankfair
from skrankfair.distributed import audit

from .logs import WHO, assert_same, click_log


@pytest.fixture(scope="module", name="log")
def _log():
    return click_log()


def whole_of(log, **options):
    columns = {argument: log[column] for argument, column in WHO.items()}
    return skrankfair.audit(**columns, **options)


def assert_same_report(found, whole):
    # Clusters with hardly any pair are summed to first order.
    results = {name: result.compact() for name, result in whole.results.items()}
    assert_same(found.results, results)
    parts = ("n_rows", "n_queries", "n_clusters", "n_pairs", "overlapping", "shares")
    for part in (*parts, "notes", "task", "favorable", "margin", "headline", "counts"):
        assert getattr(found, part) == getattr(whole, part), part
    assert list(found.group_rows.items()) == list(whole.group_rows.items())
    for one, other in zip(found.findings, whole.findings, strict=True):
        assert one.verdict == other.verdict


@pytest.mark.parametrize("kind", ["files", "dask", "memory"])
def test_is_that_of_all_data(kind, log, tmp_path):
    log.to_parquet(tmp_path / "log.parquet")
    data = {
        "files": tmp_path / "log.parquet",
        "dask": dd.from_pandas(log, npartitions=3),
        "memory": log,
    }[kind]
    found = audit(data, **WHO, n_partitions=5, margin=0.05)
    assert_same_report(found, whole_of(log, margin=0.05))
    found.to_html(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Inter-group accuracy" in text
    assert "2,400" in text


def test_leaves_out_what_all_data_have_not(log):
    low = log.assign(y=np.where(log["u"] == 3, -1.0, log["y"]))
    found = audit(dd.from_pandas(low, npartitions=3), **WHO, n_partitions=4)
    assert "ndcg" not in found.results
    assert_same_report(found, whole_of(low))


@pytest.mark.parametrize("k", [None, 3])
def test_options(k, log):
    names = ["pairwise_exposure", "matched_pair_calibration", "ndcg"]
    options = {"metrics": names, "k": k, "correction": "fdr_bh", "favorable": "low"}
    found = audit(dd.from_pandas(log, npartitions=2), **WHO, **options)
    assert found.correction == "fdr_bh"
    assert_same_report(found, whole_of(log, **options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"qid": None}, "qid must be the name of a column"),
        ({"metrics": "brier_score"}, "metrics must be of rankings; got 'brier_score'"),
        ({"metrics": "nothing"}, "metrics must be among"),
        ({"favorable": "up"}, "favorable must be"),
        ({"confidence_level": 2}, "confidence_level must"),
        ({"n_partitions": 0}, "n_partitions must"),
        ({"y_score": "nope"}, "no column 'nope'"),
        ({"cluster": "s"}, "s must be constant within a query"),
    ],
)
def test_errors(options, message, log):
    with pytest.raises(ValueError, match=message):
        audit(dd.from_pandas(log, npartitions=2), **WHO | options)
