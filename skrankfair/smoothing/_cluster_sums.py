"""Kernel sums by cluster, in blocks that fit into the cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .._inputs.sample import Sample
from .._inputs.validation import Array
from ._features import Features

_BLOCK_ROWS = 1 << 14
_BLOCK_VALUES = 1 << 20


class Block(NamedTuple):
    """Sums of the features over the rows of some clusters in a group.

    Attributes
    ----------
    cluster, group : ndarray of shape (m,), int64
    outcome : ndarray of shape (m, r)
        ``A``: of the features times the outcome.
    mass : ndarray of shape (m, r)
        ``B``: of the features.
    """

    cluster: Array
    group: Array
    outcome: Array
    mass: Array


def cluster_blocks(sample: Sample, features: Features) -> Iterator[Block]:
    """Yield sums of the features by cluster and group, whole clusters at a time."""
    starts = sample.segment_starts
    n_segments, n_rows = starts.size, sample.x.size
    ends = np.append(starts[1:], n_rows)
    # A block ends where a cluster does.
    last_of_cluster = np.append(
        np.flatnonzero(np.diff(sample.cluster[starts])), n_segments - 1
    )
    rows = max(256, min(_BLOCK_ROWS, _BLOCK_VALUES // features.rank))
    first = 0
    while first < n_segments:
        reached = np.searchsorted(ends, starts[first] + rows, side="right") - 1
        place = np.searchsorted(last_of_cluster, max(reached, first), side="right") - 1
        stop = last_of_cluster[place] + 1 if place >= 0 else 0
        if stop <= first:
            stop = last_of_cluster[np.searchsorted(last_of_cluster, first)] + 1
        yield _block(sample, features, starts, ends, slice(first, stop), rows)
        first = stop


def _block(
    sample: Sample,
    features: Features,
    starts: Array,
    ends: Array,
    segments: slice,
    step: int,
) -> Block:
    low, high = starts[segments][0], ends[segments][-1]
    size = segments.stop - segments.start
    sums = np.zeros((2, size, features.rank))
    for row in range(low, high, step):
        part = slice(row, min(row + step, high))
        share = sample.share[part]
        factors = np.stack([share * sample.y[part], share])
        segment = np.searchsorted(starts, np.arange(part.start, part.stop), "right")
        segment -= 1 + segments.start
        if part.stop == high and row == low:
            sums = features.segment_sums(sample.x[part], factors, segment, size)
        else:
            sums += features.segment_sums(sample.x[part], factors, segment, size)
    outcome, mass = sums
    return Block(
        sample.cluster[starts[segments]], sample.group[starts[segments]], outcome, mass
    )


def group_scatter(
    sample: Sample, features: Features, n_groups: int
) -> tuple[Array, Array, Array]:
    """Return totals and cross products of the kernel sums of all clusters.

    Parameters
    ----------
    sample : Sample
    features : Features
    n_groups : int

    Returns
    -------
    totals : ndarray of shape (G, 2, J)
        ``Σ_m A_m`` and ``Σ_m B_m`` on the grid.
    scatter : ndarray of shape (G, 2, J, G, 2, J)
        ``Σ_m`` of the products of all of these.
    active : ndarray of shape (G,)
        Number of clusters with rows of the group.
    """
    width = 2 * features.rank
    totals = np.zeros((n_groups, width))
    scatter = np.zeros((n_groups, n_groups, width, width))
    active = np.zeros(n_groups)
    for block in cluster_blocks(sample, features):
        columns = np.hstack([block.outcome, block.mass])
        counts = None
        if sample.frequency is not None:
            counts = sample.frequency[block.cluster]
        chosen = [np.flatnonzero(block.group == g) for g in range(n_groups)]
        for g, own in enumerate(chosen):
            if not own.size:
                continue
            weighted = _times(columns[own], counts, own)
            totals[g] += weighted.sum(0)
            active[g] += own.size if counts is None else counts[own].sum()
            scatter[g, g] += weighted.T @ columns[own]
            for h in range(g + 1, n_groups):
                _, i, j = np.intersect1d(
                    block.cluster[own],
                    block.cluster[chosen[h]],
                    assume_unique=True,
                    return_indices=True,
                )
                if i.size:
                    cross = weighted[i].T @ columns[chosen[h][j]]
                    scatter[g, h] += cross
                    scatter[h, g] += cross.T
    shape = (n_groups, 2, features.rank)
    scatter = scatter.transpose(0, 2, 1, 3).reshape(*shape, *shape)
    scatter = features.at_grid(np.moveaxis(features.at_grid(scatter), 2, -1))
    return (
        features.at_grid(totals.reshape(shape)),
        np.moveaxis(scatter, -1, 2),
        active,
    )


def _times(columns: Array, counts: Array | None, rows: Array) -> Array:
    return columns if counts is None else columns * counts[rows, None]


def influence_blocks(
    sample: Sample, features: Features, estimate: Array, mass: Array
) -> Iterator[tuple[Array, Array]]:
    """Yield clusters and their influences ``ψ_m = (A_m - f B_m) / Σ B`` on the grid.

    For a sample of one group.

    Parameters
    ----------
    sample : Sample
    features : Features
    estimate, mass : ndarray of shape (J,)
        The curve and ``Σ_m B_m``.

    Yields
    ------
    cluster : ndarray of shape (m,), int64
    influence : ndarray of shape (m, J)
    """
    for block in cluster_blocks(sample, features):
        influence = features.at_grid(block.outcome)
        influence = influence - estimate * features.at_grid(block.mass)
        with np.errstate(divide="ignore", invalid="ignore"):
            yield block.cluster, influence / mass
