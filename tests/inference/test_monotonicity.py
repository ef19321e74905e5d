"""The monotonicity test: the paper's numbers, its size, its power, its input."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.isotonic import IsotonicRegression, check_increasing

from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.inference import monotonicity_test, recommend_metrics
from skrankfair.inference._monotonicity import _pooled


def columns(member, **options):
    """Rankings with these members, a row each, from the top."""
    n_lists, n = np.shape(member)
    return {
        "y_score": np.tile(-np.arange(n), n_lists),
        "sensitive_features": np.ravel(member).astype(bool),
        "qid": np.repeat(np.arange(n_lists), n),
        "group": True,
        **options,
    }


def isotonic(place, values, weight=None, increasing=True):
    """scikit-learn's isotonic regression."""
    model = IsotonicRegression(increasing=increasing)
    return model.fit(place, values, sample_weight=weight).predict(place)


def ranked(scores, n_members):
    """Who is a member at each position; the first items are the members."""
    return np.argsort(-scores, axis=-1) < n_members


def fair(rng, n_lists=50, n=10, n_members=4):
    return ranked(rng.random((n_lists, n)), n_members)


def bump(rng, scale=0.4, n_lists=80, n=10, n_members=4):
    """Members crowd in the middle."""
    scores = rng.normal(size=(n_lists, n))
    scores[:, :n_members] *= scale
    return ranked(scores, n_members)


class TestChiSquare:
    @pytest.mark.filterwarnings("ignore:Confidence interval of the Spearman")
    @pytest.mark.parametrize("seed", range(10))
    def test_is_the_papers(self, seed):
        # Counts, scikit-learn's isotonic regression of them, scipy's chi-square.
        member = bump(np.random.default_rng(seed), 0.9, 60)
        member[0, 0] = True
        count, place = member.sum(axis=0).astype(float), np.arange(10)
        increasing = check_increasing(place, count)
        fit = isotonic(place, count, increasing=increasing)
        expected = stats.chisquare(count, fit)
        test = monotonicity_test(**columns(member), method="chi2")
        assert test.statistic == pytest.approx(expected.statistic, rel=1e-9)
        assert test.pvalue == pytest.approx(expected.pvalue, rel=1e-9)
        assert test.increasing == increasing
        assert (test.df, test.null_distribution) == (9, None)
        np.testing.assert_array_equal(test.count, count)
        np.testing.assert_allclose(test.fit * 60, fit)
        np.testing.assert_allclose(test.share, count / 60)

    # Counts of quarterbacks of one group at the ten positions, over 90 experts, of the
    # weeks 1, 5, 8 and 9 of 2019, and the p-values of the paper's test.
    @pytest.mark.parametrize(
        ("count", "pvalue"),
        [
            ([7, 32, 66, 66, 71, 48, 40, 35, 33, 52], 0.000374),
            ([0, 5, 19, 75, 85, 87, 90, 89, 90, 90], 1.0),
            ([18, 73, 89, 88, 84, 80, 71, 68, 53, 6], 7.07e-08),
            ([86, 44, 74, 77, 70, 20, 24, 21, 48, 76], 4.74e-12),
        ],
    )
    def test_quarterbacks(self, count, pvalue):
        # The test looks at the counts alone.
        member = np.arange(90)[:, None] < np.array(count)
        test = monotonicity_test(**columns(member), method="chi2")
        assert test.pvalue == pytest.approx(pvalue, rel=5e-3)
        assert test.rejected == (pvalue < 0.05)

    def test_positions_that_are_never_taken_count_0(self):
        member = np.zeros((30, 6), dtype=bool)
        member[:, 2:4] = True
        member[0, 1:3] = [True, False]
        test = monotonicity_test(**columns(member), method="chi2", increasing=True)
        assert test.count.tolist() == [0, 1, 29, 30, 0, 0]
        assert test.df == 5
        assert np.isfinite(test.pvalue)
        # Two positions of 0 among a fit of 0 take no part.
        first = columns(member[:, :4])
        test = monotonicity_test(**first, method="chi2", increasing=True)
        assert test.fit[0] == 0
        assert test.statistic == 0

    def test_direction(self):
        member = np.zeros((20, 5), dtype=bool)
        member[:, 0] = True
        for increasing, rejected in (("auto", False), (False, False), (True, True)):
            test = monotonicity_test(
                **columns(member), method="chi2", increasing=increasing
            )
            assert test.increasing is (increasing is True)
            assert test.rejected is rejected

    def test_rankings_of_several_lengths(self):
        # A position's share is of the rankings that have it.
        rng = np.random.default_rng(0)
        qid = np.repeat(np.arange(30), rng.integers(4, 9, 30))
        group = rng.random(qid.size) < 0.4
        score = rng.normal(size=qid.size)
        who = {"sensitive_features": group, "qid": qid, "group": True}
        test = monotonicity_test(score, **who, k=8, random_state=0)
        count, support = np.zeros(8), np.zeros(8)
        for q in range(30):
            rows = np.flatnonzero(qid == q)
            for place, row in enumerate(rows[np.argsort(-score[rows])]):
                count[place] += group[row]
                support[place] += 1
        np.testing.assert_array_equal(test.count, count)
        np.testing.assert_array_equal(test.support, support)
        fit = isotonic(np.arange(8), count / support, support, test.increasing)
        expected = ((count - support * fit) ** 2 / (support * fit)).sum()
        assert test.statistic == pytest.approx(expected, rel=1e-9)


