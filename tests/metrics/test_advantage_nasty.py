"""Whatever the metrics of statistical parity are passed, a clear ValueError at most."""

import pytest

from skrankfair.metrics import (
    exposure_parity,
    ndkl,
    normalized_discounted_difference,
    normalized_discounted_kl,
    normalized_discounted_ratio,
    pairwise_parity,
    skew_at_k,
)

from ..calls import GOOD
from ..test_nasty_input import NASTY

BY_CUTS = ("step", "discount", "average", "normalize")
OPTIONS = {
    normalized_discounted_difference: BY_CUTS,
    normalized_discounted_ratio: (*BY_CUTS, "zero_division"),
    normalized_discounted_kl: (*BY_CUTS, "joint"),
    skew_at_k: ("k", "average"),
    ndkl: ("joint", "average"),
    exposure_parity: ("discount", "signed", "average"),
    pairwise_parity: ("signed", "average"),
}
COLUMNS = ("y_score", "sensitive_features", "qid", "cluster", "sample_weight")
DEFAULTS = {"step": 2, "k": 2}
ARGUMENTS = [
    (metric, name)
    for metric, options in OPTIONS.items()
    for name in (*COLUMNS, *options)
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize(
    ("metric", "name"), ARGUMENTS, ids=[f"{m.__name__}-{n}" for m, n in ARGUMENTS]
)
def test_nothing_but_a_value_error_escapes(metric, name):
    wrong = []
    good = {key: GOOD[key] for key in ("y_score", "sensitive_features", "qid")}
    good |= {key: DEFAULTS[key] for key in OPTIONS[metric] if key in DEFAULTS}
    for label, value in NASTY.items():
        try:
            repr(metric(None, **{**good, name: value}))
        except ValueError as error:
            said = str(error)
            if name not in said or type(error) is not ValueError:
                wrong.append((label, repr(error)))
        except Exception as error:  # noqa: BLE001
            wrong.append((label, repr(error)))
    assert not wrong


def test_y_true_is_not_looked_at():
    good = {key: GOOD[key] for key in ("y_score", "sensitive_features", "qid")}
    r = pairwise_parity(None, **good)
    assert (pairwise_parity("nothing to see", **good).estimate == r.estimate).all()
    with pytest.raises(ValueError, match="y_score must be given"):
        pairwise_parity(None, None, sensitive_features=["a"])
    with pytest.raises(ValueError, match="sensitive_features must be given"):
        pairwise_parity(None, [1, 2], sensitive_features=None)
