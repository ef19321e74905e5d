"""Lists: measured part by part, and the permutation test of their labels."""

import itertools

import numpy as np
import pytest

from skrankfair.inference import compare
from skrankfair.metrics import (
    _lists,
    ndkl,
    pairwise_parity,
    skew_at_k,
)
from tests.calls import OF_LISTS, each_of
from tests.metrics.common import (
    CASES,
    DATA,
    assert_identical,
    with_clusters,
    with_peak,
    with_weights,
)
from tests.seeds import one_in

every_metric = each_of(OF_LISTS)

pytestmark = pytest.mark.filterwarnings(
    "ignore:skew_at_k is infinite:sklearn.exceptions.UndefinedMetricWarning"
)


def columns(n_lists=1, n=8, seed=0, ties=False):
    rng = np.random.default_rng(seed)
    score = rng.integers(0, 5, n_lists * n) if ties else rng.permutation(n_lists * n)
    group = np.tile(np.arange(n) < n // 3, n_lists)
    return {
        "y_score": score,
        "sensitive_features": group,
        "qid": np.repeat(np.arange(n_lists), n),
    }


def all_labels(c):
    """Labels in every order within the lists."""
    lists = [np.flatnonzero(c["qid"] == q) for q in np.unique(c["qid"])]
    sizes = [c["sensitive_features"][rows].sum() for rows in lists]
    choices = map(itertools.combinations, lists, sizes)
    for chosen in itertools.product(*choices):
        yield np.isin(np.arange(c["qid"].size), np.concatenate(chosen))


@one_in(
    4,
    metric={metric.__name__: metric for metric in OF_LISTS},
    n_lists={"one list": 1, "two lists": 2},
    ties={"distinct": False, "ties": True},
)
def test_pvalue_is_the_share_of_all_orders(metric, ties, n_lists):
    c = columns(n_lists, 8 if n_lists == 1 else 5, seed=3, ties=ties)
    options, observed = OF_LISTS[metric], metric(**c, **OF_LISTS[metric])
    others = [{**c, "sensitive_features": group} for group in all_labels(c)]
    values = np.array([metric(**other, **options).estimate[1] for other in others])
    value = observed.estimate[1]
    slack = 1e-9 if np.isfinite(value) else 0.0
    exact = (values >= value - slack).mean()
    if metric is skew_at_k:
        exact = min(1.0, 2 * min(exact, (values <= value + slack).mean()))
    how = {"method": "permutation", "n_resamples": 4000, "random_state": 0}
    test = observed.test(**how)
    # Five standard errors of the share of shuffles, twice for two sides.
    assert abs(test.pvalue[1] - exact) < 10 * np.sqrt(0.25 / 4000)
    if np.isfinite(values).all():
        spread = values.std()
        assert abs(test.null_value[1] - values.mean()) < 5 * spread / np.sqrt(4000)
        assert test.standard_error[1] == pytest.approx(spread, rel=0.05)


def test_statistic_is_in_units_of_the_shuffles():
    r = pairwise_parity(**columns(5, 12, seed=1))
    test = r.test(n_resamples=500, random_state=1)
    drawn = test.null_distribution
    assert drawn.shape == (500, 2)
    np.testing.assert_allclose(
        test.statistic, (r.estimate - drawn.mean(0)) / drawn.std(0)
    )
    expected = (1 + (drawn >= r.estimate - 1e-12).sum(0)) / 501
    np.testing.assert_array_equal(test.pvalue, expected)
    assert np.isnan(test.df).all()


@pytest.mark.filterwarnings("ignore:ndkl is undefined")
def test_a_column_that_marks_nobody_has_no_test():
    nobody = np.zeros((4, 2), dtype=bool)
    assert np.isnan(ndkl(None, range(4), sensitive_features=nobody).test().pvalue).all()


def test_two_sides_of_a_signed_value():
    c = columns(9, 10, seed=2)
    up = pairwise_parity(**c, signed=True)
    down = pairwise_parity(**(c | {"y_score": -c["y_score"]}), signed=True)
    drawn = {"n_resamples": 2000, "random_state": 0}
    first, second = (r.test("permutation", **drawn) for r in (up, down))
    np.testing.assert_allclose(first.pvalue, second.pvalue, atol=0.1)
    assert (first.pvalue <= 1).all()
    # Without a method it is Student's t, but for one list, which has no error.
    np.testing.assert_array_equal(up.test().df, up.df)
    np.testing.assert_array_equal(up.pvalue, up.test(method="t").pvalue)
    one = pairwise_parity(**columns(1, 40, seed=2), signed=True)
    assert (one.test(**drawn).pvalue == one.test("permutation", **drawn).pvalue).all()
    assert "test() shuffles the labels" in str(one)


def test_parts_with_ties_are_tested_as_the_whole():
    parts = []
    for index, tied in enumerate((True, False)):
        c = columns(3, 9, seed=index, ties=tied)
        names = np.array(["b", "a" if index else "c"])
        c["sensitive_features"] = names[c["sensitive_features"] * 1]
        c["qid"] = c["qid"] + 10 * index
        parts.append(c)
    whole = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
    first, second = (
        r.test(n_resamples=400, random_state=0).null_distribution
        for r in (sum(ndkl(**part) for part in parts), ndkl(**whole))
    )
    # The order of tied rows is nobody's choice.
    error = first.std(axis=0) / np.sqrt(400)
    assert (np.abs(first.mean(0) - second.mean(0)) < 6 * error).all()


class TestWhatCannotBeTested:
    def test_after_compact(self):
        r = ndkl(**columns(3)).compact()
        assert r.permutation is None
        with pytest.raises(ValueError, match=r"kept until compact\(\); ndkl has none"):
            r.test()
        assert (r + ndkl(**columns(3))).permutation is None

    @every_metric
    def test_distances_by_student_t(self, metric):
        r = metric(**columns(9, seed=1), **OF_LISTS[metric])
        with pytest.raises(ValueError, match="method must be 'permutation'"):
            r.test(method="t")
        for frame in (r.to_frame(), r.contrasts(), r.contrasts("ratio")):
            assert frame["pvalue"].isna().all()
        assert "  p\n" not in repr(r)

    def test_differences_of_two_models_are(self):
        r = compare(ndkl(**columns(9)), ndkl(**columns(9, seed=1)))
        assert np.isfinite(r.test().pvalue).all()
        assert r.permutation is None
        with pytest.raises(ValueError, match="needs the lists"):
            r.test(method="permutation")

    @pytest.mark.parametrize(
        ("option", "message"),
        [
            ({"method": "bootstrap"}, "method must be one of 't', 'permutation'"),
            ({"n_resamples": 0}, "n_resamples must be an integer"),
            ({"random_state": "x"}, "random_state must be"),
        ],
    )
    def test_bad_options(self, option, message):
        with pytest.raises(ValueError, match=message):
            ndkl(**columns()).test(**option)


def test_blocks_bound_the_memory_of_hundreds_of_overlapping_groups():
    rng = np.random.default_rng(0)
    n, n_groups = 600, 500
    score, member = rng.random(n), rng.random((n, n_groups)) < 0.05
    query = np.repeat(np.arange(n // 20), 20)
    r = pairwise_parity(None, score, sensitive_features=member, qid=query)
    how = {"method": "permutation", "n_resamples": 60, "random_state": 0}
    test, peak = with_peak(lambda: r.test(**how))
    assert test.null_distribution.shape == (60, n_groups)
    assert np.isfinite(test.corrected()).all()
    assert peak < 200e6


PARITY = {name: case for name, case in CASES.items() if case.metric in OF_LISTS}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@one_in(3, case=PARITY, make=DATA, rows={"one row": 1, "17 rows": 17})
def test_parts_are_the_whole(case, make, rows, monkeypatch):
    plain = make()
    one_length = plain.but(q=np.arange(plain.y.size) // 10)
    problems = [
        (plain, {}),
        (with_clusters(with_weights(plain)), {}),
        (plain.but(s=np.random.default_rng(0).permutation(plain.y.size)), {}),
        (one_length, {"average": "representation"}),
    ]
    whole = [case(c, **options) for c, options in problems]
    how = {"method": "permutation", "n_resamples": 9, "random_state": 0}
    tested = [r.test(**how) for r in whole]
    monkeypatch.setattr(_lists, "_PART", rows)
    monkeypatch.setattr(_lists, "_ROWS", rows)
    for (c, options), expected, shuffled in zip(problems, whole, tested, strict=True):
        r = case(c, **options)
        assert_identical(r, expected)
        test = r.test(**how)
        np.testing.assert_array_equal(test.pvalue, shuffled.pvalue)
        np.testing.assert_array_equal(test.corrected(), shuffled.corrected())
        drawn, expected = (one.null_distribution for one in (test, shuffled))
        np.testing.assert_allclose(drawn, expected, rtol=1e-13)
