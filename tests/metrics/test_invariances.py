"""What must not change a metric does not: one table of metrics, one test a change."""

import inspect
from dataclasses import replace

import numpy as np
import pytest

from skrankfair import metrics
from skrankfair._estimates import sums as _sums
from tests.calls import OF_LISTS
from tests.metrics.common import (
    DATA,
    EVERY_CASE,
    RARE,
    TARGET,
    Case,
    assert_identical,
    assert_same,
    labelled,
    with_clusters,
    with_weights,
)
from tests.seeds import one_in, together

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.UndefinedMetricWarning"
)

on_both = together("make", [pytest.param(m, id=name) for name, m in DATA.items()])


def half():
    """Half of the cases of metrics with more than four, with a mix of all options."""
    by_metric = {}
    for case in EVERY_CASE.values():
        by_metric.setdefault(case.metric, []).append(case)
    return [
        case
        for cases in by_metric.values()
        for place, case in enumerate(cases)
        if len(cases) > 4 and place % 4 in (1, 2)
    ]


HALF = half()


def is_rare(value):
    return isinstance(value, Case) and (
        value.metric in RARE or any(value is case for case in HALF)
    )


def chosen(condition):
    return {name: case for name, case in EVERY_CASE.items() if condition(case)}


def cases_where(condition, half=None):
    """Parametrize by cases, of which one `half`, 0 or 1, or both run by default."""
    cases = chosen(condition)
    params = [
        pytest.param(
            case,
            marks=pytest.mark.simulation if is_rare(case) or half == place % 2 else (),
            id=name,
        )
        for place, (name, case) in enumerate(cases.items())
    ]
    return together("case", params)


def cases_of(*some):
    return cases_where(lambda case: case.metric in some)


def one_of(n, cases=EVERY_CASE, **factors):
    """Parametrize by cases and data, of which one in `n` runs by default."""
    return one_in(n, rare=is_rare, at_once=10, case=cases, make=DATA, **factors)


by_case_and_data = one_of(2)
# What each leaves out the others have; all of it runs with the simulations.
# A target names the groups, which therefore keep their labels.
by_group, by_other_group = (
    cases_where(
        lambda case: (
            case.metric is not metrics.ndcg and case.options.get("target") is not TARGET
        ),
        half,
    )
    for half in (0, 1)
)
by_cluster = one_of(2, chosen(lambda case: not case.by_item))


@by_case_and_data
def test_order_of_rows(case, make):
    c = with_weights(make())
    for columns in (c,) if case.by_item else (c, with_clusters(c)):
        rows = np.random.default_rng(1).permutation(c.y.size)
        assert_same(case(columns.take(rows)), case(columns))


@by_case_and_data
def test_relabelled_queries(case, make):
    c = with_weights(make())
    expected = case(c)
    shuffled = np.random.default_rng(1).permutation(21)
    assert_same(case(c.but(q=-1_000_000_007 * shuffled[c.q])), expected)
    assert_same(case(c.but(q=np.array([f"q{i}" for i in shuffled])[c.q])), expected)
    # None: one list.
    one = c.but(w=None)
    assert_same(case(one.but(q=None)), case(one.but(q=np.full(c.y.size, 7))))


@by_group
def test_relabelled_groups(case):
    c = with_weights(labelled())
    expected = case(c)
    names = {"a": "zz", "b": "ä", "c": "<script>"}
    r = case(c.but(group=np.array([names[label] for label in c.group])))
    assert r.groups == ("<script>", "zz", "ä")
    assert_same(r, expected, order=[1, 2, 0])
    for label, epsilon in expected.first_pass.get("epsilon", {}).items():
        assert r.first_pass["epsilon"][names[label]] == epsilon


@by_other_group
def test_order_of_overlapping_groups(case):
    c = DATA["overlapping"]()
    assert_same(case(c.but(group=c.group[:, [2, 0, 1]])), case(c), order=[1, 2, 0])


@by_group
def test_disjoint_groups_as_a_membership_matrix(case):
    c = labelled()
    expected = case(c)
    member = np.column_stack([c.group == label for label in expected.groups])
    assert_same(case(c.but(group=member)), expected, order=[0, 1, 2])


