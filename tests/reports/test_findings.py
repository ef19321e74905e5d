"""What findings say of groups: corrections, sides, margins and the headline."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from skrankfair import audit
from skrankfair._estimates.estimates import correct, one_test
from skrankfair._inputs.validation import collected_warnings
from skrankfair.exceptions import UndefinedMetricWarning
from tests.designs import Sellers

from .common import Page, by_name, data, risks, written

INTER = "inter_group_accuracy"


@pytest.fixture(scope="module")
def many():
    return audit(**data(groups=tuple("abcdef"), bias=1.0))


@pytest.fixture(scope="module")
def neutral():
    return audit(**risks())


@pytest.fixture(scope="module")
def low():
    return audit(**risks(), favorable="low", threshold=0.5)


class TestCorrection:
    def test_holm_over_the_groups(self, many):
        part = many.to_frame().set_index("metric").loc[INTER]
        expected = correct(part["pvalue"].to_numpy(), "holm")
        np.testing.assert_allclose(part["pvalue_corrected"], expected, rtol=1e-12)

    def test_two_groups_are_one_test_but_of_matched_pairs(self, report):
        frame = report.to_frame().set_index("metric")
        part = frame.loc[INTER]
        np.testing.assert_array_equal(part["pvalue"], part["pvalue_corrected"])
        p = report.results["matched_pair_calibration"].pvalue
        assert not one_test(p)
        corrected = frame.loc["matched_pair_calibration", "pvalue_corrected"]
        assert corrected.min() == pytest.approx(2 * p.min())

    def test_benjamini_and_hochberg(self):
        columns = data(groups=tuple("abcd"), n_queries=200)
        report = audit(**columns, metrics=INTER, correction="fdr_bh")
        expected = correct(report.results[INTER].pvalue, "fdr_bh")
        np.testing.assert_allclose(report.to_frame()["pvalue_corrected"], expected)
        assert "p (BH)" in str(report)

    def test_small_groups_do_not_count_as_tests(self):
        columns = data(n_queries=300)
        columns["sensitive_features"][:3] = ["x", "y", "z"]
        with pytest.warns(UndefinedMetricWarning, match="without pairs|too few"):
            report = audit(**columns, metrics=INTER)
        (finding,) = report.findings
        too_little = "There is too little data for a verdict on x, y, z."
        assert finding.verdict.endswith(f"]). {too_little}")
        assert report.headline.endswith(too_little)
        rows = {row.group: row for row in finding.rows}
        assert all(rows[group].missing and not rows[group].side for group in "xyz")
        large = [rows[group] for group in "fm"]
        expected = correct(np.array([row.pvalue for row in large]), "holm")
        np.testing.assert_allclose([row.pvalue_corrected for row in large], expected)

    def test_few_effective_clusters_are_too_little_data(self):
        who = {"sensitive_features": ["a", "b"] * 3, "qid": [0, 0, 1, 1, 2, 2]}
        metrics = "pairwise_exposure"
        (finding,) = audit([1, 0] * 3, [0.0, 1.0] * 3, **who, metrics=metrics).findings
        missing = "too little data (3.0 effective clusters; a verdict needs 5)"
        assert {(row.side, row.missing) for row in finding.rows} == {("", missing)}
        assert np.isnan([row.pvalue_corrected for row in finding.rows]).all()
        assert finding.verdict.startswith("No group has enough data, or enough var")

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
    def test_what_is_undefined_has_its_reason_and_is_never_zero(self, tmp_path):
        member = data()["sensitive_features"] == "f"
        genres = pd.DataFrame({"f": member, "nobody": np.zeros(1500, bool)})
        columns = {**data(), "sensitive_features": genres}
        report = audit(**columns, metrics=["pairwise_exposure"])
        assert np.isnan(report.to_frame().estimate[1])
        assert re.search(r"(?m)^nobody +– +no pairs +0 +– +–$", repr(report))
        page = written(report, tmp_path)
        assert all(words in page for words in ("no data", "no pairs"))
        _, nobody = report.to_dict()["metrics"][0]["groups"]
        assert (nobody["estimate"], nobody["missing"]) == (None, "no pairs")


def test_opposite_groups_of_three_are_not_the_rest_of_each_other():
    place, group = np.tile(np.arange(100), 3), np.repeat(["a", "b", "c"], 100)
    for of_b in (80, 50):
        chosen = (place < np.repeat([100 - of_b, of_b, 50], 100)) * 1
        who = {"sensitive_features": group, "within": place % 2}
        report = audit(chosen, chosen, **who, metrics="selection_rate")
        assert ("Selected more often: b (80 of" in report.headline) == (of_b > 50)
        assert {row[1] for row in report.sections[0].rows} == {*group}


SILENCE = "The data do not show a difference between the groups."


class TestRankings:
    def test_names_who_is_worse_off_and_by_how_much(self, report):
        mistakes, places, equal = report.answers
        assert mistakes[0] == "Who suffers the mistakes?"
        assert re.search("Ranked above worse items less often: f", mistakes[1])
        assert re.fullmatch(
            r"Ranked lower: f \(\d\d.\d%; 50% would be equal\).", places[1]
        )
        assert equal == ("Are equal scores equally good?", SILENCE)
        findings = by_name(report)
        difference = report.results[INTER].against_rest()
        low, high = difference.confidence_interval()
        assert findings[INTER].verdict == (
            "Ranked above worse items less often: f "
            f"({100 * difference.estimate[0]:+.1f} points "
            f"[{100 * low[0]:+.1f}, {100 * high[0]:+.1f}])."
        )
        assert findings["pairwise_exposure"].verdict.startswith("Ranked lower: f (-")
        assert findings["pairwise_preference"].verdict.startswith("Nothing to test")
        verdicts = report.to_frame().set_index(["metric", "group"])["verdict"]
        assert verdicts[INTER].tolist() == ["worse off", "better off"]
        assert verdicts["intra_group_accuracy"].tolist() == ["cannot tell"] * 2
        assert set(verdicts["pairwise_preference"]) == {""}

    def test_only_beyond_chance_and_the_worst_first(self, many):
        for finding in many.findings:
            for row in finding.rows:
                assert bool(row.side) == (row.pvalue_corrected < 0.05)
        ordered = by_name(many)[INTER].ordered
        assert ordered[0].group == "a"
        differences = [row.difference for row in ordered]
        assert differences == sorted(differences)

    def test_silence_on_fair_data(self):
        report = audit(**data(bias=0.0, seed=4))
        assert [answer for _, answer in report.answers] == [SILENCE] * 3
        assert "The data do not show a difference (smallest" in repr(report)
        with pytest.warns(UndefinedMetricWarning):
            nobody = audit(**{**data(bias=0.0, seed=4), "y_true": np.zeros(1500)})
        mistakes, places, _ = nobody.answers
        assert mistakes[1] == "There is too little data to tell the groups apart."
        assert places[1] == SILENCE

    def test_a_single_metric_names_nobody_in_the_headline(self):
        report = audit(**data(bias=0.12, seed=4, n_queries=100))
        hints = {f.metric.question for f in report.findings if f.groups_on("worse")}
        assert hints
        tested = sum(finding.tested for finding in report.findings)
        hinted = (
            f"No difference is beyond chance after a correction for all {tested} "
            "metrics; single ones hint at some."
        )
        for question, answer in report.answers:
            assert answer == (hinted if question in hints else SILENCE)

    def test_what_alone_is_no_unfairness_or_not_tested(self):
        headline = audit(**data(), metrics="pairwise_exposure").headline
        assert headline.startswith("Who gets the places? Ranked lower: f (")
        headline = audit(**data(), metrics="ndcg").headline
        assert headline == "None of the requested metrics says what is fair."

    def test_more_than_three_are_counted(self):
        columns = data(groups=tuple("abcdefgh"), n_queries=800)
        low = np.isin(columns["sensitive_features"], list("abcde"))
        columns["y_score"] = columns["y_score"] - 2.0 * low
        (finding,) = audit(**columns, metrics="pairwise_exposure").findings
        assert len(finding.groups_on("worse")) == 5
        assert ", and 2 more." in finding.verdict

    def test_three_hundred_sellers_of_noise_are_a_short_table(self):
        with collected_warnings() as collected:
            report = audit(**Sellers("300 sellers", 300, 300, 20).draw(0))
        assert any("for groups without pairs" in message for _, message in collected)
        assert all(answer.startswith(SILENCE) for _, answer in report.answers)
        for finding in report.findings:
            if finding.tested:
                assert len(finding.shown) < 30 < len(finding.rows)
                left = len(finding.compared) - len(finding.shown)
                said = f"{left} more groups do not differ beyond chance. There is too "
                assert (said in finding.verdict) == (left > 0)
        preference = by_name(report)["pairwise_preference"].verdict
        assert preference.endswith("The table shows 10 of 292 groups.")

    def test_the_first_places_have_words_of_their_own(self):
        one = audit(**data(), k=1, metrics="share_at_k")
        assert "of which the first place counts;" in one.reading


class TestRisks:
    def test_without_a_good_end_nobody_is_worse_off(self, neutral, tmp_path):
        page = written(neutral, tmp_path)
        visible = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
        notes = "learn who is|Who is worse off depends"
        for text in (repr(neutral), visible, json.dumps(neutral.to_dict())):
            for match in re.finditer("(worse|better) off", text):
                around = text[max(0, match.start() - 40) : match.end() + 40]
                assert re.search(notes, around), around
        assert neutral.answers[-1][1].startswith("Who is worse off depends")
        known = audit(**data(), favorable="low", metrics="pairwise_accuracy")
        assert "Ranked less accurately: f" in known.headline
        assert "depends" not in known.headline
        sides = {row.side for finding in neutral.findings for row in finding.rows}
        assert sides <= {"", "lower", "higher"}
        found = by_name(neutral)["matched_pair_calibration"].verdict
        said = "Has lower outcomes than others for its scores: b (-"
        assert found.startswith(said)

    def test_nobody_is_on_a_side_of_what_is_not_tested(self, neutral):
        untested = [f for f in neutral.findings if not f.tested]
        assert {f.metric.name for f in untested} >= {"brier_score", "log_loss"}
        # The test that all groups are equal has p-values all the same.
        assert (neutral.results["brier_score"].pvalue < 0.05).all()
        assert {row.side for f in untested for row in f.rows} == {""}
        assert {f.kind for f in untested} == {"none"}

    def test_the_best_known_conflict_is_explained(self, low):
        # Calibrated, and groups with unlike base rates: mistakes differ of necessity.
        columns = risks(bias=0, base=0.25)
        report = audit(**columns, favorable="low", threshold=0.5)
        assert report.reading == (
            "Read as a risk score of people or items, with the decision 1 from 0.5 on; "
            "low scores are good for them."
        )
        equal, mistakes, selected = report.answers
        y, s, g = columns["y_true"], columns["y_score"], columns["sensitive_features"]
        of_b, of_a = ((y == 0) & (g == group) for group in "ba")
        counts = [f"{(of & (s >= 0.5)).sum():,} of {of.sum():,}" for of in (of_b, of_a)]
        said = "Flagged more often among those without the outcome: b ({}, "
        assert said.format(counts[0]) in mistakes[1]
        assert f"; {counts[1]} of the rest, " in mistakes[1]
        assert selected[0] == "Who is flagged?"
        assert equal == ("Do equal scores mean the same?", SILENCE)
        assert any("at equal scores: b. Which" in note for note in report.all_notes)
        # Mistakes have become less fair, by which nobody is worse off.
        before = audit(**risks(bias=0), favorable="low", threshold=0.5)
        for other in (low, report.changes_since(before)):
            assert not any("known to conflict" in note for note in other.all_notes)

    def test_unlike_base_rates_alone_are_no_finding(self):
        report = audit(**risks(bias=0, base=0.25), favorable="low")
        assert {answer for _, answer in report.answers} == {SILENCE}
        assert not {"pairwise_exposure", "inter_group_accuracy"} & {*report.results}
        assert any("threshold=" in note for note in report.notes)
        assert not re.search("quer|pair", report.counts)

    def test_one_group_has_nobody_to_be_compared_with(self):
        columns = risks(n_rows=200) | {"sensitive_features": ["a"] * 200}
        with pytest.warns(match="without pairs"):
            report = audit(**columns)
        said = {report.headline, *(f.verdict for f in report.findings if f.tested)}
        assert said == {"There is only one group, so there is nothing to compare."}

    def test_decisions_say_who_is_flagged_more_often(self):
        columns = risks(bias=0.2)
        columns["y_score"] = (columns["y_score"] > 0.5).astype(int)
        decisions = audit(**columns, favorable="low")
        assert decisions.answers[1][0] == "Who is flagged?"
        finding = by_name(decisions)["selection_rate"]
        assert finding.verdict.startswith("Flagged more often: b (+")
        contrast = finding.result.contrast("b", "a")
        (row,) = (row for row in finding.rows if row.group == "b")
        assert row.difference == pytest.approx(contrast.estimate, rel=1e-12)
        ends = row.difference_low, row.difference_high
        np.testing.assert_allclose(ends, contrast.confidence_interval(), rtol=2e-3)


def three(n_queries=3000, bias=0.4, **options):
    """Return an audit in which "a" is undervalued and the rest are nearly equal."""
    columns = data(("a", "b", "c", "d", "e"), n_queries=n_queries, bias=bias)
    return audit(**columns, metrics=INTER, **options)


@pytest.fixture(scope="module", name="within")
def _within():
    return three(margin=0.06)


class TestMargins:
    def test_is_the_test_of_equivalence_corrected_over_the_groups(self, within):
        test = within.results[INTER].equivalence_test(0.06)
        frame = within.to_frame().set_index("group")
        np.testing.assert_allclose(frame["pvalue_margin"], test.pvalue)
        corrected = correct(test.pvalue, "holm")
        np.testing.assert_allclose(frame["pvalue_margin_corrected"], corrected)
        verdicts = ["worse off", *["better off, within the margin"] * 3, "better off"]
        assert frame["verdict"].tolist() == verdicts
        # Uncorrected, each verdict is that of the interval of level 1 - 2 alpha.
        low, high = within.results[INTER].against_rest().confidence_interval(0.9)
        inside = (low > -0.06) & (high < 0.06)
        np.testing.assert_array_equal(frame["pvalue_margin"] < 0.05, inside)

    def test_the_three_verdicts_are_in_words(self, within):
        (finding,) = within.findings
        assert re.search(r"items less often: a \(-\d", finding.verdict)
        assert "Shown to be within 6 points of the rest: b, c, d." in finding.verdict
        assert "3 of 5 groups are shown to be within the margin" in within.headline
        assert "3 of 4 groups are" in three(margin=0.06, reference="e").headline
        few = three(n_queries=40, bias=0.0, margin=0.06)
        assert "The data cannot tell for a, b, c, d, e." in few.findings[0].verdict
        assert "No group is shown to be within the margin of Inter-" in few.headline
        assert set(few.to_frame()["verdict"]) == {"cannot tell"}
        assert few.findings[0].cells()[0][-1] == "verdict"

    def test_all_groups_need_no_correction(self):
        """The intersection-union test: the largest p-value alone."""
        for n_queries in range(100, 1000, 50):
            (finding,) = three(n_queries=n_queries, bias=0.0, margin=0.06).findings
            pvalues = np.array([row.pvalue_margin for row in finding.rows])
            assert finding.all_within == (pvalues.max() < 0.05)
            if finding.all_within and correct(pvalues, "holm").max() >= 0.05:
                break
        else:
            pytest.fail("Holm's method never was stricter.")
        assert all(row.within for row in finding.rows)
        assert "Every group is shown to be within 6 points of the" in finding.verdict

    def test_a_difference_can_be_there_and_too_small_to_matter(self):
        report = audit(**data(n_queries=4000, bias=0.1), metrics=INTER, margin=0.1)
        sides = ["worse off, within the margin", "better off, within the margin"]
        assert report.to_frame()["verdict"].tolist() == sides
        assert "Ranked above worse items less often: f" in report.headline
        assert "Every group is shown to be within the margin" in report.headline

    def test_the_headline_wants_every_metric_of_outcomes(self):
        names = ["pairwise_accuracy", INTER, "pairwise_exposure"]
        columns = data(("a", "b", "c"), n_queries=3000, bias=0.0)
        margins = dict(zip(names, (0.03, 0.03, 1e-4), strict=True))
        report = audit(**columns, metrics=names, margin=margins)
        both = [report.results[n].equivalence_test(0.03).pvalue for n in names[:2]]
        assert np.max(both) < 0.05
        every = "Every group is shown to be within the margin by every metric of outc"
        assert every in report.headline  # exposure does not look at outcomes
        report = audit(**columns, metrics=names, margin={**margins, INTER: 0.001})
        assert "No group is shown to be within the margin by every" in report.headline

    def test_a_group_with_too_little_data_is_not_within(self):
        columns = data(n_queries=2000, bias=0.0)
        columns["sensitive_features"][:30:10] = "rare"
        report = audit(**columns, metrics=INTER, margin=0.2)
        frame = report.to_frame().set_index("group")
        assert frame.loc["rare", "verdict"] == ""
        assert np.isnan(frame.loc["rare", "pvalue_margin"])
        assert frame.loc[["f", "m"], "verdict"].eq("within the margin").all()
        assert not report.findings[0].all_within
        expected = correct(frame["pvalue_margin"].to_numpy(), "holm")
        np.testing.assert_allclose(frame["pvalue_margin_corrected"], expected)

    def test_is_in_the_page_and_the_numbers(self, within, tmp_path):
        text = written(within, tmp_path)
        Page(text)
        assert text.count(">better off, within the margin</td>") == 3
        assert "and the band the margin" in text
        assert re.search(r'<rect [^>]*fill-opacity="0\.12"', text)
        assert "is-within" in text
        assert within.to_dict()["margin"] == {INTER: 0.06}
        without = three(n_queries=100)
        assert not any("margin" in name for name in without.to_frame())
        assert "margin" not in repr(without)
        assert "fill-opacity" not in written(without, tmp_path)


def test_a_mere_yes_is_said_with_its_column():
    hired = (np.arange(400) % np.where(np.arange(400) < 200, 5, 2) == 0) * 1
    black = pd.Series(np.repeat(["yes", "no"], 200), name="black")
    who = {"favorable": "high", "metrics": "selection_rate"}
    report = audit(hired, hired, sensitive_features=black, **who)
    assert "Selected less often: black=yes (40 of 200, " in report.headline
    assert report.findings[0].cells()[0][0] == "black"
    unnamed = audit(hired, hired, sensitive_features=black.to_numpy(), **who)
    assert "Selected less often: yes (40 of 200, " in unnamed.headline
