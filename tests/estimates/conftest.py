"""Results that several tests of `GroupEstimates` look at."""

from dataclasses import replace

import numpy as np
import pytest

from skrankfair._estimates.remainder import Gram
from skrankfair._estimates.rows import Rows
from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.metrics import (
    matched_pair_calibration,
    pairwise_accuracy,
    pairwise_exposure,
)
from tests.metrics.simulate import columns


def scatter_of(sums):
    """Return the cross products of all columns over all rows, shape (K, K)."""
    rows = sums.rows
    total = Gram.of(rows.row, rows.group, rows.values, rows.shared, rows.n_groups)
    if sums.remainder is not None:
        total = total + sums.remainder.scatter
    return total.matrix.toarray()


def flat(rows):
    """Return all columns of each row, shape (Q, K)."""
    return np.hstack([rows.by_group.reshape(rows.n_rows, -1), rows.shared])


def with_data(rows):
    """Return the rows without the entries of groups that they have no data of."""
    some = (rows.values != 0).any(axis=1)
    some |= False if rows.member is None else rows.member
    member = None if rows.member is None else rows.member[some]
    return replace(
        rows,
        row=rows.row[some],
        group=rows.group[some],
        values=rows.values[some],
        member=member,
    )


def complete(rows):
    """Return the rows with an entry for each group."""
    member = None
    if rows.member is not None:
        member = np.zeros((rows.n_rows, rows.n_groups), dtype=bool)
        member[rows.row, rows.group] = rows.member
    return Rows.of_all(rows.by_group, rows.shared, rows.labels, member)


@pytest.fixture(scope="module")
def accuracy():
    return pairwise_accuracy(**columns())


@pytest.fixture(scope="module")
def matched():
    return matched_pair_calibration(**columns(1), epsilon=0.3)


@pytest.fixture(scope="module")
def with_empty_group():
    """Three groups, the last of which has no item."""
    data = columns(2)
    letters = data.pop("sensitive_features")
    data["sensitive_features"] = np.stack([letters == g for g in "abz"], axis=1)
    with pytest.warns(UndefinedMetricWarning, match="without pairs: 2"):
        return pairwise_exposure(**data)
