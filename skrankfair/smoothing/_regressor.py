"""The smoother as a scikit-learn regressor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._estimates.finalize import quotient
from .._estimates.resampled import label_hashes
from .._inputs.by_name import numeric_features, take_column
from .._inputs.groups import Groups
from .._inputs.score_rows import Sample, ScoreRows, score_rows
from .._inputs.validation import (
    Array,
    as_numbers,
    check_aligned,
    check_choice,
    unique_rows,
    warn_user,
)
from ._bandwidth import check_bandwidth, rule_bandwidths
from ._curve import METHODS
from ._kernels import get_kernel, kernel_sums, kernel_values, product_weights

_CHUNK = 1 << 20
# Kernel values, and shares of all weights, that are nothing on a grid.
_SMALLEST, _THIN = 1e-120, 1e-100


@dataclass(frozen=True)
class Pooled:
    """Weight and weighted outcome of each distinct row of features.

    Attributes
    ----------
    features : ndarray of shape (m, d)
        In order.
    sums : ndarray of shape (2, m)
        Sums over the rows with these features of weight times outcome, and of weight.
    clusters : ndarray of shape (M,), uint64
        A hash of each cluster; empty where rows have none.
    unit : {"cluster", "row"} or None
        What has weight one; None where rows have no cluster.
    """

    features: Array
    sums: Array
    clusters: Array
    unit: str | None

    @classmethod
    def of(cls, features: Array, columns: Array, clusters: Array, unit: Any) -> Pooled:
        """Return the sums of columns, (2, n), over rows of features, (n, d)."""
        distinct, place = unique_rows(features)
        sums = np.stack([np.bincount(place, column) for column in columns])
        return cls(distinct, sums, clusters, unit if clusters.size else None)

    def __add__(self, other: Pooled) -> Pooled:
        """Return the sums over the rows of both, which share no cluster."""
        if self.unit != other.unit:
            raise ValueError(
                "cluster must be given for all batches or for none, and cluster_weight "
                f"must stay; got {other.unit!r} after {self.unit!r} (None: no cluster)."
            )
        if n_shared := np.intersect1d(self.clusters, other.clusters).size:
            raise ValueError(
                "cluster must have all rows of a cluster in one batch; "
                f"{n_shared} of this batch were in batches before."
            )
        return Pooled.of(
            np.concatenate([self.features, other.features]),
            np.concatenate([self.sums, other.sums], axis=1),
            np.concatenate([self.clusters, other.clusters]),
            self.unit,
        )


def adds_up(rule: Any) -> bool:
    """Return True if sums are enough for the rule; raise an AttributeError if not."""
    if isinstance(rule, str) and rule == "cv":
        raise AttributeError(
            "partial_fit needs a bandwidth that is a number, or a rule other than 'cv'."
        )
    return True


class NadarayaWatsonRegressor(RegressorMixin, BaseEstimator):
    """Kernel regression in which every cluster of dependent rows has weight one.

    The prediction at x is the weighted mean of the outcomes, ``Σ_i w_i y_i K_i /
    Σ_i w_i K_i``, ``K_i`` the product over the columns of ``K((x_i - x) / h)`` and
    ``w_i`` one over the number of rows in the cluster of row i. One column has a fast
    path whose time does not grow with the number of predictions; a few columns are
    computed directly.

    Parameters
    ----------
    bandwidth : {"rule_of_thumb", "undersmooth", "cv"}, float or sequence of float, \
            default="rule_of_thumb"
        A rule as in `nadaraya_watson`, with ``M^(-1/(4+d))`` (to undersmooth
        ``M^(-1/(3+d))``) for d columns; a number; or a number for each column.
    kernel : {"gaussian", "epanechnikov", "tricube", "uniform", "gaussian4", \
            "flat_top"}, default="gaussian"
    cluster : str, callable or None, default=None
        The column of X with the cluster, which is no feature, or a function of X. None:
        `cluster` may be passed to `fit`; without it every row is a cluster.
    cluster_weight : {"cluster", "row"}, default="cluster"
        "row": every row has weight one.
    method : {"auto", "exact", "fast"}, default="auto"
        As in `nadaraya_watson`, for one column.

    Attributes
    ----------
    bandwidth_ : ndarray of shape (d,)
        One for each column; 1 for a column without spread.
    n_clusters_ : float
        Number of clusters (of rows, with their weights).
    n_features_in_ : int
        Number of columns seen in `fit`, that of the cluster included.
    feature_names_in_ : ndarray of str
        Their names, if X has names.

    See Also
    --------
    nadaraya_watson : The curve with its standard errors.

    Notes
    -----
    A compact kernel has no prediction where there is no row within the bandwidth, nor
    a higher-order kernel where its weights sum to less than 0: it is NaN there, with
    an `UndefinedMetricWarning`. The gaussian kernel predicts the nearest outcome far
    away from all rows.

    References
    ----------
    DiCiccio, C., Hsu, B., Yu, Y., Nandy, P., Basu, K. (2023). "Detection and Mitigation
    of Algorithmic Bias via Predictive Parity". FAccT '23, §3.

    Examples
    --------
    >>> import numpy as np
    >>> from skrankfair.smoothing import NadarayaWatsonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(2000, 1))
    >>> y = np.sin(6 * X[:, 0]) + 0.1 * rng.normal(size=2000)
    >>> model = NadarayaWatsonRegressor(bandwidth=0.05).fit(X, y)
    >>> model.predict([[0.25], [0.5]]).round(2)
    array([0.96, 0.13])
    """

    def __init__(
        self,
        bandwidth: Any = "rule_of_thumb",
        *,
        kernel: str = "gaussian",
        cluster: Any = None,
        cluster_weight: str = "cluster",
        method: str = "auto",
    ) -> None:
        self.bandwidth = bandwidth
        self.kernel = kernel
        self.cluster = cluster
        self.cluster_weight = cluster_weight
        self.method = method

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, cluster: Any = None
    ) -> NadarayaWatsonRegressor:
        """Keep the rows and choose the bandwidth.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weight of the row: a weight of 2 counts the row twice, as scikit-learn has
            it; with clusters a curve takes it as importance, which has no scale.
        cluster : array-like of shape (n_samples,) or None, default=None
            Independent units, if the constructor names no column of X.

        Returns
        -------
        NadarayaWatsonRegressor

        Raises
        ------
        ValueError
            For an unknown option, a bandwidth that is not positive, or a cluster that
            is given twice, is missing or of another length.
        """
        self._X, sample, _ = self._sample(X, y, sample_weight, cluster)
        self._columns = sample.columns(sample.y)
        self.bandwidth_ = self._bandwidths(sample)
        self.n_clusters_ = sample.n_active
        self._pooled: Pooled | None = None
        return self

    @available_if(lambda self: adds_up(self.bandwidth))
    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None, cluster: Any = None
    ) -> NadarayaWatsonRegressor:
        """Add a batch of rows to those of the calls before.

        The fit is that of all rows at once. What is kept is a sum for each distinct row
        of features, so that scores that are rounded, or counted by an engine, take
        memory for the distinct ones only. The rows of a cluster must be in one batch,
        and all batches have clusters, with one `cluster_weight`, or none has.
        After `fit` it starts anew, and with ``bandwidth="cv"`` there is none.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weight of the row: a weight of 2 counts the row twice, as scikit-learn has
            it; with clusters a curve takes it as importance, which has no scale.
        cluster : array-like of shape (n_samples,) or None, default=None
            Independent units, if the constructor names no column of X.

        Returns
        -------
        NadarayaWatsonRegressor

        Raises
        ------
        ValueError
            As `fit` does, for a cluster of two batches, and for a bandwidth by a rule
            with clusters and ``cluster_weight="row"``, which sums do not tell.
        """
        known = getattr(self, "_pooled", None)
        features, sample, labels = self._sample(
            X, y, sample_weight, cluster, reset=known is None
        )
        by_row = self.cluster_weight == "row" and labels is not None
        if isinstance(self.bandwidth, str) and by_row:
            raise ValueError(
                "bandwidth must be a number for partial_fit with clusters and "
                f"cluster_weight='row'; got {self.bandwidth!r}."
            )
        hashes = np.empty(0, np.uint64) if labels is None else label_hashes(labels)
        columns, unit = sample.columns(sample.y), self.cluster_weight
        pooled = Pooled.of(features, columns, hashes, unit)
        n_clusters = sample.n_active
        if known is not None:
            pooled, n_clusters = known + pooled, n_clusters + self.n_clusters_
        self._X, self._columns = pooled.features, pooled.sums
        total, weight = pooled.sums
        scaled = weight * (n_clusters / weight.sum())
        n_rows, x, y = weight.size, self._X[:, 0], total / weight
        one_group, row = Groups.of_everyone(n_rows), np.arange(n_rows)
        whole = ScoreRows(y, x, one_group, None, scaled, row).sample("row")
        self.bandwidth_ = self._bandwidths(replace(whole, repeated=True))
        self.n_clusters_ = n_clusters
        self._pooled = pooled
        return self

    def _sample(
        self, X: Any, y: Any, sample_weight: Any, cluster: Any, reset: bool = True
    ) -> tuple[Array, Sample, Array | None]:
        """Return features and rows by cluster, and the labels of the clusters.

        Rows of weight 0 are left out.
        """
        get_kernel(self.kernel)
        check_choice(self.method, "method", METHODS)
        cluster = take_column(self, X, "cluster", cluster)
        check_aligned(X=X, y=y, cluster=cluster, sample_weight=sample_weight)
        options = {"y": y, "reset": reset, "y_numeric": True}
        features, y = numeric_features(self, X, "features", **options)
        rows = score_rows(
            y,
            features[:, 0],
            cluster=cluster,
            sample_weight=sample_weight,
            names=("y", "X"),
        )
        labels = None if rows.cluster is None else rows.cluster.labels
        sample = rows.pooled(self.cluster_weight)
        features = features[rows.kept[sample.row]]
        return features, replace(sample, repeated=labels is None), labels

    def predict(self, X: Any) -> Array:
        """Return the smoothed outcome at each row.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
            The column of the cluster, if the constructor names one, may be missing.

        Returns
        -------
        ndarray of shape (n_samples,)

        Warns
        -----
        UndefinedMetricWarning
            Where no row of the fit has a weight, whose prediction is NaN.
        """
        check_is_fitted(self)
        points = numeric_features(self, X, "features")
        kernel = get_kernel(self.kernel)
        if points.shape[1] > 1:
            means = self._product_means(points)
        else:
            p, x, h = points[:, 0], self._X[:, 0], float(self.bandwidth_[0])
            total, mass = kernel_sums(p, x, self._columns, h, kernel, self.method)
            means = quotient(total, mass, mass > 0)
            self._fill_far(means, [p])
        if (missing := np.isnan(means)).any():
            warn_user(
                f"{int(missing.sum())} of {means.size} predictions are undefined "
                f"(NaN): no row is near for kernel={self.kernel!r} and bandwidth "
                f"{', '.join(f'{h:g}' for h in self.bandwidth_)}."
            )
        return means

    def predict_grid(self, axes: Sequence[Any]) -> Array:
        """Return the smoothed outcome at every node of a grid.

        A product of kernels separates there, so a grid costs little more than the nodes
        along its axes.

        Parameters
        ----------
        axes : sequence of array-like of shape (k_j,)
            The nodes along each column of features.

        Returns
        -------
        ndarray of shape (k_1, ..., k_d)
            NaN where no row of the fit has a weight.

        Raises
        ------
        ValueError
            Unless there is one axis for each column of features.
        """
        check_is_fitted(self)
        if len(axes) != self._X.shape[1]:
            raise ValueError(
                f"axes must have one axis for each of {self._X.shape[1]} columns; got "
                f"{len(axes)}."
            )
        nodes = [as_numbers(axis, "axes") for axis in axes]
        kernel, columns = get_kernel(self.kernel), self._columns
        sums = np.zeros((2, *(axis.size for axis in nodes)))
        step = max(1, _CHUNK // max(nodes[-1].size, sums.size // nodes[-1].size))
        for start in range(0, len(self._X), step):
            rows = slice(start, start + step)
            tables = []
            for x, axis, h in zip(self._X[rows].T, nodes, self.bandwidth_, strict=True):
                values = kernel_values(x, axis[:, None], h, kernel)
                values[np.abs(values) < _SMALLEST] = 0.0  # products of less are slow
                tables.append(values)
            # All nodes of the last axis and of the others in one product of matrices.
            weighted = columns[:, rows]
            for values in tables[:-1]:
                weighted = (weighted[:, None] * values).reshape(-1, values.shape[1])
            sums += (weighted @ tables[-1].T).reshape(sums.shape)
        total, mass = sums
        means = quotient(total, mass, mass > _THIN * columns[1].sum())
        self._fill_far(means, nodes)
        return means

    def _product_means(self, points: Array) -> Array:
        """Return the weighted mean outcome at points, (P, d); NaN without a weight."""
        means, kernel = np.empty(len(points)), get_kernel(self.kernel)
        for some, weights in product_weights(points, self._X, self.bandwidth_, kernel):
            total, mass = self._columns @ weights.T
            means[some] = quotient(total, mass, mass > 0)
        return means

    def _fill_far(self, means: Array, axes: Sequence[Array]) -> None:
        """Fill in the mean of the nearest rows where gaussian weights are too small.

        It is their limit; other kernels have none.
        """
        far = np.argwhere(np.isnan(means)).T
        if far.size and self.kernel == "gaussian":
            points = np.stack([a[i] for a, i in zip(axes, far, strict=True)], axis=1)
            means[tuple(far)] = self._product_means(points)

    def _bandwidths(self, sample: Sample) -> Array:
        """Return the bandwidth of each column, 1 for a column without spread."""
        rule, n_columns = self.bandwidth, self._X.shape[1]
        if isinstance(rule, str):
            check_bandwidth(rule)
            return rule_bandwidths(rule, self._X, sample, get_kernel(self.kernel))
        numbers = [rule] * n_columns if isinstance(rule, Real) else rule
        bandwidths = as_numbers(numbers, "bandwidth")
        if bandwidths.size != n_columns:
            raise ValueError(
                f"bandwidth must be one number or one for each of {n_columns} columns; "
                f"got {bandwidths.size}."
            )
        for bandwidth in numbers:
            check_bandwidth(bandwidth)
        return bandwidths
