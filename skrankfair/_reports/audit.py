"""Every metric by group in one call, for readers rather than programmers."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, overload

import numpy as np
import pandas as pd

from .._estimates import formatting as fmt
from .._inputs.columns import missing_said, without_missing
from .._inputs.validation import (
    check_given,
    collected_warnings,
    progress_shown,
    warn_user,
)
from ..metrics import GroupEstimates
from ..metrics._make_metric import MadeMetric
from ..scoring._score_function import COLUMNS
from . import exports
from .catalog import AuditMetric, catalog, chosen_metrics, not_named, note, table
from .findings import (
    GroupFinding,
    MetricFinding,
    answers,
    conflicts,
    jsonable,
    margins_of,
)
from .rows import AuditOptions, AuditRows, references_of, with_task
from .sections import ReportSection, further_sections, impact_sections, within_section

if TYPE_CHECKING:
    from .changes import ChangeReport

#: What `audit` takes for a margin: one for all metrics, or one for each of some.
Margin: TypeAlias = float | Mapping[str, float] | None
#: What `to_dict` has of a report as it is, and of a section.
_PARTS = (
    *("title", "headline", "confidence_level", "n_rows", "n_queries", "n_clusters"),
    *("n_items", "n_pairs", "overlapping", "task", "favorable", "k", "by", "limits"),
    *("provenance", "correction", "margin"),
)
_SECTION = ("title", "paragraphs", "header", "rows")


@dataclass(frozen=True, eq=False, repr=False)
class AuditReport(exports.Formats):
    """All metrics of an audit by group: what `skrankfair.audit` returns.

    It prints as a table and a verdict for each metric, and notebooks show it as HTML.

    Attributes
    ----------
    results : dict of str to GroupEstimates
        The result of each metric, by the name that `audit` gives it.
    confidence_level : float
        Confidence level of the intervals; a group differs beyond chance if its
        corrected p-value is below one minus this level.
    n_rows : int or None
        Number of items, without those of weight 0; None if nobody has counted them.
    n_queries : int or None
    n_clusters : int
        Number of independent units; the rows themselves for one list without clusters.
    n_pairs : int or None
        Number of pairs of two items of the same query.
    group_rows : dict of hashable to int or None
        Number of rows of each group.
    overlapping : bool
        Whether a row may be of several groups or of none.
    correction : {"holm", "fdr_bh"}
        Correction for the number of groups of each metric.
    margin : dict of str to float
        By metric the largest difference from fair that does not matter; empty if nobody
        says so, and then no group is shown to be close enough.
    task : {"ranking", "risk", "decision"}
        What the scores are for.
    favorable : {"high", "low"} or None
        Which end of the score is good for a person (or an item); None if nobody has
        said so, and then no group is called worse off.
    shares : bool
        Whether outcomes and scores are in [0, 1], as measures of calibration need.
    k : int or None
        How many places of a query count; None is all of them.
    made : dict of str to AuditMetric
        The metrics that the catalog of audits does not have, by name.
    notes : tuple of str
        What a reader should know, such as a metric that was left out.
    title : str
        The title of the HTML report.
    sections : tuple of ReportSection
        Further sections, which reports show below the metrics.
    by : str
        Names of the columns that are crossed to form the groups; "" if none are.
    rates : GroupEstimates or None
        Selection or scoring rates by group, of an audit with impact ratios; where low
        is favorable, those of not being selected.
    references : dict of hashable to hashable
        By group the one that it is compared with; empty where that is the rest.
    provenance : dict of str to str
        Where the numbers come from, such as a file, and how to repeat them; the command
        line says it.
    recorded : tuple or None
        What `from_json` read: the settings of the audit, and by metric a row per group.
    sides : tuple of tuple of hashable
        The groups of each grouping, where several stand side by side; else empty.

    See Also
    --------
    skrankfair.audit : Makes it.

    Examples
    --------
    >>> import numpy as np
    >>> from skrankfair import audit
    >>> rng = np.random.default_rng(0)
    >>> query = np.repeat(np.arange(200), 10)
    >>> group = rng.choice(["f", "m"], size=query.size)
    >>> clicked = rng.random(query.size) < 0.3
    >>> score = rng.random(query.size)
    >>> report = audit(clicked, score, sensitive_features=group, qid=query)
    >>> report.n_rows, report.n_queries, report.group_rows
    (2000, 200, {'f': 957, 'm': 1043})
    >>> report.results["pairwise_exposure"].groups
    ('f', 'm')
    """

    results: Mapping[str, GroupEstimates]
    confidence_level: float
    n_rows: int | None
    n_queries: int | None
    n_clusters: int
    n_pairs: int | None
    group_rows: Mapping[Hashable, int | None]
    overlapping: bool = False
    correction: str = "holm"
    margin: Mapping[str, float] = field(default_factory=dict)
    task: str = "ranking"
    favorable: str | None = "high"
    shares: bool = True
    k: int | None = None
    made: Mapping[str, AuditMetric] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    title: str = "Fairness audit"
    sections: tuple[ReportSection, ...] = ()
    by: str = ""
    rates: GroupEstimates | None = None
    references: Mapping[Hashable, Hashable] = field(default_factory=dict)
    provenance: Mapping[str, str] = field(default_factory=dict)
    recorded: tuple[Any, Mapping[str, tuple[GroupFinding, ...]]] | None = None
    sides: tuple[tuple[Hashable, ...], ...] = ()
    #: Which texts of `metrics.toml` are about the whole report.
    texts: ClassVar[str] = "audit"

    @cached_property
    def findings(self) -> tuple[MetricFinding, ...]:
        """Numbers and words for each metric."""
        settings, rows = self.recorded or (None, {})
        rows = rows if settings == self.settings else {}
        return tuple(
            MetricFinding(
                self.made.get(name)
                or catalog()[name].read_as(self.task, self.favorable),
                result,
                self.confidence_level,
                self.correction,
                self.margin.get(name),
                self.by or "group",
                rows.get(name),
                references=self.references,
            )
            for name, result in self.results.items()
        )

    @property
    def settings(self) -> tuple[Any, ...]:
        """What the findings depend on in addition to the results."""
        tests = self.confidence_level, self.correction, dict(self.margin)
        return *tests, self.task, self.favorable

    @property
    def answers(self) -> tuple[tuple[str, str], ...]:
        """The questions of a reader, each with the answer; "" where none is asked."""
        said = [("", s.answer) for s in self.sections if s.answer and not s.question]
        return (*answers(self.findings, self.sections), *said)

    @property
    def headline(self) -> str:
        """The answers, a question with its answer on each line."""
        return "\n".join(" ".join(filter(None, both)) for both in self.answers)

    @property
    def reading(self) -> str:
        """How the scores were read: their task, and which end of them is good."""
        what, risk = table()["tasks"][self.task], self.task == "risk"
        if risk and not self.shares:
            what += note("no_shares")
        threshold = _first_given(self.results, "threshold")
        if risk and threshold is not None:
            what += note("decided", threshold=threshold)
        if self.k is not None:
            what += note("first_place" if self.k == 1 else "first_places", k=self.k)
        known = "end" if self.favorable else "no_end"
        said = note(known, end=self.favorable, what=what)
        if "columns" in self.provenance:
            said += f" Columns: {self.provenance['columns']}."
        names = sorted(set(map(fmt.label, self.references.values())))
        return said + (note("compared", names=fmt.some(names)) if names else "")

    @property
    def limits(self) -> str:
        """What the report does not show."""
        return str(table()["texts"][self.texts]["limits"])

    @property
    def all_notes(self) -> tuple[str, ...]:
        """The notes, after those on findings that are known to conflict."""
        if self.task == "ranking":
            return self.notes
        return (*conflicts(self.findings), *self.notes)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per metric and group.

        Returns
        -------
        DataFrame
            Columns metric, group, estimate, standard_error, ci_low, ci_high, support,
            pvalue and pvalue_corrected. The correction is that of the report, over the
            groups of the metric; two groups that are each the rest of the other are one
            test. Of an audit with a margin also pvalue_margin and
            pvalue_margin_corrected, that the group is within it. Then difference (from
            the fair value, or from the rest; NaN where nothing is tested), side
            ("worse" or "better", "lower" or "higher" where neither is known to be bad,
            "" if nothing is shown) and verdict, the same in words ("" where there is no
            test).
        """
        margins = ("pvalue_margin", "pvalue_margin_corrected") if self.margin else ()
        columns = ["metric", "group", "estimate", "standard_error", "ci_low", "ci_high"]
        columns += ["support", "pvalue", "pvalue_corrected", *margins]
        columns += ["difference", "side", "verdict"]
        rows = [
            {**vars(row), "metric": f.metric.name, "verdict": f.verdict_on(row)}
            for f in self.findings
            for row in f.rows
        ]
        groups = pd.Series([row["group"] for row in rows], dtype=object)
        return pd.DataFrame(rows, columns=columns).assign(group=groups)

    def to_dict(self, flat: bool = False) -> dict[str, Any]:
        """Return the numbers and verdicts in a form that JSON can hold.

        Parameters
        ----------
        flat : bool, default=False
            Whether to return nothing but numbers, each by a name such as
            ``ndcg/all/estimate`` (metric, group, column of `to_frame`), for trackers of
            runs such as ``mlflow.log_metrics`` and ``wandb.log``.

        Returns
        -------
        dict
            NaN becomes None. A label that is neither text nor a number nor a truth
            value becomes text, and the label of crossed groups a list. If `flat`, what
            is NaN is left out, and what is not a letter, a digit, a space or one of
            ``_-.`` in a label becomes "_"; labels that are then the same are numbered.
        """
        if flat:
            return dict(exports.flat(self))
        groups = [{"group": g, "n_rows": count} for g, count in self.group_rows.items()]
        return {
            **{name: jsonable(getattr(self, name)) for name in _PARTS},
            "groups": jsonable(groups),
            "notes": list(self.all_notes),
            "sections": [
                {name: jsonable(getattr(section, name)) for name in _SECTION}
                for section in self.sections
            ],
            "metrics": [finding.to_dict() for finding in self.findings],
        }

    @overload
    def to_json(self) -> str: ...

    @overload
    def to_json(self, path: str | os.PathLike[str]) -> Path: ...

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str | Path:
        """Return the report as JSON, which `from_json` reads anywhere and for ever.

        It is what `to_dict` returns, for other programs, and in ``stored`` the rest of
        the report in a documented schema, with results as `GroupEstimates.to_json`
        writes them: every number exact, and of labels only those of groups, and of
        items where errors are over users and items.

        Parameters
        ----------
        path : str or path-like or None, default=None
            Where to write it; None returns the text.

        Returns
        -------
        str or pathlib.Path
            The text, or `path`. What cannot be stored, such as the metrics of
            `make_metric`, is named in ``stored``; `from_json` then refuses the text.

        Raises
        ------
        OSError
            If the file cannot be written; an existing file then stays as it was.
        """
        text = exports.json_text(self)
        return text if path is None else exports.write_text(path, text)

    @classmethod
    def from_results(
        cls,
        results: Mapping[str, GroupEstimates],
        *,
        task: str | None = None,
        favorable: str | None = None,
        confidence_level: float = 0.95,
        correction: str = "holm",
        margin: Margin = None,
        n_rows: int | None = None,
        n_queries: int | None = None,
        n_pairs: int | None = None,
        group_rows: Mapping[Hashable, int] | None = None,
        reference: Hashable = None,
        notes: Sequence[str] = (),
    ) -> AuditReport:
        """Return the audit whose numbers are there, such as those of `measure`.

        Parameters
        ----------
        results : dict of str to GroupEstimates
            Results by the names that `audit` has for metrics, of the same rows and
            groups: from files of any size, from Dask or Spark, from a store, or sums.
        task : {"ranking", "risk", "decision"} or None, default=None
            What the scores are for. None takes the first of these three whose audits
            have all these metrics.
        favorable : {"high", "low"} or None, default=None
            Which end of the score is good for the person, as in `audit`.
        confidence_level : float, default=0.95
            Confidence level of the intervals and the verdicts.
        correction : {"holm", "fdr_bh"}, default="holm"
            Correction for the number of groups.
        margin : float, mapping of str to float, or None, default=None
            Largest difference from fair that does not matter, as in `audit`.
        n_rows, n_queries, n_pairs : int or None, default=None
            What was counted elsewhere; the report shows what is given.
        group_rows : mapping of hashable to int or None, default=None
            Number of rows of each group.
        reference : hashable or None, default=None
            A group to compare every other with instead of with the rest.
        notes : sequence of str, default=()
            What a reader should know.

        Returns
        -------
        AuditReport

        Raises
        ------
        ValueError
            For results by other names, none at all, or metrics of different tasks.

        See Also
        --------
        skrankfair.distributed.measure : Results of data of any size.

        Examples
        --------
        >>> import numpy as np
        >>> from skrankfair import AuditReport
        >>> from skrankfair.metrics import selection_rate
        >>> sex = np.repeat(["f", "m"], 500)
        >>> hired = np.arange(1000) % np.where(sex == "f", 5, 2) == 0
        >>> rates = selection_rate(None, hired * 1, sensitive_features=sex)
        >>> report = AuditReport.from_results(
        ...     {"selection_rate": rates}, favorable="high"
        ... )
        >>> print(report.headline)
        Who is selected? Selected less often: f (100 of 500, 20.0%; 250 of 500 of the
        rest, 50.0%).
        """
        metrics = chosen_metrics([*results], k=1)  # some are chosen with a k alone
        for metric in metrics:
            made_by = getattr(results[metric.name], "name", None)
            if made_by != metric.function.__name__:
                raise ValueError(
                    f"results must have a result of {metric.function.__name__} by the "
                    f"name {metric.name!r}; got {made_by or results[metric.name]!r}."
                )
        options = AuditOptions(task, favorable, confidence_level, correction)
        given = [(m, results[m.name].parameters.get("threshold")) for m in metrics]
        shared = [t for t in table()["tasks"] if all(m.is_of(t, at) for m, at in given)]
        if task is None and not shared:
            raise ValueError(
                "results must be of metrics of one task, or task must be given; got "
                f"{', '.join(results)}."
            )
        options = with_task(replace(options, task=task or shared[0]), None, np.empty(0))
        groups = chain(*(results[m.name].groups for m in metrics if m.by_group))
        counted = {**dict.fromkeys(groups), **(group_rows or {})}
        lacking = (result.missing for result in results.values())
        missing = missing_said(max(lacking, key=lambda rows: rows.get("dropped", 0)))
        samples = [
            f"{metric.title}: {fmt.sample_words(sample)}."
            for metric in metrics
            if (sample := results[metric.name].first_pass.get("sample"))
        ]
        return cls(
            results,
            confidence_level,
            *(n_rows, n_queries),
            max(int(result.n_clusters) for result in results.values()),
            n_pairs,
            counted,
            correction=correction,
            margin=margins_of(margin, metrics, confidence_level),
            task=str(options.task),
            favorable=options.favorable,
            k=_first_given(results, "k"),
            references=references_of(reference, counted),
            notes=(*missing, *samples, *notes, *_look_alikes(counted)),
        )

    @classmethod
    def from_json(cls, text: str) -> AuditReport:
        """Return the report that `to_json` has written, now or in an older version.

        It prints the same text and writes the same page, and its results are those
        after `GroupEstimates.compact`. Nothing in the text is executed.

        Parameters
        ----------
        text : str
            The text itself, such as ``Path("audit.json").read_text()``.

        Returns
        -------
        AuditReport

        Raises
        ------
        ValueError
            For text that is no complete report, of a newer schema than this version of
            the package knows, or of a report that could not be stored.
        """
        return exports.report_of_json(text, AuditReport)

    def to_html(
        self,
        path: str | os.PathLike[str],
        *,
        title: str | None = None,
        monitor: Any = None,
    ) -> Path:
        """Write the report as one HTML file that needs nothing else.

        Parameters
        ----------
        path : str or path-like
        title : str or None, default=None
            Title of the page. None is the title of the report.
        monitor : skrankfair.monitoring.Monitor or None, default=None
            What it has seen becomes a section below the metrics.

        Returns
        -------
        pathlib.Path
            `path`.

        Raises
        ------
        ValueError
            For a monitor without any update.
        ImportError
            Without jinja2, which ``pip install "skrankfair[report]"``
            brings.
        OSError
            If the file cannot be written; an existing file then stays as it was.
        """
        from .html import html_report

        report = self if title is None else replace(self, title=title)
        if monitor is not None:
            sections = (*self.sections, monitor.report_section())
            report = replace(report, sections=sections)
        return exports.write_text(path, html_report(report))

    def to_excel(self, path: str | os.PathLike[str]) -> Path:
        """Write the report as an Excel file: its numbers, and its tables and text.

        Parameters
        ----------
        path : str or path-like

        Returns
        -------
        pathlib.Path
            `path`.

        Raises
        ------
        ImportError
            Without openpyxl, which ``pip install "skrankfair[excel]"`` brings.
        OSError
            If the file cannot be written; an existing file then stays as it was.
        """
        return exports.write_bytes(path, exports.workbook(self))

    def failures(self, conditions: str | Sequence[str]) -> list[str]:
        """Return which conditions the report meets beyond chance, for CI.

        Parameters
        ----------
        conditions : str or sequence of str
            Each such as ``"ndcg<0.7"``, ``"inter_group_accuracy[f]<0.6"`` (of one
            group), ``"inter_group_accuracy.gap<-0.05"`` (the difference from fair, or
            from the rest), ``"selection_rate.ratio<0.8"`` or ``".difference>0.1"``
            (smallest over largest, largest minus smallest), or ``"impact_ratio<0.8"``
            for decisions and audits with ``impact_ratio=True``; commas are in between.
            Of several groupings side by side, each has a ratio and a difference.

        Returns
        -------
        list of str
            What was found, one line for each number that is beyond its bound with all
            of its interval. The intervals have the level of the report and hold at once
            for all conditions and groups; groups without a verdict do not count.

        Raises
        ------
        ValueError
            For what is no condition, or a metric or group that is not in the report.

        Examples
        --------
        >>> import numpy as np
        >>> import skrankfair
        >>> sex = np.repeat(["f", "m"], 500)
        >>> hired = np.arange(1000) % np.where(sex == "f", 5, 2) == 0
        >>> report = skrankfair.audit(
        ...     np.ones(1000),
        ...     hired * 1,
        ...     sensitive_features=sex,
        ...     metrics="selection_rate",
        ... )
        >>> report.failures("impact_ratio<0.8, selection_rate[m]<0.4")
        ['impact_ratio<0.8: 0.4000 of f / m, [0.3188, 0.4996]']
        """
        from .conditions import checked, parsed_conditions

        numbers = checked(self, parsed_conditions(conditions))
        return [number.says for number in numbers if number.fails]

    def changes_since(
        self,
        before: AuditReport,
        *,
        paired: bool = False,
        title: str = "What has changed",
    ) -> ChangeReport:
        """Return what has changed since another audit, beyond chance.

        Parameters
        ----------
        before : AuditReport
            The other audit, with the same options.
        paired : bool, default=False
            Whether both are of the same clusters, under two scores, so that what they
            have in common cancels. Rows without clusters or queries have to be in the
            same order. False takes both for independent samples, such as of two weeks
            or two markets.
        title : str, default="What has changed"
            Title of the report.

        Returns
        -------
        ChangeReport
            A report like this one of the changes, by metric and group, and of the
            differences of groups from the rest, whatever the reference. p-values are
            corrected over the groups of a metric, and in the headline also over the
            metrics. The margin of this audit is then the largest change that does not
            matter.

        Raises
        ------
        ValueError
            If `before` is no audit.

        See Also
        --------
        skrankfair.inference.compare_independent : One metric of two samples.
        skrankfair.inference.compare : One metric of two scores.

        Notes
        -----
        A metric that cannot be compared, such as matched pairs with other options, or
        that only one of the audits has, is left out with a note. Groups are matched by
        label, and one that is in only one of the audits has no change.
        """
        from .changes import changes_of

        return changes_of(self, before, paired=paired, title=title)

    @property
    def cluster_unit(self) -> str:
        """What is independent: clusters, items of one list, or users (and items)."""
        alone = self.n_queries in (1, None) and self.n_clusters == self.n_rows
        if self.n_items is not None:
            return "user"
        return "independent item" if alone else "cluster"

    @property
    def n_items(self) -> int | None:
        """Number of items that recur among the users; None without errors of both."""
        two_way = [r for r in self.results.values() if r.variance == "two-way"]
        return max((int(r.sums.ways[-1].count) for r in two_way), default=None)

    @property
    def n_lists(self) -> int | None:
        """Number of queries; None of scores or decisions that are in no list."""
        alone = self.task != "ranking" and self.n_queries == 1
        return None if alone else self.n_queries

    @property
    def counted(self) -> list[tuple[str, str]]:
        """How much data stands behind the report: numbers, and of what."""
        counts = {
            "row": self.n_rows,
            "query": self.n_lists,
            self.cluster_unit: self.n_clusters,
            "item": self.n_items,
            "pair": self.n_lists and self.n_pairs,
            "overlapping group" if self.overlapping else "group": len(self.group_rows),
        }
        many = {"query": "queries"}
        return [
            (f"{n:,}", one if n == 1 else many.get(one, f"{one}s"))
            for one, n in counts.items()
            if n is not None
        ]

    @property
    def counts(self) -> str:
        """How much data stands behind the report, on one line."""
        return ", ".join(map(" ".join, self.counted))

    @property
    def provenance_lines(self) -> list[str]:
        """What is known of the origin of the report, each fact on a line."""
        return [f"{name}: {fmt.label(text)}" for name, text in self.provenance.items()]


