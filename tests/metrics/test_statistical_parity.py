"""Statistical parity: naive loops, outside numbers, largest values, no values."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from scipy import stats

from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.inference import compare
from skrankfair.metrics import (
    exposure_parity,
    ndkl,
    normalized_discounted_difference,
    normalized_discounted_kl,
    normalized_discounted_ratio,
    pairwise_parity,
    skew_at_k,
)
from skrankfair.metrics._normalized_discounted import Distance, largest_joint
from tests import seeds
from tests.calls import OF_LISTS, each_of
from tests.metrics.naive_rules import assert_close, assert_covariance, covariance_of
from tests.metrics.problems import make_problem, undefined_is_fine
from tests.reference import advantage as naive

every_metric = each_of(OF_LISTS)
each_average = pytest.mark.parametrize("average", ["queries", "representation"])
in_chunks = seeds.in_chunks(16, always=4)


def root(k):
    """A discount of one's own."""
    return 1 / np.sqrt(k)


DISCOUNTS = {"dcg": naive.log_discount, root: lambda k: 1 / math.sqrt(k)}
TERMS = {
    normalized_discounted_difference: naive.difference_term,
    normalized_discounted_ratio: naive.ratio_term,
    normalized_discounted_kl: naive.kl_term,
}


def measures(step):
    """Yield metrics, options, and naive functions of scores, queries and members."""
    for discount, by_hand in DISCOUNTS.items():
        options = {"step": step, "position_weight": discount}
        how = {"step": step, "discount": by_hand}
        for metric, term in TERMS.items():
            yield metric, options, partial(naive.normalized_discounted, term, **how)
        term = partial(naive.ratio_term, zero_division=3.0)
        options |= {"zero_division": 3.0}
        naive_ratio = partial(naive.normalized_discounted, term, **how)
        yield normalized_discounted_ratio, options, naive_ratio
    for how in ({"k": 1}, {"k": 2}, {"k": 4}, {"step": step}):
        yield skew_at_k, how, partial(naive.skew, **how)
    for signed in (False, True):
        how = {"signed": signed}
        yield pairwise_parity, how, partial(naive.pairwise_parity, **how)
        for discount in ("reciprocal", "dcg", root):
            for divisor in ("sum", "maximum", None):
                how = {"signed": signed, "divisor": divisor}
                by_hand = partial(naive.exposure_parity, discount=discount, **how)
                yield exposure_parity, {"position_weight": discount, **how}, by_hand


def assert_agrees(result, expected, hint, tolerance=1e-12):
    assert set(result.groups) == set(expected), hint
    some = [result.groups.index(group) for group in expected]
    values, numbers = zip(*expected.values(), strict=True)
    assert_close(result.estimate[some], values, tolerance, hint)
    assert result.support[some].tolist() == list(numbers), hint


@undefined_is_fine
@in_chunks
def test_by_definition(seeds):
    for seed in seeds:
        p = make_problem(seed)
        seen = p.seen()
        for metric, options, by_hand in measures(1 + seed % 7):
            r = metric(p.y, p.s, **p.who, **options)
            expected = by_hand(seen.s, seen.q, seen.member, w=seen.w)
            assert_agrees(r, expected, (seed, metric, options))


@undefined_is_fine
@in_chunks
def test_all_groups_at_once(seeds):
    for seed in seeds:
        p = make_problem(seed)
        if isinstance(p.sensitive_features, np.ndarray):
            continue
        args = p.s, p.q, list(p.sensitive_features)
        r = ndkl(None, p.s, joint=True, **p.who)
        assert r.groups == ("all",)
        expected = naive.ndkl(*args, w=p.w)
        assert_close([r.estimate[0], r.support[0]], expected, 1e-12, seed)
        for step in (1, 2, 3):
            r = normalized_discounted_kl(None, p.s, step=step, joint=True, **p.who)
            expected = naive.normalized_discounted_kl_of_groups(*args, step, w=p.w)
            assert_close([r.estimate[0], r.support[0]], expected, 1e-12, (seed, step))


def lists_of_one_length(seed):
    """Scores with ties, queries, labels, weights; group "c" is not in every list."""
    rng = np.random.default_rng(seed)
    n_lists, n = int(rng.integers(2, 6)), int(rng.integers(3, 13))
    s = rng.integers(0, 9, n_lists * n) / 4
    q = np.repeat(np.arange(n_lists), n)
    g = rng.choice(["a", "b", "c"], q.size, p=[0.5, 0.4, 0.1])
    w = rng.integers(1, 4, n_lists).astype(float)[q] if seed % 2 else None
    return s, q, g, w


