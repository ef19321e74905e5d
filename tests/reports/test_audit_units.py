"""What is independent, and what weighs how much, in an audit."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skrankfair import audit
from skrankfair.__main__ import main
from skrankfair.inference import predictive_parity_test
from skrankfair.metrics import (
    brier_score,
    calibration_error,
    matched_pair_calibration,
    ndcg,
    pairwise_accuracy,
    selection_rate,
)

RNG = np.random.default_rng(0)
QUERY = np.repeat(np.arange(150), 8)
SCORE = np.clip(RNG.normal(0.5, 0.15, 150)[QUERY] + RNG.normal(0, 0.1, 1200), 0, 1)
ROWS = {
    "y_true": (RNG.random(1200) < SCORE).astype(float),
    "y_score": SCORE,
    "sensitive_features": RNG.choice(["f", "m"], 1200),
}
WEIGHT = RNG.integers(0, 4, 1200).astype(float)


def same(result, expected):
    assert result.groups == expected.groups
    assert_array_equal(result.estimate, expected.estimate)
    assert_allclose(result.standard_error, expected.standard_error, rtol=1e-12)
    assert result.n_clusters == expected.n_clusters


@pytest.mark.parametrize("metric", [brier_score, calibration_error])
def test_rows_of_a_query_depend_on_each_other_in_metrics_of_rows(metric):
    report = audit(**ROWS, qid=QUERY, task="risk", metrics=metric.__name__)
    result = report.results[metric.__name__]
    same(result, metric(**ROWS, cluster=QUERY))
    assert result.n_clusters == report.n_clusters == 150
    users = QUERY // 3
    report = audit(
        **ROWS, qid=QUERY, cluster=users, task="risk", metrics=metric.__name__
    )
    same(report.results[metric.__name__], metric(**ROWS, cluster=users))


def test_rows_of_a_query_depend_on_each_other_in_rates_and_tests():
    decided = (SCORE > 0.5).astype(float)
    rows = {**ROWS, "y_score": decided}
    report = audit(**rows, qid=QUERY, task="decision", metrics="selection_rate")
    expected = selection_rate(**rows, cluster=QUERY)
    same(report.results["selection_rate"], expected)
    alone = selection_rate(**rows)
    assert (expected.standard_error > 1.3 * alone.standard_error).all()
    report = audit(**ROWS, qid=QUERY, task="risk")
    parity = next(s for s in report.sections if "Predictive parity" in s.title)
    test = predictive_parity_test(**ROWS, cluster=QUERY)
    assert f"(p {test.pvalue:.3f})" in parity.paragraphs[0]
    assert test.pvalue != predictive_parity_test(**ROWS).pvalue


class TestItemWeight:
    def test_pairs_count_the_product_and_rows_their_weight(self):
        query_weight = 1.0 + QUERY % 2
        weights = {"item_weight": WEIGHT, "sample_weight": query_weight}
        who = {**ROWS, "qid": QUERY, **weights}
        report = audit(**who, task="risk")
        results = report.results
        same(results["pairwise_accuracy"], pairwise_accuracy(**who))
        same(results["matched_pair_calibration"], matched_pair_calibration(**who))
        weight = WEIGHT * query_weight
        expected = brier_score(**ROWS, cluster=QUERY, sample_weight=weight)
        same(results["brier_score"], expected)
        assert report.n_rows == (WEIGHT > 0).sum()
        assert "ndcg" not in results
        assert "NDCG is left out: it weighs no items." in report.notes

    def test_weight_0_is_removal_and_whole_weights_are_repeated_items(self):
        rows = np.repeat(np.arange(1200), WEIGHT.astype(int))
        metrics = ["brier_score", "pairwise_exposure"]
        weighted = audit(**ROWS, item_weight=WEIGHT, metrics=metrics)
        repeated = audit(
            **{name: column[rows] for name, column in ROWS.items()},
            cluster=rows,
            metrics=metrics,
        )
        for name, result in weighted.results.items():
            other = repeated.results[name]
            assert_allclose(result.estimate, other.estimate, rtol=1e-12)
        alone = brier_score(**ROWS, cluster=np.arange(1200), sample_weight=WEIGHT)
        same(weighted.results["brier_score"], alone)

    def test_what_weighs_no_items_is_refused_by_name(self):
        same_columns = {**ROWS, "qid": QUERY, "item_weight": WEIGHT}
        for name, k in (("ndcg", None), ("recall_at_k", 3)):
            with pytest.raises(
                ValueError, match=f"item_weight must be None for {name}"
            ):
                audit(**same_columns, metrics=[name, "pairwise_accuracy"], k=k)
        report = audit(**ROWS, qid=QUERY, metrics="ndcg")
        assert_array_equal(
            report.results["ndcg"].estimate,
            ndcg(ROWS["y_true"], SCORE, qid=QUERY).estimate,
        )

    def test_command_line(self, tmp_path, capsys):
        path = tmp_path / "rows.csv"
        pd.DataFrame({**ROWS, "q": QUERY, "w": WEIGHT}).to_csv(path, index=False)
        call = ["audit", str(path), "--y-true", "y_true", "--y-score", "y_score"]
        call += ["--sensitive-features", "sensitive_features", "--qid", "q"]
        call += ["--metrics", "pairwise_accuracy"]
        assert main([*call, "--item-weight", "w"]) == 0
        printed = capsys.readouterr().out
        report = audit(
            **ROWS, qid=QUERY, item_weight=WEIGHT, metrics="pairwise_accuracy"
        )
        estimate = report.results["pairwise_accuracy"].estimate[0]
        assert f"{estimate:.4f}" in printed
        assert main([*call[:-1], "ndcg", "--item-weight", "w"]) == 2
        assert "item_weight must be None for ndcg" in capsys.readouterr().err
