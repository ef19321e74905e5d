"""Every picture: one palette, one way to write labels, axes of its own or given."""

from datetime import UTC, datetime

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from skrankfair._estimates.formatting import label
from skrankfair.display import _style
from skrankfair.display._style import COLORS, DASHES
from tests.display import pictures

GROUPS = ["_hidden", "$x$", "a\tb", "d", "e", "f", "g", "h"]
SHOWN = ["_hidden", "$x$", r"a\tb", "d", "e", "f", "g", "h"]
KINDS = ("calibration", "calibrator", "matched", "parity")


def curves(kind):
    """Draw curves of the same groups in one kind of picture."""
    return getattr(pictures, kind)(GROUPS).plot()


@pytest.mark.parametrize("kind", KINDS)
def test_a_group_looks_the_same_in_every_picture(kind):
    lines = curves(kind).lines_
    assert [line.get_color() for line in lines] == [*COLORS, COLORS[0]]
    assert [line.get_linestyle() for line in lines] == [*DASHES, *DASHES]


def test_rows_and_some_of_the_groups_have_the_same_colours():
    points = pictures.marginal(GROUPS).plot().points_
    assert [p.get_color() for p in points] == [*COLORS, COLORS[0]]
    lines = pictures.matched(GROUPS).plot(groups=["h", "d"]).lines_
    assert [line.get_color() for line in lines] == [COLORS[0], COLORS[3]]


NAMED = ("WORSE", "BETTER", "UNCLEAR", "DIFFERENT", "WITHIN")
VERDICTS = [getattr(_style, name) for name in NAMED]
# What is seen without one kind of cones, of linear RGB (Machado et al. 2009).
SEEN = {
    "all": np.eye(3),
    "no long waves": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no middle waves": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no short waves": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def lab_of(colors, seen):
    """CIELAB of what is seen of the colours, shape (n, 3)."""
    rgb = np.array([to_rgb(color) for color in colors])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
    x = np.clip(linear @ np.transpose(seen), 0, 1) @ np.transpose(xyz)
    x = x / [0.95047, 1, 1.08883]
    f = np.where(x > 0.008856, np.cbrt(x), 7.787 * x + 16 / 116)
    return np.stack(
        [116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], 1
    )


@pytest.mark.parametrize("seen", SEEN)
def test_colours_of_groups_differ_from_each_other_and_from_verdicts(seen):
    groups, verdicts = lab_of(COLORS, SEEN[seen]), lab_of(VERDICTS, SEEN[seen])
    among = np.linalg.norm(groups[:, None] - groups, axis=-1)
    assert among[np.triu_indices(len(COLORS), 1)].min() > 15
    others = np.linalg.norm(groups[:, None] - verdicts, axis=-1)
    assert others.min() > (20 if seen == "all" else 7)


@pytest.mark.parametrize("kind", KINDS)
def test_legends_name_every_group_as_it_is(kind):
    display = curves(kind)
    axes = display.axes_[0] if kind == "parity" else display.ax_
    texts = axes.get_legend().get_texts()
    assert [text.get_text() for text in texts][: len(GROUPS)] == SHOWN
    assert not any(text.get_parse_math() for text in texts)
    display.figure_.draw_without_rendering()


def test_many_contrasts_leave_the_axes_above_them_free():
    display = pictures.parity(GROUPS)
    display.test.rejected[:] = np.arange(28)[:, None] == 20
    first, second = display.plot().axes_
    names = [text.get_text() for text in second.get_legend().get_texts()]
    assert len(names) == 9
    assert names[-1] == "and 20 more"
    # Those that differ are named first of all.
    assert names[0] == " − ".join(map(label, display.test.contrasts[20]))
    display.figure_.draw_without_rendering()
    assert second.get_legend().get_window_extent().y1 < first.get_window_extent().y0


@pytest.mark.parametrize(
    ("group", "text"),
    [
        (("a", ("b", "c\t")), r"a × b × c\t"),
        ("\x1b[31mred\u202e\n", r"\x1b[31mred\u202e\n"),
        (" ", "(empty)"),
        (True, "True"),
        (np.datetime64("2020-01-01T00:00:00.000000000"), "2020-01-01"),
        (np.datetime64("2020-01-01T10:30:00.000000000"), "2020-01-01T10:30"),
        (datetime(2020, 1, 1), "2020-01-01"),
        (datetime(2020, 1, 1, tzinfo=UTC), "2020-01-01 00:00:00+00:00"),
    ],
)
def test_labels_are_one_printable_line(group, text):
    assert label(group) == text


def test_long_labels_are_cut():
    assert label("x" * 50, 10) == "x" * 9 + "…"
