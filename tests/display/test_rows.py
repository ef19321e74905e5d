"""Rows of groups and of moments show the numbers of their results."""

import matplotlib as mpl
import numpy as np
import pytest

from skrankfair import metrics
from skrankfair.display import GroupEstimatesDisplay
from skrankfair.display._style import BETTER, DIFFERENT, UNCLEAR, WORSE
from skrankfair.inference import marginal_outcome_test, outcome_inequality_test
from tests.display.pictures import forest, inequality, legend, marginal, outcomes_of
from tests.metrics.common import columns
from tests.reports.common import data

from_estimates = GroupEstimatesDisplay.from_estimates


def labels(display):
    return [label.get_text() for label in display.ax_.get_yticklabels()]


def values(display):
    return [point.get_xdata()[0] for point in display.points_]


def colors(display):
    return [mpl.colors.to_hex(p.get_color()).upper() for p in display.points_]


def ends(display):
    return np.transpose([line.get_xdata() for line in display.intervals_])


def drawn(sort=None, **changes):
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
        result = metrics.pairwise_exposure(**data())
        display = from_estimates(result, sort=None, confidence_level=level)
        assert labels(display) == ["f", "m"]
        np.testing.assert_array_equal(values(display), result.estimate)
        np.testing.assert_array_equal(ends(display), result.confidence_interval(level))
        assert list(display.fair_line_.get_xdata()) == [0.5, 0.5]

    def test_it_is_known_of_metrics_which_side_is_worse(self):
        ranked = data(n_queries=400, bias=1.0)
        result = metrics.pairwise_accuracy(**ranked, comparison="inter")
        display = from_estimates(result)
        assert display.name == "inter-group pairwise accuracy"
        assert display.fair_line_ is None  # fair is the value of the rest
        assert colors(display) == [BETTER, WORSE]
        result = metrics.matched_pair_calibration(**ranked, n_pairs=2000)
        assert result.estimate[0] > 0  # undervalued
        assert colors(from_estimates(result)) == [WORSE, BETTER]

    def test_nobody_knows_which_side_of_a_rate_is_bad(self):
        ranked = data(n_queries=400, bias=1.0)
        groups = {"sensitive_features": ranked["sensitive_features"]}
        result = metrics.selection_rate(None, ranked["y_score"] > 0, **groups)
        display = from_estimates(result)
        assert colors(display) == [DIFFERENT, DIFFERENT]
        sides = [f"{side}, corrected p < 0.05" for side in ("lower", "higher")]
        assert legend(display) == sides
        assert [point.get_marker() for point in display.points_] == ["^", "v"]
        assert colors(from_estimates(result, worse="below")) == [BETTER, WORSE]

    def test_pvalues_are_corrected_for_the_number_of_groups(self):
        rng = np.random.default_rng(2)
        group, y = rng.integers(0, 20, 4000), rng.integers(0, 2, 4000)
        result = metrics.selection_rate(y, y, sensitive_features=group)
        assert (result.to_frame()["pvalue"] < 0.05).any()
        assert set(colors(from_estimates(result))) == {UNCLEAR}

    def test_a_metric_without_test_is_grey(self):
        display = from_estimates(metrics.ndcg(**{**data(), "sensitive_features": None}))
        assert colors(display) == [UNCLEAR]
        assert display.legend_ is None


