"""A Dask DataFrame: shuffled by cluster, measured part by part where it lives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ._plan import MeasurePlan, Results, added

# Results that one task adds up.
_AT_A_TIME = 8


@dataclass
class DaskSource:
    """A Dask DataFrame.

    Attributes
    ----------
    data : dask.dataframe.DataFrame
    plan : MeasurePlan
    n_partitions : int or None
        Of the shuffled rows; None is that of the data.
    """

    data: Any
    plan: MeasurePlan
    n_partitions: int | None

    @property
    def columns(self) -> Iterable[Any]:
        """The names of the columns."""
        return self.data.columns

    @cached_property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.data)

    def query_of_several(self, qid: str, cluster: str) -> Any:
        """Return a query with rows of several clusters, or None."""
        pairs = self.data[[qid, cluster]]
        meta = pairs._meta
        pairs = pairs.map_partitions(_distinct, meta=meta).shuffle(on=qid)
        split = pairs.map_partitions(_repeated, qid, meta=meta).compute()
        return split[qid].iloc[0] if len(split) else None

    def rows(self, choose: Callable[[Any], Any]) -> Any:
        """Return a frame of the rows that a function takes of each partition."""
        frame = self.data[self.plan.names]
        return frame.map_partitions(choose, meta=frame._meta).compute()

    def results(self, plan: MeasurePlan) -> list[Results]:
        """Return the total of the partitions, which a tree of tasks adds."""
        from dask.delayed import delayed

        frame, by = self.data[plan.names], plan.partition_by
        if by is not None:
            n_partitions = self.n_partitions or frame.npartitions
            frame = frame.shuffle(on=by, npartitions=n_partitions)
        level = [delayed(_measured)(plan, part) for part in frame.to_delayed()]
        while len(level) > 1:
            level = [
                delayed(added)(level[start : start + _AT_A_TIME])
                for start in range(0, len(level), _AT_A_TIME)
            ]
        return [level[0].compute()]


def _measured(plan: MeasurePlan, frame: Any) -> Results:
    """Return the results of one partition; none of one without rows."""
    return plan.measure(frame) if len(frame) else {}


def _distinct(pairs: Any) -> Any:
    """Return the queries of a partition with their clusters."""
    return pairs.drop_duplicates()


def _repeated(pairs: Any, qid: str) -> Any:
    """Return a query that has several clusters, if there is one."""
    pairs = pairs.drop_duplicates()
    return pairs[pairs[qid].duplicated()].head(1)
