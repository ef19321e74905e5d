"""Before and after a mitigation: what moved, and what it cost."""

import io

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binom
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.metrics import log_loss as sklearn_log_loss

import skrankfair
from skrankfair import mitigation_report
from skrankfair.inference import compare, predictive_parity_test
from skrankfair.metrics import (
    log_loss,
    matched_pair_calibration,
    mean_squared_error,
    ndcg,
    pairwise_accuracy,
)
from skrankfair.mitigation import GroupCalibratedClassifier, GroupCalibrator


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
    columns = {"sensitive_features": data["group"], "qid": data["query"]}
    return mitigation_report(
        data[before], data[after], data["y"], **{**columns, **options}
    )


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
                metric(data["y"], data[s], **who, **options) for s in ("unfair", "fair")
            )
            if first.fair_value is None:
                first, second = first.against_rest(), second.against_rest()
            moved = compare(second, first)
            low, high = moved.confidence_interval()
            for column, expected in [
                ("before", first.estimate),
                ("after", second.estimate),
                ("change", moved.estimate),
                ("standard_error", moved.standard_error),
                ("ci_low", low),
                ("ci_high", high),
            ]:
                np.testing.assert_allclose(frame.loc[name, column], expected)
        y, unfair, fair = (data[name].to_numpy() for name in ("y", "unfair", "fair"))
        cost = frame.xs("all", level="group")
        assert cost.loc["auc", "before"] == pytest.approx(roc_auc_score(y, unfair))
        assert cost.loc["log_loss", "after"] == pytest.approx(sklearn_log_loss(y, fair))
        ranked = ndcg(y, unfair, qid=data["query"], cluster=data[unit])
        assert cost.loc["ndcg", "before"] == pytest.approx(ranked.estimate[0])
        parity = predictive_parity_test(
            y, unfair, sensitive_features=data["group"], cluster=data[unit]
        )
        assert report.parity_before.pvalue == pytest.approx(parity.pvalue)

    def test_audits_are_audits(self):
        data = problem(50)
        report = report_of(data)
        who = {"sensitive_features": data["group"], "qid": data["query"]}
        for audit, score in (
            (report.audit_before, "unfair"),
            (report.audit_after, "fair"),
        ):
            expected = skrankfair.audit(data["y"], data[score], **who)
            pd.testing.assert_frame_equal(audit.to_frame(), expected.to_frame())

    @pytest.mark.parametrize("name", ["auc", "log_loss"])
    @pytest.mark.simulation
    def test_paired_intervals_of_costs_cover(self, name):
        """Around the mean of many data sets, whose queries have much in common."""
        n_sets, found = 200, []
        for seed in range(n_sets):
            rng = np.random.default_rng(seed)
            data = problem(60, seed, 5)
            shift = rng.normal(size=60)[data["query"]]
            y = (rng.random(300) < data["fair"] ** np.exp(shift)).astype(float)
            who = {"cluster": data["query"]}
            metric = log_loss
            if name == "auc":
                metric, who["sensitive_features"] = (
                    pairwise_accuracy,
                    np.zeros(300, int),
                )
            after, before = (metric(y, data[s], **who) for s in ("fair", "unfair"))
            moved = compare(after, before)
            ends = moved.confidence_interval()
            found.append([moved.estimate[0], ends.low[0], ends.high[0]])
        change, low, high = np.transpose(found)
        covered = int(np.sum((low <= change.mean()) & (change.mean() <= high)))
        assert (
            binom.ppf(0.001, n_sets, 0.94) <= covered <= binom.ppf(0.999, n_sets, 0.96)
        )
        assert 0.8 < change.std() / np.mean((high - low) / 4) < 1.25

    def test_nothing_moves_between_equal_scores(self):
        data = problem(50)
        frame = report_of(data, "fair", "fair").to_frame()
        assert (frame["change"] == 0).all()
        assert (frame["verdict"] == "no change shown").all()


