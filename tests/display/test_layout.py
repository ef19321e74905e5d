"""Every Display at two sizes: nothing overlaps, is cut or shrinks to a sliver."""

from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.collections import LineCollection, PolyCollection

from skrankfair import display
from tests.seeds import rarely

LONG = "a very long name of a group that nobody would like to read"
FIVE = ("Action", "Children's", "Film-Noir", "Science fiction and fantasy", "Western")
COLUMN, PAGE = (3.3, 2.5), (6.4, 4.8)


def waves(n, n_points, reach=0.1):
    """Curves between 0 and 1, with the ends of their bands."""
    x = np.linspace(0.02, 0.98, n_points)
    y = np.stack([np.clip(x ** (1 + i / 8), 0, 1) for i in range(n)])
    low, high = (np.clip(y + side * reach, 0, 1) for side in (-1, 1))
    return x, y, low, high


def forest(groups=FIVE, **options):
    n = len(groups)
    y = np.linspace(0.3, 0.7, n)
    options = {"fair_value": 0.5, "name": "pairwise exposure", **options}
    p = options.pop("pvalue", np.linspace(0.001, 0.1, n))
    return display.GroupEstimatesDisplay(
        groups, y, y - 0.05, y + 0.05, pvalue=p, **options
    )


def calibration(groups=FIVE):
    x, y, low, high = waves(len(groups), 50)
    bars = np.ones((len(groups), 40))
    return display.CalibrationByGroupDisplay(
        x, groups, y, low, high, edges=np.linspace(0, 1, 41), bars=bars
    )


def parity(groups=FIVE):
    x, y, low, high = waves(len(groups), 50)
    pairs = [(a, b) for i, a in enumerate(groups) for b in groups[:i]]
    d = np.zeros((len(pairs), x.size))
    return display.PredictiveParityDisplay(
        x,
        groups,
        y,
        low,
        high,
        pairs,
        d,
        d - 0.1,
        d + 0.1,
        rejected=np.tile(x > 0.6, (len(pairs), 1)),
        edges=np.linspace(0, 1, 41),
        bars=np.ones((len(groups), 40)),
        name="95% simultaneous bands, p = 0.00123",
    )


def matched(groups=FIVE):
    epsilon = np.geomspace(0.01, 0.9, 12)
    _, y, low, high = waves(len(groups), 12)
    return display.MatchedPairCurveDisplay(groups, epsilon, y.T, low.T, high.T)


def moved(groups=FIVE):
    n = len(groups)
    y = np.linspace(-0.2, 0.2, n)
    p = np.linspace(0.001, 0.1, n)
    return {
        "metric": ["inter-group accuracy"] * n,
        "group": list(groups),
        "before": y,
        "after": y / 3,
        "change": -2 * y / 3,
        "ci_low": -2 * y / 3 - 0.05,
        "ci_high": -2 * y / 3 + 0.05,
        "pvalue_corrected": p,
        "verdict": ["closer to fair", "further from fair"] + ["no change"] * (n - 2),
        "pvalue_before": p,
        "pvalue_after": 2 * p,
    }


def mitigation(groups=FIVE):
    costs = pd.DataFrame({"metric": ["NDCG", "AUC", "mean squared error"]})
    costs["before"], costs["change"] = [0.8, 0.7, 900.0], [-0.01, -0.002, 1500.0]
    costs["after"] = costs["before"] + costs["change"]
    costs["ci_low"], costs["ci_high"] = 1.2 * costs["change"], 0.8 * costs["change"]
    costs["pvalue_corrected"] = 0.01
    return display.MitigationDisplay(pd.DataFrame(moved(groups)), costs)


def before_after(groups=FIVE):
    table = moved(groups)
    names = ("before", "after", "pvalue_before", "pvalue_after")
    before, after, p_before, p_after = (table[name] for name in names)
    return display.BeforeAfterDisplay(
        groups,
        before,
        after,
        pvalue_before=p_before,
        pvalue_after=p_after,
        name="largest difference of outcomes at equal scores",
    )


def marginal(groups=FIVE):
    y = np.linspace(0.5, 0.7, len(groups))
    return display.MarginalOutcomeDisplay(
        groups,
        y,
        y - 0.1,
        y + 0.1,
        above=y + 0.15,
        threshold=0.6,
        name="95% intervals, equal at the threshold: p = 0.00123",
    )


def monitor(groups=FIVE):
    days = np.arange("2026-01-01", "2026-03-01", dtype="datetime64[D]")
    _, y, low, high = waves(len(groups), days.size)
    n = len(groups)
    return display.MonitorDisplay(
        groups,
        [days] * n,
        y,
        low,
        high,
        alarms=[(0, days[30])],
        margin=0.05,
        name="pairwise accuracy",
    )


