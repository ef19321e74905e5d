"""Whether plans and monitors keep their promises: ``python -m benchmarks.decide``.

Simulates the power of tests whose data were planned from a pilot, over designs of
tests/designs.py and of rates that differ, how often equivalence tests are right and
wrong, and monitors of a year of days: how often they ever raise a false alarm, and how
soon they see a change. What is done is kept in ``--folder``: run it again to go on, or
with ``--write`` to put what there is into docs/decide.md.
"""

from __future__ import annotations

import argparse
import gc
import json
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, special

from skrankfair._estimates.power import detectable, keeps_promise, power_at
from skrankfair.exceptions import SmallSampleWarning, UndefinedMetricWarning
from skrankfair.metrics import (
    GroupEstimates,
    matched_pair_calibration,
    pairwise_accuracy,
    selection_rate,
)
from skrankfair.monitoring._sequences import (
    Blocks,
    Scan,
    betting_sequence,
    change_point,
)
from skrankfair.planning import plan_rates
from tests.designs import DESIGNS, Design, Rows

PAGE = Path(__file__).parents[1] / "docs" / "decide.md"
ALPHA, POWER = 0.05, 0.8
DAYS, BASELINE = 365, 28
#: Half of a margin, in true errors; what a bound is beside the truth.
ROOM, EDGE = 3.0, 1e-12
# Levels of a chi-square distribution that stand for all.
_LEVELS = (np.arange(50) + 0.5) / 50
#: Where more of the pilots are warned of, a design has no promise to keep.
MOST_WARNED = 0.5


# Power


def columns_of(design: Design, rows: Rows) -> dict[str, Any]:
    """Return the columns of a data set as metrics take them."""
    groups: Any = rows["group"]
    if design.overlapping:
        groups = np.stack([rows["group"], rows["second"]], axis=1)
    return design.columns(rows, groups)


class Numbers(NamedTuple):
    """What a test rests on, of the last group."""

    estimate: float
    standard_error: float
    df: float
    n_effective: float
    warned: float  # 1 of a pilot that is warned of

    @classmethod
    def of(cls, r: GroupEstimates) -> Numbers:
        """Return what the test of a result rests on."""
        warned = warned_of(r)
        return cls(
            *(x[-1] for x in (r.estimate, r.standard_error, r.df, r.n_effective)),
            warned[-1],
        )


def warned_of(result: GroupEstimates) -> Any:
    """Return of which groups plans warn."""
    return ~keeps_promise(result.name, result.sums, result.metric.finalize)


def accuracy_of(design: Design, rows: Rows) -> GroupEstimates:
    """Return the inter-group accuracy."""
    return pairwise_accuracy(
        rows["y_true"],
        rows["y_score"],
        comparison="inter",
        **columns_of(design, rows),
    )


def accuracy(design: Design, rows: Rows) -> GroupEstimates:
    """Return the inter-group accuracy minus that of the rest."""
    return accuracy_of(design, rows).against_rest()


def matched(design: Design, rows: Rows) -> GroupEstimates:
    """Return what tests of matched pair calibration at a fixed difference rest on."""
    r = matched_pair_calibration(
        rows["y_true"], rows["y_score"], epsilon=0.2, **columns_of(design, rows)
    )
    return r.as_gap()


MEASURES: dict[str, Callable[[Design, Rows], GroupEstimates]] = {
    "inter-group accuracy": accuracy,
    "matched pairs": matched,
}


def contrasted(design: Design, rows: Rows, kind: str) -> Numbers:
    """Return the contrast of two groups, on the scale of its test."""
    result = accuracy_of(design, rows)
    found = result.contrast(True, False, kind)
    value = np.log(found.estimate) if kind == "ratio" else found.estimate
    error = found.as_pilot("known").standard_error[0]
    effective, warned = result.n_effective[-1], warned_of(result).any()
    return Numbers(value, error, found.df, effective, warned)


def eight(design: Design, rows: Rows) -> GroupEstimates:
    """Return the accuracy of eight groups, each minus that of the rest."""
    number = np.arange(rows["qid"].size) % 8
    return accuracy(replace(design, overlapping=False), rows | {"group": number})


#: With the number of tests by which the level is divided.
OTHERS: dict[str, tuple[int, Callable[[Design, Rows], Any]]] = {
    "difference of two groups": (1, partial(contrasted, kind="difference")),
    "ratio of two groups": (1, partial(contrasted, kind="ratio")),
    "each of eight groups": (8, eight),
}