@undefined_is_fine
@in_chunks
def test_representation(seeds):
    for seed in seeds:
        s, q, g, w = lists_of_one_length(seed)
        member = {label: list(g == label) for label in sorted(set(g))}
        who = {"sensitive_features": g, "qid": q, "sample_weight": w}
        mean = {"average": "representation"}
        given = {"w": None if w is None else list(w), **mean}
        for metric, options, by_hand in measures(1 + seed % 3):
            if options.get("divisor") == "maximum":
                continue  # which is of whole numbers of members
            r = metric(None, s, **who, **mean, **options)
            expected = by_hand(list(s), list(q), member, **given)
            # The reference rounds the mean size to nine digits in the maximum.
            tolerance = 1e-8 if "step" in options else 1e-12
            assert_agrees(r, expected, (seed, metric, options), tolerance)
        r = ndkl(None, s, joint=True, **who, **mean)
        expected = naive.ndkl(list(s), list(q), list(g), **given)
        assert_close([r.estimate[0], r.support[0]], expected, 1e-12, seed)


@undefined_is_fine
@in_chunks
def test_variance_is_that_of_a_mean_over_clusters(seeds):
    for seed in seeds:
        p = make_problem(seed, (20, 60))
        seen = p.seen()
        lists = [
            [row for row, q in enumerate(seen.q) if q == label]
            for label in dict.fromkeys(seen.q)
        ]
        values = {
            group: [
                (rows[0], rows[0], abs(2 * share - 1))
                for rows in lists
                for share in [naive.pair_share(seen.s, rows, member)]
                if not math.isnan(share)
            ]
            for group, member in seen.member.items()
        }
        r = pairwise_parity(p.y, p.s, cluster=p.cluster, **p.who)
        assert_covariance(r.covariance, covariance_of(seen, values, "cluster"), seed)


