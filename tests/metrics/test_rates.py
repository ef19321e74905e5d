"""Rates of decisions and errors of scores: by definition, and as others have them."""

import re

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics as sk
from fairlearn import metrics as fl
from scipy import special, stats

from skrankfair import metrics
from skrankfair.exceptions import SmallSampleWarning, UndefinedMetricWarning
from tests.metrics.common import LOSSES, RATES
from tests.metrics.decisions import drawn, mortgages, resumes
from tests.seeds import one_in, rarely

OF_SKLEARN = {
    "selection_rate": fl.selection_rate,
    "true_positive_rate": sk.recall_score,
    "false_positive_rate": fl.false_positive_rate,
    "true_negative_rate": fl.true_negative_rate,
    "false_negative_rate": fl.false_negative_rate,
    "precision": sk.precision_score,
    "accuracy": sk.accuracy_score,
    "balanced_accuracy": sk.balanced_accuracy_score,
    "f1": sk.f1_score,
    "brier_score": sk.brier_score_loss,
    "log_loss": sk.log_loss,
    "calibration_in_the_large": lambda y, s, sample_weight=None: np.average(
        y - s, weights=sample_weight
    ),
    "mean_squared_error": sk.mean_squared_error,
    "mean_absolute_error": sk.mean_absolute_error,
}


every_metric = pytest.mark.parametrize(
    "metric", [*RATES, *LOSSES], ids=lambda m: m.__name__
)


@every_metric
def test_errors_are_those_of_the_jackknife(metric):
    y, s, d, group = drawn().values()
    cluster, given = np.arange(y.size) % 6, s if metric in LOSSES else d
    of_rows = OF_SKLEARN[metric.__name__]
    r = metric(y, given, sensitive_features=group, cluster=cluster)
    for label, value, error in zip(r.groups, r.estimate, r.standard_error, strict=True):
        own = group == label
        left_out = [own & (cluster != unit) for unit in np.unique(cluster)]
        values = [of_rows(y[some], given[some]) for some in left_out]
        n = max(len({*cluster[own & some]}) for some in that_count(metric, y, given))
        variance = (n - 1) / n * np.square(np.array(values) - value).sum()
        assert error == pytest.approx(np.sqrt(variance), rel=1e-10)


def that_count(metric, y, d):
    """Return the rows of the denominator, of each sample if there are two."""
    return {
        metrics.true_positive_rate: [y == 1],
        metrics.false_negative_rate: [y == 1],
        metrics.true_negative_rate: [y == 0],
        metrics.false_positive_rate: [y == 0],
        metrics.balanced_accuracy: [y == 1, y == 0],
        metrics.precision: [d == 1],
        metrics.f1: [(d == 1) | (y == 1)],
    }.get(metric, [np.full(y.size, True)])


@every_metric
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rows", [drawn, *rarely(resumes, mortgages)])
def test_equals_scikit_learn_and_fairlearn(metric, weighted, rows):
    y, s, d, group = rows().values()
    given = s if metric in LOSSES else d
    weight = np.arange(y.size) % 3 + 1.0 if weighted else None
    r = metric(y, given, sensitive_features=group, sample_weight=weight)
    frame = fl.MetricFrame(
        metrics=OF_SKLEARN[metric.__name__],
        y_true=y,
        y_pred=given,
        sensitive_features=group,
        sample_params={"sample_weight": weight} if weighted else None,
    )
    assert list(r.groups) == frame.by_group.index.tolist()
    np.testing.assert_allclose(r.estimate, frame.by_group, rtol=1e-12, atol=1e-14)
    assert r.disparity("difference") == pytest.approx(frame.difference(), abs=1e-12)
    assert r.disparity("ratio") == pytest.approx(frame.ratio(), 1e-9, 1e-12)
    assert r.overall.estimate == pytest.approx(frame.overall, abs=1e-12)


@pytest.mark.parametrize("metric", RATES, ids=lambda m: m.__name__)
def test_threshold_makes_the_decisions(metric):
    y, s, _, group = drawn().values()
    s = s.round(1).astype(np.float32)  # as such 0.7 is less than 0.7
    who = {"sensitive_features": group, "cluster": np.arange(y.size) % 15}
    r = metric(y, s, threshold=0.7, **who)
    decided = metric(y, s >= np.float32(0.7), **who)
    np.testing.assert_array_equal(r.estimate, decided.estimate)
    np.testing.assert_array_equal(r.covariance, decided.covariance)
    assert r.parameters == {"threshold": 0.7}
    with pytest.raises(ValueError, match="Only results of one metric with the same"):
        r + decided


