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


STATEMENTS = (
    "import skrankfair",
    "skrankfair.metrics.ndcg",
    "from skrankfair import *; audit, metrics.ndcg",
)


@pytest.fixture(scope="module", name="loaded")
def _loaded():
    """Modules that are loaded after each of the statements, in a new process."""
    program = ["import sys", *(f"{line}; print(*sys.modules)" for line in STATEMENTS)]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(program)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [line.split() for line in done.stdout.splitlines()]


def parts_of(modules):
    """The parts of the package among the modules."""
    return {name.split(".")[1] for name in modules if name.startswith("skrankfair.")}


class TestLazyNames:
    def test_importing_the_package_loads_nothing_else(self, loaded):
        assert parts_of(loaded[0]) == set()
        assert not {"numpy", "pandas", "sklearn"} & set(loaded[0])

    def test_modules_are_there_without_an_import_of_their_own(self, loaded):
        assert "metrics" in parts_of(loaded[1])
        assert not parts_of(loaded[1]) & {"display", "mitigation", "_reports", "_cli"}

    def test_no_name_needs_matplotlib(self, loaded):
        assert {"_reports", "display", "metrics"} <= parts_of(loaded[2])
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
        titles = re.findall(r"^(\w.*):$", text, re.MULTILINE)
        assert titles == ["System", "Python dependencies", "Optional dependencies"]

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
