"""Columns and options as clean arrays and codes."""

import re

import numpy as np
import pandas as pd
import pytest

from skrankfair._inputs.groups import as_groups, encode, sort_labels
from skrankfair._inputs.validation import (
    as_numbers,
    as_weights,
    check_choice,
    check_number,
)
from tests.calls import INF, NAN


def test_as_numbers():
    for values in ([1, 2.5, True], (1, 2.5, 1), pd.Series([1, 2.5, 1], dtype=object)):
        np.testing.assert_array_equal(as_numbers(values, "x"), [1, 2.5, 1])
        assert as_numbers(values, "x").dtype == np.float64
    np.testing.assert_array_equal(as_numbers([1, NAN], "x", allow_nan=True), [1, NAN])
    with pytest.raises(ValueError, match="^x must be finite or NaN; got inf in row 1"):
        as_numbers([NAN, INF], "x", allow_nan=True)


def test_as_weights():
    np.testing.assert_array_equal(as_weights([0, 0.5, 2]), [0, 0.5, 2])
    with pytest.raises(ValueError, match="^w must not be negative; got -0.5 in row 1"):
        as_weights([1, -0.5], "w")


@pytest.mark.parametrize(
    "labels",
    [
        [5, 3, 5, 9],
        [-(2**63), 2**63 - 1, 0, 0],
        np.array([2**64 - 1, 2**64 - 2], dtype=np.uint64),
        np.array([3, 200], dtype=np.uint8),
        ["b", "a", "b"],
        [1.5, -0.5, 1.5],
        [(1, "a"), (0, "b")],
        [True, False, True],
    ],
    ids=str,
)
def test_codes_give_the_labels_back(labels):
    column = pd.Series(labels) if isinstance(labels[0], tuple) else labels
    codes = encode(column, "x")
    decoded = codes.decode(codes.codes)
    assert list(decoded) == list(labels)
    assert codes.codes.min() >= 0
    assert codes.codes.max() < codes.size
    dense = codes.dense()
    assert sorted(set(dense.codes.tolist())) == list(range(dense.size))
    assert list(dense.decode(dense.codes)) == list(labels)
    last = codes.take(np.array([len(labels) - 1]))
    assert list(last.decode(last.codes)) == [labels[-1]]
    assert last.dense().size == 1


def test_sort_labels_of_mixed_types():
    labels = ["b", 3, ("x", 2), "a", 1.5, ("x", 1), True, b"z"]
    expected = [True, 1.5, 3, b"z", "a", "b", ("x", 1), ("x", 2)]
    assert sort_labels(labels) == expected
    assert sort_labels(labels[::-1]) == expected


def test_groups():
    groups = as_groups(["b", "a", "b", "c"])
    assert (len(groups), groups.n_rows, groups.overlapping) == (3, 4, False)
    assert groups.mask(1).tolist() == [True, False, True, False]
    some = groups.take(np.array([0, 3])).without_unused()
    assert some.labels == ("b", "c")
    assert some.mask(0).tolist() == [True, False]
    member = np.array([[True, True], [False, False], [True, False]])
    groups = as_groups(member)
    assert (groups.labels, groups.n_rows, groups.overlapping) == ((0, 1), 3, True)
    assert groups.mask(1).tolist() == [True, False, False]
    assert groups.take(np.array([1])).without_unused().labels == (0, 1)


@pytest.mark.parametrize(
    ("value", "integer", "inclusive", "fits"),
    [
        (0, False, (True, True), True),
        (0, False, (False, True), False),
        (1, False, (True, False), False),
        (np.float32(0.5), False, (False, False), True),
        (np.int8(1), True, (True, True), True),
        (0.5, True, (True, True), False),
        (np.bool_(True), True, (True, True), False),
        (NAN, False, (True, True), False),
        ("1", False, (True, True), False),
    ],
)
def test_check_number(value, integer, inclusive, fits):
    options = {"integer": integer, "inclusive": inclusive}
    if fits:
        check_number(value, "x", 0, 1, **options)
        return
    kind = "an integer" if integer else "a number"
    brackets = r"[\[(]0, 1[\])]"
    message = rf"^x must be {kind} in {brackets}; got {re.escape(repr(value))}\.$"
    with pytest.raises(ValueError, match=message):
        check_number(value, "x", 0, 1, **options)


def test_check_choice():
    check_choice("a", "x", ("a", "b"))
    check_choice(np.str_("a"), "x", ("a", "b"))
    with pytest.raises(ValueError, match=r"^x must be one of 'a', 'b'; got 'c'\.$"):
        check_choice("c", "x", ("a", "b"))
