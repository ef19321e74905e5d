"""The command line: what has changed, conditions for CI, and the origin of reports."""

import json
import re
import shlex
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from skrankfair import audit
from skrankfair.__main__ import main
from tests.cli.test_cli import REQUIRED, WHO, complaint, frame

FAST = ["--metrics", "inter_group_accuracy"]


@pytest.fixture
def files(tmp_path):
    """Two weeks, of which the second has no gap any more."""
    before, now = frame(120), frame(100)
    now["score"] += 10_000 * (now["region"] == "NA")
    paths = tmp_path / "old.csv", tmp_path / "new.csv"
    for data, path in zip((before, now), paths, strict=True):
        data.to_csv(path, index=False)
    return list(map(str, paths))


def report_of(path):
    data = pd.read_csv(path, keep_default_na=False)
    who = {"sensitive_features": data["region"], "qid": data["session"]}
    return audit(data["clicked"], data["score"], **who, metrics="inter_group_accuracy")


class TestCompare:
    def test_is_the_change_of_the_audits(self, files, capsys):
        assert main(["compare", *files, *WHO, *FAST]) == 0
        expected = report_of(files[1]).changes_since(report_of(files[0]))
        out = capsys.readouterr().out
        assert out.startswith(repr(expected))
        assert "closer to fair: NA, south" in out
        assert "\nbefore: " in out

    def test_a_stored_report_does_as_well(self, files, tmp_path, capsys):
        stored = str(tmp_path / "old.json")
        assert main(["audit", files[0], *WHO, *FAST, "--json", stored]) == 0
        capsys.readouterr()
        assert main(["compare", stored, files[1], *WHO, *FAST]) == 0
        from_rows = report_of(files[1]).changes_since(report_of(files[0]))
        assert from_rows.headline in capsys.readouterr().out

    def test_two_scores_of_the_same_queries(self, files, tmp_path, capsys):
        data = frame(120)
        data["score"] += np.random.default_rng(0).normal(size=len(data)).round()
        data.to_csv(tmp_path / "again.csv", index=False)
        again = str(tmp_path / "again.csv")
        assert main(["compare", files[0], again, *WHO, *FAST, "--paired"]) == 0
        out = capsys.readouterr().out
        assert "on the same clusters" in out
        paired = report_of(again).changes_since(report_of(files[0]), paired=True)
        assert repr(paired) in out

    def test_a_change_can_fail(self, files, capsys):
        condition = ["--fail-if", "inter_group_accuracy_gap[south]<-0.02"]
        assert main(["compare", *files, *WHO, *FAST, *condition]) == 4
        assert main(["compare", *files[::-1], *WHO, *FAST, *condition]) == 0
        assert "fails" in capsys.readouterr().out

    def test_wrong_input_is_one_line(self, files, tmp_path, capsys):
        wrong = tmp_path / "old.json"
        wrong.write_text("{}")
        for first, says in (
            (str(wrong), "text must"),
            (str(tmp_path / "no.json"), "cannot be read"),
            (str(tmp_path / "no.csv"), "There is no file"),
        ):
            assert says in complaint(["compare", first, files[1], *WHO], capsys)
        one_list = ["compare", *files, *REQUIRED, "--paired"]
        assert main([*one_list, *FAST]) == 0
        assert "left out" in capsys.readouterr().out
        assert "would overwrite the input" in complaint(
            ["compare", *files, *WHO, "--json", files[0]], capsys
        )


class TestFailIf:
    def test_status_4_and_the_report_all_the_same(self, files, tmp_path, capsys):
        path = tmp_path / "r.json"
        options = ["--fail-if", "inter_group_accuracy<0.8", "--json", str(path)]
        assert main(["audit", files[0], *WHO, *FAST, *options]) == 4
        assert "fails" in capsys.readouterr().out
        sections = json.loads(path.read_text())["sections"]
        assert sections[0]["title"] == "Conditions"

    @pytest.mark.parametrize(
        "condition", ["inter_group_accuracy<0.1", "inter_group_accuracy[south]<0.8"]
    )
    def test_status_0_where_nothing_fails(self, condition, files, capsys):
        options = [*FAST, "--fail-if", condition]
        assert main(["audit", files[0], *WHO, *options]) == 0
        assert "not beyond chance" in capsys.readouterr().out

    def test_impact_ratios_are_measured_when_they_are_asked_for(self, files, capsys):
        options = [*FAST, "--fail-if", "impact_ratio<0.8,inter_group_accuracy>2"]
        assert main(["audit", files[0], *WHO, *options]) == 4
        assert "Impact ratios by region" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("condition", "says"),
        [
            ("inter_group_accuracy", "such as impact_ratio<0.8"),
            ("ndcg<0.5", "no 'ndcg'"),
            ("inter_group_accuracy[west]<0.5", "none is 'west'"),
        ],
    )
    def test_wrong_conditions_are_one_line(self, condition, says, files, capsys):
        options = [*FAST, "--fail-if", condition]
        assert says in complaint(["audit", files[0], *WHO, *options], capsys)


