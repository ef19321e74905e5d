"""An audit is the metrics one by one, of the rows, units and weights it is given."""

import json
import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import norm

from skrankfair import AuditReport, audit, metrics
from skrankfair._estimates import formatting as fmt
from skrankfair.distributed import measure
from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.inference import predictive_parity_test
from tests.distributed.logs import WHO, assert_same, click_log
from tests.estimates.test_two_way import lists
from tests.metrics.common import assert_same as same

from .common import NAMES, data, risks

COLUMNS = [
    *("metric", "group", "estimate", "standard_error", "ci_low", "ci_high", "support"),
    *("pvalue", "pvalue_corrected", "difference", "side", "verdict"),
]
INTER = "inter_group_accuracy"
MATCHED = "matched_pair_calibration"


def test_errors_of_users_and_items_where_metrics_take_both():
    y, score, columns = lists(n_users=60, n_items=40)
    report = audit(y, score, **columns)
    exposure = metrics.pairwise_exposure(y, score, **columns)
    same(report.results["pairwise_exposure"], exposure)
    users = {"qid": columns["qid"], "cluster": columns["cluster"][:, 0]}
    same(report.results["ndcg"], metrics.ndcg(y, score, **users))
    assert report.notes[-1].startswith("The errors of NDCG are those of users")
    for told in (report, AuditReport.from_json(report.to_json())):
        assert "60 users, 40 items" in told.counts
    assert report.to_dict()["n_items"] == 40