class TestVerdicts:
    def verdict(self, before, after, metric="inter_group_accuracy"):
        data = problem(400)
        for name, shift in (("before", before), ("after", after)):
            data[name] = data["fair"] + shift * (data["group"] == "a")
        frame = report_of(data, "before", "after").to_frame()
        frame = frame[frame["metric"] == metric]
        return frame["verdict"].tolist()

    def test_closer_further_and_past(self):
        assert self.verdict(-0.3, 0) == ["closer to fair"] * 2
        assert self.verdict(0, -0.3) == ["further from fair"] * 2
        assert self.verdict(-0.2, 0.2) == ["past fair"] * 2
        assert self.verdict(-0.3, 0.1) == ["closer to fair"] * 2

    def test_of_costs(self):
        data = problem(400)
        data["noisy"] = np.random.default_rng(0).permutation(data["fair"])
        for before, after, verdict in (
            ("noisy", "fair", "better"),
            ("fair", "noisy", "worse"),
        ):
            frame = report_of(data, before, after).to_frame()
            costs = frame.loc[frame["kind"] == "cost", "verdict"]
            assert costs.tolist() == [verdict] * 3

    def test_a_calibration_shows(self):
        """On fresh rows, closer to fair by matched pairs, at no cost."""
        train, test = problem(600), problem(300, 1)
        model = GroupCalibrator("platt").fit(
            train[["unfair"]], train["y"], sensitive_features=train["group"]
        )
        test["after"] = model.transform(
            test[["unfair"]], sensitive_features=test["group"]
        )[:, 0]
        report = report_of(test, after="after")
        frame = report.to_frame().set_index(["metric", "group"])
        moved = frame.loc["inter_group_accuracy", "verdict"]
        assert (moved == "closer to fair").all()
        assert report.parity_before.pvalue < 0.01 < report.parity_after.pvalue
        assert frame.loc[("log_loss", "all"), "verdict"] == "better"


class Means(RegressorMixin, BaseEstimator):
    """Predicts a column, a little higher in a group that it is told of."""

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def predict(self, X, sensitive_features=None):
        return X["fair"] + 0.1 * (np.asarray(sensitive_features) == "a")


