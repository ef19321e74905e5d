"""Entries of tests of curves and of rankings, of smoothing, and of planning."""

import itertools
from functools import partial

import numpy as np

from skrankfair import inference, metrics, planning, smoothing
from tests.designs import CURVES
from tests.golden.of_rankings import design

GRID = np.linspace(0.25, 0.75, 7)
FEW_ROWS = 700


def curve_columns(name, n_groups=2):
    """Return outcomes and scores of a design, and all other columns by name."""
    made = CURVES[name]
    rows = made.draw(np.random.default_rng([1, len(name)]))
    keep = slice(None) if made.clusters or "small" in name else slice(FEW_ROWS)
    rows = {key: value[keep] for key, value in rows.items()}
    columns = {"sensitive_features": rows["g"]}
    if n_groups > 2:
        codes = np.random.default_rng(6).integers(1, n_groups, rows["g"].size)
        columns["sensitive_features"] = np.where(rows["g"] == 1, 0, codes)
    if made.clusters:
        columns["cluster"] = rows["c"]
    return rows["y"], rows["s"], columns


PARITY = {
    "default": {},
    "rest": {"contrasts": "rest"},
    "quadratic": {"curve": "local_quadratic", "bandwidth": 0.1},
    "mean": {"curve": "nadaraya_watson", "kernel": "epanechnikov"},
    "holm": {"correction": "holm", "confidence_level": 0.9},
    "rows": {"cluster_weight": "row", "bandwidth": 0.15},
}
MARGINAL = {
    "default": {},
    "constant": {"boundary": "constant", "bandwidth": 0.1},
    "gaussian": {"kernel": "gaussian", "bandwidth": 0.1},
    "holm": {"correction": "holm", "reference": 0},
}
METRICS = {
    "smooth": metrics.calibration_error,
    "smooth-epanechnikov": partial(
        metrics.calibration_error, kernel="epanechnikov", bandwidth=0.1
    ),
    "binned": partial(metrics.calibration_error, method="binned"),
    "sweep": partial(metrics.calibration_error, method="sweep"),
    "rate_shift": partial(metrics.positive_rate_shift, threshold=0.5, n_resamples=5),
    "rank_shift": partial(metrics.rank_shift, n_resamples=5),
    "mean": lambda y_true, y_score, **rest: metrics.group_mean(y_true, **rest),
    "odds": partial(metrics.equalized_odds, threshold=0.5),
    "parity": partial(metrics.demographic_parity_difference, threshold=0.5),
    "impact": partial(metrics.impact_ratio, threshold=0.5),
}


def curves():
    """Yield tests of curves and metrics of scores on every design of curves."""
    for name, n_groups in itertools.product(CURVES, (2, 6)):
        data = f"{name} of {n_groups}"
        for label, options in PARITY.items():
            # A quadratic in ten scores is undetermined, but for rounding; so are
            # draws of two contrasts of rows of which one is minus the other.
            undetermined = name == "deciles" and label in ("default", "holm")
            undetermined |= label == "rest" and name != "clusters20"
            if (n_groups == 2 or label == "default") and not undetermined:
                yield f"parity/{data}/{label}", parity, name, n_groups, options
        for label, options in MARGINAL.items():
            if n_groups == 2 or label in ("default", "holm"):
                yield f"marginal/{data}/{label}", marginal, name, n_groups, options
        for metric in METRICS:
            if n_groups == 2 or name in ("straight", "clusters20"):
                yield f"scores/{data}/{metric}", scores, name, n_groups, metric
        if n_groups == 2:
            yield f"smoothing/{data}/curve", smoothed, name
    for name in ("straight", "clusters20"):  # with weights of rows
        for metric in METRICS:
            if metric != "rank_shift":  # which takes weights of queries
                yield f"scores/{name} weights/{metric}", scores, name, 2, metric, True
        yield f"parity/{name} weights/default", parity, name, 2, {}, True
        yield f"marginal/{name} weights/default", marginal, name, 2, {}, True
        yield f"smoothing/{name} weights/curve", smoothed, name, True


def given(name, n_groups, weights):
    """Return the columns, with weights if these are asked for."""
    y, s, columns = curve_columns(name, n_groups)
    if weights:
        columns["sample_weight"] = 1.0 + np.arange(y.size) % 3
    return y, s, columns


def shown(result, names):
    """Return attributes of a result, and what its methods return."""
    values = {name: getattr(result, name) for name in names.split()}
    return {name: v() if callable(v) else v for name, v in values.items()}


def curves_of(test, names, options, name, n_groups, more, weights=False):
    """Return a test of curves and all that it shows."""
    y, s, columns = given(name, n_groups, weights)
    return shown(test(y, s, **columns, n_resamples=400, **options | more), names)


