"""A Dask DataFrame: shuffled by cluster, measured part by part where it lives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..metrics import GroupEstimates
from ._plan import Plan


def parts_of_dask(
    data: Any, plan: Plan, n_partitions: int | None
) -> list[Mapping[str, GroupEstimates]]:
    """Return the results of the parts of a Dask DataFrame."""
    from dask.base import compute
    from dask.delayed import delayed

    plan.check_columns(data.columns)
    frame = data[plan.names]
    by = plan.partition_by
    if by is not None:
        frame = frame.shuffle(on=by, npartitions=n_partitions or data.npartitions)
    parts = [delayed(_measure_part)(plan, part) for part in frame.to_delayed()]
    return [found for found in compute(*parts) if found is not None]


def _measure_part(plan: Plan, frame: Any) -> Mapping[str, GroupEstimates] | None:
    """Return the results of one part; None of one without rows."""
    return plan.measure(frame) if len(frame) else None
