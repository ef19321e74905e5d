"""Users and the items that recur among them: naive loops, and sums of parts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skrankfair import metrics
from skrankfair.inference import compare, compare_independent
from tests.reference.two_way import two_way_variances

METRICS = {
    "inter": (metrics.pairwise_accuracy, {"comparison": "inter"}),
    "exposure": (metrics.pairwise_exposure, {}),
    "matched": (metrics.matched_pair_calibration, {"epsilon": 0.5}),
    "gap": (metrics.exposure_gap, {}),
}


def lists(n_users=12, n_items=20, size=8, seed=0):
    """Return outcomes, scores, and columns of lists of a catalogue."""
    rng = np.random.default_rng(seed)
    items = [rng.choice(n_items, size, replace=False) for _ in range(n_users)]
    item, user = np.concatenate(items), np.repeat(np.arange(n_users), size)
    group = np.array(list("aabbb"))[np.arange(n_items) % 5][item]
    score = rng.normal(size=item.size).round(1)
    y = (score + rng.normal(size=item.size) > 0) * 1.0
    query = user * 2 + (np.arange(item.size) % size >= size // 2)
    columns = {"sensitive_features": group, "qid": query}
    return y, score, columns | {"cluster": np.column_stack([user, item])}


def part(data, rows):
    y, score, columns = data
    return y[rows], score[rows], {name: x[rows] for name, x in columns.items()}


def measured(name, data):
    metric, options = METRICS[name]
    return metric(*data[:2], **data[2], **options)


@pytest.mark.parametrize("name", ["inter", "exposure", "matched", "rate"])
def test_naive_reference(name):
    y, score, columns = data = lists()
    group, query, cluster = columns.values()
    if name == "rate":
        result = metrics.group_mean(y, sensitive_features=group, cluster=cluster)
    else:
        result = measured(name, data)
    ways = two_way_variances(name, y, score, group, query, *cluster.T, epsilon=0.5)
    for sums, expected in zip(
        (*result.sums.ways, result.sums.crossed), ways, strict=True
    ):
        assert_allclose(sums.covariance(result.metric.finalize), expected)
    variance = np.diag(ways[0] + np.maximum(ways[1] - ways[2], 0))
    assert_allclose(result.standard_error**2, variance)
    df = [metrics.GroupEstimates(result.metric, way).df for way in result.sums.ways]
    assert_allclose(result.df, np.min(df, axis=0))
    both = ways[0] + ways[1] - ways[2]
    of_difference = [cov[0, 0] + cov[1, 1] - 2 * cov[0, 1] for cov in (both, ways[0])]
    if (np.diag(ways[1] - ways[2]) > 0).all():
        contrast = result.contrast("a", "b").standard_error ** 2
        assert_allclose(contrast, max(of_difference))


@pytest.mark.parametrize("name", METRICS)
def test_sums_of_parts(name):
    data = lists(n_users=36, seed=3)
    whole, first = measured(name, data), data[2]["qid"] < 30
    parts = [measured(name, part(data, rows)) for rows in (first, ~first)]
    compacted = parts[0].compact() + parts[1].compact()
    stored = metrics.GroupEstimates.from_json(compacted.to_json())
    for result in (sum(parts), compacted, stored, whole.compact()):
        assert_allclose(result.covariance, whole.covariance)
        assert_allclose(result.df, whole.df)
        assert "36 clusters, 20 items" in str(result)
    curve = metrics.matched_pair_curve(*data[:2], **data[2], epsilon=[0.5])
    assert "36 clusters, 20 items" in str(curve)


@pytest.mark.parametrize("name", ["inter", "matched"])
def test_a_list_of_one_part_has_an_item_twice(name):
    data = lists(n_users=600, n_items=500, seed=3)
    columns = data[2]
    columns["cluster"][1, 1] = columns["cluster"][0, 1]
    whole, first = measured(name, data).compact(), columns["qid"] < 600
    a, b = (measured(name, part(data, rows)).compact() for rows in (first, ~first))
    for result in (a + b, b + a):
        assert_allclose(result.covariance, whole.covariance)
        assert_allclose(result.df, whole.df)


@pytest.mark.parametrize("average", ["queries", "amortized", "items"])
def test_shares_of_exposure(average):
    y, score, columns = lists(n_users=24)
    score = score + np.arange(score.size) / 1e4
    group, query, cluster = columns.values()
    same = query[:, None] == query
    visits = 1 / (same & (score >= score[:, None])).sum(1)
    if average == "items":
        result, visits = metrics.share_at_k(y, score, k=2, **columns), visits >= 1 / 2
    else:
        columns |= {"average": average}
        result = metrics.exposure(y, score, position_weight="reciprocal", **columns)
        # The gap of one of two groups is that of the other, with the other sign.
        assert_allclose(*metrics.exposure_gap(y, score, **columns).pvalue)
    if average == "queries":
        visits /= (same * visits).sum(1)
    for way, sums in enumerate(result.sums.ways):
        expected = 0.0
        for sample in "ab"[: way + 1]:  # The items of a group and all others are two.
            units = set(cluster[group == sample, way])
            for unit in units:
                left = cluster[:, way] != unit
                without = visits[left & (group == "a")].sum() / visits[left].sum()
                change = without - result.estimate[0]
                expected += (len(units) - 1) / len(units) * change**2
        assert_allclose(sums.variance(result.metric.finalize)[0], expected)


def test_comparisons():
    y, score, columns = lists(seed=4)
    a = metrics.pairwise_exposure(y, score, **columns)
    b = metrics.pairwise_exposure(y, score + 0.3 * y, **columns)
    ways = [
        compare(
            *(metrics.GroupEstimates(r.metric, getattr(r.sums, way)) for r in (a, b))
        )
        for way in ("users", "items", "crossed")
    ]
    users, items, crossed = (way.standard_error**2 for way in ways)
    expected = users + np.maximum(items - crossed, 0)
    assert_allclose(compare(a, b).standard_error ** 2, expected)
    # Samples of one catalogue have its items in common.
    assert (compare_independent(a, b).standard_error > 0).all()
    # The gaps of two groups are alike, and so is what other items add to each.
    other = lists(seed=5)
    other[2]["cluster"] += 100
    one, two = metrics.exposure_gap(y, score, **columns), measured("gap", other)
    apart = compare_independent(one, two)
    assert_allclose(*apart.standard_error)
    assert_allclose(apart.df[0], apart.df[1])


def test_a_catalogue_without_recurrence_changes_nothing():
    y, score, columns = lists()
    columns["cluster"][:, 1] = np.arange(y.size)
    two = metrics.pairwise_accuracy(y, score, **columns)
    columns["cluster"] = columns["cluster"][:, 0]
    one = metrics.pairwise_accuracy(y, score, **columns)
    assert_allclose(two.standard_error, one.standard_error)
    assert_allclose(two.df, one.df)


@pytest.mark.parametrize("weight", [2.5, np.arange(24) % 3 + 1.0])
def test_weights_of_queries(weight):
    y, score, columns = lists()
    weights = np.broadcast_to(weight, 24)[columns["qid"]]
    result = metrics.pairwise_accuracy(y, score, sample_weight=weights, **columns)
    scaled = metrics.pairwise_accuracy(y, score, sample_weight=7 * weights, **columns)
    assert_allclose(result.covariance, scaled.covariance)
    plain = metrics.pairwise_accuracy(y, score, **columns)
    assert np.allclose(result.covariance, plain.covariance) == (np.ndim(weight) == 0)


def test_refusals():
    y, score, columns = lists()
    with pytest.raises(ValueError, match="cluster must be one column here"):
        metrics.dips(y, score, **columns)
    with pytest.raises(ValueError, match="cluster must be one column with"):
        metrics.pairwise_accuracy(y, score, average="queries", **columns)
    with pytest.raises(ValueError, match="The bootstrap resamples clusters"):
        metrics.pairwise_accuracy(y, score, **columns).resampled()
    columns["cluster"] = np.repeat(columns["cluster"], 2, axis=1)
    with pytest.raises(ValueError, match="cluster must be one column of labels, or"):
        metrics.group_mean(y, cluster=columns["cluster"])
