"""The picture of a search: what is drawn is what was found."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

from skrankfair.display import FairnessTradeoffDisplay
from skrankfair.model_selection import fairness_constrained
from tests.display.pictures import legend


def results(gap=(0.02, 0.05, 0.09, 0.05), ndcg=(0.7, 0.8, 0.9, 0.75), ratio=False):
    """cv_results_ of four candidates and two folds, 0.01 off the mean each."""
    scores = {"ndcg": np.array(ndcg), "gap": np.array(gap) * (1 if ratio else -1)}
    found = {"params": [{"model__alpha": i, "model__k": "a"} for i in range(len(gap))]}
    for name, means in scores.items():
        found[f"mean_test_{name}"] = means
        found[f"std_test_{name}"] = np.full(len(gap), 0.01)
        found[f"split0_test_{name}"] = means - 0.01
        found[f"split1_test_{name}"] = means + 0.01
    return found


def draw(found=None, **options):
    options = {"objective": "ndcg", "disparity": "gap", **options}
    found = results() if found is None else found
    return FairnessTradeoffDisplay.from_cv_results(found, **options)


def xy(line):
    return [tuple(point) for point in np.round(line.get_xydata(), 10).tolist()]


def test_each_candidate_is_drawn_once_where_it_is():
    display = draw(chosen=1)
    assert xy(display.candidates_) == [(0.05, 0.75)]
    assert xy(display.front_points_) == [(0.02, 0.7), (0.09, 0.9)]
    assert xy(display.chosen_) == [(0.05, 0.8)]
    assert xy(display.front_) == [(0.02, 0.7), (0.05, 0.8), (0.09, 0.9)]
    assert display.front_.get_drawstyle() == "steps-post"
    beaten = draw(chosen=3)
    assert xy(beaten.chosen_) == [(0.05, 0.75)]
    assert len(xy(beaten.front_points_)) == 3
    assert "candidate" not in legend(beaten)
    nothing = draw()
    assert legend(nothing) == ["beaten by no other", "candidate"]
    unset = nothing.chosen_, nothing.bound_, nothing.forbidden_, nothing.missing_
    assert unset == (None,) * 4


def test_of_numbers_alone():
    display = FairnessTradeoffDisplay([1, 2], [3, 4])
    assert display.plot() is display
    assert xy(display.candidates_) == [(3, 1), (4, 2)]
    assert (display.front_, display.errors_) == (None, [])
    assert display.ax_.get_xlabel() == "disparity   (← fairer)"
    assert display.ax_.get_ylabel() == "objective   (better →)"
    with pytest.raises(ValueError, match=r"shapes \(2,\) and \(1,\)"):
        FairnessTradeoffDisplay([1, 2], [1]).plot()


def test_bars_are_one_standard_error_to_each_side():
    display = draw(chosen=1)
    half = 0.01  # of two folds that are 0.02 apart
    np.testing.assert_allclose(display.objective_error, half)
    np.testing.assert_allclose(display.disparity_error, half)
    assert len(display.errors_) == 6
    along, across = (bars.get_segments()[0] for bars in display.errors_[4:])
    np.testing.assert_allclose(along, [[0.05 - half, 0.8], [0.05 + half, 0.8]])
    np.testing.assert_allclose(across, [[0.05, 0.8 - half], [0.05, 0.8 + half]])
    one_fold = {k: v for k, v in results().items() if not k.startswith("split1")}
    assert draw(one_fold).errors_ == []
    combined = results()
    for of in ("mean", "split0", "split1"):
        names = f"{of}_test_gap_standard_error", f"{of}_test_gap_df"
        combined |= dict.fromkeys(names, [2] * 4)
    np.testing.assert_allclose(draw(combined).disparity_error, np.sqrt(2))


class TestBound:
    @pytest.mark.parametrize("bound", [0.001, 0.06, 0.3])
    def test_what_is_beyond_is_shaded(self, bound):
        display = draw(chosen=1, bound=bound)
        assert set(display.bound_.get_xdata()) == {bound}
        low, high = display.ax_.get_xlim()
        assert low < min(bound, 0.02)
        assert high > max(bound, 0.09)
        left = display.forbidden_.get_x()
        assert left == pytest.approx(bound)
        assert left + display.forbidden_.get_width() == pytest.approx(high)
        assert legend(display)[-1] == f"bound {bound:g}"

    def test_of_a_ratio_the_small_values_are_beyond(self):
        found = results(gap=(0.9, 0.8, 0.6, 0.7), ratio=True)
        display = draw(found, larger_is_fairer=True, bound=0.75)
        low, _ = display.ax_.get_xlim()
        assert display.forbidden_.get_x() == pytest.approx(low)
        assert low + display.forbidden_.get_width() == pytest.approx(0.75)
        assert display.front_.get_drawstyle() == "steps-pre"
        assert display.ax_.get_xlabel() == "gap   (fairer →)"
        assert xy(display.front_points_)[0] == (0.9, 0.7)
        with pytest.raises(ValueError, match=r"'gap' has scores above 0 \(up to 0.9\)"):
            draw(found)


def test_labels_are_plain_text_and_long_ones_are_cut():
    found = results()
    found["params"][1] = {"model__columns": "$x_1$", "alpha": "\x1b[31m\n"}
    (name, *_) = legend(draw(found, chosen=1))
    assert name == r"chosen: columns=$x_1$, alpha=\x1b[31m\n"
    found["params"][1] = {"x": "y" * 200}
    (name, *_) = legend(draw(found, chosen=1))
    assert len(name) < 80
    assert name.endswith("…")


def test_undefined_candidates_are_counted():
    display = draw(results(gap=(0.02, np.nan, 0.09, 0.05)), chosen=0)
    assert display.missing_.get_text() == "1 undefined, not shown"
    nothing = draw(results(gap=(np.nan,) * 4), bound=0.1, chosen=2)
    assert nothing.chosen_ is None
    nothing.figure_.canvas.draw()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"disparity": "parity"}, "no metric 'parity' in scoring="),
        ({"objective": "auc"}, "no metric 'auc' in scoring="),
        ({"chosen": 4}, r"chosen must be an integer in \[0, 3\]; got 4"),
    ],
)
def test_bad_input_raises(options, message):
    with pytest.raises(ValueError, match=message):
        draw(**options)


def searched(found, **options):
    """Return a search that has found these results."""
    search = GridSearchCV(Ridge(), {}, **options)
    search.cv_results_, search.best_index_ = found, 1
    return search


class TestFromSearch:
    @pytest.mark.parametrize("ratio", [False, True])
    def test_shows_what_the_constraint_has_seen(self, ratio):
        gap = (0.9, 0.8, 0.6, 0.7)
        bound = {"at_least" if ratio else "at_most": {"gap": 0.75}}
        refit = fairness_constrained("ndcg", **bound)
        found = results(gap=gap, ratio=ratio)
        display = FairnessTradeoffDisplay.from_search(searched(found, refit=refit))
        assert (display.bound, display.chosen) == (0.75, 1)
        assert display.larger_is_fairer == ratio
        np.testing.assert_allclose(display.disparity, gap)
        np.testing.assert_allclose(display.objective, found["mean_test_ndcg"])
        assert display.ax_.get_ylabel().startswith("ndcg")

    def test_needs_results_and_keys(self):
        with pytest.raises(ValueError, match="search must be fitted"):
            FairnessTradeoffDisplay.from_search(GridSearchCV(Ridge(), {}))
        plain = searched(results(), refit="ndcg")
        with pytest.raises(ValueError, match="must be given for a search without"):
            FairnessTradeoffDisplay.from_search(plain)
        keys = {"objective": "ndcg", "disparity": "gap"}
        assert FairnessTradeoffDisplay.from_search(plain, **keys).bound is None
