"""Full disks, readers that go away, signals and pipes give no traceback.

Faults are real ones of the system, not patched functions.
"""

import contextlib
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from skrankfair.__main__ import main
from tests.cli.test_cli import WHO, complaint, frame, run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="faults of POSIX")

FAST = [*WHO, "--metrics", "pairwise_exposure"]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "scores.csv"
    frame().to_csv(path, index=False)
    return str(path)


@contextlib.contextmanager
def standard(name, target, monkeypatch):
    """Put a file of the system in the place of a standard stream."""
    with open(target, "w", encoding="utf-8") as opened:  # noqa: PTH123
        monkeypatch.setattr(sys, name, opened)
        yield
        # As Python does when it exits.
        opened.flush()
    monkeypatch.undo()


def lines(text):
    """Return lines, none of which is of a traceback."""
    assert "Traceback" not in text
    assert "Exception ignored" not in text
    return text.splitlines()


class TestFullDisk:
    def test_printing_to_it_still_writes_the_files(
        self, file, tmp_path, monkeypatch, capsys
    ):
        path = tmp_path / "a.json"
        with standard("stdout", "/dev/full", monkeypatch):
            assert main(["audit", file, *FAST, "--json", str(path)]) == 1
        (line,) = lines(capsys.readouterr().err)
        assert line == (
            "skrankfair: standard output cannot be written: No space left on device."
        )
        assert json.loads(path.read_text())["n_rows"] == 600

    def test_a_failed_file_costs_neither_the_report_nor_the_other_file(
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
        (line,) = lines(captured.err)
        assert (
            line == f"skrankfair: --html {str(html)!r} is not written: File too large."
        )
        assert html.read_text() == "old"
        assert json.loads(numbers.read_text())["n_rows"] == 600
        assert sorted(os.listdir(tmp_path)) == ["a.html", "a.json", "scores.csv"]  # noqa: PTH208

    def test_help(self, monkeypatch, capsys):
        with standard("stdout", "/dev/full", monkeypatch):
            assert main(["--help"]) == 1
        assert len(lines(capsys.readouterr().err)) == 1

    def test_complaints_to_it_are_left_unsaid(self, monkeypatch):
        with standard("stderr", "/dev/full", monkeypatch):
            assert main(["audit", "nothing.csv", *WHO]) == 2


def test_reader_that_goes_away_still_leaves_the_files(
    file, tmp_path, monkeypatch, capsys
):
    path = tmp_path / "a.json"
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", encoding="utf-8") as opened:
        monkeypatch.setattr(sys, "stdout", opened)
        assert main(["audit", file, *FAST, "--json", str(path)]) == 141
        monkeypatch.undo()
    assert json.loads(path.read_text())["n_rows"] == 600
    assert lines(capsys.readouterr().err) == []


class TestSameFile:
    @pytest.mark.parametrize("there", [False, True])
    def test_html_and_json(self, there, tmp_path, capsys, monkeypatch):
        path = tmp_path / "a"
        if there:
            path.write_text("old")
        (tmp_path / "link").symlink_to(tmp_path)
        (tmp_path / "folder").mkdir()
        monkeypatch.chdir(tmp_path)
        for other in ("a", "./a", str(path), "link/a", "folder/../a"):
            # Before anything is read.
            outputs = ["--html", other, "--json", "a"]
            line = complaint(["audit", "nothing.csv", *WHO, *outputs], capsys)
            assert "--html and --json are the same file" in line
        assert path.exists() == there

    def test_data_of_the_demo(self, tmp_path, capsys):
        path = tmp_path / "ml.zip"
        path.write_bytes(b"data")
        line = complaint(["demo", "--data", str(path), "--json", str(path)], capsys)
        assert "would overwrite the input" in line
        assert path.read_bytes() == b"data"


class TestPipes:
    def audited(self, path, capsys):
        assert main(["audit", path, *FAST]) == 0
        report, _ = capsys.readouterr().out.split("\n\nfile: ")
        return report

    @pytest.mark.parametrize("kind", ["csv", "parquet", "csv.gz"])
    def test_are_read_once(self, kind, file, tmp_path, capsys):
        path, fifo = tmp_path / f"b.{kind}", tmp_path / f"fifo.{kind}"
        data = frame()
        if kind == "parquet":
            pytest.importorskip("pyarrow")
            data.to_parquet(path)
        else:
            data.to_csv(path, index=False)
        os.mkfifo(fifo)
        writer = threading.Thread(target=lambda: fifo.write_bytes(path.read_bytes()))
        writer.start()
        found = self.audited(str(fifo), capsys)
        writer.join(timeout=60)
        assert found == self.audited(file, capsys)

    def test_descriptor(self, file, capsys):
        """As a process substitution of the shell, and /dev/stdin."""
        reading, writing = os.pipe()
        content = Path(file).read_bytes()

        def write():
            with os.fdopen(writing, "wb") as opened:
                opened.write(content)

        writer = threading.Thread(target=write)
        writer.start()
        found = self.audited(f"/dev/fd/{reading}", capsys)
        writer.join(timeout=60)
        os.close(reading)
        assert found == self.audited(file, capsys)

    def test_wrong_content_is_one_line(self, tmp_path, capsys):
        fifo = tmp_path / "fifo"
        for content, says in ((b"", "is empty"), (b"a\n1\n", "has no column")):
            os.mkfifo(fifo)
            writer = threading.Thread(target=fifo.write_bytes, args=(content,))
            writer.start()
            assert says in complaint(["audit", str(fifo), *WHO], capsys)
            writer.join(timeout=60)
            fifo.unlink()

    def test_what_cannot_be_read_is_refused(self, tmp_path, capsys):
        line = complaint(["audit", "/dev/zero", *WHO], capsys)
        assert "is a terminal or another device" in line
        # An archive is not read from its beginning to its end.
        fifo = tmp_path / "ml.zip"
        os.mkfifo(fifo)
        line = complaint(["demo", "--data", str(fifo)], capsys)
        assert line.endswith("cannot be opened as either: it is a pipe or a device.")


class TestNames:
    def test_of_a_url_is_a_file(self, file, tmp_path, monkeypatch, capsys):
        asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                self.send_error(404)

        with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
            serving = threading.Thread(target=server.serve_forever, args=(0.01,))
            serving.start()
            place = f"127.0.0.1:{server.server_port}"
            folder = tmp_path / "http:" / place
            folder.mkdir(parents=True)
            (folder / "a.csv").write_bytes(Path(file).read_bytes())
            kinds = ["csv"]
            with contextlib.suppress(ImportError):
                frame().to_parquet(folder / "a.parquet")
                kinds.append("parquet")
            monkeypatch.chdir(tmp_path)
            statuses = [
                main(["audit", f"http://{place}/a.{kind}", *FAST]) for kind in kinds
            ]
            missing = complaint_of(["audit", f"http://{place}/b.csv", *FAST], capsys)
            server.shutdown()
            serving.join(timeout=60)
        assert statuses == [0] * len(kinds)
        assert "There is no file" in missing
        assert asked == []

    def test_with_escapes_are_shown_as_text(self, file, tmp_path, capsys):
        line = complaint(["audit", "\x1b[31mred\x07.csv", *WHO], capsys)
        assert r"no file \x1b[31mred\x07.csv;" in line
        path = tmp_path / "\x1b[31mred.json"
        assert main(["audit", file, *FAST, "--json", str(path)]) == 0
        out = capsys.readouterr().out
        assert "\x1b" not in out
        assert r"\x1b[31mred.json" in out


class TestMemory:
    @pytest.fixture
    def little_memory(self):
        resource = pytest.importorskip("resource")
        if not Path("/proc/self/statm").exists():
            pytest.skip("the memory in use is known on Linux only")
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        yield lambda: resource.setrlimit(resource.RLIMIT_AS, (in_use() + 10**8, hard))
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))

    def test_large_table(self, tmp_path, capsys, little_memory):
        path = tmp_path / "large.csv"
        path.write_bytes(b"clicked,score,region,session\n" + b"1,2,a,1\n" * 4_000_000)
        little_memory()
        assert main(["audit", str(path), *WHO]) == 1
        self.check(capsys)

    def check(self, capsys):
        (line,) = lines(capsys.readouterr().err)
        assert line.startswith("skrankfair: there is not enough memory")
        assert line.endswith("; audit fewer metrics, groups or rows at once.")


