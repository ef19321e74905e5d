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
            ([], "required: {audit,compare,plan,monitor,demo}"),
            (["explain"], "invalid choice: 'explain'"),
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
        data = frame()
        data["region"] = data["region"].replace("south", "[red]south")
        data.to_csv(file, index=False)
        assert main(["audit", file, *FAST]) == 0
        captured = capsys.readouterr()
        assert "\x1b[" in captured.out
        assert "[red]south" in captured.out
        assert "auditing 600 rows" in captured.err

    def test_labels_that_it_cannot_show(self, file, monkeypatch):
        data = frame()
        data["region"] = data["region"].replace("south", "日本")
        data.to_csv(file, index=False)
        out = io.BytesIO()
        with io.TextIOWrapper(out, encoding="ascii", write_through=True) as stream:
            monkeypatch.setattr(sys, "stdout", stream)
            assert main(["audit", file, *FAST]) == 0
            assert b"??" in out.getvalue()
            monkeypatch.undo()

    def test_names_with_escapes_are_shown_as_text(self, file, tmp_path, capsys):
        line = complaint(["audit", "\x1b[31mred\x07.csv", *WHO], capsys)
        assert r"no file \x1b[31mred\x07.csv;" in line
        path = tmp_path / "\x1b[31mred.json"
        assert main(["audit", file, *FAST, "--json", str(path)]) == 0
        out = capsys.readouterr().out
        assert "\x1b" not in out
        assert r"\x1b[31mred.json" in out


@posix
class TestFaults:
    @pytest.mark.parametrize(
        ("fault", "status", "says"),
        [
            ("full", 1, "standard output cannot be written: No space left on device."),
            ("closed", 141, None),
        ],
    )
    def test_of_standard_output_leave_the_files(
        self, fault, status, says, file, tmp_path, monkeypatch, capsys
    ):
        path = tmp_path / "a.json"
        if fault == "full":
            if not Path("/dev/full").exists():
                pytest.skip("a full device is there on Linux only")
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

    def test_of_a_file_cost_neither_the_report_nor_the_other_file(
        self, file, tmp_path, capsys
    ):
        resource = pytest.importorskip("resource")
        html, numbers = tmp_path / "a.html", tmp_path / "a.json"
        html.write_text("old")
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (16_000, hard))
        try:
            outputs = ["--html", str(html), "--json", str(numbers)]
            assert main(["audit", file, *FAST, *outputs]) == 1
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        captured = capsys.readouterr()
        assert "=> " in captured.out
        assert captured.out.endswith(f"Written: {numbers}\n")
        (line,) = captured.err.splitlines()
        assert (
            line == f"skrankfair: --html {str(html)!r} is not written: File too large."
        )
        assert html.read_text() == "old"
        assert json.loads(numbers.read_text())["n_rows"] == 600
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {"a.html", "a.json", "scores.csv"}

    def test_too_little_memory(self, tmp_path, capsys):
        resource = pytest.importorskip("resource")
        if not Path("/proc/self/statm").exists():
            pytest.skip("the memory in use is known on Linux only")
        path = tmp_path / "large.csv"
        path.write_bytes(b"clicked,score,region,session\n" + b"1,2,a,1\n" * 4_000_000)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * os.sysconf("SC_PAGE_SIZE") + 10**8
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
        try:
            assert main(["audit", str(path), *WHO]) == 1
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("skrankfair: there is not enough memory")
        assert line.endswith("; audit fewer metrics, groups or rows at once.")


@posix
class TestPipes:
    def audited(self, path, capsys):
        assert main(["audit", path, *FAST]) == 0
        report, _ = capsys.readouterr().out.split("\n\nfile: ")
        return report

    @pytest.mark.parametrize("kind", ["csv", "parquet", "csv.gz"])
    def test_are_read_once(self, kind, file, tmp_path, capsys):
        path, fifo = tmp_path / f"b.{kind}", tmp_path / f"fifo.{kind}"
        if kind == "parquet":
            pytest.importorskip("pyarrow")
            frame().to_parquet(path)
        else:
            frame().to_csv(path, index=False)
        os.mkfifo(fifo)
        writer = threading.Thread(target=lambda: fifo.write_bytes(path.read_bytes()))
        writer.start()
        report = self.audited(str(fifo), capsys)
        writer.join(timeout=60)
        assert report == self.audited(file, capsys)

    def test_what_cannot_be_read_is_refused(self, tmp_path, capsys):
        line = complaint(["audit", "/dev/zero", *WHO], capsys)
        assert "is a terminal or another device" in line
        # An archive is not read from its beginning to its end.
        fifo = tmp_path / "ml.zip"
        os.mkfifo(fifo)
        line = complaint(["demo", "--data", str(fifo)], capsys)
        assert line.endswith("cannot be opened as either: it is a pipe or a device.")


def test_an_interrupt_is_a_status(monkeypatch, capsys):
    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setitem(COMMANDS, "audit", interrupted)
    assert main(["audit", "scores.csv", *WHO]) == 130
    assert capsys.readouterr() == ("", "")


@posix
def test_the_name_of_a_url_is_a_file(file, tmp_path, monkeypatch):
    folder = tmp_path / "http:" / "127.0.0.1:9"  # where no server answers
    folder.mkdir(parents=True)
    Path(file).rename(folder / "a.csv")
    monkeypatch.chdir(tmp_path)
    assert main(["audit", "http://127.0.0.1:9/a.csv", *FAST]) == 0


@posix
def test_a_process_of_its_own():
    done = subprocess.run(
        [sys.executable, "-m", "skrankfair", "audit", "nothing.csv", *WHO],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"skrankfair: There is no file nothing.csv; check the path.\n"
