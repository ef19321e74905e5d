"""What the command line prints, and where it cannot: no fault is a traceback.

Faults are real ones of the system, not patched functions.
"""

import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import skrankfair
from skrankfair.__main__ import main
from skrankfair._cli.commands import COMMANDS
from tests.cli.common import FAST, REQUIRED, WHO, complaint, frame

posix = pytest.mark.skipif(sys.platform == "win32", reason="faults of POSIX")


class TestHelp:
    @pytest.mark.parametrize(
        "arguments", [[], ["audit"], ["compare"], ["plan"], ["monitor"], ["demo"]]
    )
    def test_help(self, arguments, capsys):
        assert main([*arguments, "--help"]) == 0
        out = capsys.readouterr().out
        assert "usage: skrankfair" in out
        assert "%%" not in out

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            ([], "required: command"),
            (["audit"], "required: FILE, --y-true, --y-score"),
            (["plan", "file", *REQUIRED], "required: --gap"),
            (["demo", "--data", "/no/such/place"], "/no/such/place"),
            (["demo", "--story", "hiring", "--data", "ml.zip"], "--data is for"),
        ],
    )
    def test_what_is_missing(self, arguments, says, capsys):
        assert says in complaint(arguments, capsys)

    @pytest.mark.parametrize("words", [["--help"], ["--version"], ["audit", "--help"]])
    def test_imports_nothing_large(self, words):
        code = (
            "import sys; from skrankfair.__main__ import main; "
            "main(sys.argv[1:]); print(*sys.modules)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            capture_output=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            text=True,
            check=True,
        )
        *said, modules = done.stdout.splitlines()
        assert not {"numpy", "pandas", "scipy", "sklearn"} & set(modules.split())
        if words == ["--version"]:
            assert said == [f"skrankfair {skrankfair.__version__}"]


class TestTerminal:
    def test_table_in_colour_and_progress(self, file, capsys, monkeypatch):
        pytest.importorskip("rich")
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setenv("COLUMNS", "100")
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
        frame().replace({"region": {"south": "[red]south"}}).to_csv(file, index=False)
        assert main(["audit", file, *FAST]) == 0
        captured = capsys.readouterr()
        assert "\x1b[" in captured.out
        assert "[red]south" in captured.out
        assert "auditing 600 rows" in captured.err

    def test_labels_that_it_cannot_show(self, file, monkeypatch):
        frame().replace({"region": {"south": "日本"}}).to_csv(file, index=False)
        out = io.BytesIO()
        with io.TextIOWrapper(out, encoding="ascii", write_through=True) as stream:
            monkeypatch.setattr(sys, "stdout", stream)
            assert main(["audit", file, *FAST]) == 0
            assert b"??" in out.getvalue()
            monkeypatch.undo()

    def test_names_with_escapes_are_shown_as_text(self, file, tmp_path, capsys):
        line = complaint(["audit", "\x1b[31mred\x07.csv", *WHO], capsys)
        assert r"\x1b[31mred\x07.csv cannot be opened" in line
        path = tmp_path / "\x1b[31mred.json"
        assert main(["audit", file, *FAST, "--json", str(path)]) == 0
        out = capsys.readouterr().out
        assert "\x1b" not in out
        assert r"\x1b[31mred.json" in out


@posix
@pytest.mark.parametrize(
    ("fault", "status", "says"),
    [
        ("full", 1, "standard output cannot be written: No space left on device."),
        ("closed", 141, None),
    ],
)
def test_of_standard_output_leave_the_files(
    fault, status, says, file, tmp_path, monkeypatch, capsys
):
    path = tmp_path / "a.json"
    if fault == "full":
        if not Path("/dev/full").exists():
            pytest.skip("a full device is there on Linux only")
        assert main(["audit", file, *FAST, "--json", "/dev/full"]) == status
        assert "skrankfair: /dev/full cannot be written" in capsys.readouterr().err
        writing = os.open("/dev/full", os.O_WRONLY)
    else:
        reading, writing = os.pipe()
        os.close(reading)
    with os.fdopen(writing, "w", encoding="utf-8") as opened:
        monkeypatch.setattr(sys, "stdout", opened)
        assert main(["audit", file, *FAST, "--json", str(path)]) == status
        opened.flush()  # as Python does when it exits
        monkeypatch.undo()
    assert json.loads(path.read_text())["n_rows"] == 600
    said = [f"skrankfair: {says}"] if says else []
    assert capsys.readouterr().err.splitlines() == said


@posix
@pytest.mark.parametrize("kind", ["csv", "parquet", "csv.gz"])
def test_pipes_are_read_once(kind, file, tmp_path, capsys):
    path, fifo = tmp_path / f"b.{kind}", tmp_path / f"fifo.{kind}"
    if kind == "parquet":
        pytest.importorskip("pyarrow")
        frame().to_parquet(path)
    else:
        frame().to_csv(path, index=False)
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_bytes(path.read_bytes()))
    writer.start()
    reports = []
    for name in (fifo, file):
        assert main(["audit", str(name), *FAST]) == 0
        reports.append(capsys.readouterr().out.partition("\n\nfile: ")[0])
    writer.join(timeout=60)
    assert reports[0] == reports[1]


def test_an_interrupt_is_a_status(monkeypatch, capsys):
    def interrupted(arguments, say):
        raise KeyboardInterrupt

    monkeypatch.setitem(COMMANDS, "audit", interrupted)
    assert main(["audit", "scores.csv", *WHO]) == 130
    assert capsys.readouterr() == ("", "")
