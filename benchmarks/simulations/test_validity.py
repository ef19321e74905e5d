"""Promises of docs/validity.md on a few data sets of each of its hard designs.

`benchmarks/validity.py` draws a thousand data sets of every design.
"""

import pytest

from benchmarks.simulations.common import tolerance
from benchmarks.validity import ENOUGH, STUDIES, Cell

pytestmark = pytest.mark.simulation

HARD = ("equal10", "power40", "dominant", "rare", "users", "weights", "list200_10")
CURVES = ("straight", "steep", "small", "clusters20")
LIMITS = {"size": 0.065, "cover": 0.07}


@pytest.mark.parametrize(
    ("study", "key", "n_data"),
    [
        *(("ranking", key, 18 if key == "rare" else 45) for key in HARD),
        *((study, key, 45) for study in ("curve", "calibration") for key in CURVES),
    ],
)
def test_promises_hold(study, key, n_data):
    truth_of, measure, _ = STUDIES[study]
    measured = measure(key, truth_of(key), range(n_data))
    wrong = {}
    for name in {name for found in measured for name in found}:
        cell = Cell.of([found[name] for found in measured if name in found])
        limit = LIMITS.get(name.split()[0], 1.0)
        known = max(cell.count * (1 - cell.undefined), 1)
        if cell.effective >= ENOUGH and cell.wrong > limit + tolerance(limit, known):
            wrong[name] = cell
    assert not wrong