class TestPlot:
    def test_labels_have_counts_if_asked_for(self):
        groups = ["f" * 99] * 1500 + ["m"] * 20
        rate = metrics.selection_rate(None, [0, 1] * 760, sensitive_features=groups)
        names = labels(rate.plot(counts=True, sort=None))
        assert [name.partition(" ")[2] for name in names] == ["(1,500)", "(20)"]

    def test_sorts_by_estimate_with_missing_last(self):
        assert labels(drawn(sort="estimate")) == ["b", "d", "a", "c"]
        assert labels(drawn()) == ["a", "b", "c", "d"]

    def test_no_estimate_is_no_point_and_no_error_an_open_one(self):
        display = drawn()
        assert values(display) == [0.1, 0.5, 0.3]
        (missing,) = display.missing_
        assert missing.get_text() == "no data"
        assert missing.get_position()[1] == 2
        assert len(display.intervals_) == 2
        full, _, hollow = (point.get_markerfacecolor() for point in display.points_)
        assert (full, mpl.colors.to_hex(hollow)) == (WORSE, "#ffffff")
        nothing = [np.nan] * 4
        display = drawn(estimate=nothing, ci_low=nothing, ci_high=nothing)
        assert (len(display.missing_), display.points_) == (4, [])

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

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({}, ["worse off, p < 0.05", "better off, p < 0.05"]),
            ({"worse": "above"}, ["better off, p < 0.05", "worse off, p < 0.05"]),
            ({"worse": None}, ["lower, p < 0.05", "higher, p < 0.05"]),
            ({"sides": "BG", "pvalue_name": "q"}, ["B, q < 0.05", "G, q < 0.05"]),
            ({"pvalue": [0.01, 0.6]}, ["worse off, p < 0.05", "no difference shown"]),
        ],
    )
    def test_the_legend_names_the_colours_that_are_there(self, options, expected):
        options = {"pvalue": [0.01, 0.01], **options}
        assert legend(forest("ab", **options).plot()) == expected

    def test_height_follows_the_groups(self):
        heights = [forest(range(n)).plot().figure_.get_figheight() for n in (1, 2, 40)]
        assert heights[0] == heights[1] < heights[2] / 4

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


def test_marginal_outcomes_are_the_numbers_of_the_test():
    y, s, group = outcomes_of("abc")
    t = marginal_outcome_test(y, s, sensitive_features=group, threshold=0.5)
    display = t.plot()
    np.testing.assert_array_equal(values(display), t.outcomes)
    np.testing.assert_array_equal(ends(display), t.outcome_interval())
    np.testing.assert_array_equal(display.above_.get_xdata(), t.inframarginal.estimate)
    assert "p = " in display.ax_.get_xlabel()
    display = marginal("ab")
    display.test.outcomes[1] = np.nan
    assert len(display.plot(xlabel="$repaid_").points_) == 1
    assert display.ax_.get_xlabel().startswith("$repaid_\n")


@pytest.fixture(name="test", scope="module")
def _test():
    ranked = columns(n_queries=2000, labels="ab")
    low = ranked["sensitive_features"] == "a"
    ranked["y_score"] = ranked["y_score"] - 2.0 * low
    return outcome_inequality_test(**ranked)


class TestOutcomeInequality:
    def test_draws_the_violations_most_violated_first(self, test):
        display = test.plot()
        np.testing.assert_array_equal(values(display), np.sort(test.violation)[::-1])
        j, k = test.positions[test.worst]
        assert labels(display)[0] == f"b at {j} above a at {k}"
        assert set(display.critical_.get_xdata()) == {test.critical_value}
        assert set(display.zero_.get_xdata()) == {0}
        rejected = int((test.violation > test.critical_value).sum())
        assert colors(display) == [WORSE] * rejected + [UNCLEAR] * (10 - rejected)
        assert rejected > 0

    def test_only_the_most_violated(self, test):
        display = test.plot(max_moments=3)
        assert len(display.points_) == 3
        said = " ".join(display.ax_.get_xlabel().split())
        assert "7 moments that are violated less are not shown" in said
        with pytest.raises(ValueError, match="max_moments must be an integer"):
            test.plot(max_moments=0)

    def test_without_error_a_point_is_at_the_edge(self):
        display = inequality(violation=[np.inf, 3.0, -np.inf]).plot()
        assert values(display) == pytest.approx([3.45, 3.0, -3.45])
        assert [point.get_marker() for point in display.points_] == [">", "o", "<"]
        assert colors(display) == [WORSE, WORSE, UNCLEAR]

    @pytest.mark.filterwarnings("ignore")
    def test_nothing_tested(self):
        display = outcome_inequality_test(**columns(labels="a")).plot()
        assert display.missing_.get_text() == "no moment to test"
        assert (display.critical_, display.points_) == (None, [])