def samples(
    name: str, n_samples: int, measures: dict[str, Callable[[Design, Rows], Any]]
) -> dict[str, Any]:
    """Return by measure the `Numbers` of as many data sets of a design, (5, n)."""
    design = DESIGNS[name]
    rng = np.random.default_rng([7, list(DESIGNS).index(name), 1])
    found: dict[str, list[Any]] = {measure: [] for measure in measures}
    for _ in range(n_samples):
        rows = design.draw(rng)
        for measure, make in measures.items():
            r = make(design, rows)
            found[measure].append(r if isinstance(r, Numbers) else Numbers.of(r))
    return {measure: np.array(numbers).T for measure, numbers in found.items()}


def power_of(name: str, n_samples: int) -> dict[str, list[float]]:
    """Return by measure the power at the gaps that were promised."""
    found = samples(name, n_samples, MEASURES)
    return {measure: kept(*known(numbers)) for measure, numbers in found.items()}


def others_of(name: str, n_samples: int) -> dict[str, list[float]]:
    """Return the same of contrasts, and of one of many groups."""
    found = samples(name, n_samples, {key: make for key, (_, make) in OTHERS.items()})
    return {
        measure: kept(*known(numbers), level=ALPHA / OTHERS[measure][0])
        for measure, numbers in found.items()
    }


def known(numbers: Any) -> Any:
    """Return the data sets with an error, (5, n)."""
    return numbers[:, np.isfinite(numbers[0]) & (numbers[1] > 0)]


def kept(
    estimate: Any,
    error: Any,
    df: Any,
    effective: Any,
    warned: Any,
    level: float = ALPHA,
) -> list[float]:
    """Return the power at the gaps that were promised, and what it rests on.

    First of the gap that the true error promises for tests with these degrees of
    freedom; it is the mean error, of the squares. Then that of other data sets of the
    same design, their pilots, by a formula that takes their errors for true ones, and
    by that which knows that they are estimates; then the effective clusters, and the
    share of pilots that plans warn of. A gap is put between the truth, which is the
    mean of all data sets, and the value that is tested.
    """
    away, critical = estimate - estimate.mean(), special.stdtrit(df, 1 - level / 2)

    def found(gap: Any) -> float:
        sides = [np.abs(away + s * gap) / error > critical for s in (-1, 1)]
        return float(np.mean(sides))

    true = np.full(df.shape, np.sqrt(np.mean(error**2)))
    promised = optimize.brentq(
        lambda size: power_at(true, df, size * true[0], level).mean() - POWER, 0.5, 99
    )
    powers = [found(promised * true[0])]
    for certain in (True, False):
        gaps = detectable(error, df, POWER, level, None if certain else df)
        # Each data set is a pilot of twenty others.
        powers.append(np.mean([found(np.roll(gaps, i)) for i in range(1, 60, 3)]))
    return [*powers, float(np.median(effective)), float(np.mean(warned))]


#: Rates of a group and of the rest, and the share of the group.
RATES = [
    *((0.05, 0.2, 0.2), (0.2, 0.05, 0.2), (0.02, 0.1, 0.5), (0.1, 0.2, 0.1)),
    *((0.3, 0.5, 0.1), (0.6, 0.9, 0.1), (0.9, 0.6, 0.1)),
]
_PILOT_ROWS, _PILOTS = 2000, 60