def repeated(c):
    """Return every query as often as its weight says."""
    rows, copies = [], []
    for row, times in enumerate(c.w.astype(int)):
        rows += [row] * times
        copies += range(times)
    c = c.take(rows)
    return c.but(q=c.q * 10 + copies, w=None)


@one_of(2, chosen(lambda c: not c.by_item and "n_pairs" not in c.first_pass))
def test_query_weight_is_repetition_within_a_cluster(case, make):
    # Inside a cluster the copies are not independent: it stays one.
    c = with_clusters(with_weights(make()))
    r = case(c)
    assert r.n_clusters == len(set(c.cluster[c.w > 0]))
    again = case(repeated(c))
    assert (r.support <= again.support).all()
    counted = replace(again.sums, unweighted=r.sums.unweighted)
    assert_same(r, replace(again, sums=counted))


@by_cluster
def test_unequal_weights_lower_the_effective_number(case, make):
    c = make()
    r = case(c.but(w=np.where(c.q == 4, 1e6, 1.0)))
    there = ~np.isnan(r.standard_error) & (case(c).support > r.support.min())
    assert (r.n_effective[there] <= case(c).n_effective[there] + 1e-9).all()


@by_case_and_data
def test_weight_zero_is_removal(case, make):
    c = with_weights(make())
    c = c.but(w=np.where(np.isin(c.q, [4, 20]), 0.0, c.w))
    assert not c.w.all()
    assert_identical(case(c), case(c.take(np.flatnonzero(c.w))))


def parts_of(c, n_parts=3):
    """Return parts of whole queries; the first lacks group "c"."""
    part = np.where(c.q < 3, 0, 1 + c.q % (n_parts - 1))
    return [c.take(np.flatnonzero(part == i)) for i in range(n_parts)]


@pytest.mark.parametrize("name", ["pairwise_accuracy-all-pairs-item-edges", "f1-0.375"])
def test_a_common_factor_of_weights_leaves_no_rounding(name):
    case = EVERY_CASE[name]
    weight = 1 + np.arange(24) % 3 if case.by_row else np.ones(24)
    for seed in range(20):
        c = labelled(seed, 24).but(q=None)
        best = c.group != "c"
        c = c.but(y=np.where(best, 4.0, c.y), s=np.where(best, 1.5, c.s))
        r, expected = (case(c.but(w=factor * weight)) for factor in (0.37, 1.0))
        assert_same(r, expected)
        np.testing.assert_allclose(r.pvalue, expected.pvalue, 1e-6)


@one_of(3, weights={"equal": False, "weighted": True})
def test_split_and_merged_is_the_whole(case, make, weights, monkeypatch):
    monkeypatch.setattr(_sums, "LARGE_SHARE", -1.0)  # compact() folds no row
    c = with_weights(make(), low=1) if weights else make()
    whole = case(c)
    held = case.hold(whole)
    parts = [held(part) for part in parts_of(c)]
    named = case.metric is metrics.ndcg or case.options.get("target") is TARGET
    if make is labelled and not named:
        assert [part.groups for part in parts[:2]] == [("a", "b"), ("a", "b", "c")]
    first, second, third = parts
    merged = [
        sum(parts),
        first + (second + third),
        third + second + first,
        sum(part.compact() for part in parts),
        first.compact() + second + third.compact(),
    ]
    for result in merged:
        assert_same(result, whole)
    if whole.metric.against_rest is not None:
        for result in merged[1], merged[-1]:
            assert_same(result.against_rest(), whole.against_rest())
    monkeypatch.setattr(_sums, "LARGE_SHARE", 1.0)  # compact() folds all rows
    folded = sum(part.compact() for part in parts)
    np.testing.assert_allclose(folded.estimate, whole.estimate, rtol=1e-9)
    if not (case.by_item or case.by_row):  # whose rows are numbered in each part
        labels = [set(r.sums.rows.labels.tolist()) for r in (sum(parts), whole)]
        assert labels[0] == labels[1]


@by_cluster
def test_split_by_clusters_and_merged(case, make):
    c = with_clusters(with_weights(make(), low=1))
    whole = case(c)
    held = case.hold(whole)
    labels = ["u"], ["v", "w"], ["x"]
    parts = [held(c.take(np.isin(c.cluster, some))) for some in labels]
    assert_same(sum(parts), whole)


# Scores and outcomes


