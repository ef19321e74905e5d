"""What calibration error and the two impacts of calibration have in common."""

import copy
import pickle
from functools import partial

import numpy as np
import pytest

from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.inference import compare
from skrankfair.metrics import calibration_error, positive_rate_shift, rank_shift

EDGES = [0, 0.2, 0.35, 0.8, 1]
METHODS = (
    {"method": "smooth", "bandwidth": 0.1},
    {"method": "binned", "bins": 4},
    {"method": "binned", "bins": EDGES},
    {"method": "sweep"},
)
H = 0.15


def rows(seed=0, n_users=30, *, ties=False, labels="ab", n_items=4):
    """Return columns; a user has several queries of a few items."""
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(n_users), 1 + rng.poisson(1, n_users))
    query = np.repeat(np.arange(user.size), n_items)
    s = rng.random(query.size)
    s = np.round(s, 1) if ties else s
    group = rng.choice(list(labels), size=query.size)
    y = (rng.random(s.size) < s ** (1 + (group == "a"))).astype(float)
    return y, s, group, user[query], query


def errors(y, s, group, cluster, query=None, **options):
    return calibration_error(y, s, sensitive_features=group, cluster=cluster, **options)


def decisions(y, s, group, cluster, query=None, **options):
    options = {"threshold": 0.5, "bandwidth": H, **options}
    return positive_rate_shift(
        y, s, sensitive_features=group, cluster=cluster, **options
    )


def ranks(y, s, group, cluster, query, **options):
    options = {"bandwidth": H, **options}
    return rank_shift(
        y, s, sensitive_features=group, cluster=cluster, qid=query, **options
    )


SHIFTS = {"positive_rate_shift": decisions, "rank_shift": ranks}
ERRORS = {str(options): partial(errors, **options) for options in METHODS}
each_shift = pytest.mark.parametrize("metric", SHIFTS.values(), ids=SHIFTS)
each_metric = pytest.mark.parametrize(
    "metric", [*SHIFTS.values(), *ERRORS.values()], ids=[*SHIFTS, *ERRORS]
)
each_by_row = pytest.mark.parametrize(
    "metric", [decisions, *ERRORS.values()], ids=["positive_rate_shift", *ERRORS]
)


def take(columns, part):
    """Return a part of the columns."""
    return [None if column is None else column[part] for column in columns]


@each_metric
def test_order_of_rows_and_labels(metric):
    y, s, group, cluster, query = columns = rows(ties=True)
    order = np.random.default_rng(0).permutation(y.size)
    renamed = np.where(group == "a", "z", "y")
    queries = np.array([f"q{q:03d}" for q in query])
    r = metric(*take((y, s, renamed, 1000 + cluster, queries), order))
    expected = metric(*columns)
    assert (r.groups, r.n_clusters) == (("y", "z"), expected.n_clusters)
    np.testing.assert_allclose(r.estimate[::-1], expected.estimate, atol=1e-9)
    covariance = r.covariance[::-1, ::-1]
    np.testing.assert_allclose(covariance, expected.covariance, rtol=1e-6, atol=1e-12)
    np.testing.assert_array_equal(r.support[::-1], expected.support)


@each_shift
def test_weight_is_repetition_in_a_cluster(metric):
    *columns, query = rows(ties=True)
    weight = np.random.default_rng(1).integers(0, 4, query.max() + 1)[query]
    place = np.repeat(np.arange(query.size), weight)
    copies = np.concatenate([np.arange(w) for w in weight])
    who = take(columns, place)
    again = metric(*who, 10 * query[place] + copies, cluster_weight="row")
    r = metric(*columns, query, sample_weight=weight, cluster_weight="row")
    np.testing.assert_allclose(r.estimate, again.estimate, atol=1e-9)
    np.testing.assert_allclose(r.covariance, again.covariance, rtol=1e-6)


@each_by_row
def test_groups_that_overlap_are_measured_each_alone(metric):
    y, s, group, cluster, query = rows(labels="abc")
    member = np.stack([group != "a", group != "b"], axis=1)
    r = metric(y, s, member, cluster, query)
    for g in range(2):
        alone = metric(*take((y, s, None, cluster, query), member[:, g]))
        assert r.estimate[g] == pytest.approx(alone.estimate[0], abs=1e-12)
    with pytest.raises(ValueError, match="disjoint groups for rank_shift"):
        ranks(y, s, member, cluster, query)


@each_metric
def test_copies_have_the_same_errors(metric):
    r = metric(*rows())
    copies = (r.compact(), copy.deepcopy(r), pickle.loads(pickle.dumps(r)))
    for other in copies:
        np.testing.assert_array_equal(other.covariance, r.covariance)
        assert other.disparity_bound() == pytest.approx(r.disparity_bound())
        assert other.disparity_bound() > r.disparity()
    with pytest.raises(ValueError, match="compact"):
        r.compact().resampled(3)


FITTED = [*SHIFTS.values(), *(m for name, m in ERRORS.items() if "[" not in name)]


@pytest.mark.parametrize("metric", FITTED)
def test_what_is_fitted_does_not_add_up(metric):
    r = metric(*rows())
    with pytest.raises(ValueError, match="do not add up"):
        r + r


