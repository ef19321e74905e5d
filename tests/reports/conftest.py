"""The audit that most tests of reports look at."""

import pytest

from skrankfair import audit

from .common import data


@pytest.fixture(scope="session")
def report():
    return audit(**data())
