"""What makes a fit of many groups fast."""

import pytest

from skrankfair.mitigation import _shrinkage


@pytest.fixture
def few_steps(monkeypatch):
    """End Newton's method and EM early, where fits are compared with each other."""
    monkeypatch.setattr(_shrinkage, "_NEWTON", 2)
    monkeypatch.setattr(_shrinkage, "_EM", 3)
