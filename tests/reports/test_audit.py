"""An audit is the metrics one by one, corrected and put into words."""

import json
import re
import sys
import warnings
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from html.parser import HTMLParser

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("Agg")

from skrankfair import audit
from skrankfair._estimates.group_test import correct
from skrankfair._estimates.metric import collected_warnings
from skrankfair._reports.catalog import catalog
from skrankfair._reports.findings import corrected_pvalues, one_test
from skrankfair.display import _style as look
from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.metrics import (
    matched_pair_calibration,
    ndcg,
    pairwise_accuracy,
    pairwise_exposure,
    pairwise_preference,
)
from tests.designs import AUDITS, Sellers

NAMES = tuple(
    metric.name
    for metric in catalog().values()
    if "ranking" in metric.tasks and not (metric.cut == "required" or metric.on_request)
)
COLUMNS = [
    "metric",
    "group",
    "estimate",
    "standard_error",
    "ci_low",
    "ci_high",
    "support",
    "pvalue",
    "pvalue_corrected",
    "difference",
    "side",
    "verdict",
]


def data(groups=("f", "m"), n_queries=150, bias=0.5, seed=0):
    """Return columns of a ranking that undervalues the first group."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(n_queries), 10)
    codes = rng.integers(len(groups), size=query.size)
    labels = np.empty(len(groups), dtype=object)
    labels[:] = groups
    quality = rng.normal(size=query.size)
    return {
        "y_true": quality + rng.normal(size=query.size) > 0,
        "y_score": quality - bias * (codes == 0),
        "sensitive_features": labels[codes],
        "qid": query,
    }


@pytest.fixture(scope="module")
def report():
    return audit(**data())


@pytest.fixture(scope="module")
def many():
    return audit(**data(groups=tuple("abcdef"), bias=1.0))


@pytest.fixture(scope="module")
def page(report, tmp_path_factory):
    path = tmp_path_factory.mktemp("html") / "report.html"
    assert report.to_html(path) == path
    return path.read_text(encoding="utf-8")


class TestResults:
    def test_are_those_of_the_metrics(self, report):
        columns = data()
        alone = {
            "pairwise_accuracy": pairwise_accuracy(**columns),
            "intra_group_accuracy": pairwise_accuracy(**columns, comparison="intra"),
            "inter_group_accuracy": pairwise_accuracy(**columns, comparison="inter"),
            "pairwise_exposure": pairwise_exposure(**columns),
            "pairwise_preference": pairwise_preference(**columns),
            "matched_pair_calibration": matched_pair_calibration(**columns),
            "ndcg": ndcg(columns["y_true"], columns["y_score"], qid=columns["qid"]),
        }
        assert tuple(report.results) == NAMES == tuple(alone)
        for name, expected in alone.items():
            result = report.results[name]
            assert result.groups == expected.groups
            np.testing.assert_array_equal(result.estimate, expected.estimate)
            np.testing.assert_array_equal(
                result.standard_error, expected.standard_error
            )

    def test_counts(self, report):
        columns = data()
        assert report.n_rows == 1500
        assert report.n_queries == report.n_clusters == 150
        assert report.n_pairs == 150 * 45
        counts = pd.Series(columns["sensitive_features"]).value_counts()
        assert report.group_rows == {"f": counts["f"], "m": counts["m"]}
        assert not report.overlapping

    def test_clusters_weights_and_engagement_reach_the_metrics(self):
        columns = data()
        rng = np.random.default_rng(1)
        columns["cluster"] = columns["qid"] // 3
        columns["sample_weight"] = 1.0 + columns["qid"] % 2
        engagement = rng.random(columns["qid"].size)
        report = audit(**columns, engagement=engagement)
        expected = pairwise_accuracy(
            **columns, engagement=engagement, comparison="inter"
        )
        result = report.results["inter_group_accuracy"]
        np.testing.assert_array_equal(result.estimate, expected.estimate)
        np.testing.assert_array_equal(result.standard_error, expected.standard_error)
        assert report.n_clusters == 50
        assert report.results["pairwise_exposure"].n_clusters == 50

    def test_weight_zero_is_removal(self):
        columns = data()
        weight = (columns["qid"] >= 20).astype(float)
        kept = {name: values[weight > 0] for name, values in columns.items()}
        a, b = audit(**columns, sample_weight=weight), audit(**kept)
        assert a.n_rows == b.n_rows == 1300
        assert a.group_rows == b.group_rows
        pd.testing.assert_frame_equal(a.to_frame(), b.to_frame(), rtol=1e-12)

    def test_only_some_metrics(self):
        report = audit(**data(), metrics=["ndcg", "pairwise_exposure", "ndcg"])
        assert tuple(report.results) == ("ndcg", "pairwise_exposure")
        assert tuple(audit(**data(), metrics="ndcg").results) == ("ndcg",)

    def test_overlapping_groups(self):
        columns = data()
        rng = np.random.default_rng(0)
        genres = pd.DataFrame(rng.random((1500, 3)) < 0.3, columns=["x", "y", "z"])
        report = audit(**{**columns, "sensitive_features": genres})
        assert report.overlapping
        assert report.group_rows == genres.sum().to_dict()
        assert "3 overlapping groups" in report.counts

    def test_one_list(self):
        columns = data(n_queries=1) | {"qid": None}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            report = audit(**data(n_queries=20) | {"qid": None})
        assert report.n_queries == 1
        assert report.n_clusters == 200
        assert "200 independent items" in report.counts
        assert report.results["pairwise_accuracy"].variance == "item"
        assert report.notes == ("NDCG has no interval, since there is only one query.",)
        assert audit(**columns, metrics="pairwise_exposure").n_rows == 10


class TestFrame:
    def test_one_row_a_metric_and_group(self, report):
        frame = report.to_frame()
        assert list(frame.columns) == COLUMNS
        assert len(frame) == 6 * 2 + 1
        row = frame[(frame.metric == "pairwise_exposure") & (frame.group == "f")]
        result = report.results["pairwise_exposure"].to_frame()
        for name in COLUMNS[2:8]:
            assert row[name].item() == result.loc["f", name]

    def test_differences_sides_and_verdicts_are_those_of_the_findings(self, report):
        frame = report.to_frame().set_index(["metric", "group"])
        for finding in report.findings:
            for row in finding.rows:
                found = frame.loc[(finding.metric.name, row.group)]
                np.testing.assert_equal(found["difference"], row.difference)
                assert found["side"] == row.side
        verdicts = frame["verdict"]
        assert verdicts["inter_group_accuracy"].tolist() == ["worse off", "better off"]
        assert verdicts["intra_group_accuracy"].tolist() == ["cannot tell"] * 2
        assert set(verdicts["pairwise_preference"]) == {""}

    def test_level(self):
        frame = audit(**data(), confidence_level=0.5).to_frame()
        result = pairwise_exposure(**data()).confidence_interval(0.5)
        assert frame.ci_low[6] == result.low[0]

    def test_crossed_labels_stay_tuples(self):
        columns = data(groups=(("f", 1), ("f", 2), ("m", 1)))
        both = pd.DataFrame(columns["sensitive_features"].tolist(), columns=["s", "i"])
        report = audit(**{**columns, "sensitive_features": both})
        assert report.to_frame().group[0] == ("f", 1)
        assert "f × 1" in repr(report)


class TestCorrection:
    def test_holm_over_the_groups(self, many):
        frame = many.to_frame()
        part = frame[frame.metric == "inter_group_accuracy"]
        p = np.sort(part.pvalue)
        steps = np.maximum.accumulate(p * np.arange(p.size, 0, -1)).clip(max=1)
        np.testing.assert_allclose(np.sort(part.pvalue_corrected), steps, rtol=1e-12)

    def test_two_groups_are_one_test(self, report):
        frame = report.to_frame()
        part = frame[frame.metric == "inter_group_accuracy"]
        np.testing.assert_array_equal(part.pvalue, part.pvalue_corrected)
        assert np.ptp(part.pvalue) <= 1e-6 * part.pvalue.max()

    def test_two_groups_are_two_tests_of_matched_pairs(self, report):
        p = report.results["matched_pair_calibration"].pvalue
        assert not one_test(p)
        frame = report.to_frame()
        part = frame[frame.metric == "matched_pair_calibration"]
        assert part.pvalue_corrected.min() == pytest.approx(2 * p.min())

    def test_missing_are_no_tests(self):
        p = corrected_pvalues(np.array([0.01, np.nan, 0.04]))
        np.testing.assert_allclose(p, [0.02, np.nan, 0.04])
        assert not one_test(np.array([np.nan, np.nan]))


class TestWords:
    def test_names_who_is_worse_off_and_by_how_much(self, report):
        assert report.headline == "1 of 2 groups is worse off beyond chance: f."
        findings = {finding.metric.name: finding for finding in report.findings}
        difference = report.results["inter_group_accuracy"].against_rest()
        low, high = difference.confidence_interval()
        assert findings["inter_group_accuracy"].verdict == (
            "Beaten by worse items more often: f "
            f"({100 * difference.estimate[0]:+.1f} points "
            f"[{100 * low[0]:+.1f}, {100 * high[0]:+.1f}])."
        )
        assert findings["pairwise_exposure"].verdict.startswith("Ranked lower: f (-")
        assert findings["pairwise_preference"].verdict.startswith("Nothing to test")

    def test_undervalued_is_worse(self):
        report = audit(**data(n_queries=2000), metrics="matched_pair_calibration")
        (finding,) = report.findings
        assert [row.group for row in finding.worse] == ["f"]
        assert [row.group for row in finding.better] == ["m"]
        assert "Undervalued: f (+" in finding.verdict
        assert "Overvalued: m (-" in finding.verdict

    def test_only_beyond_chance(self, many):
        for finding in many.findings:
            for row in finding.rows:
                assert bool(row.side) == (row.pvalue_corrected < 0.05)

    def test_silence_on_fair_data(self):
        report = audit(**data(bias=0.0, seed=4))
        assert report.headline == (
            "The data do not show a difference between the groups."
        )
        assert "The data do not show a difference (smallest" in repr(report)

    def test_a_high_level_says_less(self):
        report = audit(
            **data(n_queries=12),
            metrics=["inter_group_accuracy", "pairwise_exposure"],
            confidence_level=0.999999,
        )
        assert not any(finding.worse for finding in report.findings)
        assert "99.9999% interval" in repr(report)

    def test_worst_first_and_missing_last(self, many):
        finding = {f.metric.name: f for f in many.findings}["inter_group_accuracy"]
        assert finding.ordered[0].group == "a"
        differences = [row.difference for row in finding.ordered]
        assert differences == sorted(differences)

    def test_exposure_alone_is_not_worse_off(self):
        headline = audit(**data(), metrics="pairwise_exposure").headline
        assert headline == "1 of 2 groups is ranked lower beyond chance: f."

    def test_untested(self):
        headline = audit(**data(), metrics="ndcg").headline
        assert headline == "None of the requested metrics says what is fair."

    def test_more_than_three_are_counted(self):
        columns = data(groups=tuple("abcdefgh"), n_queries=800)
        low = np.isin(columns["sensitive_features"], list("abcde"))
        columns["y_score"] = columns["y_score"] - 2.0 * low
        (finding,) = audit(**columns, metrics="pairwise_exposure").findings
        assert len(finding.worse) == 5
        assert ", and 2 more." in finding.verdict

    def test_few_effective_clusters_are_too_little_data(self):
        group = ["a", "b"] * 3
        report = audit(
            [1, 0] * 3,
            [0.0, 1.0] * 3,
            sensitive_features=group,
            qid=[0, 0, 1, 1, 2, 2],
            metrics="pairwise_exposure",
        )
        (finding,) = report.findings
        assert [row.side for row in finding.rows] == ["", ""]
        missing = "too little data (3.0 effective clusters; a verdict needs 5)"
        assert finding.rows[0].missing == missing
        assert np.isnan([row.pvalue_corrected for row in finding.rows]).all()
        assert finding.verdict == "No group has enough data for a test."

    def test_small_groups_do_not_count_as_tests(self):
        columns = data(n_queries=300)
        groups = np.array(columns["sensitive_features"], dtype=object)
        groups[:3] = ["x", "y", "z"]
        columns["sensitive_features"] = groups
        with pytest.warns(UndefinedMetricWarning, match="without pairs|too few"):
            report = audit(**columns, metrics="inter_group_accuracy")
        (finding,) = report.findings
        rows = {row.group: row for row in finding.rows}
        small = [rows[group] for group in "xyz"]
        assert all(row.missing and not row.side for row in small)
        large = [row for group, row in rows.items() if group not in "xyz"]
        expected = correct(np.array([row.pvalue for row in large]), "holm")
        np.testing.assert_allclose([row.pvalue_corrected for row in large], expected)

    @pytest.mark.parametrize("correction", ["holm", "fdr_bh"])
    def test_the_correction_is_said(self, correction):
        columns = data(groups=tuple("abcd"), n_queries=200)
        report = audit(**columns, metrics="inter_group_accuracy", correction=correction)
        (finding,) = report.findings
        expected = correct(report.results["inter_group_accuracy"].pvalue, correction)
        found = [row.pvalue_corrected for row in finding.rows]
        np.testing.assert_allclose(found, expected)
        name = {"holm": "Holm", "fdr_bh": "BH"}[correction]
        assert f"p ({name})" in str(report)
        assert report.to_dict()["correction"] == correction

    def test_correction_is_one_of_two(self):
        with pytest.raises(ValueError, match="correction must be"):
            audit(**data(), correction="none")


def test_three_hundred_sellers_of_noise_are_a_short_table():
    with collected_warnings() as collected:
        report = audit(**Sellers("300 sellers", 300, 300, 20).draw(0))
    assert any("for groups without pairs" in message for _, message in collected)
    assert "beyond chance" not in report.headline
    for finding in report.findings:
        if finding.tested:
            assert len(finding.shown) < 30 < len(finding.rows)
            assert "more groups do not differ beyond chance" in finding.verdict


@pytest.mark.simulation
@pytest.mark.parametrize("key", AUDITS)
def test_the_headline_names_a_group_of_noise_in_few_audits(key):
    """At most 5% of audits; the bound is 3 standard errors of 25 of them above it."""
    times, named, verdicts = 25, 0, {}
    for seed in range(times):
        with collected_warnings():
            report = audit(**AUDITS[key].draw(seed))
        named += "beyond chance" in report.headline
        for finding in report.findings:
            if finding.tested:
                found = verdicts.setdefault(finding.metric.name, [])
                found.append(bool(finding.worse or finding.better))
    bound = 0.05 + 3 * np.sqrt(0.05 * 0.95 / times)
    assert named / times <= bound
    assert max(np.mean(found) for found in verdicts.values()) <= bound


class TestUndefined:
    def columns(self):
        columns = data(groups=("f", "m"))
        group = columns["sensitive_features"].copy()
        genres = pd.DataFrame({"f": group == "f", "nobody": np.zeros(1500, bool)})
        return {**columns, "sensitive_features": genres}

    def test_one_warning_a_metric(self):
        with pytest.warns(UndefinedMetricWarning) as caught:
            audit(**self.columns())
        names = [str(warning.message).split()[0] for warning in caught]
        assert names == list(NAMES[:-1])
        assert {warning.filename for warning in caught} == {__file__}

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
    def test_is_shown_with_its_reason_and_never_as_zero(self, tmp_path):
        report = audit(**self.columns(), metrics=["pairwise_exposure"])
        frame = report.to_frame()
        assert np.isnan(frame.estimate[1])
        assert re.search(r"(?m)^nobody +– +no pairs +0 +– +–$", repr(report))
        page = report.to_html(tmp_path / "a.html").read_text(encoding="utf-8")
        assert "no data" in page
        assert "no pairs" in page
        (metric,) = report.to_dict()["metrics"]
        assert metric["groups"][1]["estimate"] is None
        assert metric["groups"][1]["missing"] == "no pairs"

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
        report = audit(**(data() | change))
        assert report.headline
        assert repr(report)
        assert report._repr_html_()
        assert report.to_html(tmp_path / "a.html").exists()
        json.loads(report.to_json(tmp_path / "a.json").read_text(encoding="utf-8"))


class TestNdcg:
    def test_is_left_out_for_negative_outcomes(self):
        columns = data()
        columns["y_true"] = columns["y_true"] - 0.5
        report = audit(**columns)
        assert "ndcg" not in report.results
        (note,) = report.notes
        assert note == (
            "NDCG is left out: it needs outcomes that are not negative, and the "
            "smallest is -0.5."
        )
        with pytest.raises(ValueError, match="y_true must not be negative"):
            audit(**columns, metrics="ndcg")

    def test_is_left_out_for_clusters_within_one_list(self):
        columns = data(n_queries=30)
        report = audit(**columns | {"qid": None, "cluster": columns["qid"]})
        assert "ndcg" not in report.results
        assert report.n_clusters == 30
        assert "several clusters" in report.notes[0]


class TestBadInput:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"metrics": ["auc"]}, r"metrics must be among .*; got 'auc'"),
            ({"metrics": []}, r"metrics must be among .*; got none"),
            ({"metrics": [["ndcg"]]}, r"metrics must be among .*; got \['ndcg'\]"),
            ({"metrics": 3}, r"metrics must be among .*; got 3"),
            ({"confidence_level": 95}, "confidence_level must be a number"),
            ({"confidence_level": "high"}, "confidence_level must be a number"),
            ({"y_true": None}, "y_true must be given"),
            ({"sensitive_features": None}, "sensitive_features must be given"),
            ({"y_score": np.full(1500, np.nan)}, "y_score must be finite"),
            ({"qid": np.arange(3)}, "same number of rows"),
            ({"cluster": np.arange(1500)}, "cluster must be constant within a query"),
            (
                {"engagement": np.ones(1500), "metrics": "ndcg"},
                "engagement is for the accuracies only",
            ),
        ],
    )
    def test_is_named(self, change, message):
        with pytest.raises(ValueError, match=message):
            audit(**(data() | change))


class TestDict:
    def test_is_json_without_nan(self, report, tmp_path):
        path = tmp_path / "a.json"
        assert report.to_json(str(path)) == path
        text = path.read_text(encoding="utf-8")
        assert "NaN" not in text
        read = json.loads(text)
        assert read.pop("stored")["schema"] == "skrankfair.AuditReport"
        assert read == json.loads(json.dumps(report.to_dict()))
        assert [metric["metric"] for metric in read["metrics"]] == list(NAMES)
        assert read["groups"][0]["group"] == "f"
        exposure = read["metrics"][3]
        assert exposure["fair_value"] == 0.5
        assert exposure["groups"][0]["difference"] == pytest.approx(
            exposure["groups"][0]["estimate"] - 0.5
        )

    def test_labels_of_any_type(self):
        columns = data(groups=(("a", 1), ("a", 2)))
        both = pd.DataFrame(columns["sensitive_features"].tolist())
        columns["sensitive_features"] = both
        read = audit(**columns, metrics="pairwise_exposure").to_dict()
        assert [group["group"] for group in read["groups"]] == [["a", 1], ["a", 2]]
        json.dumps(read)


class Page(HTMLParser):
    """Collect the tags, attributes, ids and text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text.append(data)