class TestBootstrap:
    def test_statistic_is_that_of_chi_square(self):
        member = bump(np.random.default_rng(3))
        boot = monotonicity_test(**columns(member), random_state=0, n_resamples=50)
        chi2 = monotonicity_test(**columns(member), method="chi2")
        assert boot.statistic == chi2.statistic
        drawn = boot.null_distribution
        assert drawn.shape == (50,)
        assert boot.pvalue == (1 + (drawn >= boot.statistic).sum()) / 51
        again = monotonicity_test(**columns(member), random_state=0, n_resamples=50)
        np.testing.assert_array_equal(drawn, again.null_distribution)

    def test_unequal_weights_are_those_of_fewer_rankings(self):
        member = bump(np.random.default_rng(6), n_lists=20)
        weight = np.random.default_rng(7).integers(0, 4, 20)
        rows = np.repeat(weight, 10)
        test = monotonicity_test(**columns(member), sample_weight=rows, method="chi2")
        assert test.n_rankings == (weight > 0).sum()
        share = test.support / weight.sum()
        np.testing.assert_allclose(share, weight.sum() / (weight**2).sum())


def test_positions_that_few_rankings_have():
    # One ranking is longer, with a member at its end.
    steep = columns(np.arange(6) < np.random.default_rng(0).integers(2, 4, 40)[:, None])
    longer = steep | {
        name: np.append(steep[name], last)
        for name, last in (("y_score", -6), ("sensitive_features", True), ("qid", 0))
    }
    test = monotonicity_test(**longer, random_state=0)
    assert test.support.tolist() == [40] * 6
    assert not test.rejected
    test = monotonicity_test(**longer, random_state=0, k=9)
    assert test.support.tolist() == [40] * 6 + [1]
    assert np.isnan(test.band_low).tolist() == [False] * 6 + [True]
    assert test.fit[0] > 0.9
    # Half of the rankings, by weight.
    half = np.repeat([True, False], 3)[:, None] & np.ones((6, 4), dtype=bool)
    rows = np.flatnonzero((np.arange(24) % 4 < 2) | (np.arange(24) < 12))
    c = columns(half)
    c |= {name: c[name][rows] for name in ("y_score", "sensitive_features", "qid")}
    c["method"] = "chi2"
    assert monotonicity_test(**c).position.size == 4
    weight = np.where(c["qid"] < 3, 1.0, 2.0)
    assert monotonicity_test(**c, sample_weight=weight).position.size == 2


def test_levels_that_hardly_differ_are_pooled():
    fit, weight = np.array([0.1, 0.1, 0.2, 0.6, 0.65]), np.full(5, 100.0)
    covariance = np.eye(5) * 0.05**2
    # 0.1 and 0.2 differ by 1.6 standard errors, 0.6 and 0.65 by 0.7.
    for least, expected in (
        (0.5, fit),
        (1.5, [0.1, 0.1, 0.2, 0.625, 0.625]),
        (2.0, [0.4 / 3] * 3 + [0.625] * 2),
        (99, [0.33] * 5),
    ):
        np.testing.assert_allclose(_pooled(fit, covariance, weight, least), expected)
    # Without noise every difference is one.
    np.testing.assert_allclose(_pooled(fit, np.zeros((5, 5)), weight, 9), fit)


