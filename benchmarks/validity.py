"""How far to trust the numbers: ``python -m benchmarks.validity --write``.

Draws fresh data from the designs of tests/designs.py, which are hard on standard
errors, and counts how often tests of a true null hypothesis reject at 5% and how often
95% intervals miss the truth. Data sets are drawn in rounds, each of all designs, and
what is done is kept in ``--folder``: run it again to go on, or to write the page from
what there is. ``--designs`` chooses some of them.

Not on the page: bootstrap intervals of NDCG, of which it shows few data sets, missed
4.4% of 800 more data sets of 200 queries and 5.7% of 1,500 more of 1000 queries. A wild
cluster bootstrap, with the null hypothesis imposed and Rademacher signs, rejects 1.4%
(5 equal queries), 5.4% (10), 4.6% (power law, 40), 4.6% (one dominant query) and 4.4%
(rare group) of true differences of 0 in inter-group accuracy, 500 data sets each, where
Student's t rejects 1.2%, 3.0%, 0.8%, 0.2% and 1.8%. Both keep the level. It is not in
the package: it needs the whole table, so that results would no longer add up, and its
p-values would not agree with the intervals.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import special
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, GroupKFold

from benchmarks.simulations.common import quiet
from skrankfair import audit
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
    calibration_error,
    dips,
    exposure,
    exposure_gap,
    log_loss,
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
    rank_shift,
    skew_at_k,
)
from skrankfair.model_selection import fairness_constrained
from skrankfair.scoring import make_fairness_scorer
from skrankfair.smoothing import nadaraya_watson
from tests.designs import AUDITS, CURVES, DESIGNS, CurveDesign, Design, Rows

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
        found["dips"] = dips(y, score, **who)
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


#: Tests of a true null hypothesis: the group against the fair value or the rest.
TESTED = (
    *("all", "intra", "inter", "inter, by query", "exposure", "matched"),
    *("matched, 5%", "matched, neighbours", "dips", "exposure gap"),
    *("compare, accuracy", "compare, ndcg"),
)
#: Intervals whose truth is the value in a very large sample.
COVERED = (
    *("all", "intra", "inter", "inter, by query", "exposure", "preference", "dips"),
    *("share of exposure", "ndcg", "log loss", "squared error"),
)


def large(design: Design, seed: int = 1) -> dict[str, float]:
    """Return the true values of the group, from a very large sample."""
    rng = np.random.default_rng([seed, 10**6])
    rows_once = sum(np.asarray(design.sizes(rng)).astype(int))
    n_rows = 400_000 if design.present is None else 4_000_000
    times = int(np.clip(n_rows // rows_once, 2, 20_000))
    rows = design.draw(rng, times)
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
    table = result.sums.table
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
    """Note simultaneous intervals and the bound of a disparity."""
    result = found["inter"]
    bound = result.disparity_bound()
    wrong = float("nan") if np.isnan(bound) else float(bound < 0)
    out["cover inter, bound of disparity"] = [wrong, float(result.n_effective[0])]
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
    rows = design.draw(rng, int(np.clip(400_000 // rows_once, 2, 20_000)))
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
            scoring={"shift": larger, "gap": gap},
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
    means = design.mean(parity.grid)
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
    scores = design.population()
    means = design.mean(scores)
    found = {"0.5": float(design.mean(np.array(0.5)))}
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
        scores = design.population()
        near = np.exp(-0.5 * ((grid[:, None] - scores) / curve.bandwidth) ** 2)
        smooth = near @ design.mean(scores) / near.sum(1)
        for prefix, mean in (("cover", smooth), ("beyond", design.mean(grid))):
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
    scores = design.population()
    means = design.mean(scores)
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
    named = "beyond chance" in report.headline
    out: Found = {"size the headline": [float(named), np.inf]}
    for finding in report.findings:
        if finding.tested:
            wrong = bool(finding.on("worse") or finding.on("better"))
            out[f"size verdict, {finding.metric.name}"] = [float(wrong), np.inf]
    return out


def each(function: Callable[..., Found]) -> Callable[..., list[Found]]:
    """Return what measures one data set after the other."""

    def measured(key: str, truth: dict[str, float], seeds: range) -> list[Found]:
        return [function(key, truth, seed) for seed in seeds]

    return measured


#: What is measured on which designs: true values, and one data set.
STUDIES: dict[str, tuple[Any, Any, tuple[str, ...]]] = {
    "ranking": (lambda key: large(DESIGNS[key]), rankings, tuple(DESIGNS)),
    "search": (gaps, each(one_search), SEARCHED),
    "curve": (truths, each(one_curve), tuple(CURVES)),
    "calibration": (truths, each(one_calibration), tuple(CURVES)),
    "shift": (truths, each(one_shift), tuple(CURVES)),
    "audit": (lambda key: {}, each(one_audit), tuple(AUDITS)),
}
#: What takes long runs on some of the data sets.
STEPS = {"search": EVERY // 2, "audit": EVERY // 2, "shift": EVERY}


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


def collected(study: str, key: str, folder: Path) -> dict[str, Cell]:
    """Return what is known of a design, by measure."""
    values: dict[str, list[list[float]]] = {}
    for file in sorted(folder.glob(f"{study}-{key}-[0-9]*.json")):
        for found in json.loads(file.read_text(encoding="utf-8")):
            for name, value in found.items():
                values.setdefault(name, []).append(value)
    return {name: Cell.of(rows) for name, rows in values.items()}


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


def table_of(title: str, prefix: str, found: dict[str, dict[str, Cell]]) -> list[str]:
    """Return the lines of a table: a measure per row, a design per column."""
    limit = {"size ": 0.065, "cover ": 0.07, "beyond ": np.inf}[prefix]
    names: list[str] = []
    for cells in found.values():
        names += [n for n in cells if n.startswith(prefix) and n not in names]
    if not names:
        return []
    titles = [{**DESIGNS, **CURVES, **AUDITS}[key].title for key in found]
    lines = [f"### {title}", "", f"| | {' | '.join(titles)} |"]
    lines.append("|---" * (len(titles) + 1) + "|")
    counts = {k: max(c.count for c in cells.values()) for k, cells in found.items()}
    lines.append(f"| *data sets* | {' | '.join(map(str, counts.values()))} |")
    for name in names:
        few = any(
            cells[name].count < 0.5 * counts[key]
            for key, cells in found.items()
            if name in cells
        )
        row = [
            cells[name].text(limit) if name in cells else "–"
            for cells in found.values()
        ]
        title = name.removeprefix(prefix) + (" †" if few else "")
        lines.append(f"| {title} | {' | '.join(row)} |")
    return [*lines, ""]


def page(folder: Path, keys: list[str]) -> str:
    """Return the page of the documentation."""
    found = {
        study: {key: collected(study, key, folder) for key in known if key in keys}
        for study, (_, _, known) in STUDIES.items()
    }
    lines = []
    for title, study, chosen in PARTS:
        tables = {k: t for k, t in found[study].items() if chosen(k) and t}
        lines += [f"## {title}", ""] if tables else []
        lines += table_of("Tests: rejected, per cent", "size ", tables)
        lines += table_of("95% intervals: missed, per cent", "cover ", tables)
        title = "What no interval promises: the curve itself missed, per cent"
        lines += table_of(title, "beyond ", tables)
    counts = [
        max(cell.count for cell in cells.values())
        for tables in found.values()
        for cells in tables.values()
        if cells
    ]
    today = dt.datetime.now(tz=dt.UTC).date()
    n = min(counts[: len(DESIGNS)], default=0)
    limited = [
        cell
        for tables in found.values()
        for cells in tables.values()
        for name, cell in cells.items()
        if not (name.startswith("beyond ") or np.isnan(cell.wrong))
    ]
    marks = "".join(lines)
    text = PREFACE.format(
        replications=n,
        error=monte_carlo(n),
        every=EVERY,
        half=EVERY // 2,
        cells=len(limited),
        red=marks.count("🟥") or "none",
        yellow=marks.count("🟨"),
    )
    foot = (
        f"Measured on {today} with Python {platform.python_version()} by "
        "`python -m benchmarks.validity --write`."
    )
    return "\n".join([text, *lines, foot]) + "\n"


#: Title, study, and which designs are in the table.
PARTS: tuple[tuple[str, str, Callable[[str], bool]], ...] = (
    (
        "Queries: few, many and unequal",
        "ranking",
        lambda key: key.startswith(("equal", "power", "dominant", "users")),
    ),
    (
        "Rare groups and outcomes, ties, tails, weights",
        "ranking",
        lambda key: not key.startswith(("equal", "power", "dominant", "users", "list")),
    ),
    ("One list of 50", "ranking", lambda key: key.startswith("list50_")),
    ("One list of 200", "ranking", lambda key: key.startswith("list200_")),
    ("One list of 1000", "ranking", lambda key: key.startswith("list1000_")),
    ("A search with a bound on fresh data", "search", bool),
    ("Audits of groups that differ by chance", "audit", bool),
    ("Curves", "curve", bool),
    ("Calibration errors", "calibration", bool),
    ("What calibration would change", "shift", bool),
)


def monte_carlo(replications: int) -> str:
    """Return two Monte Carlo standard errors of a rate of 5%, in points."""
    return f"{200 * np.sqrt(0.05 * 0.95 / max(replications, 1)):.1f}"


PREFACE = """# How far to trust the numbers

