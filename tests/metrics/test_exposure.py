"""Exposure: naive loops, shuffled ties, other libraries' discounted sums."""

import itertools

import numpy as np
import pytest
from sklearn.metrics import dcg_score

from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.inference import compare_independent
from skrankfair.metrics import exposure, exposure_gap
from tests.calls import OF_ITEMS, call
from tests.metrics.naive_rules import assert_close, assert_covariance, matrix
from tests.metrics.problems import make_problem, undefined_is_fine
from tests.metrics.test_dips import each_weight, in_chunks
from tests.reference import dissatisfaction as naive
from tests.reference import variance

TARGETS = ("expected", "relevance", "population")
AVERAGES = ("queries", "amortized")


def positive(p):
    """Return the problem with outcomes that are not negative, many of them 0."""
    p.y[:] = [max(y, 0.0) for y in p.y]
    return p


@undefined_is_fine
@in_chunks
@each_weight
def test_estimate_and_covariance(seeds, position_weight):
    for seed, target, average in itertools.product(seeds, TARGETS, AVERAGES):
        p, hint = positive(make_problem(seed, (3, 18))), (seed, target, average)
        seen, coarse = p.seen(), bool((seed + (average == "queries")) % 2)
        units = (seen.cluster, None) if coarse else (seen.q, seen.query_weight)
        amounts = {
            "exposure": naive.exposures(seen.s, seen.q, position_weight),
            "target": naive.target_amounts(seen.y, seen.q, target, position_weight),
        }
        relevant = {q for q, y in zip(seen.q, seen.y, strict=True) if y > 0}
        use = relevant if target == "relevance" else set(seen.q)
        how = average, seen.w if coarse else None, use
        tables = {
            (g, name): naive.table_of_shares(values, seen.q, in_group, *how)
            for g, in_group in seen.member.items()
            for name, values in amounts.items()
        }
        items = {
            g: [
                (row, row, 0.0, 1.0, 1.0)
                for row, inside in enumerate(in_group)
                if inside and seen.q[row] in use
            ]
            for g, in_group in seen.member.items()
        }
        # A group without items in a query that counts has no share, rather than 0.
        support = np.array([len(rows) for rows in items.values()])
        shares = np.reshape(variance.estimates(tables, *units), (-1, 2))
        shares[support == 0] = np.nan
        options = {"cluster": p.cluster if coarse else None, **p.who}
        options |= {"average": average, "position_weight": position_weight}
        gap = exposure_gap(p.y, p.s, target=target, **options)
        checked = [(gap, shares[:, 0] - shares[:, 1], -1.0)]
        if len(gap.groups) == 1:
            assert np.isnan(gap.disparity())  # There is nothing to compare it with.
        elif support.all():
            assert gap.disparity() == pytest.approx(np.abs(checked[0][1]).sum())
        assert_close(gap.breakdown()[["exposure", "target"]], shares, 1e-10, hint)
        if target != "relevance":
            checked.append((exposure(None, p.s, **options), shares[:, 0], 0.0))
        for r, estimate, of_target in checked:
            sums = {
                g: lambda _, g=g, c=of_target: {(g, "exposure"): 1.0, (g, "target"): c}
                for g in items
            }
            covariance = variance.cluster_covariance(
                tables, *units, sums, {g: [rows] for g, rows in items.items()}
            )
            assert r.groups == seen.groups
            assert_close(r.estimate, estimate, 1e-10, hint)
            assert r.support.tolist() == support.tolist()
            assert_covariance(r.covariance, matrix(covariance, items), hint)


@pytest.mark.parametrize("ties", [False, True])
def test_exposure_of_relevant_items_is_their_dcg(ties):
    rng = np.random.default_rng(0)
    relevant = rng.random((30, 20)) < 0.4
    score = relevant + rng.normal(size=relevant.shape)
    score = score.round() if ties else score
    r = exposure(
        *(None, score.ravel()),
        sensitive_features=np.where(relevant, "yes", "no").ravel(),
        qid=np.repeat(np.arange(30), 20),
    )
    total = (1 / np.log2(np.arange(20) + 2)).sum()
    expected = dcg_score(relevant.astype(float), score) / total
    assert r.estimate[1] == pytest.approx(expected)