@pytest.mark.parametrize("metric", [*SHIFTS.values(), errors])
def test_two_scores_are_compared_on_the_same_clusters(metric):
    y, s, *who = rows(n_users=150)
    old, new = metric(y, s, *who), metric(y, s**2, *who)
    difference = compare(old, new)
    expected = np.abs(old.estimate - new.estimate)
    np.testing.assert_allclose(np.abs(difference.estimate), expected)
    paired = (old.resampled(100, 5) - new.resampled(100, 5)).std(axis=0)
    # Of 100 and of 200 resamples: the ratio of errors has one of 9%.
    ratio = paired / difference.standard_error
    assert ((ratio > 0.7) & (ratio < 1.4)).all()


@pytest.mark.parametrize("one_list", [False, True])
@each_metric
def test_resample_is_the_metric_of_resampled_clusters(metric, one_list):
    if one_list and metric is not ranks:
        return
    *columns, cluster, query = rows(3, 12, ties=one_list)
    query = None if one_list else query
    options = {"kernel": "gaussian"} if metric in SHIFTS.values() else {}
    r = metric(*columns, cluster, query, **options)
    counts = np.random.default_rng(0).integers(0, 12, (4, 12))
    for values, drawn in zip(r.resampled(4, random_state=0), counts, strict=True):
        parts = [np.flatnonzero(cluster == m) for m in drawn]
        place = np.concatenate(parts)
        new = np.repeat(np.arange(12), [len(part) for part in parts])
        queries = None if one_list else 100 * new + query[place]
        again = [*take(columns, place), new, queries]
        if metric is not ERRORS[str(METHODS[3])]:
            expected = metric(*again, **options).estimate
        else:  # the numbers of bins are held
            bins = [r.first_pass["bins"][name] for name in r.groups]
            expected = [
                errors(*again, method="binned", bins=n).estimate[g]
                for g, n in enumerate(bins)
            ]
        np.testing.assert_allclose(values, expected, atol=1e-9)


@each_metric
def test_one_cluster(metric):
    y, s, group, cluster, query = rows(labels="ab")
    group = np.where(cluster == 0, "z", group)
    with pytest.warns(UndefinedMetricWarning, match=r"too few clusters, in: z\.$"):
        r = metric(y, s, group, cluster, query)
    assert np.isfinite(r.estimate).all()
    assert np.isnan(r.standard_error).tolist() == [False, False, True]
    with pytest.warns(UndefinedMetricWarning, match="too few clusters, in: a, b"):
        r = metric(y, s, np.where(group == "z", "a", group), [0] * y.size, query)
    assert np.isnan(r.standard_error).all()


@each_by_row
def test_group_without_rows(metric):
    y, s, group, cluster, query = rows()
    member = np.stack([group == "a", group == "b", group == "c"], axis=1)
    with pytest.warns(UndefinedMetricWarning, match=r"groups without rows: 2\.$"):
        r = metric(y, s, member, cluster, query)
    assert np.isnan(r.estimate).tolist() == [False, False, True]
    assert np.isnan(r.standard_error).tolist() == [False, False, True]


@each_metric
def test_scores_without_spread_are_one_place(metric):
    y, s, group, cluster, query = rows()
    s = np.full(s.size, 0.4)
    assert np.isfinite(metric(y, s, group, cluster, query).standard_error).all()
    if metric in ERRORS.values():
        unit = {} if "smooth" not in str(metric.keywords) else {"cluster_weight": "row"}
        r = metric(y, s, group, cluster, **unit)
        expected = [abs(0.4 - y[group == name].mean()) for name in "ab"]
        np.testing.assert_allclose(r.estimate, expected, atol=1e-12)


OF_CURVES = [
    *(("bandwidth", bad) for bad in (0, np.nan, "silverman", {"a": 0.1})),
    ("bandwidth", {"a": 0.1, "b": np.nan}),
    ("kernel", "cosine"),
    ("cluster_weight", "user"),
]
OF_RESAMPLES = [("n_resamples", 1), ("random_state", "seed")]
OF_BINS = [0, 2.5, [0.1], [0.4, 0.1], [0.2, 0.9], [0, np.nan, 1]]


@pytest.mark.parametrize(
    ("metric", "name", "value"),
    [
        *((metric, *bad) for metric in (errors, decisions, ranks) for bad in OF_CURVES),
        *((metric, *bad) for metric in (decisions, ranks) for bad in OF_RESAMPLES),
        *((partial(errors, method="binned"), "bins", bad) for bad in OF_BINS),
        (errors, "method", "ece"),
        (decisions, "threshold", None),
        (decisions, "threshold", np.nan),
        (ranks, "average", "users"),
        (ranks, "sample_weight", [1, 2, 1, 1]),
    ],
)
def test_bad_input_names_the_argument(metric, name, value):
    good = [0, 1, 1, 0], [0.1, 0.2, 0.3, 0.4], list("abab"), None, [0, 0, 1, 1]
    with pytest.raises(ValueError, match=name):
        metric(*good, **{name: value})
