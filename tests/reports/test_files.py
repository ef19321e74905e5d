"""A file that is written is whole, or stays as it was."""

import json
import os
import stat
import sys
from contextlib import contextmanager

import pytest

from skrankfair import audit
from skrankfair._reports.exports import write_text

from .common import data, written

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")


@contextmanager
def small_disk():
    """Let no file grow beyond a thousand bytes, as on a disk that is full.

    Nor does the file that pytest's own output may go to: not for longer than needed.
    """
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_writes_utf8_with_plain_line_ends(tmp_path):
    path = tmp_path / "a.txt"
    assert write_text(str(path), "é\n") == path
    assert path.read_bytes() == b"\xc3\xa9\n"
    assert names(tmp_path) == ["a.txt"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with small_disk(), pytest.raises(OSError, match="too large"):
        write_text(path, "x" * 5000)
    assert path.read_text() == "old"
    with small_disk(), pytest.raises(OSError, match="too large"):
        write_text(tmp_path / "new.txt", "x" * 5000)
    assert names(tmp_path) == ["a.txt"]


def test_a_name_that_cannot_be_leaves_nothing(tmp_path):
    for path in (tmp_path / ("x" * 300), tmp_path / "nowhere" / "a.txt"):
        with pytest.raises(OSError, match="too long|No such file") as caught:
            write_text(path, "new")
        # Not that of the file beside it.
        assert caught.value.filename == str(path)
    assert names(tmp_path) == []


def test_an_interrupt_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def interrupted(number):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


@posix
def test_permissions_are_kept(tmp_path):
    path = tmp_path / "a.txt"
    mask = os.umask(0o027)
    try:
        write_text(path, "old")
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o604)
    write_text(path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    assert path.read_text() == "new"


@posix
def test_what_must_not_be_written_is_not_replaced(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("old")
    # The superuser may write everything.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


@posix
def test_links_are_followed(tmp_path):
    (tmp_path / "there").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "there" / "a.txt")
    for text in ("old", "new"):  # without and with a file at the other end
        write_text(link, text)
        assert link.is_symlink()
        assert (tmp_path / "there" / "a.txt").read_text() == text
    assert names(tmp_path / "there") == ["a.txt"]


@posix
def test_a_device_is_written_to():
    write_text("/dev/null", "text")
    assert not os.path.isfile("/dev/null")  # noqa: PTH113
    with pytest.raises(OSError, match="No space left"):
        write_text("/dev/full", "text")


def test_a_lone_surrogate_is_escaped(tmp_path):
    labels = ["a\ud800b", "c"]
    report = audit(**data(labels, n_queries=40), metrics="pairwise_exposure")
    text = report.to_json(tmp_path / "a.json").read_text("utf-8")
    assert [group["group"] for group in json.loads(text)["groups"]] == labels
    assert written(report, tmp_path).rstrip().endswith("</html>")
