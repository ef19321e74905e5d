"""What has no data is NaN, with a warning that names it, and never 0."""

import numpy as np
import pandas as pd
import pytest

from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.metrics import (
    boost_value,
    dips,
    matched_pair_calibration,
    ndcg,
    pairwise_accuracy,
)
from tests.calls import (
    GOOD,
    OF_ITEMS,
    WITH_VARIANCE,
    call,
    columns_of,
    each_by_group,
    each_of,
    each_that_needs_others,
    lacking,
)


@each_by_group
def test_group_without_rows_in_a_membership_matrix(metric):
    member = pd.DataFrame(
        {"some": [True, False] * 3, "others": [False, True] * 3, "nobody": False}
    )
    message = rf"undefined \(NaN\) for groups without {lacking(metric)}: nobody\.$"
    with pytest.warns(UndefinedMetricWarning, match=message):
        r = call(metric, sensitive_features=member)
    assert r.groups == ("some", "others", "nobody")
    assert np.isnan(r.estimate).tolist() == [False, False, True]
    assert np.isnan(r.standard_error).tolist() == [False, False, True]
    assert r.support[2] == 0
    assert r.n_effective[2] == 0
    assert np.isnan(r.df[2])
    assert repr(r).splitlines()[4].split()[:2] == ["nobody", "–"]


@pytest.mark.parametrize(
    ("metric", "changed"),
    [
        (pairwise_accuracy, {"y_true": [0, 1, 0, 1, 0, 0]}),
        (pairwise_accuracy, {"y_true": [0, 1, 0, 1, 0, 0], "average": "queries"}),
        (pairwise_accuracy, {"y_true": [0, 1, 0, 1, 0, 0], "engagement": [1] * 6}),
        (matched_pair_calibration, {"y_score": [2, 1, 2, 1, 2, 1]}),
        (matched_pair_calibration, {"y_score": [2, 1, 2, 1, 2, 1], "quantile": 0.5}),
    ],
)
def test_group_without_pairs(metric, changed):
    if "quantile" in changed:
        changed = {"epsilon": None, **changed}
    with pytest.warns(UndefinedMetricWarning, match="groups without pairs: f"):
        r = call(metric, **changed)
    assert np.isnan(r.estimate[0])
    assert r.support[0] == 0
    assert np.isfinite(r.estimate[1])


@each_that_needs_others
def test_one_group(metric):
    only = {"sensitive_features": ["x"] * 6}
    if metric is pairwise_accuracy:
        # There are others to be compared with, but no group outside.
        assert np.isfinite(call(metric, **only).estimate).all()
        assert np.isnan(call(metric, **only).test().pvalue).all()
        only["comparison"] = "inter"
    with pytest.warns(
        UndefinedMetricWarning, match=rf"without {lacking(metric)}: x\.$"
    ):
        r = call(metric, **only)
    assert r.groups == ("x",)
    assert np.isnan(r.estimate).all()
    assert np.isnan(r.covariance).all()


@each_that_needs_others
@pytest.mark.parametrize("qid", [range(6), None], ids=["one item a query", "one row"])
def test_queries_of_one_item(metric, qid):
    changed = {"qid": qid}
    names = "f, m"
    if qid is None:
        changed |= {n: GOOD[n][:1] for n in columns_of(metric)[:3] if n in GOOD}
        names = "f"
        changed["qid"] = None
    with pytest.warns(
        UndefinedMetricWarning, match=rf"without {lacking(metric)}: {names}\.$"
    ):
        r = call(metric, **changed)
    assert np.isnan(r.estimate).all()
    assert (r.support == 0).all()


@each_of([*WITH_VARIANCE, dips, *OF_ITEMS])
@pytest.mark.parametrize("options", [{}, {"average": "queries"}], ids=str)
def test_one_cluster_has_no_error(metric, options):
    options = {} if metric is boost_value else options
    one_list = {"variance": "cluster"} if metric in WITH_VARIANCE else {}
    for one in ({"qid": None, **one_list}, {"cluster": ["only"] * 6}):
        with pytest.warns(UndefinedMetricWarning, match=r"standard error.*: f, m\.$"):
            r = call(metric, **one, **options)
        assert np.isfinite(r.estimate).all()
        assert np.isnan(r.standard_error).all()
        assert r.n_clusters == 1


def test_ndcg_without_relevance():
    with pytest.warns(UndefinedMetricWarning, match=r"without queries: all\.$"):
        r = call(ndcg, y_true=[0] * 6)
    assert np.isnan(r.estimate).all()
    assert r.support == 0
    with pytest.warns(UndefinedMetricWarning, match="no standard error"):
        r = call(ndcg, y_true=[0, 0, 1, 0, 0, 0])
    assert r.support == 1
    assert np.isfinite(r.estimate).all()
