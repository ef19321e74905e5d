"""Before and after a mitigation, on held-out data: one call."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from .._estimates import formatting as fmt
from .._estimates.estimates import correct, corrected_pvalues, one_test
from .._estimates.scales import check_level, t_quantile
from .._inputs.by_name import resolved_columns
from .._inputs.columns import given_columns, users_of
from .._inputs.sklearn_private import positive_class
from .._inputs.validation import Array, as_numbers, check_choice, check_given
from ..display import _style as look
from ..inference import compare, predictive_parity_test
from ..inference._predictive_parity import PredictiveParityTest
from ..metrics import GroupEstimates, log_loss, mean_squared_error, pairwise_accuracy
from ..mitigation._wrapper import scores_of
from ..scoring._score_function import as_outcomes
from ..smoothing._bandwidth import check_bandwidth
from .audit import AuditReport, audit, of_users_alone
from .catalog import catalog, chosen_metrics, not_named, note, table
from .exports import Formats
from .findings import FairnessDistances
from .html import ForestPlot
from .sections import ReportSection

if TYPE_CHECKING:
    from ..display._mitigation import MitigationDisplay


_LOSSES = ("log_loss", "mean_squared_error")
_MOVES = ("closer to fair", "further from fair", "moved; cannot tell whether closer")
_STILL = ("no change shown", "no verdict")
_COST = "What it cost"
_HEADER = ("group", "before", "after", "change")


class Change(NamedTuple):
    """One metric before and after, and the paired difference."""

    #: Of a disparity what the audit tests: its fair value is `fair_value`, or else 0.
    before: GroupEstimates
    after: GroupEstimates
    change: GroupEstimates  # after minus before, on the same clusters


@dataclass(frozen=True, eq=False, repr=False)
class MitigationReport(Formats):
    """What a mitigation changed, and what it cost; from `skrankfair.mitigation_report`.

    Attributes
    ----------
    audit_before, audit_after : AuditReport
        All metrics of both scores.
    disparities : dict of Change
        What the audits test, by metric: the values of groups where they have a fair
        value, and else their gaps from the rest.
    costs : dict of Change
        "ndcg" where the audits have it, "auc" of two outcomes, and "log_loss" or
        "mean_squared_error", of all rows.
    parity_before, parity_after : PredictiveParityTest or None
        Tests of equal outcomes at equal scores; None where it cannot be tested.
    confidence_level : float
    notes : tuple of str
        What a reader should know, such as a cost that was left out.
    goal : str or None
        What the mitigation is for, and is judged by first.
    """

    audit_before: AuditReport
    audit_after: AuditReport
    disparities: Mapping[str, Change]
    costs: Mapping[str, Change]
    parity_before: PredictiveParityTest | None
    parity_after: PredictiveParityTest | None
    confidence_level: float
    notes: tuple[str, ...] = ()
    goal: str | None = None

    @cached_property
    def _frame(self) -> pd.DataFrame:
        """The table of `to_frame`, with p-values before and after against fair."""
        frames, alpha = [], 1 - self.confidence_level
        for kind, changes in (("disparity", self.disparities), ("cost", self.costs)):
            for name, (first, second, change) in changes.items():
                distances = FairnessDistances.of_change(change, second, first)
                low, high = change.ends(t_quantile(self.confidence_level, change.df))
                # Of two groups, each the rest of the other, the first says all.
                row, estimate = np.arange(len(change.groups)), change.estimate
                opposite = np.isclose(estimate, -estimate[0], rtol=1e-6)
                columns = {
                    "kind": kind,
                    "metric": name,
                    "group": pd.Series([*change.groups], dtype=object),
                    "before": distances.before,
                    "after": distances.now,
                    "change": estimate,
                    "standard_error": change.standard_error,
                    "ci_low": low,
                    "ci_high": high,
                    "pvalue": change.pvalue,
                    "pvalue_corrected": change.pvalue,
                    "verdict": "",
                    "pvalue_before": corrected_pvalues(first.pvalue),
                    "pvalue_after": corrected_pvalues(second.pvalue),
                    "pvalue_distance": distances.pvalues(change),
                    "again": opposite & one_test(change.pvalue) & (row == 1),
                }
                frames.append(pd.DataFrame(columns))
        frame = pd.concat(frames, ignore_index=True)
        cost, again = frame["kind"] == "cost", frame["again"]
        for name in ("pvalue_corrected", "pvalue_distance"):
            once = frame[name].mask(cost | again).to_numpy(dtype=float)
            corrected = pd.Series(correct(once, "holm"))
            frame[name] = frame[name].where(
                cost, corrected.mask(again, corrected.shift())
            )
        nearer = frame["after"].abs() < frame["before"].abs()
        better = (frame["change"] < 0) == frame["metric"].isin(_LOSSES)
        unknown = frame["pvalue_corrected"].isna()
        still = frame["pvalue_corrected"] >= alpha
        clear = frame["pvalue_distance"] < alpha
        frame["verdict"] = np.select(
            [unknown, still, cost & better, cost, clear & nearer, clear],
            ["no verdict", "no change shown", "better", "worse", *_MOVES[:2]],
            _MOVES[2],
        )
        return frame

    def to_frame(self) -> pd.DataFrame:
        """Return one row per metric and group.

        Returns
        -------
        DataFrame
            Columns kind ("disparity" or "cost"), metric, group, before, after, change
            (after minus before), standard_error, ci_low, ci_high, pvalue,
            pvalue_corrected (of a disparity by Holm's method over the metrics and their
            groups) and verdict. A disparity is the difference from what is fair, so
            that 0 is fair.
        """
        return self._frame.loc[:, :"verdict"]

    def summary(self) -> str:
        """Return what a reader should take away, in a few sentences.

        Returns
        -------
        str
        """
        return " ".join(answer for _, answer in self._page.answers)

    @property
    def _tables(self) -> dict[str, pd.DataFrame]:
        """The rows of the table: of the goal, of the costs, and of all others.

        Without a goal the disparities come before their cost.
        """
        frame = self._frame
        costs, goal = frame["kind"] == "cost", self.goal or ""
        aims = frame["metric"].isin(table()["goals"].get(goal, ())) & ~costs
        others = frame[~aims & ~costs]
        tables = {"Disparities": others, _COST: frame[costs]}
        if goal:
            name = f"Goal, {goal.replace('_', ' ')}"
            tables = {name: frame[aims], _COST: frame[costs], "What else moved": others}
        return {title: table for title, table in tables.items() if len(table)}

    def _said(self, title: str, rows: pd.DataFrame) -> str:
        """Return what the rows of one table say: of a goal, what became of all."""
        if title == _COST:
            return " ".join([*self._parity(), f"Cost: {_in_words(rows)}."])
        moved = rows[~rows["again"]].groupby("verdict")
        named = (*_MOVES, *_STILL) if title.startswith("Goal") else _MOVES
        said = [
            f"{move.capitalize()}: {_in_words(moved.get_group(move), move in _STILL)}."
            for move in named
            if move in moved.groups
        ] or ["No disparity moved beyond chance."]
        return " ".join([f"{title}:", *said] if self.goal else said)

    def _parity(self) -> list[str]:
        """Return what the tests of predictive parity say, if there are any."""
        if self.parity_before is None or self.parity_after is None:
            return []
        tests = self.parity_before, self.parity_after
        p = " before, ".join(fmt.pvalue(test.pvalue) for test in tests)
        gap = " → ".join(fmt.number(t.largest_difference, 3) for t in tests)
        return [f"Equal outcomes at equal scores: p {p} after; largest gap {gap}."]

    @property
    def _page(self) -> AuditReport:
        """The report with a section for each part, in the form of an audit."""
        level = f"{100 * self.confidence_level:g}% interval"
        sections = []
        for name, rows in self._tables.items():
            costs = name == _COST
            header = ("cost" if costs else "disparity", *_HEADER, level, "verdict")
            cells = tuple(
                (_title(row.metric, "short"), fmt.label(row.group), *_numbers(row))
                for row in rows.itertuples()
            )
            names = [", ".join(cell[:2]) for cell in cells]
            plot = None if costs else _plot(names, rows)
            answer = self._said(name, rows)
            sections.append(ReportSection(name, (), header, cells, plot, answer))
        return replace(
            self.audit_after,
            results={},
            title="Before and after a mitigation",
            sections=tuple(sections),
            notes=(note("held_out"), *self.notes),
            margin={},
        )

    def to_html(
        self, path: str | os.PathLike[str], *, title: str | None = None
    ) -> Path:
        """Write the report as one HTML file that needs nothing else.

        Parameters
        ----------
        path : str or path-like
        title : str or None, default=None
            Title of the page.

        Returns
        -------
        pathlib.Path
            `path`.

        Raises
        ------
        ImportError
            Without jinja2, which ``pip install "skrankfair[report]"`` brings.
        OSError
            If the file cannot be written; an existing file then stays as it was.
        """
        return self._page.to_html(path, title=title)

    def plot(self, axes: Any = None, **kwargs: Any) -> MitigationDisplay:
        """Draw disparities before and after, their changes and the costs.

        Parameters
        ----------
        axes : sequence of three matplotlib Axes or None, default=None
            None creates a new figure. The Axes are for the disparities, their changes
            and the costs.
        **kwargs : dict
            Passed to `MitigationDisplay.plot`.

        Returns
        -------
        MitigationDisplay
        """
        from ..display._mitigation import MitigationDisplay

        frame = self._frame
        frame = frame.assign(metric=[_title(name) for name in frame["metric"]])
        display = MitigationDisplay(
            frame[frame["kind"] == "disparity"],
            frame[frame["kind"] == "cost"],
            confidence_level=self.confidence_level,
        )
        return display.plot(axes=axes, **kwargs)


def _plot(labels: list[str], rows: pd.DataFrame) -> ForestPlot:
    """Return the plot of changes of disparities."""
    still = rows["verdict"].isin(_STILL)
    colors = np.where(still, look.UNCLEAR, look.DIFFERENT).tolist()
    change, low, high = (rows[n].to_numpy() for n in ("change", "ci_low", "ci_high"))
    alt = "The change of each disparity; the table has the numbers."
    return ForestPlot(labels, change, low, high, colors, "change", alt, 0.0)


def _numbers(row: Any) -> list[str]:
    """Return values before and after, the change, its interval and the verdict."""
    numbers = (fmt.number(v, 3) for v in (row.before, row.after, row.change))
    return [*numbers, fmt.interval(row.ci_low, row.ci_high, 3), row.verdict]


def _in_words(rows: pd.DataFrame, still: bool = False) -> str:
    """Return what changed by how much; three rows of more than four that have not."""
    if still and len(rows) > 4:
        return f"{_in_words(rows[:3])}; and {len(rows) - 3} more in the table"
    said = []
    for row in rows.itertuples():
        gap = f"gap of {fmt.label(row.group)} in " if row.kind == "disparity" else ""
        before, after, change, interval, _ = _numbers(row)
        values = f"{before} → {after} (change {change} {interval})"
        said.append(f"{gap}{_title(row.metric)} {values}")
    return "; ".join(said)


def _title(name: Any, words: str = "title") -> str:
    """Return the name of a metric within a sentence; TPR and Brier stay as they are."""
    title = table()["costs"].get(name) or str(getattr(catalog()[name], words))
    names = title[1].isupper() or title.startswith("Brier")
    return title if names else title[0].lower() + title[1:]


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
    item_weight: Any = None,
    X: Any = None,
    task: str | None = None,
    favorable: str | None = None,
    threshold: float | None = None,
    k: int | None = None,
    metrics: str | Sequence[str] | None = None,
    bandwidth: str | float = "undersmooth",
    confidence_level: float = 0.95,
    impact_ratio: bool = False,
    goal: str | None = None,
) -> MitigationReport:
    """Measure what a mitigation changed, and what it cost, on held-out data.

    Both scores are audited, and every disparity and every cost is compared on the same
    clusters. What the two have in common cancels, so the interval of a change is
    narrow.

    Parameters
    ----------
    before, after : array-like of shape (n,) or (n, 1), or fitted estimators
        Scores without and with the mitigation; or models, which score `X`: by
        `predict_proba` (the second class), `decision_function`, or `predict` of a
        regressor.
    y_true : array-like of shape (n,)
        Outcomes of rows that neither the models nor the mitigation have seen.
    sensitive_features : array-like of shape (n,) or (n, d), or str or list of str
        Group labels, or a membership matrix of overlapping groups; or columns of `X`.
    qid : array-like of shape (n,), str or None, default=None
        Query of each row, or a column of `X`. None makes all rows one list.
    cluster : array-like of shape (n,) or (n, 2), str, list of str or None, \
            default=None
        Independent units that contain whole queries, or a column of `X`. None makes
        each query its own unit, or each row of one list. Two columns are users and the
        items that recur among them, as in `skrankfair.audit`.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the query, constant within it: a common factor changes nothing.
    item_weight : array-like of shape (n,) or None, default=None
        Weight of the row, such as a survey weight, as in `skrankfair.audit`: pass the
        weights of people here. NDCG weighs no items, and is left out with a note.
    X : frame or array of shape (n, n_features) or None, default=None
        The rows that estimators score, and the frame whose columns may be named.
    task : {"ranking", "risk", "decision"} or None, default=None
        What the scores are for, as in `skrankfair.audit`, which infers it from None for
        each of the two.
    favorable : {"high", "low"} or None, default=None
        Which end of the score is good for the person, as in `skrankfair.audit`; it
        chooses the words of the two audits.
    threshold : float or None, default=None
        Score from which the decision on a row is 1, as in `skrankfair.audit`.
    k : int or None, default=None
        How many positions count, from the top, as in `skrankfair.audit`.
    metrics : str, function, sequence of them, or None, default=None
        The metrics of the audits, as in `skrankfair.audit`. To those that are named
        NDCG is added, where there are queries and no negative outcomes.
    bandwidth : {"undersmooth", "rule_of_thumb", "cv"} or float, default="undersmooth"
        The bandwidth of the tests of predictive parity.
    confidence_level : float, default=0.95
        Confidence level of the intervals and the verdicts.
    impact_ratio : bool, default=False
        Whether to add the impact ratios of the four-fifths rule to the two audits, as
        in `skrankfair.audit`.
    goal : {"calibration", "demographic_parity", "equal_opportunity", \
            "equalized_odds", "exposure", "accuracy"} or None, default=None
        What the mitigation is for. The report then first says what became of its
        metrics, then what it cost, and then what else moved, which is no failure by
        itself: goals exclude each other where base rates differ. The p-values are
        corrected for all metrics as without it.

    Returns
    -------
    MitigationReport
        Print it, or use ``to_frame()``, ``plot()``, ``summary()``, ``to_html()``,
        ``to_markdown()`` and ``to_latex()``. It also holds the two audits and the tests
        of predictive parity.

    Raises
    ------
    ValueError
        If columns have different lengths, values are not finite, a metric is unknown,
        `goal` is unknown or its metrics are not among `metrics`, or estimators or names
        of columns are given without `X`.

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
    A disparity is signed: it is the group's value minus the fair value, or minus the
    value of the rest. So its change is a smooth function of sums, and its interval is
    that of `skrankfair.inference.compare`. It is "closer to fair" or "further from
    fair" where the change and the sum of both signed distances from fair are beyond
    chance, by Holm's method over the metrics and their groups: only then is it shown
    that its absolute value has changed. The sum is tested on the side of the verdict,
    so that each of the two verdicts is false with at most one minus the confidence
    level. Where the change alone is beyond chance, one cannot tell whether it is
    closer. There is "no verdict" where the change or its error is undefined. Metrics
    that an audit does not test, such as losses by group, are no disparities; the two
    audits have them. AUC is the pairwise accuracy of one list of all rows, for two
    outcomes. The logarithmic loss is for probabilities; other scores, and decisions
    before or after, have their mean squared error instead.

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
    ...     score[test], after, y[test], sensitive_features=group[test]
    ... )
    >>> frame = report.to_frame().set_index(["metric", "group"])
    >>> frame.loc[("matched_pair_calibration", "a"), "verdict"]
    'closer to fair'
    >>> frame.loc[("log_loss", "all"), "verdict"]
    'better'
    """
    check_level(confidence_level)
    check_bandwidth(bandwidth)
    check_choice(goal, "goal", (*table()["goals"], None))
    check_given(sensitive_features=sensitive_features)
    sides = {"before": before, "after": after}
    columns = resolved_columns(X, given_columns(locals()), y_true=y_true, **sides)
    scored = [_scored(m, X, y_true, columns, name) for name, m in sides.items()]
    y, scores = scored[0][0], [score for _, score in scored]
    notes, chosen = list[str](), metrics
    if not not_named(metrics):
        known = chosen_metrics(chosen, task, k)
        chosen = [metric.name for metric in known if metric.name != "ndcg"]
        if y.min() >= 0 and "qid" in columns and item_weight is None:
            chosen.append("ndcg")
        else:
            notes.append(note("no_ndcg"))
    options: dict[str, Any] = {"task": task, "favorable": favorable, "k": k}
    options |= {"threshold": threshold, "metrics": chosen, "impact_ratio": impact_ratio}
    options["confidence_level"] = confidence_level
    audits = [audit(y, score, **columns, **options) for score in scores]
    if audits[0].task != audits[1].task:
        read_as = [table()["tasks"][report.task] for report in audits]
        notes.insert(0, note("two_tasks", before=read_as[0], after=read_as[1]))
    first, second = (report.results for report in audits)
    both = {name: (first[name], second[name]) for name in first if name in second}
    aims = table()["goals"].get(goal, ())
    if aims and both.keys().isdisjoint(aims):
        raise ValueError(
            f"goal={goal!r} needs one of {', '.join(aims)} in the audits, which have "
            f"{', '.join(second)}; threshold=, k= and metrics= add some."
        )
    disparities, costs = dict[str, Change](), dict[str, Change]()
    for finding in audits[0].findings:
        if (name := finding.metric.name) in both and finding.tested:
            disparities[name] = _change(*(result.as_gap() for result in both[name]))
    if "ndcg" in both:
        costs["ndcg"] = _change(*both["ndcg"])
    if (weight := columns.pop("item_weight", None)) is not None:
        of_query = as_numbers(columns.get("sample_weight", 1 + 0 * y), "sample_weight")
        columns["sample_weight"] = of_query * as_numbers(weight, "item_weight")
    # Metrics of rows take the rows of a query for one unit.
    rows = {"cluster": columns.pop("qid", None), **columns}
    users = {**rows, "cluster": users_of(rows["cluster"])}
    others, left_out = _costs(y, scores, rows)
    tests: list[PredictiveParityTest | None] = [None, None]
    try:
        tests = [
            predictive_parity_test(y, score, **users, bandwidth=bandwidth)
            for score in scores
        ]
    except ValueError as error:
        left_out.append(f"Predictive parity is left out: {error}")
    alone = ["AUC"] * ("auc" in others)
    alone += ["equal outcomes at equal scores"] * (tests[0] is not None)
    if alone and users["cluster"] is not rows["cluster"]:
        left_out.append(of_users_alone(alone))
    return MitigationReport(
        *(audits[0], audits[1], disparities, costs | others, tests[0], tests[1]),
        confidence_level=confidence_level,
        notes=(*audits[1].notes, *notes, *left_out),
        goal=goal,
    )


def _change(before: GroupEstimates, after: GroupEstimates) -> Change:
    """Compare two results of one metric."""
    return Change(before, after, compare(after, before))


def _scored(
    model: Any, X: Any, y_true: Any, columns: Mapping[str, Any], name: str
) -> tuple[Array, Array]:
    """Return outcomes and scores as numbers."""
    score, positive = model, None
    if hasattr(model, "predict") and not isinstance(model, type):
        if X is None:
            raise ValueError(f"X must be given where {name} is an estimator.")
        score = scores_of(model, X, columns, _RESPONSES)
        positive = positive_class(model)
    y, score = as_outcomes(y_true, score, positive)
    return as_numbers(y, "y_true"), as_numbers(score, name)


def _costs(
    y: Array, scores: Sequence[Array], rows: Mapping[str, Any]
) -> tuple[dict[str, Change], list[str]]:
    """Return AUC and loss before and after, and notes on what is left out."""
    costs, notes = {}, []
    weight = rows.get("sample_weight")
    units = {"cluster": rows["cluster"], "sample_weight": weight}
    if np.unique(y).size != 2:
        notes.append(note("no_auc"))
    else:
        who = {"cluster": users_of(rows["cluster"]), "item_weight": weight}
        costs["auc"] = _change(*(pairwise_accuracy(y, s, **who) for s in scores))
    ends = [bound for v in (y, *scores) for bound in (v.min(), v.max())]
    loss, decided = log_loss, any(np.isin(s, (0, 1)).all() for s in scores)
    if min(ends) < 0 or max(ends) > 1 or decided:
        loss = mean_squared_error
        notes.append(note("squared_error"))
    costs[loss.__name__] = _change(*(loss(y, s, **units) for s in scores))
    return costs, notes