def test_clusters_of_lists_say_how_far_signed_values_are_by_chance():
    score, query = np.random.default_rng(0).random(240), np.arange(240) // 6
    who = {"sensitive_features": np.arange(240) % 5 < 2, "qid": query, "signed": True}
    r = exposure_parity(None, score, cluster=query // 4, **who)
    test = r.test(random_state=0)
    t = (r.estimate - test.null_distribution.mean(0)) / r.standard_error
    np.testing.assert_allclose(test.statistic, t, rtol=1e-12)
    np.testing.assert_allclose(test.pvalue, 2 * stats.t.sf(abs(t), r.df), rtol=1e-9)
    assert np.isnan(exposure_parity(None, score, **who).test(random_state=0).df).all()
    # By chance a list may have nobody of the group in its first places.
    place, columns = np.tile(np.arange(6), 40), {"qid": query, "cluster": query // 4}
    member = (place == 0) | (place > 1) & (score < 0.2)
    skew = skew_at_k(None, -place, sensitive_features=member, k=2, **columns)
    assert np.isfinite(skew.estimate).all()
    with pytest.warns(UndefinedMetricWarning, match=r"no test over clusters .*True"):
        assert np.isnan(skew.test(random_state=0).pvalue[1])


def ranked(pattern, **options):
    """Columns of one list, read from the top."""
    return {
        "y_score": range(len(pattern), 0, -1),
        "sensitive_features": list(pattern),
        **options,
    }


class TestOutsideNumbers:
    def test_ndkl_of_seven_and_three(self):
        for joint, n_rows in ((False, 2), (True, 1)):
            r = ndkl(**ranked("AAAAAAABBB", joint=joint))
            np.testing.assert_allclose(r.estimate, [0.29255664] * n_rows, atol=5e-9)

    @pytest.mark.parametrize(
        ("n_protected", "difference", "bits"),
        [(500, 0.392139, 0.687510), (800, 0.369342, 0.807917)],
    )
    def test_largest_values_of_the_simulation(self, n_protected, difference, bits):
        # Kuhlman et al. §6: 1000 items, cuts every 100. The authors print 0.680329 and
        # 0.804151 bits, since they clip shares at .001 and .999.
        group = np.where(np.arange(1000) < n_protected, "protected", "other")
        found = []
        for sign in (1, -1):
            who = {"sensitive_features": group, "step": 100, "normalize": False}
            score = -sign * np.arange(1000)
            rnd = normalized_discounted_difference(None, score, **who).estimate[1]
            rkl = normalized_discounted_kl(None, score, **who).estimate[1]
            found.append((rnd, rkl / math.log(2)))
        np.testing.assert_allclose(
            np.max(found, axis=0), (difference, bits), rtol=0, atol=5e-7
        )


def rankings(n, size):
    """Every ranking of n items, `size` of them in the group: who is in it."""
    for places in itertools.combinations(range(n), size):
        member = np.zeros(n, dtype=bool)
        member[list(places)] = True
        yield member


class TestLargestValue:
    @pytest.mark.parametrize("n", range(2, 11))
    @pytest.mark.parametrize("kind", ["difference", "kl"])
    def test_is_that_of_all_rankings(self, n, kind):
        distance = Distance(kind)
        for size, step in itertools.product(range(1, n), range(1, n)):
            k = np.arange(step, n + 1, step)
            weights = 1 / np.log2(k + 1)
            above = np.array([np.cumsum(m)[k - 1] for m in rankings(n, size)])
            every = distance(above / k, np.array(size / n)) @ weights
            largest = distance.largest(
                np.array(size / n), np.array(n), k, lambda v, w=weights: (v * w).sum(-1)
            )
            assert largest == pytest.approx(every.max(), abs=1e-12), (size, step)

    @pytest.mark.parametrize(
        "sizes", [(1, 2), (3, 4), (1, 2, 3), (2, 2, 2), (1, 1, 2, 3), (1, 3, 3)]
    )
    def test_of_several_groups_is_that_of_all_rankings(self, sizes):
        n = sum(sizes)
        for step in range(1, n):
            k = np.arange(step, n + 1, step)
            weights = 1 / np.log2(k + 1)
            found = largest_joint(
                [np.full(k.shape, size) for size in sizes],
                np.full(k.shape, n),
                k,
                lambda v, w=weights: np.array((v * w).sum()),
            )
            expected = naive.brute_force_maximum_of_groups(sizes, step)
            assert found == pytest.approx(expected, abs=1e-12), step

    def test_of_more_groups_than_are_searched(self):
        group = np.repeat(np.arange(11), 2)
        who = {"sensitive_features": group, "step": 4, "joint": True}
        for average in ("queries", "representation"):
            with pytest.raises(ValueError, match="joint must be False, or normalize"):
                normalized_discounted_kl(None, group, **who, average=average)
        r = normalized_discounted_kl(None, group, **who, normalize=False)
        assert np.isfinite(r.estimate).all()


class TestOneLength:
    """The metric of the mean share."""

    def columns(self, n_lists=40, n=12, seed=0):
        rng = np.random.default_rng(seed)
        group = np.tile(np.repeat(["a", "b", "c"], [3, 4, 5]), n_lists)
        score = rng.normal(size=group.size) + 0.5 * (group == "a")
        return {
            "y_score": score,
            "sensitive_features": group,
            "qid": np.repeat(np.arange(n_lists), n),
        }

    @pytest.mark.parametrize(
        ("metric", "options"),
        [
            *OF_LISTS.items(),
            *((m, {"joint": True}) for m in (ndkl, normalized_discounted_kl)),
        ],
    )
    def test_error_is_that_of_the_bootstrap(self, metric, options):
        # 2000 resamples know a standard error to 1/sqrt(4000), 1.6%.
        r = metric(**self.columns(300), average="representation", **options)
        spread = r.resampled(2000, 0).std(axis=0)
        np.testing.assert_allclose(r.standard_error, spread, rtol=0.1)

    def test_parts_that_do_not_add_up(self):
        columns, options = self.columns(4), {"average": "representation"}
        label = columns["sensitive_features"]
        other = columns | {"sensitive_features": np.where(label == "c", "d", label)}
        with pytest.raises(ValueError, match="groups is"):
            ndkl(**columns, **options, joint=True) + ndkl(
                **other, **options, joint=True
            )
        longer = self.columns(3, n=16) | {"qid": np.repeat([0, 1], 18)}
        with pytest.raises(ValueError, match="n_items is"):
            pairwise_parity(**columns, **options) + pairwise_parity(**longer, **options)

    @pytest.mark.parametrize("metric", [m for m in OF_LISTS if m is not skew_at_k])
    def test_different_lengths(self, metric):
        columns = ranked("abababab", qid=[0] * 5 + [1] * 3, average="representation")
        with pytest.raises(ValueError, match="lists of 3 to 5 items"):
            metric(**columns, **OF_LISTS[metric])

    def test_skew_needs_no_equal_lengths(self):
        """The shares at the cut and of the lists are means over lists of any length."""
        columns = ranked("ababbabbabab", qid=[0] * 4 + [1] * 6 + [2] * 2, k=2)
        with pytest.warns(UndefinedMetricWarning, match="leaves out 1 of 3 queries"):
            r = skew_at_k(**columns, average="representation")
        # a: one of the first two in both long lists; half of four, a third of six.
        expected = np.log([0.5 / ((1 / 2 + 1 / 3) / 2), 0.5 / ((1 / 2 + 2 / 3) / 2)])
        np.testing.assert_allclose(r.estimate, expected)

    def test_too_many_columns(self):
        group = np.tile(["a", "b"], 3000)
        options = {"average": "representation", "step": 1}
        with pytest.raises(ValueError, match="Use a larger step"):
            normalized_discounted_kl(
                None, group == "a", sensitive_features=group, **options
            )


def test_exposures_as_the_authors_compare_them():
    # 200 of 1000 all last: the end of Figure 2, which the sum of both would make 0.78.
    columns = {"y_score": -np.arange(1000), "sensitive_features": np.arange(1000) > 799}
    values = {
        divisor: float(exposure_parity(**columns, divisor=divisor).estimate[1])
        for divisor in ("sum", "maximum")
    }
    assert values["maximum"] == pytest.approx(0.291, abs=5e-4)
    assert values["sum"] == pytest.approx(0.781, abs=5e-4)
    first = exposure_parity(**columns | {"y_score": np.arange(1000)}, divisor="maximum")
    np.testing.assert_allclose(first.estimate, 1)


class TestUndefined:
    @each_average
    @pytest.mark.parametrize(
        ("metric", "options"),
        [
            *OF_LISTS.items(),
            *((m, {"signed": True}) for m in (exposure_parity, pairwise_parity)),
            (skew_at_k, {"k": 6}),
            (ndkl, {"joint": True}),
            (normalized_discounted_kl, {"step": 2, "joint": True}),
        ],
    )
    def test_group_that_is_the_whole_list(self, metric, options, average):
        columns = ranked("aaaaaa", average=average)
        message = r"without queries.*: (a|all)\.$"
        with pytest.warns(UndefinedMetricWarning, match=message):
            r = metric(**columns, **options)
        assert r.support == 0
        assert np.isnan(r.estimate).all()
        assert np.isnan(r.test(method="permutation", random_state=0).pvalue).all()

    @pytest.mark.parametrize("metric", TERMS)
    @pytest.mark.parametrize("normalize", [False, True])
    @each_average
    def test_list_no_longer_than_the_step(self, metric, normalize, average):
        options = {"normalize": normalize, "average": average}
        for pattern in ("ab" * 5, "ab"):
            message = r"of more than 10 items \(step=10\): a, b\.$"
            with pytest.warns(UndefinedMetricWarning, match=message):
                r = metric(**ranked(pattern, **options))
            assert np.isnan(r.estimate).all()
            assert (r.support == 0).all()

    def test_some_lists_are_too_short(self):
        columns = ranked("ab" * 14, qid=[0] * 11 + [1] * 5 + [2] * 12)
        with pytest.warns(UndefinedMetricWarning, match="leaves out 1 of 3 queries"):
            r = normalized_discounted_difference(**columns)
        assert np.isfinite(r.estimate).all()
        assert r.support.tolist() == [2, 2]
        with pytest.warns(UndefinedMetricWarning, match=r"leaves out 1 of 3.*\(k=5\)"):
            skew_at_k(**columns, k=5)
        alone = ranked("abababa", qid=[0, 0, 0, 1, 2, 2, 2])
        with pytest.warns(UndefinedMetricWarning, match="leaves out 1 of 3 queries"):
            ndkl(**alone)

    @every_metric
    def test_one_list_has_no_error_and_no_warning(self, metric):
        r = metric(**ranked("ababbabab"), **OF_LISTS[metric])
        assert np.isnan(r.standard_error).all()
        assert np.isfinite(r.estimate).all()
        assert "\n1 cluster; test() shuffles the labels" in repr(r)

    def test_skew_of_nobody(self):
        columns = ranked("aabbabba", qid=[0] * 4 + [1] * 4)
        with pytest.warns(UndefinedMetricWarning, match="infinite, .* no error.*: b"):
            r = skew_at_k(**columns, k=2)
        assert r.estimate[1] == -np.inf
        assert np.isnan(r.standard_error[1])
        assert r.disparity() == np.inf
        np.testing.assert_array_equal(compare(r, r).estimate, [0, np.nan])
        # One list with somebody makes the mean share.
        with pytest.warns(UndefinedMetricWarning, match="no standard error.*: b"):
            # Without that list there is nobody: the error is not known.
            r = skew_at_k(**columns, k=2, average="representation")
        assert r.estimate[1] == pytest.approx(math.log(0.25 / 0.5))
        with pytest.warns(UndefinedMetricWarning, match="infinite"):
            r = skew_at_k(**columns, k=1, average="representation")
        assert r.estimate[1] == -np.inf


def test_function_is_asked_only_at_the_cuts():
    # As the paper prints it, 1 / log2 k, which has no value at 1.
    asked = []

    def printed(k):
        asked.append(k)
        return 1 / np.log2(k)

    r = normalized_discounted_difference(
        **ranked("ab" * 12), step=5, position_weight=printed
    )
    assert np.isfinite(r.estimate).all()
    assert all((k % 5 == 0).all() for k in asked)
