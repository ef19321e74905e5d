"""Numbers that a metric chooses from the data, taken from a sample of whole clusters.

A caliper, the edges of strata of engagement or a curve depend on all rows, so results
of parts with numbers of their own do not add up. The same metric in memory chooses
them from a sample, and all parts are given them. A hash of the label of a cluster
decides whether it is in the sample, so that the sample is the same for every engine
and any number of parts. Data that are no larger than the sample are taken whole.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any

import numpy as np

from .. import metrics as library
from .._estimates.resampled import label_hashes
from .._inputs.validation import collected_warnings, to_numpy
from ._plan import MeasurePlan, Results, Source, plain_of

# About how many rows the sample has. Samples of 1e5 rows of 1e6 moved the calipers of
# three groups by 1.5%, and their estimates by an eighth of the standard error of all.
_SAMPLE_ROWS = 1_000_000
# Of large clusters more rows are taken until there are so many, since errors over
# fewer clusters would have hardly any degrees of freedom.
_FEWEST_CLUSTERS = 10

# What the sample gives for metrics that do not add up even if all numbers are given.
_ESTIMATES = "estimates and errors"


def first_pass(plan: MeasurePlan, source: Source) -> tuple[MeasurePlan, Results]:
    """Return the plan with the numbers of a sample, and the results of the sample.

    The plan has the metrics that add up over parts, with all numbers given; the results
    are of those that do not, which are measured on the sample.
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
        with collected_warnings():  # those of all parts are given once, at the end
            result = plan.result(name, metric, values)
        if number == _ESTIMATES:
            results[name] = result.compact(plan.n_replicates, plan.random_state)
        elif number == "epsilon":
            epsilon = _with_default(result.first_pass[number], sample)
            given = {"epsilon": epsilon, "quantile": None, "n_pairs": None}
            metrics[name] = partial(metric, **given)
        else:
            edges = result.first_pass[number]
            if sample:  # other rows may lie outside those of the sample
                edges = (-np.inf, *edges[1:-1], np.inf)
            metrics[name] = partial(metric, bins=edges)
    return replace(plan, metrics=metrics), results


def _sampled(
    plan: MeasurePlan, names: Sequence[str], source: Source
) -> tuple[Any, dict[str, int]]:
    """Return the rows of the sample and its size; no size if it has all rows."""
    n_rows, by = source.n_rows, plan.partition_by
    share = _SAMPLE_ROWS / n_rows
    if share < 1 and by is None:
        raise ValueError(
            f"{', '.join(names)} of {n_rows:,} rows takes a sample of units, which "
            "their labels choose; name their column by cluster=, which may be that of "
            "the rows."
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
    return source.rows(_all_rows), {}


def _rows_of_clusters(frame: Any, by: str, share: float, seed: int) -> Any:
    """Return the rows of a frame whose clusters have a hash below a share of all."""
    import narwhals as nw
    import pandas as pd

    rows = nw.from_native(frame, eager_only=True)
    labels = to_numpy(nw.to_native(rows[by]), by)
    codes: Any = slice(None)
    if labels.dtype.kind not in "biufM":  # the same text many times
        codes, labels = pd.factorize(labels.astype(object), use_na_sentinel=False)
    # Hashed once more, so that the weights of replicates are independent of it.
    hashes = label_hashes(label_hashes(labels) + np.uint64(seed))
    is_chosen = (hashes < np.uint64(share * 2.0**64))[codes]
    return nw.to_native(rows[np.flatnonzero(is_chosen), :])


def _all_rows(frame: Any) -> Any:
    return frame


def _chosen_from_data(plan: MeasurePlan) -> dict[str, str]:
    """Return the entry of ``first_pass`` that each metric chooses from all data.

    Metrics that choose nothing are left out.
    """
    chosen: dict[str, str] = {}
    for name, metric in plan.metrics.items():
        options = {
            key: one.default for key, one in signature(metric).parameters.items()
        }
        if not _adds_up(metric, options):
            chosen[name] = _ESTIMATES
        elif {"quantile", "epsilon"} <= options.keys() and options["epsilon"] is None:
            chosen[name] = "epsilon"
        elif (
            {"engagement", "bins"} <= options.keys()
            and "engagement" in plan.columns
            and np.ndim(options["bins"]) == 0
        ):
            chosen[name] = "engagement_edges"
    return chosen


def _adds_up(metric: Callable[..., Any], options: Mapping[str, Any]) -> bool:
    """Return whether results of parts add up once the first pass is given."""
    function = plain_of(metric)
    if function is library.calibration_error:
        return options["method"] == "binned" and np.ndim(options["bins"]) > 0
    return function not in (library.positive_rate_shift, library.rank_shift)


def _with_default(
    epsilon: Mapping[Any, float], sample: Mapping[str, int]
) -> Mapping[Any, float]:
    """Return calipers by group, the median for groups without pairs in the sample."""
    if not sample:
        return epsilon
    known = {group: value for group, value in epsilon.items() if not np.isnan(value)}
    median = float(np.median(list(known.values()))) if known else float("nan")
    return defaultdict(partial(float, median), known)
