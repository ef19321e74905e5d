"""Curves of groups draw the numbers of their results."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LinearRegression, LogisticRegression

from skrankfair.display import CalibrationByGroupDisplay
from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.inference import marginal_outcome_test, predictive_parity_test
from tests.display.pictures import marginal
from tests.seeds import rarely


def rows(labels=("a", "b"), n=800, seed=0):
    rng = np.random.default_rng(seed)
    group = np.array(list(labels), dtype=object)[rng.integers(0, len(labels), n)]
    s = rng.random(n)
    return (rng.random(n) < s**2).astype(float), s, group


def corners(band):
    """Lower and upper ends of a band by score."""
    points = band.get_paths()[0].vertices
    return points[:, 1].min(), points[:, 1].max()


class TestPredictiveParity:
    def test_draws_the_numbers_of_the_test(self):
        y, s, group = rows("abc")
        t = predictive_parity_test(y, s, sensitive_features=group, grid=[0.5, 0.2, 0.8])
        display = t.plot()
        order = [1, 0, 2]
        for g, line in enumerate(display.lines_):
            np.testing.assert_array_equal(line.get_xdata(), [0.2, 0.5, 0.8])
            np.testing.assert_array_equal(line.get_ydata(), t.curves[g, order])
        for c, line in enumerate(display.difference_lines_):
            np.testing.assert_array_equal(line.get_ydata(), t.difference[c, order])
        low, high = t.band()
        for c, band in enumerate(display.difference_bands_):
            assert corners(band) == pytest.approx((low[c].min(), high[c].max()))
        low, high = t.curve_band()
        for g, band in enumerate(display.bands_):
            assert corners(band) == pytest.approx((low[g].min(), high[g].max()))
        labels = [line.get_label() for line in display.difference_lines_]
        assert labels == ["a − b", "a − c", "b − c"]

    def test_marks_where_it_rejects(self):
        y, s, group = rows(n=4000)
        y = np.where(group == "a", np.maximum(y, s < 0.3), y)
        t = predictive_parity_test(y, s, sensitive_features=group)
        display = t.plot()
        (marks,) = display.rejected_
        np.testing.assert_array_equal(marks.get_xdata(), t.grid[t.rejected[0]])
        assert 0 < len(marks.get_xdata()) < t.grid.size

    def test_pointwise_bands_and_given_axes(self):
        y, s, group = rows()
        t = predictive_parity_test(y, s, sensitive_features=group)
        _, axes = plt.subplots(2)
        display = t.plot(axes=axes, kind="pointwise", xlabel="risk", ylabel="ill")
        assert display.axes_ == tuple(axes)
        assert axes[1].get_xlabel().startswith("risk\n")
        assert axes[0].get_ylabel() == "ill"
        low, high = t.band(kind="pointwise")
        ends = corners(display.difference_bands_[0])
        assert ends == pytest.approx((np.nanmin(low), np.nanmax(high)))
        assert "pointwise" in axes[1].get_xlabel()

    def test_histogram_is_of_the_scores_of_the_groups(self):
        y, s, group = rows()
        t = predictive_parity_test(y, s, sensitive_features=group, grid=[0.0, 0.5, 1.0])
        display = t.plot()
        for g, steps in zip("ab", display.histograms_, strict=True):
            counts, edges = np.histogram(s[group == g], bins=40, range=(0, 1))
            data = steps.get_data()
            np.testing.assert_allclose(data.edges, edges)
            np.testing.assert_allclose(data.values, counts / counts.sum())

    def test_undefined_draws_nothing_there(self):
        y, s, group = rows("abz")
        cluster = np.where(group == "z", 0, np.arange(1, s.size + 1))
        with pytest.warns(UndefinedMetricWarning, match="z"):
            t = predictive_parity_test(y, s, sensitive_features=group, cluster=cluster)
        display = t.plot()
        assert np.isnan(display.lines_[2].get_ydata()).all()
        display.figure_.canvas.draw()

    def test_one_point_has_no_histogram(self):
        y, s, group = rows()
        t = predictive_parity_test(y, s, sensitive_features=group, grid=[0.5])
        assert t.plot().histograms_ == []

    def test_bad_options(self):
        y, s, group = rows()
        t = predictive_parity_test(y, s, sensitive_features=group)
        with pytest.raises(ValueError, match="axes must be two axes"):
            t.plot(axes=plt.subplots()[1])
        with pytest.raises(ValueError, match="kind must be one of"):
            t.plot(kind="wide")


class TestMarginalOutcome:
    def test_draws_the_numbers_of_the_test(self):
        y, s, group = rows("abc")
        t = marginal_outcome_test(y, s, sensitive_features=group, threshold=0.5)
        display = t.plot()
        low, high = t.outcome_interval()
        for g in range(3):
            assert display.points_[g].get_xdata()[0] == t.outcomes[g]
            ends = display.intervals_[g].get_xdata()
            np.testing.assert_array_equal(ends, [low[g], high[g]])
        np.testing.assert_array_equal(
            display.above_.get_xdata(), t.inframarginal.estimate
        )
        assert "p = " in display.ax_.get_xlabel()

    def test_missing_group_and_given_axes(self):
        _, ax = plt.subplots()
        display = marginal("ab")
        display.test.outcomes[1] = np.nan
        display.plot(ax=ax, xlabel="$repaid_")
        assert display.ax_ is ax
        assert len(display.points_) == 1
        assert ax.get_xlabel().startswith("$repaid_\n")
        display.figure_.canvas.draw()


class TestCalibration:
    def test_from_predictions_is_the_curve_of_the_test(self):
        y, s, group = rows()
        grid = np.linspace(0.1, 0.9, 9)
        display = CalibrationByGroupDisplay.from_predictions(
            y, s, sensitive_features=group, grid=grid
        )
        t = predictive_parity_test(y, s, sensitive_features=group, grid=grid)
        low, high = t.curve_band()
        np.testing.assert_array_equal(display.curves, t.curves)
        np.testing.assert_array_equal(display.ci_low, low)
        np.testing.assert_array_equal(display.ci_high, high)
        for g, line in enumerate(display.lines_):
            np.testing.assert_array_equal(line.get_ydata(), t.curves[g])
        np.testing.assert_array_equal(display.diagonal_.get_ydata(), [0.1, 0.9])

    def test_band_contains_the_truth(self):
        y, s, _ = rows(n=5000)
        display = CalibrationByGroupDisplay.from_predictions(y, s)
        assert display.groups == ("all",)
        inside = (display.grid > 0.1) & (display.grid < 0.9)
        truth = display.grid[inside] ** 2
        assert (display.ci_low[0, inside] <= truth).all()
        assert (truth <= display.ci_high[0, inside]).all()

    def test_from_a_classifier_on_a_frame(self):
        y, s, group = rows()
        X = pd.DataFrame({"x": s, "who": group, "person": np.arange(s.size) // 2})
        y = np.where(y > 0, "yes", "no")

        class OnX(ClassifierMixin, BaseEstimator):
            def fit(self, X, y):
                self.model_ = LogisticRegression().fit(X[["x"]], y)
                self.classes_ = self.model_.classes_
                return self

            def predict_proba(self, X):
                return self.model_.predict_proba(X[["x"]])

        model = OnX().fit(X, y)
        display = CalibrationByGroupDisplay.from_estimator(
            model, X, y, sensitive_features="who", cluster="person"
        )
        expected = CalibrationByGroupDisplay.from_predictions(
            y == "yes",
            model.predict_proba(X)[:, 1],
            sensitive_features=group,
            cluster=X["person"],
        )
        np.testing.assert_array_equal(display.curves, expected.curves)
        np.testing.assert_array_equal(display.ci_low, expected.ci_low)

    def test_from_a_regressor_with_values(self):
        y, s, group = rows()
        X = s[:, None]
        model = LinearRegression().fit(X, y)
        display = CalibrationByGroupDisplay.from_estimator(
            model, X, y, sensitive_features=group, ax=plt.subplots()[1]
        )
        expected = CalibrationByGroupDisplay.from_predictions(
            y, model.predict(X), sensitive_features=group
        )
        np.testing.assert_array_equal(display.curves, expected.curves)

    def test_bad_input(self):
        y, s, _ = rows()
        X = s[:, None]
        model = LogisticRegression().fit(X, np.digitize(s, [0.3, 0.6]))
        with pytest.raises(ValueError, match="two classes.*it has 3"):
            CalibrationByGroupDisplay.from_estimator(model, X, y)
        model = LogisticRegression().fit(X, y)
        with pytest.raises(ValueError, match="sensitive_features='who' names a column"):
            CalibrationByGroupDisplay.from_estimator(
                model, X, y, sensitive_features="who"
            )
        with pytest.raises(ValueError, match="response_method"):
            CalibrationByGroupDisplay.from_estimator(
                model, X, y, response_method="decision_function"
            )
        with pytest.raises(ValueError, match="bandwidth"):
            CalibrationByGroupDisplay.from_predictions(y, s, bandwidth=0)
        with pytest.raises(ValueError, match="bandwidth"):
            CalibrationByGroupDisplay.from_predictions(y, s, bandwidth=np.nan)
        with pytest.raises(ValueError, match="y_score must have a finite spread"):
            CalibrationByGroupDisplay.from_predictions(y, np.full(y.size, 0.5))

    @pytest.mark.parametrize(
        ("options", "unknown", "message"),
        [
            ({"cluster": "one"}, [True, True], "fewer than two clusters: a, b"),
            ({"cluster": "one of b"}, [False, True], "fewer than two clusters: b"),
            ({"grid": [5.0, 6.0]}, [True, True], "on the whole grid.*for a, b"),
        ],
    )
    def test_undefined_curves(self, options, unknown, message):
        y, s, group = rows()
        number = np.arange(y.size)
        clusters = {
            "one": 0 * number,
            "one of b": np.where(group == "b", -1, number),
        }
        if "cluster" in options:
            options = {"cluster": clusters[options["cluster"]]}
        with pytest.warns(UndefinedMetricWarning, match=message):
            display = CalibrationByGroupDisplay.from_predictions(
                y, s, sensitive_features=group, **options
            )
        assert np.isnan(display.curves).all(axis=1).tolist() == unknown


@pytest.mark.parametrize(
    "label", ["_hidden", "<b>& $x^2$ 50 % {x}", *rarely("$x^2$", "a_b^c", "50 % {x}")]
)
def test_labels_are_data(label):
    y, s, group = rows((label, "b"))
    display = CalibrationByGroupDisplay.from_predictions(y, s, sensitive_features=group)
    display.figure_.canvas.draw()
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    texts = [text.replace("\\$", "$").lstrip("\u200b") for text in texts]
    assert sorted(texts) == sorted([label, "b", "score = outcome"])
