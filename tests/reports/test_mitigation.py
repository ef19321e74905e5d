"""Before and after a mitigation: what moved, and what it cost."""

import re
from html import escape

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss as sklearn_log_loss
from sklearn.metrics import roc_auc_score
from statsmodels.stats.multitest import multipletests

from skrankfair import mitigation_report
from skrankfair.inference import compare, predictive_parity_test
from skrankfair.metrics import (
    matched_pair_calibration,
    mean_squared_error,
    ndcg,
    pairwise_accuracy,
)
from tests.scoring.data import GroupShift


def problem(n_queries=200, seed=0, size=10):
    """A score that is too low for "a", and one that is right."""
    rng = np.random.default_rng(seed)
    n = n_queries * size
    data = pd.DataFrame({"query": np.arange(n) // size})
    data["user"] = data["query"] // 2
    data["group"] = rng.choice(["a", "b"], n)
    data["fair"] = rng.uniform(0.1, 0.9, n)
    data["unfair"] = np.where(data["group"] == "a", data["fair"] ** 2, data["fair"])
    data["y"] = (rng.random(n) < data["fair"]).astype(float)
    return data


def report_of(data, before="unfair", after="fair", **options):
    """Return the report of two scores, which may be columns of the data."""
    columns = {"sensitive_features": data["group"], "qid": data["query"], **options}
    pair = (data[s] if isinstance(s, str) else s for s in (before, after))
    return mitigation_report(*pair, data["y"], **columns)


def test_weights_of_rows_are_repetitions():
    data, weight = problem(60), np.random.default_rng(1).integers(1, 4, 600)
    more, options = data.loc[np.arange(600).repeat(weight)], {"qid": None}
    weighted = report_of(data, item_weight=weight, cluster=data.index, **options)
    repeated = report_of(more, cluster=more.index, **options)
    changes = [r.to_frame()["change"] for r in (weighted, repeated)]
    np.testing.assert_allclose(*changes, atol=1e-12)


class TestGoal:
    def test_is_what_the_report_says_first(self):
        data = problem()
        report = report_of(data, goal="calibration", task="risk")
        plain = report_of(data, task="risk")
        pd.testing.assert_frame_equal(report.to_frame(), plain.to_frame())
        said = report.summary()
        assert said.startswith("Goal, calibration: Closer to fair: ")
        starts = ("Goal", "gap of a in calibration in the large 0.191")
        starts += ("Equal outcomes", "Cost: ", "What else moved: ")
        places = [said.index(start) for start in starts]
        assert places == sorted(places)
        assert plain.summary().startswith("Closer to fair: ")
        assert {"brier_score", "log_loss"}.isdisjoint(report.disparities)

    def test_that_is_not_reached_is_named_too(self):
        data = problem(60)
        report = report_of(data, after="unfair", goal="calibration", task="risk")
        assert report.summary().startswith("Goal, calibration: No change shown: ")
        options = {"sensitive_features": data["query"] % 4, "qid": None}
        many = report_of(data, "fair", goal="calibration", task="risk", **options)
        assert "; and 5 more in the table. Equal" in many.summary()

    def test_that_nothing_measures_is_refused(self):
        with pytest.raises(ValueError, match="'equal_opportunity' needs one of tru"):
            report_of(problem(50), goal="equal_opportunity")


def test_other_formats_have_all_of_it(tmp_path):
    report = report_of(problem(100), goal="accuracy")
    page = report.to_html(tmp_path / "p.html", title="Old and new").read_text("utf-8")
    texts = report.to_markdown(), report.to_latex()
    for said in report._page.headline.splitlines():
        shown = page.replace("&#39;", "'").replace("\N{MINUS SIGN}", "-")
        assert escape(said, quote=False) in shown
        assert said.split("[")[0][:40] in texts[0].replace("\\", "")
    for title in ("Goal, accuracy", "What it cost", "What else moved"):
        assert all(title in text for text in (page, *texts))
    assert "<title>Old and new</title>" in page
    assert len(report.to_frame()) == page.count("</tr>") - 3


class TestNumbers:
    @pytest.mark.parametrize("unit", ["query", "user"])
    def test_are_those_of_the_parts(self, unit):
        data = problem()
        report = report_of(data, cluster=data[unit])
        frame = report.to_frame().set_index(["metric", "group"])
        who = {"sensitive_features": data["group"], "qid": data["query"]}
        who["cluster"] = data[unit]
        for name, metric, options in [
            ("inter_group_accuracy", pairwise_accuracy, {"comparison": "inter"}),
            ("matched_pair_calibration", matched_pair_calibration, {}),
        ]:
            first, second = (
                metric(data["y"], data[s], **who, **options).as_gap()
                for s in ("unfair", "fair")
            )
            moved = compare(second, first)
            expected = [first.estimate, second.estimate, moved.estimate]
            expected += [moved.standard_error, *moved.confidence_interval()]
            found = frame.loc[name, "before":"ci_high"].to_numpy(dtype=float)
            np.testing.assert_allclose(found.T, expected)
        y, unfair, fair = (data[name].to_numpy() for name in ("y", "unfair", "fair"))
        cost = frame.xs("all", level="group")
        assert cost.loc["auc", "before"] == pytest.approx(roc_auc_score(y, unfair))
        assert cost.loc["log_loss", "after"] == pytest.approx(sklearn_log_loss(y, fair))
        weight = 1.0 + data["query"].to_numpy() % 3
        weighted = report_of(data, cluster=data[unit], sample_weight=weight)
        expected = roc_auc_score(y, unfair, sample_weight=weight)
        assert weighted.costs["auc"].before.estimate == pytest.approx(expected)
        ranked = ndcg(y, unfair, qid=data["query"], cluster=data[unit])
        assert cost.loc["ndcg", "before"] == pytest.approx(ranked.estimate[0])
        parity = predictive_parity_test(
            y, unfair, sensitive_features=data["group"], cluster=data[unit]
        )
        assert report.parity_before.pvalue == pytest.approx(parity.pvalue)


class TestVerdicts:
    def of_shifts(self, before, after, metric="inter_group_accuracy"):
        data = problem(400)
        for name, shift in (("before", before), ("after", after)):
            data[name] = data["fair"] + shift * (data["group"] == "a")
        frame = report_of(data, "before", "after", metrics=metric).to_frame()
        frame = frame[frame["metric"] == metric]
        return frame["verdict"].tolist()

    @pytest.mark.parametrize(
        ("before", "after", "verdict"),
        [
            (-0.3, 0, "closer to fair"),
            (-0.3, 0.1, "closer to fair"),
            (0, -0.3, "further from fair"),
            (-0.1, 0.3, "further from fair"),
            (-0.2, 0.2, "moved; cannot tell whether closer"),
            (0.2, 0.2, "no change shown"),
        ],
    )
    def test_need_the_change_and_the_sum(self, before, after, verdict):
        assert self.of_shifts(before, after) == [verdict] * 2

    def test_are_those_of_holm_over_all_metrics(self):
        """Both p-values by the naive formula, a test that two groups share once."""
        data = problem(60)
        data["after"] = data["fair"] + 0.03 * (data["group"] == "a")
        report = report_of(data, "fair", "after")
        changed, unequal, once = [], [], []
        for first, second, moved in report.disparities.values():
            fair = first.fair_value or 0.0
            change, error = moved.estimate, moved.standard_error
            total = first.estimate + second.estimate - 2 * fair
            each = first.standard_error**2 + second.standard_error**2
            # A shift of a group does not move what is within it: t is 0.
            t = change / np.where(change == 0, 1, error)
            t = np.abs([t, total / np.sqrt(2 * each - error**2)])
            p = 2 * stats.t.sf(t, moved.df)
            changed += p[0].tolist()
            unequal += (p.max(axis=0) / 2).tolist()
            once += [True, not np.isclose(*moved.pvalue)]
        frame = report.to_frame()
        frame = frame[frame["kind"] == "disparity"]
        once = np.array(once)
        assert 2 < once.sum() < once.size
        expected = multipletests(np.array(changed)[once], method="holm")[1]
        np.testing.assert_allclose(frame["pvalue_corrected"][once], expected, rtol=1e-8)
        shown = multipletests(np.array(unequal)[once], method="holm")[1] < 0.05
        told = frame["verdict"][once].isin(["closer to fair", "further from fair"])
        assert told.tolist() == shown.tolist()

    def test_of_costs(self):
        data = problem(400)
        data["noisy"] = np.random.default_rng(0).permutation(data["fair"])
        for *scores, verdict in (
            ("noisy", "fair", "better"),
            ("fair", "noisy", "worse"),
        ):
            frame = report_of(data, *scores).to_frame()
            costs = frame.loc[frame["kind"] == "cost", "verdict"]
            assert costs.tolist() == [verdict] * 3


class TestInput:
    def test_a_regressor_gets_the_group_that_it_wants(self):
        data = problem(50).rename(columns={"unfair": "x"})
        model = GroupShift(column="group").fit(data, data["y"])
        who = {"sensitive_features": "group", "qid": "query", "X": data}
        found = report_of(data, data["fair"], model, **who)
        data["shifted"] = model.predict(data, data["group"])
        expected = report_of(data, "fair", "shifted")
        pd.testing.assert_frame_equal(found.to_frame(), expected.to_frame())

    def test_classifiers_are_scored_by_the_probability_of_the_second_class(self):
        train, test = problem(100), problem(100, 1)
        words = {0.0: "no", 1.0: "yes"}
        model = LogisticRegression().fit(train[["unfair"]], train["y"].map(words))
        test["scored"] = model.predict_proba(test[["unfair"]])[:, 1]
        expected = report_of(test, "fair", "scored")
        test["y"] = test["y"].map(words)
        found = report_of(test, "fair", model, X=test[["unfair"]])
        pd.testing.assert_frame_equal(found.to_frame(), expected.to_frame())

    def test_real_outcomes_have_a_mean_squared_error(self):
        data = problem(50)
        data["y"] += 1 + np.random.default_rng(0).random(len(data))
        report = report_of(data)
        assert list(report.costs) == ["ndcg", "mean_squared_error"]
        assert len(report.notes) == 2
        expected = mean_squared_error(data["y"], data["fair"], cluster=data["query"])
        assert report.costs["mean_squared_error"].after.estimate == expected.estimate
        data["y"] -= 3
        assert list(report_of(data).costs) == ["mean_squared_error"]

    def test_decisions_have_no_log_loss_and_are_told_from_scores(self):
        data = problem(50)
        data["chosen"] = data["fair"] > 0.5
        both = report_of(data, "chosen", "chosen", qid=None)
        mixed = report_of(data, after=data[["chosen"]], qid=None, threshold=0.5)
        for report, said in ((both, False), (mixed, True)):
            assert list(report.costs) == ["auc", "mean_squared_error"]
            words = "before are read as a risk score .* after as decisions"
            assert bool(re.search(words, " ".join(report.notes))) == said

    def test_one_list_and_overlapping_groups(self):
        data = problem(40)
        membership = pd.DataFrame({"a": data["group"] == "a"})
        membership["c"] = np.random.default_rng(0).random(len(data)) < 0.5
        lists = {"qid": None, "task": "ranking"}
        report = report_of(data, sensitive_features=membership, **lists)
        frame = report.to_frame()
        assert set(frame["group"]) == {"a", "c", "all"}
        ranked = frame.loc[frame["metric"] == "ndcg", ["standard_error", "verdict"]]
        assert ranked.isin([np.nan, "no verdict"]).all(axis=None)
        assert any("only one query" in note for note in report.notes)

    def test_scores_without_spread_have_no_parity(self):
        data = problem(40)
        data["same"] = 0.5
        report = report_of(data, after="same", metrics="inter_group_accuracy")
        assert report.parity_after is None
        assert "Predictive parity is left out" in report.notes[-1]
        assert list(report.disparities) == ["inter_group_accuracy"]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"bandwidth": "narrow"}, "bandwidth must be"),
            ({"before": LinearRegression()}, "X must be given where before is"),
            ({"sensitive_features": "group"}, "X must be given for sensitive_features"),
            ({"after": [0.5]}, "same number of rows"),
            ({"cluster": problem(20)["user"][::-1]}, "in the order of y_true"),
            ({"metrics": "parity"}, "metrics must be among"),
            ({"y_true": None}, "y_true"),
            ({"X": pd.DataFrame({"b": [1]}), "qid": "query"}, "there is no 'query'"),
        ],
    )
    def test_bad_input_raises(self, options, message):
        data = problem(20)
        data["y"] = options.pop("y_true", data["y"])
        with pytest.raises(ValueError, match=message):
            report_of(data, **options)


class TestShown:
    def test_text_and_html(self):
        report = report_of(problem().replace({"group": {"a": "<b>[red]"}}))
        text = repr(report)
        parts = "disparity", "cost", "log loss", "inter-group", report.summary()[:9]
        assert all(part in text for part in parts)
        html = report._repr_html_()
        assert "&lt;b&gt;" in html
        assert "<b>" not in html

    def test_picture(self):
        plt = pytest.importorskip("matplotlib.pyplot")
        report = report_of(problem())
        display, frame = report.plot(), report.to_frame()
        moved = frame[frame["kind"] == "disparity"]
        ends = [line.get_xdata() for line in display.changes_.intervals_]
        known = moved[["ci_low", "ci_high"]].dropna()  # no variance, no interval
        np.testing.assert_allclose(ends, known)
        for drawn, expected in (
            (display.before_after_.after_, moved["after"]),
            (display.costs_.points_, frame["change"][-3:] * [1, 1, -1]),
        ):
            points = [point.get_xdata()[0] for point in drawn]
            np.testing.assert_allclose(points, expected)
        with pytest.raises(ValueError, match="axes must be three axes"):
            report.plot(axes=plt.gca())
        plt.close("all")
