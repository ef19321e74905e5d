"""What the scores are for, and which end of them is good, chooses an audit's words."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from skrankfair import audit, audit_cv, mitigation_report
from skrankfair.__main__ import main
from skrankfair._estimates.metric import collected_warnings
from skrankfair.metrics import calibration_error, log_loss, mean_squared_error


def risks(bias=0.1, base=0.0, n_rows=3000, seed=0):
    """Return a risk score that is too high for "b" by `bias`."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b"], n_rows)
    chance = rng.uniform(0.05, 0.75, n_rows) + base * (group == "b")
    return {
        "y_true": (rng.random(n_rows) < chance).astype(float),
        "y_score": np.clip(chance + bias * (group == "b"), 0, 1),
        "sensitive_features": group,
    }


@pytest.fixture(scope="module")
def neutral():
    return audit(**risks())


@pytest.fixture(scope="module")
def low():
    return audit(**risks(), favorable="low", threshold=0.5)


class TestTask:
    def test_queries_are_a_ranking(self):
        columns = risks(n_rows=400)
        report = audit(**columns, qid=np.arange(400) // 10)
        assert (report.task, report.favorable) == ("ranking", "high")
        assert "Read as a ranking" in repr(report)

    def test_zeros_and_ones_are_decisions(self):
        columns = risks(n_rows=400)
        columns["y_score"] = columns["y_score"] > 0.5
        assert audit(**columns).task == "decision"

    def test_all_else_is_a_risk(self, neutral):
        assert (neutral.task, neutral.favorable) == ("risk", None)
        assert "Read as a risk score" in repr(neutral)
        assert "nobody has said which end" in repr(neutral)

    def test_is_what_the_caller_says(self):
        report = audit(**risks(n_rows=400), task="ranking")
        assert report.task == "ranking"
        assert "brier_score" not in report.results

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"task": "rating"}, "task must be"),
            ({"favorable": "up"}, "favorable must be"),
            ({"task": "decision"}, "y_score must be 0 or 1 for task='decision'; got"),
        ],
    )
    def test_what_is_wrong_is_named(self, options, message):
        with pytest.raises(ValueError, match=message):
            audit(**risks(n_rows=50), **options)


class TestRisk:
    def test_has_the_measures_of_a_risk_score(self, neutral):
        columns = risks()
        for name, metric in (
            ("calibration_error", calibration_error),
            ("brier_score", mean_squared_error),
            ("log_loss", log_loss),
        ):
            expected, found = metric(**columns), neutral.results[name]
            np.testing.assert_array_equal(found.estimate, expected.estimate)
            np.testing.assert_array_equal(found.standard_error, expected.standard_error)

    def test_nobody_is_on_a_side_of_what_is_not_tested(self, neutral):
        untested = [f for f in neutral.findings if not f.tested]
        assert {f.metric.name for f in untested} >= {"brier_score", "log_loss"}
        # The test that all groups are equal has p-values all the same.
        assert (neutral.results["brier_score"].pvalue < 0.05).all()
        assert {row.side for f in untested for row in f.rows} == {""}
        assert {f.kind for f in untested} == {"none"}

    def test_scores_off_the_scale_of_outcomes_have_no_losses(self):
        columns = risks(n_rows=400)
        columns["y_score"] = 300 + 500 * columns["y_score"]
        report = audit(**columns)
        assert not {"calibration_error", "brier_score", "log_loss"} & set(
            report.results
        )
        assert "not in [0, 1]" in report.reading

    def test_tests_equal_outcomes_at_equal_scores(self, neutral):
        (section,) = neutral.sections
        assert section.title.startswith("Predictive parity")
        assert section.paragraphs[0].startswith("Equal scores do not mean equal")

    def test_a_threshold_adds_what_happens_there(self, low):
        titles = [section.title for section in low.sections]
        assert [title.split(":")[0] for title in titles[:2]] == [
            "Predictive parity",
            "Marginal outcomes",
        ]
        assert titles[2].startswith("What would change")
        change = {row[0]: float(row[1]) for row in low.sections[2].rows}
        assert change["b"] < 0 < change["b"] + 0.2

    def test_many_groups_are_compared_with_the_rest(self):
        columns = risks(n_rows=1500)
        columns["sensitive_features"] = np.arange(1500) % 33
        with collected_warnings():
            (section,) = audit(**columns).sections
        assert section.rows[1][0] == "1 - rest"
        assert len(section.rows) == 33
        assert "between each group and the rest" in section.paragraphs[1]

    def test_what_cannot_be_tested_is_a_note(self):
        report = audit(**risks(n_rows=300), threshold=2.0)
        titles = [section.title for section in report.sections]
        assert not any(title.startswith("Marginal") for title in titles)
        assert any("marginal outcomes is left out" in note for note in report.notes)