def monotonicity(groups=FIVE):
    _, y, low, high = waves(1, 20)
    return display.MonotonicityDisplay(
        np.arange(1, 21),
        y[0] + np.where(np.arange(20) == 7, 0.3, 0.02),
        y[0],
        low[0],
        high[0],
        pvalue=0.003,
        rejected=True,
        group=groups[-2],
        group_share=0.5,
    )


def inequality(groups=FIVE):
    names = [f"{a} at 1 above {b} at 2" for a, b in pairwise(groups)]
    violation = np.linspace(5, -1, len(names))
    return display.OutcomeInequalityDisplay(names, violation, 2.871, 90)


def power(groups=FIVE):
    n = np.geomspace(100, 1e5, 30)
    p = np.stack([[1 - np.exp(-n * g / 1e4) for g in (1, 3)]] * len(groups))
    return display.PowerCurveDisplay(groups, [0.02, 0.05], n, p, pilot=600)


def tradeoff(groups=FIVE):
    rng = np.random.default_rng(0)
    y, x = rng.random((2, 30))
    return display.FairnessTradeoffDisplay(
        np.append(y, np.nan),
        np.append(x, 1.0),
        on_front=np.arange(31) < 5,
        chosen=6,
        bound=0.3,
        objective_name="mean ndcg of the queries",
        disparity_name="neg_pairwise_accuracy_difference",
        chosen_name=f"alpha=0.1, fairness_weight=10, max_depth=5, groups={groups[0]}",
    )


def calibrator(groups=FIVE):
    x, y, *_ = waves(len(groups), 20)
    return display.GroupCalibratorDisplay(groups, [(x, row) for row in y])


DISPLAYS = {
    "BeforeAfterDisplay": before_after,
    "CalibrationByGroupDisplay": calibration,
    "FairnessTradeoffDisplay": tradeoff,
    "GroupCalibratorDisplay": calibrator,
    "GroupEstimatesDisplay": forest,
    "MarginalOutcomeDisplay": marginal,
    "MatchedPairCurveDisplay": matched,
    "MitigationDisplay": mitigation,
    "MonitorDisplay": monitor,
    "MonotonicityDisplay": monotonicity,
    "OutcomeInequalityDisplay": inequality,
    "PowerCurveDisplay": power,
    "PredictiveParityDisplay": parity,
}
PANELS = {"MitigationDisplay": 3, "PredictiveParityDisplay": 2}


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def panels(name, size):
    """Axes of a figure without a layout, as a caller would make it."""
    n = PANELS.get(name, 1)
    height = size[1] * (1 if n == 1 else 0.8 * n)
    return plt.subplots(n, 1, squeeze=False, figsize=(size[0], height))[1][:, 0]


def drawn(name, axes, groups=FIVE, **options):
    given = {"ax": axes[0]} if len(axes) == 1 else {"axes": axes}
    return DISPLAYS[name](groups).plot(**given, **options).figure_


def ticks_of(axis):
    """Labels of the ticks that are drawn: those within the axes."""
    low, high = sorted(axis.get_view_interval())
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    return [tick.label1 for tick in ticks if low <= tick.get_loc() <= high]


def texts_of(figure):
    """Every text that is shown, with its box."""
    texts = []
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            texts += [*ticks_of(axis), axis.label, axis.get_offset_text()]
        texts += [*ax.texts, ax.title, ax._left_title, ax._right_title]
        if (legend := ax.get_legend()) is not None:
            texts += [*legend.get_texts(), legend.get_title()]
    shown = [t for t in texts if t.get_visible() and t.get_text().strip()]
    return [(text.get_text(), text.get_window_extent()) for text in shown]


def faults(figure):
    """What is cut by the edge of the figure, overlaps, or is squeezed."""
    found, whole = [], figure.bbox
    texts = texts_of(figure)
    for i, (text, box) in enumerate(texts):
        if min(box.x0, box.y0) < -1 or box.x1 > whole.x1 + 1 or box.y1 > whole.y1 + 1:
            found.append(f"cut: {text}")
        for other, its in texts[:i]:
            wide = min(box.x1, its.x1) - max(box.x0, its.x0)
            high = min(box.y1, its.y1) - max(box.y0, its.y0)
            if wide > 1 and high > 2:
                found.append(f"overlap: {text} / {other}")
    for ax in figure.axes:
        legend = ax.get_legend()
        if legend and legend.get_window_extent().y0 < ax.bbox.y1 - 1:
            found.append("the legend covers the data")
        share = ax.bbox.width / whole.width, ax.bbox.height / whole.height
        if share[0] < 0.4 or share[1] * len(figure.axes) < 0.3:
            found.append(f"a sliver: {share}")
    return found


HARD = [f"{i}: {LONG}" for i in range(6)]


