"""Promises of docs/validity.md on a few data sets of each of its hard designs.

`benchmarks/validity.py` draws a thousand data sets of every design.
"""

import pytest

from benchmarks.simulations.common import tolerance
from benchmarks.validity import ENOUGH, STUDIES, Cell

pytestmark = pytest.mark.simulation

HARD = ("equal10", "dominant", "weights", "list200_10")
HARDER = ("power40", "users", "rare")
CURVES, EASIER = ("small", "clusters20"), ("straight", "steep")
LIMITS = {"size": 0.065, "cover": 0.07}


def data_sets():
    """Yield study, design and number of data sets; the longest are run by hand."""
    for study, keys, long in (
        ("ranking", HARD, HARDER),
        ("curve", CURVES, EASIER),
        ("calibration", CURVES, EASIER),
    ):
        for key in (*keys, *long):
            n_data = 18 if key == "rare" else 45
            marks = pytest.mark.study if key in long else ()
            yield pytest.param(study, key, n_data, marks=marks)


@pytest.mark.parametrize(("study", "key", "n_data"), list(data_sets()))
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