@pytest.mark.parametrize(
    ("metric", "lacking", "y", "d"),
    [
        (metrics.true_positive_rate, "without positives", [0, 0], [1, 0]),
        (metrics.false_negative_rate, "without positives", [0, 0], [1, 0]),
        (metrics.false_positive_rate, "without negatives", [1, 1], [1, 0]),
        (metrics.true_negative_rate, "without negatives", [1, 1], [1, 0]),
        (metrics.precision, "without selected", [1, 0], [0, 0]),
        (metrics.f1, "without rows", [0, 0], [0, 0]),
        (metrics.balanced_accuracy, ".*in", [1, 1], [1, 1]),
    ],
)
def test_undefined_is_nan_and_named(metric, lacking, y, d):
    y, d = [1, 0, 1, 0, *y], [1, 1, 1, 1, *d]
    with pytest.warns(UndefinedMetricWarning, match=rf"undefined.*{lacking}: b\."):
        r = metric(y, d, sensitive_features=list("aaaabb"))
    assert np.isnan(r.estimate).tolist() == [False, True]
    assert np.isnan(r.disparity())


@pytest.mark.parametrize(
    ("metric", "columns", "options", "message"),
    [
        ("selection_rate", (None, [1, 0, 0.3]), {}, "y_score must be 0 or 1 .*0.3"),
        ("f1", ([1, 0, 2], [1, 0, 1]), {}, "y_true must be 0 or 1 for f1; got 2 in"),
        (
            *("f1", ([1, 0, 2], [1, 0, 1])),
            {"sample_weight": [0, 1, 1]},
            r"y_true must be .*; got 2 in row 2\.$",
        ),
        *(
            ("precision", ([1, 0], [0.2, 0.7]), {"threshold": bad}, "threshold must be")
            for bad in ("0.5", np.nan, [0.5], True)
        ),
        (
            *("brier_score", ([1, 0], [0.5, 1.5]), {}),
            r"y_score must be in \[0, 1\] for brier_score; got 1.5 in row 1\.$",
        ),
        ("impact_ratio", (None, [1]), {"sensitive_features": None}, "sensitive_feat"),
        ("group_mean", (None,), {}, "values must be given"),
        ("group_mean", ([1e200, 1],), {}, "values must be between"),
        (
            *("group_mean", ([1, 2],), {"sensitive_features": [1, 2, 3]}),
            ".*number of rows; got values: 2, sensitive_features: 3",
        ),
    ],
)
def test_bad_input(metric, columns, options, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        getattr(metrics, metric)(*columns, **options)


def test_balanced_accuracy_of_few_positives_has_the_limits_of_both_shares():
    y, d = np.tile(np.arange(50) < 5, 2), np.zeros(100)
    group = np.arange(100) // 50
    d[[0, 1, 2, 3, 4, 9, 17, 33, 50, 51, 60, 70]] = 1
    r = metrics.balanced_accuracy(y, d, sensitive_features=group)
    negative = metrics.true_negative_rate(y, d, sensitive_features=group)
    low, high = (end[0] for end in negative.confidence_interval())
    tnr = negative.estimate[0]
    expected = (1 + tnr - np.hypot(1 - 0.025 ** (1 / 5), tnr - low)) / 2
    actual = [end[0] for end in r.confidence_interval()]
    np.testing.assert_allclose(actual, [expected, (1 + high) / 2], rtol=1e-9)
    contrast = r.contrast(0, 1)
    assert contrast.pvalue == pytest.approx(r.test().pvalue[0], rel=1e-4)
    assert min(map(abs, contrast.confidence_interval(1 - contrast.pvalue))) < 1e-4


@pytest.mark.parametrize("k", [4, 5, 6, 7])
def test_few_events_are_as_unlikely_as_fisher_says(k):
    y, group = np.r_[np.arange(100) < k, np.arange(4900) < 49], np.arange(5000) < 100
    pvalue = metrics.selection_rate(None, y, sensitive_features=group).pvalue
    _, exact = stats.fisher_exact([[k, 100 - k], [49, 4851]])
    np.testing.assert_allclose(pvalue, exact, rtol=0.06)


@pytest.mark.parametrize(("few", "size"), [(7, 100), (45, 300)])
def test_a_ratio_to_no_event_is_as_sure_as_the_difference(few, size):
    y = np.r_[np.zeros(100), np.arange(size) < few]
    r = metrics.selection_rate(None, y, sensitive_features=np.arange(y.size) < 100)
    sure = r.contrast(True, False).pvalue
    for pair in ((True, False), (False, True)):
        assert r.contrast(*pair, "ratio").pvalue == pytest.approx(sure)


def test_light_events_of_clusters_prove_nothing():
    """A share that lacks events is tested by Student's t, whatever signs would say."""
    rng = np.random.default_rng(0)
    cluster, group = rng.permutation(1000) % 100, np.arange(1000) < 65
    y, weight = rng.random(1000) < 0.1, rng.lognormal(0, 1, 1000)
    y[group], weight[0] = np.arange(65) < 1, 0.05
    who = {"sensitive_features": group, "cluster": cluster, "sample_weight": weight}
    r = metrics.selection_rate(None, y, **who)
    assert r.estimate[1] < 0.001
    assert r.pvalue[1] > 0.01
    _, high = r.confidence_interval()  # that of no event at all
    assert high[1] == pytest.approx(1 - 0.025 ** (1 / r.n_effective[1]))


@pytest.mark.parametrize("rest", [26, 60, 200])
def test_more_clusters_of_the_rest_do_not_hide_a_gap(rest):
    """Clusters are more trials than one if they have events, and if others do."""
    events = np.r_[np.arange(12) % 3 + 2, np.arange(rest) % 9 + 10]
    cluster = np.repeat(np.arange(12 + rest), 100)
    y = np.tile(np.arange(100), 12 + rest) < np.repeat(events, 100)
    who = {"sensitive_features": cluster < 12, "cluster": cluster}
    assert metrics.selection_rate(None, y, **who).pvalue.max() < 1e-6
    for first in (False, True):
        y[cluster < 12] = False
        y[0] = first
        r = metrics.selection_rate(None, y, **who)
        with np.errstate(invalid="ignore"):
            show = r.estimate * (1 - r.estimate) / r.standard_error**2
        trials = np.sqrt(12 * min(show[1], show[0] * 12 / rest)) if first else 12
        _, high = r.confidence_interval()
        assert high[1] == pytest.approx(1 - 0.025 ** (1 / trials))


@pytest.mark.parametrize(("few", "every"), [(90, 100), (8, 4)])
def test_a_group_without_the_event_has_the_variance_of_the_rest(few, every):
    n, group = 2000 - few, np.arange(2000) >= few
    y, s = group * (np.arange(2000) % every == 0), np.linspace(0.5, 1.5, 2000) / every
    r = metrics.brier_score(y, s, sensitive_features=group)
    loss = ((y - s) ** 2)[few:]
    rest, u = loss.var(ddof=1), loss - loss.mean()
    expected = np.sqrt(rest / few + rest / n)
    gap, contrast = r.test(), r.contrast(False, True)
    np.testing.assert_allclose(gap.standard_error, expected, rtol=1e-7)
    assert contrast.standard_error == pytest.approx(expected, rel=1e-7)
    # Two groups, each the rest of the other, have one test.
    assert [*gap.pvalue, *gap.corrected()] == pytest.approx([contrast.pvalue] * 4)
    # At a bound it has the variance that such events have there.
    event = (u**3).sum() / (u**2).sum() * np.sqrt(n / (n - 1))  # in a sum of rows
    of_events = event * rest * (1 / few**2 - 1 / n**2) / expected**2
    margin, distance = (-np.inf, 5 / every), 5 / every - gap.estimate[0]
    variance = expected**2 + distance * of_events
    pvalue = special.stdtr(gap.df[0], -distance / np.sqrt(variance))
    tests = [each.equivalence_test(margin) for each in (r, r.compact(), contrast)]
    assert [t.pvalue[0] for t in tests] == pytest.approx([pvalue] * 3, rel=1e-4)
    high = r.equivalence_test((-np.inf, tests[0].high[0]))
    assert high.pvalue[0] == pytest.approx(0.05)
    # The interval of the group alone reaches as far as one with such events.
    ends = [np.ravel([each.confidence_interval().high])[0] for each in (r, r.compact())]
    reach, error = stats.t.ppf(0.975, few - 1), r.standard_error[0]
    far = np.asarray(ends) - r.estimate[0]
    np.testing.assert_allclose(far**2, reach**2 * (error**2 + far * event / few), 1e-4)
    own = metrics.brier_score(y[:few], s[:few]).confidence_interval().high
    assert far[0] > 10 * (own - r.estimate[0])


def test_group_mean_warns_of_heavy_tails():
    with pytest.warns(SmallSampleWarning, match="A few extreme values make most of"):
        metrics.group_mean(np.exp(np.linspace(-12, 12, 120))).confidence_interval()


def test_values_that_are_all_alike_have_no_interval():
    """Sums of squares keep rounding, which is no variance."""
    r = metrics.group_mean(np.full(2000, 0.1), sensitive_features=np.arange(2000) % 2)
    for each in (r, r.compact(), r.compact() + r.compact()):
        assert np.isnan(each.confidence_interval()).all()


def test_group_mean_is_that_of_pandas():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"v": rng.normal(size=90), "g": rng.choice(list("abc"), 90)})
    r = metrics.group_mean(frame["v"], sensitive_features=frame["g"])
    by_group = frame.groupby("g")["v"]
    np.testing.assert_allclose(r.estimate, by_group.mean(), rtol=1e-12)
    np.testing.assert_allclose(r.standard_error, by_group.sem(), rtol=1e-10)
    np.testing.assert_array_equal(r.support, by_group.size())