class TestResults:
    @pytest.mark.parametrize("k", [None, 3])
    def test_are_those_of_the_metrics(self, k):
        columns = data()
        cut = {} if k is None else {"k": k}
        top = {} if k is None else {"k": k, "position_weight": "top"}
        kinds = {"pairwise_accuracy": "all", "intra_group_accuracy": "intra"}
        alone = {
            name: metrics.pairwise_accuracy(**columns, comparison=comparison, **cut)
            for name, comparison in {**kinds, INTER: "inter"}.items()
        }
        alone |= {
            "pairwise_exposure": metrics.pairwise_exposure(**columns, **cut),
            "pairwise_preference": metrics.pairwise_preference(**columns),
            MATCHED: metrics.matched_pair_calibration(**columns, **top),
            "ndcg": metrics.ndcg(**{**columns, "sensitive_features": None}, **cut),
        }
        if k is not None:
            of_top = (metrics.share_at_k, metrics.precision_at_k, metrics.recall_at_k)
            alone |= {metric.__name__: metric(**columns, k=k) for metric in of_top}
        found = audit(**columns, k=k)
        assert found.results.keys() == alone.keys()
        for name, expected in alone.items():
            same(found.results[name], expected)
        assert found.k == found.to_dict()["k"] == k
        assert ("of which the first 3 places count" in repr(found)) == (k == 3)

    def test_counts(self, report):
        assert report.n_rows == 1500
        assert report.n_queries == report.n_clusters == 150
        assert report.n_pairs == 150 * 45
        counts = pd.Series(data()["sensitive_features"]).value_counts()
        assert report.group_rows == {"f": counts["f"], "m": counts["m"]}
        assert not report.overlapping

    def test_frame(self, report):
        frame = report.to_frame()
        assert list(frame.columns) == COLUMNS
        assert tuple(dict.fromkeys(frame["metric"])) == NAMES
        result = report.results["pairwise_exposure"].to_frame()
        of_result = frame[frame.metric == "pairwise_exposure"].set_index("group")
        for name in COLUMNS[2:8]:
            assert of_result.loc["f", name] == result.loc["f", name]

    def test_only_some_metrics_and_overlapping_groups(self):
        genres = np.random.default_rng(0).random((1500, 3)) < 0.3
        genres = pd.DataFrame(genres, columns=["x", "y", "z"])
        columns = {**data(), "sensitive_features": genres}
        named = ["ndcg", metrics.pairwise_exposure, metrics.ndcg]
        found = audit(**columns, metrics=named)
        assert tuple(found.results) == ("ndcg", "pairwise_exposure")
        assert found.overlapping
        assert found.group_rows == genres.sum().to_dict()
        assert "3 overlapping groups" in found.counts
        one = {**columns, "sensitive_features": genres[["x"]]}
        assert "only one" not in audit(**one, metrics=named).headline  # it has a rest

    def test_crossed_labels_stay_tuples(self):
        columns = data(groups=(("f", 1), ("f", 2), ("m", 1)))
        both = pd.DataFrame(columns["sensitive_features"].tolist(), columns=["s", "i"])
        found = audit(**{**columns, "sensitive_features": both}, metrics=INTER)
        assert found.to_frame().group[0] == ("f", 1)
        assert "f × 1" in repr(found)
        assert json.loads(found.to_json())["groups"][0]["group"] == ["f", 1]

    def test_one_list(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            one = data(n_queries=20) | {"qid": None}
            found = audit(**one, metrics="all", task="risk")
        assert found.n_queries == 1
        assert found.n_clusters == 200
        assert "200 independent items" in found.counts
        assert found.results["pairwise_accuracy"].variance == "item"
        assert "NDCG has no interval, since there is only one query." in found.notes
        columns = data(n_queries=30)
        one = columns | {"qid": None, "cluster": columns["qid"], "task": "ranking"}
        clustered = audit(**one)
        assert "ndcg" not in clustered.results
        assert clustered.n_clusters == 30
        assert "several clusters" in clustered.notes[0]

    def test_ndcg_is_left_out_for_negative_outcomes(self):
        columns = data()
        columns["y_true"] = columns["y_true"] - 0.5
        (note,) = audit(**columns).notes
        assert note.startswith("NDCG is left out: it needs outcomes that are not neg")
        assert note.endswith("and the smallest is -0.5.")
        with pytest.raises(ValueError, match="y_true must not be negative"):
            audit(**columns, metrics="ndcg")


class TestUnitsAndWeights:
    def test_clusters_weights_and_engagement_reach_the_metrics(self):
        columns = data()
        columns["cluster"] = columns["qid"] // 3
        columns["sample_weight"] = 1.0 + columns["qid"] % 2
        columns["engagement"] = np.random.default_rng(1).random(1500)
        expected = metrics.pairwise_accuracy(**columns, comparison="inter")
        found = audit(**columns)
        same(found.results[INTER], expected)
        assert found.n_clusters == 50

    @pytest.mark.parametrize(
        "name", ["brier_score", "calibration_error", "log_loss", "selection_rate"]
    )
    def test_rows_of_a_query_depend_on_each_other(self, name):
        rows, query = risks(n_rows=1200), np.arange(1200) // 8
        options = {"metrics": name, "task": "risk"}
        if name == "selection_rate":
            options["task"], rows["y_score"] = "decision", (rows["y_score"] > 0.5) * 1.0
        for given in ({}, {"qid": query}, {"qid": query, "cluster": query // 3}):
            found = audit(**rows, **given, **options).results[name]
            unit = given.get("cluster", given.get("qid"))
            same(found, getattr(metrics, name)(**rows, cluster=unit))

    def test_so_they_do_in_tests(self):
        rows, query = risks(n_rows=1200), np.arange(1200) // 8
        (section,) = audit(**rows, qid=query, task="risk").sections
        test = predictive_parity_test(**rows, cluster=query)
        assert f"(p {fmt.pvalue(test.pvalue)})" in section.paragraphs[0]
        assert test.pvalue != predictive_parity_test(**rows).pvalue

    def test_pairs_count_the_product_of_weights_and_rows_their_weight(self):
        rows, query = risks(n_rows=1200), np.arange(1200) // 8
        item_weight = np.random.default_rng(0).integers(0, 4, 1200).astype(float)
        query_weight = 1.0 + query % 2
        who = {**rows, "qid": query, "item_weight": item_weight}
        who["sample_weight"] = query_weight
        found = audit(**who, task="risk", metrics="all")
        same(found.results["pairwise_accuracy"], metrics.pairwise_accuracy(**who))
        same(found.results[MATCHED], metrics.matched_pair_calibration(**who))
        weight = item_weight * query_weight
        expected = metrics.brier_score(**rows, cluster=query, sample_weight=weight)
        same(found.results["brier_score"], expected)
        assert found.n_rows == (item_weight > 0).sum()
        assert "NDCG is left out: it weighs no items." in found.notes
        alone = metrics.brier_score(
            **rows, cluster=np.arange(1200), sample_weight=item_weight
        )
        listed = audit(**rows, item_weight=item_weight, metrics="brier_score")
        same(listed.results["brier_score"], alone)
        for name, k in (("ndcg", None), ("recall_at_k", 3)):
            with pytest.raises(ValueError, match=f"must be None for {name}"):
                audit(**who, metrics=[name, INTER], k=k)


ROWS = np.arange(1200)


class TestMissing:
    """Rows 3, 7 and 11 of 40 lack an outcome, a score and a label; 7 also lacks one."""

    NO_Y, NO_SCORE, NO_GROUP = (place == ROWS % 40 for place in (3, 7, 11))
    NO_Y = NO_Y | (ROWS == 7)
    LACKING = "31 lack y_true, 30 lack y_score"
    DROPPED = f"90 of 1,200 rows are left out: {LACKING}, 30 lack sensitive_features."

    def columns(self, library=np):
        whole = data(n_queries=120)
        lacking = {
            "y_true": np.where(self.NO_Y, np.nan, whole["y_true"]),
            "y_score": np.where(self.NO_SCORE, np.nan, whole["y_score"]),
        }
        group = np.where(self.NO_GROUP, None, whole["sensitive_features"])
        lacking["sensitive_features"] = group
        if library is not np:
            lacking = {n: library.Series(v.tolist()) for n, v in lacking.items()}
            lacking["sensitive_features"] = lacking["sensitive_features"].rename("g")
        return whole, {**whole, **lacking, "metrics": INTER}

    @pytest.mark.parametrize("library", [np, pd, pl])
    def test_drop_leaves_out_the_rows_and_says_how_many(self, library):
        whole, lacking = self.columns(library)
        with pytest.warns(UserWarning, match=self.DROPPED) as warned:
            found = audit(**lacking, missing="drop")
        assert len(warned) == 1
        assert found.notes[0] == self.DROPPED
        kept = ~(self.NO_Y | self.NO_SCORE | self.NO_GROUP)
        expected = audit(**{n: v[kept] for n, v in whole.items()}, metrics=INTER)
        same(found.results[INTER], expected.results[INTER])
        assert found.n_rows == expected.n_rows
        assert found.by == ("" if library is np else "g")

    def test_rows_without_an_outcome_keep_their_place(self):
        _, lacking = self.columns()
        del lacking["metrics"]
        known = ~np.isnan(lacking["y_true"])
        fewer = {n: v[known] for n, v in lacking.items()}
        names = ["dips", "exposure_gap", "precision_at_k", "ndcg"]
        without = ["share_at_k", "pairwise_exposure"]
        options = {"metrics": names + without, "k": 4, "missing": "drop"}
        with pytest.warns(UserWarning, match="left out"):
            found, fewer = (audit(**given, **options) for given in (lacking, fewer))
        top = {"position_weight": "top", "k": 4, "missing": "drop"}
        with pytest.warns(UserWarning, match="left out"):
            expected = [
                metrics.dips(**lacking, **top),
                metrics.exposure_gap(**lacking, **top),
                metrics.precision_at_k(**lacking, k=4, missing="drop"),
            ]
        for result in (*expected, *map(fewer.results.get, without)):
            same(found.results[result.name], result)
        for name in names:
            gap = found.results[name].estimate - fewer.results[name].estimate
            assert np.abs(gap).max() > 1e-6

    def test_those_without_an_outcome_are_selected_or_not(self):
        _, lacking = self.columns()
        given = {**lacking, "metrics": ["selection_rate", "brier_score"], "qid": None}
        given["y_true"] = np.where(lacking["y_score"] < 0.5, np.nan, given["y_true"])
        given["y_score"] = norm.cdf(lacking["y_score"])
        options = {"threshold": 0.6, "missing": "drop", "impact_ratio": True}
        with pytest.warns(UserWarning, match="left out"):
            found = audit(**given, **options)
        del given["metrics"], given["qid"], given["y_true"], options["impact_ratio"]
        with pytest.warns(UserWarning, match="left out"):
            expected = metrics.selection_rate(None, **given, **options)
        same(found.results["selection_rate"], expected)
        same(found.rates, expected)
        assert found.results["brier_score"].support.sum() == found.n_rows < 1000
        assert "counts the rows without an outcome" in str(found)

    def test_group_keeps_rows_without_a_label(self):
        whole, lacking = self.columns()
        with pytest.warns(UserWarning, match="30 of 1,200 rows have no label.*'miss"):
            found = audit(**lacking, missing="group")
        labels = np.where(self.NO_GROUP, "missing", whole["sensitive_features"])
        kept = ~(self.NO_Y | self.NO_SCORE)
        whole["sensitive_features"] = labels
        expected = audit(**{n: v[kept] for n, v in whole.items()}, metrics=INTER)
        same(found.results[INTER], expected.results[INTER])
        assert found.notes[1].startswith("60 of 1,200 rows are left out: 31 lack y")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metrics": ["auc"]}, r"metrics must be among .*; got 'auc'"),
        ({"metrics": "ndgc"}, r"metrics must be .*'ndgc'\. Did you mean 'ndcg'\?"),
        (
            {"metrics": [metrics.matched_pair_curve]},
            "got .matched_pair_curve.. Did you mean",
        ),
        ({"metrics": []}, r"metrics must be among .*; got none"),
        ({"metrics": [["ndcg"]]}, r"metrics must be among .*; got \['ndcg'\]"),
        ({"confidence_level": 95}, "confidence_level must be a number"),
        ({"y_score": [0, 1] * 750, "qid": None, "threshold": 0}, r"threshold .* got 0"),
        ({"correction": "none"}, "correction must be"),
        ({"y_true": None}, "y_true must be given"),
        ({"y_score": np.full(1500, np.nan)}, "y_score must be finite"),
        ({"missing": "ignore"}, "missing must be one of 'raise', 'drop', 'group'"),
        ({"missing": "drop", "y_true": [0.0, np.nan]}, "same number of rows"),
        ({"sensitive_features": None}, "sensitive_features must be given"),
        ({"qid": np.arange(3)}, "same number of rows"),
        ({"cluster": np.arange(1500)}, "cluster must be constant within a query"),
        ({"engagement": np.ones(1500), "metrics": "ndcg"}, "for the accuracies only"),
        ({"k": 0}, r"k must be an integer in \[1, inf\]; got 0"),
        ({"metrics": "share_at_k"}, "k must be given for share_at_k"),
        ({"k": 3, "qid": None}, "k must be None for task='risk'"),
        (
            {"threshold": 9, "task": "risk"},
            "must have scores on both sides; got 9, and",
        ),
        ({"threshold": 0.5}, "threshold is for rates of decisions only.*got pairwise"),
        ({"task": "rating"}, "task must be"),
        ({"favorable": "up"}, "favorable must be"),
        ({"task": "decision"}, "y_score must be 0 or 1 for task='decision'; got"),
        ({"metrics": [None]}, "metrics must"),
        ({"margin": "a", "metrics": "ndcg"}, "margin must be None without a tested"),
        ({"margin": 0}, "margin must"),
        ({"margin": "a"}, "margin must"),
        ({"margin": (-0.1, 0.1)}, "margin must be one number"),
        ({"margin": {"nonsense": 0.1}}, "margin must be of metrics of this audit"),
        ({"margin": {"ndcg": 0.1}}, "margin must be of metrics of this audit"),
        ({"margin": 0.1, "confidence_level": 0.5}, "confidence_level must be above"),
    ],
)
def test_what_is_wrong_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        audit(**(data() | change))


@pytest.mark.parametrize(
    ("change", "read"),
    [
        ({"qid": np.arange(400) // 10}, ("ranking", "high", "a ranking")),
        ({"y_score": np.arange(400) % 2}, ("decision", None, "decisions")),
        ({}, ("risk", None, "a risk score of people or items; nobody has said")),
        ({"task": "ranking"}, ("ranking", "high", "a ranking")),
    ],
)
def test_the_task_is_what_the_data_or_the_caller_say(change, read):
    found = audit(**risks(n_rows=400) | change)
    assert (found.task, found.favorable) == read[:2]
    assert f"Read as {read[2]}" in repr(found)
    assert ("brier_score" in found.results) == (found.task == "risk")


def test_scores_off_the_scale_of_outcomes_have_no_losses():
    columns = risks(n_rows=400)
    columns["y_score"] = 300 + 500 * columns["y_score"]
    found = audit(**columns)
    assert not {"calibration_error", "brier_score", "log_loss"} & set(found.results)
    assert "not in [0, 1]" in found.reading


def test_decisions_have_rates_where_outcomes_have_two_values():
    columns = risks(n_rows=300)
    rates = {"true_positive_rate", "false_positive_rate", "precision"}
    decided = {**columns, "y_score": columns["y_score"] > 0.5}
    assert set(audit(**decided).results) == {"selection_rate", *rates}
    found = audit(**decided | {"y_true": columns["y_true"] + columns["y_score"]})
    assert set(found.results) == {"selection_rate"}
    assert sum("outcomes that are 0 or 1" in note for note in found.notes) == 3


class TestDoubts:
    @pytest.mark.parametrize(
        ("change", "says"),
        [
            ({"y_score": lambda c: -c["y_score"]}, "pass -y_score"),
            ({"y_score": lambda c: 100 * c["y_score"]}, "Divided by 100 they are not"),
            ({"y_score": lambda c: np.ceil(10 * c["y_score"])}, "such as deciles"),
            (
                {"y_true": lambda c: c["y_score"], "y_score": lambda c: c["y_true"]},
                "if the columns are swapped",
            ),
        ],
    )
    def test_scores_that_are_something_else_are_noted(self, change, says):
        columns = risks()
        changed = {name: make(columns) for name, make in change.items()}
        assert any(says in note for note in audit(**{**columns, **changed}).notes)
        assert not any(says in note for note in audit(**columns).notes)

    def test_a_ranking_may_be_reversed_too(self, report):
        reversed_ = data() | {"y_score": -data()["y_score"]}
        assert any("pass -y_score" in note for note in audit(**reversed_).notes)
        assert report.notes == ()


class TestUndefined:
    def test_one_warning_per_metric(self):
        member = data()["sensitive_features"] == "f"
        genres = pd.DataFrame({"f": member, "nobody": np.zeros(1500, bool)})
        with pytest.warns(UndefinedMetricWarning) as caught:
            audit(**{**data(), "sensitive_features": genres})
        names = [str(warning.message).split()[0] for warning in caught]
        assert names == list(NAMES[:-1])
        assert {warning.filename for warning in caught} == {__file__}

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
    @pytest.mark.parametrize(
        "change",
        [
            {"y_true": np.ones(1500)},
            {"y_score": np.ones(1500)},
            {"sensitive_features": np.repeat("a", 1500)},
            {"qid": np.arange(1500)},
            {"y_true": -np.ones(1500)},
        ],
        ids=["constant outcome", "ties", "one group", "single items", "negative"],
    )
    def test_degenerate_data_give_a_report(self, change, tmp_path):
        found = audit(**(data() | change))
        assert found.headline
        assert repr(found)
        assert found._repr_html_()
        assert found.to_html(tmp_path / "a.html").exists()
        json.loads(found.to_json(tmp_path / "a.json").read_text(encoding="utf-8"))


class TestFromResults:
    @pytest.fixture(name="rows")
    def _rows(self):
        log = click_log()
        return {argument: log[column] for argument, column in WHO.items()}

    def test_is_the_audit_of_all_rows(self, rows):
        options = {"margin": 0.05, "correction": "fdr_bh", "favorable": "low"}
        measured = {
            INTER: INTER,
            "pairwise_exposure": metrics.pairwise_exposure,
            MATCHED: metrics.matched_pair_calibration,
            "ndcg": partial(metrics.ndcg, sensitive_features=None),
        }
        whole, log = audit(**rows, metrics=[*measured], **options), click_log()
        counts = ("n_rows", "n_queries", "n_pairs", "group_rows")
        found = AuditReport.from_results(
            measure(log, measured, **WHO),
            **options,
            **{name: getattr(whole, name) for name in counts},
        )
        # Clusters with hardly any pair are summed to first order.
        compact = {name: result.compact() for name, result in whole.results.items()}
        assert_same(found.results, compact)
        names = (*counts, "n_clusters", "task", "favorable", "margin", "correction")
        for name in (*names, "headline", "counts"):
            assert getattr(found, name) == getattr(whole, name), name
        for one, other in zip(found.findings, whole.findings, strict=True):
            assert one.verdict == other.verdict

    def test_shows_what_is_known(self, rows, tmp_path):
        results = {"recall_at_k": metrics.recall_at_k(**rows, k=3)}
        found = AuditReport.from_results(results, notes=["Counted by nobody."])
        assert found.k == 3
        assert found.counts == f"{found.n_clusters:,} clusters, 3 groups"
        assert found.notes == ("Counted by nobody.",)
        assert repr(AuditReport.from_json(found.to_json())) == repr(found)
        page = found.to_html(tmp_path / "page.html").read_text(encoding="utf-8")
        assert "None" not in page
        assert "<dt>rows</dt>" not in page

    def test_says_what_was_chosen_from_a_sample(self, rows):
        result = metrics.matched_pair_calibration(**rows, epsilon=0.1)
        sample = {"gives": "epsilon", "rows": 1000, "of_rows": 10**7, "clusters": 90}
        first_pass = {**result.first_pass, "sample": sample}
        result = type(result)(
            result.metric, result.sums, result.parameters, first_pass=first_pass
        )
        (note,) = AuditReport.from_results({MATCHED: result}).notes
        said = "epsilon from a sample of 1,000 of 10,000,000 rows (90 clusters)."
        assert note == f"Matched pair calibration: {said}"

    def test_the_task_is_one_of_all_metrics(self, rows):
        exposure = {"pairwise_exposure": metrics.pairwise_exposure(**rows)}
        assert AuditReport.from_results(exposure).task == "ranking"
        found = AuditReport.from_results(exposure, task="risk")
        assert (found.task, found.favorable) == ("risk", None)
        decided = (rows["y_true"] > 0) * 1, (rows["y_score"] > 0.5) * 1
        groups = {"sensitive_features": rows["sensitive_features"]}
        rates = {"precision": metrics.precision(*decided, **groups)}
        assert AuditReport.from_results(rates).task == "decision"
        for results, message in (
            (exposure | rates, "results must be of metrics of one task"),
            ({}, "metrics must be among .*; got none"),
            ({"exposure": exposure["pairwise_exposure"]}, "must be among .*'exposure'"),
            ({"ndcg": exposure["pairwise_exposure"]}, "a result of ndcg by the name"),
        ):
            with pytest.raises(ValueError, match=message):
                AuditReport.from_results(results)


@pytest.mark.parametrize(
    ("labels", "named"),
    [
        ([1, "1"], ["'1'", "1"]),
        (["no", "no "], ["'no '", "'no'"]),
        (["caf\u00e9", "cafe\u0301"], [r"'cafe\u0301'", r"'caf\xe9'"]),
    ],
)
def test_labels_that_look_alike_are_noted_and_two_keys_in_json(labels, named):
    columns = data(groups=(*labels, "other"), n_queries=40)
    found = audit(**columns, metrics=MATCHED)
    (note,) = found.notes
    said, listed = note.removesuffix(".").split(": ")
    assert said == "Labels of different groups look alike in this report"
    assert sorted(listed.split(" and ")) == sorted(named)
    assert len(found.to_dict()["metrics"][0]["first_pass"]["epsilon"]) == 3


def test_outcomes_that_are_the_decisions_say_nothing_of_mistakes():
    sex = np.repeat(["f", "m"], 500)
    hired = (np.arange(1000) % np.where(sex == "f", 5, 2) == 0) * 1
    report = audit(hired, hired, sensitive_features=sex, favorable="high")
    assert list(report.results) == ["selection_rate"]
    assert any("nothing can be said of mistakes" in note for note in report.notes)
    asked = audit(hired, hired, sensitive_features=sex, metrics="true_positive_rate")
    assert list(asked.results) == ["true_positive_rate"]
