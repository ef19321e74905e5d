"""`measure`: metrics on data of any size, with first passes from a sample.

A caliper, the edges of strata of engagement or a curve depend on all rows, so results
of parts that choose their own numbers do not add up. So the same metric in memory
chooses the numbers from a sample of whole clusters, and all parts use them. A hash of
the label of a cluster decides whether it is in the sample, so that the sample is the
same for every engine and any number of parts. Data that are no larger than the sample
are taken whole.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from itertools import chain
from typing import Any

import narwhals as nw
import numpy as np

from .. import metrics as library
from .._estimates.metric import warn_undefined
from .._estimates.resampled import label_hashes
from .._inputs.columns import missing_said
from .._inputs.validation import (
    NoRowError,
    check_number,
    collected_warnings,
    progress_shown,
    to_numpy,
    warn_user,
)
from ..metrics import GroupEstimates
from ..scoring._score_function import COLUMNS, unwrapped
from ._plan import MeasurePlan, Results, Source, added, make_plan
from ._sources import DaskSource, SparkSource, duckdb_source

# About how many rows the sample has. Samples of 1e5 of 1e6 rows moved the calipers of
# three groups by 1.5%, and estimates by an eighth of the standard error of all rows.
_SAMPLE_ROWS = 1_000_000
# The least number of clusters in the sample: where clusters are large it has more rows,
# since errors over few clusters would have hardly any degrees of freedom.
_FEWEST_CLUSTERS = 10

# The arguments of `measure` that name columns.
_COLUMNS = "y_true", "y_score", *COLUMNS, "position"
# What comes from the sample for metrics that do not add up with any given numbers.
_ESTIMATES = "estimates and errors"


def measure(
    data: Any,
    metrics: Any,
    *,
    y_true: str | None = None,
    y_score: str | None = None,
    sensitive_features: Any = None,
    qid: str | None = None,
    cluster: str | Sequence[str] | None = None,
    position: str | None = None,
    engagement: str | None = None,
    sample_weight: str | None = None,
    item_weight: str | None = None,
    n_partitions: int | None = None,
    n_replicates: int = 0,
    random_state: int = 0,
    memory_limit: str | None = None,
    temp_directory: Any = None,
    n_jobs: int | None = None,
    progress: bool | Callable[[str], object] = False,
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
    Smaller data are their own sample, so that results are those of all data in memory.

    Parameters
    ----------
    data : path, list of paths, frame, or table of an engine
        Parquet or CSV files by path or pattern (``"log/*.parquet"``), a pyarrow Table,
        Dataset or RecordBatchReader, a polars LazyFrame or a DuckDB relation go
        through DuckDB on this machine, which moves to disk what does not fit into
        memory. In CSV files labels are text, unless all of a column are true and false
        or plain whole numbers; outcomes (and decisions) are labels where a metric has a
        text for its ``pos_label``. A Dask DataFrame is shuffled and measured by the
        scheduler that is active, a Spark DataFrame (also of Spark Connect) by the
        workers of its session. pandas and polars frames in memory are measured as they
        are.
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
    cluster : str, list of str or None, default=None
        Column of the independent units, such as users with several queries. None makes
        each query its own unit, or each row where there are no queries. Two columns are
        users and the items that recur among them, for metrics that take both.
    position : str or None, default=None
        Column of the rank at which the item was shown.
    engagement : str or None, default=None
        Column of the engagement after the click.
    sample_weight : str or None, default=None
        Column of the weight, as the metrics take it.
    item_weight : str or None, default=None
        Column of the weight of the item, for metrics over pairs.
    n_partitions : int or None, default=None
        About how many parts. None takes one per 2 million rows; that of a Dask
        DataFrame is its own, that of a Spark DataFrame the session's.
    n_replicates : int, default=0
        Number of bootstrap replicates, as `GroupEstimates.compact` keeps them: the same
        whatever the engine and the number of parts, unless an engine changes the labels
        of clusters: Dask reads objects as text, and DuckDB has another type of
        durations.
    random_state : int, default=0
        Seed of the replicates, the same for all results that are to be added. It also
        chooses the sample.
    memory_limit : str or None, default=None
        Memory of DuckDB, such as "2GB". None is DuckDB's own limit.
    temp_directory : path-like or None, default=None
        Where the parts wait on disk. None is the temporary directory of the system.
    n_jobs : int or None, default=None
        Number of parts that are measured at a time, in processes of joblib.
    progress : bool or callable, default=False
        Whether to show how far it is, on a terminal or in a notebook; a function is
        called with each line of text. Of files it is how many rows are done.

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
        `GroupEstimates.to_json` refuses. A row that an error of values names is that of
        a part, whose rows are in no order.
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
    given = locals()
    columns = {name: given[name] for name in _COLUMNS}
    plan = make_plan(metrics, columns, n_replicates, random_state)
    check_number(n_partitions, "n_partitions", 1, np.inf, integer=True, optional=True)
    check_number(n_jobs, "n_jobs", -np.inf, np.inf, integer=True, optional=True)
    kind = type(data).__module__.partition(".")[0]
    results: Results
    if kind in ("pandas", "polars") and type(data).__name__ == "DataFrame":
        plan.check_columns(data.columns)
        results = plan.measure(data)
    elif kind in ("dask", "dask_expr"):
        results = _total(plan, DaskSource(data, plan, n_partitions))
    elif kind == "pyspark":
        results = _total(plan, SparkSource(data, plan, n_partitions))
    else:
        settings = memory_limit, temp_directory, n_partitions, n_jobs
        with (
            progress_shown(progress) as say,
            duckdb_source(data, plan, *settings, say) as source,
        ):
            results = _total(plan, source)
    for result in results.values():
        if isinstance(result, NoRowError):  # no part has a row that counts
            raise result
    missing = [missing_said(result.missing) for result in results.values()]
    for sentences in dict.fromkeys(filter(None, missing)):
        warn_user(" ".join(sentences), UserWarning)
    return {name: warn_undefined(results[name]) for name in plan.metrics}


def _total(plan: MeasurePlan, source: Source) -> Results:
    """Return the sums of the results of all parts of a source."""
    plan.check_columns(source.data.columns)
    qid, cluster = plan.columns.get("qid"), plan.partition_by
    if qid is not None and cluster not in (None, qid):
        query = source.query_of_several(qid, cluster)
        if query is not None:
            raise ValueError(
                f"{cluster} must be constant within a query; {qid} {query!r} has rows "
                "of several clusters."
            )
    plan, of_sample = _first_pass(plan, source)
    of_parts = source.results(plan) if plan.metrics else ()
    total = added(chain([of_sample], of_parts))  # one by one, as they may be large
    if not total:
        raise ValueError("data must have at least one row; it has none.")
    return total


def _first_pass(plan: MeasurePlan, source: Source) -> tuple[MeasurePlan, Results]:
    """Return the plan with the numbers of a sample, and the results of the sample.

    The plan has the metrics that add up over parts, with all numbers given. The results
    are those of the other metrics, which are measured on the sample.
    """
    chosen = _chosen_from_data(plan)
    n_rows = source.n_rows if chosen else 0
    if not n_rows:
        return plan, {}
    frame, sample = _sampled(plan, list(chosen), source)
    if sample:
        sampled = {name: {"gives": chosen[name], **sample} for name in chosen}
        plan = replace(plan, sampled=sampled)
    values = plan.values(frame)
    metrics, results = dict(plan.metrics), {}
    for name, number in chosen.items():
        metric = metrics.pop(name)
        n_pairs = signature(metric).parameters.get("n_pairs")
        if sample and n_pairs is not None and n_pairs.default is not None:
            share = sample["rows"] / n_rows
            metric = partial(metric, n_pairs=max(1, round(n_pairs.default * share)))
        with collected_warnings():  # warnings about all data are given once, at the end
            result = replace(plan, metrics={name: metric}).result(name, values)
        if number == _ESTIMATES:
            results[name] = result.compact(plan.n_replicates, plan.random_state)
            continue
        value = result.first_pass[number]
        if number == "epsilon":
            epsilon = _with_median(value) if sample else value
            given = {"epsilon": epsilon, "quantile": None, "n_pairs": None}
        else:  # other rows may lie outside the edges of a sample
            given = {"bins": (-np.inf, *value[1:-1], np.inf) if sample else value}
        metrics[name] = partial(metric, **given)
    return replace(plan, metrics=metrics), results


def _sampled(
    plan: MeasurePlan, names: Sequence[str], source: Source
) -> tuple[Any, dict[str, int]]:
    """Return the rows of the sample and its size; an empty size if it is all rows."""
    n_rows, by = source.n_rows, plan.partition_by
    share = _SAMPLE_ROWS / n_rows
    if share < 1 and by is None:
        raise ValueError(
            f"{', '.join(names)} of {n_rows:,} rows needs a sample of units, chosen by "
            "their labels; name their column by cluster=, which may be that of the "
            "rows."
        )
    while share < 1 and by is not None:
        choose = partial(_rows_of_clusters, by=by, share=share, seed=plan.random_state)
        frame = source.rows(choose)
        labels = to_numpy(frame[by], by)
        n_clusters = len(set(labels.tolist()))
        if n_clusters >= _FEWEST_CLUSTERS:
            size = {"rows": labels.size, "clusters": n_clusters, "of_rows": n_rows}
            return frame, size
        share *= 2
    return source.rows(lambda frame: frame), {}


def _rows_of_clusters(frame: Any, by: str, share: float, seed: int) -> Any:
    """Return the rows of a frame whose clusters have a hash below a share of all."""
    rows = nw.from_native(frame, eager_only=True)
    labels = to_numpy(nw.to_native(rows[by]), by)
    # Hashed again, so that the sample is independent of the counts of replicates.
    hashes = label_hashes(label_hashes(labels) + np.uint64(seed))
    return nw.to_native(rows[np.flatnonzero(hashes < np.uint64(share * 2.0**64)), :])


def _chosen_from_data(plan: MeasurePlan) -> dict[str, str]:
    """Return the entry of ``first_pass`` that each metric chooses from all data.

    Metrics that choose nothing are left out.
    """
    chosen: dict[str, str] = {}
    for name, metric in plan.metrics.items():
        parameters = signature(metric).parameters
        options = {key: one.default for key, one in parameters.items()}
        chooses_bins = "bins" in options and np.ndim(options["bins"]) == 0
        if unwrapped(metric) in (library.positive_rate_shift, library.rank_shift):
            chosen[name] = _ESTIMATES
        elif unwrapped(metric) is library.calibration_error:
            if options["method"] != "binned" or chooses_bins:
                chosen[name] = _ESTIMATES
        elif {"quantile", "epsilon"} <= options.keys() and options["epsilon"] is None:
            chosen[name] = "epsilon"
        elif chooses_bins and "engagement" in options.keys() & plan.columns.keys():
            chosen[name] = "engagement_edges"
    return chosen


def _with_median(epsilon: Mapping[Any, float]) -> Mapping[Any, float]:
    """Return calipers by group, the median for groups without pairs in the sample."""
    known = {group: value for group, value in epsilon.items() if not np.isnan(value)}
    median = float(np.median([*known.values()] or [np.nan]))
    return defaultdict(partial(float, median), known)
