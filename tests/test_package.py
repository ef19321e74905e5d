"""The package as a whole: what it has, when it is imported, and in which versions."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
import sklearn

import skrankfair

ROOT = Path(__file__).parents[1]


def parts_of(modules):
    """The parts of the package among the modules."""
    return {name.split(".")[1] for name in modules if name.startswith("skrankfair.")}


class TestLazyNames:
    def test_a_name_loads_its_part_alone(self):
        statements = (
            "import skrankfair",
            "skrankfair.metrics.ndcg",
            "from skrankfair import *; audit",
        )
        program = [
            "import sys",
            *(f"{line}; print(*sys.modules)" for line in statements),
        ]
        command = [sys.executable, "-c", "\n".join(program)]
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=True
        )
        loaded = [set(line.split()) for line in done.stdout.splitlines()]
        nothing, metrics, everything = map(parts_of, loaded)
        assert nothing == set()
        assert not {"numpy", "pandas", "sklearn"} & loaded[0]
        assert "metrics" in metrics
        assert not metrics & {"display", "mitigation", "_reports", "_cli"}
        assert {"_reports", "display", "metrics"} <= everything
        assert "matplotlib" not in loaded[2]

    @pytest.mark.parametrize("name", skrankfair.__all__)
    def test_every_name_is_reached_and_listed(self, name):
        assert getattr(skrankfair, name) is getattr(skrankfair, name)
        assert name in vars(skrankfair)
        assert name in dir(skrankfair)

    def test_every_public_module_is_reached(self):
        files = (ROOT / "skrankfair").glob("[!_]*")
        assert {file.stem for file in files} <= {*skrankfair.__all__, "py"}

    def test_unknown_names(self):
        with pytest.raises(
            AttributeError, match="module 'skrankfair' has no attr.*'x'"
        ):
            _ = skrankfair.x
        with pytest.raises(ImportError, match="cannot import name 'x'"):
            from skrankfair import x  # noqa: F401


class TestShowVersions:
    def test_says_what_is_installed(self, capsys):
        skrankfair.show_versions()
        text = capsys.readouterr().out
        assert re.search(rf"scikit-learn: {re.escape(sklearn.__version__)}\n", text)
        assert re.search(rf"executable: {re.escape(sys.executable)}\n", text)

    def test_knows_all_dependencies(self, capsys, monkeypatch):
        monkeypatch.setattr("skrankfair._cli.terminal.version", not_installed)
        skrankfair.show_versions()
        printed = set(re.findall(r"(\S+): None", capsys.readouterr().out))
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        extras = project["optional-dependencies"]
        used = [*project["dependencies"], *extras["report"], *extras["duckdb"]]
        assert {re.match(r"[\w-]+", text)[0] for text in used} <= printed
        assert "sphinx" not in printed


def not_installed(name):
    raise PackageNotFoundError(name)
