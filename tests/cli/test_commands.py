"""The commands: right input gives a report, wrong input one line and status 2."""

import json
import shlex
import sys
from datetime import datetime
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("Agg")

from skrankfair import audit
from skrankfair.__main__ import main
from skrankfair._inputs.validation import collected_warnings
from skrankfair.metrics import selection_rate
from skrankfair.monitoring import Monitor
from tests.cli.common import FAST, REQUIRED, WHO, columns_of, complaint, frame, numbers


def numbers_of(report):
    """Return what a report from Python would write."""
    content = json.loads(json.dumps(report.to_dict()))
    assert content.pop("provenance") == {}
    return content


class TestAudit:
    def test_prints_the_report_of_audit(self, file, capsys):
        assert main(["audit", file, *WHO]) == 0
        expected = audit(**columns_of(frame()))
        captured = capsys.readouterr()
        report, made = captured.out.split("\n\nfile: ")
        columns = " Columns: y_true clicked, y_score score, sensitive_features region, "
        assert report.replace(f"{columns}qid session.", "") == repr(expected)
        assert made.endswith(f"\n\n{expected.headline}\n")
        assert captured.err == ""

    def test_every_option_reaches_audit(self, file, tmp_path):
        data = frame()
        options = ["--cluster", "user", "--engagement", "watched"]
        options += ["--sample-weight", "weight", "--confidence-level", "0.8"]
        options += ["--metrics", "inter_group_accuracy, ndcg"]
        options += ["--margin", "inter_group_accuracy=0.1", "--k", "4"]
        data["weight"] = 1.0 + data["session"] % 3
        data.to_csv(file, index=False)
        expected = audit(
            **columns_of(data),
            cluster=data["user"],
            engagement=data["watched"],
            sample_weight=data["weight"],
            metrics=["inter_group_accuracy", "ndcg"],
            confidence_level=0.8,
            margin={"inter_group_accuracy": 0.1},
            k=4,
        )
        found = numbers(["audit", file, *WHO, *options], tmp_path)
        assert found == numbers_of(expected)
        columns = {**columns_of(data), "qid": None, "correction": "fdr_bh"}
        columns |= {"task": "risk", "favorable": "low", "threshold": 0.0}
        options = ["--task", "risk", "--favorable", "low", "--threshold", "0"]
        options += ["--correction", "fdr_bh", "--impact-ratio"]
        found = numbers(["audit", file, *REQUIRED, *options], tmp_path)
        assert found == numbers_of(audit(**columns, impact_ratio=True))

    def test_several_groupings_a_reference_and_what_is_held_fixed(self, file, tmp_path):
        data = frame().assign(day=frame()["session"] % 3)
        data["comedy"] = data["comedy"].map({True: "yes, a bit", False: "no, none"})
        data.to_csv(file, index=False)
        # Truth values are labels here, and no members of groups that overlap.
        options = ["--by=drama", "--by=comedy", "--by=drama", "--cross", "--within=day"]
        options += ["--reference", "drama=True,comedy=no, none"]
        options += ["--metrics", "inter_group_accuracy,pairwise_exposure"]
        groups = data[["drama", "comedy"]].astype(str)
        expected = audit(
            **{**columns_of(data), "sensitive_features": groups, "cross": "both"},
            reference={"drama": "True", "comedy": "no, none"},
            within=data["day"],
            metrics=["inter_group_accuracy", "pairwise_exposure"],
        )
        command = ["audit", file, *WHO, *options]
        place = command.index("--sensitive-features")
        del command[place : place + 2]
        assert numbers(command, tmp_path) == numbers_of(expected)

    def test_title_is_in_all_outputs(self, file, tmp_path, capsys):
        page = tmp_path / "report.html"
        options = ["--title", "Loans of May", "--html", str(page)]
        content = numbers(["audit", file, *FAST, *options], tmp_path)
        assert content["title"] == "Loans of May"
        out = capsys.readouterr().out
        assert out.startswith("Loans of May: 600 rows")
        assert f"Written: {page}\n" in out
        assert "<title>Loans of May</title>" in page.read_text(encoding="utf-8")

    def test_warnings_are_short_lines(self, file, capsys):
        frame().assign(nobody=False).to_csv(file, index=False)
        arguments = [*REQUIRED[:-1], "drama,nobody", "--metrics", "pairwise_exposure"]
        assert main(["audit", file, *arguments]) == 0
        (line,) = capsys.readouterr().err.splitlines()
        assert line == (
            "skrankfair: warning: pairwise_exposure is undefined (NaN) for groups "
            "without pairs: nobody."
        )

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            (["--y-score", "Score"], "Did you mean 'score'?"),
            (["--y-score", "nothing"], "it has 'session', 'user', 'region'"),
            (["--sensitive-features", "region,nix"], "no column 'nix' (--sensitive-f"),
            (["--qid", ""], "no column '' (--qid)"),
            (["--metrics", "auc"], "metrics must be among pairwise_accuracy"),
            (["--confidence-level", "95"], "confidence_level must be"),
            (["--margin", "small"], "invalid margin value: 'small'; see"),
            (["--threshold", "0,75"], "invalid float value: '0,75'; write 0.75; see"),
            (["--margin", "ndcg=0,2"], "'ndcg=0,2'; write 0.2; see"),
            (["--margin", "0"], "margin must hold 0 inside its bounds"),
            (["--sep", ";;"], "--sep: it must be one character; got ';;'"),
            (["--nothing", "x"], "unrecognized arguments"),
            (["--cluster", "code"], "cluster must be constant within a query"),
            (["--fail-if", "inter_group_accuracy"], "such as impact_ratio<0.8"),
        ],
    )
    def test_wrong_options_are_one_line(self, change, says, file, capsys):
        assert says in complaint(["audit", file, *WHO, *change], capsys)

    def test_outputs_that_cannot_be_written(self, file, tmp_path, capsys, monkeypatch):
        def line(*outputs):
            return complaint(["audit", file, *WHO, *outputs], capsys)

        before = Path(file).read_bytes()
        nowhere = str(tmp_path / "nowhere" / "a.html")
        for wrong in (str(tmp_path), nowhere, "-"):
            assert "in a folder that is there" in line("--html", wrong)
        assert "would overwrite the input" in line("--json", file)
        (tmp_path / "link").symlink_to(tmp_path)
        monkeypatch.chdir(tmp_path)
        for other in ("./a", str(tmp_path / "a"), "link/a"):
            assert "would overwrite --html" in line("--html", other, "--json", "a")
        assert Path(file).read_bytes() == before

    def test_report_packages_are_missed_before_the_work(
        self, tmp_path, capsys, monkeypatch
    ):
        monkeypatch.setitem(sys.modules, "jinja2", None)
        arguments = ["audit", "no file", *WHO, "--html", str(tmp_path / "a.html")]
        assert "pip install" in complaint(arguments, capsys)