An error bar is a promise, and here the promises that were broken are counted. **What
holds:** on designs that are hard on standard errors (few or unequal queries, rare
groups and outcomes, ties, heavy tails, weights, short lists, curves of unlike groups),
tests at 5% reject true hypotheses, and 95% intervals miss the truth, about as often as
they say or less. Of {cells:,} cells {red} are above their limit beyond the Monte Carlo
error, and {yellow} within it, as some are by chance. **What does not hold:** few
effective clusters make intervals many times as wide as they would have to be. Means and
losses of ten units (the NDCG of ten queries, the log loss of ten items in one list) are
too few to show how skewed they are, and miss some 7%. And an interval of a smoothed
curve is that of the smoothed curve, which is not the curve itself.

Data sets are drawn from designs with a true null hypothesis and a known truth. Each
table says how many were drawn of each design; a rate of 5% of 1000 has a Monte Carlo
error of ± 1.4 points (two standard errors), one of {replications}, the fewest of
rankings, ± {error}. What resamples or shuffles, simultaneous intervals and bounds (†)
ran on every {every}th of them, where rates are rough; searches and audits on every
{half}th. Designs with a cell above its limit after 1000 data sets were drawn on, to
2,500 or 3,000.

## How to read a cell

**4.9 (×1.08)** is a rate of 4.9%; the intervals are 1.08 times as wide as the shortest
that hold 95% of the estimates, which somebody could use who knew the error exactly.
That factor is the price of not knowing it: of few clusters, and of caution. 🟥 is a
rate above 6.5% (tests) or 7% (intervals) by more than the Monte Carlo error, 🟨 one
above it within that error. Numbers in *italics* rest on fewer than five effective
clusters (or items) behind the group, in the median: a `SmallSampleWarning` says so
there, intervals are wide on purpose, and rates far below 5% are the price. NaN is the
share of data sets without an answer, which comes with a warning; "cannot tell" is NaN
in all of them. A dash is what does not apply to the design.

