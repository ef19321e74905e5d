"""Results in the order of time as independent blocks of enough data, by group."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from .._estimates.finalize import MeanOfRatios
from .._estimates.group_estimates import GroupEstimates
from .._inputs.validation import Array
from ._sequences import Blocks


def gap_of(result: GroupEstimates) -> GroupEstimates:
    """Return a result with a fair value, or else its difference from the rest."""
    return result if result.fair_value is not None else result.against_rest()


def independent_rows(result: GroupEstimates) -> list[tuple[float, float]]:
    """Return by group the number of rows, and of those that count.

    NaN unless the level is the share of them, and no cluster has two: then there are as
    many effective clusters as rows.
    """
    finalize, sums = result.metric.finalize, result.sums
    unknown = [(np.nan, np.nan)] * len(result.groups)
    if not (result.metric.share and isinstance(finalize, MeanOfRatios)):
        return unknown
    ratio, rows = finalize.parts(sums.by_group, sums.shared)
    if ratio.shape[-1] != 1:
        return unknown
    n, share = rows[:, 0], np.nan_to_num(ratio[:, 0])
    single = (n == 0) | np.isclose(result.n_effective, n, rtol=1e-9, atol=0.0)
    n = np.where(single, n, np.nan)
    return list(zip(n.tolist(), (n * share).tolist(), strict=True))


@dataclass
class _Block:
    """Numbers of a block: value, variance and degrees of freedom of level and gap."""

    level: list[float]
    gap: list[float]
    weight: float
    last: int
    #: Rows of the group since the first update, and those that count, of a share of
    #: independent rows; else None.
    rows: tuple[float, float] | None


@dataclass
class Tracker:
    """Puts updates together until each group has enough data for a normal estimate.

    Attributes
    ----------
    least : float
        Effective clusters that a block needs.
    blocks : dict of hashable to list of _Block
        By group, in the order of their first update.
    n_first : int
        Groups of the first update.
    """

    least: float
    blocks: dict[Hashable, list[_Block]] = field(default_factory=dict)
    n_first: int = 0
    n_updates: int = 0
    _since: dict[Hashable, int] = field(default_factory=dict)
    _sums: dict[int, GroupEstimates] = field(default_factory=dict)
    _rows: dict[Hashable, tuple[float, float] | None] = field(default_factory=dict)

    def add(self, result: GroupEstimates) -> None:
        """Add the next update."""
        number, result = self.n_updates, result.compact()
        if number == 0:
            self.n_first = len(result.groups)
        self.n_updates += 1
        self._sums = {start: total + result for start, total in self._sums.items()}
        self._sums[number] = result
        for group, more in zip(result.groups, independent_rows(result), strict=True):
            self.blocks.setdefault(group, [])
            self._since.setdefault(group, number)
            n, count = self._rows.get(group, (0.0, 0.0)) or (np.nan, np.nan)
            known = np.isfinite(n + more[0])
            self._rows[group] = (n + more[0], count + more[1]) if known else None
        for start, total in self._sums.items():
            groups = [g for g in total.groups if self._since[g] == start]
            if groups:
                self._close(total, groups, number)
        open_ones = set(self._since.values())
        self._sums = {s: total for s, total in self._sums.items() if s in open_ones}

    def _close(
        self, total: GroupEstimates, groups: list[Hashable], number: int
    ) -> None:
        """Make blocks of the groups that have enough data since their last one."""
        gap = gap_of(total)
        enough = (gap.n_effective >= self.least) & (total.n_effective >= self.least)
        for result in (gap, total):
            enough &= (result.standard_error > 0) & np.isfinite(result.estimate)
        levels, gaps = (
            np.stack([r.estimate - fair, r.standard_error**2, r.df], axis=1).tolist()
            for r, fair in ((total, 0.0), (gap, gap.fair_value or 0.0))
        )
        for i, group in enumerate(total.groups):
            if enough[i] and group in groups:
                weight, rows = float(gap.n_effective[i]), self._rows[group]
                block = _Block(levels[i], gaps[i], weight, number, rows)
                self.blocks[group].append(block)
                self._since[group] = number + 1

    def track(self, group: Hashable, what: str) -> Blocks:
        """Return the blocks of a group: of its "level" or its "gap"."""
        blocks = self.blocks[group]
        numbers = np.array([getattr(b, what) for b in blocks]).reshape(-1, 3).T
        return Blocks(
            value=numbers[0],
            variance=numbers[1],
            weight=np.array([b.weight for b in blocks]),
            df=numbers[2],
            last=np.array([b.last for b in blocks], dtype=int),
        )

    def rows(self, group: Hashable) -> Array | None:
        """Return the rows so far at each look, and those that count, shape (2, n).

        None unless the level is a share of independent rows in all updates.
        """
        blocks = self.blocks[group]
        if self._rows[group] is None or not blocks:
            return None
        return np.array([block.rows for block in blocks]).T

    def share(self, group: Hashable) -> float:
        """Return the share of alpha of a group; the shares add up to 1 for ever.

        The groups of the first update have as much each, as if there was one more; that
        of the j-th is ``1 / (j (j + 1))`` if it comes later.
        """
        place = 1 + list(self.blocks).index(group)
        first = self.n_first
        return 1 / (first + 1) if place <= first else 1 / (place * (place + 1))


def first_updates(blocks: Blocks) -> Array:
    """Return the number of the first update that is in each block."""
    return np.concatenate([[0], blocks.last[:-1] + 1]).astype(int)[: blocks.last.size]