def audit(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    qid: Any = None,
    cluster: Any = None,
    engagement: Any = None,
    sample_weight: Any = None,
    item_weight: Any = None,
    task: str | None = None,
    favorable: str | None = None,
    threshold: float | None = None,
    k: int | None = None,
    metrics: str | MadeMetric | Sequence[str | MadeMetric] | None = None,
    confidence_level: float = 0.95,
    correction: str = "holm",
    margin: Margin = None,
    missing: str = "raise",
    impact_ratio: bool = False,
    reference: Any = None,
    within: Any = None,
    cross: bool | str = True,
    progress: bool | Callable[[str], object] = False,
) -> AuditReport:
    """Measure a ranking, a risk score or decisions, and say which group is worse off.

    The rows are validated and ordered once. Every metric is computed by group, with its
    interval and its test, and the p-values are corrected over the groups.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes or relevance, binary, graded or real; larger is better. For a risk
        score or decisions an outcome may be bad, such as an arrest: see `favorable`.
    y_score : array-like of shape (n,)
        Scores, not ranks: higher scores rank first.
    sensitive_features : array-like of shape (n,) or (n, d)
        Group labels of any type; several columns are crossed. A boolean matrix or frame
        is a membership matrix with one column per group, and its groups may overlap.
    qid : array-like of shape (n,) or None, default=None
        Query of each row: items are compared and ranked only within one query. None
        makes all rows one list.
    cluster : array-like of shape (n,) or (n, 2) or None, default=None
        Independent units that contain whole queries, such as users with several
        queries, or items of one list. None makes each query its own unit, or each item
        of one list. Two columns are users and the items that recur among them: both
        ways have errors, ``V_users + V_items - V_users×items``, which hold for other
        items too; what cannot take both has those of users alone, and a note says so.
    engagement : array-like of shape (n,) or None, default=None
        Engagement after the click. The accuracies are taken within strata of it, as in
        `pairwise_accuracy`.
    sample_weight : array-like of shape (n,) or None, default=None
        Importance of the query, constant within it: a common factor changes nothing.
    item_weight : array-like of shape (n,) or None, default=None
        Weight of the item, such as a survey weight: a pair counts the product of the
        weights of its two items. `sample_weight` weighs whole queries. In metrics of
        rows each row counts its weight, so pass the weights of people here for a risk
        score or decisions. NDCG and what counts places weigh no items, and are left out
        with a note.
    task : {"ranking", "risk", "decision"} or None, default=None
        What the scores are for, which chooses the metrics and the words. None takes
        "ranking" where there are queries, "decision" where all scores are 0 or 1, and
        else "risk".
    favorable : {"high", "low"} or None, default=None
        Which end of the score is good for the person (or the item) that it is about: a
        high score of a seller, a low risk of arrest. No number depends on it, but who
        is worse off does, and where low is good the decision 1 is called a flag. None
        is "high" for a ranking; for other tasks the report then says who is scored
        higher, and never who is worse off.
    threshold : float or None, default=None
        Score from which the decision on a row is 1. The report of a risk score then has
        the rates of these decisions, and says what happens there.
    k : int or None, default=None
        How many positions count, from the top. Accuracies and the exposure of a ranking
        then take pairs with an item there, matched pairs those whose lower item is
        there, NDCG is that of these positions, and who gets them is measured too. None
        takes all.
    metrics : str, metric, sequence of them, or None, default=None
        Names, or functions of `skrankfair.metrics` that have them: any of
        "pairwise_accuracy", "intra_group_accuracy", "inter_group_accuracy",
        "pairwise_exposure", "pairwise_preference", "matched_pair_calibration",
        "calibration_in_the_large", "calibration_error", "ndcg", "brier_score",
        "log_loss", "selection_rate", "true_positive_rate", "false_positive_rate" and
        "precision"; with `k` also "share_at_k", "precision_at_k" and "recall_at_k". On
        request a ranking has also "dips", "exposure_gap", "ndkl",
        "normalized_discounted_difference", "normalized_discounted_ratio" and
        "normalized_discounted_kl", with `k` also "skew_at_k". Also metrics of outcomes
        and scores that `make_metric` made. None takes those of the task; "all" takes
        those on request too and adds, to a ranking, the curve of matched pairs and the
        tests of outcome inequality and of monotonicity. What is then not defined for
        the data is left out, with a note.
    confidence_level : float, default=0.95
        Confidence level of the intervals and the verdicts.
    correction : {"holm", "fdr_bh"}, default="holm"
        Correction for the number of groups. With "holm" the chance that any group is
        named by mistake is at most one minus the level. With "fdr_bh" (Benjamini and
        Hochberg) at most that share of the groups that are named is named by mistake,
        which suits hundreds of groups.
    margin : float, mapping of str to float, or None, default=None
        Largest difference from fair that does not matter, in units of the metric: 0.02
        is two percentage points of a share. One for all metrics, or one for each of
        some by name. The report then says which groups are shown to be within it, which
        is more than that no difference is shown, and of which the data cannot tell.
    missing : {"raise", "drop", "group"}, default="raise"
        What becomes of rows without an outcome, score or label that is needed (NaN or
        None). "raise" refuses them, "drop" leaves them out, and "group" makes those
        without a label the group "missing" and leaves out the others. The result and a
        warning say how many there are. A row that lacks its outcome alone counts in
        who is selected (`selection_rate` and `impact_ratio`), and keeps its place in a
        ranking where metrics look at places.
    impact_ratio : bool, default=False
        Whether to add the impact ratios of the four-fifths rule, by category and
        crossed, as local rules of hiring audits ask for them: the selection rate of
        decisions, or of scores from `threshold`, or else the scoring rate (the share
        above the median score, in a ranking that of the query), over the highest one.
        Where low is favorable, the rate is the share of decision 0, or below these
        scores.
    reference : hashable or None, default=None
        A group to compare every other with instead of with the rest. It is for metrics
        whose fairness is equality; of several groupings it is a dict of one for each
        column, such as ``{"race": "white", "sex": "m"}``. Labels may be written as
        reports show them.
    within : array-like of shape (n,) or None, default=None
        A column that is held fixed, such as the department: the report also has the
        gaps within its levels, each and pooled (see Notes).
    cross : {True, False, "both"}, default=True
        What becomes of several columns of labels: True crosses them into groups, False
        makes each a grouping of its own, and "both" does both in one report.
    progress : bool or callable, default=False
        Whether to show how far it is, on a terminal or in a notebook; a function is
        called with each line of text.

    Returns
    -------
    AuditReport
        Print it, or write it by ``to_html(path)``.

    Raises
    ------
    ValueError
        If columns have different lengths, values are not finite, labels are missing, a
        query is in two clusters, a metric is unknown or takes no `item_weight` that is
        given, the level is outside (0, 1), or a margin is not positive. For a `k` or an
        engagement that no metric takes, a threshold that none of a ranking takes or
        that all scores of a risk reach, or none, for decisions other than 0 and 1, a
        `reference` that is no group, a `cross` of one column, and for more than 500
        levels of `within`.

    Warns
    -----
    UndefinedMetricWarning
        At most once per metric, for groups whose estimate or error is NaN.
    UserWarning
        If rows are left out or relabelled because of `missing`.

    See Also
    --------
    skrankfair.metrics : The metrics one by one, with all their options.

    Notes
    -----
    P-values are two-sided. They compare each group with the fair value, or with the
    rest for the accuracies, and are corrected over the groups of a metric that have
    enough data. A group with fewer than five effective clusters behind a test gets no
    verdict and does not count as a test. Two groups that are each the rest of the other
    are one test. The report opens with an answer to each question, in which a group is
    named only if a p-value is still small enough when multiplied by the number of
    metrics that are tested; each verdict is about its metric alone. Rates are compared
    with those of the rest, with counts where rows have no weights.

    A group is shown to be within the margin where two one-sided tests at one minus the
    level reject (Schuirmann 1987), which is where the interval of level ``1 - 2 alpha``
    is inside of it, corrected over the groups in the same way. That every group is
    within the margin takes no correction (the intersection-union test). A group can be
    both worse off and within the margin: the difference is there and too small to
    matter.

    Metrics of rows take the rows of a query (or of a cluster) for one unit, within
    which weights say how much a row counts.

    Within the levels of a column, items are compared with others of the same level.
    The gaps ``d_l`` of levels are pooled with the weights of Mantel and Haenszel,
    ``Σ_l w_l d_l / Σ_l w_l`` with ``w_l = n_gl n_rl / (n_gl + n_rl)``: the numbers of
    rows or pairs of the group and of those that it is compared with, which are held
    fixed (``w_l = n_gl`` where a value is fair on its own). The variance is that of
    this combination, with the covariances of all cells by clusters and with the rare
    events that a small cell does not show. The gap of shares is tested as that of their
    two means, which are shares of as many rows. A level in which either side is too
    small for an error does not count.

    References
    ----------
    Beutel, A., Chen, J., Doshi, T., et al. (2019). "Fairness in Recommendation Ranking
    through Pairwise Comparisons". KDD.

    Korevaar, H., McConnell, C., Tong, E., et al. (2023). "Matched Pair Calibration for
    Ranking Fairness".

    Schuirmann, D. J. (1987). "A Comparison of the Two One-Sided Tests Procedure and the
    Power Approach". Journal of Pharmacokinetics 15(6).

    Holm, S. (1979). "A Simple Sequentially Rejective Multiple Test Procedure".
    Scandinavian Journal of Statistics 6(2).

    Mantel, N., Haenszel, W. (1959). "Statistical Aspects of the Analysis of Data from
    Retrospective Studies of Disease". Journal of the National Cancer Institute 22(4).

    Examples
    --------
    >>> import numpy as np
    >>> import skrankfair
    >>> rng = np.random.default_rng(0)
    >>> query = np.repeat(np.arange(300), 10)
    >>> group = rng.choice(["f", "m"], size=query.size)
    >>> quality = rng.normal(size=query.size)
    >>> clicked = quality + rng.normal(size=query.size) > 0
    >>> score = quality - 0.5 * (group == "f")  # the ranker undervalues "f"
    >>> skrankfair.audit(
    ...     clicked,
    ...     score,
    ...     sensitive_features=group,
    ...     qid=query,
    ...     metrics="inter_group_accuracy",
    ... )
    Fairness audit: 3,000 rows, 300 queries, 300 clusters, 13,500 pairs, 2 groups
    Read as a ranking of the items of each query; high scores are good for them.
    Who suffers the mistakes? Ranked above worse items less often: f (71.7%; 93.2% of
    the rest).
    <BLANKLINE>
    Who suffers the mistakes?
    <BLANKLINE>
    inter_group_accuracy
    group  estimate      95% interval  vs rest  pairs       p  p (Holm)
    f        0.7167  [0.6839, 0.7472]  -0.2151  1,747  <0.001    <0.001
    m        0.9318  [0.9130, 0.9468]   0.2151  1,569  <0.001    <0.001
    => Ranked above worse items less often: f (-21.5 points [-25.1, -18.0]).
    """
    given = locals()
    options = AuditOptions.of(given)
    check_given(y_true=y_true, sensitive_features=sensitive_features)
    columns = {name: given[name] for name in ("y_true", "y_score", *COLUMNS, "within")}
    columns, notes, lacking = without_missing(columns, missing, "y_true")
    rows = AuditRows.of(columns, cross=cross, placed="y_true" in lacking)
    if "y_true" in lacking:
        without = {**columns, "y_true": np.zeros(len(columns["y_score"]))}
        rows = replace(rows, scored=AuditRows.of(without, cross=cross))
    score = (rows.scored or rows).data.ranking.score
    options = with_task(options, rows.qid, score)
    with progress_shown(progress) as say:
        return audit_of_rows(rows, options, notes, lacking, say)


