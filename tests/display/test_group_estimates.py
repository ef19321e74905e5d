"""The forest plot draws what it is given."""

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
from tests.display.pictures import forest

from_estimates = GroupEstimatesDisplay.from_estimates


def data(n_queries=100):
    rng = np.random.default_rng(0)
    query = np.repeat(np.arange(n_queries), 10)
    group = rng.choice(["f", "m"], size=query.size)
    quality = rng.normal(size=query.size)
    clicked = quality + rng.normal(size=query.size) > 0
    score = quality - 1.0 * (group == "f")
    return clicked, score, {"sensitive_features": group, "qid": query}


def labels(display):
    return [label.get_text() for label in display.ax_.get_yticklabels()]


def colors(display):
    return [mpl.colors.to_hex(p.get_color()).upper() for p in display.points_]


def words(display):
    return [text.get_text() for text in display.legend_.get_texts()]


def drawn(**changes):
    sort = changes.pop("sort", None)
    options = {
        "groups": ["a", "b", "c", "d"],
        "estimate": [0.1, 0.5, np.nan, 0.3],
        "ci_low": [0.0, 0.4, np.nan, np.nan],
        "ci_high": [0.2, 0.6, np.nan, np.nan],
        "pvalue": [0.01, 0.6, np.nan, np.nan],
        "fair_value": 0.45,
        "name": "x",
    }
    return GroupEstimatesDisplay(**{**options, **changes}).plot(sort=sort)


class TestFromEstimates:
    @pytest.mark.parametrize("level", [0.95, 0.5])
    def test_draws_the_numbers_of_the_result(self, level):
        y, s, who = data()
        result = pairwise_exposure(y, s, **who)
        display = from_estimates(result, sort=None, confidence_level=level)
        assert labels(display) == ["f", "m"]
        points = [point.get_xdata()[0] for point in display.points_]
        np.testing.assert_array_equal(points, result.estimate)
        ends = np.transpose([line.get_xdata() for line in display.intervals_])
        np.testing.assert_array_equal(ends, result.confidence_interval(level))
        assert list(display.fair_line_.get_xdata()) == [0.5, 0.5]

    def test_it_is_known_of_metrics_which_side_is_worse(self):
        y, s, who = data(400)
        display = from_estimates(pairwise_accuracy(y, s, comparison="inter", **who))
        assert display.fair_line_ is None  # fair is the value of the rest
        assert colors(display) == [BETTER, WORSE]
        result = matched_pair_calibration(y, s, n_pairs=2000, **who)
        assert result.estimate[0] > 0  # undervalued
        assert colors(from_estimates(result)) == [WORSE, BETTER]

    def test_nobody_knows_which_side_of_a_rate_is_bad(self):
        y, s, who = data(400)
        result = selection_rate(y, s > 0, sensitive_features=who["sensitive_features"])
        display = from_estimates(result)
        assert colors(display) == [DIFFERENT, DIFFERENT]
        assert words(display) == [
            "lower, corrected p < 0.05",
            "higher, corrected p < 0.05",
        ]
        assert [point.get_marker() for point in display.points_] == ["^", "v"]
        assert colors(from_estimates(result, worse="below")) == [BETTER, WORSE]

    def test_pvalues_are_corrected_for_the_number_of_groups(self):
        rng = np.random.default_rng(2)
        group, y = rng.integers(0, 20, 4000), rng.integers(0, 2, 4000)
        result = selection_rate(y, y, sensitive_features=group)
        assert (result.to_frame()["pvalue"] < 0.05).any()
        assert set(colors(from_estimates(result))) == {UNCLEAR}

    def test_a_metric_without_test_is_grey(self):
        y, s, who = data()
        display = from_estimates(ndcg(y, s, qid=who["qid"]))
        assert colors(display) == [UNCLEAR]
        assert display.legend_ is None


class TestPlot:
    def test_sorts_by_estimate_with_missing_last(self):
        assert labels(drawn(sort="estimate")) == ["b", "d", "a", "c"]
        assert labels(drawn()) == ["a", "b", "c", "d"]

    def test_no_estimate_is_no_point_and_no_error_an_open_one(self):
        display = drawn()
        assert [point.get_xdata()[0] for point in display.points_] == [0.1, 0.5, 0.3]
        (missing,) = display.missing_
        assert missing.get_text() == "no data"
        assert missing.get_position()[1] == 2
        assert len(display.intervals_) == 2
        assert same_color(display.points_[2].get_markerfacecolor(), "white")
        assert display.points_[0].get_markerfacecolor() == WORSE

    @pytest.mark.parametrize(
        ("changes", "color"),
        [
            ({}, WORSE),
            ({"worse": "above"}, BETTER),
            ({"confidence_level": 0.995}, UNCLEAR),
            ({"pvalue": None}, UNCLEAR),
            ({"fair_value": None, "difference": [0.2, 0, np.nan, 0]}, BETTER),
        ],
    )
    def test_colours_are_by_pvalue_and_side(self, changes, color):
        assert colors(drawn(**changes)) == [color, UNCLEAR, UNCLEAR]

    def test_legend_names_the_colours_that_are_there(self):
        assert words(drawn()) == ["worse off, p < 0.05", "no difference shown"]

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({}, ["worse off, p < 0.05", "better off, p < 0.05"]),
            ({"worse": "above"}, ["better off, p < 0.05", "worse off, p < 0.05"]),
            ({"worse": None}, ["lower, p < 0.05", "higher, p < 0.05"]),
            (
                {"sides": ("bad", "good"), "pvalue_name": "q"},
                ["bad, q < 0.05", "good, q < 0.05"],
            ),
        ],
    )
    def test_words_of_the_sides(self, options, expected):
        assert words(forest("ab", pvalue=[0.01, 0.01], **options).plot()) == expected

    def test_all_missing(self):
        nothing = [np.nan] * 4
        display = drawn(estimate=nothing, ci_low=nothing, ci_high=nothing)
        assert len(display.missing_) == 4
        assert display.points_ == []

    def test_height_follows_the_groups(self):
        heights = [forest(range(n)).plot().figure_.get_figheight() for n in (1, 2, 40)]
        assert heights[2] > 4 * heights[1]
        assert heights[0] == heights[1]

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"worse": "left"}, "worse"),
            ({"confidence_level": 1.0}, "confidence_level"),
            ({"sort": "name"}, "sort must be one of"),
        ],
    )
    def test_bad_options(self, change, message):
        with pytest.raises(ValueError, match=message):
            drawn(**change)
