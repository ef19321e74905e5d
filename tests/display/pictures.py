"""One picture of each kind, of results that are made up."""

from itertools import pairwise
from types import SimpleNamespace as Result

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from skrankfair.display import (
    CalibrationByGroupDisplay,
    FairnessTradeoffDisplay,
    GroupEstimatesDisplay,
)
from skrankfair.display._calibration import (
    GroupCalibratorDisplay,
    PredictiveParityDisplay,
)
from skrankfair.display._curves import (
    MatchedPairCurveDisplay,
    MonitorDisplay,
    MonotonicityDisplay,
    PowerCurveDisplay,
)
from skrankfair.display._mitigation import BeforeAfterDisplay, MitigationDisplay
from skrankfair.display._rows import MarginalOutcomeDisplay, OutcomeInequalityDisplay

LEVEL = {"confidence_level": 0.95}
FIVE = ("Action", "Children's", "Film-Noir", "Science fiction and fantasy", "Western")


def waves(n, n_points, reach=0.1):
    """Curves between 0 and 1, with the ends of their bands."""
    x = np.linspace(0.02, 0.98, n_points)
    y = np.stack([np.clip(x ** (1 + i / 8), 0, 1) for i in range(n)])
    low, high = (np.clip(y + side * reach, 0, 1) for side in (-1, 1))
    return x, y, low, high


def outcomes_of(labels=("a", "b"), n=800):
    """Return outcomes, scores and groups of rows; the mean outcome is the square."""
    rng = np.random.default_rng(0)
    group = np.array(list(labels), dtype=object)[rng.integers(0, len(labels), n)]
    s = rng.random(n)
    return (rng.random(n) < s**2).astype(float), s, group


def ends_of(band):
    """Return the lower and the upper ends of a band, shape (2, J)."""
    points = band.get_paths()[0].vertices
    by_x = [points[points[:, 0] == x, 1] for x in np.unique(points[:, 0])]
    return np.array([[part.min() for part in by_x], [part.max() for part in by_x]])


def legend(display):
    """Return the texts of a legend."""
    return [text.get_text() for text in display.legend_.get_texts()]


def forest(groups=FIVE, **options):
    n = len(groups)
    y = np.linspace(0.3, 0.7, n)
    options = {"fair_value": 0.5, "name": "pairwise exposure", **options}
    p = options.pop("pvalue", np.linspace(0.001, 0.1, n))
    return GroupEstimatesDisplay(groups, y, y - 0.05, y + 0.05, pvalue=p, **options)


def calibration(groups=FIVE):
    x, y, low, high = waves(len(groups), 50)
    bars = np.ones((len(groups), 40))
    return CalibrationByGroupDisplay(x, groups, y, low, high, bars=bars)


def parity(groups=FIVE):
    x, y, low, high = waves(len(groups), 50)
    pairs = [(a, b) for i, a in enumerate(groups) for b in groups[:i]]
    d = np.zeros((len(pairs), x.size))
    test = {"grid": x, "groups": groups, "curves": y, "contrasts": pairs}
    test |= {"curve_band": lambda kind: (low, high), "difference": d}
    test |= {"band": lambda kind: (d - 0.1, d + 0.1), "range": (0.0, 1.0)}
    test |= {"rejected": np.tile(x > 0.6, (len(pairs), 1)), "pvalue": 0.00123}
    test |= {"bars": np.ones((len(groups), 40)), "parameters": LEVEL}
    return PredictiveParityDisplay(Result(**test))


def matched(groups=FIVE):
    _, y, low, high = waves(len(groups), 12)
    curve = Result(
        groups=groups,
        epsilon=np.geomspace(0.01, 0.9, 12),
        estimate=y.T,
        confidence_interval=lambda level: (low.T, high.T),
    )
    return MatchedPairCurveDisplay(curve)


def moved(groups=FIVE):
    n = len(groups)
    y, p = np.linspace(-0.2, 0.2, n), np.linspace(0.001, 0.1, n)
    verdicts = ["closer to fair", "further from fair"] + ["no change"] * (n - 2)
    table = {"metric": ["inter-group accuracy"] * n, "group": list(groups)}
    table |= {"before": y, "after": y / 3, "change": -2 * y / 3, "verdict": verdicts}
    table |= {"ci_low": -2 * y / 3 - 0.05, "ci_high": -2 * y / 3 + 0.05}
    return table | {"pvalue_corrected": p, "pvalue_before": p, "pvalue_after": 2 * p}


