"""What is public is documented: an example, and a place in the API reference."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
MODULES = (
    "skrankfair",
    "skrankfair.datasets",
    "skrankfair.display",
    "skrankfair.inference",
    "skrankfair.metrics",
    "skrankfair.mitigation",
    "skrankfair.model_selection",
    "skrankfair.rankers",
    "skrankfair.scoring",
    "skrankfair.smoothing",
)


def documented_names():
    """Full names of what the API reference lists."""
    module, names = "", []
    for line in (DOCS / "api.rst").read_text(encoding="utf-8").splitlines():
        if found := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = found[1]
        elif found := re.match(r"   ([A-Za-z_]\w*)$", line):
            names.append(f"{module}.{found[1]}")
    return names


def public_objects():
    """Names and objects of what the modules export, each once, modules left out."""
    found = {}
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value):
                found.setdefault(value, f"{module.__name__}.{name}")
    return [(name, value) for value, name in found.items()]


PUBLIC = public_objects()
FUNCTIONS = [(name, value) for name, value in PUBLIC if inspect.isfunction(value)]


def test_every_subpackage_is_looked_at():
    package = DOCS.parent / "skrankfair"
    found = {
        f"skrankfair.{file.parent.name}" for file in package.glob("[!_]*/__init__.py")
    }
    assert found <= set(MODULES)


@pytest.mark.parametrize(("name", "value"), PUBLIC, ids=[name for name, _ in PUBLIC])
def test_is_in_the_api_reference(name, value):
    listed = [
        getattr(importlib.import_module(module), attribute)
        for module, _, attribute in (n.rpartition(".") for n in documented_names())
    ]
    assert value in listed


@pytest.mark.parametrize(
    ("name", "value"), FUNCTIONS, ids=[name for name, _ in FUNCTIONS]
)
def test_function_has_an_example_that_runs(name, value):
    assert ">>>" in value.__doc__
