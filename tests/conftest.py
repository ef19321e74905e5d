"""What holds for all tests."""

import gc
import os
import signal
import sys

import pytest

# Before NumPy is imported. The suite runs one process per core, and its problems are
# small: threads of linear algebra would only wait for each other, and double its time.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

# Tests start many processes: where Python writes no bytecode, each would compile all.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Nothing that is collected becomes garbage; looking for it takes a quarter of the time.
gc.disable()
_collect = gc.collect


@pytest.fixture(autouse=True, scope="session")
def interrupts_are_heard():
    """Undo that shells let what runs in the background ignore interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pytest_collection_finish():
    """Leave the thousands of tests, which stay, out of the collections of garbage.

    Those that statsmodels asks for in each correction by Holm would take ten seconds.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()
    gc.collect = lambda generation=2: 0


def pytest_unconfigure():
    """Let what is left be collected when Python ends, which some bindings check."""
    gc.collect = _collect
    gc.unfreeze()