def check_taken(name: str, value: Any, of: str, chosen: Sequence[AuditMetric]) -> None:
    """Raise a ValueError for an argument, for metrics `of` a kind, that none takes."""
    if value is not None and not any(metric.takes(name) for metric in chosen):
        raise ValueError(
            f"{name} is for {of} only, and metrics has none of them; got "
            f"{', '.join(metric.name for metric in chosen)}."
        )


def audit_of_rows(
    rows: AuditRows,
    options: AuditOptions,
    notes: Sequence[str],
    lacking: Mapping[str, int],
    say: Callable[[str], object],
) -> AuditReport:
    """Return the audit of rows whose task is known.

    Parameters
    ----------
    rows : AuditRows
    options : AuditOptions
    notes : sequence of str
        What the report notes first.
    lacking : dict of str to int
        How many rows were left out or relabelled, and why.
    say : callable
        Shows what is going on.
    """
    may_leave_out = not_named(options.metrics)
    cuts = options.k, options.threshold
    chosen = chosen_metrics(options.metrics, options.task, *cuts, may_be_made=True)
    check_taken("engagement", rows.given.get("engagement"), "the accuracies", chosen)
    if options.task == "ranking" and not options.impact_ratio:
        check_taken("threshold", options.threshold, "rates of decisions", chosen)
    chosen, unfit = rows.fitting(chosen, may_leave_out)
    notes = [*notes, *unfit]
    in_lists, ranking = may_leave_out and options.task == "ranking", rows.data.ranking
    if in_lists and 1 < ranking.n_queries == ranking.n_rows:
        notes.append(note("one_row", number=ranking.n_rows))
    if rows.data.ranking.n_queries > 1 and not rows.are_of_models:
        rows.data.clusters_of_queries()  # raises for a query of several clusters
    if may_leave_out and options.task == "risk" and options.threshold is None:
        notes.append(note("threshold"))
    if rows.scored is not None and options.task != "ranking":
        notes.append(note("unobserved"))
    margins = margins_of(options.margin, chosen, options.confidence_level)
    references = references_of(options.reference, rows.groups, rows.sides)
    results = {}
    for i, metric in enumerate(chosen, 1):
        say(f"{i} of {len(chosen)} metrics: {metric.name}")
        with collected_warnings() as collected:
            result = rows.measured(metric)
        observed = rows.scored is None or not metric.of_decisions
        results[metric.name] = replace(result, missing=lacking if observed else {})
        # Where these are undefined, notes of a whole report say so.
        in_notes = options.task in metric.on_request or not metric.by_group
        said = [metric.name + text.removeprefix(result.name) for _, text in collected]
        if said and not (may_leave_out and in_notes):
            warn_user(" ".join(said))
    rates, counts = None, rows.counts()
    notes += _doubts(rows, options, counts["n_clusters"])
    say("tests and tables")
    sections, left_out = further_sections(rows, options, len(chosen))
    notes += left_out
    titles = [section.title for section in sections]
    if options.impact_ratio:
        tables, rates = impact_sections(rows, options)
        sections += tables
    titles += [m.title for m in chosen if results[m.name].variance != "two-way"]
    if rows.data.item is not None and titles:
        notes.append(of_users_alone(titles))
    notes += _look_alikes(counts["group_rows"])
    task, favorable = str(options.task), options.favorable
    report = AuditReport(
        results,
        options.confidence_level,
        **counts,
        correction=options.correction,
        margin=margins,
        task=task,
        favorable=favorable,
        k=options.k,
        # Those of the catalog have tasks.
        made={m.name: m.read_as(task, favorable) for m in chosen if not m.tasks},
        notes=tuple(notes),
        sections=tuple(sections),
        by="" if rows.sides else list(rows.groupings)[-1],
        rates=rates,
        sides=tuple(map(tuple, rows.sides.values())),
        references=references,
    )
    if rows.levels is None:
        return report
    section, left_out = within_section(rows, report.findings, chosen)
    return replace(report, sections=(section, *sections), notes=(*notes, *left_out))


