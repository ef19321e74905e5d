"""The smoother as a scikit-learn regressor."""

import itertools
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import cross_val_score

from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.smoothing import NadarayaWatsonRegressor, nadaraya_watson
from tests.reference import predictive_parity as naive
from tests.versions import each_check


@each_check(
    NadarayaWatsonRegressor(),
    NadarayaWatsonRegressor("cv"),
    NadarayaWatsonRegressor(1.0, cluster_weight="row", method="exact"),
    rarely=[NadarayaWatsonRegressor("undersmooth", method="fast")],
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def clustered(n_columns=1, seed=0):
    rng = np.random.default_rng(seed)
    cluster = rng.permutation(np.repeat(np.arange(30), 1 + rng.poisson(3, 30)))
    X = rng.random((cluster.size, n_columns))
    return X, X.sum(1) + rng.normal(size=30)[cluster], cluster


@pytest.mark.parametrize("method", ["exact", "fast"])
def test_one_column_is_the_curve(method):
    X, y, cluster = clustered()
    grid = np.linspace(0, 1, 50)
    for rule, weight in itertools.product(
        ("rule_of_thumb", "undersmooth", "cv", 0.1), ("cluster", "row")
    ):
        options = {"bandwidth": rule, "cluster_weight": weight, "method": method}
        curve = nadaraya_watson(y, X[:, 0], grid, cluster=cluster, **options)
        model = NadarayaWatsonRegressor(**options).fit(X, y, cluster=cluster)
        assert model.bandwidth_ == curve.bandwidth
        assert model.n_clusters_ == 30
        np.testing.assert_allclose(model.predict(grid[:, None]), curve.estimate)


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "tricube"])
def test_product_kernel_is_that_of_the_loops(kernel):
    X, y, cluster = clustered(2)
    points = np.random.default_rng(1).random((6, 2))
    bandwidth = [0.4, 0.6]
    model = NadarayaWatsonRegressor(bandwidth, kernel=kernel)
    found = model.fit(X, y, cluster=cluster).predict(points)
    sizes = np.bincount(cluster)
    of_column = np.vectorize(naive.KERNELS[kernel])
    for point, value in zip(points, found, strict=True):
        weights = of_column((X - point) / bandwidth).prod(axis=1) / sizes[cluster]
        assert value == pytest.approx(np.average(y, weights=weights), rel=1e-12)


def test_bandwidths_of_several_columns():
    X, y, cluster = clustered(3)
    X[:, 1] *= 100
    X[:, 2] = 7.0
    h, smaller = (
        NadarayaWatsonRegressor().fit(x, y, cluster=cluster).bandwidth_
        for x in (X, X / 100)
    )
    assert h[1] == pytest.approx(100 * smaller[1])
    assert h[2] == 1.0
    by_row = NadarayaWatsonRegressor().fit(X, y).bandwidth_
    under = NadarayaWatsonRegressor("undersmooth").fit(X, y).bandwidth_
    np.testing.assert_allclose(under[:2] / by_row[:2], len(y) ** (1 / 7 - 1 / 6))


def test_cross_validation_leaves_clusters_out_of_several_columns():
    X, y, cluster = clustered(2)
    factor = (
        NadarayaWatsonRegressor("cv").fit(X, y, cluster=cluster).bandwidth_
        / NadarayaWatsonRegressor().fit(X, y, cluster=cluster).bandwidth_
    )
    assert factor[0] == pytest.approx(factor[1])


def test_far_away_the_nearest_row_decides():
    model = NadarayaWatsonRegressor(0.01).fit([[0.0], [1.0], [1.0]], [5.0, 7.0, 9.0])
    assert model.predict([[-50.0], [60.0], [1e6]]).tolist() == [5, 8, 8]
    plane = NadarayaWatsonRegressor(0.01).fit([[0.0, 0], [1, 0]], [5.0, 7.0])
    assert plane.predict([[-50.0, 3], [60, 3]]).tolist() == [5, 7]


