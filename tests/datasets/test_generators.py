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


BAD = {
    make_bias_by_construction: [
        ({"n_clusters": 0}, "n_clusters must be"),
        ({"n_clusters": 2.5}, "n_clusters must be"),
        ({"b0": np.nan}, "b0 must be"),
        ({"b1": np.inf}, "b1 must be"),
        ({"alpha": 0}, "alpha must be"),
        ({"beta": -1}, "beta must be"),
        ({"rate": -0.5}, "rate must be"),
        ({"n_max": 0}, "n_max must be"),
        ({"n_max": 1.5}, "n_max must be"),
    ],
    make_biased_rankings: [
        ({"n_rankings": 0}, "n_rankings must be"),
        ({"n_items": 2.5}, "n_items must be"),
        ({"share": 1.1}, "share must be"),
        ({"share": np.nan}, "share must be"),
        ({"advantage": -0.1}, "advantage must be"),
        ({"advantage": "much"}, "advantage must be"),
    ],
    make_confounded_queries: [
        ({"n_queries": 0}, "n_queries must be an integer"),
        ({"n_items": 2.5}, "n_items must be an integer"),
        ({"bias": [1, 1]}, r"bias must be an array of shape \(2, 2\)"),
        ({"bias": [[1, 1], [1, 2.1]]}, r"bias .* numbers in \[0, 2\]"),
        ({"bias": [[1, 1], [1, np.nan]]}, r"bias .* numbers in \[0, 2\]"),
        ({"bias": "b"}, "bias must be an array"),
        ({"bias": [[1, 1], [1, 1]]}, "share must be given: no shares calibrate"),
        ({"bias": [[1.5, 1.1], [1.2, 0.7]]}, "share must be given"),
        ({"bias": [[1.1, 1.6], [0.9, 0]]}, "share must be given"),  # all of type 1
        ({"share": 0.5}, r"share must be an array of shape \(2,\)"),
        ({"share": [0.5, 1.5]}, r"share .* in \[0, 1\]"),
    ],
    make_underranked_items: [
        ({"n_queries": 0}, "n_queries must be an integer"),
        ({"n_items": 2.5}, "n_items must be an integer"),
        ({"n_signals": 0}, "n_signals must be an integer"),
        ({"share": 0}, r"share must be a number in \[1e-09, 1\)"),
        ({"share": 5e-324}, "share must be a number"),
        ({"share": 1.0}, "share must be a number"),
        ({"share": 0.4}, "gaps .* share of 0.4 can have; the nearest"),
        ({"gaps": (1, 1)}, "gaps must be three positive numbers"),
        ({"gaps": (1, 1, np.nan)}, "gaps must be three positive numbers"),
        ({"gaps": "g"}, "gaps must be three positive numbers"),
    ],
}


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (make, options, message)
        for make, cases in BAD.items()
        for options, message in [
            *cases,
            ({"random_state": "x"}, "random_state must be"),
        ]
    ],
)
def test_bad_options_are_refused(make, options, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        make(**options)
