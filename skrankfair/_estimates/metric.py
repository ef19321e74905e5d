"""A metric apart from its sums: its name, functions of totals and what they mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from .._inputs.validation import Array, check_choice, check_number, warn_user
from ..exceptions import SmallSampleWarning
from . import formatting as fmt
from .finalize import ColumnSum, Finalize, OfTotals, PairedDifference, last_column
from .storage import stored

if TYPE_CHECKING:
    import pandas as pd

    from .group_estimates import GroupEstimates


@stored("Metric")
@dataclass(frozen=True)
class Metric:
    """The name of a metric, its functions of column totals, and what they mean.

    A ratio of two columns needs the first four fields alone.
    """

    name: str  # the name of the public function
    finalize: Finalize  # column totals to estimates by group
    #: Column totals to the number of pairs (rows, queries) behind each group.
    support: Finalize
    unit: str = "pairs"  # what `support` counts

    # What is fair, and for whom.

    #: The value that is fair for every group on its own, where there is one.
    fair_value: float | None = None
    #: Column totals to the value of the group minus that of the rest, for metrics whose
    #: fairness is equality.
    against_rest: PairedDifference | None = None
    #: Column totals to the value of a group under equal treatment, where that is not
    #: the fair value: the slope of the outcome over the distance of the pairs. Tests
    #: are of the estimate without it.
    slope: Finalize | None = None
    #: The estimate that the slope is subtracted from: where it has no error, neither
    #: has the difference.
    base: Finalize | None = None
    #: Whether values below the fair one are fair, too, as those of a boost.
    at_most: bool = field(default=False, compare=False)
    #: Whether groups share out a total, so that the value of a group that is everybody
    #: follows from nothing, and one group is neither fair nor unfair.
    relative: bool = False
    #: Which estimates are better for a group, "high" or "low", where either are. It
    #: says nothing about the numbers, so results without it can be added.
    better: str | None = field(default=None, compare=False)

    # What is tested and compared, and how.

    #: The default kind of `GroupEstimates.disparity`.
    disparity: str = "difference"
    #: How `GroupEstimates.test` tests: "t", or "permutation" where the mean of the
    #: metric is not the fair value for rankings without bias, as that of a distance.
    test_method: str = "t"
    #: Whether the columns of the groups add up to those of all rows.
    pooled: bool = False
    #: Whether fair rankings make the estimates of groups differ, as those of a distance
    #: do by chance, so that contrasts and differences from the rest have no null value.
    differing: bool = field(default=False, compare=False)
    #: Why groups have no contrast, where noise alone makes the estimates differ.
    not_compared: str | None = None
    #: Why two models have no comparison, where what is chosen from the outcomes of each
    #: makes the estimates differ.
    not_paired: str | None = None
    #: The result to a table of it by stratum or by part.
    breakdown: Callable[[GroupEstimates], pd.DataFrame] | None = None

    # What kind of number the estimates are: their scale.

    share: bool = False  # whether the estimates are shares, in [0, 1]
    positive: bool = False  # whether they are means of what is never negative
    #: The parts of `finalize`, if it is a difference of two shares; else None.
    parts: tuple[Finalize, Finalize] | None = None
    #: Column totals to what noise alone would make of the square of an estimate that is
    #: a root mean square.
    noise: Finalize | None = None
    #: Column totals to such a square from bins too narrow to hide anything, and to what
    #: noise alone would make of it.
    narrow: tuple[Finalize, Finalize] | None = None

    # What else may make their errors: rare events, and tails.

    #: Whether it is a mean of rows that may be far apart, such as amounts or losses, so
    #: that a few of them may make most of the error.
    heavy: bool = field(default=False, compare=False)
    #: Whether a last column counts rows (or clusters), as no support was named. Their
    #: shares are then the leverages, whatever denominators the function has.
    counted: bool = field(default=False, compare=False)
    #: For a mean or share of rows, the value of all rows outside of the group: they may
    #: show a rare event that no row of the group does.
    of_rest: Finalize | None = field(default=None, compare=False)
    #: For a difference of means of rows that may be far apart (`heavy`), the values of
    #: the group and of the rest, or of two samples; each gets at least the variance
    #: that as many rows of another side show.
    sides: tuple[Finalize, ...] | None = field(default=None, compare=False)
    #: Column totals to ``Σ u²`` and ``Σ u⁴`` of the influences if groups were assigned
    #: to the items of lists by chance; of two samples, those of each.
    by_chance: tuple[Finalize, ...] = field(default=(), compare=False)

    @property
    def of_shares(self) -> bool:
        """Whether estimates are shares, or differences of two."""
        return self.share or self.parts is not None

    @property
    def signed(self) -> bool:
        """Whether estimates may be below 0."""
        return not (self.share or self.positive)

    def as_difference(self, name: str, finalize: Finalize, **fields: Any) -> Metric:
        """Return the metric of a difference, whose fair value is 0.

        It has the support of this metric and its unit, and other `fields` if given.
        """
        fields = {"fair_value": 0.0, "disparity": "max_abs", **fields}
        return replace(Metric(name, finalize, self.support, self.unit), **fields)

    def minus_rest(self) -> Metric:
        """Return the metric of the value of a group minus that of the rest."""
        if self.against_rest is None:
            raise ValueError(
                f"{self.name} has no value of the rest to compare a group with."
            )
        both, fields = self.against_rest.parts, dict[str, Any]()
        if self.differing:
            fields = {"fair_value": None, "differing": True, "disparity": "difference"}
        if self.share:
            fields |= {"parts": both, "of_rest": self.of_rest}
        elif self.heavy:
            fields |= {"sides": both, "counted": self.counted}
            fields["heavy"] = not self.positive
        return self.as_difference(
            f"{self.name}_against_rest", self.against_rest, **fields
        )

    def as_gap(self) -> Metric:
        """Return the metric that is tested, which has a fair value.

        It is this metric, the same without its slope, or its difference from the rest.
        """
        if self.slope is not None:
            base, name = self.finalize, f"{self.name} without the slope term"
            without = PairedDifference.of(base, self.slope)
            return self.as_difference(name, without, base=base)
        if self.fair_value is not None:
            return self
        if self.differing:
            raise ValueError(
                f"{self.name} with these options has no value that is fair: groups of "
                "unequal sizes differ in fair rankings too."
            )
        return self.minus_rest()


def metric_of_totals(
    finalize: Callable[[Array], Any],
    name: str,
    unit: str,
    support: int | None,
    fair_value: float | None,
    share: bool,
    better: str | None,
) -> Metric:
    """Return the metric of a function of totals; see `make_metric`."""
    if not callable(finalize):
        raise ValueError(f"finalize must be a function; got {finalize!r}.")
    for title, text in (("name", name), ("unit", unit)):
        if not (isinstance(text, str) and text):
            raise ValueError(f"{title} must be a text; got {text!r}.")
    check_choice(share, "share", (True, False))
    check_choice(better, "better", (None, "high", "low"))
    if fair_value is not None:
        check_number(fair_value, "fair_value", -np.inf, np.inf)
    if support is not None:
        check_number(support, "support", 0, 1 << 31, integer=True)
    return Metric(
        name,
        OfTotals(finalize, name, support is None),
        last_column if support is None else ColumnSum(support, support + 1),
        unit=unit,
        fair_value=fair_value,
        disparity="difference" if fair_value is None else "max_abs",
        share=share,
        better=better,
        counted=support is None,
    )


def merge_first_pass(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of both first passes; numbers in both must agree."""
    merged = {**b, **a}
    for name in a.keys() & b.keys():
        by_group = isinstance(a[name], Mapping)
        left, right = (x[name] if by_group else {None: x[name]} for x in (a, b))
        # A part without data of a group has chosen nothing for it (NaN).
        known = {group: x for group, x in left.items() if not _is_nan(x)}
        for group in known.keys() & right.keys():
            if not (_is_nan(right[group]) or bool(known[group] == right[group])):
                raise ValueError(
                    f"Results whose first pass differs cannot be added: {name} is "
                    f"{a[name]!r} in one and {b[name]!r} in the other; choose it once "
                    "and pass the number to every part."
                )
        both = {**left, **right, **known}
        merged[name] = both if by_group else both[None]
    return merged


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and bool(np.isnan(value))


