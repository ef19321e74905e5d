"""Whatever the metrics of scores are passed, a clear ValueError at most."""

import pytest

from skrankfair.metrics import calibration_error, positive_rate_shift, rank_shift
from tests.calls import GOOD
from tests.inputs.test_nasty_input import SIXTHS
from tests.seeds import one_in

COLUMNS = ("y_true", "y_score", "sensitive_features", "cluster", "sample_weight")
OF_CURVES = (*COLUMNS, "bandwidth", "kernel", "cluster_weight")
RESAMPLED = (*OF_CURVES, "n_resamples", "random_state")
OPTIONS = {
    calibration_error: ((*OF_CURVES, "method", "bins"), {}),
    positive_rate_shift: ((*RESAMPLED, "threshold"), {"threshold": 0.5}),
    rank_shift: ((*RESAMPLED, "qid", "average"), {"qid": GOOD["qid"]}),
}
ARGUMENTS = [(metric, name) for metric, (names, _) in OPTIONS.items() for name in names]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.filterwarnings("ignore:sensitive_features has 2 columns of the numbers")
@one_in(
    6,
    at_once=8,
    argument={f"{m.__name__}-{n}": (m, n) for m, n in ARGUMENTS},
    values=SIXTHS,
)
def test_nothing_but_a_value_error_escapes(argument, values):
    metric, name = argument
    wrong = []
    good = {key: GOOD[key] for key in ("y_true", "y_score", "sensitive_features")}
    good |= OPTIONS[metric][1]
    if name == "bins":
        good["method"] = "binned"
    if metric is not calibration_error:
        good["n_resamples"] = 3
    for label, value in values.items():
        if (name, label) == ("n_resamples", "1e308"):
            continue
        try:
            repr(metric(**{**good, name: value}))
        except ValueError as error:
            said = str(error)
            if name not in said or type(error) is not ValueError:
                wrong.append((label, repr(error)))
        except Exception as error:  # noqa: BLE001
            wrong.append((label, repr(error)))
    assert not wrong
