"""Results of many groups: what would not fit into memory is refused in words."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special

from skrankfair._estimates import arrays
from skrankfair.metrics import mean_squared_error, pairwise_exposure

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def test_one_list_of_too_many_groups_is_refused(monkeypatch):
    monkeypatch.setattr(arrays, "memory_limit", lambda: 1e4)
    score, group = np.arange(100.0), np.arange(100) % 20
    message = r"pairs of each of 100 items of one list with 20 groups would take.*qid="
    with pytest.raises(ValueError, match=message):
        pairwise_exposure(None, score, sensitive_features=group)
    score, group = np.arange(200_000.0), np.arange(200_000) % 501
    message = r"at most 100,000,000; got 200,000 items x 501 groups\. Pass qid="
    with pytest.raises(ValueError, match=message):
        pairwise_exposure(None, score, sensitive_features=group)


def test_the_limit_is_half_of_the_memory(monkeypatch, tmp_path):
    arrays.memory_limit.cache_clear()
    allowed = tmp_path / "memory.max"
    monkeypatch.setattr(arrays, "_CONTAINER", (str(allowed),))
    whole = arrays.memory_limit()
    assert 1e8 < whole < 1e15
    for text, expected in (("max\n", whole), ("2000000\n", 1e6)):
        allowed.write_text(text)
        arrays.memory_limit.cache_clear()
        assert arrays.memory_limit() == expected
    arrays.memory_limit.cache_clear()


def result_of_many(n_groups=1200, n_rows=5000):
    rng = np.random.default_rng(0)
    y, g = rng.uniform(size=n_rows), rng.integers(0, n_groups, n_rows)
    g[:n_groups] = np.arange(n_groups)
    g[n_groups : 2 * n_groups] = np.arange(n_groups)
    cluster = rng.integers(0, n_rows // 2, n_rows)
    score = np.full(n_rows, 0.5)
    result = mean_squared_error(y, score, sensitive_features=g, cluster=cluster)
    # Without what rows of larger groups say of the variance of the smaller ones.
    return replace(result, metric=replace(result.metric, heavy=False, of_rest=None))


def test_results_of_many_groups_make_no_table_of_all_pairs(monkeypatch):
    result = result_of_many()
    finalize = result.metric.finalize
    some = np.concatenate([np.arange(1200), np.full(1200, 7), [0]])
    other = np.concatenate([np.arange(1200), np.arange(1200), [1]])
    between = result.sums.covariances(finalize, some, other)
    variances, with_seven = np.split(between[:-1], 2)
    monkeypatch.setattr(arrays, "memory_limit", lambda: 2e7)
    contrast = result.contrast(0, 1)
    variance = variances[0] + variances[1] - 2 * between[-1]
    assert_allclose(contrast.standard_error, np.sqrt(variance), rtol=1e-10)
    frame = result.contrasts(reference=7)
    assert len(frame) == 1199
    others = np.delete(np.arange(1200), 7)
    variance = variances[others] + variances[7] - 2 * with_seven[others]
    assert_allclose(frame["standard_error"], np.sqrt(variance), rtol=1e-9)
    low, high = result.simultaneous_interval()
    # Of independent estimates the quantile has a closed form.
    level = (1 + 0.95 ** (1 / np.isfinite(result.standard_error).sum())) / 2
    reach = special.stdtrit(result.df, level)
    # Losses have it on the scale of the logarithm.
    width = 2 * reach * result.standard_error / result.estimate
    near = width < 100
    assert near.sum() > 800
    assert_allclose(np.log(high[near]) - np.log(low[near]), width[near], rtol=1e-3)
    assert result.disparity_bound() >= result.disparity()


def test_contrasts_of_too_many_pairs_are_refused(monkeypatch):
    monkeypatch.setattr(arrays, "memory_limit", lambda: 1e8)
    with pytest.raises(ValueError, match="all pairs of 1200 groups would take.*pass a"):
        result_of_many().contrasts()