def test_group_without_items_in_a_query_that_counts():
    # "b" is only in the second query, where nothing is relevant.
    columns = {"sensitive_features": list("acabcca"), "qid": [0, 0, 1, 1, 1, 2, 2]}
    y, s = [1, 0, 0, 0, 0, 2, 1], [1, 2, 3, 2, 1, 2, 1]
    for average in AVERAGES:
        with pytest.warns(UndefinedMetricWarning, match="without items: b."):
            r = exposure_gap(y, s, target="relevance", average=average, **columns)
        assert np.isnan(r.estimate).tolist() == [False, True, False]
        assert r.support.tolist() == [2, 0, 2]
        assert np.isnan(r.disparity())


@pytest.mark.parametrize("average", [*AVERAGES, "clusters"])
def test_few_items_vary_as_much_as_groups_by_chance(average):
    lengths, weights = np.resize([16, 13], 8), np.resize([0.5, 1.0, 1.5], 8)
    # "a" has items in the middle alone, which would not be so by chance.
    place = np.concatenate([np.arange(n) for n in lengths])
    query = np.repeat(np.arange(8), lengths)
    label = (place == 6) | ((place == 7) & (query < 2))
    rows = {"sensitive_features": label, "qid": query, "cluster": query // 2}
    rows |= {"sample_weight": weights[query], "position_weight": "reciprocal"}
    r = exposure_gap(None, -place, target="population", average=average, **rows)
    variance, total = np.zeros(4), np.zeros(4)
    for q, (n, w) in enumerate(zip(lengths, weights, strict=True)):
        visits = 1 / (np.arange(n) + 1)
        scale = visits.sum() if average == "queries" else 1.0
        surplus = (visits - visits.mean()) / scale
        m = label[query == q].sum()
        gaps = [surplus[[*some]].sum() for some in itertools.combinations(range(n), m)]
        variance[q // 2] += w**2 * np.var(gaps)
        total[q // 2] += w * visits.sum() / scale
    if average == "clusters":
        variance, total = variance / total**2, np.ones(4)
    variance, total = variance.sum(), total.sum()
    assert r.standard_error == pytest.approx(np.sqrt(variance) / total)
    assert (r.sums.variance(r.metric.finalize) < variance / total**2).all()
    gap = compare_independent(r, r)
    assert gap.standard_error == pytest.approx(np.sqrt(2 * variance) / total)


def test_few_items_that_recur_have_their_group_by_chance():
    # "True" has items in the middle alone, which would not be so by chance.
    shown = [np.roll(np.arange(14), shift)[:12] for shift in (0, 1, -1, 2)]
    item, query = np.concatenate(shown), np.repeat(np.arange(4), 12)
    place = np.argsort(np.argsort(item + 14 * query)) % 12
    label, visits = np.isin(item, [5, 6]), 1 / (place + 1)
    surplus = np.bincount(item, visits / visits[:12].sum() - 1 / 12, 14) / 4
    pairs = [surplus[[*some]].sum() for some in itertools.combinations(range(14), 2)]
    rows = {"sensitive_features": label, "qid": query, "position_weight": "reciprocal"}
    users = np.stack([query, item], axis=1)
    r = exposure_gap(None, -place, target="population", cluster=users, **rows)
    assert r.estimate[1] == pytest.approx(surplus[5:7].sum())
    assert r.standard_error == pytest.approx(np.std(pairs))
    assert (r.sums.variance(r.metric.finalize) < np.var(pairs)).all()


@pytest.mark.parametrize("metric", OF_ITEMS)
def test_visits_may_increase(metric):
    # Measured visits need not fall from place to place.
    assert np.isfinite(call(metric, position_weight=[1, 0.2, 0.5]).estimate).all()
