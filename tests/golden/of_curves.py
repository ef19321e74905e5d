"""Entries of tests of curves and of rankings, of smoothing, and of planning."""

import itertools
from functools import partial

import numpy as np

from skrankfair import inference, metrics, planning, smoothing
from tests.designs import CURVES, DESIGNS
from tests.golden.of_rankings import design, room

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
                compute = partial(parity, name, n_groups, options)
                yield f"parity/{data}/{label}", compute
        for label, options in MARGINAL.items():
            if n_groups == 2 or label in ("default", "holm"):
                compute = partial(marginal, name, n_groups, options)
                yield f"marginal/{data}/{label}", compute
        for metric in METRICS:
            if n_groups == 2 or name in ("straight", "clusters20"):
                yield f"scores/{data}/{metric}", partial(scores, name, n_groups, metric)
        if n_groups == 2:
            yield f"smoothing/{data}/curve", partial(smoothed, name)


def curves_with_weights():
    """Yield the same with weights of rows."""
    for name in ("straight", "clusters20"):
        for metric in METRICS:
            if metric != "rank_shift":  # which takes weights of queries
                compute = partial(scores, name, 2, metric, weights=True)
                yield f"scores-weights/{name}/{metric}", compute
        yield f"parity-weights/{name}/default", partial(parity, name, 2, {}, True)
        yield f"marginal-weights/{name}/default", partial(marginal, name, 2, {}, True)
        yield f"smoothing-weights/{name}/curve", partial(smoothed, name, weights=True)


def given(name, n_groups, weights):
    """Return the columns, with weights if these are asked for."""
    y, s, columns = curve_columns(name, n_groups)
    if weights:
        columns = {**columns, "sample_weight": 1.0 + np.arange(y.size) % 3}
    return y, s, columns


def parity(name, n_groups, options, weights=False):
    """Return the test of predictive parity and all that it shows."""
    y, s, columns = given(name, n_groups, weights)
    options = {"n_resamples": 400, "grid": GRID, **options}
    test = inference.predictive_parity_test(y, s, **columns, **options)
    return {
        "frame": test.to_frame(),
        "statistic": test.statistic,
        "pvalue": test.pvalue,
        "pvalues": test.pvalues,
        "pointwise": test.pointwise_pvalues,
        "difference": test.difference,
        "error": test.difference_standard_error,
        "curves": test.curves,
        "curve_error": test.standard_error,
        "effective": test.effective_clusters,
        "df": test.df,
        "band": np.asarray(test.band()),
        "curve_band": np.asarray(test.curve_band()),
        "bandwidth": test.bandwidth,
    }


def marginal(name, n_groups, options, weights=False):
    """Return the test of marginal outcomes and all that it shows."""
    y, s, columns = given(name, n_groups, weights)
    options = {"n_resamples": 400, "threshold": 0.5, **options}
    test = inference.marginal_outcome_test(y, s, **columns, **options)
    return {
        "frame": test.to_frame(),
        "statistic": test.statistic,
        "pvalue": test.pvalue,
        "pvalues": test.pvalues,
        "outcomes": test.outcomes,
        "errors": test.standard_errors,
        "difference": test.difference,
        "error": test.standard_error,
        "df": test.df,
        "effective": test.effective_clusters,
        "interval": test.confidence_interval(),
        "outcome_interval": test.outcome_interval(),
        "bandwidth": test.bandwidth,
    }


def scores(name, n_groups, metric, weights=False):
    """Return a metric of scores."""
    y, s, columns = given(name, n_groups, weights)
    return METRICS[metric](y, s, **columns)


def smoothed(name, weights=False):
    """Return curves of all rows, and what the regressor predicts."""
    y, s, columns = given(name, 2, weights)
    rest = {key: v for key, v in columns.items() if key != "sensitive_features"}
    found = {}
    for label, options in {
        "rule": {},
        "undersmooth": {"bandwidth": "undersmooth", "kernel": "gaussian4"},
        "narrow": {"bandwidth": 0.05, "kernel": "epanechnikov"},
        "rows": {"bandwidth": 0.1, "cluster_weight": "row"},
    }.items():
        curve = smoothing.nadaraya_watson(y, s, GRID, **options, **rest)
        found[label] = {
            "estimate": curve.estimate,
            "error": curve.standard_error,
            "covariance": curve.covariance[0],
            "effective": curve.effective_clusters,
            "interval": curve.confidence_interval(),
        }
    fit = {"sample_weight": rest["sample_weight"]} if weights else {}
    model = smoothing.NadarayaWatsonRegressor().fit(s[:, None], y, **fit)
    found["regressor"] = model.predict(GRID[:, None])
    return found


# Tests of rankings


def rankings():
    """Yield the tests of positions, of two groups and of six."""
    for name in ("equal10", "equal40", "power40", "ties", "users", "weights", "t3"):
        label = room("positions", weights=DESIGNS[name].weighted)
        for n_groups in (2, 6):
            for method in ("bootstrap", "chi2"):
                yield (
                    f"{label}/{name} of {n_groups}/monotonicity {method}",
                    partial(monotonicity, name, n_groups, method),
                )
            for adjacent in (True, False):
                yield (
                    f"{label}/{name} of {n_groups}/inequality {adjacent}",
                    partial(inequality, name, n_groups, adjacent),
                )


def monotonicity(name, n_groups, method):
    """Return the test of the shares by position."""
    rows, columns = design(name, n_groups)
    options = {"group": "a" if n_groups == 2 else 0, "k": 6, "method": method}
    test = inference.monotonicity_test(
        rows["y_score"], n_resamples=99, random_state=0, **options, **columns
    )
    names = ("statistic", "pvalue", "count", "share", "fit", "band_low", "band_high")
    return {key: getattr(test, key) for key in names}


def inequality(name, n_groups, adjacent):
    """Return the test of outcomes by position."""
    rows, columns = design(name, n_groups)
    test = inference.outcome_inequality_test(
        *(rows["y_true"], rows["y_score"]),
        **columns,
        adjacent=adjacent,
        k=5,
        n_resamples=300,
        random_state=0,
    )
    numbers = {key: getattr(test, key) for key in ("statistic", "pvalue")}
    return {**numbers, "critical": test.critical_value, "frame": test.to_frame()}


# Planning


def plans():
    """Yield plans without data, and curves of power with a pilot."""
    for n_tests in (1, 10):
        for name, plan in {
            "rates": planning.plan_rates(0.3, share=0.2, n_tests=n_tests),
            "two-rates": planning.plan_rates(
                *((0.3, 0.4),),
                share=0.3,
                n_items=4,
                queries_per_cluster=2,
                correlation=0.1,
                n_tests=n_tests,
            ),
            "clusters": planning.plan_rates(
                0.2, share=0.4, groups_of="clusters", n_tests=n_tests
            ),
            "pairs": planning.plan_pairs(
                0.7, rate=0.3, share=0.2, n_items=8, correlation=0.1, n_tests=n_tests
            ),
        }.items():
            yield f"plans/{name}/{n_tests}", partial(planned, plan)
    for known in ("known", "estimated"):
        yield f"plans/pilot/{known}", partial(piloted, known)


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


MAKERS = (curves, curves_with_weights, rankings, plans)
