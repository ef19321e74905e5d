"""How far to trust the numbers: ``benchmarks/validity.py [--replications 1000]``.

Draws fresh data from designs that are hard on standard errors, and counts how often
tests of a true null hypothesis reject at 5% and how often 95% intervals hold the truth.
``--write`` puts the tables into docs/validity.md. ``--designs`` and ``--jobs`` choose
what runs and in how many processes.
"""

from __future__ import annotations

import argparse
import datetime as dt
import platform
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from skrankfair.exceptions import SmallSampleWarning, UndefinedMetricWarning
from skrankfair.inference import (
    compare,
    marginal_outcome_test,
    predictive_parity_test,
)
from skrankfair.metrics import (
    dips,
    exposure_gap,
    matched_pair_calibration,
    ndcg,
    pairwise_accuracy,
    pairwise_exposure,
)

PAGE = Path(__file__).parents[1] / "docs" / "validity.md"
ALPHA = 0.05
ENOUGH = 5  # effective clusters behind the group

Rows = dict[str, np.ndarray]


@dataclass(frozen=True)
class Design:
    """Data with a true null hypothesis: groups differ by chance alone.

    Attributes
    ----------
    title : str
    sizes : callable
        Items of each query, from a generator.
    present : float or None
        The share of the queries that have the group at all, two items of it.
    share : float
        The share of the items that are of the group.
    threshold : float
        Outcomes are 1 above it, in standard deviations.
    noise : float
        Of the scores.
    outcome : str
        "binary", "lognormal" or "t3".
    levels : int
        So many distinct scores; 0 is as many as there are.
    users : int
        So many users, who have a power-law number of the queries; 0: each its own.
    weighted : bool
        Whether queries have weights from 1 to 20.
    overlapping : bool
        Whether items may be of two groups, or of none.
    """

    title: str
    sizes: Callable[[np.random.Generator], Any]
    present: float | None = None
    share: float = 0.5
    threshold: float = 0.0
    noise: float = 1.0
    outcome: str = "binary"
    levels: int = 0
    users: int = 0
    weighted: bool = False
    overlapping: bool = False

    def draw(self, rng: np.random.Generator, times: int = 1) -> Rows:
        """Draw the columns, `times` data sets one after the other."""
        parts = [self._queries(rng) for _ in range(times)]
        offset = 0
        for part in parts:
            part["qid"] += offset
            offset = part["qid"].max() + 1
        return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}

    def _queries(self, rng: np.random.Generator) -> Rows:
        lengths = np.asarray(self.sizes(rng), dtype=int)
        n_queries = lengths.size
        query = np.repeat(np.arange(n_queries), lengths)
        owner = np.arange(n_queries)
        if self.users:
            chance = np.arange(1, self.users + 1) ** -1.0
            owner = rng.choice(self.users, n_queries, p=chance / chance.sum())
        group = self._labels(rng, query, lengths)
        # Every owner of queries has a taste for the group, and its ranker a bias.
        # In one list that would be a true difference.
        taste, bias = 0.5 * rng.normal(size=(2, owner.max() + 1))[:, owner][:, query]
        if n_queries == 1:
            taste, bias = np.zeros((2, query.size))
        quality = rng.normal(size=query.size) + taste * group
        score = quality + self.noise * (rng.normal(size=query.size) + bias * group)
        other = quality + self.noise * (rng.normal(size=query.size) + bias * group)
        outcome = quality + rng.normal(size=query.size)
        if self.outcome == "binary":
            outcome = (outcome > self.threshold * np.sqrt(2)).astype(float)
        elif self.outcome == "lognormal":
            outcome = np.exp(1.5 * outcome)
        else:
            outcome = quality + rng.standard_t(3, size=query.size)
        if self.levels:
            score, other = (np.clip(np.round(s), -2, 2) for s in (score, other))
        rows = {
            "y_true": outcome,
            "y_score": score,
            "other": other,
            "group": group,
            "second": rng.random(query.size) < 0.4,
            "qid": query,
            "owner": owner[query],
        }
        if self.weighted:
            rows["sample_weight"] = rng.integers(1, 21, n_queries)[query].astype(float)
        return rows

    def _labels(self, rng: np.random.Generator, query: Any, lengths: Any) -> Any:
        if self.present is None:
            return rng.random(query.size) < self.share
        group = np.zeros(query.size, dtype=bool)
        ends = np.cumsum(lengths)
        for end, length in zip(ends, lengths, strict=True):
            if rng.random() < self.present:
                group[end - length + rng.choice(length, 2, replace=False)] = True
        return group


