"""From rows to the table of sums, for metrics that look at one row at a time."""

from __future__ import annotations

import numpy as np

from .._inputs.sample import Sample
from .._inputs.score_rows import ScoreRows
from .._inputs.validation import Array
from .sums import Table


def cluster_table(rows: ScoreRows, sample: Sample, columns: list[Array]) -> Table:
    """Return the sums of columns of the sample by cluster and group.

    Parameters
    ----------
    rows : ScoreRows
        For the labels of the clusters and the groups.
    sample : Sample
        Of these rows.
    columns : list of ndarray of shape (n,)
        In the order of the sample.

    Returns
    -------
    Table
        Of shape (n_clusters, G, C).
    """
    starts = sample.segment_starts
    shape = (sample.n_clusters, len(rows.groups), len(columns))
    table = np.zeros(shape)
    place = sample.cluster[starts], sample.group[starts]
    for k, column in enumerate(columns):
        table[(*place, k)] = np.add.reduceat(np.asarray(column, dtype=float), starts)
    return Table(
        table,
        np.zeros((sample.n_clusters, 0)),
        sample.frequency,
        rows.cluster_labels,
    )


def row_counts(rows: ScoreRows, sample: Sample) -> Array:
    """Return how many rows each row of the sample is, within its cluster."""
    if rows.weight is None or sample.frequency is not None:
        return np.ones(sample.x.size)
    return rows.weight[sample.row]