def rates_of(rate: float, rest: float, share: float, n_samples: int) -> list[float]:
    """Return the power of plans for the gap between two rates, and of pilots.

    Each is the share of data sets of the size that is asked for in which the test of
    the result rejects. The size of the plan is between them.
    """
    rng = np.random.default_rng([13, *(int(1000 * x) for x in (rate, rest, share))])
    gap = abs(rate - rest)

    def result(n: int) -> GroupEstimates:
        member = rng.random(n) < share
        chosen = rng.random(n) < np.where(member, rate, rest)
        return selection_rate(None, chosen, sensitive_features=member)

    def power(n: float, n_sets: int) -> float:
        pvalues = [result(int(n)).test().pvalue[0] for _ in range(n_sets)]
        return float(np.mean(np.less(pvalues, ALPHA)))

    planned = plan_rates((rate, rest), share=share).required(gap)
    sizes = [result(_PILOT_ROWS).required(gap).n_clusters[0] for _ in range(_PILOTS)]
    of_pilots = [power(n, n_samples // _PILOTS) for n in sizes]
    return [power(planned, n_samples), planned, float(np.mean(of_pilots))]


def margins_of(name: str, n_samples: int) -> dict[str, list[float]]:
    """Return by measure how often a value is shown to be within a margin.

    First wrongly, where the truth is the upper bound and where it is the lower one.
    Then where it is in the middle of a margin of three true errors each way, and how
    often that is expected of a normal estimate and its error. Of eight groups with the
    truth at the upper bound, how often any is shown, corrected for their number.
    """
    design, any_of_eight = DESIGNS[name], 0
    rng = np.random.default_rng([7, list(DESIGNS).index(name), 1])
    drawn: dict[str, list[Any]] = {measure: [] for measure in MEASURES}
    for _ in range(n_samples):
        rows = design.draw(rng)
        for measure, make in MEASURES.items():
            r = make(design, rows)
            # Its interval is inside of what is shown, and the same for every margin.
            test = r.equivalence_test(1.0, ALPHA)
            ends = (end[-1] + r.fair_value for end in (test.low, test.high))
            drawn[measure].append([*Numbers.of(r), *ends])
        test = eight(design, rows).equivalence_test((-np.inf, EDGE), ALPHA)
        any_of_eight += (test.corrected() < ALPHA).any()
    found = {"any of eight groups": [float(any_of_eight / n_samples)]}
    for measure, numbers in drawn.items():
        estimate, error, df, _, _, low, high = known(np.array(numbers).T)
        middle, room = estimate.mean(), ROOM * np.sqrt(np.mean(error**2))
        inside = (low > middle - room) & (high < middle + room)
        shown = [
            part.sum() / n_samples for part in (high < middle, low > middle, inside)
        ]
        spread = np.sqrt(special.chdtri(df[:, None], _LEVELS) / df[:, None])
        reach = special.stdtrit(df, 1 - ALPHA)[:, None] * spread
        expected = np.maximum(2 * special.ndtr(ROOM - reach) - 1, 0).mean()
        found[measure] = [*map(float, shown), float(expected)]
    return found


# Monitors

#: Days of monitors as gaps and their variances, of shape (n, DAYS).
Year = tuple[np.ndarray, np.ndarray, float]


def _rates(chance: Any, n_users: int, rng: np.random.Generator) -> Year:
    """Return a year of two groups of as many users, of these chances of a click."""
    n = n_users // 2
    clicks = rng.binomial(n, np.clip(chance, 0.01, 0.99))
    rates = clicks / n
    gap, variance = rates[0] - rates[1], (rates * (1 - rates)).sum(0) / (n - 1)
    return gap, np.maximum(variance, 1e-6), 2.0 * (n - 1)


def independent(rng: np.random.Generator, n: int, users: int = 400) -> Year:
    """Return years of new users every day."""
    return _rates(np.full((2, n, DAYS), 0.3), users, rng)


def few(rng: np.random.Generator, n: int) -> Year:
    """Return years of 40 new users every day."""
    return independent(rng, n, users=40)


def least(rng: np.random.Generator, n: int) -> Year:
    """Return years of 20 new users every day, fewer than are looked at by default."""
    return independent(rng, n, users=20)


def uneven(rng: np.random.Generator, n: int) -> Year:
    """Return years of users whose values have long tails, 60 each day."""
    values = rng.lognormal(0, 1, size=(2, n, DAYS, 30)).astype(np.float32)
    mean, variance = values.mean(-1), values.var(-1, ddof=1) / 30
    return mean[0] - mean[1], variance.sum(0), 58.0


def _panel(rng: np.random.Generator, n: int, keep: float) -> Year:
    """Return years of 400 users, half of whom come each day, with tastes of their own.

    `keep` of the variance of their tastes stays from one day to the next.
    """
    taste = rng.normal(size=(n, 2, 200))
    gaps, variances = [], []
    for _ in range(DAYS):
        fresh = rng.normal(size=taste.shape)
        taste = keep * taste + np.sqrt(1 - keep**2) * fresh
        here = rng.random(taste.shape) < 0.5
        clicked = rng.random(taste.shape) < special.expit(-0.85 + taste)
        count = here.sum(-1)
        rate = (clicked & here).sum(-1) / count
        gaps.append(rate[:, 0] - rate[:, 1])
        variances.append((rate * (1 - rate) / (count - 1)).sum(-1))
    return np.stack(gaps, 1), np.stack(variances, 1), 198.0


def returning(rng: np.random.Generator, n: int) -> Year:
    """Return years of the same users, whose tastes stay."""
    return _panel(rng, n, 1.0)


def drifting(rng: np.random.Generator, n: int) -> Year:
    """Return years of the same users, whose tastes are forgotten in about 20 days."""
    return _panel(rng, n, 0.95)


def _with_days(effect: np.ndarray, rng: np.random.Generator, n: int) -> Year:
    gap, variance, df = independent(rng, n)
    return gap + np.sqrt(variance.mean()) * effect, variance, df


def fashions(rng: np.random.Generator, n: int) -> Year:
    """Return years in which each day has an effect as large as its error."""
    return _with_days(rng.normal(size=(n, DAYS)), rng, n)


def lasting(rng: np.random.Generator, n: int) -> Year:
    """Return years of effects of days that are correlated by one half."""
    effect = rng.normal(size=(n, DAYS))
    for day in range(1, DAYS):
        effect[:, day] = 0.5 * effect[:, day - 1] + np.sqrt(0.75) * effect[:, day]
    return _with_days(effect, rng, n)


def weekly(rng: np.random.Generator, n: int) -> Year:
    """Return years whose weekends have another gap, by one error of a day."""
    return _with_days(np.tile(1.0 * (np.arange(DAYS) % 7 >= 5), (n, 1)), rng, n)


def in_weeks(year: Callable[[np.random.Generator, int], Year]) -> Any:
    """Return the same years with one update per week."""

    def make(rng: np.random.Generator, n: int) -> Year:
        gap, variance, df = year(rng, n)
        shape = n, DAYS // 7, 7
        parts = (part[:, : DAYS // 7 * 7].reshape(shape) for part in (gap, variance))
        gap, variance = (part.mean(-1) for part in parts)
        return gap, variance / 7, 7 * df

    return make


YEARS: dict[str, tuple[str, Callable[[np.random.Generator, int], Year]]] = {
    "independent": ("400 new users every day", independent),
    "few": ("40 new users every day", few),
    "uneven": ("60 users, lognormal values", uneven),
    "returning": ("the same 400 users, whose tastes stay", returning),
    "drifting": ("the same 400 users, whose tastes are new after 20 days", drifting),
    "drifting-weeks": ("the same, one update per week", in_weeks(drifting)),
    "fashions": ("each day has an effect as large as its error", fashions),
    "lasting": ("the same, correlated by one half from day to day", lasting),
    "lasting-weeks": ("the same, one update per week", in_weeks(lasting)),
    "weekly": ("weekends differ by one error of a day", weekly),
    "weekly-weeks": ("the same, one update per week", in_weeks(weekly)),
    "least": ("20 new users every day, ten of each group", least),
}

#: Where the gap of all users there might be is 0, on every day.
OF_GAPS = (
    *("independent", "few", "least", "uneven", "returning"),
    *("fashions", "lasting", "lasting-weeks"),
)


def scans(year: Year, i: int) -> tuple[Blocks, Scan, Scan]:
    """Return one monitor: its blocks, and what alarms of changes and gaps look at."""
    gap, variance, df = year
    size = gap.shape[1]
    ones = np.ones(size)
    blocks = Blocks(gap[i], variance[i], ones, df * ones, np.arange(size))
    return blocks, Scan.of(blocks, n_before(size)), Scan.of(blocks)


def n_before(n_updates: int) -> int:
    """Return how many of the updates of a year are its baseline."""
    return max(8, round(BASELINE * n_updates / DAYS))


def alarmed(scan: Scan) -> np.ndarray:
    """Return at which looks the evidence is enough."""
    return scan.log_evidence(0.0, ALPHA)[0] >= -np.log(ALPHA)


def false_alarms(name: str, n_monitors: int) -> dict[str, float]:
    """Return the shares of monitors that ever alarm, of a change and of a gap.

    And of those that test the change from the baseline at 5% every day.
    """
    rng = np.random.default_rng([8, list(YEARS).index(name)])
    found = np.zeros(3)
    for start in range(0, n_monitors, 50):
        size = min(50, n_monitors - start)
        year = YEARS[name][1](rng, size)
        for i in range(size):
            blocks, change, gap = scans(year, i)
            first = n_before(blocks.value.size)
            before, after = np.split(blocks.value, [first])
            error = np.sqrt(blocks.variance[first:] + before.var(ddof=1) / first)
            daily = np.abs(after - before.mean()) / error > 1.96
            large = name in OF_GAPS and alarmed(gap).any()
            found += [alarmed(change).any(), large, daily.any()]
    shares = dict(zip(("change", "gap", "daily"), found / n_monitors, strict=True))
    gap = {} if name in OF_GAPS else {"gap": np.nan}
    return shares | gap | {"n": n_monitors}


def delays(shift: float, day: int, n_monitors: int) -> dict[str, float]:
    """Return how many days after a change monitors see it, and how well they date it.

    And the days that one planned test needs, with a power of 0.8.
    """
    rng = np.random.default_rng([9, day, int(10 * shift)])
    gap, variance, df = independent(rng, n_monitors)
    gap = gap + shift * np.sqrt(variance.mean()) * (np.arange(DAYS) >= day)
    found, covered, early = [], [], 0
    for i in range(n_monitors):
        blocks, change, _ = scans((gap, variance, df), i)
        seen = np.flatnonzero(alarmed(change)) + BASELINE
        if seen.size and seen[0] < day:
            early += 1
            continue
        found.append(seen[0] + 1 - day if seen.size else np.inf)
        if seen.size:
            until = Blocks(*(part[: seen[0] + 1] for part in vars(blocks).values()))
            _, low, high = change_point(until, BASELINE)
            covered.append(low <= day <= high)
    needed = special.ndtri(1 - ALPHA / 2) + special.ndtri(POWER)
    room = (shift / needed) ** 2 - 1 / day
    return {
        "median": float(np.quantile(found, 0.5, method="higher")),
        "late": float(np.quantile(found, 0.9, method="higher")),
        "planned": float(np.ceil(1 / room)) if room > 0 else np.inf,
        "covered": float(np.mean(covered)) if covered else np.nan,
        "early": early / n_monitors,
        "n": n_monitors,
    }


#: Shares, and new users of a group every day.
LEVELS = [(rate, users) for rate in (0.5, 0.02) for users in (1, 5, 20)]


def levels(rate: float, users: int, n_monitors: int) -> dict[str, float]:
    """Return the shares of sequences of a level that ever miss it, by betting and not.

    And half of their widths after the year. The asymptotic ones look when there are 20
    users more, not all of them alike, as a monitor does by default.
    """
    rng = np.random.default_rng([11, users, int(1000 * rate)])
    days, found = users * np.arange(1.0, DAYS + 1), np.zeros((n_monitors, 4))
    for i in range(n_monitors):
        total = np.cumsum(rng.binomial(users, rate, DAYS))
        low, high = betting_sequence(days, total, ALPHA)
        found[i, :2] = ((low > rate) | (high < rate)).any(), (high - low)[-1] / 2
        blocks, since = [], np.zeros(2)
        for day in range(DAYS):
            n, k = np.array([days[day], total[day]]) - since
            if n >= 20 and 0 < k < n:
                p = k / n
                blocks.append([p, p * (1 - p) / (n - 1), n, n - 1, day])
                since = since + (n, k)
        scan = Scan.of(Blocks(*np.array(blocks).T))
        low, high = scan.interval(0, ALPHA)
        found[i, 2:] = ((low > rate) | (high < rate)).any(), (high - low)[-1] / 2
    names = ("betting", "betting width", "asymptotic", "asymptotic width")
    return dict(zip(names, found.mean(axis=0), strict=True)) | {"n": n_monitors}


SHIFTS = [(shift, day) for day in (60, 200) for shift in (0.5, 1.0, 2.0, 3.0)]


# The page


def table(header: list[str], rows: list[list[str]]) -> str:
    """Return a table of Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def percent(value: float) -> str:
    """Return a share in percent."""
    return "–" if np.isnan(value) else f"{100 * value:.1f}%"


def days(value: float) -> str:
    """Return a number of days, or that there is none."""
    return f"{value:.0f}" if np.isfinite(value) else "never"


def tables(found: dict[str, Any]) -> dict[str, str]:
    """Return the tables of the page by their names."""
    level = [
        [
            *name.split("-"),
            f"{row['n']:,}",
            *(percent(row[key]) for key in ("betting", "asymptotic")),
            *(f"{row[f'{key} width']:.3f}" for key in ("betting", "asymptotic")),
        ]
        for name, row in found["levels"].items()
    ]
    alarms = [
        [
            YEARS[name][0],
            f"{rates['n']:,}",
            *(percent(rates[k]) for k in ("change", "gap", "daily")),
        ]
        for name, rates in found["alarms"].items()
    ]
    delay = []
    for name, row in found["delays"].items():
        numbers = [days(row[key]) for key in ("median", "late", "planned")]
        covered = percent(row["covered"])
        delay.append([*name.split("-"), f"{row['n']}", *numbers, covered])
    return {
        "power": power_table(found["power"], MEASURES, warned=False),
        "doubtful": power_table(found["power"], MEASURES, warned=True),
        "others": power_table(found["others"], OTHERS, warned=False),
        "others-doubtful": power_table(found["others"], OTHERS, warned=True),
        "rates": table(
            ["Rate of the group", "of the rest", "share", "plan (rows)", "pilots"],
            [
                [*name.split("-"), f"{percent(of_plan)} ({n:,.0f})", percent(of_pilots)]
                for name, (of_plan, n, of_pilots) in found["rates"].items()
            ],
        ),
        "margins": margins_table(found["margins"]),
        "levels": table(
            [
                "Share",
                "new users every day",
                "monitors",
                "betting: ever wrong",
                "asymptotic: ever wrong",
                "half width after a year: betting",
                "asymptotic",
            ],
            level,
        ),
        "alarms": table(
            ["Days", "monitors", "change", "gap, margin 0", "a test of 5% every day"],
            alarms,
        ),
        "delays": table(
            [
                "Change, in errors of a day",
                "on day",
                "monitors",
                "median days until seen",
                "90% within",
                "one planned test",
                "interval holds the day",
            ],
            delay,
        ),
    }


def power_table(found: Any, measures: Iterable[str], *, warned: bool) -> str:
    """Return what is kept by measure, where most pilots are warned of, or where not."""
    rows = []
    for name, values in found.items():
        cells = []
        for measure in measures:
            *powers, effective, share = values[measure]
            text = f"{' / '.join(map(percent, powers))} ({effective:.0f}, {share:.0%})"
            cells.append(text if (share > MOST_WARNED) == warned else "–")
        if set(cells) != {"–"}:
            rows.append([DESIGNS[name].title, *cells])
    return table(["Data", *measures], rows)


def margins_table(found: Any) -> str:
    """Return how often values are shown to be within a margin."""
    header = ["Data"]
    for measure in MEASURES:
        header += [f"{measure}: wrongly", "shown (expected)"]
    rows = []
    for name, values in found.items():
        cells = [DESIGNS[name].title]
        for measure in MEASURES:
            *wrong, shown, expected = values[measure]
            cells += [percent(max(wrong)), f"{percent(shown)} ({percent(expected)})"]
        rows.append([*cells, percent(values["any of eight groups"][0])])
    return table([*header, "any of eight groups: wrongly"], rows)


def main() -> None:
    """Measure what is not there yet, or write the tables of what is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=3000)
    parser.add_argument("--monitors", type=int, default=1000)
    parser.add_argument("--folder", type=Path, default=Path("build/decide"))
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    for category in (SmallSampleWarning, UndefinedMetricWarning):
        warnings.simplefilter("ignore", category)
    samples, monitors = arguments.samples, arguments.monitors
    parts: dict[str, dict[str, Callable[[], Any]]] = {
        "alarms": {name: partial(false_alarms, name, monitors) for name in YEARS},
        "delays": {
            f"{shift}-{day}": partial(delays, shift, day, max(50, monitors // 5))
            for shift, day in SHIFTS
        },
        "levels": {
            f"{rate}-{users}": partial(levels, rate, users, monitors)
            for rate, users in LEVELS
        },
        "others": {
            name: partial(others_of, name, samples // 3)
            for name in ("equal40", "equal200", "users")
        },
        "rates": {
            "-".join(map(str, case)): partial(rates_of, *case, samples)
            for case in RATES
        },
        "margins": {name: partial(margins_of, name, samples) for name in DESIGNS},
        "power": {name: partial(power_of, name, samples) for name in DESIGNS},
    }
    gc.freeze()  # `multipletests` of statsmodels collects garbage in each call
    arguments.folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, Any]] = {part: {} for part in parts}
    for part, measures in parts.items():
        for name, measure in measures.items():
            path = arguments.folder / f"{part}-{name}.json"
            if not path.exists() and not arguments.write:
                path.write_text(json.dumps(measure()), encoding="utf-8")
            if path.exists():
                found[part][name] = json.loads(path.read_text(encoding="utf-8"))
    for name, text in tables(found).items():
        if not arguments.write:
            print(f"\n{text}")
            continue
        part = {"doubtful": "power", "others-doubtful": "others"}
        if not found[part.get(name, name)]:
            continue
        page = PAGE.read_text(encoding="utf-8")
        start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        head, _, rest = page.partition(start)
        _, _, tail = rest.partition(end)
        PAGE.write_text(f"{head}{start}{text}\n{end}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
