"""Calibrations of small groups borrow strength from the others."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from sklearn.neighbors import KNeighborsRegressor

from skrankfair.mitigation import GroupCalibrator, _curves, _shrinkage
from skrankfair.mitigation._shrinkage import fit_effects, levels_of
from tests.mitigation.data import METHODS, WAVE, scores


def groups(n, spread, seed, n_groups=8):
    """Rows to fit and fresh ones, of groups whose log-odds are lines of the score's."""
    rng = np.random.default_rng(seed)
    shift, slope = rng.normal(0, spread, n_groups), np.exp(rng.normal(0, 0.5 * spread))
    frames = []
    for size in (n, 300):
        X = pd.DataFrame({"score": rng.uniform(0.02, 0.98, size * n_groups)})
        X["group"] = np.repeat(np.arange(n_groups), size)
        expected = expit(shift[X["group"]] + slope * logit(X["score"]))
        frames.append((X, (rng.random(len(X)) < expected).astype(float), expected))
    return frames


def calibrator(method, **options):
    return GroupCalibrator(method, sensitive_features="group", **options)


def test_large_groups_have_their_own_curves():
    """Of any shape, which shift and slope of the common curve do not have."""
    waves = {"a": lambda s: 1 - WAVE["b"](s), "b": WAVE["b"]}
    X, y, truth = scores(12_000, 0, waves)
    found = calibrator("nadaraya_watson").fit(X, y).transform(X)[:, 0]
    assert np.sqrt(np.mean((found - truth) ** 2)) < 0.03
    alone = calibrator("nadaraya_watson", shrinkage=None).fit(X, y).transform(X)
    assert np.abs(found - alone[:, 0]).max() < 0.02


@pytest.mark.parametrize("method", METHODS)
def test_a_group_with_one_outcome_is_not_certain(method):
    (X, y, _), _ = groups(50, 0.5, 0)
    y = np.where(X["group"] == 0, 1.0, np.where(X["group"] == 1, 0.0, y))
    found = calibrator(method, monotonic=True).fit(X, y).transform(X)[:, 0]
    assert 0 < found.min() < found.max() < 1
    for group, outcome in ((0, 1), (1, 0)):
        assert 0.001 < np.abs(found - outcome)[X["group"] == group].mean() < 0.2


def test_isotonic_curves_fall_nowhere():
    (X, y, _), _ = groups(50, 0.5, 0)
    model = calibrator("isotonic").fit(X, 1 - y)
    assert all(curves.increasing for curves in model.calibrators_.values())


@pytest.mark.parametrize("method", [*METHODS, KNeighborsRegressor(5)])
@pytest.mark.parametrize("cluster", [None, "user"])
def test_the_order_of_rows_does_not_matter(few_steps, method, cluster):
    if cluster and not isinstance(method, str):
        pytest.skip("It takes no weights.")
    (X, y, _), (fresh, _, _) = groups(60, 0.5, 2, n_groups=4)
    rng = np.random.default_rng(0)
    apart = 0 if isinstance(method, str) else 1e-6
    X["score"] = X["score"].round(2) + apart * rng.random(len(X))
    if cluster:
        X["user"], fresh["user"] = rng.integers(0, 150, len(X)), 0
    model, found = calibrator(method, cluster=cluster), []
    shuffled = rng.permutation(len(X))
    for rows in (shuffled[np.argsort(y[shuffled])], np.arange(len(X))):
        model.fit(X.iloc[rows], y[rows])
        found.append(model.transform(fresh)[:, 0])
    np.testing.assert_allclose(*found, rtol=1e-8)


def test_a_weight_of_2_is_the_row_twice(few_steps):
    (X, y, _), (fresh, _, _) = groups(40, 0.5, 3, n_groups=4)
    times = np.random.default_rng(0).integers(0, 4, len(X))
    rows = np.repeat(np.arange(len(X)), times)
    for method in METHODS:
        model = calibrator(method)
        weighted = model.fit(X, y, sample_weight=times).transform(fresh)
        repeated = model.fit(X.iloc[rows], y[rows]).transform(fresh)
        np.testing.assert_allclose(weighted, repeated, rtol=1e-8)
        ever = model.fit(X, y, sample_weight=1e30 * times).transform(fresh)
        assert (np.abs(ever - 0.5) <= 0.5).all()


