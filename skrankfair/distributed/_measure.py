"""One function for data of any size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from .._estimates.metric import warn_undefined, warn_user
from .._inputs.missing import missing_said
from .._inputs.validation import check_number
from ..metrics import GroupEstimates
from ._plan import MeasurePlan, check_refits, make_plan, total_of
from ._quantile import with_edges, with_thresholds
from ._shifts import with_curves


def measure(
    data: Any,
    metrics: Any,
    *,
    y_true: str | None = None,
    y_score: str | None = None,
    sensitive_features: Any = None,
    qid: str | None = None,
    cluster: str | None = None,
    engagement: str | None = None,
    sample_weight: str | None = None,
    item_weight: str | None = None,
    n_partitions: int | None = None,
    n_replicates: int = 0,
    random_state: int = 0,
    memory_limit: str | None = None,
    temp_directory: Any = None,
    n_jobs: int | None = None,
    progress: Callable[[str], object] | None = None,
) -> dict[str, GroupEstimates]:
    """Measure data of any size by metrics whose results add up.

    The rows of each cluster (or query) are brought into one part, every part is
    measured on its own, and the results are summed. They are those of all data in
    memory: estimates, standard errors, degrees of freedom and tests. A caliper of
    matched pairs that holds a share of all pairs (``quantile=``) and the edges of the
    strata of engagement (``bins=4``) are those of all data too, and take two or three
    passes over them before. So are the curves of `positive_rate_shift` and of
    `rank_shift`, whose errors are those of replicates.

    Parameters
    ----------
    data : path, list of paths, frame, or table of an engine
        Parquet or CSV files by path or pattern (``"log/*.parquet"``), a pyarrow Table,
        Dataset or RecordBatchReader, a polars LazyFrame or a DuckDB relation go
        through DuckDB on this machine, which moves to disk what does not fit into
        memory. A Dask DataFrame is shuffled and measured by the scheduler that is
        active, a Spark DataFrame (also of Spark Connect) by the workers of its session.
        pandas and polars frames in memory are measured as they are.
    metrics : str, callable, sequence of these or dict of str to these
        Names or functions of `skrankfair.metrics`, `functools.partial` of them, and
        metrics of your own by `make_metric`.
    y_true : str or None, default=None
        Column of the outcomes.
    y_score : str or None, default=None
        Column of the scores. `group_mean` takes it for its values.
    sensitive_features : str, list of str or None, default=None
        Column of the groups; several are crossed. None makes all rows one group.
    qid : str or None, default=None
        Column of the query, for metrics of rankings.
    cluster : str or None, default=None
        Column of the independent units, such as users with several queries. None makes
        each query its own unit, or each row where there are no queries.
    engagement : str or None, default=None
        Column of the engagement after the click.
    sample_weight : str or None, default=None
        Column of the weight, as the metrics take it.
    item_weight : str or None, default=None
        Column of the weight of the item, for metrics over pairs.
    n_partitions : int or None, default=None
        Number of parts. None takes one per 2 million rows; that of a Dask DataFrame is
        its own, that of a Spark DataFrame the session's.
    n_replicates : int, default=0
        Number of bootstrap replicates, as `GroupEstimates.compact` keeps them: the same
        whatever the engine and the number of parts. `positive_rate_shift` and
        `rank_shift` need some.
    random_state : int, default=0
        Seed of the replicates, the same for all results that are to be added.
    memory_limit : str or None, default=None
        Memory of DuckDB, such as "2GB". None is DuckDB's own limit.
    temp_directory : path-like or None, default=None
        Where the parts wait on disk. None is the temporary directory of the system.
    n_jobs : int or None, default=None
        Number of parts that are measured at a time, in processes of joblib. These are
        started once the first part has shown that they save time.
    progress : callable or None, default=None
        Called with a line of text, such as by ``print``, when a part of files has been
        measured: how many rows are done in this pass.

    Returns
    -------
    dict of str to GroupEstimates
        Without their tables, as `GroupEstimates.compact` returns them.

    Raises
    ------
    ValueError
        If a column is missing, a query is in two clusters, or a metric does not add up
        over parts: pairs of one list, or `calibration_error` without edges of bins. Of
        Spark also for a metric of your own, which `GroupEstimates.to_json` refuses.
    ImportError
        If the package of the engine is not installed.

    Warns
    -----
    UndefinedMetricWarning
        For groups without an estimate or an error in all data.
    UserWarning
        If a metric with ``missing="drop"`` or "group" leaves out or relabels rows.

    See Also
    --------
    skrankfair.metrics.GroupEstimates.to_json : Store a result, to be added to later.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from skrankfair.distributed import measure
    >>> rng = np.random.default_rng(0)
    >>> log = pd.DataFrame({"session": np.repeat(np.arange(500), 10)})
    >>> log["region"] = rng.choice(["north", "south"], size=len(log))
    >>> log["score"] = rng.random(len(log))
    >>> log["clicked"] = rng.random(len(log)) < 0.3
    >>> found = measure(
    ...     log,
    ...     ["pairwise_accuracy", "pairwise_exposure"],
    ...     y_true="clicked",
    ...     y_score="score",
    ...     sensitive_features="region",
    ...     qid="session",
    ... )
    >>> found["pairwise_exposure"].groups
    ('north', 'south')
    """
    plan = make_plan(
        metrics,
        {
            "y_true": y_true,
            "y_score": y_score,
            "sensitive_features": sensitive_features,
            "qid": qid,
            "cluster": cluster,
            "engagement": engagement,
            "sample_weight": sample_weight,
            "item_weight": item_weight,
        },
        n_replicates,
        random_state,
    )
    engine = engine_of(
        data, n_partitions, memory_limit, temp_directory, n_jobs, progress
    )
    if engine is not in_memory:
        check_refits(plan.metrics)
        plan = with_edges(with_thresholds(plan, data, engine), data, engine)
        plan = with_curves(plan, data, engine)
    found = total_of(plan, engine(data, plan))
    lacking = [missing_said(result.missing) for result in found.values()]
    for said in dict.fromkeys(filter(None, lacking)):
        warn_user(" ".join(said), UserWarning)
    return {name: warn_undefined(result) for name, result in found.items()}


def in_memory(data: Any, plan: MeasurePlan) -> list[Mapping[Any, Any]]:
    """Return the results of a frame as one part."""
    plan.check_columns(data.columns)
    return [plan.measure(data)]


def engine_of(
    data: Any,
    n_partitions: int | None,
    memory_limit: str | None,
    temp_directory: Any,
    n_jobs: int | None,
    progress: Callable[[str], object] | None = None,
) -> Callable[[Any, MeasurePlan], list[Mapping[Any, Any]]]:
    """Return the function from data and plan to the results of the parts."""
    if n_partitions is not None:
        check_number(n_partitions, "n_partitions", 1, np.inf, integer=True)
    kind = _kind(data)
    if kind == "frame":
        return in_memory
    if kind == "dask":
        from ._dask import parts_of_dask

        return partial(parts_of_dask, n_partitions=n_partitions)
    if kind == "spark":
        from ._spark import parts_of_spark

        return partial(parts_of_spark, n_partitions=n_partitions)
    from ._duckdb import parts_of_duckdb

    return partial(
        parts_of_duckdb,
        n_partitions=n_partitions,
        memory_limit=memory_limit,
        temp_directory=temp_directory,
        n_jobs=n_jobs,
        progress=progress,
    )


def _kind(data: Any) -> str:
    """Return by what the data are measured."""
    root = type(data).__module__.partition(".")[0]
    if root in ("dask", "dask_expr"):
        return "dask"
    if root == "pyspark":
        return "spark"
    lazy = type(data).__name__ in ("LazyFrame", "Dataset", "RecordBatchReader")
    if root in ("pandas", "polars") and not lazy:
        return "frame"
    return "duckdb"
