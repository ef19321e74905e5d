"""How far to trust the numbers: ``python -m benchmarks.validity --write``.

Draws fresh data from the designs of tests/designs.py and of this file, which are hard
on standard errors, and counts how often tests of a true null hypothesis reject at 5%,
how often 95% intervals miss the truth, and how often what is there is found, beside the
best test that knows the design. Data sets are drawn in rounds, each of all designs, and
what is done is kept in ``--folder``: run it again to go on, or to write the page from
what there is. ``--designs`` and ``--studies`` choose some of them. Columns that are not
in the folder stay on the page as they are.

Not on the page: bootstrap intervals of NDCG, of which it shows few data sets, missed
4.4% of 800 more data sets of 200 queries and 5.7% of 1,500 more of 1000 queries.
"""

from __future__ import annotations

import argparse
import datetime as dt
import gc
import json
import os
import platform
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import special, stats
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, GroupKFold

from benchmarks.simulations.common import AUDITS, quiet
from skrankfair import audit, mitigation_report
from skrankfair._estimates.estimates import contrasts_of
from skrankfair._estimates.rows import Rows as Table
from skrankfair._estimates.scales import t_quantile
from skrankfair._estimates.sums import ClusterSums
from skrankfair.inference import (
    compare,
    marginal_outcome_test,
    monotonicity_test,
    outcome_inequality_test,
    predictive_parity_test,
)
from skrankfair.metrics import (
    balanced_accuracy,
    calibration_error,
    demographic_parity_difference,
    equalized_odds,
    equalized_odds_difference,
    exposure,
    exposure_gap,
    f1,
    group_mean,
    log_loss,
    make_metric,
    matched_pair_calibration,
    mean_squared_error,
    ndcg,
    ndkl,
    normalized_discounted_difference,
    pairwise_accuracy,
    pairwise_exposure,
    pairwise_parity,
    pairwise_preference,
    positive_rate_shift,
    precision,
    rank_shift,
    selection_rate,
    skew_at_k,
    true_positive_rate,
)
from skrankfair.model_selection import fairness_constrained
from skrankfair.monitoring import Monitor
from skrankfair.scoring import make_fairness_scorer, with_errors
from skrankfair.smoothing import nadaraya_watson
from tests.designs import (
    CURVES,
    DESIGNS,
    CurveDesign,
    Design,
    Rows,
    equal,
    power_law,
)

PAGE = Path(__file__).parents[1] / "docs" / "validity.md"
ALPHA = 0.05
ENOUGH = 5  # effective clusters behind the group
ROUND = 50  # data sets of a design that are drawn in one go
EVERY = 10  # what takes long runs on every tenth data set

#: By measure: wrong or not (NaN: undefined), effective clusters, estimate, width.
Found = dict[str, list[float]]


def rejects(pvalue: Any) -> float:
    """Return whether the test is wrong, NaN without a p-value."""
    return float("nan") if np.isnan(pvalue) else float(pvalue < ALPHA)


def misses(low: float, high: float, truth: float) -> float:
    """Return whether the interval is wrong, NaN if there is none."""
    if np.isnan(low) or np.isnan(high):
        return float("nan")
    return float(not low <= truth <= high)


def held(out: Found, name: str, ends: Any, truth: float, of: Any, value: float) -> None:
    """Note whether an interval holds the truth."""
    low, high = (float(np.ravel(end)[0]) for end in ends)
    wrong = misses(low, high, truth)
    out[f"cover {name}"] = [wrong, float(of.n_effective[0]), value, high - low]


def columns_of(design: Design, rows: Rows) -> dict[str, Any]:
    """Return the columns as metrics take them.

    Groups are numbered, two for each data set: 0 and 1, 2 and 3, ...
    """
    first = 2 * rows["set"]
    groups: Any = np.where(rows["group"], first, first + 1)
    if design.overlapping:
        groups = np.zeros((first.size, first.max() + 2), dtype=bool)
        groups[np.arange(first.size), first] = rows["group"]
        groups[np.arange(first.size), first + 1] = rows["second"]
    return design.columns(rows, groups)


def results_of(design: Design, rows: Rows) -> dict[str, Any]:
    """Return the results of all metrics by name."""
    y, score = rows["y_true"], rows["y_score"]
    who = columns_of(design, rows)
    binary, overlapping = design.outcome == "binary", design.overlapping
    found: dict[str, Any] = {}
    for kind in ("all", "intra", "inter"):
        found[kind] = pairwise_accuracy(y, score, comparison=kind, **who)
    found["exposure"] = pairwise_exposure(y, score, **who)
    found["preference"] = pairwise_preference(y, **who)
    found["matched"] = matched_pair_calibration(
        y, score, epsilon=0.3, direction="both", **who
    )
    found["matched, neighbours"] = matched_pair_calibration(
        y, score, adjacent=True, quantile=1.0, **who
    )
    if rows["set"].max() == 0:
        found["matched, 5%"] = matched(design, rows)
    again = pairwise_accuracy(y, rows["other"], **who)
    found["compare, accuracy"] = compare(found["all"], again)
    risk = {k: v for k, v in who.items() if k != "qid"}
    if "qid" in who:
        risk["cluster"] = who.get("cluster", who["qid"])
        found["inter, by query"] = pairwise_accuracy(
            y, score, comparison="inter", average="queries", **who
        )
        found["inter, each alike"] = pairwise_accuracy(
            y, score, comparison="inter", **each_alike(who)
        )
        if not overlapping:
            found["share of exposure"] = exposure(None, score, **who)
        if binary and not overlapping:
            found["exposure gap"] = exposure_gap(y, score, **who)
        if design.outcome != "t3":
            rest = {k: v for k, v in who.items() if k != "sensitive_features"}
            found["ndcg"] = ndcg(y, score, **rest)
            other = ndcg(y, rows["other"], **rest)
            found["compare, ndcg"] = compare(found["ndcg"], other)
    if binary:
        chance = special.expit(score)
        found["log loss"] = log_loss(y, chance, **risk)
        found["squared error"] = mean_squared_error(y, chance, **risk)
    return found


def each_alike(columns: dict[str, Any]) -> dict[str, Any]:
    """Return the columns with weights that let clusters of pairs count alike."""
    query = columns["qid"]
    unit = columns.get("cluster", query)
    pairs = np.bincount(unit, np.bincount(query)[query])[unit]
    return columns | {"sample_weight": columns.get("sample_weight", 1.0) / pairs}


#: Tests of a true null hypothesis: the group against the fair value or the rest.
TESTED = (
    *("all", "intra", "inter", "inter, each alike", "exposure", "matched"),
    *("matched, 5%", "matched, neighbours", "exposure gap"),
    *("compare, accuracy", "compare, ndcg"),
)
#: Intervals whose truth is the value in a very large sample.
COVERED = (
    *("all", "intra", "inter", "inter, by query", "inter, each alike"),
    *("exposure", "preference"),
    *("share of exposure", "ndcg", "log loss", "squared error"),
)


def drawn_often(design: Design, rng: np.random.Generator, times: int) -> Rows:
    """Draw the columns of several data sets, one after the other."""
    parts = [design.draw(rng) for _ in range(times)]
    offset = 0
    for part in parts:
        part["qid"] += offset
        offset = part["qid"].max() + 1
    return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}


