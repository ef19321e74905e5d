"""Pictures without a screen, and none is left open."""

import matplotlib as mpl
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")