class TestProvenance:
    def test_names_all_that_the_numbers_come_from(self, files, tmp_path, monkeypatch):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        paths = [str(tmp_path / f"r.{kind}") for kind in ("json", "html")]
        command = ["audit", files[0], *WHO, *FAST, "--json", paths[0]]
        command += ["--html", paths[1]]
        for _ in range(2):
            assert main(command) == 0
            found = json.loads((tmp_path / "r.json").read_text())["provenance"]
            page = (tmp_path / "r.html").read_text()
        assert found["file"] == files[0]
        assert found["rows"] == "1,200"
        assert found["made"] == "2023-11-14 22:13 UTC"
        assert "sensitive_features region, qid session" in found["columns"]
        assert shlex.split(found["command"]) == ["skrankfair", *command]
        assert files[0] in page
        assert "2023-11-14 22:13 UTC" in page

    def test_the_command_repeats_it_whatever_the_name_is(self, files, tmp_path, capsys):
        name = tmp_path / "it's $(touch x); \x1b[31m\n'é\\.csv"
        name.write_bytes((tmp_path / "old.csv").read_bytes())
        assert main(["audit", str(name), *WHO, *FAST]) == 0
        out = capsys.readouterr().out
        assert "\x1b" not in out
        (line,) = re.findall(r"^command: (.*)$", out, flags=re.MULTILINE)
        echo = f"{shlex.quote(sys.executable)} -c 'import sys; print(ascii(sys.argv))' "
        shell = ["bash", "-c", line.replace("skrankfair ", echo, 1)]
        found = subprocess.run(shell, capture_output=True, check=True, text=True)
        assert found.stdout.strip().endswith(
            ascii(["audit", str(name), *WHO, *FAST])[1:]
        )
        assert not (tmp_path / "x").exists()


class TestInput:
    def test_json_on_standard_output_is_all_there_is(self, files, capsys):
        assert main(["audit", files[0], *WHO, *FAST, "--json", "-"]) == 0
        captured = capsys.readouterr()
        assert json.loads(captured.out)["n_rows"] == 1200
        options = ["--gap", "0.1", "--json", "-"]
        assert main(["plan", files[0], *WHO, *FAST, *options]) == 0
        assert json.loads(capsys.readouterr().out)["gap"] == 0.1

    @pytest.mark.parametrize("how", ["True", "yes", "1"])
    def test_overlapping_groups_are_crossed_by_a_column(self, how, tmp_path, capsys):
        data = frame()
        expected = {
            (name, region): int((data[name] & (data["region"] == region)).sum())
            for name in ("drama", "comedy")
            for region in ("NA", "south")
        }
        no = {"True": "False", "yes": "no", "1": "0"}[how]
        for name in ("drama", "comedy"):
            data[name] = np.where(data[name], how, no)
        path = str(tmp_path / "o.csv")
        data.to_csv(path, index=False)
        arguments = ["audit", path, "--y-true", "clicked", "--y-score", "score"]
        arguments += ["--overlapping", "drama,comedy", "--by", "region", *FAST]
        assert main([*arguments, "--qid", "session", "--json", "-"]) == 0
        found = json.loads(capsys.readouterr().out)
        rows = {tuple(row["group"]): row["n_rows"] for row in found["groups"]}
        assert rows == expected
        assert found["by"] == "group × region"

    def test_what_is_wrong_with_overlapping_groups(self, files, capsys):
        arguments = ["audit", files[0], "--y-true", "clicked", "--y-score", "score"]
        for options, says in (
            (["--overlapping", "user"], "must hold True and False"),
            (["--sensitive-features", "region", "--by", "code"], "--by is for"),
            ([], "--sensitive-features --overlapping is required"),
            (
                ["--sensitive-features", "region", "--overlapping", "drama"],
                "not allowed with",
            ),
        ):
            assert says in complaint([*arguments, *options], capsys)

    def test_excel(self, files, tmp_path, capsys):
        pytest.importorskip("openpyxl")
        path = str(tmp_path / "scores.xlsx")
        data = pd.read_csv(files[0], keep_default_na=False, dtype={"code": str})
        data.to_excel(path, index=False)
        found = []
        for file in (files[0], path):
            assert main(["audit", file, *WHO, *FAST, "--json", "-"]) == 0
            found.append(json.loads(capsys.readouterr().out)["metrics"])
        assert found[0] == found[1]

    def test_excel_that_is_none(self, tmp_path, capsys):
        pytest.importorskip("openpyxl")
        path = tmp_path / "scores.xlsx"
        path.write_bytes(b"PK\x03\x04 and nothing more")
        assert "Excel" in complaint(["audit", str(path), *WHO], capsys)


def test_version_takes_no_large_imports():
    code = (
        "import sys; from skrankfair.__main__ import main; main(['--version']); "
        "assert not {'numpy', 'sklearn', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=None)
