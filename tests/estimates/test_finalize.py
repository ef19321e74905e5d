"""Functions of column totals: their slopes by a complex step."""

import numpy as np
import pytest

from skrankfair._estimates.finalize import OfTotals, slopes_at
from tests.estimates.naive import METRICS, design


@pytest.mark.parametrize("scale", [1.0, 1e-100, 1e100])
@pytest.mark.parametrize("metric", METRICS)
def test_slopes_against_differences(metric, scale):
    finalize, (by_group, shared) = METRICS[metric], design().totals()
    homogeneous = {"ratio": 0, "rest": 0, "squared": 2}
    if scale != 1 and metric not in homogeneous:
        pytest.skip("is not homogeneous")
    # A complex step does not round, whatever the scale.
    slopes = slopes_at(finalize, scale * by_group[None], scale * shared[None])[0]
    slopes /= scale ** (homogeneous.get(metric, 1) - 1)
    totals = np.hstack([by_group, np.tile(shared, (len(by_group), 1))])
    for column, total in enumerate(totals.T):
        step, ends = 1e-5 * np.abs(total).max(), []
        for sign in (1, -1):
            moved = totals.copy()
            moved[:, column] += sign * step
            ends.append(np.array([finalize(x[None, :4], x[4:])[0] for x in moved]))
        expected = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(slopes[:, column], expected, rtol=1e-6, atol=1e-8)


def test_functions_of_a_user_have_slopes_by_differences():
    def of_user(totals):
        if np.iscomplexobj(totals):
            raise TypeError("only real numbers")
        return np.abs(totals[..., 0]) / totals[..., 1]

    by_group, shared = design(n_shared=0).totals()
    finalize = OfTotals(of_user, "mine", counted=False)
    slopes, expected = (
        slopes_at(f, by_group[None], shared[None]) for f in (finalize, METRICS["ratio"])
    )
    np.testing.assert_allclose(slopes, expected, rtol=1e-9, atol=1e-12)
