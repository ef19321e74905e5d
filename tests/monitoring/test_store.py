"""Nothing that is stored is lost or counted twice, whatever ends the process."""

import json
from dataclasses import asdict

import pytest

from skrankfair._reports import exports
from skrankfair.monitoring import Monitor, _store

from .test_monitor import DAYS, decisions, monitored

HEAD = {"schema": _store.SCHEMA, "schema_version": 1}
SETTINGS = asdict(Monitor().settings)


@pytest.fixture(name="path")
def _path(tmp_path):
    path = tmp_path / "gap.jsonl"
    monitored([0.0] * 2, path)
    return path


def test_an_error_at_any_step_leaves_all_as_it_was(path, monkeypatch):
    before = path.read_bytes()
    for name in ("fsync", "open", "replace"):
        monitor = Monitor.open(path)

        def fail(*arguments, **options):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            if name == "fsync":
                patched.setattr(exports.os, "fsync", fail)
            else:
                patched.setattr(exports.Path, name, fail)
            with pytest.raises(OSError, match="No space left"):
                monitor.update(decisions(5), when=DAYS[5])
        assert path.read_bytes() == before
        assert list(path.parent.iterdir()) == [path]
        assert monitor.when == tuple(DAYS[:2])
        assert monitor.result().n_clusters == 800
    monitor.update(decisions(5), when=DAYS[5])
    assert Monitor.open(path).when == (*DAYS[:2], DAYS[5])


def test_another_process_has_added_the_day(path):
    one, other = Monitor.open(path), Monitor.open(path)
    other.update(decisions(2), when=DAYS[2])
    with pytest.raises(ValueError, match="is there already"):
        one.update(decisions(2), when=DAYS[2])
    assert one.when == tuple(DAYS[:3])


def test_text_stays_the_same(path):
    """What is read and written again is the same to the bit."""
    first = path.read_bytes()
    settings, days = _store.read(path)
    _store.write(path, settings, days)
    assert path.read_bytes() == first
    assert days[DAYS[0]] == decisions(0).to_json()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: [], "no store of a monitor"),
        (lambda lines: ["{}", *lines[1:]], "no store of a monitor"),
        (lambda lines: ["no", *lines[1:]], "no store of a monitor"),
        (
            lambda lines: [lines[0].replace('"alpha": 0.05', '"alpha": 7')],
            "alpha must",
        ),
        *(
            (lambda lines, head=head: [json.dumps(HEAD | head)], message)
            for head, message in (
                ({}, "must have settings, a dict of alpha, .*got None"),
                ({"settings": 3}, "must have settings, .*got 3"),
                ({"settings": {"alpha": 0.05}}, "must have settings"),
                ({"settings": SETTINGS | {"other": 1}}, "must have settings"),
                ({"settings": SETTINGS | {"margin": "a"}}, "margin must be a number"),
                ({"settings": SETTINGS | {"spec": 3}}, "spec must be a dict or None"),
            )
        ),
        (lambda lines: [*lines[:2], lines[2][:50]], "line 3: it is no day"),
        (lambda lines: [*lines, lines[1]], "line 4: 2026-01-01 is there twice"),
        (lambda lines: [*lines, "[]"], "line 4: it is no day"),
        (lambda lines: [*lines, '{"when": 3}'], "line 4: it is no day"),
        (
            lambda lines: [lines[0].replace('version": 1', 'version": 2'), *lines[1:]],
            r"gap.jsonl must have a schema_version from 1 to 1; got 2",
        ),
    ],
)
def test_what_is_no_store_is_said(path, change, message):
    lines = change(path.read_text(encoding="utf-8").splitlines())
    path.write_text("\n".join(lines), encoding="utf-8")
    for read in (Monitor.open, Monitor):
        with pytest.raises(ValueError, match=message):
            read(path)
