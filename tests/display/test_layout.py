"""Every Display at two sizes: nothing overlaps, is cut or shrinks to a sliver."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from matplotlib.collections import LineCollection, PolyCollection

from tests.display.pictures import DISPLAYS, FIVE, calibration, forest, mitigation
from tests.seeds import rarely

LONG = "a very long name of a group that nobody would like to read"
COLUMN, PAGE = (3.3, 2.5), (6.4, 4.8)
PANELS = {"MitigationDisplay": 3, "PredictiveParityDisplay": 2}


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
    wrong, whole = [], figure.bbox
    texts = texts_of(figure)
    for i, (text, box) in enumerate(texts):
        if min(box.x0, box.y0) < -1 or box.x1 > whole.x1 + 1 or box.y1 > whole.y1 + 1:
            wrong.append(f"cut: {text}")
        for other, its in texts[:i]:
            wide = min(box.x1, its.x1) - max(box.x0, its.x0)
            high = min(box.y1, its.y1) - max(box.y0, its.y0)
            if wide > 1 and high > 2:
                wrong.append(f"overlap: {text} / {other}")
    for ax in figure.axes:
        legend = ax.get_legend()
        if legend and legend.get_window_extent().y0 < ax.bbox.y1 - 1:
            wrong.append("the legend covers the data")
        share = ax.bbox.width / whole.width, ax.bbox.height / whole.height
        if share[0] < 0.4 or share[1] * len(figure.axes) < 0.3:
            wrong.append(f"a sliver: {share}")
    return wrong


HARD = [f"{i}: {LONG}" for i in range(6)]


@pytest.mark.parametrize(
    ("size", "groups"), [(COLUMN, HARD), *rarely((PAGE, FIVE))], ids=["hard", "easy"]
)
@pytest.mark.parametrize("name", DISPLAYS)
def test_nothing_collides_or_is_cut(name, size, groups):
    figure = drawn(name, panels(name, size), groups)
    figure.draw_without_rendering()
    assert faults(figure) == []


ODD = ["_hidden", "$x^2$", "a\tb", "<b>& 50 % {x}", r"$\frac{1}{"]


@pytest.mark.parametrize("name", DISPLAYS)
def test_labels_are_data(name):
    figure = drawn(name, panels(name, PAGE), ODD)
    figure.draw_without_rendering()
    for ax in figure.axes:
        legend = ax.get_legend()
        shown = [*ticks_of(ax.yaxis), *(legend.get_texts() if legend else ())]
        assert not any(t.get_parse_math() for t in shown if "$" in t.get_text())


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
def test_draws_on_given_axes_without_a_legend(name):
    axes = panels(name, PAGE)
    figure = drawn(name, axes, legend=False)
    assert figure is axes[0].figure
    assert set(axes) <= set(figure.axes)
    assert all(ax.has_data() for ax in axes)
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
    places = [bar[0, 0] for band in bars for bar in band.get_segments()]
    assert len(set(places)) == len(places)
    # No bar of a histogram is below zero.
    assert calibration("ab").plot().ax_.get_ylim()[0] == 0


def test_the_legend_says_how_many_groups_it_leaves_out():
    names = [str(i) for i in range(60)]
    legend = drawn("CalibrationByGroupDisplay", panels("", COLUMN), names).axes[0]
    *first, more, diagonal = [t.get_text() for t in legend.get_legend().get_texts()]
    assert first == names[: len(first)]
    assert more == f"and {60 - len(first)} more"
    assert diagonal == "score = outcome"


def test_small_rows_have_small_labels_and_then_fewer():
    def labels(n):
        figure = drawn("GroupEstimatesDisplay", panels("", COLUMN), list(range(n)))
        return figure.axes[0].get_yticklabels()

    assert labels(5)[0].get_size() == 10
    assert len(of_19 := labels(19)) == 19
    assert 4.5 <= of_19[0].get_size() < 8
    assert 10 < len(labels(100)) < 60


def test_labels_that_begin_alike_keep_their_ends():
    figure = drawn("MitigationDisplay", panels("MitigationDisplay", COLUMN))
    texts = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(set(texts)) == len(FIVE)
    assert texts[0].endswith("Action")
