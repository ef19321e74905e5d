"""Files of the command line: what is read from them, and what is refused in words."""

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from skrankfair.__main__ import main
from skrankfair.distributed import measure
from tests.cli.common import FAST, REQUIRED, SCORED, WHO, complaint, frame, numbers


def write(data, path, kind):
    """Write a frame in one of the ways that the command line reads."""
    if kind in ("parquet", "indexed"):
        pytest.importorskip("pyarrow")
        index = ["session", "region"] if kind == "indexed" else data.index
        data.set_index(index).to_parquet(path)
    elif kind == "xlsx":
        pytest.importorskip("openpyxl")
        data.to_excel(path, index=False)
    else:
        options = {"tsv": {"sep": "\t"}, "bom": {"encoding": "utf-8-sig"}}
        data.to_csv(path, index=False, **options.get(kind, {}))


@pytest.mark.parametrize("kind", ["parquet", "indexed", "tsv", "csv.gz", "bom", "xlsx"])
def test_reads_the_same_from(kind, file, tmp_path):
    path = tmp_path / f"other.{kind}"
    write(frame(), path, kind)
    expected = numbers(["audit", file, *FAST], tmp_path)
    assert numbers(["audit", str(path), *FAST], tmp_path) == expected


def test_reads_standard_input(file, tmp_path, monkeypatch, capsys):
    expected = numbers(["audit", file, *FAST], tmp_path)
    content = io.BytesIO(Path(file).read_bytes())
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=content))
    assert numbers(["audit", "-", *FAST], tmp_path) == expected
    assert "got -." in complaint(["audit", "-", *FAST, "--memory", "1GB"], capsys)


@pytest.mark.parametrize("kind", ["csv", "parquet", "xlsx"])
def test_two_columns_of_one_name_are_refused(kind, tmp_path, capsys):
    path, data = tmp_path / f"twice.{kind}", frame()
    if kind == "parquet":
        pa = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        table = pa.Table.from_pandas(data.assign(other=data["score"]))
        names = ["score" if n == "other" else n for n in table.column_names]
        parquet.write_table(table.rename_columns(names), path)
    else:
        write(pd.concat([data, data[["score"]]], axis=1), path, kind)
    assert "has 2 columns 'score' (" in complaint(["audit", str(path), *FAST], capsys)
    if kind != "xlsx":
        with pytest.raises(ValueError, match="data has 2 columns 'score'"):
            measure(path, "group_mean", y_score="score")
        write(data.assign(Score=0), path, kind)
        with pytest.raises(ValueError, match="'score', 'Score'. .* case is nothing to"):
            measure(path, "group_mean", y_score="score")


CROSSED = [[region, drama] for region in ("NA", "south") for drama in (False, True)]