def in_use():
    """Return the bytes of the address space that are taken."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_an_interrupt_of_a_caller_in_python_is_a_status(tmp_path, capsys):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    interrupted = threading.Event()

    def interrupt():
        with fifo.open("wb"):  # which stays open: without an end there is no empty file
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            interrupted.wait(timeout=60)

    writer = threading.Thread(target=interrupt)
    writer.start()
    assert main(["audit", str(fifo), *WHO]) == 130
    interrupted.set()
    writer.join(timeout=60)
    assert capsys.readouterr() == ("", "")


def test_help_and_version_import_nothing_large():
    code = (
        "import sys; from skrankfair.__main__ import main; "
        "main(sys.argv[1:]); print(*sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for words in (["--help"], ["--version"], ["audit", "--help"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            capture_output=True,
            env=environment,
            text=True,
            check=True,
        )
        modules = set(done.stdout.splitlines()[-1].split())
        assert not {"numpy", "pandas", "scipy", "sklearn"} & modules


@pytest.mark.skipif(sys.platform != "linux", reason="watches the process in /proc")
@pytest.mark.parametrize("loaded", ["", "numpy"])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_signals_end_imports_silently(name, loaded, file, tmp_path):
    """When they begin, and among them."""
    process = run("audit", file, *FAST, "--json", str(tmp_path / "a.json"))
    caught, maps = (
        Path(f"/proc/{process.pid}/{which}") for which in ("status", "maps")
    )
    await_(process, lambda: 1 << (signal.SIGTERM - 1) & mask(caught, "SigCgt"))
    await_(process, lambda: loaded in maps.read_text())
    number = signal.Signals[name]
    process.send_signal(number)
    assert process.communicate(timeout=120) == (b"", b"")
    assert process.returncode == 128 + number
    assert [path.name for path in tmp_path.iterdir()] == ["scores.csv"]


def await_(process, happened):
    """Wait until something has happened in a process that is still running."""
    while True:
        assert process.poll() is None, process.stderr.read()
        with contextlib.suppress(OSError):
            if happened():
                return
        time.sleep(0.001)


def mask(path, name):
    """Return a set of signals in the status of a process."""
    lines = path.read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1], 16)


def complaint_of(arguments, capsys):
    capsys.readouterr()
    return complaint(arguments, capsys)