CODED = {
    "-1 and 1": ({0: -1, 1: 1}, {}),
    "-1.0 and 1.0": ({0: -1.0, 1: 1.0}, {}),
    "text": ({0: "no", 1: "yes"}, {"pos_label": "yes"}),
    "the other one": ({0: 1, 1: 0}, {"pos_label": 0}),
    "truth values": ({0: True, 1: False}, {"pos_label": False}),
    "numbers": ({0: 1, 1: 2}, {"pos_label": 2}),
}


class TestClasses:
    @one_in(
        3,
        metric={m.__name__: m for m in (*RATES, metrics.equalized_odds_difference)},
        code=CODED,
    )
    def test_are_zero_and_one(self, metric, code):
        labels, given = code
        rng = np.random.default_rng(0)
        y, d = rng.integers(0, 2, (2, 100))
        group, score = rng.choice(list("ab"), 100), rng.random(100)
        for decisions, more in ((d, {}), (score, {"threshold": 0.5})):
            expected = metric(y, decisions, sensitive_features=group, **more)
            coded = pd.Series(y).map(labels)
            made = decisions if more else pd.Series(d).map(labels).tolist()
            found = metric(coded, made, sensitive_features=group, **more, **given)
            estimates = [getattr(r, "estimate", r) for r in (found, expected)]
            np.testing.assert_array_equal(*estimates)

    def test_missing_ones_stay_missing(self):
        y = ["yes", None, "no", "yes"]
        who = {"pos_label": "yes", "threshold": 0.5, "missing": "drop"}
        with pytest.warns(UserWarning, match="1 of 4 rows are left out"):
            found = metrics.accuracy(y, [0.1, 0.2, 0.3, 0.9], **who)
        np.testing.assert_allclose(found.estimate, 2 / 3)

    @pytest.mark.parametrize(
        ("y", "given", "says"),
        [
            (["no", "yes"], {}, "pos_label= must name the class that counts as 1"),
            (["no", "yes"], {"pos_label": "Yes"}, "classes; got 'Yes' and the classes"),
            ([0, 1], {"pos_label": [1]}, "pos_label must be a number, a text or a"),
            ([0, 1, 2], {"pos_label": 2}, "must be one of two classes; got 2"),
            ([-1, 0, 1], {}, "y_true must be 0 or 1 for accuracy; got -1 in row 0"),
        ],
    )
    def test_others_are_refused(self, y, given, says):
        with pytest.raises(ValueError, match=re.escape(says)):
            metrics.accuracy(y, np.linspace(0, 1, len(y)), threshold=0.5, **given)
