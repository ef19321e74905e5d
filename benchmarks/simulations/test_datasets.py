"""Simulated data: what the papers say of them, and their true errors."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import f as f_distribution

from benchmarks.simulations.common import slices, tolerance
from skrankfair.datasets import make_bias_by_construction, make_confounded_queries
from skrankfair.inference import compare
from skrankfair.metrics import matched_pair_calibration, ndcg

pytestmark = pytest.mark.simulation


def calibration_test(residual, group, score, n_bins=5):
    """Return p-values of E[y - s | bin of s, group] = 0 by Hotelling's T² of queries.

    `residual`, `group` and `score` have shape (replications, queries, items).
    """
    cell = (group - 1) * n_bins + np.minimum((score * n_bins).astype(int), n_bins - 1)
    size = 2 * n_bins
    n_replications, n_queries, _ = cell.shape
    query = np.arange(n_replications * n_queries).reshape(n_replications, -1, 1)
    key = (query * size + cell).ravel()
    sums = np.bincount(key, residual.ravel(), minlength=query.size * size)
    pvalues = []
    for rows in sums.reshape(n_replications, n_queries, size):
        t2 = n_queries * rows.mean(0) @ np.linalg.solve(np.cov(rows.T), rows.mean(0))
        scaled = t2 * (n_queries - size) / (size * (n_queries - 1))
        pvalues.append(f_distribution.sf(scaled, size, n_queries - size))
    return np.array(pvalues)


def matched(data, boost=0.0, **options):
    """Return matched pair calibration with a boost of the first type of items."""
    score = data.y_score + boost * (data.sensitive_features == 1)
    who = {"sensitive_features": data.sensitive_features, "qid": data.qid}
    return matched_pair_calibration(data.y_true, score, **who, **options)


def test_calibration_by_type_finds_nothing_and_matched_pairs_do():
    data = make_confounded_queries(200_000, random_state=0)
    n_queries, n_replications = 500, 400
    shape = (n_replications, n_queries, 10)
    columns = (data.y_true - data.y_score, data.sensitive_features, data.y_score)
    residual, group, score = (column.reshape(shape) for column in columns)
    rejects = (calibration_test(residual, group, score) < 0.05).mean()
    assert abs(rejects - 0.05) < tolerance(0.05, n_replications)
    # Where the query type is seen, the same test finds it.
    in_u = (data.query_type == "u").reshape(shape)
    assert (calibration_test(residual * in_u, group, score) < 0.05).mean() > 0.95
    starts = np.arange(0, 200_001, n_queries)
    # On both sides, so that a fair ranker has no difference either (below).
    result = matched(data, epsilon=0.1, direction="both")
    pvalues = np.array([part.pvalue for part in slices(result, starts)])
    assert (pvalues < 0.05).mean() > 0.9
    assert result.estimate[0] > 0


def test_of_a_fair_ranker_matched_pairs_find_nothing():
    fair = make_confounded_queries(
        200_000, bias=((1.3, 1.3), (0.8, 0.8)), share=(1 / 7, 5 / 7), random_state=0
    )
    result = matched(fair, epsilon=0.1, direction="both")
    pvalues = [part.pvalue[0] for part in slices(result, np.arange(0, 200_001, 500))]
    assert abs(np.mean(np.array(pvalues) < 0.05) - 0.05) < tolerance(0.05, 400)
    assert result.pvalue[0] > 0.01


def test_theorem_1_boosting_type_1_pays_until_it_is_fair():
    data = make_confounded_queries(100_000, random_state=1)
    grid = np.arange(0, 0.15, 0.02)
    results = [matched(data, boost, epsilon=0.02) for boost in grid]
    value = np.array([r.estimate[0] for r in results])
    errors = np.array([r.standard_error[0] for r in results])
    assert (np.diff(value) < 0).all()

    def worth(y, boost):
        boosted = data.y_score + boost * (data.sensitive_features == 1)
        return ndcg(y, boosted, qid=data.qid)

    steps = pairwise(worth(data.expected, boost) for boost in grid)
    gains = [compare(b, a).confidence_interval() for a, b in steps]
    # While the group is undervalued after the step too, the step pays; and once it is
    # overvalued before the step, it costs.
    still = np.flatnonzero(value[1:] > 4 * errors[1:])
    past = np.flatnonzero(value[:-1] < -4 * errors[:-1])
    assert still.size >= 2
    assert past.size >= 2
    assert all(gains[step].low[0] > 0 for step in still)
    assert all(gains[step].high[0] < 0 for step in past)
    # Relevance as it was drawn says the same of the boost as a whole.
    drawn = compare(worth(data.y_true, 0.06), worth(data.y_true, 0))
    assert drawn.confidence_interval().low[0] > 0


@pytest.mark.parametrize("by_row", [False, True])
def test_error_of_dependent_rows_by_simulation(by_row):
    """Means of the expected outcome within narrow bins, from many rows."""
    data = make_bias_by_construction(
        400_000, b0=1.0, b1=1.0, rate=3.0, n_max=6, random_state=1
    )
    sizes = np.bincount(data.cluster)[data.cluster]
    weight = np.ones(sizes.size) if by_row else 1 / sizes
    place = (data.y_score * 400).astype(int)
    mass = np.bincount(place, weight)
    there = mass > 0
    mean = np.bincount(place, weight * data.expected)[there] / mass[there]
    score = np.bincount(place, weight * data.y_score)[there] / mass[there]
    error = np.sqrt(np.average((score - mean) ** 2, weights=mass[there]))
    expected = data.true_error_by_row if by_row else data.true_error
    assert error == pytest.approx(expected, rel=0.01)
    assert data.true_error > 1.1 * data.true_error_by_row