def of_users_alone(titles: Sequence[str]) -> str:
    """Return a note on what has errors of users, and not of items too."""
    return note("users", names="; ".join(t.partition(":")[0] for t in titles))


def _doubts(rows: AuditRows, options: AuditOptions, n_clusters: int) -> list[str]:
    """Return notes on scores that are not what their task asks for, each with a remedy.

    Scores are called reversed where their correlation with the outcomes is below 0
    beyond five standard errors.
    """
    y, score = rows.data.y_true, rows.data.ranking.score
    said, binary = [], np.isin(y, (0, 1)).all()
    if options.task == "decision":
        return [note("swapped")] if y.min() >= 0 and y.max() <= 1 and not binary else []
    if y.std() > 0 and score.std() > 0:
        r = float(np.corrcoef(y, score)[0, 1])
        if r * np.sqrt(n_clusters) < -5:
            said.append(note("reversed", r=r))
    low, high = score.min(), score.max()
    if options.task == "risk" and binary and low >= 0 and 1 < high <= 100:
        whole = high <= 10 and not (score % 1).any()
        said.append(note("levels" if whole else "percentages", low=low, high=high))
    return said


def _first_given(results: Mapping[str, GroupEstimates], parameter: str) -> Any:
    """Return a parameter of the first of some results that has it, or None."""
    given = (result.parameters.get(parameter) for result in results.values())
    return next((value for value in given if value is not None), None)


def _look_alikes(labels: Iterable[Hashable]) -> list[str]:
    """Return a note on labels that differ and look alike in a report, if any do."""
    shown: dict[str, list[Hashable]] = {}
    for label in labels:
        text = unicodedata.normalize("NFKC", fmt.label(label))
        shown.setdefault(" ".join(text.split()), []).append(label)
    alike = [" and ".join(map(ascii, same)) for same in shown.values() if len(same) > 1]
    return [note("alike", labels=fmt.some(alike))] if alike else []