class TestInput:
    def test_models_and_columns_by_name(self):
        train, test = problem(100), problem(100, 1)
        columns = ["group", "query", "unfair"]
        plain = LogisticRegression().fit(train[["unfair"]], train["y"])

        class Named(LogisticRegression):
            def predict_proba(self, X):
                return super().predict_proba(X[["unfair"]])

        plain = Named().fit(train[["unfair"]], train["y"])
        fair = GroupCalibratedClassifier(
            LogisticRegression(),
            sensitive_features="group",
            drop_metadata_columns=True,
        ).fit(train[columns[::2]], np.where(train["y"] > 0, "yes", "no"))

        class Calibrated(LogisticRegression):
            classes_ = np.array(["no", "yes"])

            def predict_proba(self, X):
                return fair.predict_proba(X[columns[::2]])

        text = np.where(test["y"] > 0, "yes", "no")
        plain.classes_ = Calibrated.classes_
        found = mitigation_report(
            plain,
            Calibrated(),
            text,
            X=test[columns],
            sensitive_features="group",
            qid="query",
        )
        expected = mitigation_report(
            plain.predict_proba(test)[:, 1],
            fair.predict_proba(test[columns[::2]])[:, 1],
            test["y"],
            sensitive_features=test["group"],
            qid=test["query"],
        )
        pd.testing.assert_frame_equal(found.to_frame(), expected.to_frame())

    def test_a_regressor_gets_the_group_that_it_wants(self):
        data = problem(50)
        report = mitigation_report(
            data["fair"],
            Means().fit(data),
            data["y"],
            X=data,
            sensitive_features="group",
            qid="query",
        )
        data["higher"] = data["fair"] + 0.1 * (data["group"] == "a")
        expected = report_of(data, "fair", "higher")
        pd.testing.assert_frame_equal(report.to_frame(), expected.to_frame())

    def test_libraries_agree(self):
        data = problem(50)
        expected = report_of(data).to_frame()
        found = report_of(pl.from_pandas(data)).to_frame()
        pd.testing.assert_frame_equal(found, expected)

    def test_real_outcomes_have_a_mean_squared_error(self):
        data = problem(50)
        data["y"] += 1 + np.random.default_rng(0).random(len(data))
        report = report_of(data)
        assert list(report.costs) == ["ndcg", "mean_squared_error"]
        assert len(report.notes) == 2
        expected = mean_squared_error(data["y"], data["fair"], cluster=data["query"])
        found = report.costs["mean_squared_error"].after
        assert found.estimate == expected.estimate
        data["y"] -= 3
        assert list(report_of(data).costs) == ["mean_squared_error"]

    def test_one_list_and_overlapping_groups(self):
        data = problem(40)
        membership = pd.DataFrame({"a": data["group"] == "a"})
        membership["c"] = np.random.default_rng(0).random(len(data)) < 0.5
        report = report_of(data, sensitive_features=membership, qid=None)
        frame = report.to_frame()
        assert set(frame["group"]) == {"a", "c", "all"}
        assert frame.loc[frame["metric"] == "ndcg", "standard_error"].isna().all()
        assert "only one query" in report.notes[0]

    def test_scores_without_spread_have_no_parity(self):
        data = problem(40)
        data["same"] = 0.5
        report = report_of(data, after="same", metrics="inter_group_accuracy")
        assert report.parity_after is None
        assert "Predictive parity is left out" in report.notes[-1]
        assert list(report.disparities) == ["inter_group_accuracy"]

    def test_of_ndcg_alone_there_are_only_costs(self):
        plt = pytest.importorskip("matplotlib.pyplot")
        report = report_of(problem(40), metrics="ndcg")
        assert report.disparities == {}
        assert set(report.to_frame()["kind"]) == {"cost"}
        assert "No disparity moved" in report.summary()
        report.plot().figure_.canvas.draw()
        plt.close("all")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"bandwidth": "narrow"}, "bandwidth must be"),
            ({"before": LinearRegression()}, "X must be given where before is"),
            ({"sensitive_features": "group"}, "X must be given for sensitive_features"),
            ({"after": [0.5]}, "same number of rows"),
            ({"metrics": "parity"}, "metrics must be among"),
            ({"confidence_level": 95}, "confidence_level must be a number"),
            ({"y_true": None}, "y_true"),
            ({"X": pd.DataFrame({"b": [1]}), "qid": "query"}, "there is no 'query'"),
        ],
    )
    def test_bad_input_raises(self, options, message):
        data = problem(20)
        given = {
            "before": data["unfair"],
            "after": data["fair"],
            "y_true": data["y"],
            "sensitive_features": data["group"],
        }
        with pytest.raises(ValueError, match=message):
            mitigation_report(**{**given, **options})


class TestShown:
    def test_text_html_and_terminal(self):
        rich = pytest.importorskip("rich.console")
        report = report_of(problem().replace({"group": {"a": "<b>[red]"}}))
        text = repr(report)
        for part in (
            "disparity",
            "cost",
            "log loss",
            "inter-group",
            report.summary()[:9],
        ):
            assert part in text
        html = report._repr_html_()
        assert "&lt;b&gt;" in html
        assert "<b>" not in html
        console = rich.Console(record=True, width=120, file=io.StringIO())
        console.print(report)
        assert "<b>[red]" in console.export_text()

    def test_picture(self):
        plt = pytest.importorskip("matplotlib.pyplot")
        report = report_of(problem())
        display = report.plot()
        frame = report.to_frame()
        moved = frame[frame["kind"] == "disparity"]
        points = [point.get_xdata()[0] for point in display.before_after_.after_]
        np.testing.assert_allclose(points, moved["after"])
        ends = [line.get_xdata() for line in display.changes_.intervals_]
        known = moved[["ci_low", "ci_high"]].dropna()  # no variance, no interval
        np.testing.assert_allclose(ends, known)
        gains = [point.get_xdata()[0] for point in display.costs_.points_]
        sign = [1, 1, -1]
        np.testing.assert_allclose(gains, frame["change"][-3:] * sign)
        with pytest.raises(ValueError, match="axes must be three axes"):
            report.plot(axes=plt.gca())
        plt.close("all")


