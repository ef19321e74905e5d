"""First passes of parts, which must agree."""

import itertools

import numpy as np
import pytest

from skrankfair.metrics import matched_pair_calibration, pairwise_accuracy
from tests.metrics.common import CASES, labelled


def test_a_different_epsilon_does_not_add():
    c = labelled()

    def matched(epsilon):
        who = {"sensitive_features": c.group, "qid": c.q}
        return matched_pair_calibration(c.y, c.s, epsilon=epsilon, **who)

    first, second = matched(0.25), matched(0.5)
    message = r"first pass differs.*epsilon is .*0\.25.*0\.5"
    for a, b in itertools.product((first, first.compact()), (second, second.compact())):
        with pytest.raises(ValueError, match=message):
            a + b
    with pytest.raises(ValueError, match="first pass differs"):
        first + matched({"a": 0.25, "b": 0.25, "c": 0.5})
    same = matched(dict.fromkeys("abc", 0.25))
    assert (first + same).n_clusters == 2 * first.n_clusters


def test_different_edges_do_not_add():
    c = labelled()
    who = {"sensitive_features": c.group, "qid": c.q, "engagement": c.z}
    first, second, third = (
        pairwise_accuracy(c.y, c.s, bins=edges, **who)
        for edges in ([-1, 0.5, 1], [-1, 0.25, 1], [-1, 0.25, 0.5, 1])
    )
    for other in (second, third):
        with pytest.raises(ValueError, match="first pass differs.*engagement_edges"):
            first + other
    with pytest.raises(ValueError, match="of which the finalize, .* differ"):
        first + pairwise_accuracy(c.y, c.s, **who | {"engagement": None})


def test_labels_of_other_types_do_not_add():
    c = labelled()
    group = (c.group == "a") * 1
    of_text = pairwise_accuracy(c.y, c.s, sensitive_features=group.astype(str), qid=c.q)
    with pytest.raises(ValueError, match=r"only in type .*; got (0 and '0'|1 and '1')"):
        pairwise_accuracy(c.y, c.s, sensitive_features=group, qid=c.q) + of_text


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_a_part_without_data_has_chosen_nothing():
    c = labelled()
    case = next(case for case in CASES.values() if "quantile" in case.first_pass)
    whole, part = case(c), case(c.take(np.flatnonzero(c.q == 20)))
    assert np.isnan(list(part.first_pass["epsilon"].values())).all()
    for merged in (whole + part, part + whole):
        np.testing.assert_array_equal(merged.estimate, whole.estimate)
        chosen = {g: merged.first_pass["epsilon"][g] for g in whole.groups}
        assert chosen == whole.first_pass["epsilon"]
        assert merged.n_clusters == whole.n_clusters + 1
