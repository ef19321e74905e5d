"""All data that are drawn: the seed decides, and bad options are refused."""

import numpy as np
import pytest

from skrankfair.datasets import (
    make_bias_by_construction,
    make_biased_rankings,
    make_confounded_queries,
    make_underranked_items,
)

SMALL = {
    make_bias_by_construction: {"n_clusters": 50, "rate": 1.0},
    make_biased_rankings: {"n_rankings": 9, "n_items": 30, "share": 0.3},
    make_confounded_queries: {"n_queries": 50},
    make_underranked_items: {"n_queries": 50},
}


@pytest.mark.parametrize("make", SMALL, ids=lambda make: make.__name__)
def test_the_seed_decides(make):
    seeds = (1, 1, np.random.default_rng(1), 2)
    first, *same, other = (make(**SMALL[make], random_state=seed) for seed in seeds)
    columns = [name for name in first if isinstance(first[name], np.ndarray)]
    assert "y_score" in columns
    for name in columns:
        for data in same:
            np.testing.assert_array_equal(first[name], data[name])
    assert not all(np.array_equal(first[name], other[name]) for name in columns)


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (make_bias_by_construction, {"n_clusters": 2.5}, "n_clusters must be"),
        (make_bias_by_construction, {"b0": np.nan}, "b0 must be"),
        (make_bias_by_construction, {"alpha": 0}, "alpha must be"),
        (make_bias_by_construction, {"link": "log"}, "link must be"),
        (make_bias_by_construction, {"rate": -0.5}, "rate must be"),
        (make_bias_by_construction, {"n_max": 1.5}, "n_max must be"),
        (make_biased_rankings, {"n_rankings": 0}, "n_rankings must be"),
        (make_biased_rankings, {"share": np.nan}, "share must be"),
        (make_biased_rankings, {"advantage": "much"}, "advantage must be"),
        (make_confounded_queries, {"n_queries": 0}, "n_queries must be"),
        (make_confounded_queries, {"bias": [1, 1]}, r"bias .* of shape \(2, 2\)"),
        (make_confounded_queries, {"bias": "b"}, "bias must be an array"),
        (make_confounded_queries, {"bias": [[1, 1], [1, 1]]}, "share must be given"),
        (make_confounded_queries, {"bias": [[1.1, 1.6], [0.9, 0]]}, "share must be"),
        (make_confounded_queries, {"share": [0.5, 1.5]}, r"share .* in \[0, 1\]"),
        (make_underranked_items, {"n_items": 2.5}, "n_items must be"),
        (make_underranked_items, {"share": 5e-324}, r"share .* in \[1e-09, 1\)"),
        (make_underranked_items, {"share": 0.4}, "gaps .* share of 0.4 can have"),
        (make_underranked_items, {"gaps": (1, 1)}, "gaps must be three numbers"),
        (make_underranked_items, {"gaps": (1, 1, np.nan)}, "gaps must be a number"),
        *((make, {"random_state": "x"}, "random_state must be") for make in SMALL),
    ],
)
def test_bad_options_are_refused(make, options, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        make(**options)
