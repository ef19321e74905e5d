"""Files that are audited part by part, by the command line."""

import pandas as pd
import pytest

from skrankfair.__main__ import main
from skrankfair._cli import stream

from ..distributed.logs import click_log
from . import common
from .common import complaint

COLUMNS = ["--y-true", "y", "--y-score", "s", "--sensitive-features", "g", "--qid", "q"]


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory):
    folder, log = tmp_path_factory.mktemp("log"), click_log()
    log = log.assign(a=log.index % 2 == 0, b=log["y"] > 0, l=[["a"]] * len(log))
    log["g,1"] = log["g"]
    german = {"index": False, "sep": ";", "decimal": ","}
    log.rename(columns=" {} ".format).to_csv(folder / "german.csv", **german)
    log[:900].to_parquet(folder / "1.parquet")
    log[900:].to_parquet(folder / "2.parquet")
    log.to_csv(folder / "all.csv", index=False)
    return folder


def numbers(arguments, tmp_path):
    """Return groups, counts and results of an audit."""
    found = common.numbers(["audit", *COLUMNS, *arguments], tmp_path)
    kept = ("n_rows", "n_queries", "n_clusters", "n_items", "groups", "headline")
    kept += ("by", "overlapping")
    return {name: found[name] for name in kept}, pd.DataFrame(
        [row for metric in found["metrics"] for row in metric["groups"]]
    )


def test_several_files_are_one_data_set(folder, tmp_path, monkeypatch):
    rest = ["--cluster", "u", "--metrics", "pairwise_exposure,inter_group_accuracy"]
    rest += ["--sensitive-features", '"g,1"']
    facts, expected = numbers([str(folder / "all.csv"), *rest], tmp_path)
    options = ["--memory", "1GB", "--jobs", "1", "--temp-directory", str(tmp_path)]
    assert numbers([str(folder / "german.csv"), *rest], tmp_path)[0] == facts
    for path in (folder / "*.parquet", folder / "all.csv", folder / "german.csv"):
        found = numbers([str(path), *rest, *options], tmp_path)
        assert found[0] == facts
        pd.testing.assert_frame_equal(found[1], expected, rtol=1e-9)
    overlap = [str(folder / "all.csv"), *rest, "--sensitive-features", "a,b"]
    assert numbers([*overlap, *options], tmp_path)[0] == numbers(overlap, tmp_path)[0]
    # One that is too large needs no option.
    monkeypatch.setattr(stream, "memory_limit", lambda: 1000.0)
    monkeypatch.setattr("skrankfair._cli.input.read_arguments", None)
    found = numbers([str(folder / "all.csv"), *rest], tmp_path)
    assert found[0] == facts
    assert [path.name for path in tmp_path.iterdir()] == ["numbers.json"]


def test_every_command_takes_a_pattern(folder, tmp_path, capsys):
    rest = [*COLUMNS, "--metrics", "inter_group_accuracy"]
    printed = []
    for path in map(str, (folder / "all.csv", folder / "*.parquet")):
        store = str(tmp_path / f"{len(printed)}.jsonl")
        metric = [*COLUMNS, "--metric", "inter_group_accuracy"]
        for arguments in (
            ["plan", path, *rest, "--gap", "0.1"],
            ["monitor", store, "--add", path, "--when", "2026-01-01", *metric],
            ["compare", path, str(folder / "1.parquet"), *rest],
        ):
            assert main(arguments) == 0
        printed.append(capsys.readouterr().out.partition("before: ")[0])
    assert printed[0] == printed[1]
    paired = ["compare", path, path, *rest, "--paired"]
    assert "got --paired" in complaint(paired, capsys)


def test_items_recur_among_users(tmp_path):
    log = click_log()
    log["i"] = log.index % 37
    for kind in ("csv", "parquet"):
        getattr(log, f"to_{kind}")(tmp_path / f"log.{kind}", index=False)
    rest = ["--cluster", "u,i", "--metrics", "pairwise_exposure,ndcg"]
    facts, expected = numbers([str(tmp_path / "log.csv"), *rest], tmp_path)
    assert facts.pop("n_items") == 37
    streamed = numbers([str(tmp_path / "log.parquet"), *rest, "--jobs", "1"], tmp_path)
    assert streamed[0] == facts | {"n_items": 37}
    pd.testing.assert_frame_equal(streamed[1], expected, rtol=0.01)  # first order


def test_items_have_weights_and_what_is_not_defined_is_left_out(tmp_path):
    path, log = tmp_path / "log.csv", click_log()
    low = log.assign(y=log["y"] - (log["u"] == 3), w=1 + log.index % 3)
    low.to_csv(path, index=False)
    rest = [str(path), "--cluster", "u", "--item-weight", "w", "--metrics"]
    names = "pairwise_exposure,inter_group_accuracy"
    facts, expected = numbers([*rest, names], tmp_path)
    streamed = numbers([*rest, names, "--memory", "1GB"], tmp_path)
    assert streamed[0] == facts
    pd.testing.assert_frame_equal(streamed[1], expected, rtol=1e-9)
    found = common.numbers(["audit", str(path), *COLUMNS, "--memory", "1GB"], tmp_path)
    assert "ndcg" not in {metric["metric"] for metric in found["metrics"]}
    assert any(note.startswith("NDCG is left out: it needs") for note in found["notes"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none-*.parquet", *COLUMNS], "No files found that match"),
        (["all.csv", *COLUMNS, "--sensitive-features", "g,1"], "the name '\"g,1\"'."),
        (["*.parquet", *COLUMNS[:-2]], "part by part, which needs queries"),
        (["*.parquet", *COLUMNS, "--task", "risk"], "got --task."),
        (["*.parquet", *COLUMNS, "--missing", "drop"], "got --missing."),
        (["*.parquet", *COLUMNS, "--sensitive-features", "l"], "have hashable labels"),
        (["*.csv", *COLUMNS[:4], "--by", "g", "--by", "u", *COLUMNS[6:]], "got --by."),
        (["http://host/*.csv", *COLUMNS], "it is no file of this computer"),
        (["*.parquet", *COLUMNS, "--cluster", "s"], "constant within a query"),
    ],
    ids=lambda value: str(value)[-30:],
)
def test_errors_are_one_line(arguments, message, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    assert message in complaint(["audit", *arguments], capsys)
