"""Fixtures of the command line."""

import pytest

from tests.cli.common import frame


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "scores.csv"
    frame().to_csv(path, index=False)
    return str(path)
