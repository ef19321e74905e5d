"""What has no data is NaN, with a warning that names it, and never 0."""

import numpy as np
import pandas as pd
import pytest

from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.metrics import (
    boost_value,
    dips,
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


#: Columns whose groups have nothing to be compared with.
ALONE = {
    "one group": {"sensitive_features": ["x"] * 6},
    "one item per query": {"qid": range(6)},
    "one row": {**{name: column[:1] for name, column in GOOD.items()}, "qid": None},
}


@each_that_needs_others
@pytest.mark.parametrize("case", ALONE)
def test_nothing_to_be_compared_with(metric, case):
    changed = {n: ALONE[case][n] for n in columns_of(metric) if n in ALONE[case]}
    if metric is pairwise_accuracy:
        changed["comparison"] = "inter"
    groups = tuple(sorted({*changed.get("sensitive_features", "fm")}))
    message = rf"without {lacking(metric)}: {', '.join(groups)}\.$"
    with pytest.warns(UndefinedMetricWarning, match=message):
        r = call(metric, **changed)
    assert r.groups == groups
    assert np.isnan(r.estimate).all()
    assert np.isnan(r.covariance).all()
    assert (r.support == 0).all()


def test_one_group_has_pairs_of_its_own_but_no_rest():
    r = call(pairwise_accuracy, sensitive_features=["x"] * 6)
    assert np.isfinite(r.estimate).all()
    assert np.isnan(r.test().pvalue).all()


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