def warn_small(result: GroupEstimates) -> None:
    """Warn of groups whose errors rest on few clusters, where errors are asked for."""
    if few := fmt.small_groups(result):
        warn_user(
            f"The errors of {result.name} rest on fewer than {fmt.FEW_EFFECTIVE} "
            f"effective {fmt.units(result.sums)} in {fmt.some(few)}: intervals are "
            "wide and tests can hardly reject. Larger groups or more clusters help; "
            "where a few clusters hold most of the data, so does a sample_weight of 1 "
            "over the rows or pairs of the cluster, which asks another question: what "
            "is true of a typical cluster.",
            SmallSampleWarning,
        )
    extreme = result.metric.heavy and not result.metric.positive
    if extreme and (uneven := result.uneven).any():
        names = fmt.some_groups(compress(result.groups, uneven))
        warn_user(
            f"A few extreme values make most of the error of {result.name} in {names}: "
            "where tails are heavy, intervals hold less often than they say. Intervals "
            "of logarithms, or of clipped values, are more reliable.",
            SmallSampleWarning,
        )


def warn_undefined(
    result: GroupEstimates, lacking: str | None = None, unsure: Array | None = None
) -> GroupEstimates:
    """Warn of groups without a finite estimate or an error, and return the result.

    `lacking` says what a group without an estimate has none of; None: the unit.
    `unsure` are the groups without an error; None: those of the standard errors.
    """
    lacking = result.metric.unit if lacking is None else lacking
    name = result.name
    few = "pairs" if result.variance == "item" else fmt.units(result.sums)
    empty = result.support == 0
    undefined = np.isnan(result.estimate) & (result.support > 0)
    unsure = np.isnan(result.standard_error) if unsure is None else unsure
    unsure = unsure & np.isfinite(result.estimate)
    if result.permutation is not None and result.n_clusters == 1:
        # One list is tested by permutation: it is no accident that there is no error.
        unsure[:] = False
    for message, concerned in (
        (f"{name} is undefined (NaN) for groups without {lacking}", empty),
        (f"{name} is undefined (NaN), for too few different {lacking}, in", undefined),
        (f"{name} is infinite, and has no error, in", np.isinf(result.estimate)),
        (f"{name} has no standard error (NaN), for too few {few}, in", unsure),
    ):
        if concerned.any():
            names = compress(result.groups, concerned)
            warn_user(f"{message}: {fmt.some_groups(names)}.")
    return result