def large(design: Design, seed: int = 1) -> dict[str, float]:
    """Return the true values of the group, from a very large sample."""
    rng = np.random.default_rng([seed, 10**6])
    rows_once = sum(np.asarray(design.sizes(rng)).astype(int))
    n_rows = 400_000 if design.present is None else 4_000_000
    times = int(np.clip(n_rows // rows_once, 2, 20_000))
    rows = drawn_often(design, rng, times)
    rows["set"] = np.zeros(rows["qid"].size, dtype=int)
    with quiet():
        found = results_of(design, rows)
    return {name: float(found[name].estimate[0]) for name in COVERED if name in found}


#: What depends on all groups of the list, so that each data set is taken by itself.
ALONE = ("all", "intra", "share of exposure", "exposure gap", "ndcg", "compare, ndcg")


def rankings(key: str, truth: dict[str, float], seeds: range) -> list[Found]:
    """Return what is found in some data sets of a design.

    Those with clusters are measured at once, as groups of one large data set that meet
    in no cluster: estimates, errors and degrees of freedom are the same to the bit.
    """
    design = DESIGNS[key]
    drawn = [(seed, design.draw(np.random.default_rng([seed, 7]))) for seed in seeds]
    drawn = [(s, rows) for s, rows in drawn if 0 < rows["group"].mean() < 1]
    if drawn[0][1]["qid"].max() == 0:
        step = 1  # items are not clusters
    else:  # the table has a row for every cluster and a column for every group
        step = int(np.clip(3000 // (drawn[0][1]["qid"].max() + 1), 4, ROUND))
    parts = [drawn[start : start + step] for start in range(0, len(drawn), step)]
    return [found for part in parts for found in together(key, truth, part)]


def together(
    key: str, truth: dict[str, float], drawn: list[tuple[int, Rows]]
) -> list[Found]:
    """Return what is found in data sets that are measured at once."""
    design, queries, owners = DESIGNS[key], [0], [0]
    for i, (_, rows) in enumerate(drawn):
        rows["set"] = np.full(rows["qid"].size, i)
        for name, before in (("qid", queries), ("owner", owners)):
            before.append(before[-1] + rows[name].max() + 1)
            rows[name] = rows[name] + before[-2]
    every = {
        name: np.concatenate([rows[name] for _, rows in drawn]) for name in drawn[0][1]
    }
    with quiet():
        whole = results_of(design, every)
        several = {name: r for name, r in whole.items() if name not in ALONE}
        out = noted(several, truth)
        for name, cells in _contrasts(design, whole["inter"]).items():
            out[name] = cells
        found = [
            {name: cells[i] for name, cells in out.items()} for i in range(len(drawn))
        ]
        clustered = "cluster" in columns_of(design, every)
        starts = np.array(owners if clustered else queries)
        for i, (seed, rows) in enumerate(drawn):
            parts = {
                name: part_of(whole[name], i, *starts[i : i + 2])
                for name in (
                    *ALONE,
                    *(("inter", "matched") if seed % EVERY == 0 else ()),
                )
                if name in whole
            }
            alone = {name: r for name, r in parts.items() if name in ALONE}
            if len(drawn) > 1:
                alone["matched, 5%"] = matched(design, {**rows, "set": 0 * rows["set"]})
            found[i] |= {name: cells[0] for name, cells in noted(alone, truth).items()}
            if seed % EVERY == 0:
                _slow(found[i], key, rows, parts, truth, seed)
    return found


def noted(results: dict[str, Any], truth: dict[str, float]) -> dict[str, Any]:
    """Return by measure what is found in every data set, for its first group."""
    out: dict[str, Any] = {}
    for name, result in results.items():
        step = 2 if len(result.groups) > 1 else 1
        effective = result.n_effective[::step]
        if name in TESTED:
            out[f"size {name}"] = list(
                zip(rejected(result)[::step], effective, strict=True)
            )
        if name in COVERED and name in truth:
            low, high = (end[::step] for end in result.confidence_interval())
            wrong = missed(low, high, truth[name])
            value = result.estimate[::step]
            cells = zip(wrong, effective, value, high - low, strict=True)
            out[f"cover {name}"] = list(cells)
    return out


def missed(low: Any, high: Any, truth: float) -> Any:
    """Return which intervals are wrong, NaN where there is none."""
    wrong = ((truth < low) | (truth > high)).astype(float)
    return np.where(np.isnan(low) | np.isnan(high), np.nan, wrong)


def rejected(result: Any) -> Any:
    """Return which tests at 5% reject, by the intervals that they invert."""
    if result.fair_value is None:
        result = result.against_rest()
    low, high = result.confidence_interval()
    wrong = missed(low, high, result.fair_value)
    pvalue = result.pvalue if np.isnan(wrong).any() else wrong
    return np.where(np.isnan(wrong), np.where(pvalue < ALPHA, 1.0, np.nan), wrong)


def _contrasts(design: Design, result: Any) -> dict[str, Any]:
    """Return what contrasts of the two groups of each data set find."""
    if design.overlapping:
        return {}
    first = np.arange(0, len(result.groups), 2)
    out = {}
    for kind, name, fair in (("difference", "-", 0.0), ("ratio", "/", 1.0)):
        contrasts = contrasts_of(result, first, first + 1, kind)
        low, high = contrasts.ends(t_quantile(0.95, contrasts.df))
        wrong = missed(low, high, fair)
        cells = (wrong, result.n_effective[::2], contrasts.scale.estimate, high - low)
        out[f"cover inter, a {name} b"] = list(zip(*cells, strict=True))
    return out


def matched(design: Design, rows: Rows) -> Any:
    """Return a metric that chooses a threshold from the data set."""
    who = columns_of(design, rows)
    return matched_pair_calibration(
        rows["y_true"], rows["y_score"], quantile=0.05, direction="both", **who
    )


def part_of(result: Any, number: int, first: int, last: int) -> Any:
    """Return the result of one data set, on its clusters."""
    if len(result.groups) == 2 or result.sums.kind == "item":
        return result  # it is the only one
    table = result.sums.rows
    rows = slice(*np.searchsorted(table.labels, [first, last]))
    groups, labels = slice(0, 1), result.groups
    if len(labels) > 1:
        groups, labels = slice(2 * number, 2 * number + 2), labels[2 * number :][:2]
    part = Table.of_all(
        *(table.by_group[rows, groups], table.shared[rows], table.labels[rows])
    )
    sums = ClusterSums.from_rows(labels, part, result.sums.supports)
    return replace(result, sums=sums, permutation=None)


def _several(
    out: Found, design: Design, found: dict[str, Any], truth: dict[str, float]
) -> None:
    """Note simultaneous intervals."""
    result = found["inter"]
    low, high = result.simultaneous_interval(n_resamples=2000)
    if design.share == 0.5 and design.present is None:  # one truth for both groups
        wrong = max(misses(low[i], high[i], truth["inter"]) for i in (0, 1))
        out["cover inter, both groups"] = [wrong, float(result.n_effective.min())]


def _slow(
    out: Found,
    key: str,
    rows: Rows,
    found: dict[str, Any],
    truth: dict[str, float],
    seed: int,
) -> None:
    """Note what resamples and shuffles."""
    design, rows = DESIGNS[key], {**rows, "set": np.zeros(rows["qid"].size, dtype=int)}
    who = columns_of(design, rows)
    if not design.overlapping:
        _several(out, design, found, truth)
    if "qid" not in who:
        return
    options = {"method": "bootstrap", "n_resamples": 400, "random_state": seed}
    for name in ("inter", "matched", "ndcg"):
        if name in truth:
            of = found[name]
            ends, value = of.confidence_interval(**options), float(of.estimate[0])
            held(out, f"{name}, bootstrap", ends, truth[name], of, value)
    if design.overlapping:
        return
    contrast = found["inter"].contrast(*found["inter"].groups)
    ends, value = contrast.confidence_interval(**options), contrast.estimate
    held(out, "inter, a - b, bootstrap", ends, 0.0, found["inter"], value)
    score = np.random.default_rng([seed, 9]).random(rows["qid"].size)
    for name, metric in (
        ("rND", normalized_discounted_difference),
        ("NDKL", ndkl),
        ("pairwise parity", pairwise_parity),
        ("skew", skew_at_k),
    ):
        more = {"skew": {"k": 3, "average": "representation"}, "rND": {"step": 2}}.get(
            name, {}
        )
        drawn = metric(None, score, **who, **more)
        test = drawn.test(n_resamples=99, random_state=seed)
        effective = float(found["inter"].n_effective[0])
        out[f"size {name}, permutation"] = [rejects(test.pvalue[0]), effective]
    test = outcome_inequality_test(
        rows["y_true"], score, n_resamples=999, random_state=seed, **who
    )
    out["size outcome inequality"] = [rejects(test.pvalue), effective]
    if key.startswith("equal"):
        columns = {name: who[name] for name in ("sensitive_features", "qid")}
        monotone = monotonicity_test(
            score, group=0, n_resamples=99, random_state=seed, **columns
        )
        out["size monotonicity"] = [rejects(monotone.pvalue), effective]


class Shifted(BaseEstimator):
    """A ranker that adds a number to the scores of a group: nothing to learn."""

    _estimator_type = "regressor"

    def __init__(self, shift: float = 0.0) -> None:
        self.shift = shift

    def fit(self, X: Any, y: Any) -> Shifted:
        """Do nothing."""
        self.fitted_ = True
        return self

    def predict(self, X: Any) -> Any:
        """Return the scores."""
        return X[:, 0] + self.shift * X[:, 1]


SHIFTS = (0.0, 0.2, 0.4, 0.6, 0.8)
#: Designs of a search among rankers, and the disparity that it allows: that of 0.4.
SEARCHED = ("equal20", "equal40", "equal200", "power40", "dominant", "rare", "users")


def gaps(key: str) -> dict[str, float]:
    """Return the true disparity of every ranker of the search."""
    design = DESIGNS[key]
    rng = np.random.default_rng([2, 10**6])
    rows_once = sum(np.asarray(design.sizes(rng)).astype(int))
    times = int(np.clip(400_000 // rows_once, 2, 20_000))
    rows = drawn_often(design, rng, times)
    rows["set"] = np.zeros(rows["qid"].size, dtype=int)
    who = columns_of(design, rows)
    found = {}
    with quiet():
        for shift in SHIFTS:
            score = rows["y_score"] + shift * rows["group"]
            found[str(shift)] = pairwise_exposure(None, score, **who).disparity()
    return found


def one_search(key: str, truth: dict[str, float], seed: int) -> Found:
    """Return whether a search took a ranker whose disparity is above the bound."""
    design = DESIGNS[key]
    rows = design.draw(np.random.default_rng([seed, 11]))
    if not 0 < rows["group"].sum() < rows["group"].size:
        return {}
    X = np.column_stack([rows["y_score"], rows["group"], rows["qid"], rows["owner"]])
    names = {"sensitive_features": column(1), "qid": column(2)}
    if design.users:
        names["cluster"] = column(3)
    gap = make_fairness_scorer(pairwise_exposure, **names)
    limit = (truth["0.2"] + truth["0.4"]) / 2
    with quiet():
        chosen = GridSearchCV(
            Shifted(),
            {"shift": SHIFTS},
            scoring=with_errors({"shift": larger, "gap": gap}),
            cv=GroupKFold(5),
            refit=fairness_constrained(
                "shift", at_most={"gap": limit}, confidence_level=0.95
            ),
        )
        chosen.fit(X, rows["y_true"], groups=X[:, 3 if design.users else 2])
    table = chosen.refit.table_
    if not table["feasible"].any():
        return {"cover search": [0.0, np.inf]}
    wrong = truth[str(chosen.best_params_["shift"])] > limit
    return {"cover search": [float(wrong), np.inf]}


def column(number: int) -> Callable[[Any], Any]:
    """Return what takes a column of X."""
    return lambda X: X[:, number]


def larger(estimator: Shifted, X: Any, y: Any) -> float:
    """Score a ranker by its shift: the objective wants what the bound forbids."""
    return estimator.shift


def mean_outcome(design: CurveDesign, score: Any) -> Any:
    """Return the mean outcome at a score, over the effects of clusters."""
    chance = design.curve(np.asarray(score, dtype=float))
    if design.clusters is None:
        return chance
    effect, weight = np.polynomial.hermite_e.hermegauss(20)
    odds = special.logit(np.clip(chance, 0.01, 0.99))
    return special.expit(odds[..., None] + 0.5 * effect) @ (weight / weight.sum())


def population(design: CurveDesign, n_rows: int = 4000) -> Any:
    """Return as many scores of the first group, one at each quantile."""
    score = _beta_quantiles(*design.scores[0], n_rows)
    return np.floor(10 * score) / 10 + 0.05 if design.deciles else score


@cache
def _beta_quantiles(a: float, b: float, n_rows: int) -> Any:
    return stats.beta.ppf((np.arange(n_rows) + 0.5) / n_rows, a, b)


def one_curve(key: str, truth: dict[str, float], seed: int) -> Found:
    """Return what tests and intervals of curves find in one data set."""
    design = CURVES[key]
    rows = design.draw(np.random.default_rng([seed, 8]))
    y, s = rows["y"], rows["s"]
    cluster = rows["c"] if design.clusters is not None else None
    who = {"sensitive_features": rows["g"], "cluster": cluster}
    options = {"n_resamples": 2000, "random_state": seed}
    out: Found = {}
    with quiet():
        parity = predictive_parity_test(y, s, **who, **options)
        marginal = marginal_outcome_test(y, s, threshold=0.5, **who, **options)
    out["size parity test"] = [rejects(parity.pvalue), np.inf]
    out["size marginal outcomes"] = [rejects(marginal.pvalue), np.inf]
    low, high = marginal.outcome_interval()
    value = float(marginal.outcomes[1])
    wrong = misses(low[1], high[1], truth["0.5"])
    out["cover marginal outcome"] = [wrong, np.inf, value, high[1] - low[1]]
    means = mean_outcome(design, parity.grid)
    for kind in ("pointwise", "simultaneous"):
        low, high = (ends[1] for ends in parity.curve_band(kind=kind))
        known = ~np.isnan(low)
        wrong = (means < low)[known] | (means > high)[known]
        share = np.nan
        if known.any():
            share = wrong.mean() if kind == "pointwise" else wrong.any()
        out[f"cover curve, {kind}"] = [float(share), np.inf]
    return out | _smoothed(design, rows)


def truths(key: str) -> dict[str, float]:
    """Return the true values of the first group of a design of curves."""
    design = CURVES[key]
    scores = population(design)
    means = mean_outcome(design, scores)
    found = {"0.5": float(mean_outcome(design, np.array(0.5)))}
    found["calibration"] = float(np.sqrt(np.mean((scores - means) ** 2)))
    place = np.minimum(10 * scores, 9).astype(int)
    mass = np.maximum(np.bincount(place, minlength=10), 1)
    gaps = np.bincount(place, scores - means, minlength=10) / mass
    found["calibration, edges"] = float(np.sqrt(mass @ gaps**2 / scores.size))
    found["positive rate"] = float(np.mean(means > 0.5) - np.mean(scores > 0.5))
    return found


def of_first_group(design: CurveDesign, rows: Rows) -> tuple[Any, Any, Any]:
    """Return outcomes, scores and clusters of the first group."""
    own = rows["g"] == 1
    cluster = rows["c"][own] if design.clusters is not None else None
    return rows["y"][own], rows["s"][own], cluster


def _smoothed(design: CurveDesign, rows: Rows) -> Found:
    """Return what intervals of a smoothed curve find, and how far off the curve is."""
    y, s, cluster = of_first_group(design, rows)
    grid = np.quantile(s, [0.02, 0.25, 0.5, 0.75, 0.98])
    out: Found = {}
    with quiet():
        curve = nadaraya_watson(y, s, grid, cluster=cluster)
        low, high = curve.confidence_interval()
        scores = population(design)
        near = np.exp(-0.5 * ((grid[:, None] - scores) / curve.bandwidth) ** 2)
        smooth = near @ mean_outcome(design, scores) / near.sum(1)
        for prefix, mean in (("cover", smooth), ("beyond", mean_outcome(design, grid))):
            wrong = (mean < low) | (mean > high)
            for place, points in (("middle", slice(1, 4)), ("ends", [0, 4])):
                share = wrong[points].mean()
                out[f"{prefix} Nadaraya-Watson, {place}"] = [share, np.inf]
    return out


ERRORS: dict[str, dict[str, Any]] = {
    **{name: {"method": name} for name in ("smooth", "binned", "sweep")},
    "edges": {"method": "binned", "bins": np.linspace(0, 1, 11)},
}


def one_calibration(key: str, truth: dict[str, float], seed: int) -> Found:
    """Return what intervals of calibration errors find, and comparisons of two."""
    design = CURVES[key]
    rows = design.draw(np.random.default_rng([seed, 8]))
    y, s, cluster = of_first_group(design, rows)
    other = another_score(design, y, np.random.default_rng([seed, 12]))
    out: Found = {}
    with quiet():
        for name, options in ERRORS.items():
            error = calibration_error(y, s, cluster=cluster, **options)
            again = calibration_error(y, other, cluster=cluster, **options)
            ends, value = error.confidence_interval(), float(error.estimate[0])
            known = truth["calibration, edges" if name == "edges" else "calibration"]
            held(out, f"calibration error, {name}", ends, known, error, value)
            if name != "sweep":
                wrong = rejects(compare(error, again).pvalue[0])
                out[f"size compare, calibration error, {name}"] = [wrong, np.inf]
            if name == "edges":
                low, high = (float(end[0]) for end in ends)
                wrong = misses(low, high, truth["calibration"])
                out[f"beyond calibration error, {name}"] = [wrong, np.inf]
    return out


def another_score(design: CurveDesign, y: Any, rng: np.random.Generator) -> Any:
    """Return scores that are drawn given the outcomes: as well calibrated as the first.

    Score and outcome have the same distribution as those of the first group.
    """
    scores = population(design)
    means = mean_outcome(design, scores)
    drawn = np.empty(y.size)
    for outcome, chance in ((1.0, means), (0.0, 1 - means)):
        there = y == outcome
        drawn[there] = rng.choice(scores, there.sum(), p=chance / chance.sum())
    return drawn


def one_shift(key: str, truth: dict[str, float], seed: int) -> Found:
    """Return what intervals find that resample and fit anew."""
    rows = CURVES[key].draw(np.random.default_rng([seed, 8]))
    out: Found = {}
    who: dict[str, Any] = {"sensitive_features": rows["g"]}
    if CURVES[key].clusters is not None:
        who["cluster"] = rows["c"]
    with quiet():
        rate = positive_rate_shift(rows["y"], rows["s"], threshold=0.5, **who)
        low, high = (float(end[1]) for end in rate.confidence_interval())
        wrong, value = misses(low, high, truth["positive rate"]), rate.estimate[1]
        out["cover positive rate shift"] = [wrong, np.inf, value, high - low]
        if key not in ("wavy", "deciles"):  # no ranks change
            rank = rank_shift(rows["y"], rows["s"], **who)
            low, high = (float(end[1]) for end in rank.confidence_interval())
            wrong, value = misses(low, high, 0.0), rank.estimate[1]
            out["cover rank shift"] = [wrong, np.inf, value, high - low]
    return out


def one_audit(key: str, truth: dict[str, float], seed: int) -> Found:
    """Return whether an audit of noise names a group: in its headline, by a metric."""
    with quiet():
        report = audit(**AUDITS[key].draw(seed))
    named = any("(" in answer for _, answer in report.answers)
    out: Found = {"size the headline": [float(named), np.inf]}
    for finding in report.findings:
        if finding.tested:
            wrong = bool(finding.groups_on("worse") or finding.groups_on("better"))
            out[f"size verdict, {finding.metric.name}"] = [float(wrong), np.inf]
    return out


@dataclass(frozen=True)
class Drawn:
    """A design of this file: its title, and what draws its columns."""

    title: str
    draw: Callable[[np.random.Generator], Rows]


@dataclass(frozen=True)
class Catalogue:
    """Items in the lists of many users, whose group is a property of the item.

    Labels are drawn at random, so that in all catalogues there might be no group has
    an advantage; the group of one catalogue may have better items than the others.

    Attributes
    ----------
    title : str
    n_items, n_users : int
    share : float
        The share of the items (or sellers) that are of the group.
    popularity : float
        Exponent of Zipf's law of how often items are in a list.
    taste : float
        Standard deviation of what a user has for the group.
    sellers : int
        So many sellers, who have a Zipf number of the items and one label each; 0:
        each item its own.
    """

    title: str
    n_items: int
    n_users: int
    share: float = 0.25
    popularity: float = 0.0
    taste: float = 0.0
    sellers: int = 0
    length: int = 12

    def draw(self, rng: np.random.Generator, shift: float = 0.0) -> Rows:
        """Draw the columns; scores of the group are shifted."""
        owner = np.arange(self.n_items)
        if self.sellers:
            chance = 1.0 / np.arange(1, self.sellers + 1)
            owner = rng.choice(self.sellers, self.n_items, p=chance / chance.sum())
        n_owners = owner.max() + 1
        label = rng.permutation(n_owners) < max(2, round(self.share * n_owners))
        merit = rng.normal(size=self.n_items)
        if self.sellers:
            merit += 0.5 * rng.normal(size=n_owners)[owner]
        weight = np.arange(1, self.n_items + 1) ** -self.popularity
        keys = np.log(rng.permutation(weight)) + rng.gumbel(
            size=(self.n_users, self.n_items)
        )
        item = np.argsort(-keys, axis=1)[:, : self.length].ravel()
        user = np.repeat(np.arange(self.n_users), self.length)
        group, noise = label[owner[item]], rng.normal(size=(2, item.size))
        quality = 0.6 * merit[item] + 0.6 * noise[0]
        bias = self.taste * rng.normal(size=self.n_users)[user]
        outcome = quality + noise[1] > 0.3
        score = quality + 0.5 * rng.normal(size=item.size) + (bias + shift) * group
        columns = {"y_true": outcome.astype(float), "y_score": score, "group": group}
        return columns | {"qid": user, "item": owner[item]}


CATALOGUES = {
    "catalogue80": Catalogue("80 items, 150 users", 80, 150),
    "catalogue400": Catalogue("400 items, 60 users", 400, 60, share=0.1),
    "popular": Catalogue("300 items, Zipf, 100 users", 300, 100, popularity=0.9),
    "tastes": Catalogue("150 items, users differ", 150, 80, share=0.4, taste=0.8),
    "sellers": Catalogue("600 items of 40 sellers", 600, 100, sellers=40),
    "catalogue3000": Catalogue("3,000 items, 60 users", 3000, 60),
}


def two_ways(rows: Rows, *, both: bool) -> dict[str, Any]:
    """Return what is measured of a catalogue by users and items, or by users alone."""
    who = {"sensitive_features": rows["group"], "qid": rows["qid"]}
    if both:
        who["cluster"] = np.column_stack([rows["qid"], rows["item"]])
    y, score = rows["y_true"], rows["y_score"]
    near = {"epsilon": 0.15, **who}
    return {
        "inter": pairwise_accuracy(y, score, comparison="inter", **who),
        "exposure": pairwise_exposure(None, score, **who),
        "matched": matched_pair_calibration(y, score, direction="both", **near),
        "matched, from below": matched_pair_calibration(y, score, **near),
    }


def one_catalogue(key: str, truth: dict[str, float], seed: int) -> Found:
    """Return what both ways find in one catalogue, and what users alone would say."""
    rows = CATALOGUES[key].draw(np.random.default_rng([seed, 13]))
    out: Found = {}
    with quiet():
        for name, result in two_ways(rows, both=True).items():
            out[f"size {name}"] = [tested(result), effective(result)]
        for name, result in two_ways(rows, both=False).items():
            out[f"beyond {name}"] = [tested(result), effective(result)]
    return out


def tested(result: Any) -> float:
    """Return whether the test of the last group rejects at 5%."""
    return rejects(result.test().pvalue[-1])


def effective(result: Any) -> float:
    """Return the effective clusters of the last group, 0 where tails are warned of."""
    warned = result.metric.heavy and result.uneven[-1]
    return 0.0 if warned else float(result.n_effective[-1])


def covered(out: Found, name: str, result: Any, truth: float) -> None:
    """Note whether the interval of a result holds the truth of its last group."""
    low, high = (float(end[-1]) for end in result.confidence_interval())
    out[f"cover {name}"] = [misses(low, high, truth), effective(result)]


WEIGHTS: dict[str, tuple[str, Callable[..., Any]]] = {
    "pareto": ("Pareto(1.3)", lambda rng, n: rng.pareto(1.3, n) + 1),
    "lognormal1": ("lognormal(1)", lambda rng, n: rng.lognormal(0, 1, n)),
    "inverse": ("inverse chances", lambda rng, n: 1 / rng.choice([0.02, 0.2, 0.9], n)),
    "thrice": ("every weight 3", lambda rng, n: np.full(n, 3.0)),
}
WEIGHED = {key: Drawn(title, make) for key, (title, make) in WEIGHTS.items()}
_WEIGHED_LISTS = Design("80 queries of 8", equal(80, 8), share=0.4)


def of_weights(key: str) -> dict[str, float]:
    """Return the true values of the rows: weights are drawn apart from them."""
    rows = weighed_rows(np.random.default_rng([3, 10**6]), 2_000_000)
    y, s = rows["y"], rows["s"]
    place = np.minimum(10 * s, 9).astype(int)
    mass = np.bincount(place, minlength=10)
    bias = np.bincount(place, s - rows["mean"], minlength=10) / mass
    chosen = s > 0.5
    return {
        "calibration error": float(np.sqrt(mass @ bias**2 / mass.sum())),
        "true positive rate": float(chosen[y == 1].mean()),
        "log loss": float(-np.mean(np.log(np.where(y == 1, s, 1 - s)))),
    }


def weighed_rows(rng: np.random.Generator, n_rows: int) -> Rows:
    """Draw scores that say too little where they are large, in two groups alike."""
    score, group = rng.beta(2, 2, n_rows), rng.random(n_rows) < 0.4
    mean = np.clip(score + 0.3 * (score - 0.5), 0.02, 0.98)
    outcome = (rng.random(n_rows) < mean).astype(float)
    return {"y": outcome, "s": score, "g": group.astype(int), "mean": mean}


def one_weighed(key: str, truth: dict[str, float], seed: int) -> Found:
    """Return what is found with weights of queries, of rows and of items."""
    draw, rng = WEIGHED[key].draw, np.random.default_rng([seed, 14])
    lists, rows = _WEIGHED_LISTS.draw(rng), weighed_rows(rng, 800)
    weight = draw(rng, 80)[lists["qid"]]
    who = {"sensitive_features": lists["group"], "qid": lists["qid"]}
    y, score = lists["y_true"], lists["y_score"]
    out: Found = {}
    with quiet():
        results = {
            "inter": pairwise_accuracy(
                y, score, comparison="inter", sample_weight=weight, **who
            ),
            "exposure": pairwise_exposure(None, score, sample_weight=weight, **who),
            "matched": matched_pair_calibration(
                y, score, epsilon=0.3, direction="both", sample_weight=weight, **who
            ),
        }
        of_items = {"item_weight": draw(rng, y.size), **who}
        results["matched, item weights"] = matched_pair_calibration(
            y, score, epsilon=0.3, direction="both", **of_items
        )
        if seed % EVERY == 0:
            report = audit(y, score, **of_items)
            named = any("(" in answer for _, answer in report.answers)
            out["size audit with item weights"] = [float(named), np.inf]
        columns = {"sensitive_features": rows["g"], "sample_weight": draw(rng, 800)}
        parity = predictive_parity_test(
            rows["y"], rows["s"], n_resamples=999, **columns
        )
        out["size parity test"] = [rejects(parity.pvalue), np.inf]
        results |= of_scores(rows["y"], rows["s"], 0.5, columns, tuple(truth))
        results["calibration error"] = calibration_error(
            rows["y"], rows["s"], **ERRORS["edges"], **columns
        )
        for name, result in results.items():
            if name != "calibration error":
                out[f"size {name}"] = [tested(result), effective(result)]
            if name in truth:
                covered(out, name, result, truth[name])
    return out


#: Metrics of decisions and of probabilities.
RATES: dict[str, Any] = {
    "selection rate": selection_rate,
    "true positive rate": true_positive_rate,
    "precision": precision,
    "balanced accuracy": balanced_accuracy,
    "F1": f1,
}
LOSSES: dict[str, Any] = {"log loss": log_loss}


def of_scores(
    y: Any, s: Any, threshold: float, columns: dict[str, Any], names: tuple[str, ...]
) -> dict[str, Any]:
    """Return rates at a threshold, and losses, by name."""
    results = {n: f(y, s, **columns) for n, f in LOSSES.items() if n in names}
    return results | {
        name: rate(y, s, threshold=threshold, **columns)
        for name, rate in RATES.items()
        if name in names
    }


@dataclass(frozen=True)
class Scored:
    """Risk scores of two groups that are alike, and payments with a long tail.

    Attributes
    ----------
    title : str
    n_rows : int
    share : float
        The share of the rows that are of the group.
    middle : float
        Log odds of the outcome in the middle.
    slope : float
        How much the scores tell.
    sizes : callable or None
        Rows of each cluster, whose rows have a common effect.
    """

    title: str
    n_rows: int
    share: float
    middle: float = -0.8
    slope: float = 1.5
    sizes: Callable[[np.random.Generator], Any] | None = None

    def draw(self, rng: np.random.Generator, n_rows: int | None = None) -> Rows:
        """Draw the columns."""
        if self.sizes is None:
            cluster = np.arange(n_rows or self.n_rows)
            effect = np.zeros(cluster.size)
        else:
            lengths = np.asarray(self.sizes(rng), dtype=int)
            if n_rows is not None:
                lengths = np.ones(n_rows, dtype=int)
            cluster = np.repeat(np.arange(lengths.size), lengths)
            effect = 0.7 * rng.normal(size=lengths.size)[cluster]
        odds = self.middle + self.slope * rng.normal(size=cluster.size)
        outcome = rng.random(cluster.size) < special.expit(odds + effect)
        group = rng.random(cluster.size) < self.share
        columns = {"y": outcome.astype(float), "s": special.expit(odds), "g": group}
        paid = rng.lognormal(0, 1, cluster.size)
        return columns | {"c": cluster, "paid": paid}

    @property
    def threshold(self) -> float:
        """The score from which a row is accepted."""
        return float(special.expit(self.middle + 0.4 * self.slope))


SCORED = {
    "rows60": Scored("60 of 1,500 rows", 1500, 0.04),
    "rare100": Scored("100 of 1,600, prevalence 2%", 1600, 0.0625, -4.5, 1.0),
    "certain": Scored("150 of 600, 8 positives", 600, 0.25, -7.0, 4.0),
    "common": Scored("200 of 800, prevalence 97%", 800, 0.25, 4.5, 1.5),
    "zipf30": Scored("30 Zipf users", 0, 0.4, sizes=lambda rng: 120 / np.arange(1, 31)),
    "cluster60": Scored(
        "60 lognormal clusters",
        0,
        0.3,
        sizes=lambda rng: np.clip(rng.lognormal(2, 1, 60), 2, 150),
    ),
}


def of_scored(key: str) -> dict[str, float]:
    """Return the true values of rates, from a very large sample."""
    rows = SCORED[key].draw(np.random.default_rng([4, 10**6]), 1_000_000)
    names = (*RATES, *LOSSES)
    threshold = SCORED[key].threshold
    found = of_scores(rows["y"], rows["s"], threshold, {}, names)
    values = {name: float(result.estimate[0]) for name, result in found.items()}
    return values | {"mean payment": float(np.exp(0.5))}


def one_scored(key: str, truth: dict[str, float], seed: int) -> Found:
    """Return what tests and intervals of rates, losses and means find."""
    design = SCORED[key]
    rows = design.draw(np.random.default_rng([seed, 15]))
    columns = {"sensitive_features": rows["g"]}
    if design.sizes is not None:
        columns["cluster"] = rows["c"]
    if not 0 < rows["g"].sum() < rows["g"].size:
        return {}
    out: Found = {}
    with quiet():
        names = (*RATES, *LOSSES)
        results = of_scores(rows["y"], rows["s"], design.threshold, columns, names)
        results["mean payment"] = group_mean(rows["paid"], **columns)
        for name, result in results.items():
            out[f"size {name}"] = [tested(result), effective(result.as_gap())]
            covered(out, name, result, truth[name])
    return out


@dataclass(frozen=True)
class Chances:
    """Decisions on groups of unequal sizes, of which the first have other chances."""

    title: str
    n_groups: int
    n_rows: int
    apart: tuple[float, ...] = ()

    @property
    def chance(self) -> Any:
        """The true selection rate of each group."""
        chance = np.full(self.n_groups, 0.3)
        chance[: len(self.apart)] = self.apart
        return chance

    def draw(self, rng: np.random.Generator) -> Rows:
        """Draw outcomes, decisions and groups; rates by outcome differ as chances."""
        size = 1.0 / np.arange(self.n_groups, 0, -1) ** 0.7
        group = rng.choice(self.n_groups, self.n_rows, p=size / size.sum())
        good = rng.random(self.n_rows) < 0.5
        chance = (self.chance - 0.3)[group] + np.where(good, 0.5, 0.1)
        decision = rng.random(self.n_rows) < chance
        return {"y": good.astype(float), "d": decision.astype(float), "g": group}


DISPARITIES = {
    "alike2": Chances("2 groups alike", 2, 300),
    "alike8": Chances("8 groups alike", 8, 1200),
    "apart2": Chances("one of 2 apart", 2, 300, (0.45,)),
    "apart5": Chances("one of 5 apart", 5, 1000, (0.45,)),
    "apart8": Chances("three of 8 apart", 8, 1200, (0.4, 0.4, 0.4)),
}


def of_disparities(key: str) -> dict[str, float]:
    """Return the true disparities."""
    chance = DISPARITIES[key].chance
    return {"gap": float(np.ptp(chance)), "ratio": float(chance.min() / chance.max())}


def one_disparity(key: str, truth: dict[str, float], seed: int) -> Found:
    """Return whether bounds, intervals and corrected tests of many groups are wrong."""
    rows = DISPARITIES[key].draw(np.random.default_rng([seed, 16]))
    who, y, decision = {"sensitive_features": rows["g"]}, rows["y"], rows["d"]
    gap, out = truth["gap"], {}
    with quiet():
        rate = selection_rate(None, decision, **who)
        few = float(rate.n_effective.min())
        odds = equalized_odds(y, decision, **who)
        bounds = {
            "bound, selection rate": rate.disparity_bound() < gap,
            "bound, ratio": rate.disparity_bound(kind="ratio") > truth["ratio"],
            "bound, equalized odds": odds.disparity_bound() < gap,
        }
        for name, wrong in bounds.items():
            out[f"cover {name}"] = [float(wrong), few]
        for name, made in (
            ("parity difference", demographic_parity_difference(None, decision, **who)),
            (
                "equalized odds difference",
                equalized_odds_difference(y, decision, **who),
            ),
        ):
            low, high = made.confidence_interval()
            out[f"cover {name}"] = [misses(low, high, gap), few]
        low, high = rate.simultaneous_interval(n_resamples=4000)
        chance = DISPARITIES[key].chance
        wrong = ((low > chance) | (high < chance)).any()
        out["cover all groups at once"] = [float(wrong), few]
        if not gap:
            some = (rate.test().corrected() < ALPHA).any()
            out["size some group, Holm"] = [float(some), few]
            some = (rate.contrasts()["pvalue_corrected"] < ALPHA).any()
            out["size some pair, Holm"] = [float(some), few]
    return out


@dataclass(frozen=True)
class Move:
    """Scores before and after a mitigation, shifted for a group."""

    title: str
    before: float
    after: float
    own: bool = False  # both scores have noise of their own


MOVES = {
    "alike": Move("alike, noise of its own", 0.0, 0.0, own=True),
    "away05": Move("0 → 0.06", 0.0, 0.06),
    "away2": Move("0 → 0.2", 0.0, 0.2),
    "across": Move("−0.15 → 0.25", -0.15, 0.25),
    "mirrored": Move("−0.2 → 0.2", -0.2, 0.2),
}


def one_move(key: str, truth: dict[str, float], seed: int) -> Found:
    """Return whether a report says falsely that scores moved or are closer to fair."""
    rows = moved(MOVES[key], np.random.default_rng([seed, 17]))
    wrong = {"closer to fair": "closer to fair" in rows["verdict"]}
    if key in ("alike", "mirrored"):
        wrong["further from fair"] = "further from fair" in rows["verdict"]
    if key == "alike":
        wrong["moved at all"] = (rows["verdict"] != "no change shown").any()
    return {f"size {name}": [float(value), np.inf] for name, value in wrong.items()}


def moved(move: Move, rng: np.random.Generator) -> Rows:
    """Return what a report says of the group, in unequal lists."""
    sizes = np.clip(rng.lognormal(2.2, 0.5, 120), 4, 40).astype(int)
    query = np.repeat(np.arange(120), sizes)
    group, quality = rng.random(query.size) < 0.4, rng.normal(size=query.size)
    noise = rng.normal(size=(3, query.size))
    before = quality + noise[1] + move.before * group
    after = quality + noise[2 if move.own else 1] + move.after * group
    who = {"sensitive_features": group, "qid": query, "task": "ranking"}
    names = ["inter_group_accuracy", "pairwise_exposure"]
    with quiet():
        y_true = quality + noise[0] > 0
        frame = mitigation_report(before, after, y_true, metrics=names, **who)
        frame = frame.to_frame().query("kind == 'disparity' and group")
    columns = ("metric", "before", "after", "verdict")
    return {name: frame[name].to_numpy() for name in columns}


def _many_users(rng: np.random.Generator, shift: float = 0.0) -> Any:
    """Return the exposure of a day of 30 users with a taste each, lognormal lists."""
    sizes = np.clip(rng.lognormal(2.2, 0.8, 30), 4, 80).astype(int)
    query = np.repeat(np.arange(30), sizes)
    group = rng.random(query.size) < 0.4
    bias = 0.4 * rng.normal(size=30)[query] + shift
    score = rng.normal(size=query.size) + bias * group
    return pairwise_exposure(None, score, sensitive_features=group, qid=query)


def _few_decisions(rng: np.random.Generator, shift: float = 0.0) -> Any:
    """Return the selection rates of a day of 80 decisions, 6% of them favourable."""
    group = np.arange(80) % 3 == 0
    chosen = rng.random(80) < 0.06 * np.exp(shift * group)
    return selection_rate(None, chosen.astype(float), sensitive_features=group)


def _losses(rng: np.random.Generator, shift: float = 0.0) -> Any:
    """Return the mean squared errors of a day, of 60 users with four rows each."""
    user = np.repeat(np.arange(60), 4)
    group, error = user % 2 == 0, rng.lognormal(0, 0.6, 60)[user]
    y = error * rng.normal(size=240)
    return mean_squared_error(y, 0 * y, sensitive_features=group, cluster=user)


MONITORS = {
    "users30": Drawn("30 new users per day", _many_users),
    "decisions80": Drawn("80 decisions, 6% yes", _few_decisions),
    "losses60": Drawn("squared errors of 60 users", _losses),
}


def one_monitor(key: str, truth: dict[str, float], seed: int) -> Found:
    """Return whether a monitor of 90 days ever raises a false alarm."""
    rng = np.random.default_rng([seed, 18])
    monitor = Monitor(margin=0.0, baseline=20)
    with quiet():
        for day in range(90):
            when = dt.date(2026, 1, 1) + dt.timedelta(days=day)
            monitor.update(MONITORS[key].draw(rng), when)
        kinds = {alarm.kind for alarm in monitor.alarms}
    return {
        "size any alarm in 90 days": [float(bool(kinds)), np.inf],
        "size a gap": [float("gap" in kinds), np.inf],
        "size a change": [float("change" in kinds), np.inf],
    }


def _first(totals: Any) -> Any:
    """Return the first column over the second."""
    return totals[..., 0] / totals[..., 1]


PROFIT = make_metric(
    lambda y_true, y_score, amount: (
        (y_score >= 0.5) * (y_true * 0.1 - (1 - y_true)) * amount,
        1,
    ),
    _first,
    name="profit",
    needs=("y_true", "y_score", "amount"),
)
REPAID = make_metric(
    lambda y_true, amount: (y_true * amount, amount),
    _first,
    name="repaid",
    needs=("y_true", "amount"),
)
JACCARD = make_metric(
    lambda y_true, y_score: (
        y_true * (y_score >= 0.5),
        np.maximum(y_true, y_score >= 0.5),
    ),
    _first,
    name="jaccard",
    share=True,
)
GAIN = make_metric(
    lambda y_true, y_score, member: (
        np.sum(member * y_true / np.log2(np.arange(2, y_true.size + 2))),
        np.sum(member * y_true),
    ),
    _first,
    name="gain",
    needs=("y_true", "y_score", "member"),
    per="query",
)


@dataclass(frozen=True)
class Loans:
    """Loans with amounts of a long tail, in lists of eight; groups are alike."""

    title: str
    n_rows: int
    share: float
    tail: float  # of the logarithm of amounts

    def draw(self, rng: np.random.Generator, times: int = 1) -> Rows:
        """Draw the columns."""
        n = self.n_rows * times
        score, group = rng.beta(2, 2, n), rng.random(n) < self.share
        paid = (rng.random(n) < score).astype(float)
        amount = rng.lognormal(0, self.tail, n)
        return {"y": paid, "s": score, "g": group, "amount": amount}


OWN = {
    "loans1200": Loans("300 of 1,200 rows", 1200, 0.25, 1.0),
    "loans400": Loans("100 of 400, long tails", 400, 0.25, 1.3),
    "loans30": Loans("30 of 600 rows", 600, 0.05, 0.8),
}


def own_results(rows: Rows) -> dict[str, Any]:
    """Return the metrics of one's own by name."""
    y, s, who = rows["y"], rows["s"], {"sensitive_features": rows["g"]}
    lists = np.arange(y.size) // 8
    return {
        "a mean, tails": PROFIT(y, s, amount=rows["amount"], **who),
        "a ratio to amounts": REPAID(y, amount=rows["amount"], **who),
        "a share": JACCARD(y, s, **who),
        "of queries": GAIN(y, s, qid=lists, **who),
    }


def of_own(key: str) -> dict[str, float]:
    """Return the true values: of lists from a large sample, others by numbers."""
    rows = replace(OWN[key], n_rows=400).draw(np.random.default_rng([5, 10**6]), 1000)
    with quiet():
        results = own_results(rows)
    truth = {name: float(result.estimate[-1]) for name, result in results.items()}
    s = np.linspace(0.5, 1, 10_001)
    gain = 6 * s * (1 - s) * (0.1 * s - (1 - s)) * np.exp(OWN[key].tail ** 2 / 2)
    truth["a mean, tails"] = float(np.trapezoid(gain, s))
    return truth | {"a ratio to amounts": 0.5}


def one_own(key: str, truth: dict[str, float], seed: int) -> Found:
    """Return what tests and intervals of one's own metrics find."""
    rows, out = OWN[key].draw(np.random.default_rng([seed, 19])), {}
    if not 0 < rows["g"].sum() < rows["g"].size:
        return {}
    with quiet():
        for name, result in own_results(rows).items():
            if result.has_pvalue:
                out[f"size {name}"] = [tested(result), effective(result.as_gap())]
            covered(out, name, result, truth[name])
    return out


# Power: what is there is found by the package, and by the best test of a design.

#: By measure: whether the test rejects without and with a gap; then by statistic its
#: values without and with it, whose critical value is that of the data sets without.
Contest = dict[str, list[float]]


@dataclass(frozen=True)
class Gap:
    """A design with and without a gap.

    Attributes
    ----------
    title : str
    draw : callable
        Rows, of a generator and the size of the gap.
    size : float
    measure : callable
        By measure whether the test rejects, and statistics of tests that know more.
    """

    title: str
    draw: Callable[[np.random.Generator, float], Rows]
    size: float
    measure: Callable[[Rows], dict[str, list[float]]]


def shifted(design: Design) -> Callable[[np.random.Generator, float], Rows]:
    """Return what draws a design with shifted scores of the group."""

    def draw(rng: np.random.Generator, gap: float) -> Rows:
        rows = design.draw(rng)
        return rows | {"y_score": rows["y_score"] - gap * rows["group"]}

    return draw


def rankings_found(rows: Rows) -> dict[str, list[float]]:
    """Return what is found in lists, whether pooled or with each cluster alike.

    The best test knows the error, and chooses the better one of the two estimates.
    """
    y, score = rows["y_true"], rows["y_score"]
    who = {"sensitive_features": rows["group"], "qid": rows["qid"]}
    near = {"epsilon": 0.3, "direction": "both", **who}
    results = {
        "inter": (
            pairwise_accuracy(y, score, comparison="inter", **who),
            pairwise_accuracy(y, score, comparison="inter", **each_alike(who)),
        ),
        "exposure": (
            pairwise_exposure(None, score, **who),
            pairwise_exposure(None, score, average="queries", **who),
        ),
        "matched": (
            matched_pair_calibration(y, score, **near),
            matched_pair_calibration(y, score, average="queries", **near),
        ),
    }
    out = {}
    for name, (pooled, alike) in results.items():
        sizes = [abs(gap_of(result)) for result in (pooled, alike)]
        out[name] = [tested(pooled), *sizes]
        out[f"{name}, each alike"] = [tested(alike), *sizes]
    return out


def gap_of(result: Any) -> float:
    """Return the distance of the last group from what is fair."""
    gap = result.as_gap()
    return float(gap.estimate[-1] - (gap.fair_value or 0.0))


def catalogue_found(rows: Rows) -> dict[str, list[float]]:
    """Return what both ways find in a catalogue."""
    results = two_ways(rows, both=True)
    return {
        name: [tested(results[name]), abs(gap_of(results[name]))]
        for name in ("inter", "exposure", "matched")
    }


def curve_rows(
    n_rows: int, share: float, gap: Callable[[Any], Any], clusters: int = 0
) -> Callable[[np.random.Generator, float], Rows]:
    """Return what draws outcomes whose log odds differ by a gap of the score."""

    def draw(rng: np.random.Generator, size: float) -> Rows:
        group = rng.random(n_rows) < share
        score = rng.beta(np.where(group, 2, 3), 3)
        cluster = np.arange(n_rows)
        odds = special.logit(np.clip(score, 0.01, 0.99))
        effect = np.zeros(n_rows)
        if clusters:
            chance = 1.0 / np.arange(1, clusters + 1) ** 0.6
            cluster = rng.choice(clusters, n_rows, p=chance / chance.sum())
            effect = 0.4 * rng.normal(size=clusters)[cluster]
        chance = special.expit(odds + effect + size * gap(score) * group)
        outcome = (rng.random(n_rows) < chance).astype(float)
        columns = {"y": outcome, "s": score, "g": group.astype(int), "c": cluster}
        return columns | {"odds": odds, "gap": gap(score) * group}

    return draw


def likelihood_ratio(rows: Rows) -> float:
    """Return the likelihood ratio of a gap of the known form, at the known curve."""
    y, odds, x = rows["y"], rows["odds"], rows["gap"]
    b = 0.0
    for _ in range(15):
        p = special.expit(odds + b * x)
        b += np.sum((y - p) * x) / np.sum(p * (1 - p) * x**2)
    new = odds + b * x
    after = y * new - np.logaddexp(0, new)
    return float(2 * np.sum(after - y * odds + np.logaddexp(0, odds)))


def curves_found(rows: Rows) -> dict[str, list[float]]:
    """Return what tests of curves find."""
    y, s, who = rows["y"], rows["s"], {"sensitive_features": rows["g"]}
    if np.unique(rows["c"]).size < y.size:
        who["cluster"] = rows["c"]
    best = likelihood_ratio(rows)
    parity = predictive_parity_test(y, s, n_resamples=999, **who)
    out = {"parity test": [rejects(parity.pvalue), best]}
    if np.ptp(rows["gap"][rows["g"] == 1]) == 0:
        marginal = marginal_outcome_test(y, s, threshold=0.5, n_resamples=999, **who)
        out["marginal outcomes"] = [rejects(marginal.pvalue), best]
    return out


def scored_rows(design: Scored) -> Callable[[np.random.Generator, float], Rows]:
    """Return what draws scores that are lower for the group."""

    def draw(rng: np.random.Generator, gap: float) -> Rows:
        rows = design.draw(rng)
        odds = special.logit(rows["s"]) - gap * rows["g"]
        return rows | {"s": special.expit(odds)}

    return draw


def rates_found(design: Scored) -> Callable[[Rows], dict[str, list[float]]]:
    """Return what finds a gap of rates; the best test knows the error."""

    def found(rows: Rows) -> dict[str, list[float]]:
        columns = {"sensitive_features": rows["g"]}
        if design.sizes is not None:
            columns["cluster"] = rows["c"]
        names = ("selection rate", "true positive rate")
        threshold = design.threshold
        results = of_scores(rows["y"], rows["s"], threshold, columns, names)
        return {n: [tested(r), abs(gap_of(r))] for n, r in results.items()}

    return found


def bounded_rows(n_groups: int) -> Callable[[np.random.Generator, float], Rows]:
    """Return what draws groups whose disparity is 0.2 less a gap."""

    def draw(rng: np.random.Generator, gap: float) -> Rows:
        return Chances("", n_groups, 200 * n_groups, (0.5 - gap,)).draw(rng)

    return draw


def bounds_found(rows: Rows) -> dict[str, list[float]]:
    """Return whether a disparity is shown to be below 0.2."""
    rate = selection_rate(None, rows["d"], sensitive_features=rows["g"])
    shown = float(rate.disparity_bound() < 0.2)
    return {"disparity below 0.2": [shown, -rate.disparity()]}


def move_rows(rng: np.random.Generator, gap: float) -> Rows:
    """Draw a report of scores that go from -0.3 to 0.3, or less far."""
    return moved(Move("", -0.3, 0.3 - gap), rng)


def moves_found(rows: Rows) -> dict[str, list[float]]:
    """Return whether a metric is shown to be closer to fair."""
    nearer = np.abs(rows["before"].astype(float)) - np.abs(rows["after"].astype(float))
    said = rows["verdict"] == "closer to fair"
    names = [f"closer to fair, {name}" for name in ("inter", "exposure")]
    return {n: [float(s), d] for n, s, d in zip(names, said, nearer, strict=True)}


_LEVEL = {"level": np.ones_like, "slope": lambda s: 4 * (s - 0.4)}
_UNEQUAL = {
    "12 equal queries": lambda rng: [12] * 12,
    "25 Zipf queries": lambda rng: 300 / np.arange(1, 26) + 3,
    "40 lognormal queries": lambda rng: np.clip(rng.lognormal(2.2, 1.4, 40), 3, 500),
    "one of 25 with 30%": lambda rng: [10] * 24 + [100],
    "150 power-law queries": power_law(150, 120),
}
GAPS = {
    **{
        f"power{i}": Gap(
            name,
            shifted(Design(name, sizes)),
            0.3 if name.startswith("150") else 0.7,
            rankings_found,
        )
        for i, (name, sizes) in enumerate(_UNEQUAL.items())
    },
    "power-rare": Gap(
        "a group in 10 of 90 queries",
        shifted(Design("", equal(90, 12), present=0.11)),
        0.9,
        rankings_found,
    ),
    "power-catalogue": Gap(
        "80 items, 150 users", CATALOGUES["catalogue80"].draw, 0.6, catalogue_found
    ),
    "power-popular": Gap(
        "300 items, Zipf, 100 users", CATALOGUES["popular"].draw, 0.4, catalogue_found
    ),
    **{
        f"power-{form}{n_rows}": Gap(
            f"{form}, {100 * share:.0f}% of {n_rows:,}",
            curve_rows(n_rows, share, _LEVEL[form]),
            size,
            curves_found,
        )
        for form, n_rows, share, size in (
            ("level", 2000, 0.5, 0.35),
            ("level", 1500, 0.1, 0.6),
            ("slope", 2000, 0.5, 0.4),
        )
    },
    "power-clusters": Gap(
        "level, 30 unequal clusters",
        curve_rows(1500, 0.4, _LEVEL["level"], clusters=30),
        0.45,
        curves_found,
    ),
    **{
        f"power-{key}": Gap(
            SCORED[key].title, scored_rows(SCORED[key]), size, rates_found(SCORED[key])
        )
        for key, size in (("rows60", 0.8), ("zipf30", 0.6), ("cluster60", 0.6))
    },
    **{
        f"power-bound{n}": Gap(f"{n} groups", bounded_rows(n), size, bounds_found)
        for n, size in ((2, 0.1), (6, 0.19))
    },
    "power-move": Gap("−0.3 → 0.1 or 0.3", move_rows, 0.2, moves_found),
}


def one_contest(key: str, truth: dict[str, float], seed: int) -> Found:
    """Return what is found without and with the gap."""
    gap, out = GAPS[key], {}
    with quiet():
        without, given = (
            gap.measure(gap.draw(np.random.default_rng([seed, 20, i]), size))
            for i, size in enumerate((0.0, gap.size))
        )
    for name, numbers in without.items():
        if name in given:
            pairs = zip(numbers, given[name], strict=True)
            out[f"power {name}"] = [value for pair in pairs for value in pair]
    return out


def each(function: Callable[..., Found]) -> Callable[..., list[Found]]:
    """Return what measures one data set after the other."""

    def measured(key: str, truth: dict[str, float], seeds: range) -> list[Found]:
        return [function(key, truth, seed) for seed in seeds]

    return measured


def nothing(key: str) -> dict[str, float]:
    """Return no true values: the designs know them."""
    return {}


#: What is measured on which designs: true values, and one data set.
STUDIES: dict[str, tuple[Any, Any, tuple[str, ...]]] = {
    "ranking": (lambda key: large(DESIGNS[key]), rankings, tuple(DESIGNS)),
    "search": (gaps, each(one_search), SEARCHED),
    "curve": (truths, each(one_curve), tuple(CURVES)),
    "calibration": (truths, each(one_calibration), tuple(CURVES)),
    "shift": (truths, each(one_shift), tuple(CURVES)),
    "audit": (nothing, each(one_audit), tuple(AUDITS)),
    "two ways": (nothing, each(one_catalogue), tuple(CATALOGUES)),
    "weights": (of_weights, each(one_weighed), tuple(WEIGHED)),
    "rates": (of_scored, each(one_scored), tuple(SCORED)),
    "disparity": (of_disparities, each(one_disparity), tuple(DISPARITIES)),
    "verdict": (nothing, each(one_move), tuple(MOVES)),
    "monitor": (nothing, each(one_monitor), tuple(MONITORS)),
    "own": (of_own, each(one_own), tuple(OWN)),
    "power": (nothing, each(one_contest), tuple(GAPS)),
}
#: What takes long runs on some of the data sets.
STEPS = {"search": EVERY // 2, "audit": EVERY // 2, "shift": EVERY, "monitor": 5}


def draw_round(study: str, key: str, number: int, folder: Path) -> str:
    """Measure the data sets of a round, unless that is done, and keep what is found."""
    file = folder / f"{study}-{key}-{number:04}.json"
    if not file.exists():
        truth = _truth(study, key, folder)
        seeds = range(number * ROUND, (number + 1) * ROUND)[:: STEPS.get(study, 1)]
        found = STUDIES[study][1](key, truth, seeds)
        text = json.dumps(found, default=float)
        part = file.with_suffix(".part")
        part.write_text(text, encoding="utf-8")
        part.rename(file)
    return file.name


def _truth(study: str, key: str, folder: Path) -> dict[str, float]:
    file = folder / f"{study}-{key}-truth.json"
    if not file.exists():
        text = json.dumps(STUDIES[study][0](key))
        part = file.with_suffix(f".{os.getpid()}")
        part.write_text(text, encoding="utf-8")
        part.rename(file)
    truth: dict[str, float] = json.loads(file.read_text(encoding="utf-8"))
    return truth


def collected(study: str, key: str, folder: Path) -> dict[str, list[list[float]]]:
    """Return what is found in the data sets of a design, by measure."""
    values: dict[str, list[list[float]]] = {}
    for file in sorted(folder.glob(f"{study}-{key}-[0-9]*.json")):
        for found in json.loads(file.read_text(encoding="utf-8")):
            for name, value in found.items():
                values.setdefault(name, []).append(value)
    return values


@dataclass(frozen=True)
class Cell:
    """How often something was wrong in the data sets of a design.

    Attributes
    ----------
    wrong, error : float
        Share of the data sets, and its Monte Carlo standard error.
    undefined : float
        Share of the data sets without an answer.
    effective : float
        Median of the effective clusters.
    width : float
        Mean width of the intervals over that of the shortest that would hold 95% of
        the estimates: what is not known of the error costs as much.
    count : int
        Number of data sets.
    """

    wrong: float
    error: float
    undefined: float
    effective: float
    width: float
    count: int

    @classmethod
    def of(cls, rows: list[list[float]]) -> Cell:
        """Summarise the data sets."""
        wrong, effective = np.array([row[:2] for row in rows]).T
        known = ~np.isnan(wrong)
        share = wrong[known].mean() if known.any() else np.nan
        spread = wrong[known].std() if known.any() else np.nan
        width = np.nan
        if known.sum() > 1 and len(rows[0]) > 2:
            value, wide = np.array([row[2:] for row in rows])[known].T
            low, high = np.quantile(value, [0.025, 0.975])
            if high > low:
                width = float(np.median(wide) / (high - low))
        error = spread / np.sqrt(max(known.sum(), 1))
        middle = float(np.median(effective))
        return cls(share, error, 1 - known.mean(), middle, width, len(rows))

    def text(self, limit: float) -> str:
        """Return per cent, in colour where it is above the limit."""
        if np.isnan(self.wrong):
            return "cannot tell"
        text = f"{100 * self.wrong:.1f}"
        if np.isfinite(self.width):
            text += f" (×{self.width:.2f})"
        if self.undefined > 0.02:
            text += f", NaN {100 * self.undefined:.0f}%"
        if self.effective < ENOUGH:
            return f"*{text}*"
        if self.wrong - 2 * self.error > limit:
            return f"🟥 **{text}**"
        return f"🟨 {text}" if self.wrong > limit else text


#: The titles of all designs.
TITLES = {
    key: design.title
    for designs in (
        *(DESIGNS, CURVES, AUDITS, CATALOGUES, WEIGHED, SCORED, DISPARITIES),
        *(MOVES, MONITORS, OWN, GAPS),
    )
    for key, design in designs.items()
}
TITLES |= {key: title.split(", ")[1] for key, title in TITLES.items() if "list" in key}
LIMITS = {"size ": 0.065, "cover ": 0.07, "beyond ": np.inf}
COUNT, FEW = "*data sets*", " †"
#: Rows and columns that are not shown: they say what others say. Dips and differences
#: of two groups are wrong where inter-group accuracy is, bounds have tables of their
#: own, and groups of 10% of a list are between those of 5% and 20%.
LEFT_OUT = ("dips", "inter, a - b", "inter, bound of disparity", "group of 10%")
#: Rows by column, and columns by table, of text: what a page says.
Column = dict[str, str]
Tables = dict[tuple[str, str], dict[str, Column]]


def standing(text: str) -> Tables:
    """Return the tables of a page by the titles of their section and their own."""
    tables: Tables = {}
    section = title = ""
    for line in text.splitlines():
        if line.startswith("## "):
            section, title = line[3:], ""
        elif line.startswith("### "):
            title = line[4:]
        elif line.startswith("| ") and title:
            name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
            table = tables.setdefault((section, title), {})
            if not name:
                lists = f"{section.lower()}, "
                table.update({cell.removeprefix(lists): {} for cell in cells})
                continue
            for column, cell in zip(table.values(), cells, strict=True):
                column[name.removesuffix(FEW)] = cell
    return tables


def column_of(prefix: str, values: dict[str, list[list[float]]]) -> Column:
    """Return the column of a design: how many data sets, and a cell of each measure."""
    cells = {
        name.removeprefix(prefix): Cell.of(rows)
        for name, rows in values.items()
        if name.startswith(prefix)
    }
    if not cells:
        return {}
    count = max(cell.count for cell in cells.values())
    return {COUNT: f"{count}"} | {
        name: cell.text(LIMITS[prefix]) for name, cell in cells.items()
    }


def contests(folder: Path) -> Tables:
    """Return the tables of power: of rankings a column per measure, of others one."""
    tables: Tables = {}
    for key, gap in GAPS.items():
        for measure, rows in collected("power", key, folder).items():
            name = measure.removeprefix("power ")
            without, given, *more = np.array(rows).T
            critical = [np.nanquantile(x, 1 - ALPHA) for x in more[::2]]
            best = max(
                np.nanmean(x > c) for x, c in zip(more[1::2], critical, strict=True)
            )
            size = rejected_share(without)
            error = np.sqrt(size * (1 - size) / len(rows))
            mark = "🟥 " if size - 2 * error > LIMITS["size "] else ""
            found = rejected_share(given)
            cell = f"{mark}{100 * found:.0f}/{100 * best:.0f} ({100 * size:.0f})"
            ranking = gap.measure in (rankings_found, catalogue_found)
            title, row = RANKINGS_FOUND, gap.title
            if not ranking:
                title, row, name = OTHERS_FOUND, f"{gap.title}: {name}", "found/best"
            tables.setdefault((POWER, title), {}).setdefault(name, {})[row] = cell
    return tables


def rejected_share(wrong: Any) -> float:
    """Return the share of data sets that are rejected; without an answer, none is."""
    return float(np.nan_to_num(wrong).mean())


def page(folder: Path) -> str:
    """Return the page of the documentation: what was drawn, and what stood before."""
    tables = standing(PAGE.read_text(encoding="utf-8"))
    for section, study, chosen, beyond in PARTS:
        for key in filter(chosen, STUDIES[study][2]):
            values = collected(study, key, folder)
            for prefix, title in zip(LIMITS, (*TABLES, beyond), strict=True):
                column = column_of(prefix, values)
                if column:
                    table = tables.setdefault((section, title), {})
                    before = table.get(TITLES[key], {})
                    stays = {n: before[n] for n in before if n in SLOW}
                    table[TITLES[key]] = {**column, **stays, **column}
    tables |= contests(folder)
    for table in tables.values():
        for column in table.values():
            for name in LEFT_OUT:
                column.pop(name, None)
        for name in LEFT_OUT:
            table.pop(name, None)
    order = {section: i for i, (section, *_) in enumerate(PARTS)}
    sections = sorted({s for s, _ in tables}, key=lambda s: order.get(s, len(order)))
    lines = []
    for section in sections:
        lines += [
            f"## {section}",
            "",
            *([ABOUT[section], ""] if section in ABOUT else []),
        ]
        for (of, title), table in tables.items():
            if of == section:
                lines += table_of(title, table)
    limited = [
        cell
        for (_, title), table in tables.items()
        if title in TABLES
        for column in table.values()
        for name, cell in column.items()
        if name != COUNT and number_of(cell) is not None
    ]
    powers = [
        cell
        for (section, _), table in tables.items()
        if section == POWER
        for column in table.values()
        for cell in column.values()
    ]
    text = PREFACE.format(
        trust="\n".join(trust(tables)),
        holds=HOLDS,
        every=EVERY,
        half=EVERY // 2,
        cells=len(limited),
        red=sum("🟥" in cell for cell in limited + powers) or "none",
        yellow=sum("🟨" in cell for cell in limited),
    )
    today = dt.datetime.now(tz=dt.UTC).date()
    foot = (
        f"Measured from 2026-11-22 to {today} with Python {platform.python_version()} "
        "by `python -m benchmarks.validity --write`."
    )
    return "\n".join([text, *lines, foot]) + "\n"


def table_of(title: str, table: dict[str, Column]) -> list[str]:
    """Return the lines of a table: a measure per row, a design per column."""
    names = list(dict.fromkeys(name for column in table.values() for name in column))
    lines = [f"### {title}", "", f"| | {' | '.join(table)} |"]
    lines.append("|---" * (len(table) + 1) + "|")
    for name in names:
        few = FEW if name in SLOW else ""
        row = " | ".join(column.get(name, "–") for column in table.values())
        lines.append(f"| {name}{few} | {row} |")
    return [*lines, ""]


def number_of(cell: str) -> float | None:
    """Return the rate of a cell, None if there is none."""
    match = re.match(r"[*🟥🟨 ]*(\d+\.\d)", cell)
    return float(match[1]) if match else None


def trust(tables: Tables) -> list[str]:
    """Return a row per kind of question: what is wrong at worst, and what is found."""
    header = ("Question", "False alarms", "Misses", "Found/best", "To know")
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    for kind, sections, rows, measured, words in KINDS:
        worst = [
            worst_of(tables, title, sections, re.compile(rows)) for title in TABLES
        ]
        found = found_of(tables, re.compile(measured)) if measured else "–"
        lines.append(f"| {kind} | {' | '.join([*worst, found])} | {words} |")
    return lines


def worst_of(tables: Tables, title: str, sections: str, rows: Any) -> str:
    """Return the largest rate of cells with enough clusters, and their number."""
    rates = [
        rate
        for (section, of), table in tables.items()
        if of == title and re.match(sections, section)
        for column in table.values()
        for name, cell in column.items()
        if rows.search(name) and not cell.startswith("*")
        if (rate := number_of(cell)) is not None
    ]
    return f"{max(rates):.1f} of {len(rates)}" if rates else "–"


def found_of(tables: Tables, rows: Any) -> str:
    """Return a middling power beside that of the best test, and the least one."""
    pairs = [
        tuple(map(int, numbers[:2]))
        for (section, _), table in tables.items()
        if section == POWER
        for name, column in table.items()
        for row, cell in column.items()
        if rows.search(f"{row}: {name}")
        if (numbers := re.findall(r"\d+", cell))  # or a dash
    ]
    if not pairs:
        return "–"
    pairs.sort(key=lambda pair: pair[0] / max(pair[1], 1))
    few, middle = (f"{a}/{b}" for a, b in (pairs[0], pairs[len(pairs) // 2]))
    return middle if few == middle else f"{middle}; least {few}"


TABLES = ("Tests: rejected, per cent", "95% intervals: missed, per cent")
POWER = "Power beside size"
RANKINGS_FOUND, OTHERS_FOUND = "Rankings, per cent", "Others, per cent"
_CURVE = "What no interval promises: the curve itself missed, per cent"
_ONE_WAY = "By users alone, which no error promises here: rejected, per cent"

#: Section, study, which designs are in it, and the title of its third table.
PARTS: tuple[tuple[str, str, Callable[[str], bool], str], ...] = (
    (POWER, "power", lambda key: False, ""),
    ("The same items for many users", "two ways", bool, _ONE_WAY),
    ("Weights", "weights", bool, ""),
    ("Rates and losses", "rates", bool, ""),
    ("Disparities of many groups", "disparity", bool, ""),
    ("Verdicts on a mitigation", "verdict", bool, ""),
    ("Monitors", "monitor", bool, ""),
    ("Metrics of one's own", "own", bool, ""),
    (
        "Queries: few, many and unequal",
        "ranking",
        lambda key: key.startswith(("equal", "power", "dominant", "users")),
        "",
    ),
    (
        "Rare groups and outcomes, ties, tails, weights",
        "ranking",
        lambda key: not key.startswith(("equal", "power", "dominant", "users", "list")),
        "",
    ),
    ("One list of 50", "ranking", lambda key: key.startswith("list50_"), ""),
    ("One list of 200", "ranking", lambda key: key.startswith("list200_"), ""),
    ("One list of 1000", "ranking", lambda key: key.startswith("list1000_"), ""),
    ("A search with a bound on fresh data", "search", bool, ""),
    ("Audits of groups that differ by chance", "audit", bool, ""),
    ("Curves", "curve", bool, _CURVE),
    ("Calibration errors", "calibration", bool, _CURVE),
    ("What calibration would change", "shift", bool, ""),
)
#: What takes long, in tables in which other measures have more data sets.
SLOW = {
    *("rND, permutation", "NDKL, permutation", "pairwise parity, permutation"),
    *("skew, permutation", "outcome inequality", "monotonicity"),
    *("inter, both groups", "inter, bootstrap", "ndcg, bootstrap"),
    *("inter, a - b, bootstrap", "audit with item weights"),
}
#: A few words below the title of a section.
ABOUT = {
    POWER: (
        "**86/93 (4)**: a gap is found in 86% by the package and in 93% by the best\n"
        "test, which knows the design, and said wrongly in 4% where there is none.\n"
        "The best test knows the error of the estimate, and in rankings whether to\n"
        "pool or to let each query count alike; for curves it is the likelihood\n"
        "ratio at the known curve. Its critical value is that of the data sets\n"
        "without a gap, of which there are 700 of each design."
    ),
}
_LISTS = "Queries|Rare groups"
_SHUFFLED = "permutation|inequality|monotonicity"
#: Kind of question, its sections, its rows, its rows of power, and what to know.
KINDS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "Rankings of many queries",
        _LISTS,
        f"^(?!.*(by query|each alike|bootstrap|{_SHUFFLED}))",
        "quer.*: (inter|exposure|matched)$",
        "wide where few queries weigh most",
    ),
    (
        "the same, each alike",
        _LISTS,
        "by query|each alike",
        "each alike",
        "another estimand",
    ),
    ("Bootstrap intervals", _LISTS, "bootstrap", "", "few data sets"),
    (
        "The same items for many users",
        "The same items",
        "",
        "items.*users: ",
        "`cluster=` of two columns",
    ),
    ("One list", "One list", "", "", "neighbours reject 1% to 2%"),
    ("Shuffled labels, moments", _LISTS, _SHUFFLED, "", "lists exchangeable if fair"),
    ("Weights", "Weights", "", "", "importance, never repetition"),
    ("Rates and losses", "Rates", "", "(rate|accuracy): found", "mind tails"),
    ("Disparities", "Disparities", "", "disparity", "bounds hold for all groups"),
    ("Parity of curves", "Curves", "parity|curve", "parity test", "gaps of any shape"),
    ("Marginal outcomes", "Curves", "marginal", "marginal", "large gaps only"),
    ("Smoothed curves", "Curves", "Nadaraya", "", "not the curve itself"),
    ("Calibration errors, shifts", "Cali|What cali", "", "", "wide if calibrated"),
    ("Audits", "Audits", "", "", "the headline is corrected"),
    ("Searches with a bound", "A search", "", "", "may find nothing feasible"),
    ("Verdicts on a mitigation", "Verdicts", "", "closer", "careful: may not tell"),
    ("Monitors", "Monitors", "", "", "delays: [decide](decide.md)"),
    ("Metrics of one's own", "Metrics", "", "", "mind tails"),
)


#: What does not hold, in words.
HOLDS = """
**What does not hold.** Where few clusters weigh most, a pooled estimate shows a quarter
to two thirds of what could be found; weights that let each count alike show nearly all
of it, and ask another question. With 20 users of whom few have most of the queries,
tests reject some 7% to 10%. Where fair rankings put fewer than four items of a group
into the first k places, the pairs of these places tell nothing of it. Tests of marginal
outcomes find large gaps only. Means of heavy tails miss up to 15% where all rows are
one group: no sample of 120 lognormal values (σ = 2) shows its tail, and a
`SmallSampleWarning` says so (*italics*). A group beside others is taken to have the
rare events that as many of their rows would show, and the mean of fewer than thirty
rows to vary at least as those of others do. Of 100 rows with a risk of 1% a third has
no event at all; intervals of such groups miss 2% to 4%, and tests of their gaps, of two
models and of changes between two samples keep to 5%; those of a margin are wrong in up
to 7% at its very end, and of the exposure gap of twenty items where one or two places
count in 8% to 11%. Where the other groups have no such events either, nothing can tell.
Of clusters a group without any event counts each as one trial; where the rows of its
clusters are more alike than those of others, 3% to 10% of fair groups of 15 to 20
clusters are rejected. Means of ten units (the NDCG of ten queries, the log loss of ten
rows that are everybody) miss some 7% to 8%. Where the tail of real outcomes is longer
in one group (lognormal, σ = 1 beside 0.5), parity tests reject 9% to 13% of equal
curves, tests of marginal outcomes 8%, and outcome inequality tests 17% of fair
rankings, and more where it is longer still. With errors of users alone, tests reject up
to half of random labels of items. A line through matched pairs at `epsilon="mse"`
rejects 9% to 11% of equal groups in 20 to 120 queries of eight items with real
outcomes, and a parabola 6% to 7%, as the bandwidth is chosen from the outcomes. Shifts
by calibration (`positive_rate_shift`, `rank_shift`) have no error where a group has,
and would have with fair scores, fewer than eight rare events. And an interval of a
smoothed curve is not one of the curve itself."""

PREFACE = """# How far to trust the numbers

An error bar is a promise, and here the promises that were broken are counted, on fresh
data whose truth is known and which are hard on standard errors. **What to trust**, by
kind of question: the worst per cent of any design with at least five effective
clusters, and of how many cells it is the worst. *False alarms* are tests at 5% that
reject what is true, *misses* are 95% intervals without the truth, and *found/best* is
the power in a middling design beside that of the best test, which knows the design, and
then where it lags most.

{trust}

Of {cells:,} cells {red} are above their limit (6.5% of tests, 7% of intervals) beyond
the Monte Carlo error, and {yellow} within it, as some are by chance.
{holds}

## How to read a cell

**4.9 (×1.08)** is a rate of 4.9%; the intervals are 1.08 times as wide as the shortest
that hold 95% of the estimates, which somebody could use who knew the error exactly. 🟥
is a rate above its limit by more than the Monte Carlo error (two standard errors: ± 1.4
points of 5% of 1000 data sets, ± 2.5 of 300), 🟨 one above it within that error.
Numbers in *italics* rest on fewer than five effective clusters (or items) behind the
group, in the median, or on tails that the package warns of: a `SmallSampleWarning` says
so there, intervals are wide on purpose, and rates far below 5% are the price. NaN is
the share of data sets without an answer, which comes with a warning; "cannot tell" is
NaN in all of them. A dash is what does not apply to the design.

Methods that resample or shuffle, and simultaneous intervals (†), ran on every {every}th
data set; searches, audits and monitors on every {half}th. Where a cell was above its
limit after 1000 data sets, more were drawn, 2,500 or 3,000 in all.

## What is conservative, and what it costs

- **Few effective clusters.** One query with 30% of the rows holds most of the pairs.
  Random signs with the null hypothesis imposed (a wild bootstrap) keep the level there,
  by intervals that are up to 1.5 times as wide as they would have to be.
  A `sample_weight` of 1 over the pairs of a cluster lets each count alike ("each
  alike" in the tables; of exposure and matched pairs `average="queries"`), and has no
  such loss.
- **Many equal clusters cost next to nothing.** On 200 equal queries the intervals are
  at most 2% wider than with the linearised variance and one less than the number of
  clusters as degrees of freedom.
- **Simultaneous intervals** hold for all groups at once, so that for two they miss less
  than 5%. The bound of a disparity is that of the pair that differs most.
- **The variance of items is DeLong's**, in which the noise of a pair counts for both of
  its items. Where each item is in few pairs, as neighbours of one list are, tests
  reject 1% to 2% instead of 5%. Among all pairs of a list of 50 it makes the intervals
  of two equal groups up to 6% wider, those of ratios 9%, and of a list of 1000 1%.
- **Shares near 0 or 1 over few clusters** are taken to lack the events that as few
  clusters of others would show. Of 100 lists an inter-group accuracy of 0.99 beside one
  of 0.92 is found in 23%, of 400 always. Student's t finds it in 68% of 100 lists, but
  also a gap in up to 46% of equal groups of which one lacks a burst of events.
- **Curves** take at least the variance of independent rows, and leave out points with
  fewer than five effective clusters.
- **Tests of marginal outcomes** allow the gap to change with the score above the
  threshold. With half of n rows accepted and two groups of one size they find a gap of
  0.1 in 21% (n = 2,000), 50% (8,000) and 95% (28,000), one of 0.2 in 30% (1,000), 49%
  (2,000) and 73% (4,000), one of 0.3 in 66% (1,000) and 86% (2,000). In a steeper
  design (10% and 32% of 0.1 with 2,000 and 8,000 rows, 54% of 0.2 with 2,000) the best
  test that knows the curves and the gap to be straight lines finds 24%, 78% and 92%,
  and one that knows the gap to be the same everywhere 75%, 100% and 100%; but for some
  curves that cross at the threshold, which is fair, each rejects always. Curves must be
  smooth above it: where one group's rises from it with infinite slope and the other's
  is flat, 14% of fair data sets with 2,000 rows were rejected, and 33% with 8,000.
- **The outcome inequality test** sees only biases that outweigh the distance of
  neighbours. In queries of eight items of uniform quality, scores of a group that are
  too low by 0.2 are found in 13% (100 queries), 49% (400) and 99% (1,600), by 0.3 in
  46% (100), by 0.1 never; outcomes at equal scores show all of them.
- **Skew at k** looks at k places. In lists of 20 items, of which 40% are of a group
  with scores lower by 0.1 standard deviations, the skew of the first five finds it
  in 9% (25 lists), 29% (100) and 83% (400), where all scores show it in 18%, 67% and
  100%; a shift of 0.2 in 29% (25) and 83% (100).
- **Calibration errors.** The upper end of their intervals keeps the noise that the
  lower end takes off, so calibrated groups are hardly ever missed.
- **Bootstrap intervals** of fewer than 20 degrees of freedom hold those of Student's t,
  and are wider than either.

## What is not promised

The tables "What no interval promises" say how often an interval misses something else
than what it is made for.

- An interval of `nadaraya_watson` is that of the smoothed curve. The curve itself is
  missed at the ends of the scores, where a mean looks to one side, and where it waves
  within a bandwidth. The bands of `predictive_parity_test` are those of the curve.
- With given edges, whose results add up, a calibration error is that which the bins
  show. Waves inside a bin hide a part of it. Other intervals hold all of it.
"""


def main() -> None:
    """Draw what is not drawn yet, and print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--designs", nargs="*", default=list(TITLES))
    parser.add_argument("--studies", nargs="*", default=list(STUDIES))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("validity"))
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    gc.freeze()  # `multipletests` of statsmodels collects garbage in each call
    asked.folder.mkdir(exist_ok=True, parents=True)
    todo = [
        (study, key, number, asked.folder)
        for number in range(-(-asked.replications // ROUND))
        for study in asked.studies
        for key in STUDIES[study][2]
        if key in asked.designs
    ]
    done = Parallel(n_jobs=asked.jobs, return_as="generator_unordered")(
        delayed(draw_round)(*what) for what in todo
    )
    for count, name in enumerate(done, 1):
        print(f"{count} of {len(todo)}: {name}", flush=True)
    text = page(asked.folder)
    if asked.write:
        PAGE.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    # Processes find the functions of the module by its name.
    from benchmarks.validity import main as main_of_module

    main_of_module()