class TestLabels:
    def labels(self, file, columns, tmp_path):
        arguments = [*REQUIRED[:-1], columns, "--metrics", "pairwise_exposure"]
        content = numbers(["audit", file, *arguments], tmp_path)
        return [group["group"] for group in content["groups"]], content["overlapping"]

    @pytest.mark.parametrize(
        ("columns", "labels", "overlapping"),
        [
            ("region", ["NA", "south"], False),
            ("code", ["007", "12"], False),
            ("drama", [False, True], False),
            ("number", list(range(12)), False),
            ('"region, home"', ["NA", "south"], False),  # a name with a comma
            ("region, drama", CROSSED, False),
            ("drama,comedy", ["drama", "comedy"], True),
            ("DRAMA,COMEDY", ["DRAMA", "COMEDY"], True),
        ],
    )
    def test_are_what_is_written(self, columns, labels, overlapping, file, tmp_path):
        data = frame()
        data["number"] = np.arange(len(data)) % 12
        data["region, home"] = data["region"]
        for name in ("drama", "comedy"):
            data[name.upper()] = data[name].astype(str).str.upper()
        data.to_csv(file, index=False)
        assert self.labels(file, columns, tmp_path) == (labels, overlapping)

    @pytest.mark.parametrize("words", [("False", "True"), ("no", "yes"), ("0", "1")])
    def test_of_groups_that_overlap_are_crossed_by_a_column(
        self, words, file, tmp_path, capsys
    ):
        data = frame()
        expected = {
            (name, region): int((data[name] & (data["region"] == region)).sum())
            for name in ("drama", "comedy")
            for region in ("NA", "south")
        }
        for name in ("drama", "comedy"):
            data[name] = np.where(data[name], *words[::-1])
        data.to_csv(file, index=False)
        options = ["--overlapping", "drama,comedy", "--by", "region"]
        options += ["--qid", "session", "--metrics", "pairwise_exposure"]
        content = numbers(["audit", file, *SCORED, *options], tmp_path)
        rows = {tuple(row["group"]): row["n_rows"] for row in content["groups"]}
        assert (rows, content["by"]) == (expected, "group × region")
        data["region"] = np.where(np.arange(len(data)) % 9, data["region"], "")
        data.to_csv(file, index=False)
        lacking = complaint(["audit", file, *SCORED, *options], capsys)
        assert "must not have missing labels" in lacking
        content = numbers(
            ["audit", file, *SCORED, *options, "--missing=drop"], tmp_path
        )
        assert content["n_rows"] == (data["region"] != "").sum()

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            (["--overlapping", "user"], "(--overlapping) must hold True and False"),
            ([], "one of --by (once or more), --sensitive-features and"),
            ([*REQUIRED[-2:], "--overlapping", "drama"], "must name the groups"),
            (["--overlapping", "drama,comedy", "--cross"], "cross must be True unless"),
            (["--overlapping", "drama", "--by=a", "--by=b"], "one --by may cross"),
        ],
    )
    def test_wrong_groups_that_overlap(self, options, says, file, capsys):
        assert says in complaint(["audit", file, *SCORED, *options], capsys)

    def test_a_column_of_scores_is_no_group(self, file, tmp_path, monkeypatch, capsys):
        frame(120).assign(score=np.arange(1200)).to_csv(file, index=False)
        arguments = ["audit", file, *REQUIRED[:-1]]
        line = complaint([*arguments, "score"], capsys)
        assert "'score' (--sensitive-features) has 1,200 distinct groups" in line
        assert "or --max-groups 1200 if they are" in line
        line = complaint([*arguments[:-1], "--by", "region,score"], capsys)
        assert "'region', 'score' (--by) has 1,200 distinct" in line
        for most, says in (("119", "more than 119"), ("0", "--max-groups must be an")):
            few = ["session", "--max-groups", most]
            assert says in complaint([*arguments, *few], capsys)
        monkeypatch.setattr("skrankfair._cli.input._MOST_GROUPS", 100)
        exposure = ["--metrics", "pairwise_exposure", "--max-groups", "120"]
        content = numbers([*arguments, "session", *exposure], tmp_path)
        assert len(content["groups"]) == 120


class TestNumbers:
    def test_semicolons_and_decimal_commas_are_recognised(self, file, tmp_path, capsys):
        data, path = frame(), str(tmp_path / "german.csv.gz")
        data["score"] /= 8  # eighths, which have few digits
        data.to_csv(file, index=False)
        expected = numbers(["audit", file, *FAST], tmp_path)
        marks = ["--sep", "|", "--decimal", ","]
        ways = (";", ",", []), (";", ".", []), ("\t", ",", []), ("|", ",", marks)
        for sep, decimal, options in ways:
            data.to_csv(path, index=False, sep=sep, decimal=decimal)
            assert numbers(["audit", path, *FAST, *options], tmp_path) == expected
        assert "See --sep" in complaint(["audit", path, *FAST], capsys)

    def test_thousands_are_no_fractions(self, file, tmp_path, capsys):
        scores = [f"{5000 + score // 20:,.0f}" for score in frame()["score"]]
        frame().assign(score=scores).to_csv(file, index=False, sep=";")
        line = complaint(["audit", file, *WHO], capsys)
        assert "'score' (--y-score) has commas that may be decimal commas or" in line
        streamed = complaint(["audit", file, *WHO, "--memory", "1GB"], capsys)
        assert "(column 'score') has commas that may be decimal commas or" in streamed

    @pytest.mark.parametrize("kind", ["csv", "parquet"])
    @pytest.mark.parametrize(
        ("words", "options"),
        [
            (("no", "yes"), []),
            (("FALSE", "True "), []),
            ((False, True), []),
            (("turned down", "hired"), ["--positive", "hired"]),
            ((2, 1), ["--positive", "1"]),
            ((False, True), ["--positive", "true"]),
        ],
    )
    def test_outcomes_may_be_words(self, words, options, kind, file, tmp_path):
        expected = numbers(["audit", file, *FAST], tmp_path)
        path, clicked = tmp_path / f"words.{kind}", frame()["clicked"]
        write(frame().assign(clicked=[words[i] for i in clicked]), path, kind)
        assert numbers(["audit", str(path), *FAST, *options], tmp_path) == expected

    def test_other_outcomes_are_named(self, file, capsys):
        frame().assign(clicked=["yes", "no", "maybe"] * 200).to_csv(file, index=False)
        arguments = ["audit", file, *FAST]
        assert "(true and false); it has 'maybe'" in complaint(arguments, capsys)
        assert main([*arguments, "--positive", "yes"]) == 0
        assert "'yes' counts as 1, and no, maybe as 0." in capsys.readouterr().err
        line = complaint([*arguments, "--positive", "y"], capsys)
        assert "no outcome 'y' (--positive); it has yes, no, maybe." in line

    @pytest.mark.parametrize("options", [[], ["--positive", "yes"]])
    def test_missing_outcomes_stay_missing(self, options, file, capsys):
        data = frame()
        data["clicked"] = data["clicked"].map({0: "no", 1: "yes"}).astype(object)
        data.loc[3, "clicked"] = np.nan
        data.to_csv(file, index=False)
        arguments = ["audit", file, *FAST, *options]
        assert "got nan in row 3" in complaint(arguments, capsys)
        assert main([*arguments, "--missing", "drop"]) == 0
        assert "1 of 600 rows are left out" in capsys.readouterr().err


