"""compare: the paired difference of two models."""

import itertools
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from skrankfair.inference import compare
from skrankfair.metrics import (
    group_mean,
    matched_pair_calibration,
    ndcg,
    pairwise_accuracy,
    pairwise_exposure,
)
from tests.metrics.naive_rules import tables_of
from tests.reference import matched_pairs, pairwise
from tests.reference.variance import placements

METRICS = {
    "accuracy": (pairwise_accuracy, {"comparison": "inter"}),
    "queries": (pairwise_accuracy, {"average": "queries"}),
    "exposure": (pairwise_exposure, {}),
    "matched": (matched_pair_calibration, {"epsilon": 0.4}),
}


def frame(seed=0, n_queries=40):
    """Draw ragged queries of users, under an old score and a better new one."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(n_queries), rng.integers(2, 9, n_queries))
    y = rng.integers(0, 3, query.size)
    score = y + rng.normal(size=query.size)
    return pd.DataFrame(
        {
            "y": y,
            "old": np.round(score + 0.5 * rng.normal(size=query.size), 1),
            "new": np.round(score, 1),
            "group": rng.choice(["f", "m", "x"], query.size),
            "query": query,
            "user": query // 2,
        }
    )


def measure(name, data, score, **changes):
    metric, options = METRICS[name]
    columns = {"sensitive_features": data["group"], "qid": data["query"]}
    return metric(data["y"], data[score], **{**columns, **options, **changes})


def both(name, data, **changes):
    return [measure(name, data, score, **changes) for score in ("new", "old")]


def naive_sums(name, data, score, group, cluster):
    """Value and number of the group's pairs in each cluster, shape (Q, 2)."""
    y, s, q = (data[column].tolist() for column in ("y", score, "query"))
    member = (data["group"] == group).tolist()
    if name == "exposure":
        pairs = pairwise.pairs_exposure(s, q, member)
    elif name == "matched":
        pairs = matched_pairs.matched_pairs(y, s, q, member, epsilon=0.4)
    else:
        comparison = "inter" if name == "accuracy" else "all"
        pairs = pairwise.pairs_accuracy(y, s, q, member, comparison)
    average = "queries" if name == "queries" else "pairs"
    (rows,) = tables_of(SimpleNamespace(q=q), {group: pairs}, average).values()
    labels = sorted(set(cluster))
    sums = np.zeros((len(labels), 2))
    for i, _, value, count, _ in rows:
        sums[labels.index(cluster[i])] += value, count
    return sums


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("unit", ["query", "user"])
def test_jackknife_by_hand(name, unit):
    # Each cluster is left out of both results at once.
    data = frame()
    result = compare(*both(name, data, cluster=data[unit]))
    changes, difference = [], []
    for group in result.groups:
        value, without, n = [], [], 0
        for score in ("new", "old"):
            sums = naive_sums(name, data, score, group, data[unit].tolist())
            left = sums.sum(0) - sums
            value.append(sums[:, 0].sum() / sums[:, 1].sum())
            without.append(left[:, 0] / left[:, 1])
            n = max(n, np.count_nonzero(sums[:, 1]))
        difference.append(value[0] - value[1])
        changes.append((np.subtract(*without) - difference[-1]) * np.sqrt((n - 1) / n))
    expected = np.array(changes) @ np.array(changes).T
    np.testing.assert_allclose(result.estimate, difference, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(result.covariance, expected, rtol=1e-9, atol=1e-14)
    n_clusters = data[unit].nunique()
    assert (result.n_clusters, result.fair_value) == (n_clusters, 0)
    assert (result.df < n_clusters - 1 + 1e-9).all()


@pytest.mark.parametrize("name", METRICS)
def test_resamples_both_at_once(name):
    new, old = both(name, frame())
    drawn = compare(new, old).resampled(50, 0)
    expected = new.resampled(50, 0) - old.resampled(50, 0)
    np.testing.assert_allclose(drawn, expected, rtol=1e-12, atol=1e-14)
    none = compare(old, old)
    assert not np.any([none.estimate, none.standard_error])
    assert np.all(none.test().pvalue == 1)


def test_name_and_tables():
    new, old = both("matched", frame())
    result = compare(new, old)
    assert result.name == "matched_pair_calibration_difference"
    assert result.first_pass["epsilon_a"] == result.first_pass["epsilon_b"]
    np.testing.assert_array_equal(result.support, new.support)
    assert "fair value 0" in repr(result)
    assert result.disparity() == np.abs(result.estimate).max()
    # Does the new model help one group more than another?
    contrast = result.contrast("f", "m")
    gain_f, gain_m = (new.estimate - old.estimate)[:2]
    assert contrast.estimate == pytest.approx(gain_f - gain_m)
    new, old = (result.against_rest() for result in both("accuracy", frame()))
    against_rest = compare(new, old)
    assert against_rest.name == "pairwise_accuracy_against_rest_difference"
    np.testing.assert_allclose(against_rest.estimate, new.estimate - old.estimate)


@pytest.mark.parametrize("labels", [int, str, object])
@pytest.mark.parametrize("name", METRICS)
def test_clusters_are_aligned_by_label(name, labels):
    data = frame()
    data["query"] = 7 * data["query"] - 30
    if labels is not int:
        data["query"] = ("q" + data["query"].astype(str)).astype(labels)
    if labels is object:  # numbers and strings
        mixed = [q if int(q[1:]) % 2 else int(q[1:]) for q in data["query"]]
        data["query"] = pd.Series(mixed, dtype=object)
    data["weight"] = 1 + pd.factorize(data["query"])[0] % 3
    shuffled = data.sample(frac=1, random_state=0)
    for power in (0, 1):
        weights = [{"sample_weight": d["weight"] ** power} for d in (data, shuffled)]
        new, old = both(name, data, **weights[0])
        expected = compare(new, old)
        again = compare(new, measure(name, shuffled, "old", **weights[1]))
        np.testing.assert_allclose(again.estimate, expected.estimate, rtol=1e-11)
        np.testing.assert_allclose(again.covariance, expected.covariance, rtol=1e-9)


def test_compact_pairs_keep_the_rare_events_that_a_group_lacks():
    n = np.arange(30000)
    events, who = n % 50 == 49, {"sensitive_features": n < 49}
    a, b = (group_mean(x * events + np.sin(x * n) / 99, **who) for x in (3, 4))
    pair = compare(a, b)
    pvalues = pair.test().pvalue, pair.compact().test().pvalue
    np.testing.assert_allclose(*pvalues, rtol=1e-3)


# What cannot be compared


def test_different_metrics_options_strata_and_variances_raise():
    data = frame(n_queries=200)
    engagement = np.random.default_rng(0).random(len(data))
    results = [measure(name, data, "old") for name in METRICS]
    results += [
        measure("accuracy", data, "old", comparison="intra"),
        measure("matched", data, "old", direction="both"),
        ndcg(data["y"], data["old"], qid=data["query"]),
        ndcg(data["y"], data["old"], qid=data["query"], k=3),
        measure("accuracy", data, "old").against_rest(),
        measure("accuracy", data, "old", variance="item"),
        *(
            measure("queries", data, "old", engagement=engagement, bins=bins)
            for bins in (2, 3, [0.0, 0.3, 1.0])
        ),
    ]
    np.testing.assert_array_equal(compare(results[-1], results[-1]).estimate, 0.0)
    for a, b in itertools.permutations(results, 2):
        with pytest.raises(ValueError, match=r"Only (two )?results|same groups and"):
            compare(a, b)


def test_different_clusters_groups_and_types_raise():
    data = frame()
    new, old = both("accuracy", data)
    others = [
        (measure("accuracy", other, "old"), f"same {what}")
        for other, what in (
            (data.assign(query=data["query"] + 1), "clusters"),
            (data.assign(query=data["query"].astype(str)), "clusters"),
            (data[data["query"] < 39], "clusters"),
            (data.assign(query=data["user"]), "clusters"),
            (data.assign(group=data["group"].replace("x", "y")), "groups"),
            (data.assign(group=data["group"].replace("x", "m")), "groups"),
        )
    ]
    others += [(old.compact(), "compact"), (0.5, "[ab] must be a result of a metric")]
    for other, message in others:
        for pair in ((new, other), (other, new)):
            with pytest.raises(ValueError, match=message):
                compare(*pair)


# One list


def one_list(n, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    a, b = rng.normal(size=n) + y + 0.5 * rng.normal(size=(2, n))
    return y, a, b


@pytest.mark.parametrize("ties", [False, True])
def test_item_variance_is_delongs_paired(ties):
    # DeLong, DeLong and Clarke-Pearson 1988; its two samples are positives and
    # negatives, where these are the items of the group, and all are of one.
    y, *scores = one_list(150)
    scores = [np.round(s) if ties else s for s in scores]
    a, b = (pairwise_accuracy(y, s, sensitive_features=0 * y) for s in scores)
    result = compare(a, b)
    assert result.variance == "item"
    (a10, a01), (b10, b01) = (placements(y, s) for s in scores)
    expected = np.var(a10 - b10) / y.sum() + np.var(a01 - b01) / (~y).sum()
    assert result.covariance[0, 0] == pytest.approx(expected, rel=0.05)
    assert result.estimate[0] == pytest.approx(a10.mean() - b10.mean(), rel=1e-10)
    with pytest.raises(ValueError, match="items"):
        result.confidence_interval(method="bootstrap")


def test_items_are_aligned_by_row():
    y, a, b = one_list(60)
    group = np.arange(60) % 2
    results = [pairwise_exposure(y, s, sensitive_features=group) for s in (a, b)]
    for metric in (group_mean, partial(pairwise_exposure, None)):
        first = metric(a, sensitive_features=group)
        for rows, what in ((slice(50), "clusters"), (slice(None, None, -1), "rows in")):
            with pytest.raises(ValueError, match=f"same {what}"):
                compare(first, metric(b[rows], sensitive_features=group[rows]))
    t = [x.sums.rows for x in results]
    assert not np.array_equal(t[0].labels, t[1].labels)
    # Leave out each item of both, in row order.
    changes = 0.0
    for table, result, sign in zip(t, results, (1, -1), strict=True):
        rows = np.empty((60, 2))
        rows[table.labels] = table.by_group[:, 0]
        left = result.sums.by_group[0] - rows
        changes = changes + sign * (left[:, 0] / left[:, 1] - result.estimate[0])
    # Members of the group and others are two samples of 30.
    expected = 29 / 30 * (changes**2).sum()
    assert compare(*results).covariance[0, 0] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("compact", [False, True])
def test_comparisons_add_up(name, compact):
    data = frame(n_queries=80)
    data["query"] += 100 * (data["query"] >= 30)
    whole = compare(*both(name, data))
    halves = data.groupby(data["query"] >= 30)
    parts = [compare(*both(name, half)) for _, half in halves]
    if compact:
        parts = [part.compact() for part in parts]
    total = sum(parts)
    np.testing.assert_allclose(total.estimate, whole.estimate, rtol=1e-10, atol=1e-14)
    # Queries with hardly any pair are folded into sums by compact().
    rtol = 1e-5 if compact else 1e-9
    np.testing.assert_allclose(total.covariance, whole.covariance, rtol=rtol)
    assert total.n_clusters == 80
    assert repr(total) == repr(whole)
