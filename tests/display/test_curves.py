"""Curves of groups over thresholds and places show the numbers of their results."""

import numpy as np
import pytest

from skrankfair.datasets import make_biased_rankings
from skrankfair.inference import monotonicity_test
from skrankfair.metrics import matched_pair_curve
from tests.display.pictures import ends_of, legend, matched, monotonicity
from tests.metrics.common import columns


@pytest.fixture(name="curve", scope="module")
def _curve():
    return matched_pair_curve(**columns(n_queries=300), epsilon=[0.05, 0.1, 0.4, 0.9])


class TestMatchedPairs:
    def test_a_line_and_a_band_per_group(self, curve):
        display = curve.plot(confidence_level=0.9)
        low, high = curve.confidence_interval(0.9)
        assert len(display.lines_) == len(display.bands_) == 3
        for i, (line, band) in enumerate(
            zip(display.lines_, display.bands_, strict=True)
        ):
            np.testing.assert_array_equal(line.get_xdata(), curve.epsilon)
            np.testing.assert_array_equal(line.get_ydata(), curve.estimate[:, i])
            np.testing.assert_allclose(ends_of(band), [low[:, i], high[:, i]])
        assert legend(display) == ["a", "b", "c", "90% interval"]
        assert set(display.fair_line_.get_ydata()) == {0}

    def test_some_groups_in_their_order(self, curve):
        display = curve.plot(groups=["c", "a"])
        assert legend(display)[:2] == ["c", "a"]
        drawn = display.lines_[0].get_ydata()
        np.testing.assert_array_equal(drawn, curve.estimate[:, 2])
        with pytest.raises(ValueError, match="groups must be one of 'a', 'b', 'c'"):
            curve.plot(groups=["d"])
        with pytest.raises(ValueError, match="confidence_level must be"):
            curve.plot(confidence_level=2)

    def test_wide_grids_are_logarithmic(self):
        display = matched("ab")
        for lowest, scale in ((0.1, "linear"), (0.01, "log"), (0.0, "linear")):
            display.curve.epsilon = np.linspace(lowest, 0.5, 12)
            assert display.plot().ax_.get_xscale() == scale


def drawn(**changes):
    options = {
        "position": np.arange(1, 4),
        "share": np.array([0.1, 0.9, 0.2]),
        "fit": np.array([0.1, 0.5, 0.5]),
        "band_low": np.array([0.0, 0.4, 0.15]),
        "band_high": np.array([0.2, 0.6, 0.6]),
    }
    return monotonicity(**{**options, **changes}).plot()


class TestMonotonicity:
    def test_draws_the_numbers_of_the_test(self):
        data = make_biased_rankings(80, 8, 0.5, 0.6, random_state=0)
        who = {"sensitive_features": data.sensitive_features, "qid": data.qid}
        asked = {"group": "protected", "random_state": 0, "confidence_level": 0.975}
        result = monotonicity_test(data.y_score, **who, **asked)
        display = result.plot()
        np.testing.assert_array_equal(display.fit_.get_ydata(), result.fit)
        places = np.concatenate([line.get_xdata() for line in display.shares_])
        shares = np.concatenate([line.get_ydata() for line in display.shares_])
        np.testing.assert_array_equal(shares[np.argsort(places)], result.share)
        assert ends_of(display.band_)[1].max() == result.band_high.max()
        assert display.group_share_.get_ydata()[0] == result.group_share
        assert display.verdict_.get_text() == f"monotone: p = {result.pvalue:.3f}"
        assert display.ax_.get_ylabel() == "share of protected"
        assert "97.5% band of the fit" in legend(display)

    def test_marks_shares_outside_the_band(self):
        inside, outside = drawn().shares_
        assert inside.get_xdata().tolist() == [1, 3]
        assert outside.get_xdata().tolist() == [2]
        assert inside.get_color() != outside.get_color()
        nothing = np.full(3, np.nan)
        without = drawn(band_low=nothing, band_high=nothing)
        assert without.band_ is None
        assert len(without.shares_) == 1

    @pytest.mark.parametrize(
        ("pvalue", "words"),
        [
            (0.01, "not monotone: p = 0.010"),
            (1e-9, "not monotone: p < 0.001"),
            (np.nan, "no verdict"),
        ],
    )
    def test_verdict(self, pvalue, words):
        display = drawn(pvalue=pvalue)
        assert display.verdict_.get_text() == words
        assert display.plot(legend=False).verdict_.get_text() == words
