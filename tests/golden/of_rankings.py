"""Entries of metrics, of what results can do, and of stored results."""

import functools
import itertools
from functools import partial
from pathlib import Path

import numpy as np

from skrankfair import inference, metrics
from skrankfair.metrics import GroupEstimates
from tests.designs import DESIGNS, Sellers
from tests.metrics.common import CASES, UNFROZEN, labelled, overlapping, with_clusters
from tests.metrics.common import with_weights as weighted

STORED = Path(__file__).parent / "stored"


# Every metric with every option, on small data with ties, ragged queries and gaps


def twenty_groups():
    """Return more rows, of twenty groups."""
    c = labelled(seed=3, n=400)
    chance = 1 / np.arange(1, 21)
    rng = np.random.default_rng(3)
    return c.but(group=rng.choice(20, c.q.size, p=chance / chance.sum()))


DATA = {
    "three": labelled,
    "clusters": lambda: with_clusters(labelled()),
    "overlapping": overlapping,
    "weights": lambda: weighted(labelled()),
    "twenty": twenty_groups,
}


def cases():
    """Yield every case of every data set, whole and in two parts that are added."""
    for data, (name, case) in itertools.product(DATA, CASES.items()):
        if name in UNFROZEN or (case.by_item and data == "clusters"):
            continue
        yield f"cases/{data}/{name}", whole, data, case
        if case.held is None and data in ("three", "clusters"):
            yield f"parts/{data}/{name}", of_parts, data, case
            yield f"parts-compact/{data}/{name}", of_parts, data, case, True


def whole(data, case):
    """Return the result of all rows."""
    return case(DATA[data]())


def of_parts(data, case, compact=False):
    """Return the sum of the results of two halves of the clusters."""
    c = DATA[data]()
    halves = [case(c.take(c.q % 2 == half)) for half in (0, 1)]
    if compact:
        halves[0] = halves[0].compact()
        halves[1] = GroupEstimates.from_json(halves[1].to_json())
    return halves[0] + halves[1]


# Every design, with two groups and with twenty


@functools.cache
def design(name, n_groups):
    """Return the columns of a design: outcomes, scores, and all others by name."""
    made = DESIGNS[name]
    rows = made.draw(np.random.default_rng([0, len(name)]))
    size = rows["qid"].size
    group = np.where(rows["group"], "a", "b")
    if n_groups > 2:
        labels = np.random.default_rng(20).integers(1, n_groups, size)
        group = np.where(rows["group"], 0, labels)
    if made.overlapping:
        group = np.column_stack([rows["group"], rows["second"]])
    return rows, made.columns(rows, group)


matched = partial(metrics.matched_pair_calibration, epsilon=0.3)
RANKED = {
    "accuracy": metrics.pairwise_accuracy,
    "inter": partial(metrics.pairwise_accuracy, comparison="inter"),
    "intra": partial(metrics.pairwise_accuracy, comparison="intra"),
    "top3": partial(metrics.pairwise_accuracy, k=3, comparison="inter"),
    "exposure": metrics.pairwise_exposure,
    "preference": metrics.pairwise_preference,
    "matched": partial(matched, direction="both"),
    "matched-quantile": partial(metrics.matched_pair_calibration, quantile=0.05),
    "matched-adjacent": partial(matched, adjacent=True),
    "matched-linear": partial(matched, estimator="local_linear"),
}
LISTS = {
    "shares": metrics.exposure,
    "gap": partial(metrics.exposure_gap, target="population"),
    "dips": metrics.dips,
    "rND": partial(metrics.normalized_discounted_difference, step=2),
    "skew": partial(metrics.skew_at_k, k=3),
    "ndkl": metrics.ndkl,
    "parity": partial(metrics.exposure_parity, signed=True),
    "pairs": metrics.pairwise_parity,
    "share_at_3": partial(metrics.share_at_k, k=3),
    "amortized": partial(metrics.exposure, average="amortized"),
}
ROWS = {
    "precision": partial(metrics.precision, threshold=0.5),
    "f1": partial(metrics.f1, threshold=0.5),
    "brier": metrics.brier_score,
    "smooth": partial(metrics.calibration_error, bandwidth=0.1),
    "binned": partial(metrics.calibration_error, method="binned", bins=5),
}
LISTED = ("shares", "skew", "pairs", "share_at_3")