@pytest.mark.parametrize(
    ("size", "groups"), [(COLUMN, HARD), *rarely((PAGE, FIVE))], ids=["hard", "easy"]
)
@pytest.mark.parametrize("name", DISPLAYS)
def test_nothing_collides_or_is_cut(name, size, groups):
    figure = drawn(name, panels(name, size), groups)
    figure.draw_without_rendering()
    assert faults(figure) == []


def test_faults_are_found():
    figure, (first, second) = plt.subplots(2, figsize=COLUMN)
    first.set_xlabel("x" * 80)
    second.legend([second.plot([0, 1])[0]], ["inside"], loc="upper left")
    second.set_title("title")
    figure.draw_without_rendering()
    found = " ".join(faults(figure))
    for word in ("cut: xxx", "overlap: ", "covers the data"):
        assert word in found


def test_new_figures_have_the_size_of_the_settings():
    with mpl.rc_context({"figure.figsize": COLUMN, "lines.linewidth": 0.75}):
        picture = calibration().plot()
        assert tuple(picture.figure_.get_size_inches()) == COLUMN
        assert picture.lines_[0].get_linewidth() == 1.0
        assert forest().plot().figure_.get_figwidth() == COLUMN[0]
        figure = mitigation().plot().figure_
        figure.draw_without_rendering()
        assert figure.get_figwidth() == COLUMN[0]
        assert faults(figure) == []


@pytest.mark.parametrize("name", DISPLAYS)
def test_legends_may_be_left_out(name):
    figure = drawn(name, panels(name, PAGE), legend=False)
    assert [ax.get_legend() for ax in figure.axes] == [None] * len(figure.axes)


def test_a_layout_of_the_caller_stays():
    figure, ax = plt.subplots(layout="tight")
    engine = figure.get_layout_engine()
    forest().plot(ax=ax)
    assert figure.get_layout_engine() is engine
    figure, ax = plt.subplots()
    figure.subplots_adjust(left=0.4)
    forest().plot(ax=ax)
    assert figure.get_layout_engine() is None
    figure = plt.figure()
    forest().plot(ax=figure.add_axes((0.2, 0.2, 0.6, 0.6)))
    figure.draw_without_rendering()
    assert figure.get_layout_engine() is None


def test_many_groups_have_bars_and_few_have_bands():
    assert isinstance(calibration("abc").plot().bands_[0], PolyCollection)
    bars = calibration("abcd").plot().bands_
    assert all(isinstance(band, LineCollection) for band in bars)
    places = [tuple(bar[0, 0] for bar in band.get_segments()) for band in bars]
    assert len(set(sum(places, ()))) == sum(map(len, places))


def test_the_legend_says_how_many_groups_it_leaves_out():
    names = [str(i) for i in range(60)]
    legend = drawn("CalibrationByGroupDisplay", panels("", COLUMN), names).axes[0]
    *first, more, diagonal = [t.get_text() for t in legend.get_legend().get_texts()]
    assert first == names[: len(first)]
    assert more == f"and {60 - len(first)} more"
    assert diagonal == "score = outcome"


def test_no_bar_is_below_zero():
    picture = calibration("ab").plot()
    assert picture.ax_.get_ylim()[0] == 0


def test_small_rows_have_small_labels_and_then_fewer():
    def labels(n):
        figure = drawn("GroupEstimatesDisplay", panels("", COLUMN), list(range(n)))
        return figure.axes[0].get_yticklabels()

    assert labels(5)[0].get_size() == 10
    assert 4.5 <= labels(19)[0].get_size() < 8
    assert len(labels(19)) == 19
    assert 10 < len(labels(100)) < 60


def test_labels_that_begin_alike_keep_their_ends():
    figure = drawn("MitigationDisplay", panels("MitigationDisplay", COLUMN))
    texts = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(set(texts)) == len(FIVE)
    assert texts[0].endswith("Action")


def test_one_large_cost_does_not_flatten_the_others():
    picture = mitigation().plot()
    (words,) = picture.outlying_
    assert words.get_text() == "◀ \N{MINUS SIGN}1.5e+03"
    low, high = picture.axes_[2].get_xlim()
    assert -0.02 < low < -0.012
    assert high == -low
    same = mitigation()
    same.costs = same.costs.iloc[:2]
    assert same.plot().outlying_ == []


def test_words_of_the_sides():
    def words(**options):
        legend = forest("ab", pvalue=[0.01, 0.01], **options).plot().legend_
        return [text.get_text() for text in legend.get_texts()]

    assert words() == ["worse off, p < 0.05", "better off, p < 0.05"]
    assert words(worse="above") == ["better off, p < 0.05", "worse off, p < 0.05"]
    assert words(worse=None) == ["lower, p < 0.05", "higher, p < 0.05"]
    assert words(sides=("bad", "good"), pvalue_name="corrected p") == [
        "bad, corrected p < 0.05",
        "good, corrected p < 0.05",
    ]
