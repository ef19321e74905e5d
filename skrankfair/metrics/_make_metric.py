"""Metrics made from two functions: one from rows to columns, one from their totals."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._estimates.finalize import ColumnSum, Finalize, OfRest, minus_rest
from .._estimates.group_estimates import GroupEstimates
from .._estimates.metric import Metric, metric_of_totals, warn_undefined
from .._estimates.rows import cluster_table
from .._estimates.sums import ClusterSums
from .._estimates.two_way import sums_of_rows
from .._inputs.columns import read_columns
from .._inputs.ranking import RankedData, ranked_data
from .._inputs.score_rows import ScoreRows
from .._inputs.validation import Array, check_choice, check_given
from ._pairs.cluster_rows import QuerySums, sum_over_queries

_SHARED = ("sensitive_features", "qid", "cluster", "sample_weight", "missing")
_ARGUMENTS = ("y_true", "y_score", "member")
# Largest number of a column, as its totals are squared.
_LARGEST = 1e130


@dataclass(frozen=True)
class MadeMetric:
    """A metric that `make_metric` made, called like those of the package.

    Attributes
    ----------
    metric : Metric
        The function of the totals, with its name and meaning.
    columns : callable
        Rows, or the rows of one query, to columns. Its keyword-only parameters are
        options of the metric.
    needs : tuple of str
        Names of the arguments that `columns` is called with.
    per : {"row", "query"}
    supports : tuple of callable
        Functions of the totals: how much data the estimate rests on.
    check : callable or None
        Called with the rows and the options, to raise an error for wrong values.
    read : callable or None
        Called with the columns and the options, to replace labels by numbers.
    """

    metric: Metric
    columns: Callable[..., Any]
    needs: tuple[str, ...] = ("y_true", "y_score")
    per: str = "row"
    supports: tuple[Finalize, ...] = ()
    check: Callable[..., None] | None = None
    read: Callable[..., dict[str, Any]] | None = None

    @property
    def __name__(self) -> str:
        return self.metric.name

    @property
    def own_columns(self) -> tuple[str, ...]:
        """The columns that only this metric takes."""
        return tuple(name for name in self.needs if name not in _ARGUMENTS)

    @cached_property
    def options(self) -> dict[str, Any]:
        """The options, with their defaults."""
        return {
            parameter.name: parameter.default
            for parameter in inspect.signature(self.columns).parameters.values()
            if parameter.kind is parameter.KEYWORD_ONLY
        }

    @cached_property
    def __signature__(self) -> inspect.Signature:
        names = ["y_true", "y_score", "sensitive_features", "qid", "cluster"]
        if self.per == "row":
            names.remove("qid")
        defaults = dict.fromkeys([*names, *self.own_columns]) | self.options
        defaults |= {"sample_weight": None, "missing": "raise"}
        keyword = inspect.Parameter.KEYWORD_ONLY
        kinds = dict.fromkeys(names[:2], inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return inspect.Signature(
            [
                inspect.Parameter(name, kinds.get(name, keyword), default=default)
                for name, default in defaults.items()
            ]
        )

    def __call__(
        self, y_true: Any = None, y_score: Any = None, **columns_and_options: Any
    ) -> GroupEstimates:
        """Measure; see `make_metric` for the arguments."""
        bound = self.__signature__.bind(y_true, y_score, **columns_and_options)
        bound.apply_defaults()
        given = bound.arguments
        options = {name: given[name] for name in self.options}
        needed = {name: given[name] for name in self.needs if name != "member"}
        check_given(**needed)
        if self.read is not None:
            needed = self.read(needed, **options)
        shared = {name: given[name] for name in _SHARED if name in given}
        measure = self._by_row if self.per == "row" else self._by_query
        return warn_undefined(measure(needed, shared, options))

    def _by_row(
        self, needed: dict[str, Any], shared: dict[str, Any], options: dict[str, Any]
    ) -> GroupEstimates:
        names = [n if n in needed else self.needs[0] for n in _ARGUMENTS[:2]]
        read = read_columns(needed, required=(), **shared)
        rows = ScoreRows.of_columns(read, *names)
        if self.check is not None:
            self.check(rows, **options)
        values = [read.numbers[name] for name in self.needs]
        everyone = self._row_columns(self.columns(*values, **options), rows)
        if rows.weight is not None:
            everyone *= rows.weight[:, None]
        supports = self.supports or (self.metric.support,)
        rests = [OfRest(support, 0) for support in supports]

        def sums_over(rows: ScoreRows) -> ClusterSums:
            sample = rows.sample("row")
            table = cluster_table(rows, sample, [*everyone[sample.row].T], everyone)
            return ClusterSums.from_rows(rows.groups.labels, table, [*supports, *rests])

        sums = sums_of_rows(rows, sums_over)
        gap = minus_rest(self.metric.finalize, len(supports))
        metric = replace(
            self.metric,
            pooled=not rows.groups.overlapping,
            heavy=not self.metric.share,
            of_rest=gap.second,
            against_rest=gap,
        )
        return GroupEstimates(metric, sums, _taken(options), missing=rows.missing)

    def _row_columns(self, made: Any, rows: ScoreRows) -> Array:
        """Return the columns of a metric of rows, or a ValueError that names a row."""
        if not isinstance(made, tuple | list):
            made = np.atleast_2d(np.transpose(made))
        n_rows = rows.kept.size
        table = np.ones((n_rows, len(made) + self.metric.counted))
        for number, column in enumerate(made):
            values = _numbers(column, self.__name__)
            if values.shape not in ((), (n_rows,)):
                raise ValueError(
                    f"columns of {self.__name__} must return columns of {n_rows} "
                    f"values, one for each row; column {number} has shape "
                    f"{values.shape}."
                )
            table[:, number] = values
        with np.errstate(invalid="ignore"):
            wrong = np.argwhere(~(np.abs(table.T) <= _LARGEST))
        if wrong.size:
            number, row = wrong[0]
            raise ValueError(
                f"columns of {self.__name__} must be finite and at most {_LARGEST:g}, "
                f"so that squares are finite; column {number} is {table[row, number]} "
                f"in row {rows.kept[row]}."
            )
        self._check_support(table[:, : len(made)])
        return table

    def _check_support(self, made: Array) -> None:
        """Raise a ValueError unless `support` is a column without negative values."""
        counted = self.metric.support
        if not isinstance(counted, ColumnSum):
            return
        if counted.stop > made.shape[1]:
            raise ValueError(
                f"support must be the number of one of the {made.shape[1]} columns of "
                f"{self.__name__}; got {counted.start}."
            )
        if (least := made[:, counted.start].min(initial=0)) < 0:
            raise ValueError(
                f"support must be the number of a column of {self.__name__} that is "
                f"not negative; column {counted.start} has {least:g}."
            )

    def _by_query(
        self, needed: dict[str, Any], shared: dict[str, Any], options: dict[str, Any]
    ) -> GroupEstimates:
        y_true = needed.pop("y_true", None)
        data = ranked_data(y_true, needed.pop("y_score"), **shared, others=needed)
        columns = {name: data.column(values, name) for name, values in needed.items()}
        columns["y_score"] = data.ranking.score
        if y_true is not None:
            columns["y_true"] = data.y_true
        if "member" not in self.needs:
            check_one_group(data, self.__name__)
        table = self._query_table(data, columns, options)
        sums = ClusterSums.from_rows(
            data.groups.labels, sum_over_queries(data, table), [self.metric.support]
        )
        pooled = "member" not in self.needs and not data.groups.overlapping
        metric = replace(self.metric, pooled=pooled)
        return GroupEstimates(metric, sums, _taken(options), missing=data.missing)

    def _query_table(
        self, data: RankedData, columns: dict[str, Array], options: dict[str, Any]
    ) -> QuerySums:
        """Return the columns of each query and group that has rows in it."""
        starts, cells, made = data.ranking.starts, data.memberships.cells, []
        for query, group in zip(cells.query, cells.group, strict=True):
            rows = slice(starts[query], starts[query + 1])
            here = {name: column[rows] for name, column in columns.items()}
            here["member"] = data.groups.take(rows).mask(group)
            values = [here[name] for name in self.needs]
            numbers = _numbers(self.columns(*values, **options), self.__name__)
            made.append(np.ravel(numbers))
            fit = numbers.ndim < 2 and numbers.size == made[0].size
            if not (fit and np.isfinite(numbers).all()):
                raise ValueError(
                    f"columns of {self.__name__} must return as many finite numbers "
                    f"for every query; for query {data.query_labels[query]!r} it made "
                    f"{numbers}."
                )
        if not made:
            raise ValueError(
                "sensitive_features must put some row into a group; got no row in "
                f"{', '.join(map(str, data.groups.labels))}."
            )
        size = made[0].size
        table = np.ones((len(made), size + self.metric.counted))
        table[:, :size] = made
        self._check_support(table[:, :size])
        return QuerySums.of_cells(cells, table)


def _numbers(made: Any, name: str) -> Array:
    """Return what `columns` of a metric made as numbers, or a ValueError."""
    try:
        return np.asarray(made, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"columns of {name} must return numbers ({error}).") from error


def _taken(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that are not None, which a result shows."""
    return {name: value for name, value in options.items() if value is not None}