def power_law(n_queries: int, largest: int) -> Callable[[np.random.Generator], Any]:
    """Return sizes from 4 to `largest` items with a tail of exponent 1.1."""
    return lambda rng: np.minimum(4 * rng.random(n_queries) ** (-1 / 1.1), largest)


def equal(n_queries: int, n_items: int = 10) -> Callable[[np.random.Generator], Any]:
    """Return the same size for every query."""
    return lambda rng: np.full(n_queries, n_items)


DESIGNS = {
    **{f"equal{n}": Design(f"{n} equal queries", equal(n)) for n in (5, 10, 20, 40)},
    "equal200": Design("200 equal queries", equal(200)),
    "power40": Design("power law, 40 queries", power_law(40, 400)),
    "power200": Design("power law, 200 queries", power_law(200, 200)),
    "dominant": Design(
        "20 queries, one with 30% of the rows", lambda rng: [10] * 19 + [81]
    ),
    "rare": Design("a group in 5% of 200 queries", equal(200), present=0.05),
    "rare1000": Design("a group in 5% of 1000 queries", equal(1000), present=0.05),
    "outcome1": Design("outcomes of 1%, 200 queries", equal(200), threshold=2.33),
    "ties": Design("five distinct scores", equal(100), levels=5),
    "lognormal": Design("lognormal outcomes", equal(100), outcome="lognormal"),
    "t3": Design("outcomes with t3 noise", equal(100), outcome="t3"),
    "users": Design("20 users, power law of queries", equal(200), users=20),
    "weights": Design("query weights 1 to 20", equal(60), weighted=True),
    "overlap": Design("overlapping groups", equal(100), overlapping=True),
    "accurate": Design("near-perfect accuracy", equal(40), noise=0.05),
    **{
        f"list{n}_{round(100 * share)}": Design(
            f"one list of {n}, group of {100 * share:.0f}%", equal(1, n), share=share
        )
        for n in (50, 200, 1000)
        for share in (0.05, 0.1, 0.2, 0.5)
    },
}


@dataclass(frozen=True)
class CurveDesign:
    """Scores and outcomes of two groups with one and the same curve.

    Attributes
    ----------
    title : str
    scores : tuple of tuple
        Parameters of the beta distributions of the scores of the groups.
    curve : callable
        The mean outcome at a score.
    n_rows : int
    share : float
        The share of the rows that are of the first group.
    deciles : bool
        Whether scores are rounded to ten values.
    clusters : callable or None
        The sizes of clusters, whose rows have a common effect.
    """

    title: str
    scores: tuple[tuple[float, float], tuple[float, float]] = ((2, 2), (2, 2))
    curve: Callable[[np.ndarray], np.ndarray] = lambda s: s
    n_rows: int = 2000
    share: float = 0.5
    deciles: bool = False
    clusters: Callable[[np.random.Generator], Any] | None = None

    def draw(self, rng: np.random.Generator) -> Rows:
        """Draw the columns."""
        sizes = np.ones(self.n_rows, dtype=int)
        if self.clusters is not None:
            sizes = np.asarray(self.clusters(rng), dtype=int)
        cluster = np.repeat(np.arange(sizes.size), sizes)
        group = rng.random(cluster.size) < self.share
        a, b = np.where(group[:, None], *np.array(self.scores)[:, None]).T
        score = rng.beta(a, b)
        if self.deciles:
            score = np.floor(10 * score) / 10 + 0.05
        chance = self.curve(score)
        if self.clusters is not None:
            effect = 0.5 * rng.normal(size=sizes.size)[cluster]
            chance = np.clip(chance, 0.01, 0.99)
            chance = 1 / (1 + (1 - chance) / chance * np.exp(-effect))
        outcome = (rng.random(score.size) < chance).astype(float)
        return {"y": outcome, "s": score, "g": group.astype(int), "c": cluster}


