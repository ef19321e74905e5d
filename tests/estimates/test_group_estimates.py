"""GroupEstimates: the value of all rows, the rest, tables, results as objects."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.metrics import (
    log_loss,
    mean_squared_error,
    ndcg,
    pairwise_accuracy,
    pairwise_exposure,
    pairwise_preference,
    selection_rate,
)
from tests.metrics.common import assert_identical, columns, without_groups

# Four queries of four items, one of them clicked: in queries 0 and 2 of group "f", with
# 3 and 2 of 3 pairs won, in 1 and 3 of group "m", with 2 and 0.
QUERY = np.repeat([0, 1, 2, 3], 4)
GROUP = np.array(["f", "m", "f", "m"] * 4)
CLICKED = np.array([1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1])
SCORE = np.array([4, 3, 2, 1, 4, 3, 2, 1, 3, 4, 2, 1, 4, 3, 2, 1]) / 4


# The value of all rows


@pytest.mark.parametrize(
    "metric",
    [pairwise_accuracy, log_loss, mean_squared_error],
    ids=lambda m: m.__name__,
)
def test_overall_is_the_metric_of_one_group(metric):
    data = columns(3)
    if metric is not pairwise_accuracy:
        data["y_score"] = 1 / (1 + np.exp(-data["y_score"]))
        del data["qid"]
        data["cluster"] = columns(3)["qid"]
    result = metric(**data)
    one = metric(**{**data, "sensitive_features": np.repeat("all", 360)})
    for overall in (result.overall, result.compact().overall):
        assert overall.null_value is None
        for name in ("estimate", "standard_error", "df"):
            assert getattr(overall, name) == pytest.approx(getattr(one, name)[0])
        low, high = one.confidence_interval()
        assert overall.confidence_interval() == pytest.approx((low[0], high[0]))
        assert np.isnan(overall.pvalue)
        assert repr(overall).startswith("overall: ")


@pytest.mark.parametrize("comparison", ["all", "inter"])
@pytest.mark.parametrize("average", ["pairs", "queries"])
def test_against_rest_is_the_contrast_with_the_complement(comparison, average):
    data = columns()
    options = {"comparison": comparison, "average": average}
    result = pairwise_accuracy(**data, **options)
    rest = result.against_rest()
    assert rest.fair_value == (0 if average == "pairs" else None)
    letters = data.pop("sensitive_features")
    for i, g in enumerate(result.groups):
        data["sensitive_features"] = np.stack([letters == g, letters != g], axis=1)
        contrast = pairwise_accuracy(**data, **options).contrast(0, 1)
        assert rest.estimate[i] == pytest.approx(contrast.estimate, rel=1e-12)
        error = contrast.standard_error
        # (n - 1) / n is that of the larger side here, and of each side there.
        assert rest.standard_error[i] == pytest.approx(error, rel=0.03)
        assert rest.df[i] == pytest.approx(contrast.df)
        assert result.pvalue[i] == pytest.approx(contrast.pvalue, abs=0.02, nan_ok=True)
        low, high = rest.confidence_interval()
        assert (low[i], high[i]) == pytest.approx(
            contrast.confidence_interval(), abs=0.1 * error
        )


# Tables and text


def test_to_frame(matched):
    frame = matched.to_frame(0.9)
    names = ["estimate", "standard_error", "ci_low", "ci_high", "support"]
    assert list(frame.columns) == [
        *names,
        *("n_effective", "df", "slope_term", "pvalue"),
    ]
    assert frame.index.name == "group"
    assert frame.index.tolist() == ["a", "b", "c"]
    low, high = matched.confidence_interval(0.9)
    values = [matched.estimate, matched.standard_error, low, high, matched.support]
    values += [matched.n_effective, matched.df, matched.slope_term]
    values += [matched.test().pvalue]
    np.testing.assert_array_equal(frame, np.column_stack(values))


def test_crossed_groups_stay_tuples():
    data = columns()
    letters = data.pop("sensitive_features")
    number = np.arange(letters.size) % 2
    data["sensitive_features"] = pd.DataFrame({"letter": letters, "number": number})
    frame = pairwise_accuracy(**data).to_frame()
    assert frame.index.tolist() == [(letter, n) for letter in "abc" for n in (0, 1)]
    assert not isinstance(frame.index, pd.MultiIndex)
    assert frame.loc[[("a", 1)], "support"].item() > 0


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda r: r.overall, "no value of all rows"),
        (lambda r: r.against_rest(), "no value of the rest"),
        (lambda r: r.breakdown(), "without strata"),
        (lambda r: r.equivalence_test(0.1, alpha=0.5), "alpha must"),
    ],
)
def test_what_a_metric_has_not_is_said(matched, ask, message):
    with pytest.raises(ValueError, match=message):
        ask(matched)


def test_what_is_not_fair_or_unfair_is_not_tested():
    for result in (ndcg(**without_groups(columns())), pairwise_preference(**columns())):
        with pytest.raises(ValueError, match="no value of the rest"):
            result.test()
        assert result.to_frame()["pvalue"].isna().all()


def test_repr(with_empty_group):
    of_items = pairwise_exposure(None, SCORE, sensitive_features=GROUP)
    assert repr(of_items).endswith("\n16 items; fair value 0.5")
    row = repr(with_empty_group).splitlines()[4]
    assert row.split() == ["2", "–", "[–,", "–]", "0", "–"]


def test_html_is_escaped():
    attack = "<script>alert(1)</script>"
    group = np.where(GROUP == "f", attack, '"m" & <b>')
    result = pairwise_accuracy(CLICKED, SCORE, sensitive_features=group, qid=QUERY)
    html = result._repr_html_()
    assert attack not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "<b>" not in html
    assert "&amp; &lt;b&gt;" in html
    assert html.count("<tr>") == html.count("</tr>") == 3
    assert attack in repr(result)


# Results as objects


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))]
)
def test_pickle_and_copy(matched, duplicate):
    result = matched + matched
    for _ in range(2):  # before and after its numbers are kept
        again = duplicate(result)
        assert_identical(result, again)
        assert repr(again) == repr(result)
        np.testing.assert_array_equal(again.resampled(5, 0), result.resampled(5, 0))
        assert_identical(result + matched, again + matched)
    contrast = result.contrast("a", "b")
    assert repr(duplicate(contrast)) == repr(contrast)
    test = result.test()
    np.testing.assert_array_equal(duplicate(test).pvalue, test.pvalue)


def test_compact(accuracy):
    compact = accuracy.compact()
    assert compact.sums.compacted
    assert not accuracy.sums.compacted
    assert_identical(accuracy, compact)
    assert_identical(accuracy.against_rest(), compact.against_rest())
    assert repr(compact.contrasts()) == repr(accuracy.contrasts())
    # At most 400 rows of each group have a share above 1/400: then nothing grows.
    large, larger = (
        pairwise_accuracy(**columns(n_queries=n)).compact() for n in (3000, 6000)
    )
    assert larger.sums.rows.n_rows == 0
    assert len(pickle.dumps(larger.sums)) < len(pickle.dumps(large.sums)) + 200
    assert_identical(accuracy + accuracy, accuracy + compact)
    assert (accuracy + compact).sums.compacted


def test_a_warning_names_a_few_of_many_groups():
    group, decided = np.arange(2000), np.ones(2000)
    with pytest.warns(UndefinedMetricWarning) as said:
        selection_rate(None, decided, sensitive_features=group)
    (message,) = (str(warning.message) for warning in said)
    assert message.endswith("in: 0, 1, 2, 3, 4, 5 and 1,994 more.")


def test_latex_is_the_table_and_has_no_active_characters():
    labels = ["50% & more", "a_b"] * 50
    result = selection_rate(None, [0, 1] * 50, sensitive_features=labels)
    lines = result.to_latex().splitlines()
    assert lines[0] == "% selection_rate()"
    assert lines[-1] == "% 100 clusters; tested: equality with the rest"
    # Of all rows together there is no rest.
    assert repr(selection_rate(None, [0, 1] * 50)).endswith("100 clusters")
    assert lines[5].startswith(r"50\% \& more & 0.0000 & [0.0000, 0.0")
    assert lines[6].startswith(r"a\_b & 1.0000 & ")
    assert lines[1] == r"\begin{tabular}{lrrr" + "r" * lines[3].count("& p") + "}"
