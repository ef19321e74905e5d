"""Rankings with an advantage: their law, and the exact share at every position."""

import numpy as np
import pytest

from skrankfair.datasets import make_biased_rankings


def protected(data):
    return data.sensitive_features.reshape(-1, data.position_share.size) == "protected"


@pytest.mark.parametrize("advantage", [0.0, 0.1, 0.35, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.8, 1.0])
def test_position_share_is_exact(share, advantage):
    n_rankings, n = 4000, 20
    data = make_biased_rankings(n_rankings, n, share, advantage, random_state=1)
    member = protected(data)
    assert (member.sum(axis=1) == data.n_protected).all()
    assert data.n_protected == round(share * n)
    assert data.position_share.sum() == pytest.approx(data.n_protected, abs=1e-9)
    expected = data.position_share
    error = np.sqrt(expected * (1 - expected) / n_rankings)
    # Twenty positions: five standard errors, and none where there is no chance.
    assert (np.abs(member.mean(axis=0) - expected) <= 5 * error + 1e-12).all()


def test_is_filled_from_the_top():
    # The law, item by item, from the same draws.
    rng = np.random.default_rng(3)
    draws = rng.random((50, 15)) < 0.4
    data = make_biased_rankings(50, 15, 0.3, 0.4, random_state=3)
    for row, found in zip(draws, protected(data), strict=True):
        left = {True: data.n_protected, False: 15 - data.n_protected}
        for drawn, taken in zip(row, found, strict=True):
            wanted = bool(drawn) if left[True] and left[False] else left[True] > 0
            assert taken == wanted
            left[wanted] -= 1


def test_columns():
    data = make_biased_rankings(3, 4, 0.5, 1.0)
    assert data.y_score.tolist() == [4, 3, 2, 1] * 3
    assert data.qid.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    groups = ["protected", "protected", "other", "other"]
    assert data.sensitive_features.tolist() == groups * 3
    assert "3 rankings of 4 items, 2 of them protected" in data.DESCR