def designs():
    """Yield the metrics of rankings and of rows on every design."""
    for name, n_groups in itertools.product(DESIGNS, (2, 20)):
        if n_groups > 2 and name not in OF_TWENTY:
            continue
        data = f"{name} of {n_groups}"
        for metric in [*RANKED, *LISTS]:
            if metric in RANKED or metric in LISTED or not name.startswith("list"):
                yield f"designs/{data}/{metric}", ranked, name, n_groups, metric
        for metric in ROWS if name in HARD else ():
            yield f"designs/{data}/{metric}", of_rows, name, n_groups, metric


OF_TWENTY = (
    *("equal10", "power40", "dominant", "rare", "users", "weights", "t3"),
    *("list50_20", "list200_10", "list1000_50"),
)
HARD = (
    *("equal10", "power40", "dominant", "rare", "ties", "users", "weights", "overlap"),
    *("accurate", "list200_10"),
)


@functools.cache
def ranked(name, n_groups, metric, score="y_score"):
    """Return a metric of a ranking."""
    rows, columns = design(name, n_groups)
    function = {**RANKED, **LISTS}[metric]
    outcome = rows["y_true"] if metric in RANKED or metric == "dips" else None
    if metric == "gap":
        outcome = rows["y_true"] - rows["y_true"].min()
    return function(outcome, rows[score], **columns)


@functools.cache
def of_rows(name, n_groups, metric):
    """Return a metric of rows, in clusters where there are queries."""
    rows, columns = design(name, n_groups)
    if "qid" in columns:
        columns = {"cluster": columns["qid"], **columns}
        columns = {key: value for key, value in columns.items() if key != "qid"}
    outcome = (rows["y_true"] > np.median(rows["y_true"])).astype(float)
    return ROWS[metric](outcome, 1 / (1 + np.exp(-rows["y_score"])), **columns)


# What a result can do


def first_two(r):
    """Return the labels of two groups."""
    return r.groups[0], r.groups[1]


STEPS = {
    "frame": lambda r: r.to_frame(0.9),
    "contrast": lambda r: r.contrast(*first_two(r)),
    "ratio": lambda r: r.contrast(*first_two(r), kind="ratio"),
    "contrasts": lambda r: r.contrasts(),
    "ratios": lambda r: r.contrasts(kind="ratio", correction="fdr_bh"),
    "reference": lambda r: r.contrasts(reference=r.groups[1], correction="bonferroni"),
    "disparity": lambda r: np.array([r.disparity(), r.disparity_bound()]),
    "disparity-ratio": lambda r: np.array(
        [r.disparity("ratio"), r.disparity_bound(kind="ratio")]
    ),
    "simultaneous": lambda r: r.simultaneous_interval(n_resamples=400),
    "equivalence": lambda r: r.equivalence_test((-0.1, 0.2)),
    "detectable": lambda r: r.minimum_detectable(),
    "detectable-known": lambda r: r.minimum_detectable(0.9, pilot_error="known"),
    "required": lambda r: r.required(0.1),
    "contrast-power": lambda r: {
        "detectable": r.contrast(*first_two(r)).minimum_detectable(),
        "required": r.contrast(*first_two(r)).required(0.1),
        "equivalence": r.contrast(*first_two(r)).equivalence_test(0.1),
    },
    "rest": lambda r: r.against_rest(),
    "overall": lambda r: r.overall,
    "test": lambda r: r.test(n_resamples=49, random_state=0),
    "bootstrap": lambda r: r.confidence_interval(
        method="bootstrap", n_resamples=50, random_state=0
    ),
    "percentile": lambda r: r.confidence_interval(
        method="percentile", n_resamples=50, random_state=0
    ),
    "compact": lambda r: r.compact(),
    "json": lambda r: GroupEstimates.from_json(r.to_json()).contrasts(),
    "compact-replicates": lambda r: {
        "resampled": r.compact(20, random_state=1).resampled(),
        "bootstrap": r.compact(20, 1).confidence_interval(method="bootstrap"),
    },
}
DONE_WITH = ("equal10", "power40", "rare", "users", "weights", "overlap", "list50_20")
BATTERY = ("accuracy", "inter", "exposure", "matched", "shares", "skew")


