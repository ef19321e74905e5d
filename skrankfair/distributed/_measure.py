"""One function for data of any size."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from typing import Any

import numpy as np

from .._estimates.metric import warn_undefined
from .._inputs.columns import missing_said
from .._inputs.validation import check_number, warn_user
from ..metrics import GroupEstimates
from ._first_pass import first_pass
from ._plan import MeasurePlan, Results, Source, added, make_plan


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
    memory: estimates, standard errors, degrees of freedom and tests.

    Some numbers are chosen from the data: the caliper of matched pairs (``quantile=``
    or ``n_pairs=``) and the edges of the strata of engagement (``bins=4``). Of more
    than a million rows they come from a sample of whole clusters of about that size.
    `positive_rate_shift`, `rank_shift` and `calibration_error` without edges of bins do
    not add up over parts and are measured on this sample alone. Such a result says so,
    and ``first_pass["sample"]`` holds the numbers of rows and clusters of the sample.
    Smaller data are their own sample, so that results are those of memory.

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
        Names or functions of `skrankfair.metrics`, names of metrics that
        `skrankfair.audit` has, `functools.partial` of such functions, and
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
        whatever the engine and the number of parts.
    random_state : int, default=0
        Seed of the replicates, the same for all results that are to be added. It also
        chooses the sample.
    memory_limit : str or None, default=None
        Memory of DuckDB, such as "2GB". None is DuckDB's own limit.
    temp_directory : path-like or None, default=None
        Where the parts wait on disk. None is the temporary directory of the system.
    n_jobs : int or None, default=None
        Number of parts that are measured at a time, in processes of joblib. These are
        started once the first part has shown that they save time.
    progress : callable or None, default=None
        Called with a line of text, such as by ``print``, when a part of files has been
        measured: how many rows are done.

    Returns
    -------
    dict of str to GroupEstimates
        Without their tables, as `GroupEstimates.compact` returns them.

    Raises
    ------
    ValueError
        If a column is missing, a query is in two clusters, a metric compares the items
        of one list, whose pairs do not add up over parts, or a sample is needed and no
        column labels the units. Of Spark also for a metric of your own, which
        `GroupEstimates.to_json` refuses.
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
    >>> results = measure(
    ...     log,
    ...     ["pairwise_accuracy", "pairwise_exposure"],
    ...     y_true="clicked",
    ...     y_score="score",
    ...     sensitive_features="region",
    ...     qid="session",
    ... )
    >>> results["pairwise_exposure"].groups
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
    if n_partitions is not None:
        check_number(n_partitions, "n_partitions", 1, np.inf, integer=True)
    if _in_memory(data):
        plan.check_columns(data.columns)
        results = plan.measure(data)
    else:
        with _source(
            data,
            plan,
            n_partitions,
            memory_limit=memory_limit,
            temp_directory=temp_directory,
            n_jobs=n_jobs,
            progress=progress,
        ) as source:
            results = _total(plan, source)
    missing = [missing_said(result.missing) for result in results.values()]
    for sentences in dict.fromkeys(filter(None, missing)):
        warn_user(" ".join(sentences), UserWarning)
    return {name: warn_undefined(results[name]) for name in plan.metrics}


def _module(data: Any) -> str:
    """Return the name of the package that the data are of."""
    return type(data).__module__.partition(".")[0]


def _in_memory(data: Any) -> bool:
    """Return whether the data are a frame of pandas or polars."""
    return _module(data) in ("pandas", "polars") and type(data).__name__ != "LazyFrame"


def _source(
    data: Any, plan: MeasurePlan, n_partitions: int | None, **options: Any
) -> AbstractContextManager[Source]:
    """Return the data as a source of their engine; `options` are those of DuckDB."""
    if _module(data) in ("dask", "dask_expr"):
        from ._dask import DaskSource

        return nullcontext(DaskSource(data, plan, n_partitions))
    if _module(data) == "pyspark":
        from ._spark import SparkSource

        return nullcontext(SparkSource(data, plan, n_partitions))
    from ._duckdb import duckdb_source

    return duckdb_source(data, plan, n_partitions, **options)


def _total(plan: MeasurePlan, source: Source) -> Results:
    """Return the sums of the results of all parts of a source."""
    plan.check_columns(source.columns)
    qid, cluster = plan.columns.get("qid"), plan.columns.get("cluster")
    if qid is not None and cluster not in (None, qid):
        query = source.query_of_several(qid, cluster)
        if query is not None:
            raise ValueError(
                f"{cluster} must be constant within a query; {qid} {query!r} has rows "
                "of several clusters."
            )
    plan, of_sample = first_pass(plan, source)
    of_parts = source.results(plan) if plan.metrics else ()
    total = added(chain([of_sample], of_parts))  # one by one, as they may be large
    if not total:
        raise ValueError("data must have at least one row; it has none.")
    return total