def check_one_group(data: RankedData, name: str) -> None:
    """Raise a ValueError for a query with rows of different groups."""
    groups, ranking = data.groups, data.ranking
    first = ranking.starts[:-1][ranking.query]
    differs = groups.values != groups.values[first]
    if differs.ndim == 2:
        differs = differs.any(axis=1)
    if differs.any():
        row = int(np.argmax(differs))
        raise ValueError(
            f"sensitive_features must be constant within a query for {name}, whose "
            f"groups are of queries; row {data.kept[row]} is of another group "
            f"than row {data.kept[first[row]]} of the same query."
        )


def _check_needs(columns: Any, needs: Any, per: str) -> tuple[str, ...]:
    """Return `needs` as a tuple; a ValueError if `columns` cannot be called so."""
    several = np.iterable(needs) and not isinstance(needs, str)
    names = tuple(needs) if several else (needs,)
    for name in names:
        known = isinstance(name, str) and name.isidentifier()
        if not known or name in _SHARED or (name == "member" and per == "row"):
            raise ValueError(
                "needs must name y_true, y_score, columns of the metric's own or, with "
                f"per='query', member; got {name!r}."
            )
    if not names:
        raise ValueError("needs must name at least one column; it is empty.")
    parameters = inspect.signature(columns).parameters.values()
    try:
        inspect.Signature([p for p in parameters if p.kind is not p.KEYWORD_ONLY]).bind(
            *names
        )
    except TypeError as error:
        raise ValueError(
            f"columns must take {', '.join(names)}, which are its needs ({error})."
        ) from error
    if per == "query" and "y_score" not in names:
        raise ValueError("needs must have y_score with per='query', which ranks by it.")
    return names


