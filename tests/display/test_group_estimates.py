"""The forest plot draws what it is given, and labels are data."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import same_color

from skrankfair.display import GroupEstimatesDisplay
from skrankfair.display._style import BETTER, DIFFERENT, UNCLEAR, WORSE
from skrankfair.metrics import (
    matched_pair_calibration,
    ndcg,
    pairwise_accuracy,
    pairwise_exposure,
    selection_rate,
)


def data(n_queries=100, seed=0):
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(n_queries), 10)
    group = rng.choice(["f", "m"], size=query.size)
    quality = rng.normal(size=query.size)
    clicked = quality + rng.normal(size=query.size) > 0
    score = quality - 1.0 * (group == "f")
    return clicked, score, {"sensitive_features": group, "qid": query}


def labels(display):
    return [label.get_text() for label in display.ax_.get_yticklabels()]


def colors(artists):
    return [mpl.colors.to_hex(artist.get_color()).upper() for artist in artists]


def drawn(**changes):
    options = {
        "groups": ["a", "b", "c", "d"],
        "estimate": [0.1, 0.5, np.nan, 0.3],
        "ci_low": [0.0, 0.4, np.nan, np.nan],
        "ci_high": [0.2, 0.6, np.nan, np.nan],
        "pvalue": [0.01, 0.6, np.nan, np.nan],
        "fair_value": 0.45,
        "name": "x",
    }
    return GroupEstimatesDisplay(**{**options, **changes})


class TestFromEstimates:
    def test_draws_the_numbers_of_the_result(self):
        y, s, who = data()
        result = pairwise_exposure(y, s, **who)
        display = GroupEstimatesDisplay.from_estimates(result, sort=None)
        low, high = result.confidence_interval()
        assert labels(display) == ["f", "m"]
        for i in range(2):
            assert display.points_[i].get_xdata() == [result.estimate[i]]
            np.testing.assert_array_equal(
                display.intervals_[i].get_xdata(), [low[i], high[i]]
            )
        assert list(display.fair_line_.get_xdata()) == [0.5, 0.5]

    def test_level_reaches_the_intervals(self):
        y, s, who = data()
        result = pairwise_exposure(y, s, **who)
        display = GroupEstimatesDisplay.from_estimates(
            result, sort=None, confidence_level=0.5
        )
        low, high = result.confidence_interval(0.5)
        assert list(display.intervals_[0].get_xdata()) == [low[0], high[0]]

    def test_equality_is_no_line_but_has_colours(self):
        y, s, who = data()
        result = pairwise_accuracy(y, s, comparison="inter", **who)
        display = GroupEstimatesDisplay.from_estimates(result, sort=None)
        assert display.fair_line_ is None
        assert colors(display.points_) == [WORSE, BETTER]

    def test_undervalued_is_worse(self):
        y, s, who = data(400)
        result = matched_pair_calibration(y, s, n_pairs=2000, **who)
        display = GroupEstimatesDisplay.from_estimates(result, sort=None)
        assert result.estimate[0] > 0
        assert colors(display.points_) == [WORSE, BETTER]

    def test_nobody_knows_which_side_of_a_rate_is_bad(self):
        y, s, who = data(400)
        who = who["sensitive_features"]
        result = selection_rate(y, s > 0, sensitive_features=who)
        display = GroupEstimatesDisplay.from_estimates(result, sort=None)
        assert colors(display.points_) == [DIFFERENT, DIFFERENT]
        texts = [text.get_text() for text in display.legend_.get_texts()]
        assert texts == ["lower, corrected p < 0.05", "higher, corrected p < 0.05"]
        markers = [point.get_marker() for point in display.points_]
        assert sorted(markers) == ["^", "v"]
        assert markers[int(np.argmin(result.estimate))] == "v"
        told = GroupEstimatesDisplay.from_estimates(result, sort=None, worse="below")
        assert colors(told.points_) == [WORSE, BETTER]

    def test_pvalues_are_corrected_for_the_number_of_groups(self):
        rng = np.random.default_rng(2)
        group, y = rng.integers(0, 20, 4000), rng.integers(0, 2, 4000)
        result = selection_rate(y, y, sensitive_features=group)
        assert (result.to_frame()["pvalue"] < 0.05).any()
        display = GroupEstimatesDisplay.from_estimates(result)
        assert set(colors(display.points_)) == {UNCLEAR}

    def test_a_metric_without_test_is_grey(self):
        y, s, who = data()
        display = GroupEstimatesDisplay.from_estimates(ndcg(y, s, qid=who["qid"]))
        assert labels(display) == ["all"]
        assert colors(display.points_) == [UNCLEAR]
        assert display.legend_ is None


class TestPlot:
    def test_sorts_by_estimate_with_missing_last(self):
        assert labels(drawn().plot()) == ["b", "d", "a", "c"]
        assert labels(drawn().plot(sort=None)) == ["a", "b", "c", "d"]

    def test_no_estimate_is_no_point_and_never_zero(self):
        display = drawn().plot()
        assert len(display.points_) == 3
        (missing,) = display.missing_
        assert missing.get_text() == "no data"
        assert missing.get_position()[1] == 3
        assert 0.0 not in [point.get_xdata()[0] for point in display.points_]

    def test_no_error_is_an_open_point_without_interval(self):
        display = drawn().plot(sort=None)
        assert len(display.intervals_) == 2
        assert same_color(display.points_[2].get_markerfacecolor(), "white")
        assert display.points_[0].get_markerfacecolor() == WORSE

    def test_colours_by_pvalue_and_side(self):
        display = drawn().plot(sort=None)
        assert colors(display.points_) == [WORSE, UNCLEAR, UNCLEAR]
        display = drawn(worse="above").plot(sort=None)
        assert colors(display.points_) == [BETTER, UNCLEAR, UNCLEAR]
        display = drawn(confidence_level=0.995).plot(sort=None)
        assert colors(display.points_) == [UNCLEAR] * 3
        display = drawn(pvalue=None).plot(sort=None)
        assert colors(display.points_) == [UNCLEAR] * 3

    def test_difference_says_the_side(self):
        display = drawn(fair_value=None, difference=[0.2, 0, np.nan, 0]).plot(sort=None)
        assert colors(display.points_)[0] == BETTER
        assert display.fair_line_ is None

    def test_legend_names_the_colours_that_are_there(self):
        legend = drawn().plot().legend_
        texts = [text.get_text() for text in legend.get_texts()]
        assert texts == ["worse off, p < 0.05", "no difference shown"]

    def test_all_missing(self):
        nothing = [np.nan] * 2
        display = GroupEstimatesDisplay(["a", "b"], nothing, nothing, nothing).plot()
        assert len(display.missing_) == 2
        assert display.points_ == []
        display.figure_.canvas.draw()

    def test_height_follows_the_groups(self):
        def height(n):
            values = np.linspace(0, 1, n)
            display = GroupEstimatesDisplay(range(n), values, values, values)
            return display.plot().figure_.get_figheight()

        assert height(40) > 4 * height(2)
        assert height(1) == height(2)

    def test_plots_again(self):
        display = drawn()
        first = display.plot().figure_
        assert display.plot().figure_ is not first

    @pytest.mark.parametrize(
        ("change", "name"),
        [
            ({"worse": "left"}, "worse"),
            ({"confidence_level": 1.0}, "confidence_level"),
        ],
    )
    def test_bad_options(self, change, name):
        with pytest.raises(ValueError, match=name):
            drawn(**change).plot()

    def test_bad_sort(self):
        with pytest.raises(ValueError, match="sort must be one of"):
            drawn().plot(sort="name")


class TestLabels:
    @pytest.mark.parametrize(
        "label", ["$x^2$", r"$\frac{1}{", "a_b^c", "<b>&", "50 % {x}"]
    )
    def test_are_data(self, label):
        display = drawn(groups=[label, "b", "c", "d"], name=label).plot(sort=None)
        assert labels(display)[0] == label
        assert display.ax_.get_xlabel() == label
        display.figure_.canvas.draw()

    def test_long_ones_are_cut(self):
        text = labels(drawn(groups=["y" * 99, "b", "c", "d"]).plot())[2]
        assert 20 < len(text) <= 40
        assert "…" in text
