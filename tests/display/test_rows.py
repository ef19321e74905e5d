"""Rows of groups and of moments show what was tested."""

import matplotlib as mpl
import numpy as np
import pytest

from skrankfair.display._style import UNCLEAR, WORSE
from skrankfair.inference import marginal_outcome_test, outcome_inequality_test
from tests.display.pictures import inequality, marginal, outcomes_of
from tests.metrics.common import columns


def values(display):
    return [point.get_xdata()[0] for point in display.points_]


def colors(display):
    return [mpl.colors.to_hex(p.get_color()).upper() for p in display.points_]


@pytest.fixture(name="test", scope="module")
def _test():
    data = columns(n_queries=2000, labels="ab")
    data["y_score"] = data["y_score"] - 2.0 * (data["sensitive_features"] == "a")
    return outcome_inequality_test(**data)


class TestMarginalOutcome:
    def test_draws_the_numbers_of_the_test(self):
        y, s, group = outcomes_of("abc")
        t = marginal_outcome_test(y, s, sensitive_features=group, threshold=0.5)
        display = t.plot()
        np.testing.assert_array_equal(values(display), t.outcomes)
        ends = [line.get_xdata() for line in display.intervals_]
        np.testing.assert_array_equal(np.transpose(ends), t.outcome_interval())
        above = display.above_.get_xdata()
        np.testing.assert_array_equal(above, t.inframarginal.estimate)
        assert "p = " in display.ax_.get_xlabel()

    def test_a_group_without_an_outcome_has_no_point(self):
        display = marginal("ab")
        display.test.outcomes[1] = np.nan
        assert len(display.plot(xlabel="$repaid_").points_) == 1
        assert display.ax_.get_xlabel().startswith("$repaid_\n")


class TestOutcomeInequality:
    def test_draws_the_violations_most_violated_first(self, test):
        display = test.plot()
        np.testing.assert_array_equal(values(display), np.sort(test.violation)[::-1])
        j, k = test.positions[test.worst]
        first = display.ax_.get_yticklabels()[0].get_text()
        assert first == f"b at {j} above a at {k}"
        assert set(display.critical_.get_xdata()) == {test.critical_value}
        assert set(display.zero_.get_xdata()) == {0}
        rejected = int((test.violation > test.critical_value).sum())
        assert colors(display) == [WORSE] * rejected + [UNCLEAR] * (10 - rejected)
        assert rejected > 0

    def test_only_the_most_violated(self, test):
        display = test.plot(max_moments=3)
        assert len(display.points_) == 3
        words = " ".join(display.ax_.get_xlabel().split())
        assert "7 moments that are violated less are not shown" in words
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
        assert display.critical_ is None
        assert display.points_ == []