class TestWords:
    def test_without_a_good_end_nobody_is_worse_off(self, neutral, tmp_path):
        texts = [
            repr(neutral),
            neutral.to_html(tmp_path / "r.html").read_text(encoding="utf-8"),
            json.dumps(neutral.to_dict()),
        ]
        visible = re.sub(r"<style>.*?</style>", "", texts[1], flags=re.DOTALL)
        notes = "calls a group worse off only if|learn who is|Who is worse off depends"
        for text in (texts[0], visible, texts[2]):
            for match in re.finditer("(worse|better) off", text):
                around = text[max(0, match.start() - 40) : match.end() + 40]
                assert re.search(notes, around), around
        assert neutral.headline.startswith("The groups differ beyond chance in 4 of 5")
        sides = {row.side for finding in neutral.findings for row in finding.rows}
        assert sides <= {"", "lower", "higher"}
        (matched,) = (
            f for f in neutral.findings if f.metric.name == "matched_pair_calibration"
        )
        assert matched.verdict.startswith("Scored too high for its outcomes: b (-")

    def test_a_high_risk_is_bad_where_low_is_good(self, low):
        assert low.headline.startswith("1 of 2 groups is worse off beyond chance: b.")
        high = audit(**risks(), favorable="high")
        assert high.headline.startswith("1 of 2 groups is worse off beyond chance: a.")

    def test_no_number_depends_on_it(self, low, neutral):
        a, b = (r.to_frame().drop(columns=["side", "verdict"]) for r in (low, neutral))
        pd.testing.assert_frame_equal(a, b)

    def test_the_best_known_conflict_is_explained(self):
        # Calibrated, and groups with unlike base rates: mistakes differ of necessity.
        report = audit(**risks(bias=0, base=0.25), favorable="low")
        assert report.headline == (
            "1 of 2 groups is worse off beyond chance: b. "
            "At equal scores the data do not show it for b."
        )
        assert any("known to conflict" in note for note in report.all_notes)

    def test_no_conflict_is_made_up(self, low):
        assert not any("known to conflict" in note for note in low.all_notes)
        assert "At equal scores" not in low.headline

    def test_metrics_that_disagree(self):
        report = audit(**risks(bias=-0.08, base=0.25, n_rows=20_000), favorable="low")
        assert "The metrics disagree about a, b" in report.headline

    def test_findings_are_in_the_order_of_questions(self, neutral):
        questions = [finding.metric.question for finding in neutral.findings]
        assert [q for i, q in enumerate(questions) if q not in questions[:i]] == [
            "Who suffers the mistakes?",
            "Who gets the places?",
            "Are equal scores equally good?",
            "How good are the scores as a whole?",
        ]
        assert questions == sorted(questions, key=questions.index)
        for question in questions:
            assert repr(neutral).count(question) == 1

    def test_says_what_it_does_not_show(self, low, tmp_path):
        page = low.to_html(tmp_path / "r.html").read_text(encoding="utf-8")
        assert "What this does not show" in page
        assert low.limits in page
        assert low.to_dict()["limits"] == low.limits

    def test_one_group_is_told(self):
        columns = risks(n_rows=200)
        columns["sensitive_features"] = ["a"] * 200
        with pytest.warns(match="without pairs"):
            report = audit(**columns)
        assert report.headline == (
            "There is only one group, so there is nothing to compare."
        )


def test_out_of_fold():
    columns = risks(n_rows=600)
    X = pd.DataFrame({"s": columns["y_score"], "g": columns["sensitive_features"]})
    X["g"] = (X["g"] == "b").astype(int)
    report = audit_cv(
        LogisticRegression(),
        X,
        columns["y_true"],
        sensitive_features="g",
        favorable="low",
        response_method="predict_proba",
    )
    assert (report.task, report.favorable) == ("risk", "low")
    assert report.results["brier_score"].support.sum() == 600


def test_before_and_after():
    columns = risks(n_rows=600)
    score = columns.pop("y_score")
    report = mitigation_report(score, score**2, **columns, favorable="low")
    assert report.audit_before.favorable == report.audit_after.favorable == "low"


def test_command_line(tmp_path, capsys):
    frame = pd.DataFrame(risks(n_rows=800))
    frame.to_csv(tmp_path / "risks.csv", index=False)
    arguments = ["audit", str(tmp_path / "risks.csv"), "--y-true", "y_true"]
    arguments += ["--y-score", "y_score", "--sensitive-features", "sensitive_features"]
    arguments += ["--favorable", "low", "--threshold", "0.5"]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "Read as a risk score of people or items; low scores are good" in out
    assert "Marginal outcomes: the last above 0.5000" in out


@pytest.fixture(scope="module")
def decisions():
    columns = risks(bias=0.2)
    columns["y_score"] = (columns["y_score"] > 0.5).astype(int)
    return audit(**columns, favorable="low")


class TestDecisions:
    def test_has_the_rates(self, decisions):
        assert set(decisions.results) == {
            "selection_rate",
            "true_positive_rate",
            "false_positive_rate",
            "precision",
        }

    def test_says_who_is_flagged_more_often(self, decisions):
        assert decisions.headline.startswith(
            "1 of 2 groups is worse off beyond chance: b"
        )
        verdicts = {f.metric.name: f.verdict for f in decisions.findings}
        rate = verdicts["false_positive_rate"]
        assert rate.startswith("Selected more often among those without the outcome: b")
        assert verdicts["selection_rate"].startswith("Selected more often: b (+")

    def test_is_the_contrast_of_two_groups(self, decisions):
        result = decisions.results["selection_rate"]
        contrast = result.contrast("b", "a")
        (finding,) = (f for f in decisions.findings if f.result is result)
        (row,) = (row for row in finding.rows if row.group == "b")
        low, high = contrast.confidence_interval()
        np.testing.assert_allclose(row.difference, contrast.estimate, rtol=1e-12)
        np.testing.assert_allclose(
            (row.difference_low, row.difference_high), (low, high), rtol=2e-3
        )

    def test_without_outcomes_of_two_values_there_is_the_selection_rate(self):
        columns = risks(n_rows=300)
        report = audit(
            columns["y_true"] + columns["y_score"],
            columns["y_score"] > 0.5,
            sensitive_features=columns["sensitive_features"],
        )
        assert set(report.results) == {"selection_rate"}
        assert sum("outcomes that are 0 or 1" in note for note in report.notes) == 3