class TestLosses:
    def data(self):
        rng = np.random.default_rng(0)
        y, score = rng.integers(0, 2, 200), rng.random(200)
        return y, score, rng.choice(["a", "b"], 200), rng.integers(0, 40, 200)

    @pytest.mark.parametrize("metric", [log_loss, mean_squared_error])
    def test_against_a_loop(self, metric):
        y, score, group, cluster = self.data()
        found = metric(y, score, sensitive_features=group, cluster=cluster)
        for g, label in enumerate(found.groups):
            sums = {c: [0.0, 0] for c in set(cluster)}
            for yi, si, gi, ci in zip(y, score, group, cluster, strict=True):
                if gi == label:
                    loss = (yi - si) ** 2
                    if metric is log_loss:
                        loss = -np.log(si if yi else 1 - si)
                    sums[ci][0] += loss
                    sums[ci][1] += 1
            total, n_rows = np.sum(list(sums.values()), axis=0)
            theta = total / n_rows
            there = [(part, n) for part, n in sums.values() if n]
            changes = [(total - x) / (n_rows - n) - theta for x, n in there]
            size = len(there)
            error = np.sqrt((size - 1) / size * np.square(changes).sum())
            assert found.estimate[g] == pytest.approx(theta)
            assert found.standard_error[g] == pytest.approx(error)
            assert found.support[g] == n_rows

    @pytest.mark.parametrize("metric", [log_loss, mean_squared_error])
    def test_weights_repeat_and_parts_add_up(self, metric):
        y, score, group, cluster = self.data()
        who = {"sensitive_features": group, "cluster": cluster}
        whole = metric(y, score, **who)
        parts = [cluster < 20, cluster >= 20]
        total = sum(
            metric(y[p], score[p], sensitive_features=group[p], cluster=cluster[p])
            for p in parts
        )
        np.testing.assert_allclose(total.standard_error, whole.standard_error)
        weight = np.random.default_rng(1).integers(0, 3, 200)
        rows = np.repeat(np.arange(200), weight)
        again = metric(
            y[rows],
            score[rows],
            sensitive_features=group[rows],
            cluster=cluster[rows],
        )
        weighted = metric(y, score, **who, sample_weight=weight)
        np.testing.assert_allclose(weighted.estimate, again.estimate)
        np.testing.assert_allclose(weighted.standard_error, again.standard_error)

    def test_are_those_of_scikit_learn(self):
        y, score, *_ = self.data()
        for metric, expected in (
            (log_loss, sklearn_log_loss),
            (mean_squared_error, brier_score_loss),
        ):
            assert metric(y, score).estimate[0] == pytest.approx(expected(y, score))

    def test_bad_probabilities_raise(self):
        for y, score, name in (
            ([0, 2], [0.5, 0.5], "y_true"),
            ([0, 1], [0.5, -1], "y_score"),
        ):
            with pytest.raises(ValueError, match=rf"{name} must be in \[0, 1\]"):
                log_loss(y, score)

    def test_a_certain_and_wrong_probability_has_the_loss_of_scikit_learn(self):
        y, score = [0, 1, 1], [1.0, 0.0, 0.5]
        expected = sklearn_log_loss(y, score)
        assert log_loss(y, score).estimate[0] == pytest.approx(expected)


def test_compares_what_both_scores_have():
    rng = np.random.default_rng(0)
    y, score = rng.integers(0, 2, 200), rng.random(200)
    who = {"sensitive_features": rng.choice(["a", "b"], 200)}
    report = mitigation_report((score > 0.5).astype(int), score, y, **who)
    assert "selection_rate" in report.audit_before.results
    assert set(report.disparities) <= set(report.audit_after.results)