## What is conservative, and what it costs

- **Few effective clusters.** One query with 30% of the rows holds most of the pairs:
  with one or two effective clusters tests reject less than 1% of the time, and
  intervals are many times as wide as they would have to be. That is an honest "do not
  know". `average="queries"`, which lets every query count alike, has no such loss.
- **Many equal clusters cost next to nothing.** On 200 equal queries the intervals are
  at most 2.0% wider than with the linearised variance and one less than the number of
  clusters as degrees of freedom, on the same data: 0% to 0.7% for exposure, NDCG,
  losses, comparisons of two scores and accuracy, up to 1.5% within and between groups,
  1.8% for simultaneous intervals and 2.0% for matched pairs.
- **Bounds of disparities** and simultaneous intervals hold for all groups at once, so
  that for two they miss less than 5%.
- **The variance of items is DeLong's**, in which the noise of a pair counts for both of
  its items. Where each item is in few pairs, as neighbours of one list are, tests
  reject 1% to 2% instead of 5%. Among all pairs of a list of 50 it makes the intervals
  of two equal groups up to 6% wider, those of ratios 9%, and of a list of 1000 1%.
- **The test of predictive parity** and the curves of rare groups take at least the
  variance of independent rows, and leave out points with fewer than five effective
  clusters.
- **Calibration errors.** The upper end of their intervals keeps the noise that the
  lower end takes off, and is at least that of narrow bins, which hide nothing and are
  noisier. So calibrated groups are hardly ever missed, by intervals that are wider than
  what they need.
- **Bootstrap intervals** of fewer than 20 degrees of freedom hold those of Student's t,
  without which they missed 9% of data sets of ten queries: they are wider than either.
- **Shifts of ranks and decisions.** Their errors include the bias that resamples show,
  that of ranks twice: where a curve is flat, resamples show half of it.

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
    every = [*DESIGNS, *CURVES, *AUDITS]
    parser.add_argument("--designs", nargs="*", default=every)
    parser.add_argument("--studies", nargs="*", default=list(STUDIES))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("validity"))
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
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
    text = page(asked.folder, asked.designs)
    if asked.write:
        PAGE.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