def steps():
    """Yield every method of results, and comparisons of two rankings."""
    for name, n_groups, metric in itertools.product(DONE_WITH, (2, 20), BATTERY):
        if n_groups > 2 and name not in ("equal10", "users", "list50_20"):
            continue
        if name.startswith("list") and metric in LISTS:
            continue
        for step in [*STEPS, *COMPARED]:
            # Ten clusters of twenty groups: resamples whose variance is rounding.
            if n_groups > 2 and step in ("bootstrap", "percentile"):
                continue
            label = f"steps/{name} of {n_groups}/{metric} {step}"
            yield label, step_of, name, n_groups, metric, step


def step_of(name, n_groups, metric, step):
    """Return what a step makes of a result, or of it and that of other scores."""
    r = ranked(name, n_groups, metric)
    if step in STEPS:
        return STEPS[step](r)
    return COMPARED[step](r, ranked(name, n_groups, metric, "other"))


COMPARED = {
    "compare": inference.compare,
    "compare-independent": inference.compare_independent,
    "compare-contrasts": lambda a, b: inference.compare(a, b).contrasts(),
}


# Many groups


def sellers():
    """Yield metrics of 300 groups."""
    for metric in (*RANKED, *LISTED):
        yield f"sellers/300/{metric}", of_sellers, metric
    for step in ("contrast", "reference", "simultaneous", "disparity"):
        yield f"sellers/300/accuracy {step}", of_sellers, "accuracy", STEPS[step]


def of_sellers(metric, step=lambda r: r):
    """Return a metric of 300 groups, or a step with it."""
    columns = Sellers("300 sellers", 300, 150, 20).draw(0)
    if metric not in RANKED:
        columns["y_true"] = None
    return step({**RANKED, **LISTS}[metric](**columns))


# Results that were stored by version 0.1.0, which every later one reads and adds to


def stored():
    """Yield what was stored, and its sum with what is computed of other rows."""
    for path in sorted(STORED.glob("result_*.json")):
        name = path.stem.removeprefix("result_")
        for what in ("read", "contrasts", "twice", "added"):
            yield f"stored/{name}/{what}", read, path, what


def read(path, what):
    """Return a stored result, or what can be done with it."""
    result = GroupEstimates.from_json(path.read_text(encoding="utf-8"))
    if what == "contrasts":
        return result.contrasts()
    if what == "twice":
        return result + result
    name = path.stem.removeprefix("result_")
    return result + OTHERS[name]() if what == "added" else result


def other_half(name, make=labelled):
    """Return a metric of the clusters that are not in the stored half."""
    c = make()
    return CASES[name](c.take(c.q % 2 == 1))


def one_list(n_groups=2):
    """Return the accuracy in one list."""
    columns = Sellers("one list", n_groups, 1, 60 if n_groups == 2 else 120).draw(1)
    del columns["qid"]
    return metrics.pairwise_accuracy(**columns)


def means(n_rows, n_groups, seed=1):
    """Return the means of groups in clusters of two rows."""
    return metrics.group_mean(
        np.random.default_rng(seed).random(n_rows).round(2),
        sensitive_features=np.arange(n_rows) % n_groups,
        cluster=np.arange(n_rows) // 2 + 1000,
    )


ACCURACY, MATCHED = "pairwise_accuracy-all", "matched_pair_calibration"
OF_HALVES = {
    "clusters": "pairwise_accuracy-inter-pairs-cluster",
    "average_queries": f"{ACCURACY}-queries-cluster",
    "items": f"{ACCURACY}-pairs-item",
    "matched_pairs": f"{MATCHED}-both-pairs-cluster-0.25",
    "local_linear": f"{MATCHED}-local_linear-pairs-cluster-0.25",
    "lists": "exposure_gap-expected-queries",
    "rates": "true_positive_rate-0.375",
    "f1": "f1-0.375",
}
EXPOSURE = "pairwise_exposure-pairs-cluster"
#: The results of the data that are not in the stored ones of the same names.
OTHERS = {
    **{name: partial(other_half, case) for name, case in OF_HALVES.items()},
    "weights": partial(other_half, f"{ACCURACY}-pairs-cluster", DATA["weights"]),
    "overlapping": partial(other_half, EXPOSURE, overlapping),
    "item_list": one_list,
    "item_list_of_twenty": partial(one_list, n_groups=20),
    "replicates": lambda: other_half(EXPOSURE).compact(12, random_state=3),
    "many_clusters": partial(means, 900, 3),
    "many_groups": partial(means, 600, 300),
    "pair": lambda: inference.compare(
        *(means(60, 3, seed).compact(12, random_state=3) for seed in (1, 2))
    ),
}


MAKERS = (cases, designs, steps, sellers, stored)