def changed(**columns):
    """Return a function that writes the file with other values in its sixth row."""

    def write_changed(path):
        data = frame().astype(dict.fromkeys(columns, object))
        for name, value in columns.items():
            data.loc[5, name] = value
        data.to_csv(path, index=False)

    return write_changed


def written(content):
    """Return a function that writes the content."""
    return lambda path: path.write_bytes(content)


HEADER = b"clicked,score,region,session\n"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: None, "cannot be opened: No such file"),
        (Path.mkdir, "cannot be opened: Is a directory"),
        (written(b"\n\n"), "cannot be read as CSV"),
        (written(HEADER), "has no rows"),
        (written("région\né\n".encode("latin-1")), "as CSV (UTF-8; convert it, such"),
        (written(b"PAR1 and then nothing"), "cannot be read"),
        (written(HEADER + b"1,2,a,1,9\n1,2,a,1\n"), "see --sep"),
        (written(HEADER + b"1,2,a,1\n1,2,a,1,9\n"), "cannot be read as CSV"),
        (written(HEADER + b"1,2,a,1\n1,2\n"), "must not have missing labels; row 1"),
        (changed(score="abc"), "; it has 'abc'. Write labels as 1 and 0 (--positive"),
        (changed(score=np.nan), "--y-score score: y_score must be finite (no NaN, no"),
        (changed(score=np.nan), "rows out, as --missing drop does. Rows count from"),
        (changed(score="inf"), "in row 5 (1 such value). Rows count from 0, below"),
        (changed(session=""), "qid must not have missing labels; row 5"),
    ],
)
def test_a_wrong_file_is_one_line(make, says, tmp_path, capsys):
    path = tmp_path / "scores.csv"
    make(path)
    assert says in complaint(["audit", str(path), *WHO], capsys)
    assert complaint(["audit", str(path), *WHO, "--memory", "1GB"], capsys)


@pytest.mark.parametrize("name", ["scores.csv.gz", "scores.xlsx"])
def test_a_damaged_archive(name, tmp_path, capsys):
    start = b"PK\x03\x04" if name.endswith("xlsx") else b"\x1f\x8b"
    (tmp_path / name).write_bytes(start + b" and no more")
    arguments = ["audit", str(tmp_path / name), *WHO]
    assert "cannot be read" in complaint(arguments, capsys)
    line = complaint([*arguments, "--memory", "1GB"], capsys)
    assert f"{name} must be Parquet, or .csv or .csv.gz in UTF-8: " in line


def test_an_encrypted_archive(tmp_path, capsys):
    path = tmp_path / "scores.zip"
    pd.DataFrame().to_csv(path)
    flagged = path.read_bytes().replace(b"\x14\0\0\0", b"\x14\0\1\0")
    path.write_bytes(flagged)
    assert "is encrypted" in complaint(["audit", str(path), *WHO], capsys)


@pytest.mark.parametrize(
    ("start", "module", "suffix"),
    [(b"PAR1", "pyarrow.parquet", "parquet"), (b"PK\x03\x04", "openpyxl", "xlsx")],
)
def test_packages_that_are_missing(
    start, module, suffix, tmp_path, capsys, monkeypatch
):
    path = tmp_path / f"scores.{suffix}"
    path.write_bytes(start)
    monkeypatch.setitem(sys.modules, module, None)
    line = complaint(["audit", str(path), *WHO], capsys)
    assert "needs a package" in line
    assert module in line
