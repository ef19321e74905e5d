"""Curves of outcomes by score draw the numbers of their results."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline

from skrankfair.display import CalibrationByGroupDisplay
from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.inference import predictive_parity_test
from tests.display.pictures import ends_of, outcomes_of

from_predictions = CalibrationByGroupDisplay.from_predictions
from_estimator = CalibrationByGroupDisplay.from_estimator
#: Units of the rows of `outcomes_of`, of which "b" has one.
OF_B = np.where(outcomes_of()[2] == "b", -1, np.arange(800))


def test_one_group_is_highlighted_among_the_others():
    y, s, group = outcomes_of("abcd", n=1000)
    whole = from_predictions(y, s, sensitive_features=group)
    display = whole.plot(highlight="c")
    (line,) = display.lines_
    assert line.get_label() == "c"
    np.testing.assert_array_equal(line.get_ydata(), whole.curves[2])
    ends = np.array([whole.ci_low[2], whole.ci_high[2]])
    ends = ends[:, ~np.isnan(ends).any(axis=0)]
    np.testing.assert_array_equal(ends_of(display.bands_[0]), ends)
    # The others are thin lines without bands, and the diagonal is there.
    assert len(display.ax_.lines) == 5
    assert len(display.ax_.collections) == 1
    with pytest.raises(ValueError, match="highlight must be one of"):
        whole.plot(highlight="x")


class TestPredictiveParity:
    def test_draws_the_numbers_of_the_test(self):
        y, s, group = outcomes_of("abc")
        t = predictive_parity_test(y, s, sensitive_features=group, grid=[0.5, 0.2, 0.8])
        display, order = t.plot(), [1, 0, 2]
        differences = display.difference_lines_, display.difference_bands_
        for lines, bands, values, ends in (
            (display.lines_, display.bands_, t.curves, t.curve_band()),
            (*differences, t.difference, t.band()),
        ):
            for i, (line, band) in enumerate(zip(lines, bands, strict=True)):
                np.testing.assert_array_equal(line.get_xdata(), [0.2, 0.5, 0.8])
                np.testing.assert_array_equal(line.get_ydata(), values[i, order])
                expected = [end[i, order] for end in ends]
                np.testing.assert_allclose(ends_of(band), expected)
        labels = [line.get_label() for line in display.difference_lines_]
        assert labels == ["a − b", "a − c", "b − c"]

    def test_marks_where_it_rejects(self):
        y, s, group = outcomes_of(n=4000)
        y = np.where(group == "a", np.maximum(y, s < 0.3), y)
        t = predictive_parity_test(y, s, sensitive_features=group)
        (marks,) = t.plot().rejected_
        np.testing.assert_array_equal(marks.get_xdata(), t.grid[t.rejected[0]])
        assert 0 < len(marks.get_xdata()) < t.grid.size

    def test_options(self):
        y, s, group = outcomes_of()
        t = predictive_parity_test(y, s, sensitive_features=group)
        display = t.plot(kind="pointwise", xlabel="risk", ylabel="ill")
        assert display.axes_[1].get_xlabel().startswith("risk\n95% pointwise bands")
        assert display.axes_[0].get_ylabel() == "ill"
        low, high = t.band(kind="pointwise")
        ends = ends_of(display.difference_bands_[0])
        assert ends.min() == np.nanmin(low)
        assert ends.max() == np.nanmax(high)
        with pytest.raises(ValueError, match="axes must be two axes"):
            t.plot(axes=plt.subplots()[1])
        with pytest.raises(ValueError, match="kind must be one of"):
            t.plot(kind="wide")

    def test_histogram_is_of_the_scores_of_the_groups(self):
        y, s, group = outcomes_of()
        t = predictive_parity_test(y, s, sensitive_features=group, grid=[0.0, 0.5, 1.0])
        for g, steps in zip("ab", t.plot().histograms_, strict=True):
            counts, edges = np.histogram(s[group == g], bins=40, range=(0, 1))
            data = steps.get_data()
            np.testing.assert_allclose(data.edges, edges)
            np.testing.assert_allclose(data.values, counts / counts.sum())
        t = predictive_parity_test(y, s, sensitive_features=group, grid=[0.5])
        assert t.plot().histograms_ == []


class TestCalibration:
    def test_from_predictions_is_the_curve_of_the_test(self):
        y, s, group = outcomes_of()
        who = {"sensitive_features": group, "grid": np.linspace(0.1, 0.9, 9)}
        display = from_predictions(y, s, **who)
        t = predictive_parity_test(y, s, **who)
        np.testing.assert_array_equal(display.curves, t.curves)
        np.testing.assert_array_equal(
            [display.ci_low, display.ci_high], [*map(np.asarray, t.curve_band())]
        )
        for g, line in enumerate(display.lines_):
            np.testing.assert_array_equal(line.get_ydata(), t.curves[g])
        np.testing.assert_array_equal(display.diagonal_.get_ydata(), [0.1, 0.9])
        assert from_predictions(y, s).groups == ("all",)

    def test_from_a_classifier_on_a_frame(self):
        y, s, group = outcomes_of()
        X = pd.DataFrame({"x": s, "who": group, "person": np.arange(s.size) // 2})
        y = np.where(y > 0, "yes", "no")
        on_x = make_column_transformer(("passthrough", ["x"]))
        model = make_pipeline(on_x, LogisticRegression()).fit(X, y)
        named = {"sensitive_features": "who", "cluster": "person"}
        display = from_estimator(model, X, y, **named)
        who = {"sensitive_features": group, "cluster": X["person"]}
        expected = from_predictions(y == "yes", model.predict_proba(X)[:, 1], **who)
        np.testing.assert_array_equal(display.curves, expected.curves)
        np.testing.assert_array_equal(display.ci_low, expected.ci_low)

    def test_from_a_regressor_with_values(self):
        y, s, group = outcomes_of()
        model = LinearRegression().fit(s[:, None], y)
        who = {"sensitive_features": group}
        display = from_estimator(model, s[:, None], y, **who)
        expected = from_predictions(y, model.predict(s[:, None]), **who)
        np.testing.assert_array_equal(display.curves, expected.curves)

    @pytest.mark.parametrize(
        ("n_classes", "options", "message"),
        [
            (3, {}, "two classes.*it has 3"),
            (2, {"sensitive_features": "who"}, "sensitive_features='who' names a col"),
            (2, {"response_method": "decision_function"}, "response_method"),
            (2, {"bandwidth": 0}, "bandwidth"),
        ],
    )
    def test_bad_input(self, n_classes, options, message):
        _, s, _ = outcomes_of()
        y = np.floor(n_classes * s)
        model = LogisticRegression().fit(s[:, None], y)
        with pytest.raises(ValueError, match=message):
            from_estimator(model, s[:, None], y, **options)

    @pytest.mark.parametrize(
        ("options", "unknown", "message"),
        [
            ({"cluster": np.zeros(800)}, [True, True], "fewer than two clusters: a, b"),
            ({"cluster": OF_B}, [False, True], "fewer than two clusters: b"),
            ({"grid": [5.0, 6.0]}, [True, True], "on the whole grid.*for a, b"),
        ],
    )
    def test_undefined_curves(self, options, unknown, message):
        y, s, group = outcomes_of()
        with pytest.warns(UndefinedMetricWarning, match=message):
            display = from_predictions(y, s, sensitive_features=group, **options)
        assert np.isnan(display.curves).all(axis=1).tolist() == unknown
        assert np.isnan(display.lines_[1].get_ydata()).all()