class TestResult:
    def test_text_and_recommendation(self):
        rng = np.random.default_rng(0)
        bumpy = monotonicity_test(**columns(bump(rng)), random_state=0)
        assert "Monotone share of True: rejected (p = " in repr(bumpy)
        assert "80 rankings, 10 positions" in repr(bumpy)
        assert bumpy.group_share == pytest.approx(0.4)
        monotone = monotonicity_test(**columns(fair(rng)), random_state=1)
        assert (bumpy.rejected, monotone.rejected) == (True, False)
        for purpose in ("minimize", "evaluate"):
            r = recommend_metrics(bumpy, purpose)
            assert {"pairwise_parity", "ndkl", "exposure_parity"} < set(r.metrics)
            assert "look at all" in r.reason
            assert r.rejected
        assert recommend_metrics(monotone).metrics == (
            "normalized_discounted_kl",
            "normalized_discounted_difference",
            "pairwise_parity",
            "exposure_parity",
        )
        r = recommend_metrics(replace(monotone, count=monotone.count / 100), "evaluate")
        assert "minority (0.4%)" in r.reason
        assert repr(r).startswith("Use pairwise_parity.\nAvoid normalized_discounted_r")
        majority = monotonicity_test(**columns(~fair(rng)), random_state=0)
        assert "minority" not in recommend_metrics(majority, "evaluate").reason
        assert set(r.avoid) == {"normalized_discounted_ratio", "skew_at_k"}

    def test_bad_recommendation(self):
        test = monotonicity_test(**columns(fair(np.random.default_rng(0))))
        with pytest.raises(ValueError, match="purpose must be one of"):
            recommend_metrics(test, "report")
        with pytest.raises(ValueError, match="test must be a result of monotonicity"):
            recommend_metrics(0.3)


class TestUndefined:
    @pytest.mark.parametrize("method", ["bootstrap", "chi2"])
    def test_everybody_or_nobody(self, method):
        member = np.ones((4, 5), dtype=bool)
        with pytest.warns(UndefinedMetricWarning, match="everybody is in True"):
            test = monotonicity_test(**columns(member), method=method)
        assert np.isnan(test.pvalue)
        assert not test.rejected
        assert "undecided" in repr(test)
        with pytest.warns(UndefinedMetricWarning, match="everybody"):
            one = monotonicity_test(**columns(member[:1]), method=method)
        assert "1 ranking, 5 positions" in repr(one)
        frame = pd.DataFrame({"a": [False] * 20, "b": [True] * 20})
        c = columns(member) | {"sensitive_features": frame, "group": "a"}
        with pytest.warns(UndefinedMetricWarning, match="nobody is in a"):
            assert np.isnan(monotonicity_test(**c, method=method).pvalue)

    def test_one_cluster(self):
        member = fair(np.random.default_rng(0), 1)
        for c in (columns(member), columns(np.tile(member, (3, 1)), cluster=[0] * 30)):
            with pytest.warns(UndefinedMetricWarning, match="fewer than two clusters"):
                test = monotonicity_test(**c)
            assert np.isnan(test.pvalue)
            assert np.isnan(test.band_low).all()
            # The paper's test has an answer, of a kind.
            assert np.isfinite(monotonicity_test(**c, method="chi2").pvalue)

    @pytest.mark.parametrize(
        ("option", "message"),
        [
            ({"group": "x"}, r"group must be one of .*\[False, True\]; got 'x'"),
            ({"qid": None}, "qid must be given"),
            ({"qid": range(60)}, "at least 2 positions; got 1"),
            ({"method": "bayes"}, "method must be one of 'bootstrap', 'chi2'"),
            ({"increasing": "yes"}, "increasing must be one of"),
            ({"increasing": None}, "increasing must be one of"),
            ({"k": 1}, "k must be an integer"),
            ({"n_resamples": 0}, "n_resamples must be"),
            ({"confidence_level": 1.0}, "confidence_level must be"),
            ({"random_state": -1}, "random_state must be"),
            ({"y_score": None}, "y_score must be given"),
            ({"sensitive_features": None}, r"one of the groups \['all'\]; got True"),
            ({"cluster": range(60)}, "cluster must be constant within a query"),
        ],
    )
    def test_bad_input(self, option, message):
        c = columns(fair(np.random.default_rng(0), 6))
        with pytest.raises(ValueError, match=message):
            monotonicity_test(**(c | option))

    def test_too_many_positions(self):
        c = columns(fair(np.random.default_rng(0), 3, 1200, 600))
        with pytest.raises(ValueError, match="k must be given, at most 1000"):
            monotonicity_test(**c)
        assert monotonicity_test(**c, k=50, method="chi2").df == 49
