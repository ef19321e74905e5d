"""The forest plot of a report: where things are, and that labels are data."""

from xml.etree import ElementTree as ET

import numpy as np
import pytest

from skrankfair._reports.forest import ForestPlot, Series, _ticks
from skrankfair._reports.html import _environment

NAN = np.nan


def plot(estimate=(1.0, 3.0, NAN), low=(0.0, NAN, NAN), high=(2.0, NAN, NAN), **change):
    columns = (np.array(part, dtype=float) for part in (estimate, low, high))
    series = [Series(*columns, colors=["red"] * len(estimate))]
    given = {
        "labels": list("abc")[: len(estimate)],
        "series": series,
        "xlabel": "gap",
        "alt": "gap by group",
        "line": 0.0,
    }
    return ForestPlot(**{**given, **change})


def drawn(forest):
    template = _environment().get_template("forest.svg.jinja")
    return ET.fromstring(template.render(forest.layout()))


def texts(element):
    return ["".join(part.itertext()) for part in element if part.tag.endswith("text")]


def test_positions_are_proportional_to_the_numbers():
    layout = plot().layout()
    first, second = layout["marks"]
    x, low, high, _ = first["at"]
    assert low == pytest.approx(layout["line"])
    assert (x - low) / (high - low) == pytest.approx(0.5)
    assert (second["at"][0] - low) / (high - low) == pytest.approx(1.5)
    assert layout["left"] < low < high < layout["right"]


def test_a_row_without_a_number_says_so_and_one_without_error_is_open():
    element = drawn(plot())
    assert texts(element)[:4] == ["a", "b", "c", "no data"]
    paths = [part for part in element if part.tag.endswith("path")]
    assert [path.get("fill") for path in paths] == ["red", "white"]
    assert element.get("aria-label") == "gap by group"


def test_a_number_that_is_infinite_has_no_mark():
    infinite = plot(estimate=[1.0, -np.inf], low=[0.0, np.nan], high=[2.0, np.nan])
    element = drawn(infinite)
    assert texts(element)[:3] == ["a", "b", "off the axis"]
    assert len([part for part in element if part.tag.endswith("path")]) == 1


def test_infinite_ends_reach_the_edge():
    layout = plot(estimate=[1.0], low=[-np.inf], high=[np.inf]).layout()
    _, low, high, _ = layout["marks"][0]["at"]
    assert (low, high) == (layout["left"], layout["right"])


def test_series_are_below_each_other_and_named():
    one, two = ([np.array([value])] * 3 for value in (1.0, 2.0))
    series = [Series(*one, ["red"], "before", "up"), Series(*two, ["blue"], "after")]
    forest = plot(labels=["a"], series=series, estimate=[1.0])
    first, second = (mark["at"][3] for mark in forest.layout()["marks"])
    assert first < second
    assert texts(drawn(forest))[-2:] == ["after", "before"]


@pytest.mark.parametrize("label", ["<b>&\"'", "_x", "$x$", "{{ 7 * 7 }}"])
def test_labels_are_data(label):
    assert texts(drawn(plot(labels=[label, "b", "c"])))[0] == label


def test_long_labels_are_cut_and_whole_in_the_title():
    element = drawn(plot(labels=["long " * 20, "日本" * 40, "c"]))
    shown = [part.text for part in element if part.tag.endswith("text")]
    assert shown[0].endswith("…")
    assert shown[1].endswith("…")
    assert len(shown[1]) < len(shown[0]) < 40
    assert texts(element)[0] == shown[0] + "long " * 20


def test_nothing_to_draw():
    layout = plot([NAN], [NAN], [NAN], line=None).layout()
    assert layout["marks"] == layout["ticks"] == []
    assert texts(drawn(plot([NAN], [NAN], [NAN], line=None))) == ["a", "no data", "gap"]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-2.2, 8.0, ["-2", "0", "2", "4", "6", "8"]),
        (0.41, 0.59, ["0.45", "0.50", "0.55"]),
        (-1e-7, 1e-7, ["-1e-07", "-5e-08", "0", "5e-08", "1e-07"]),
        (0.0, 3e7, ["0", "5e+06", "1e+07", "1.5e+07", "2e+07", "2.5e+07", "3e+07"]),
    ],
)
def test_ticks_are_round(low, high, expected):
    values, words = zip(*_ticks(low, high), strict=True)
    assert list(words) == expected
    np.testing.assert_allclose(values, np.array(expected, dtype=float), atol=1e-20)