class TestHtml:
    def test_needs_nothing_else(self, page):
        parsed = Page(page)
        assert not {"link", "img", "iframe", "object"} & set(parsed.tags)
        for name, value in parsed.attributes:
            assert not name.startswith("on")
            if name in {"href", "xlink:href", "src"}:
                assert value.startswith("#")
        # Names of XML namespaces are fetched by nobody.
        text = page.replace("http://www.w3.org/", "")
        assert "http:" not in text
        assert "https:" not in text
        assert "@import" not in text

    def test_has_a_section_a_plot_and_a_table_for_each_metric(self, page):
        for metric in (catalog()[name] for name in NAMES):
            assert f'<h2 id="{metric.name}">{metric.title}' in page
        assert page.count("<svg ") == 6
        assert page.count('role="img" aria-label="') == 6
        assert page.count("<table") == 7

    def test_has_the_verdict_and_the_counts(self, page, report):
        text = " ".join(Page(page).text)
        assert report.headline in text
        assert "1,500" in text
        assert "6,750" in text
        assert "6,750" in report.counts

    def test_ids_are_unique_and_references_meet_them(self, page):
        ids = [value for name, value in Page(page).attributes if name == "id"]
        assert len(ids) == len(set(ids))
        used = set(re.findall(r'(?:href="|url\()#([^")]+)', page))
        assert used <= set(ids)

    def test_rows_of_tables_lead_to_rows_of_plots(self, page):
        for name in set(NAMES) - {"ndcg"}:
            for i in range(2):
                assert f'<a href="#plot-{name}-{i}">' in page
                assert f'<g id="plot-{name}-{i}" class="row">' in page

    def test_is_made_for_the_dark_for_phones_and_for_print(self, page):
        for rule in ("prefers-color-scheme: dark", "max-width: 40rem", "print"):
            assert f"@media {rule}" in page.replace("(", "").replace(")", "")
        # Colours that the dark style exchanges are those that plots have.
        style, plots = page.split("</style>")
        for color in re.findall(r'svg \[(?:fill|stroke)="(#\w+)"\]', style):
            assert color in [*vars(look).values()]
        assert 'stroke="#333333"' in plots

    def test_what_is_silent_shares_a_card(self, page):
        assert page.count('class="card silent"') <= 1

    def test_tables_are_accessible(self, page):
        for tag in re.findall(r"<th[ >][^>]*", page):
            assert 'scope="' in tag

    def test_is_the_same_in_threads_and_whatever_matplotlib_is(
        self, page, report, tmp_path, monkeypatch
    ):
        def write(i):
            return report.to_html(tmp_path / f"{i}.html").read_text(encoding="utf-8")

        before = dict(mpl.rcParams)
        with ThreadPoolExecutor(8) as threads:
            assert set(threads.map(write, range(10))) == {page}
        assert dict(mpl.rcParams) == before
        with mpl.rc_context({"font.size": 30, "svg.fonttype": "path"}):
            assert write("settings") == page
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        assert write("without") == page

    def test_one_query_is_one_query(self, tmp_path):
        with pytest.warns(UndefinedMetricWarning):
            report = audit(**data(n_queries=1), metrics="ndcg")
        page = report.to_html(tmp_path / "a.html").read_text(encoding="utf-8")
        assert "over 1 query" in page

    @pytest.mark.parametrize(
        "label",
        [
            "<script>alert(1)</script>",
            '"><img src=x onerror=alert(1)>',
            "--><script>alert(1)</script>",
            "]]></style><script>alert(1)</script>",
            "{{ 7 * 7 }}{% raw %}",
            "</title></svg><script>alert(1)</script>",
            '$x$ id="y" url(#z)',
            "javascript:alert(1)",
            "日本語 \U0001f600 \x00\x1b",
        ],
    )
    def test_labels_are_data(self, label, tmp_path):
        metrics = ["inter_group_accuracy", "pairwise_exposure"]
        report = audit(**data(groups=(label, "m"), n_queries=40), metrics=metrics)
        page = report.to_html(tmp_path / "a.html").read_text(encoding="utf-8")
        parsed = Page(page)
        assert "img" not in parsed.tags
        # The one script is the package's own, and the page allows no other.
        (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
        assert parsed.tags.count("script") == 1
        digest = b64encode(sha256(script.encode()).digest()).decode()
        assert f"script-src 'sha256-{digest}'\"" in page
        assert "default-src 'none'" in page
        assert not any(name.startswith("on") for name, _ in parsed.attributes)
        shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in label)
        text = "".join(parsed.text)
        assert text.count(shown) >= 2 * 2  # a table and a plot for each metric
        html = report._repr_html_()
        assert not {"script", "img"} & set(Page(html).tags)

    def test_title_of_a_page(self, report, tmp_path):
        page = report.to_html(tmp_path / "a.html", title="Loans <of> May")
        text = page.read_text(encoding="utf-8")
        assert "<title>Loans &lt;of&gt; May</title>" in text
        assert report.title == "Fairness audit"

    def test_title_is_data(self, report, tmp_path):
        from dataclasses import replace

        bad = replace(report, title="</title><script>alert(1)</script>", notes=("<b>",))
        page = bad.to_html(tmp_path / "a.html").read_text(encoding="utf-8")
        assert Page(page).tags.count("script") == page.count("<script") == 1
        assert "<script>alert" not in page
        assert "&lt;b&gt;" in page

    def test_many_groups(self, tmp_path):
        groups = tuple(f"group {i}" for i in range(40))
        metrics = ["inter_group_accuracy", "pairwise_exposure"]
        report = audit(**data(groups=groups, n_queries=300), metrics=metrics)
        page = report.to_html(tmp_path / "a.html").read_text(encoding="utf-8")
        shown = sum(len(finding.shown) for finding in report.findings)
        overview = page.count('<th scope="row"') - shown
        assert 10 <= overview < 40
        assert 10 <= shown / 2 < 40
        assert "more groups do not differ beyond chance" in page

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
    def test_many_groups_of_few_rows_have_no_empty_table(self, tmp_path):
        groups = tuple(range(60))
        report = audit(
            **data(groups=groups, n_queries=30), metrics="intra_group_accuracy"
        )
        (finding,) = report.findings
        assert finding.shown == ()
        page = report.to_html(tmp_path / "a.html").read_text(encoding="utf-8")
        assert "No group has enough data for a test." in page
        assert page.count("<table") == 1  # the overview
        assert "<svg" not in page

    def test_engagement_is_named(self, tmp_path):
        columns = data()
        rng = np.random.default_rng(0)
        report = audit(**columns, engagement=rng.random(1500))
        page = report.to_html(tmp_path / "a.html").read_text(encoding="utf-8")
        assert page.count("mean over 4 strata of the engagement") == 3

    def test_unwritable(self, report, tmp_path):
        with pytest.raises(OSError, match="nowhere"):
            report.to_html(tmp_path / "nowhere" / "a.html")

    def test_says_what_to_install(self, report, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "jinja2", None)
        with pytest.raises(ImportError, match=r'pip install "skrankfair\[report\]"'):
            report.to_html(tmp_path / "a.html")


class TestShown:
    def test_notebook(self, report):
        html = report._repr_html_()
        assert html.count("<table>") == 7
        assert report.headline in html

    def test_text_has_no_control_characters(self):
        names = ["ndcg", "pairwise_exposure"]
        text = repr(audit(**data(groups=("\x1b[31m", "m")), metrics=names))
        assert "\x1b" not in text