def steep(s: np.ndarray) -> np.ndarray:
    """Return a steep logistic curve."""
    return 1 / (1 + np.exp(-12 * (s - 0.5)))


def wavy(s: np.ndarray) -> np.ndarray:
    """Return a wavy curve."""
    return 0.5 + 0.3 * np.sin(6 * np.pi * s)


def rare(s: np.ndarray) -> np.ndarray:
    """Return the curve of an outcome of 3% on average."""
    return 0.06 * s


CURVES = {
    "straight": CurveDesign("straight, Beta(2, 4) and (4, 2)", ((2, 4), (4, 2))),
    "steep": CurveDesign("steep, Beta(2, 6) and (6, 2)", ((2, 6), (6, 2)), steep),
    "wavy": CurveDesign("wavy, Beta(2, 3) and (3, 2)", ((2, 3), (3, 2)), wavy),
    "deciles": CurveDesign(
        "deciles, Beta(2, 3) and (3, 2)", ((2, 3), (3, 2)), deciles=True
    ),
    "small": CurveDesign("a group of 3% of 2,000", share=0.03),
    "small10": CurveDesign("a group of 10% of 1,000", n_rows=1000, share=0.1),
    "few": CurveDesign("outcomes of 3%", curve=rare),
    "clusters20": CurveDesign("20 clusters of 50 rows", clusters=equal(20, 50)),
    "clusters40": CurveDesign("40 clusters, power law", clusters=power_law(40, 400)),
}


def one_curve(key: str, seed: int) -> dict[str, list[float]]:
    """Return by test: whether it rejected, NaN if undefined."""
    rows = CURVES[key].draw(np.random.default_rng([seed, 8]))
    who = {"sensitive_features": rows["g"]}
    if CURVES[key].clusters is not None:
        who["cluster"] = rows["c"]
    with quiet():
        parity = predictive_parity_test(rows["y"], rows["s"], **who)
        marginal = marginal_outcome_test(rows["y"], rows["s"], threshold=0.5, **who)
    found = {"parity test": parity.pvalue, "marginal outcomes": marginal.pvalue}
    values = {name: float(np.min(p)) for name, p in found.items()}
    return {
        f"size {name}": [np.nan if np.isnan(p) else float(p < ALPHA), np.inf]
        for name, p in values.items()
    }


def columns_of(design: Design, rows: Rows) -> dict[str, Any]:
    """Return the columns as metrics take them."""
    groups: Any = np.where(rows["group"], "a", "b")
    if design.overlapping:
        groups = np.stack([rows["group"], rows["second"]], axis=1)
    columns = {"sensitive_features": groups}
    if np.unique(rows["qid"]).size > 1:
        columns["qid"] = rows["qid"]
        if design.users:
            columns["cluster"] = rows["owner"]
        if "sample_weight" in rows:
            columns["sample_weight"] = rows["sample_weight"]
    return columns


def results_of(design: Design, rows: Rows) -> dict[str, Any]:
    """Return the results of all metrics by name."""
    y, score = rows["y_true"], rows["y_score"]
    who = columns_of(design, rows)
    found: dict[str, Any] = {}
    for kind in ("all", "intra", "inter"):
        found[kind] = pairwise_accuracy(y, score, comparison=kind, **who)
    found["exposure"] = pairwise_exposure(y, score, **who)
    found["matched"] = matched_pair_calibration(y, score, epsilon=0.3, **who)
    found["matched, 5%"] = matched_pair_calibration(y, score, quantile=0.05, **who)
    again = pairwise_accuracy(y, rows["other"], **who)
    found["compare"] = compare(found["all"], again)
    if "qid" in who:
        found["dips"] = dips(y, score, **who)
        if design.outcome == "binary" and not design.overlapping:
            found["exposure gap"] = exposure_gap(y, score, **who)
        if design.outcome != "t3":
            rest = {k: v for k, v in who.items() if k != "sensitive_features"}
            found["ndcg"] = ndcg(y, score, **rest)
    return found