@pytest.fixture
def files(tmp_path):
    """Return two weeks, of which the second has no gap any more."""
    before, now = frame(120), frame(100)
    now["score"] += 10_000 * (now["region"] == "NA")
    paths = tmp_path / "old.csv", tmp_path / "new.csv"
    for data, path in zip((before, now), paths, strict=True):
        data.to_csv(path, index=False)
    return list(map(str, paths))


def report_of(path):
    data = pd.read_csv(path, keep_default_na=False)
    return audit(**columns_of(data), metrics="inter_group_accuracy")


class TestCompare:
    def test_is_the_change_of_the_audits(self, files, capsys):
        assert main(["compare", *files, *FAST]) == 0
        expected = report_of(files[1]).changes_since(report_of(files[0]))
        out = capsys.readouterr().out
        assert repr(expected).partition("\n\n")[2] in out
        assert "closer to fair: NA, south" in out
        assert "\nbefore: " in out

    def test_stored_reports_do_as_well(self, files, tmp_path, capsys):
        stored = [str(tmp_path / name) for name in ("old.json", "new.json")]
        for file, path in zip(files, stored, strict=True):
            assert main(["audit", file, *FAST, "--json", path]) == 0
        from_rows = report_of(files[1]).changes_since(report_of(files[0]))
        for command in ([stored[0], files[1], *FAST], stored):
            capsys.readouterr()
            assert main(["compare", *command]) == 0
            assert from_rows.headline in capsys.readouterr().out
        line = complaint(["compare", *stored, "--k", "3"], capsys)
        assert "--k is for rows, and both files are reports." in line

    def test_two_scores_of_the_same_queries(self, files, capsys):
        assert main(["compare", files[0], files[0], *FAST, "--paired"]) == 0
        assert "on the same clusters" in capsys.readouterr().out

    def test_a_change_can_fail(self, files, capsys):
        condition = ["--fail-if", "inter_group_accuracy_gap[south]<-0.02"]
        assert main(["compare", *files, *FAST, *condition]) == 4
        assert main(["compare", *files[::-1], *FAST, *condition]) == 0
        assert "met beyond chance" in capsys.readouterr().out

    def test_wrong_input_is_one_line(self, files, tmp_path, capsys):
        wrong = tmp_path / "old.json"
        wrong.write_text("{}")
        for first, says in (
            (str(wrong), f"{wrong}: text must have the schema"),
            (str(tmp_path / "no.json"), "cannot be read"),
            (str(tmp_path / "no.csv"), "cannot be opened"),
        ):
            assert says in complaint(["compare", first, files[1], *WHO], capsys)
        overwritten = ["compare", *files, *WHO, "--json", files[0]]
        assert "would overwrite the input" in complaint(overwritten, capsys)


