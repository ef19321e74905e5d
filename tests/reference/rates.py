"""Rates of decisions, errors of scores and areas under curves, by loops over rows.

From the definitions: Hardt, Price and Srebro 2016 (error rates), Brier 1950, and Hanley
and McNeil 1982 (the area under the curve as a share of pairs).
"""

import math

from tests.reference._common import NAN


def _share(numerator, denominator):
    return NAN if denominator == 0 else numerator / denominator


def confusion(y, d, rows, w=None):
    """Weights of true positives, false positives, false and true negatives."""
    cells = dict.fromkeys(("tp", "fp", "fn", "tn"), 0.0)
    for row in rows:
        right = "t" if y[row] == d[row] else "f"
        kind = "p" if d[row] == 1 else "n"
        cells[right + kind] += 1 if w is None else w[row]
    return cells


def rates(y, d, rows, w=None):
    """Every rate of the decisions of some rows, by name; NaN where undefined."""
    c = confusion(y, d, rows, w)
    everyone = c["tp"] + c["fp"] + c["fn"] + c["tn"]
    positive, negative = c["tp"] + c["fn"], c["fp"] + c["tn"]
    sensitivity = _share(c["tp"], positive)
    specificity = _share(c["tn"], negative)
    return {
        "selection_rate": _share(c["tp"] + c["fp"], everyone),
        "true_positive_rate": sensitivity,
        "false_negative_rate": _share(c["fn"], positive),
        "false_positive_rate": _share(c["fp"], negative),
        "true_negative_rate": specificity,
        "precision": _share(c["tp"], c["tp"] + c["fp"]),
        "accuracy": _share(c["tp"] + c["tn"], everyone),
        "balanced_accuracy": (sensitivity + specificity) / 2,
        "f1": _share(2 * c["tp"], 2 * c["tp"] + c["fp"] + c["fn"]),
    }


def errors(y, s, rows, w=None):
    """Mean errors of the scores of some rows, by name."""
    names = ("brier_score", "mean_squared_error", "mean_absolute_error", "log_loss")
    sums = dict.fromkeys((*names, "calibration_in_the_large"), 0.0)
    total = 0.0
    for row in rows:
        weight = 1 if w is None else w[row]
        total += weight
        squared = (y[row] - s[row]) ** 2
        sums["brier_score"] += weight * squared
        sums["mean_squared_error"] += weight * squared
        sums["calibration_in_the_large"] += weight * (y[row] - s[row])
        sums["mean_absolute_error"] += weight * abs(y[row] - s[row])
        p = min(max(s[row], 2.0**-52), 1 - 2.0**-52)
        sums["log_loss"] -= weight * (
            y[row] * math.log(p) + (1 - y[row]) * math.log(1 - p)
        )
    return {name: _share(value, total) for name, value in sums.items()}


def mean_without(values, cluster, value_of):
    """Jackknife variance of ``value_of(rows)`` over the clusters of the rows.

    `values` are the rows of the group; clusters without such rows do not count.
    """
    labels = sorted({cluster[row] for row in values})
    whole = value_of(values)
    total = 0.0
    for label in labels:
        left = [row for row in values if cluster[row] != label]
        total += (value_of(left) - whole) ** 2
    return (len(labels) - 1) / len(labels) * total