@pytest.mark.parametrize("cluster", [None, "user"])
def test_bins_of_many_scores_tell_as_much(few_steps, monkeypatch, cluster):
    (X, y, _), (fresh, _, _) = groups(60, 0.5, 5, n_groups=4)
    X["user"], fresh["user"] = np.arange(len(X)) // 3, 0
    weight = np.random.default_rng(0).integers(1, 4, len(X))
    model = calibrator("nadaraya_watson", cluster=cluster)
    exact = model.fit(X, y, sample_weight=weight).transform(fresh)
    monkeypatch.setattr(_curves, "_MANY", 10)
    each = model.fit(X, y, sample_weight=weight).transform(fresh)
    np.testing.assert_allclose(each, exact, rtol=1e-8)
    monkeypatch.setattr(_curves, "_BINS", 40)
    few = model.fit(X, y, sample_weight=weight).transform(fresh)
    assert 0 < np.abs(few - exact).max() < 0.05
    shuffled = np.random.default_rng(1).permutation(len(X))
    model.fit(X.iloc[shuffled], y[shuffled], sample_weight=weight[shuffled])
    np.testing.assert_allclose(model.transform(fresh), few, rtol=1e-8)


def test_real_outcomes_are_shifted_by_what_is_left():
    """Of lines with a common slope, and little data per group."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"score": rng.normal(size=600), "group": np.arange(600) % 20})
    truth = 10 + 3 * X["score"] + rng.normal(0, 1, 20)[X["group"]]
    y = truth + rng.normal(0, 2, 600)
    errors = {}
    for shrinkage in (None, "auto"):
        model = calibrator("isotonic", shrinkage=shrinkage).fit(X, y)
        errors[shrinkage] = np.mean((model.transform(X)[:, 0] - truth) ** 2)
    assert errors["auto"] < 0.6 * errors[None]


def test_levels_of_crossed_groups():
    first, second, cells = levels_of([("f", 1), ("f", 2), ("m", 1)])
    assert (first.tolist(), second.tolist()) == ([0, 0, 1], [0, 1, 0])
    assert cells.tolist() == [0, 1, 2]
    (cells,) = levels_of(["a", ("b", 1)])
    assert cells.tolist() == [0, 1]


def effects_of(y, n_groups, noise=1.0):
    """Return shifts of real outcomes of groups of the same size."""
    cell = np.repeat(np.arange(n_groups), y.size // n_groups)
    rows = np.zeros(y.size), np.ones((1, y.size)), y, np.full(y.size, 1 / noise), cell
    return fit_effects(*rows, [np.arange(n_groups)], odds=False)[:, 0]


def test_effects_are_those_of_an_analysis_of_variance(monkeypatch):
    """With a normal prior: the variance of the means of groups, less that of each."""
    monkeypatch.setattr(_shrinkage, "_TAIL", 1e12)
    rng = np.random.default_rng(0)
    y = np.repeat(rng.normal(3, 1, 12), 25) + rng.normal(0, 2, 300)
    means = y.reshape(12, 25).mean(axis=1)
    between, within = np.var(means, ddof=1), 4 / 25
    kept = (between - within) / between
    expected = means.mean() + kept * (means - means.mean())
    np.testing.assert_allclose(effects_of(y, 12, 4.0), expected, rtol=1e-6)


def test_a_group_unlike_the_others_shrinks_less_than_they_do():
    rng = np.random.default_rng(0)
    shift = np.append(rng.normal(0, 0.3, 20), 4)
    y = np.repeat(shift, 10) + rng.normal(0, 2, 210)
    means = y.reshape(21, 10).mean(axis=1)
    found = effects_of(y, 21, 4.0)
    assert abs(found[-1] - means[-1]) < 0.3 * (means[-1] - means[:-1].mean())
    assert np.std(found[:-1]) < 0.6 * np.std(means[:-1])