#: Tests of a true null hypothesis: the group against the fair value or the rest.
TESTED = (
    *("all", "intra", "inter", "exposure", "matched", "matched, 5%", "dips"),
    *("exposure gap", "compare"),
)
#: Intervals whose truth is the value in a very large sample.
COVERED = ("all", "intra", "inter", "exposure", "dips", "ndcg")


def large(design: Design, seed: int = 1) -> dict[str, float]:
    """Return the true values of the group, from a very large sample."""
    rng = np.random.default_rng([seed, 10**6])
    rows_once = sum(np.asarray(design.sizes(rng)).astype(int))
    times = int(np.clip(400_000 // rows_once, 2, 20_000))
    with quiet():
        found = results_of(design, design.draw(rng, times))
    return {name: float(found[name].estimate[0]) for name in COVERED if name in found}


class quiet(warnings.catch_warnings):  # noqa: N801
    """Leave out the package's own warnings: what they say is counted."""

    def __enter__(self) -> Any:
        entered = super().__enter__()
        for category in (SmallSampleWarning, UndefinedMetricWarning):
            warnings.simplefilter("ignore", category)
        return entered


def one(key: str, truth: dict[str, float], seed: int) -> dict[str, list[float]]:
    """Return by measure: whether it was wrong, NaN if undefined; effective clusters."""
    design = DESIGNS[key]
    rng = np.random.default_rng([seed, 7])
    out: dict[str, list[float]] = {}
    rows = design.draw(rng)
    if not 0 < rows["group"].sum() < rows["group"].size:
        return out
    with quiet():
        found = results_of(design, rows)
        for name in TESTED:
            if name in found:
                tested = found[name]
                if tested.fair_value is None:
                    tested = tested.against_rest()
                pvalue, effective = tested.test().pvalue[0], tested.n_effective[0]
                wrong = np.nan if np.isnan(pvalue) else float(pvalue < ALPHA)
                out[f"size {name}"] = [wrong, effective]
        for name in COVERED:
            if name in found and name in truth:
                result = found[name]
                low, high = result.confidence_interval()
                _held(out, f"cover {name}", low[0], high[0], truth[name], result)
        both = found["inter"].simultaneous_interval()
        if not design.overlapping and "inter" in truth:
            contrast = found["inter"].contrast("a", "b").confidence_interval()
            _held(out, "cover inter, a - b", *contrast, 0.0, found["inter"])
            bound = found["inter"].disparity_bound()
            wrong = np.nan if np.isnan(bound) else float(bound < 0)
            inside = (both.low[0] <= truth["inter"]) & (both.high[0] >= truth["inter"])
            undefined = np.isnan(both.low[0])
            out["cover inter, simultaneous"] = [
                np.nan if undefined else float(not inside),
                found["inter"].n_effective[0],
            ]
        if "qid" in columns_of(design, rows) and seed % 5 == 0:
            boot = found["inter"].confidence_interval(
                method="bootstrap", n_resamples=400, random_state=seed
            )
            name, of = "cover inter, bootstrap", found["inter"]
            if "inter" in truth:
                _held(out, name, boot.low[0], boot.high[0], truth["inter"], of)
    return out


def _held(
    out: dict[str, list[float]], name: str, low: Any, high: Any, truth: float, of: Any
) -> None:
    wrong = float("nan") if np.isnan(low) else float(not low <= truth <= high)
    out[name] = [wrong, float(of.n_effective[0])]


def study(key: str, replications: int, jobs: int) -> dict[str, np.ndarray]:
    """Return by measure: share wrong, error, share undefined, effective clusters."""
    seeds = range(replications)
    if key in CURVES:
        found = Parallel(n_jobs=jobs)(delayed(one_curve)(key, seed) for seed in seeds)
    else:
        truth = large(DESIGNS[key])
        found = Parallel(n_jobs=jobs)(delayed(one)(key, truth, seed) for seed in seeds)
    table = {}
    for name in sorted({name for part in found for name in part}):
        values = np.array([part[name] for part in found if name in part])
        known = ~np.isnan(values[:, 0])
        share = values[known, 0].mean() if known.any() else np.nan
        error = np.sqrt(share * (1 - share) / max(known.sum(), 1))
        table[name] = np.array([share, error, 1 - known.mean(), values[:, 1].mean()])
    return table


def cell(values: np.ndarray | None, limit: float) -> str:
    """Return the text of a cell: per cent, in colour where it is above the limit."""
    if values is None or np.isnan(values[0]):
        return "–" if values is None else "cannot tell"
    share, error, undefined, effective = values
    text = f"{100 * share:.1f}"
    if undefined > 0.02:
        text += f" ({100 * undefined:.0f}% cannot tell)"
    if effective < ENOUGH:
        text = f"*{text}*"
    if share - 2 * error > limit:
        return f"🟥 **{text}**"
    return f"🟨 {text}" if share > limit else text


def page(found: dict[str, dict[str, np.ndarray]], replications: int) -> str:
    """Return the page of the documentation."""
    today = dt.datetime.now(tz=dt.UTC).date()
    lines = [PREFACE.format(replications=replications, error=monte_carlo(replications))]
    ranked = {key: table for key, table in found.items() if key in DESIGNS}
    curves = {key: table for key, table in found.items() if key in CURVES}
    rejects = "reject a true null hypothesis at 5%, per cent"
    misses = "miss the truth, per cent"
    lines += _table(f"## Tests that {rejects}", "size ", ranked, 0.065)
    lines += _table(f"## 95% intervals that {misses}", "cover ", ranked, 0.07)
    lines += _table(f"## Tests of curves that {rejects}", "size ", curves, 0.065)
    lines.append(
        f"Measured {today} with Python {platform.python_version()} by "
        "`python benchmarks/validity.py --write`."
    )
    return "\n".join(lines) + "\n"


def _table(
    title: str, prefix: str, found: dict[str, dict[str, np.ndarray]], limit: float
) -> list[str]:
    """Return the lines of a table: a design per row, a measure per column."""
    if not found:
        return []
    names = sorted({n for t in found.values() for n in t if n.startswith(prefix)})
    header = ["design", *(n.removeprefix(prefix) for n in names), "effective clusters"]
    lines = [title, "", f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    for key, table in found.items():
        cells = [cell(table.get(name), limit) for name in names]
        some = next((table[n] for n in names if n in table), np.full(4, np.inf))
        effective = f"{some[3]:.1f}" if np.isfinite(some[3]) else "–"
        title = {**DESIGNS, **CURVES}[key].title
        lines.append(f"| {title} | {' | '.join(cells)} | {effective} |")
    return [*lines, ""]


def monte_carlo(replications: int) -> str:
    """Return two Monte Carlo standard errors of a rate of 5%, in points."""
    return f"{200 * np.sqrt(0.05 * 0.95 / replications):.1f}"


PREFACE = """# How far to trust the numbers

An error bar is a promise. This page shows how well it is kept on data that are hard on
standard errors: few or unequal queries, rare groups, rare outcomes, tied scores. Each
row is a design from which {replications} data sets were drawn, and in which the null
hypothesis is true; a rate of 5% has a Monte Carlo error of ± {error} points (two
standard errors; the bootstrap ran on every fifth data set, where it is 2.2 times this).

🟥 marks a rate that is above 6.5% (tests) or 7% (intervals) by more than the Monte
Carlo error, 🟨 one that is above it within the error. Numbers in *italics* rest on
fewer than five effective clusters (or items) behind the group, where a
`SmallSampleWarning` says so: there the intervals are wide on purpose, and rates far
below 5% are the price. "cannot tell" is NaN, with a warning.
"""


def main() -> None:
    """Run the study, and print or write its tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--designs", nargs="*", default=[*DESIGNS, *CURVES])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    found = {}
    for key in arguments.designs:
        found[key] = study(key, arguments.replications, arguments.jobs)
        print(
            key, {n: np.round(v, 3).tolist() for n, v in found[key].items()}, flush=True
        )
    text = page(found, arguments.replications)
    if arguments.write:
        PAGE.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