def mitigation(groups=FIVE):
    costs = pd.DataFrame({"metric": ["NDCG", "AUC", "mean squared error"]})
    costs["before"], costs["change"] = [0.8, 0.7, 900.0], [-0.01, -0.002, 1500.0]
    costs["after"] = costs["before"] + costs["change"]
    costs["ci_low"], costs["ci_high"] = 1.2 * costs["change"], 0.8 * costs["change"]
    costs["pvalue_corrected"] = 0.01
    return MitigationDisplay(pd.DataFrame(moved(groups)), costs)


def before_after(groups=FIVE):
    table = moved(groups)
    pvalues = {name: table[name] for name in ("pvalue_before", "pvalue_after")}
    name = "largest difference of outcomes at equal scores"
    both = table["before"], table["after"]
    return BeforeAfterDisplay(groups, *both, name=name, **pvalues)


def marginal(groups=FIVE):
    y = np.linspace(0.5, 0.7, len(groups))
    test = {"groups": groups, "outcomes": y, "threshold": 0.6, "pvalue": 0.00123}
    test |= {"outcome_interval": lambda level: (y - 0.1, y + 0.1)}
    test |= {"inframarginal": Result(estimate=y + 0.15), "parameters": LEVEL}
    return MarginalOutcomeDisplay(Result(**test))


def monitor(groups=FIVE):
    days = np.arange("2026-01-01", "2026-03-01", dtype="datetime64[D]")
    _, y, low, high = waves(len(groups), days.size)
    frames = [
        pd.DataFrame({"when": days.astype(str), "group": group, "gap": y[i]}).assign(
            gap_low=low[i], gap_high=high[i]
        )
        for i, group in enumerate(groups)
    ]
    seen = Result(
        groups=groups,
        settings=Result(margin=0.05),
        result=lambda last: Result(name="pairwise_accuracy"),
        to_frame=lambda: pd.concat(frames),
        alarms=[Result(group=groups[0], when=str(days[30]))],
    )
    return MonitorDisplay(seen)


def monotonicity(groups=FIVE, **changes):
    _, (y,), (low,), (high,) = waves(1, 20)
    test = {"position": np.arange(1, 21), "fit": y, "band_low": low, "band_high": high}
    test["share"] = y + np.where(np.arange(20) == 7, 0.3, 0.02)
    test |= {"pvalue": 0.003, "rejected": True, "confidence_level": 0.95}
    test |= {"group": groups[-2], "group_share": 0.5}
    return MonotonicityDisplay(Result(**test | changes))


def inequality(groups=FIVE, violation=None):
    pairs = [*pairwise(groups)] * 6  # more than are shown
    if violation is None:
        violation = np.linspace(5, -1, len(pairs))
    test = Result(
        groups=pairs,
        positions=[(1, 2)] * len(pairs),
        violation=np.asarray(violation),
        critical_value=2.871,
    )
    return OutcomeInequalityDisplay(test)


def power(groups=FIVE):
    n = np.geomspace(100, 1e5, 30)
    p = np.stack([[1 - np.exp(-n * g / 1e4) for g in (1, 3)]] * len(groups))
    curve = Result(groups=groups, gaps=[0.02, 0.05], n_clusters=n, power=p, pilot=600)
    return PowerCurveDisplay(curve)


def tradeoff(groups=FIVE):
    y, x = np.random.default_rng(0).random((2, 30))
    return FairnessTradeoffDisplay(
        np.append(y, np.nan),
        np.append(x, 1.0),
        on_front=np.arange(31) < 5,
        chosen=6,
        bound=0.3,
        objective_name="mean ndcg of the queries",
        disparity_name="neg_pairwise_accuracy_difference",
        chosen_name=f"alpha=0.1, fairness_weight=10, max_depth=5, groups={groups[0]}",
    )


class Calibrator(BaseEstimator):
    """What the picture of a fitted calibrator asks for."""

    def fit(self, groups):
        x, y, *_ = waves(len(groups), 20)
        curves = [Result(curves=[Result(knots=(x, row))]) for row in y]
        self.groups_ = groups
        self.calibrators_ = dict(zip(groups, curves, strict=True))
        self.pooled_calibrator_ = curves[0]
        return self


def calibrator(groups=FIVE):
    return GroupCalibratorDisplay(Calibrator().fit(groups))


PICTURES = (
    *(before_after, calibration, calibrator, forest, inequality, marginal, matched),
    *(mitigation, monitor, monotonicity, parity, power, tradeoff),
)
DISPLAYS = {type(picture()).__name__: picture for picture in PICTURES}