def make_metric(
    columns: Callable[..., Any],
    finalize: Callable[[Array], Any],
    *,
    name: str,
    fair_value: float | None = None,
    unit: str | None = None,
    needs: str | Sequence[str] = ("y_true", "y_score"),
    per: str = "row",
    support: int | None = None,
    share: bool = False,
    better: str | None = None,
) -> MadeMetric:
    """Make a metric of your own, with everything that those of the package have.

    Say what each row (or query) adds to some columns, and what the metric is of the
    totals of the columns. Cluster-robust errors, degrees of freedom, intervals, tests,
    contrasts, paired comparisons, sums of parts and scorers follow from the two.

    Parameters
    ----------
    columns : callable
        Called with arrays, in the order of `needs`. With ``per="row"`` it returns C
        columns of n values (a number stands for a constant column), as a tuple or as
        an array of shape (n, C). With ``per="query"`` it is called for each query and
        each group that has rows in it, with the rows of the query, best score first
        (equal scores in an order without meaning), and returns C numbers. Its
        keyword-only parameters become options.
    finalize : callable
        From totals of shape (..., C) to values of shape (...), for any leading axes:
        ``lambda totals: totals[..., 0] / totals[..., 1]``. It must be smooth where the
        data are. What is not finite, as a ratio to nothing, becomes NaN.
    name : str
        What results and messages call the metric.
    fair_value : float or None, default=None
        The value that is fair for every group on its own, against which `test` tests.
        None: fair is equality.
    unit : str or None, default=None
        What the support counts; None is "rows", or "queries" with ``per="query"``.
    needs : str or sequence of str, default=("y_true", "y_score")
        What `columns` takes: ``y_true``, ``y_score``, and names of numeric columns
        that the metric takes by keyword. With ``per="query"`` also ``member``, a
        boolean array that says which rows are of the group; without it each query is
        of one group, as those of a user are.
    per : {"row", "query"}, default="row"
        Whether `columns` is called with all rows, or with those of one query.
    support : int or None, default=None
        Number of the column that counts what the estimate rests on, if that is not all
        rows (or queries): the positives of a true positive rate. It must not be
        negative. Name the denominator of a mean of rows in clusters of unequal sizes:
        with random signs its tests find a gap far more often.
    share : bool, default=False
        Whether the values are shares, so that intervals stay inside [0, 1].
    better : {"high", "low"} or None, default=None
        Which values are better, where either are, for scorers of the worst group.

    Returns
    -------
    callable
        ``metric(y_true, y_score, *, sensitive_features=None, cluster=None,
        sample_weight=None, missing="raise")``, with ``qid`` for ``per="query"``,
        columns of its own and options. It returns `GroupEstimates` and can be pickled
        where the two functions can.

    Raises
    ------
    ValueError
        If an argument has a value that it cannot have, or if `columns` does not take
        `needs`.

    See Also
    --------
    GroupEstimates.from_sums : Results from sums that were taken elsewhere.
    skrankfair.scoring.make_fairness_scorer : A scorer of the metric.

    Notes
    -----
    Errors are those of the jackknife, ``(Q - 1) / Q · Σ_q (θ_(-q) - θ)²`` over Q
    clusters: `finalize` is called with the totals that leave out each of them. Where
    derivatives are needed they are taken by differences. Where rows are counted
    (``support=None``) and fewer than ten of them make most of an error, as large
    denominators do, the degrees of freedom are ``3 (Σ u²)² / Σ u⁴ - 2``, where u is
    what a row adds to the jackknife: those of normal values whose ``Σ u⁴`` is as large.

    Examples
    --------
    >>> from skrankfair.metrics import make_metric
    >>> profit = make_metric(
    ...     lambda y_true, y_score, amount: (
    ...         (y_score >= 0.5) * (y_true * 0.1 - (1 - y_true)) * amount,
    ...         1,
    ...     ),
    ...     lambda totals: totals[..., 0] / totals[..., 1],
    ...     name="profit",
    ...     needs=("y_true", "y_score", "amount"),
    ... )
    >>> r = profit(
    ...     [1, 0, 1, 1],
    ...     [0.9, 0.2, 0.7, 0.8],
    ...     amount=[100, 50, 80, 60],
    ...     sensitive_features=["a", "a", "b", "b"],
    ... )
    >>> r.groups, r.estimate
    (('a', 'b'), array([5., 7.]))
    """
    if not callable(columns):
        raise ValueError(f"columns must be a function; got {columns!r}.")
    check_choice(per, "per", ("row", "query"))
    if unit is None:
        unit = "rows" if per == "row" else "queries"
    metric = metric_of_totals(finalize, name, unit, support, fair_value, share, better)
    return MadeMetric(metric, columns, _check_needs(columns, needs, per), per)
