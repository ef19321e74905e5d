"""Every measure over pairs, of every design, against naive sums over its pairs."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import special, stats

from skrankfair.metrics import (
    matched_pair_calibration,
    pairwise_accuracy,
    pairwise_exposure,
    pairwise_preference,
)
from tests import seeds
from tests.metrics.naive_rules import (
    ACCURACY,
    BY_ENGAGEMENT,
    COMPARISONS,
    RULES,
    assert_close,
    assert_covariance,
    by_stratum,
    covariance_of,
    difference,
    estimates_of,
    matrix,
    own_and_rest,
    tables_of,
    with_item_weights,
)
from tests.metrics.problems import make_problem, undefined_is_fine
from tests.reference import pairwise as naive
from tests.reference.variance import jackknife_covariance

pytestmark = undefined_is_fine
AVERAGES = ("pairs", "queries")
in_chunks = seeds.in_chunks(24, always=3)

#: Units of the variance: what a measure is given for them.
UNITS = {
    "query": lambda p: {"variance": "cluster"},
    "cluster": lambda p: {"variance": "cluster", "cluster": p.cluster},
    "item": lambda p: {"variance": "item"},
}


def designs(seed, unit, n_rows=(3, 14)):
    """Yield problems: as given, without rows of weight 0, and how pairs count.

    Plain, with weights of items, with a cut after the first k, with both.
    """
    p = make_problem(seed, n_rows)
    v, weighted, kept = with_item_weights(p, seed)
    yield p, p.seen(), {}, {}
    yield p, weighted, {"item_weight": v}, {"v": kept}
    if unit != "item":
        k = 1 + seed % 5
        yield p, p.seen(), {"k": k}, {"k": k}
        yield p, weighted, {"item_weight": v, "k": k}, {"v": kept, "k": k}


@in_chunks
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", RULES)
def test_estimate_and_covariance(name, unit, seeds):
    rule = RULES[name]
    for seed in seeds:
        average = "pairs" if unit == "item" else AVERAGES[seed // 2 % 2]
        for p, seen, given, how in designs(seed, unit):
            if "k" in given and not name.startswith(("accuracy", "exposure")):
                continue
            r = rule.measure(p, average=average, **UNITS[unit](p), **given)
            pairs, hint = rule.all_pairs(seen), (seed, given)
            assert r.groups == seen.groups
            assert_close(
                r.estimate, estimates_of(seen, pairs, average, **how), 1e-11, hint
            )
            expected = covariance_of(seen, pairs, unit, average, **how)
            assert_covariance(r.covariance, expected, hint)
            units = {"query": seen.q, "cluster": seen.cluster, "item": seen.q}[unit]
            assert r.n_clusters == len(units if unit == "item" else set(units))
            if not given:
                assert r.support.tolist() == [len(some) for some in pairs.values()]


@in_chunks
@pytest.mark.parametrize("unit", UNITS)
def test_estimate_and_covariance_against_the_rest(unit, seeds):
    for seed, comparison in itertools.product(seeds, COMPARISONS):
        average = "pairs" if unit == "item" else AVERAGES[seed // 2 % 2]
        for p, seen, given, how in designs(seed, unit):
            pairs = own_and_rest(seen, comparison)
            gaps, sides = difference(pairs)
            options = {"average": average, **UNITS[unit](p), **given}
            r = ACCURACY[comparison].measure(p, **options).against_rest()
            hint = (seed, comparison, given)
            expected = estimates_of(seen, pairs, average, gaps, **how)
            assert_close(r.estimate, expected, 1e-11, hint)
            expected = covariance_of(seen, pairs, unit, average, gaps, sides, **how)
            assert_covariance(r.covariance, expected, hint)


def test_few_items_of_a_list_vary_as_much_as_as_few_of_the_others():
    rng = np.random.default_rng(0)
    y, group = np.arange(300) % 3 == 0, np.arange(300) < 30
    s = rng.normal(size=300) + 2 * y
    s[group & y] = np.where(np.arange(10) < 9, 9, 2)  # one of ten is not at the top
    r = pairwise_accuracy(y, s, sensitive_features=group)
    low, _ = special.logit(r.confidence_interval())[:, 1]
    # DeLong's errors, of the pairs of the members, and of the others in their own.
    above = 0.5 * (s[:, None] > s) + 0.5 * (s[:, None] >= s)
    variance = []
    for better in (y & group, y & ~group):
        value = above[np.ix_(better, ~y)] - above[np.ix_(better, ~y)].mean()
        u = np.zeros(300)
        u[better], u[~y] = value.mean(1) / better.sum(), value.mean(0) / (~y).sum()
        of_samples = ((group, 30), (~group, 270))
        variance.append([n / (n - 1) * (u[who] ** 2).sum() for who, n in of_samples])
    (own, partners), (_, others) = variance
    assert own < others * 270 / 30
    error = np.sqrt(others * 270 / 30 + partners)
    p, reach = r.estimate[1], stats.t.ppf(0.975, r.df[1])
    assert special.logit(p) - low == pytest.approx(
        reach * error / p / (1 - p), rel=0.03
    )


@pytest.mark.parametrize("comparison", [None, "all", "inter"])
def test_no_item_in_the_first_places(comparison):
    lengths, weights = np.resize([11, 14, 12, 9], 16), np.resize([1.0, 1.5, 1.2], 16)
    place = np.concatenate([np.arange(n) for n in lengths])
    query, y = np.repeat(np.arange(16), lengths), (place % 4 < 2).astype(int)
    label = np.where(place == 5, "a", "b")
    item = np.resize([1.0, 2.0, 1.5], place.size)
    given = {"sensitive_features": label, "qid": query, "k": 3, "item_weight": item}
    given |= {"sample_weight": weights[query], "cluster": query // 2}
    if comparison is None:
        r = pairwise_exposure(None, -place, **given)
    else:
        r = pairwise_accuracy(y, -place, comparison=comparison, **given)
    due, products, by_partners = 0.0, 0.0, 0.0
    for user in range(8):
        of_user = brought = 0.0
        for q in (2 * user, 2 * user + 1):
            rows, w = np.flatnonzero(query == q), weights[q]
            pairs = {
                (i, j): item[i] * item[j]
                for i, j in itertools.permutations(rows, 2)
                if comparison is None or y[i] > y[j]
            }
            number = sum(
                value
                for (i, j), value in pairs.items()
                if label[i] == "a" and (label[j] == "b" or comparison == "all")
            )
            in_top = [
                sum(v for pair, v in pairs.items() if place[pair[side]] < 3)
                for side in (0, 1)
            ]
            number *= w / sum(pairs.values())
            focal = {i for i, _ in pairs if label[i] == "a"}
            of_user += number * in_top[0]
            by_partners += number * in_top[1]
            brought += number * sum(pairs.values()) / max(1, len(focal))
        due += of_user
        products += of_user * brought
    trials = due**2 / products / np.log(1 + due / by_partners)
    assert r.confidence_interval().high[0] == pytest.approx(1 - 0.025 ** (1 / trials))


@in_chunks
@pytest.mark.parametrize("name", RULES)
def test_clusters_of_items_of_one_list(name, seeds):
    rule = RULES[name]
    for seed, weighted in itertools.product(seeds[::2], (False, True)):
        p = make_problem(seed, (6, 24))
        n, rng = len(p.y), np.random.default_rng(seed)
        cluster = [0, 1, *rng.integers(0, 6, n - 2).tolist()]
        v = rng.random(n).tolist() if weighted else None
        one_list = SimpleNamespace(
            y=p.y,
            s=p.s,
            q=[0] * n,
            w=None,
            member=p.member,
            who={"sensitive_features": p.sensitive_features, "cluster": cluster},
        )
        r = rule.measure(one_list, item_weight=v)
        assert (r.variance, r.n_clusters) == ("item", len(set(cluster)))
        pairs = rule.all_pairs(one_list)
        assert_close(r.estimate, estimates_of(one_list, pairs, v=v), 1e-11, seed)
        expected = jackknife_covariance(
            tables_of(one_list, pairs, v=v),
            lambda p, unit=cluster: {unit[p[0]], unit[p[1]]},
            dict.fromkeys(cluster, 1),
        )
        assert_covariance(r.covariance, matrix(expected, pairs), (seed, weighted))


# Strata of engagement

EDGES = (-np.inf, 0.25, 0.5, 0.75, np.inf)


@in_chunks
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", BY_ENGAGEMENT)
def test_means_of_strata(name, unit, seeds):
    rule = BY_ENGAGEMENT[name]
    for seed in seeds[::2]:
        p = make_problem(seed, (3, 14))
        v, weighted, kept = with_item_weights(p, seed)
        average = "pairs" if unit == "item" else AVERAGES[seed // 2 % 2]
        given = {"engagement": p.z, "bins": EDGES, "average": average}
        for seen, items in ((p.seen(), {}), (weighted, {"item_weight": v})):
            how = {"v": kept} if items else {}
            r = rule.measure(p, **given, **UNITS[unit](p), **items)
            strata, means, supports = by_stratum(seen, rule.all_pairs(seen), EDGES)
            expected = estimates_of(seen, strata, average, means, **how)
            assert_close(r.estimate, expected, 1e-11, seed)
            of_strata = strata, unit, average
            expected = covariance_of(seen, *of_strata, means, supports, **how)
            assert_covariance(r.covariance, expected, seed)
            table = r.breakdown().set_index(["group", "bucket"]).loc[list(strata)]
            expected = estimates_of(seen, strata, average, **how)
            assert_close(table["estimate"], expected, 1e-11, seed)
            assert table["support"].tolist() == [len(some) for some in strata.values()]
            edges = [EDGES[b : b + 2] for _, b in strata]
            assert list(zip(table["low"], table["high"], strict=True)) == edges
            if unit != "item":
                errors = np.diag(covariance_of(seen, *of_strata, **how))
                assert_close(table["standard_error"] ** 2, errors, 1e-10, seed)
            if name in ACCURACY:
                rest = {
                    g: pairs
                    for (g, side), pairs in own_and_rest(seen, name).items()
                    if side == "rest"
                }
                strata, means, _ = by_stratum(seen, rest, EDGES)
                expected = estimates_of(seen, strata, average, means, **how)
                gap = r.estimate - r.against_rest().estimate
                assert_close(gap, expected + 0 * gap, 1e-11, seed)


class TestGapsByEngagement:
    """Definition 1 holds at every level of engagement."""

    @staticmethod
    def data(low, high, n_queries=600):
        rng = np.random.default_rng(0)
        shape = n_queries, 6
        group, utility = rng.random(shape) < 0.4, rng.normal(size=shape)
        z, y = rng.random(shape), utility + rng.normal(size=shape) > 0.5
        score = utility + group * np.where(z < 0.5, low, high)
        query = np.repeat(np.arange(n_queries), 6)
        columns = {
            "sensitive_features": np.where(group, "f", "m").ravel(),
            "qid": query,
            "engagement": z.ravel(),
            "bins": [0, 0.5, 1],
        }
        return (y.ravel().astype(float), score.ravel()), columns

    @pytest.mark.filterwarnings("ignore:.* rows are left out")
    def test_each_is_that_of_the_pairs_of_one_stratum(self):
        (y, score), columns = self.data(-0.6, 0.4)
        table = pairwise_accuracy(y, score, **columns).breakdown()
        in_low = columns.pop("engagement") < columns.pop("bins")[1]
        # A stratum is what is left where the better items of others are level.
        for bucket, chosen in enumerate((in_low, ~in_low)):
            known = np.where((y == 1) & ~chosen, np.nan, y)
            one = pairwise_accuracy(known, score, **columns, missing="drop")
            gap, rows = one.against_rest(), table[table["bucket"] == bucket]
            # Better items of the other stratum are in no pair of this one.
            assert_close(rows["estimate"], one.estimate, 1e-12)
            assert_close(rows["gap"], gap.estimate, 1e-12)
            assert_close(rows["gap_standard_error"], gap.standard_error, 1e-10)
            assert_close(rows["pvalue"], one.pvalue, 1e-8)
        smallest = table.set_index(["group", "bucket"])["pvalue"].unstack().min(axis=1)
        corrected = table.groupby("group")["pvalue_corrected"].min()
        assert_close(corrected, np.minimum(2 * smallest, 1), 1e-12)

    @pytest.mark.parametrize("measure", [pairwise_accuracy, pairwise_exposure])
    def test_the_plain_test_says_what_the_mean_hides(self, measure):
        columns, options = self.data(-0.6, 0.6)
        r = measure(*columns, **options)
        assert (r.pvalue > 0.05).all()
        gaps = r.breakdown()["gap"].to_numpy().reshape(2, 2)
        assert (gaps[0] * gaps[1] < 0).all()
        hides = r"hides gaps .*: f -0\.\d+ in \[0, 0\.5\], m \+0.*; see breakdown"
        with pytest.warns(UserWarning, match=hides):
            r.test()
        assert "hides gaps" in repr(r)
        assert "hides gaps" in r._repr_html_()
        assert r.compact().hidden_gaps == r.hidden_gaps

    def test_means_over_queries_of_pairs_by_who_wins_have_no_pvalue(self):
        columns, options = self.data(0.0, 0.0)
        for average, k in itertools.product(("pairs", "queries"), (None, 3)):
            options |= {"k": k, "average": average}
            for measure in (pairwise_accuracy, pairwise_exposure):
                r = measure(*columns, **options)
                known = np.isfinite(r.contrast("f", "m").pvalue)
                assert r.has_pvalue == known == (average == "pairs")

    @pytest.mark.parametrize("low", [0.0, -0.6])
    def test_it_says_nothing_where_the_mean_hides_nothing(self, low):
        columns, options = self.data(low, low)
        r = pairwise_accuracy(*columns, **options)
        r.test()
        assert "hides" not in repr(r)
        r.against_rest().test()  # which has no strata
        preference = pairwise_preference(*columns, **options, average="queries")
        assert np.isnan(preference.contrast("f", "m").pvalue)
        assert "gap" not in preference.breakdown()
        assert not preference.hidden_gaps


@in_chunks
def test_edges_are_quantiles_of_the_preferred(seeds):
    compared = 0
    for seed in range(4 * seeds[0], 4 * seeds[-1] + 4):
        p = replace(make_problem(seed), w=None)
        preferred = {i for i, *_ in naive.pairs_accuracy(p.y, p.s, p.q, [True] * 99)}
        of_preferred = [p.z[i] for i in sorted(preferred)]
        if len(set(of_preferred)) < 2:
            continue
        compared += 1
        # Engagement is not needed where an item is better than no other.
        z = [p.z[i] if i in preferred else np.nan for i in range(len(p.z))]
        edges = np.unique(np.quantile(of_preferred, [0, 0.5, 1], method="inverted_cdf"))
        r = ACCURACY["all"].measure(p, engagement=z, bins=2, variance="cluster")
        np.testing.assert_array_equal(r.first_pass["engagement_edges"], edges)
        strata, means, _ = by_stratum(p, ACCURACY["all"].all_pairs(p), edges)
        assert_close(r.estimate, estimates_of(p, strata, estimates=means), 1e-12, seed)
    assert compared > 5


# Weights of items, and the first k


@in_chunks
def test_whole_weights_are_repeated_items(seeds):
    for seed in seeds[::2]:
        p = replace(make_problem(seed), w=None)
        times = np.random.default_rng(seed).integers(0, 4, len(p.q))
        times[0] = 1
        options = {"quantile": 0.3, "variance": "cluster"}
        weighed = matched_pair_calibration(
            p.y, p.s, item_weight=times, **p.who, **options
        )
        rows = np.repeat(np.arange(len(p.q)), times).tolist()
        y, s, q = ([column[row] for row in rows] for column in (p.y, p.s, p.q))
        features = np.array(p.sensitive_features)[rows]
        expected = matched_pair_calibration(
            y, s, sensitive_features=features, qid=q, **options
        )
        assert_close(weighed.estimate, expected.estimate, 1e-12, seed)
        assert_close(weighed.standard_error, expected.standard_error, 1e-10, seed)
        options = {"epsilon": weighed.first_pass["epsilon"], "variance": "cluster"}
        once = {**p.who, "item_weight": times > 0}
        equal = matched_pair_calibration(p.y, p.s, **once, **options)
        np.testing.assert_array_equal(weighed.support, equal.support)


def test_items_are_summed_block_by_block(monkeypatch):
    rng = np.random.default_rng(1)
    y, score = rng.normal(size=(2, 240))
    who = {"sensitive_features": rng.integers(0, 5, 240), "variance": "item"}
    who["qid"] = rng.integers(0, 14, 240)
    results = []
    for rows in (1 << 17, 50):
        monkeypatch.setattr("skrankfair._inputs.ranking._BLOCK", rows)
        results.append(pairwise_exposure(y, score, **who))
        results.append(matched_pair_calibration(y, score, epsilon=0.4, **who))
    for one, other in zip(results[:2], results[2:], strict=True):
        assert_close(one.estimate, other.estimate, 1e-10)
        assert_close(one.covariance, other.covariance, 1e-9)