@pytest.mark.parametrize(
    ("conditions", "status", "says"),
    [
        ("inter_group_accuracy<0.8", 4, "met beyond chance"),
        ("inter_group_accuracy<0.1", 0, "not met beyond chance"),
        ("inter_group_accuracy[south]<0.8", 0, "not met beyond chance"),
        ("impact_ratio<0.8,inter_group_accuracy>2", 4, "Impact ratios by region"),
    ],
)
def test_fail_if_has_a_status_and_the_report_all_the_same(
    conditions, status, says, files, tmp_path, capsys
):
    path = tmp_path / "r.json"
    options = ["--fail-if", conditions, "--json", str(path)]
    assert main(["audit", files[0], *FAST, *options]) == status
    assert says in capsys.readouterr().out
    assert json.loads(path.read_text())["sections"][0]["title"] == "Conditions"


def test_provenance_is_all_that_the_numbers_come_from(file, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    paths = [str(tmp_path / f"r.{kind}") for kind in ("json", "html")]
    command = ["audit", file, *FAST, "--json", paths[0], "--html", paths[1]]
    for _ in range(2):  # the second time it overwrites
        assert main(command) == 0
    made = json.loads((tmp_path / "r.json").read_text())["provenance"]
    assert made["file"] == file
    assert made["rows"] == "600"
    assert made["made"] == "2023-11-14 22:13 UTC"
    assert "sensitive_features region, qid session" in made["columns"]
    assert shlex.split(made["command"]) == ["skrankfair", *command]
    page = (tmp_path / "r.html").read_text()
    assert file in page
    assert made["made"] in page


class TestPlan:
    def test_is_what_the_results_require(self, file, tmp_path, capsys):
        options = ["--gap", "0.05", "--power", "0.9", "--alpha", "0.1"]
        options += ["--cluster", "user,watched"]
        options += ["--metrics", "inter_group_accuracy,matched_pair_calibration,ndcg"]
        content = numbers(["plan", file, *WHO, *options], tmp_path)
        report = audit(**columns_of(frame()), cluster=frame()[["user", "watched"]])
        captured = capsys.readouterr()
        assert "warning: The power of matched_pair_calibration cannot" in captured.err
        assert "To find a gap of 0.05 with power 0.9 (level 0.1" in captured.out
        assert "more users of the same items do not find it." in captured.out
        assert "Without a test to plan: ndcg." in captured.out
        for metric in content["metrics"]:
            result = report.results[metric["metric"]]
            with collected_warnings():  # of few effective clusters
                sizes = result.required(0.05, power=0.9, alpha=0.1)
                detectable = result.minimum_detectable(power=0.9, alpha=0.1)
            columns = pd.DataFrame(metric["groups"])
            assert tuple(columns["group"]) == result.groups
            np.testing.assert_allclose(
                columns.iloc[:, 1:].to_numpy(float).T,
                [detectable, sizes.factor, sizes.n_clusters, sizes.promised],
            )
            assert all(f"{n:,.0f}" in captured.out for n in sizes.n_clusters)

    def test_a_change_takes_weeks(self, file, tmp_path, capsys):
        options = ["--gap", "0.1", "--metrics", "inter_group_accuracy"]
        options += ["--cluster", "user", "--change", "--per-week", "200"]
        report = audit(**columns_of(frame()), cluster=frame()["user"])
        result = report.results["inter_group_accuracy"]
        with collected_warnings():
            size = result.required(0.05)
            detectable = result.minimum_detectable()
        (metric,) = numbers(["plan", file, *WHO, *options], tmp_path)["metrics"]
        rows = pd.DataFrame(metric["groups"])
        np.testing.assert_allclose(rows["minimum_detectable"], 2 * detectable)
        np.testing.assert_allclose(rows["n_clusters"], size.n_clusters)
        np.testing.assert_allclose(rows["weeks"], size.weeks(200))
        assert "two arms, or before and after" in capsys.readouterr().out
        options += ["--returning", "0.5"]
        alone = complaint(["plan", file, *WHO, *options[:-4], *options[-2:]], capsys)
        assert "--returning needs --per-week" in alone
        (metric,) = numbers(["plan", file, *WHO, *options], tmp_path)["metrics"]
        longer = pd.DataFrame(metric["groups"])["weeks"]
        assert (longer >= rows["weeks"]).all()
        assert (longer <= size.weeks(200, returning=0.5)).all()

    def test_no_gap_is_larger_than_there_can_be(self, file, tmp_path, capsys):
        """The group has one item in each of nine lists."""
        data = frame().iloc[:90].assign(region="north")
        data.loc[data.index[::10], "region"] = "south"
        data["clicked"] = (np.arange(90) % 10 < 3).astype(int)
        data.to_csv(file, index=False)
        arguments = ["plan", file, *WHO, "--alpha", "0.001", "--gap"]
        assert main([*arguments, "1.5"]) == 0
        printed = capsys.readouterr().out
        assert "No gap of inter_group_accuracy is that large: 1 at most." in printed
        content = numbers([*arguments, "0.4"], tmp_path)
        printed = capsys.readouterr().out
        assert "no possible gap" in printed
        for metric in content["metrics"]:
            share = 0.5 if metric["metric"] == "pairwise_exposure" else 1
            assert metric["largest_possible"] == share
            gaps = [g["minimum_detectable"] for g in metric["groups"]]
            beyond = [gap for gap in gaps if gap is not None and gap > share]
            assert not any(f"{gap:.4f}" in printed for gap in beyond)


class TestMonitor:
    """A store is made by the first file, which says what all are measured by."""

    MADE = ("--metric", "inter_group_accuracy", "--baseline", "4", *WHO)

    def add(self, tmp_path, number, *options, bias=0.0):
        """Return the words that add the file of a day, which it writes."""
        data = frame(100)
        noise = np.random.default_rng(number).normal(scale=10_000, size=len(data))
        data["clicked"] = (data["score"] + noise > 0).astype(int)
        data["score"] -= 12_000 * bias * (data["region"] == "NA")
        path = tmp_path / f"day{number}.csv"
        data.to_csv(path, index=False)
        when = f"2026-11-{number:02}"
        store = str(tmp_path / "gap.jsonl")
        return ["monitor", store, "--add", str(path), "--when", when, *options]

    def test_days_are_added_until_there_is_an_alarm(self, tmp_path, capsys):
        statuses = [main(self.add(tmp_path, 1, *self.MADE))]
        statuses += [main(self.add(tmp_path, n, bias=n > 6)) for n in range(2, 15)]
        assert set(statuses[:6]) == {0}
        assert statuses[-1] == 3
        store = str(tmp_path / "gap.jsonl")
        path = tmp_path / "alarms.json"
        assert main(["monitor", store, "--json", str(path)]) == 3
        printed = capsys.readouterr().out
        assert "ALARM NA: the gap has grown" in printed
        assert "\nWatched over time: inter-group accuracy\n" in f"\n{printed}"
        content = json.loads(path.read_text(encoding="utf-8"))
        assert len(content["updates"]) == 14
        assert {alarm["group"] for alarm in content["alarms"]} == {"NA", "south"}
        assert len(content["sequences"]) == 28
        last = report_of(tmp_path / "day14.csv").results["inter_group_accuracy"]
        result = Monitor.open(store).result(last=1)
        np.testing.assert_allclose(result.estimate, last.estimate, rtol=1e-12)

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

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            ([], "2026-11-01 is there already; --replace"),
            (["--when", "someday"], "when must be a day"),
            (["--when", "2026-11-02", "--margin", "0.1"], "--margin is given when"),
            (["--when", "2026-11-02", "--qid", "session"], "--qid is given when"),
        ],
    )
    def test_wrong_options_are_one_line(self, options, says, tmp_path, capsys):
        assert main(self.add(tmp_path, 1, *self.MADE)) == 0
        again = self.add(tmp_path, 1)
        assert says in complaint([*again, *options], capsys)
        assert main([*again, "--replace"]) == 0
        store = tmp_path / "gap.jsonl"
        assert Monitor.open(store).when == ("2026-11-01",)
        assert "need --add" in complaint(["monitor", str(store), "--replace"], capsys)

    def test_wrong_stores_are_one_line(self, tmp_path, capsys, file):
        store = str(tmp_path / "gap.jsonl")
        assert "there is no store" in complaint(["monitor", store], capsys)
        needs = complaint(["monitor", store, "--add", file], capsys)
        assert "needs --metric, --y-true, --y-score, --sensitive-features" in needs
        assert "is no store" in complaint(["monitor", file], capsys)
        assert not (tmp_path / "gap.jsonl").exists()
