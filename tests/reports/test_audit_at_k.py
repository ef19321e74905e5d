"""An audit of the first places of a ranking."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from skrankfair import audit
from skrankfair.__main__ import main
from skrankfair.metrics import (
    matched_pair_calibration,
    ndcg,
    pairwise_accuracy,
    pairwise_exposure,
    precision_at_k,
    recall_at_k,
    share_at_k,
)

RNG = np.random.default_rng(0)
QUERY = np.repeat(np.arange(150), 12)
GROUP = RNG.choice(["f", "m"], QUERY.size)
QUALITY = RNG.normal(size=QUERY.size)
Y = (QUALITY + RNG.normal(size=QUERY.size) > 0.5).astype(int)
SCORE = QUALITY - 0.6 * (GROUP == "f")
WHO = {"sensitive_features": GROUP, "qid": QUERY}
REPORT = audit(Y, SCORE, k=3, **WHO)
METRICS = {
    "pairwise_accuracy": pairwise_accuracy,
    "pairwise_exposure": pairwise_exposure,
    "share_at_k": share_at_k,
    "precision_at_k": precision_at_k,
    "recall_at_k": recall_at_k,
}


@pytest.mark.parametrize("name", METRICS)
def test_metrics_are_of_the_first_places(name):
    expected, found = METRICS[name](Y, SCORE, k=3, **WHO), REPORT.results[name]
    assert_array_equal(found.estimate, expected.estimate)
    assert_array_equal(found.standard_error, expected.standard_error)


def test_matched_pairs_and_ndcg_are_of_the_first_places():
    cut = matched_pair_calibration(Y, SCORE, position_weight="top", k=3, **WHO)
    found = REPORT.results["matched_pair_calibration"]
    assert_array_equal(found.estimate, cut.estimate)
    assert REPORT.results["ndcg"].estimate == ndcg(Y, SCORE, k=3, qid=QUERY).estimate


def test_the_report_says_so_and_names_who_is_worse_off():
    assert REPORT.k == 3
    assert "of which the first 3 places count" in repr(REPORT)
    assert "Good items shown less often: f" in repr(REPORT)
    assert REPORT.to_dict()["k"] == 3
    one = audit(Y, SCORE, k=1, metrics="share_at_k", **WHO)
    assert "of which the first place counts;" in one.reading


def test_without_k_nothing_is_cut():
    whole = audit(Y, SCORE, **WHO)
    assert whole.k is None
    assert not set(whole.results) & {"share_at_k", "precision_at_k", "recall_at_k"}
    assert "count;" not in whole.reading


def test_graded_outcomes_leave_out_what_needs_two():
    report = audit(Y * 2, SCORE, k=3, **WHO)
    assert "share_at_k" in report.results
    assert "recall_at_k" not in report.results
    assert any(note.startswith("Recall of the first") for note in report.notes)


@pytest.mark.parametrize("metric", [precision_at_k, recall_at_k])
def test_the_rest_of_one_of_two_groups_is_the_other(metric):
    """Its difference from the rest is that from the other group, with its error."""
    result = metric(Y, SCORE, k=3, **WHO)
    contrast = result.contrast("f", "m")
    rest = result.against_rest()
    np.testing.assert_allclose(rest.estimate[0], contrast.estimate, 1e-12)
    np.testing.assert_allclose(rest.standard_error[0], contrast.standard_error, 2e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, r"k must be an integer in \[1, inf\]; got 0"),
        ({"metrics": "share_at_k"}, "k must be given for share_at_k"),
        ({"k": 3, "qid": None}, "k must be None for task='risk'"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        audit(Y, SCORE, **{**WHO, **options})


def test_the_command_line_takes_k(tmp_path, capsys):
    table = pd.DataFrame({"y": Y, "s": SCORE, "g": GROUP, "q": QUERY})
    table.to_csv(tmp_path / "table.csv", index=False)
    where = ["--y-true", "y", "--y-score", "s", "--sensitive-features", "g"]
    out = tmp_path / "out.json"
    call = ["audit", str(tmp_path / "table.csv"), *where, "--qid", "q", "--k"]
    assert main([*call, "3", "--json", str(out)]) == 0
    report = json.loads(out.read_text())
    assert report["k"] == 3
    assert "recall_at_k" in {metric["metric"] for metric in report["metrics"]}
    assert main([*call, "none"]) == 2
    assert "--k: must be a number such as 10; got 'none'" in capsys.readouterr().err