OF_ORDER = (
    metrics.pairwise_accuracy,
    metrics.pairwise_exposure,
    metrics.pairwise_preference,
)
OF_RANKS = (*OF_ORDER, *OF_LISTS, metrics.exposure, metrics.exposure_gap)
OF_RANKS += (metrics.dips, metrics.ndcg, metrics.mean_position)


CALIBRATION = chosen(lambda case: case.metric is metrics.matched_pair_calibration)
TRANSFORMS = {
    "exp": np.exp,
    "arctan": np.arctan,
    "cube": lambda s: s**3 - 10,
    "rank": lambda s: np.unique(s, return_inverse=True)[1],
}


@one_of(4, chosen(lambda case: case.metric in OF_RANKS), transform=TRANSFORMS)
def test_monotone_transformation_of_scores(case, make, transform):
    c = make()
    assert_identical(case(c.but(s=transform(c.s))), case(c))


@cases_of(metrics.pairwise_accuracy, metrics.pairwise_preference, metrics.dips)
@on_both
def test_monotone_transformation_of_outcomes(case, make):
    c = make()
    assert_identical(case(c.but(y=np.exp(c.y) - 100)), case(c))


@one_of(2, {n: c for n, c in CALIBRATION.items() if "covariates" not in c.options})
def test_calibration_has_the_scale_of_the_scores(case, make):
    c = make()
    expected = case(c)
    for factor in (4.0, 2.0**-30):
        epsilon = {k: factor * e for k, e in case.first_pass.items() if k == "epsilon"}
        r = case(c.but(s=factor * c.s), **epsilon)
        np.testing.assert_array_equal(r.estimate, expected.estimate)
        np.testing.assert_array_equal(r.covariance, expected.covariance)
        chosen = {g: factor * e for g, e in expected.first_pass["epsilon"].items()}
        assert r.first_pass["epsilon"] == chosen
    assert_identical(case(c.but(s=c.s + 1024)), expected)


@one_of(2, CALIBRATION)
def test_calibration_is_of_differences_of_outcomes(case, make):
    c = make()
    expected = case(c)
    assert_same(case(c.but(y=c.y + 1024)), expected)
    shift = np.random.default_rng(0).normal(size=21)
    assert_same(case(c.but(y=c.y + shift[c.q])), expected)  # by query
    r = case(c.but(y=-2 * c.y))
    np.testing.assert_allclose(r.estimate, -2 * expected.estimate, rtol=1e-12)
    np.testing.assert_allclose(r.covariance, 4 * expected.covariance, rtol=1e-12)


def may_average_clusters(case):
    averages = "average" in inspect.signature(case.metric).parameters
    pooled = case.options.get("average") != "queries" and not case.by_item
    return averages and pooled and "bins" not in case.first_pass


@cases_where(may_average_clusters)
def test_clusters_count_alike(case):
    c = with_weights(with_clusters(labelled()), low=1)
    case = case.hold(case(c))
    r = case(c, average="clusters")
    alone = [case(c.take(c.cluster == label)) for label in np.unique(c.cluster)]
    values = [dict(zip(one.groups, one.estimate, strict=True)) for one in alone]
    table = np.array([[by.get(g, np.nan) for g in r.groups] for by in values])
    np.testing.assert_allclose(r.estimate, np.nanmean(table, axis=0), rtol=1e-12)
    if np.isfinite(table).all():
        error = table.std(axis=0, ddof=1) / np.sqrt(len(table))
        jackknife = np.sqrt(np.diag(r.covariance))  # without what items lack by chance
        np.testing.assert_allclose(jackknife, error, rtol=1e-9, atol=1e-15)
        np.testing.assert_allclose(r.df, len(table) - 1)
    assert np.array_equal(r.support, case(c.but(w=None), average="clusters").support)
    averages, c = ("queries", "clusters"), c.but(w=None, cluster=c.q)
    alike = [case(c, average=average) for average in averages]
    if r.permutation is None:
        np.testing.assert_allclose(*[each.df for each in alike])
    else:
        options = {"n_resamples": 9, "random_state": 0}
        drawn = [each.test("permutation", **options) for each in alike]
        values = [test.null_distribution for test in drawn]
        np.testing.assert_allclose(*values, rtol=1e-12, atol=1e-14)
