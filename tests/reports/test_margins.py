"""An audit with a margin says which groups are shown to be close enough to fair."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from skrankfair import audit, audit_cv
from skrankfair._estimates.group_test import correct

from .test_audit import Page, data

INTER = "inter_group_accuracy"


def holm(pvalues):
    """Return Holm's p-values by the definition."""
    order = np.argsort(pvalues)
    out, largest = np.empty(len(pvalues)), 0.0
    for place, i in enumerate(order):
        largest = max(largest, min(1.0, (len(pvalues) - place) * pvalues[i]))
        out[i] = largest
    return out


def three(n_queries=3000, bias=0.4, **options):
    """Return an audit in which "a" is undervalued and the rest are nearly equal."""
    columns = data(("a", "b", "c", "d", "e"), n_queries=n_queries, bias=bias)
    return audit(**columns, metrics=INTER, **options)


@pytest.fixture(scope="module", name="report")
def _report():
    return three(margin=0.06)


def test_is_the_test_of_equivalence_corrected_over_the_groups(report):
    test = report.results[INTER].equivalence_test(0.06)
    frame = report.to_frame().set_index("group")
    np.testing.assert_allclose(frame["pvalue_margin"], test.pvalue)
    np.testing.assert_allclose(frame["pvalue_margin_corrected"], holm(test.pvalue))
    assert frame["verdict"].tolist() == [
        "worse off",
        *["better off, within the margin"] * 3,
        "better off",
    ]


def test_the_interval_at_twice_the_level_is_inside(report):
    """Uncorrected, each verdict is that of the interval of level 1 - 2 alpha."""
    rest = report.results[INTER].against_rest()
    low, high = rest.confidence_interval(0.9)
    pvalues = report.to_frame()["pvalue_margin"].to_numpy()
    np.testing.assert_array_equal(pvalues < 0.05, (low > -0.06) & (high < 0.06))


def test_the_three_verdicts_are_in_words(report):
    (finding,) = report.findings
    assert re.search(r"items more often: a \(-\d", finding.verdict)
    assert "Shown to be within 6 points of the rest: b, c, d." in finding.verdict
    assert "3 of 5 groups are shown to be within the margin" in report.headline
    few = three(n_queries=40, bias=0.0, margin=0.06)
    assert "The data cannot tell of a, b, c, d, e." in few.findings[0].verdict
    assert "No group is shown to be within the margin by its metric." in few.headline
    assert set(few.to_frame()["verdict"]) == {"cannot tell"}
    assert few.findings[0].cells()[0][-1] == "verdict"


def test_all_groups_need_no_correction():
    """The intersection-union test: the largest p-value alone."""
    for n_queries in range(100, 1000, 50):
        finding = three(n_queries=n_queries, bias=0.0, margin=0.06).findings[0]
        pvalues = np.array([row.pvalue_margin for row in finding.rows])
        assert finding.all_within == (pvalues.max() < 0.05)
        if finding.all_within and holm(pvalues).max() >= 0.05:
            break
    else:
        pytest.fail("Holm's method never was stricter.")
    assert all(row.within for row in finding.rows)
    assert "Every group is shown to be within 6 points of the rest" in finding.verdict


def test_a_difference_can_be_there_and_too_small_to_matter():
    report = audit(**data(n_queries=4000, bias=0.1), metrics=INTER, margin=0.1)
    assert report.to_frame()["verdict"].tolist() == [
        "worse off, within the margin",
        "better off, within the margin",
    ]
    assert "f is" in report.headline or "beyond chance: f" in report.headline
    assert "Every group is shown to be within the margin" in report.headline


def test_the_headline_wants_every_metric_of_outcomes():
    names = ["pairwise_accuracy", INTER, "pairwise_exposure"]
    columns = data(("a", "b", "c"), n_queries=3000, bias=0.0)
    margins = {"pairwise_accuracy": 0.03, INTER: 0.03, "pairwise_exposure": 1e-4}
    report = audit(**columns, metrics=names, margin=margins)
    both = [report.results[name].equivalence_test(0.03).pvalue for name in names[:2]]
    assert np.max(both) < 0.05
    every = "Every group is shown to be within the margin by every metric of outcomes."
    assert every in report.headline  # exposure does not look at outcomes
    margins[INTER] = 0.001
    report = audit(**columns, metrics=names, margin=margins)
    assert "No group is shown to be within the margin by every" in report.headline


def test_a_group_with_too_little_data_is_not_within():
    columns = data(n_queries=2000, bias=0.0)
    groups = columns["sensitive_features"]
    groups[:30:10] = "rare"
    report = audit(**columns, metrics=INTER, margin=0.2)
    frame = report.to_frame().set_index("group")
    assert frame.loc["rare", "verdict"] == ""
    assert np.isnan(frame.loc["rare", "pvalue_margin"])
    assert frame.loc[["f", "m"], "verdict"].eq("within the margin").all()
    assert not report.findings[0].all_within
    expected = correct(frame["pvalue_margin"].to_numpy(), "holm")
    np.testing.assert_allclose(frame["pvalue_margin_corrected"], expected)


def test_without_a_margin_nothing_is_said_of_it():
    report = three(n_queries=100)
    frame = report.to_frame()
    assert not any("margin" in name for name in frame)
    assert not frame["verdict"].str.contains("margin").any()
    assert "margin" not in repr(report)
    assert not any(row.within for row in report.findings[0].rows)


def test_is_in_the_page_and_the_numbers(report, tmp_path):
    text = report.to_html(tmp_path / "r.html").read_text(encoding="utf-8")
    Page(text)
    assert text.count(">better off, within the margin</td>") == 3
    assert '<th scope="col">Verdict</th>' in text
    assert "and the band the margin" in text
    assert re.search(r'<rect [^>]*fill-opacity="0\.12"', text)
    assert "is-within" in text
    plain = three(n_queries=100).to_html(tmp_path / "p.html")
    assert "fill-opacity" not in plain.read_text(encoding="utf-8")
    found = json.loads(report.to_json(tmp_path / "r.json").read_text(encoding="utf-8"))
    assert found["margin"] == {INTER: 0.06}
    assert [g["within"] for g in found["metrics"][0]["groups"]] == [
        *(False, True, True, True, False)
    ]


def test_of_cross_validated_scores():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=3000), "g": rng.integers(2, size=3000)})
    y = X["x"] + rng.normal(size=3000) > 0
    who = {"sensitive_features": "g", "metrics": INTER, "cv": 3}
    report = audit_cv(LogisticRegression(), X, y, **who, margin={INTER: 0.1})
    assert report.to_frame()["verdict"].eq("within the margin").all()
    with pytest.raises(ValueError, match="margin must"):
        audit_cv(LogisticRegression(), X, y, **who, margin=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"margin": 0}, "margin must"),
        ({"margin": -0.1}, "margin must"),
        ({"margin": "a"}, "margin must"),
        ({"margin": (-0.1, 0.1)}, "margin must be one number"),
        ({"margin": {"nonsense": 0.1}}, "margin must be of metrics of this audit"),
        ({"margin": {"ndcg": 0.1}}, "margin must be of metrics of this audit"),
        ({"margin": 0.1, "confidence_level": 0.5}, "confidence_level must be above"),
    ],
)
def test_what_is_wrong_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        three(n_queries=20, **options)