def test_no_row_within_a_compact_kernel_is_nan():
    model = NadarayaWatsonRegressor(0.1, kernel="uniform").fit([[0.0], [1]], [5, 7])
    with pytest.warns(UndefinedMetricWarning, match="1 of 2 predictions"):
        found = model.predict([[0.05], [0.5]])
    np.testing.assert_array_equal(found, [5, np.nan])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_cluster_is_a_column_of_x(frame):
    X, y, cluster = clustered()
    table = frame({"person": cluster, "score": X[:, 0]})
    model = NadarayaWatsonRegressor(0.1, cluster="person")
    by_column = model.fit(table, y).predict(table)
    by_argument = NadarayaWatsonRegressor(0.1).fit(X, y, cluster=cluster).predict(X)
    np.testing.assert_array_equal(by_column, by_argument)
    alone = table[["score"]]  # the clusters are needed in fit only
    np.testing.assert_array_equal(model.predict(alone), by_column)
    assert model.feature_names_in_.tolist() == ["score"]
    with pytest.raises(ValueError, match="cluster must be given once"):
        model.fit(table, y, cluster=cluster)
    with pytest.raises(ValueError, match="cluster must name columns of X"):
        model.fit(table["score"].to_frame(), y)
    if frame is pd.DataFrame:
        assert np.isfinite(cross_val_score(model, table, y, cv=3)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bandwidth": "silverman"}, "bandwidth must be one of"),
        ({"bandwidth": [0.1, 0.2]}, "one for each of 1 columns; got 2"),
        ({"bandwidth": [-1.0]}, "bandwidth must be a number"),
        ({"bandwidth": 0}, "bandwidth must be a number"),
        ({"kernel": "cosine"}, "kernel must be one of"),
        ({"method": 3}, "method must be one of"),
        ({"cluster_weight": None}, "cluster_weight must be one of"),
        ({"cluster": 0.5}, "cluster must be a column name"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        NadarayaWatsonRegressor(**options).fit([[0.0], [1.0]], [0, 1])


def test_bad_columns():
    model = NadarayaWatsonRegressor()
    with pytest.raises(ValueError, match="y must have its rows in the order of X"):
        model.fit(pd.DataFrame({"x": [0.0, 1.0]}), pd.Series([0, 1], index=[1, 0]))
    with pytest.raises(ValueError, match="cluster: 3"):
        model.fit([[0.0], [1.0]], [0, 1], cluster=[1, 2, 3])
    with pytest.raises(ValueError, match="sample_weight must not be negative"):
        model.fit([[0.0], [1.0]], [0, 1], sample_weight=[1, -1])
    with pytest.raises(ValueError, match="X must have a column of features beside"):
        NadarayaWatsonRegressor(cluster="c").fit(pd.DataFrame({"c": [0, 1]}), [0, 1])


def test_one_place_or_one_cluster_has_a_mean():
    y = np.array([0.0, 1, 1, 1])
    for place in (0.5, 1e18):
        same = NadarayaWatsonRegressor(method="fast").fit(np.full((4, 1), place), y)
        np.testing.assert_allclose(same.predict([[place], [place + 9]]), 0.75)
    X = np.arange(4.0)[:, None]
    one = NadarayaWatsonRegressor(bandwidth=1.0).fit(X, y, cluster=[7] * 4)
    alone = NadarayaWatsonRegressor(bandwidth=1.0).fit(X, y)
    np.testing.assert_allclose(one.predict(X), alone.predict(X))


class TestGrid:
    @pytest.mark.parametrize("n_columns", [1, 2, 3])
    @pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "uniform"])
    def test_is_the_prediction_at_the_nodes(self, n_columns, kernel):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(200, n_columns)), rng.normal(size=200)
        model = NadarayaWatsonRegressor(0.4, kernel=kernel, method="exact").fit(X, y)
        # Nodes far away from all rows are among them.
        axes = [np.linspace(-20 - j, 3, 7 + j) for j in range(n_columns)]
        nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
        found = model.predict_grid(axes)
        assert found.shape == nodes.shape[:-1]
        with pytest.raises(ValueError, match="one axis for each of"):
            model.predict_grid([*axes, axes[0]])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            expected = model.predict(nodes.reshape(-1, n_columns))
        np.testing.assert_allclose(found.ravel(), expected, atol=1e-10)
