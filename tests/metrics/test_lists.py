"""Lists are measured part by part: what is in which part changes nothing."""

import numpy as np
import pytest

from skrankfair.metrics import _lists
from tests.calls import OF_LISTS
from tests.metrics.common import (
    CASES,
    DATA,
    assert_identical,
    with_clusters,
    with_weights,
)
from tests.seeds import one_in

OF_MEAN_SHARES = {"average": "representation"}
PARITY = {name: case for name, case in CASES.items() if case.metric in OF_LISTS}

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.UndefinedMetricWarning"
)


@one_in(2, case=PARITY, make=DATA, rows={"one row": 1, "17 rows": 17})
def test_parts_are_the_whole(case, make, rows, monkeypatch):
    plain = make()
    one_length = plain.but(q=np.arange(plain.y.size) // 10)
    problems = [
        (plain, {}),
        (with_clusters(with_weights(plain)), {}),
        (plain.but(s=np.random.default_rng(0).permutation(plain.y.size)), {}),
        (one_length, OF_MEAN_SHARES),
    ]
    whole = [case(c, **options) for c, options in problems]
    how = {"method": "permutation", "n_resamples": 9, "random_state": 0}
    tested = [r.test(**how) for r in whole]
    monkeypatch.setattr(_lists, "_PART", rows)
    for (c, options), expected, shuffled in zip(problems, whole, tested, strict=True):
        r = case(c, **options)
        assert_identical(r, expected)
        drawn = r.test(**how).null_distribution
        np.testing.assert_array_equal(drawn, shuffled.null_distribution)
