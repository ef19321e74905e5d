"""Before and after a mitigation, on held-out data: one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._inputs.columns import column_of
from .._inputs.validation import Array, as_numbers, check_number
from ..inference import PredictiveParityTest, predictive_parity_test
from ..metrics import GroupEstimates, log_loss, pairwise_accuracy, squared_error
from ..scoring._score_function import as_outcomes
from ..smoothing._bandwidth import check_bandwidth
from .audit import audit
from .catalog import chosen_metrics
from .mitigation_result import Change, MitigationReport

_RESPONSES = ("predict_proba", "decision_function")


def mitigation_report(
    before: Any,
    after: Any,
    y_true: Any,
    *,
    sensitive_features: Any,
    qid: Any = None,
    cluster: Any = None,
    sample_weight: Any = None,
    X: Any = None,
    metrics: str | Sequence[str] | None = None,
    bandwidth: str | float = "undersmooth",
    confidence_level: float = 0.95,
) -> MitigationReport:
    """Measure what a mitigation moved, and what it cost, on held-out data.

    Both scores are audited, and every disparity and every cost is compared on the same
    clusters: what the two have in common cancels, so that the interval of a change is
    narrow.

    Parameters
    ----------
    before, after : array-like of shape (n,) or fitted estimators
        Scores without and with the mitigation; or models, which score `X`: by
        `predict_proba` (the second class), `decision_function`, or `predict` of a
        regressor.
    y_true : array-like of shape (n,)
        Outcomes of rows that neither the models nor the mitigation have seen.
    sensitive_features : array-like of shape (n,) or (n, d), or str or list of str
        Group labels, or a membership matrix of overlapping groups; or columns of `X`.
    qid : array-like of shape (n,), str or None, default=None
        Query of each row, or a column of `X`. None is one list.
    cluster : array-like of shape (n,), str or None, default=None
        Independent units that contain whole queries, or a column of `X`. None: each
        query; each row of one list.
    sample_weight : array-like of shape (n,) or None, default=None
        Weight of the query, constant within it.
    X : frame or array of shape (n, n_features) or None, default=None
        What estimators score, and where columns are.
    metrics : str, sequence of str or None, default=None
        The metrics of the audits, as in `skrankfair.audit`; NDCG is always with them.
    bandwidth : {"undersmooth", "rule_of_thumb", "cv"} or float, default="undersmooth"
        Of the tests of predictive parity.
    confidence_level : float, default=0.95
        Of the intervals and the verdicts.

    Returns
    -------
    MitigationReport
        Print it; ``to_frame()``, ``plot()`` and ``summary()``, with the two audits and
        tests of predictive parity.

    Raises
    ------
    ValueError
        For columns of different lengths, values that are not finite, an unknown metric,
        or estimators or names of columns without `X`.

    Warns
    -----
    UndefinedMetricWarning
        For groups whose estimate or error is NaN.

    See Also
    --------
    skrankfair.inference.compare : One metric of two scores.
    skrankfair.audit : All metrics of one score.

    Notes
    -----
    A disparity is signed: the group's value less what is fair, or less that of the
    rest, so its change is a smooth function of sums and has a delta-method interval. It
    is "closer to fair" or "further from fair" where both the change and the change of
    the absolute value are beyond chance (by Holm's method over the groups of a metric),
    and "past fair" where it changed its side and came no nearer. AUC is the pairwise
    accuracy of one list of all rows, for two outcomes. The logarithmic loss is for
    probabilities; other scores have their squared error instead.

    References
    ----------
    DiCiccio, C., Hsu, B., Yu, Y., Nandy, P., Basu, K. (2023). "Detection and Mitigation
    of Algorithmic Bias via Predictive Parity". FAccT '23, §4.

    Examples
    --------
    >>> import numpy as np
    >>> from skrankfair import mitigation_report
    >>> from skrankfair.mitigation import GroupCalibrator
    >>> rng = np.random.default_rng(0)
    >>> group = rng.choice(["a", "b"], size=6000)
    >>> score = rng.uniform(size=6000)
    >>> y = rng.random(6000) < np.where(group == "a", score, score**2)
    >>> train, test = np.arange(3000), np.arange(3000, 6000)
    >>> calibrator = GroupCalibrator("platt").fit(
    ...     score[train, None], y[train], sensitive_features=group[train]
    ... )
    >>> after = calibrator.transform(score[test, None], sensitive_features=group[test])
    >>> report = mitigation_report(
    ...     score[test], after[:, 0], y[test], sensitive_features=group[test]
    ... )
    >>> frame = report.to_frame().set_index(["metric", "group"])
    >>> frame.loc[("matched_pair_calibration", "a"), "verdict"]
    'closer to fair'
    >>> frame.loc[("log_loss", "all"), "verdict"]
    'better'
    """
    check_number(confidence_level, "confidence_level", 0, 1, inclusive=(False, False))
    check_bandwidth(bandwidth)
    columns = {
        "sensitive_features": _of_frame(X, sensitive_features, "sensitive_features"),
        "qid": _of_frame(X, qid, "qid"),
        "cluster": _of_frame(X, cluster, "cluster"),
        "sample_weight": sample_weight,
    }
    (y, first), (_, second) = (
        _scored(model, X, y_true, columns, name)
        for model, name in ((before, "before"), (after, "after"))
    )
    chosen = None
    if metrics is not None:
        chosen = [m.name for m in chosen_metrics(metrics) if m.name != "ndcg"]
        if y.min() >= 0 and columns["qid"] is not None:
            chosen.append("ndcg")
    audits = [
        audit(y, score, **columns, metrics=chosen, confidence_level=confidence_level)
        for score in (first, second)
    ]
    notes = list(audits[1].notes)
    if chosen is not None and "ndcg" not in chosen:
        notes.append("NDCG is left out: it needs queries, and no negative outcomes.")
    results = [report.results for report in audits]
    disparities = {
        name: Change.of(*(_disparity(part[name]) for part in results))
        for name in results[0]
        if _tested(results[0][name])
    }
    costs, more = _costs(y, first, second, columns, results)
    parity, also = _parity(y, first, second, columns, bandwidth)
    return MitigationReport(
        audits[0],
        audits[1],
        disparities,
        costs,
        parity[0],
        parity[1],
        confidence_level,
        (*notes, *more, *also),
    )


def _of_frame(X: Any, given: Any, name: str) -> Any:
    """Return a column that was given, or named."""
    named = isinstance(given, str) or (
        isinstance(given, list) and given and all(isinstance(g, str) for g in given)
    )
    if not named or (X is None and isinstance(given, list)):
        return given
    if X is None:
        raise ValueError(f"X must be given for {name}={given!r}, a column of it.")
    if isinstance(given, list) and len(given) == len(X):
        return given  # labels, not names
    return column_of(X, given, name)


def _scored(
    model: Any, X: Any, y_true: Any, columns: Mapping[str, Any], name: str
) -> tuple[Array, Array]:
    """Return outcomes and scores as numbers."""
    score, positive = model, None
    if hasattr(model, "predict") and not isinstance(model, type):
        if X is None:
            raise ValueError(f"X must be given where {name} is an estimator.")
        from ..mitigation._fold_scores import scores_of

        given = {k: v for k, v in columns.items() if v is not None}
        score = scores_of(model, X, given, _RESPONSES)
        classes = getattr(model, "classes_", None)
        positive = None if classes is None else classes[-1]
    y, score = as_outcomes(y_true, score, positive)
    return as_numbers(y, "y_true"), as_numbers(score, name)


def _tested(result: GroupEstimates) -> bool:
    return result.fair_value is not None or result.metric.against_rest is not None


def _disparity(result: GroupEstimates) -> GroupEstimates:
    """Return a result that has a fair value."""
    return result if result.fair_value is not None else result.against_rest()


def _costs(
    y: Array,
    first: Array,
    second: Array,
    columns: Mapping[str, Any],
    results: Sequence[Mapping[str, GroupEstimates]],
) -> tuple[dict[str, Change], list[str]]:
    """Return NDCG, AUC and loss before and after, and notes on what is left out."""
    costs, notes = {}, []
    if "ndcg" in results[0]:
        costs["ndcg"] = Change.of(*(part["ndcg"] for part in results))
    units = columns["qid"] if columns["cluster"] is None else columns["cluster"]
    weight = columns["sample_weight"]
    if np.unique(y).size != 2:
        notes.append("AUC is left out: it needs two outcomes.")
    elif weight is not None and np.ptp(as_numbers(weight, "sample_weight")) > 0:
        notes.append("AUC is left out: it takes no weights.")
    else:
        one = {"sensitive_features": np.full(y.size, "all"), "cluster": units}
        costs["auc"] = Change.of(
            *(pairwise_accuracy(y, s, **one) for s in (first, second))
        )
    ends = [bound for v in (y, first, second) for bound in (v.min(), v.max())]
    unit = min(ends) >= 0 and max(ends) <= 1
    loss = log_loss if unit else squared_error
    if not unit:
        notes.append(
            "The loss is the squared error, since the scores are no probabilities."
        )
    costs[loss.__name__] = Change.of(
        *(loss(y, s, cluster=units, sample_weight=weight) for s in (first, second))
    )
    return costs, notes


def _parity(
    y: Array, first: Array, second: Array, columns: Mapping[str, Any], bandwidth: Any
) -> tuple[list[PredictiveParityTest | None], list[str]]:
    """Return the tests of predictive parity, None with a note where there are none."""
    units = columns["qid"] if columns["cluster"] is None else columns["cluster"]
    try:
        tests = [
            predictive_parity_test(
                y,
                score,
                sensitive_features=columns["sensitive_features"],
                cluster=units,
                sample_weight=columns["sample_weight"],
                bandwidth=bandwidth,
            )
            for score in (first, second)
        ]
    except ValueError as error:
        return [None, None], [f"Predictive parity is left out: {error}"]
    return [*tests], []
