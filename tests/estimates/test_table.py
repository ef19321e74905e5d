"""Tables of sums that are made of the entries of few groups per row."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from skrankfair._estimates.table import Table


def test_entries_of_one_place_are_added_in_any_order() -> None:
    table = Table.from_entries(
        np.array([1, 0, 1, 1]),
        np.array([2, 0, 2, 1]),
        np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]),
        n_rows=3,
        n_groups=3,
        labels=np.arange(3),
        member=np.array([True, False, True, False]),
    )
    expected = np.zeros((3, 3, 2))
    expected[0, 0], expected[1, 1], expected[1, 2] = [3, 4], [7, 8], [6, 8]
    assert_allclose(table.by_group, expected)
    assert table.shared.shape == (3, 0)
    assert table.member is not None
    assert np.argwhere(table.member).tolist() == [[1, 2]]