parity = partial(
    curves_of,
    inference.predictive_parity_test,
    "to_frame statistic pvalue pvalues pointwise_pvalues difference"
    " difference_standard_error curves standard_error effective_clusters df band"
    " curve_band bandwidth",
    {"grid": GRID},
)
marginal = partial(
    curves_of,
    inference.marginal_outcome_test,
    "to_frame statistic pvalue pvalues outcomes standard_errors difference"
    " standard_error df effective_clusters confidence_interval outcome_interval"
    " bandwidth",
    {"threshold": 0.5},
)


def scores(name, n_groups, metric, weights=False):
    """Return a metric of scores."""
    y, s, columns = given(name, n_groups, weights)
    return METRICS[metric](y, s, **columns)


SMOOTHED = {
    "rule": {},
    "undersmooth": {"bandwidth": "undersmooth", "kernel": "gaussian4"},
    "narrow": {"bandwidth": 0.05, "kernel": "epanechnikov"},
    "rows": {"bandwidth": 0.1, "cluster_weight": "row"},
}


def smoothed(name, weights=False):
    """Return curves of all rows, and what the regressor predicts."""
    y, s, columns = given(name, 2, weights)
    del columns["sensitive_features"]
    names = "estimate standard_error covariance effective_clusters confidence_interval"
    found = {
        label: shown(smoothing.nadaraya_watson(y, s, GRID, **how, **columns), names)
        for label, how in SMOOTHED.items()
    }
    model = smoothing.NadarayaWatsonRegressor()
    model.fit(s[:, None], y, sample_weight=columns.get("sample_weight"))
    return {**found, "regressor": model.predict(GRID[:, None])}


# Tests of rankings


def rankings():
    """Yield the tests of positions, of two groups and of six."""
    names = ("equal10", "equal40", "power40", "ties", "users", "weights", "t3")
    for name, n_groups in itertools.product(names, (2, 6)):
        label = f"positions/{name} of {n_groups}"
        for method in ("bootstrap", "chi2"):
            yield f"{label}/monotonicity {method}", monotonicity, name, n_groups, method
        for adjacent in (True, False):
            yield f"{label}/inequality {adjacent}", inequality, name, n_groups, adjacent


def monotonicity(name, n_groups, method):
    """Return the test of the shares by position."""
    rows, columns = design(name, n_groups)
    options = {"group": "a" if n_groups == 2 else 0, "k": 6, "method": method}
    test = inference.monotonicity_test(
        rows["y_score"], n_resamples=99, random_state=0, **options, **columns
    )
    return shown(test, "statistic pvalue count share fit band_low band_high")


def inequality(name, n_groups, adjacent):
    """Return the test of outcomes by position."""
    rows, columns = design(name, n_groups)
    options = {"adjacent": adjacent, "k": 5, "n_resamples": 300, "random_state": 0}
    test = inference.outcome_inequality_test(
        rows["y_true"], rows["y_score"], **columns, **options
    )
    return shown(test, "statistic pvalue critical_value to_frame")


# Planning


PLANS = {
    "rates": partial(planning.plan_rates, 0.3, share=0.2),
    "two-rates": partial(
        planning.plan_rates,
        (0.3, 0.4),
        share=0.3,
        n_items=4,
        queries_per_cluster=2,
        correlation=0.1,
    ),
    "clusters": partial(planning.plan_rates, 0.2, share=0.4, groups_of="clusters"),
    "pairs": partial(
        planning.plan_pairs, 0.7, rate=0.3, share=0.2, n_items=8, correlation=0.1
    ),
}


def plans():
    """Yield plans without data, and curves of power with a pilot."""
    for name, n_tests in itertools.product(PLANS, (1, 10)):
        yield f"plans/{name}/{n_tests}", planned, PLANS[name](n_tests=n_tests)
    for known in ("known", "estimated"):
        yield f"plans/pilot/{known}", piloted, known


def planned(plan):
    """Return what a plan says of 100 clusters, and how many it needs."""
    return {
        "error": plan.standard_error(100),
        "df": plan.df(100),
        "detectable": plan.minimum_detectable(100),
        "required": plan.required(0.1),
        "curve": planning.power_curve(plan, [0.05, 0.1], n_clusters=[50, 500]),
    }


def piloted(pilot_error):
    """Return the curve of power of a pilot."""
    rows, columns = design("equal40", 2)
    pilot = metrics.pairwise_accuracy(rows["y_true"], rows["y_score"], **columns)
    return planning.power_curve(
        pilot, [0.05, 0.1], n_clusters=[50, 500], pilot_error=pilot_error
    )


MAKERS = (curves, rankings, plans)
