"""The audit of a ranking of any size."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from .._estimates import storage
from .._estimates.metric import collected_warnings, warn_undefined, warn_user
from .._inputs.missing import MISSING, missing_said
from .._inputs.ranking import ranked_data
from .._inputs.validation import check_choice, check_number
from .._reports.audit import AuditReport, check_item_weight, report_of
from .._reports.audit_metric import FAVORABLE, AuditMetric
from .._reports.catalog import chosen_metrics, not_named
from .._reports.facts import AuditFacts, defined
from .._reports.findings import CORRECTION_NAMES
from .._reports.margins import Margin, margins_of
from ..metrics import GroupEstimates, matched_pair_calibration
from ._measure import engine_of
from ._plan import MeasurePlan, make_plan, total_of
from ._quantile import with_thresholds

# By its name a result is one of a metric, and the facts have none.
_FACTS, _MATCHED = "", "matched_pair_calibration"


@dataclass(frozen=True)
class RankingAuditPlan(MeasurePlan):
    """All metrics of a ranking, of rows that are validated and ordered once.

    Attributes
    ----------
    chosen : tuple of AuditMetric
    all_of_them : bool
        Whether nobody asked for them by name, so that those without a value are left
        out.
    missing : {"raise", "drop", "group"}
    """

    chosen: tuple[AuditMetric, ...] = ()
    all_of_them: bool = True
    missing: str = "raise"

    def measure(self, frame: Any) -> Mapping[Any, Any]:
        """Return the facts and the results of one part of the data."""
        given = self.values(frame)
        outcomes, scores = given.pop("y_true"), given.pop("y_score")
        with collected_warnings():  # said once, of all parts
            data = ranked_data(outcomes, scores, **given, missing=self.missing)
        facts = AuditFacts.of(data)
        if data.cluster is None:  # one query of a part is no list of its own
            facts = replace(facts, n_clusters=facts.n_queries)
        chosen = defined(self.chosen, facts)[0] if self.all_of_them else self.chosen
        found: dict[Any, Any] = {_FACTS: facts}
        with collected_warnings():  # a group may well be missing in one part
            for metric in chosen:
                found[metric.name] = metric.estimates(data).compact()
        return found

    def to_text(self, results: Mapping[Any, Any]) -> str:
        """Return results as text, without a pickle."""
        named = {name: results[name].to_json() for name in results if name != _FACTS}
        facts = storage.to_text({"facts": results[_FACTS]})
        return json.dumps({**named, _FACTS: facts})

    def from_text(self, text: str) -> Mapping[Any, Any]:
        """Return the results that `to_text` wrote."""
        found = json.loads(text)
        facts = storage.from_text(found.pop(_FACTS), ("facts",))["facts"]
        results = {name: GroupEstimates.from_json(one) for name, one in found.items()}
        return {_FACTS: facts, **results}


def audit(
    data: Any,
    *,
    y_true: str,
    y_score: str,
    sensitive_features: Any,
    qid: str,
    cluster: str | None = None,
    sample_weight: str | None = None,
    item_weight: str | None = None,
    favorable: str = "high",
    k: int | None = None,
    metrics: str | Sequence[str] | None = None,
    confidence_level: float = 0.95,
    correction: str = "holm",
    margin: Margin = None,
    missing: str = "raise",
    n_partitions: int | None = None,
    memory_limit: str | None = None,
    temp_directory: Any = None,
    n_jobs: int | None = None,
    progress: Callable[[str], object] | None = None,
) -> AuditReport:
    """Audit a ranking of any size, as `skrankfair.audit` does one in memory.

    It takes two or three passes over the data for the caliper of matched pairs and one
    for the metrics. The report is that of all data in memory.

    Parameters
    ----------
    data : path, list of paths, frame, or table of an engine
        As in `measure`. What can be read only once, as a RecordBatchReader, has no
        caliper: name the other metrics.
    y_true : str
        Column of the outcomes.
    y_score : str
        Column of the scores.
    sensitive_features : str or list of str
        Column of the groups; several are crossed.
    qid : str
        Column of the query.
    cluster : str or None, default=None
        Column of the independent units, such as users with several queries. None makes
        each query its own unit.
    sample_weight : str or None, default=None
        Column of the weight, as the metrics take it.
    item_weight : str or None, default=None
        Column of the weight of the item, as in `skrankfair.audit`.
    favorable : {"high", "low"}, default="high"
        Which end of the score is good for the person (or the item) that it is about.
    k : int or None, default=None
        How many positions count, from the top. Accuracies and the exposure of a ranking
        then take pairs with an item there, matched pairs those whose lower item is
        there, NDCG is that of these positions, and who gets them is measured too. None
        takes all.
    metrics : str, sequence of str or None, default=None
        As in `skrankfair.audit`, of those that a ranking has.
    confidence_level : float, default=0.95
        Confidence level of the intervals and the verdicts.
    correction : {"holm", "fdr_bh"}, default="holm"
        Correction for the number of groups.
    margin : float, mapping of str to float, or None, default=None
        Largest difference from fair that does not matter, as in `skrankfair.audit`.
    missing : {"raise", "drop", "group"}, default="raise"
        What becomes of rows without an outcome, score or label that is needed (NaN or
        None). "raise" refuses them, "drop" leaves them out, and "group" makes those
        without a label the group "missing" and leaves out the others. The result and a
        warning say how many there are.
    n_partitions : int or None, default=None
        Number of parts. None takes one per 2 million rows; that of a Dask DataFrame is
        its own, that of a Spark DataFrame the session's.
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
    AuditReport
        Print it, or write it by ``to_html(path)``. Its results are without their
        tables.

    Raises
    ------
    ValueError
        If a column is missing, a query is in two clusters, or for what
        `skrankfair.audit` refuses. Data without queries do not add up; rates and losses
        of rows do, by `measure`.
    ImportError
        If the package of the engine is not installed.

    Warns
    -----
    UndefinedMetricWarning
        For groups without an estimate or an error in all data.
    UserWarning
        If rows are left out or relabelled because of `missing`.

    See Also
    --------
    skrankfair.distributed.measure : Some metrics, with all their options.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from skrankfair.distributed import audit
    >>> rng = np.random.default_rng(0)
    >>> log = pd.DataFrame({"session": np.repeat(np.arange(500), 10)})
    >>> log["region"] = rng.choice(["north", "south"], size=len(log))
    >>> log["score"] = rng.random(len(log))
    >>> log["clicked"] = rng.random(len(log)) < 0.3
    >>> report = audit(
    ...     log,
    ...     y_true="clicked",
    ...     y_score="score",
    ...     sensitive_features="region",
    ...     qid="session",
    ... )
    >>> report.n_queries, report.group_rows
    (500, {'north': 2489, 'south': 2511})
    """
    check_number(confidence_level, "confidence_level", 0, 1, inclusive=(False, False))
    check_choice(correction, "correction", tuple(CORRECTION_NAMES))
    check_choice(favorable, "favorable", FAVORABLE)
    check_choice(missing, "missing", MISSING)
    columns = {
        "y_true": y_true,
        "y_score": y_score,
        "sensitive_features": sensitive_features,
        "qid": qid,
    }
    for name, value in columns.items():
        if value is None:
            raise ValueError(f"{name} must be the name of a column; got None.")
    columns |= {"cluster": cluster, "sample_weight": sample_weight}
    columns["item_weight"] = item_weight
    named = not not_named(metrics)
    chosen, notes = check_item_weight(
        item_weight is not None,
        _of_rankings(chosen_metrics(metrics, "ranking", k)),
        leave_out=not named,
    )
    engine = engine_of(
        data, n_partitions, memory_limit, temp_directory, n_jobs, progress
    )
    chosen = _with_caliper(chosen, data, columns, engine, missing)
    given = make_plan([_MATCHED], columns).columns
    plan = RankingAuditPlan(
        {}, given, chosen=chosen, all_of_them=not named, missing=missing
    )
    found = dict(total_of(plan, engine(data, plan)))
    facts = found.pop(_FACTS)
    if not named:
        chosen, more = defined(chosen, facts)
        notes += more
    lacking = next((missing_said(result.missing) for result in found.values()), ())
    if lacking:
        warn_user(" ".join(lacking), UserWarning)
    margins = margins_of(margin, chosen, confidence_level)
    return report_of(
        facts,
        {metric.name: _told(metric, found[metric.name]) for metric in chosen},
        (*lacking, *notes),
        confidence_level,
        correction=correction,
        margin=margins,
        favorable=favorable,
        k=k,
    )


def _of_rankings(chosen: Sequence[AuditMetric]) -> tuple[AuditMetric, ...]:
    """Return the metrics; a ValueError for one that is not of rankings."""
    for metric in chosen:
        if metric.of_rows:
            raise ValueError(
                f"metrics must be of rankings; got {metric.name!r}, which "
                "skrankfair.distributed.measure has where it adds up."
            )
    return tuple(chosen)


def _with_caliper(
    chosen: Sequence[AuditMetric],
    data: Any,
    columns: Mapping[str, Any],
    engine: Any,
    missing: str,
) -> tuple[AuditMetric, ...]:
    """Return the metrics, that of matched pairs with the caliper of all data."""
    if not any(metric.name == _MATCHED for metric in chosen):
        return tuple(chosen)
    matched = partial(matched_pair_calibration, missing=missing)
    plan = make_plan({_MATCHED: matched}, columns)
    found = with_thresholds(plan, data, engine).metrics[_MATCHED]
    epsilon = getattr(found, "keywords", {}).get("epsilon")
    return tuple(
        replace(metric, estimates=partial(metric.estimates, epsilon=epsilon))
        if metric.name == _MATCHED
        else metric
        for metric in chosen
    )


def _told(metric: AuditMetric, result: GroupEstimates) -> GroupEstimates:
    """Return the result, with one warning of what is undefined, by its name here."""
    with collected_warnings() as collected:
        warn_undefined(result)
    told = [metric.name + text.removeprefix(result.name) for _, text in collected]
    if told:
        warn_user(" ".join(told))
    return result
