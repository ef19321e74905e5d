"""Local regressions of matched pairs, their bandwidth, and calipers with power."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skrankfair.metrics import matched_pair_calibration, matched_pair_curve

REGRESSIONS = ("local_linear", "local_quadratic")


def test_values_are_those_of_rdrobust():
    """rdrobust 2.1.1 with p=1, b=h and a triangular kernel, pairs and their mirror."""
    rng = np.random.default_rng(7)
    q, s = np.repeat(np.arange(30), 8), rng.integers(0, 200, 240) / 200
    g = rng.permutation(240) % 2
    y = np.sin(3 * s) + 0.2 * g + rng.normal(0, 0.3, 240).round(2)
    conventional = {0.3: 0.25086353038067266, 0.6: 0.16290307427839518}
    corrected = {0.3: 0.22478996954545288, 0.6: 0.2416313848147798}
    for h in (0.3, 0.6):
        for estimator, expected in zip(
            REGRESSIONS, (conventional, corrected), strict=True
        ):
            r = matched_pair_calibration(
                y, s, sensitive_features=g, qid=q, epsilon=h, estimator=estimator
            )
            assert r.estimate[1] == pytest.approx(expected[h], abs=1e-12)


@pytest.mark.filterwarnings("ignore::skrankfair.exceptions.UndefinedMetricWarning")
def test_too_few_differences_have_no_parabola():
    y, s = [1.0, 0, 0, 1, 0, 0], [0.5, 0.6, 0.7, 0.5, 0.6, 0.7]
    given = {"sensitive_features": list("abbabb"), "qid": [0, 0, 0, 1, 1, 1]}
    given |= {"epsilon": 0.5}
    line, parabola = (
        matched_pair_calibration(y, s, estimator=e, **given) for e in REGRESSIONS
    )
    assert line.estimate[0] == pytest.approx(1)
    assert np.isnan(parabola.estimate[0])
    # Tied pairs alone are their mean.
    tied = matched_pair_calibration(
        *([1, 0, 0, 0], [0.5] * 4), sensitive_features=list("abab"), qid=[0, 0, 1, 1],
        epsilon=0.1, estimator="local_quadratic",
    )  # fmt: skip
    assert tied.estimate.tolist() == [0.5, -0.5]


def drawn(shape, n_queries, seed=0, size=12):
    rng = np.random.default_rng(seed)
    s = rng.random(n_queries * size)
    g = rng.choice(["a", "b"], s.size)
    y = shape(s) + 0.1 * (g == "a") + rng.normal(0, 0.3, s.size)
    who = {"sensitive_features": g, "qid": np.repeat(np.arange(n_queries), size)}
    return y, s, who


def test_bandwidth_is_smaller_where_a_line_is_wrong():
    chosen = {}
    for name, shape in (("line", lambda s: s), ("wave", lambda s: np.sin(20 * s))):
        y, s, who = drawn(shape, 400)
        r = matched_pair_calibration(
            y, s, epsilon="mse", estimator="local_linear", **who
        )
        chosen[name] = r.first_pass["epsilon"]["a"]
        assert abs(r.estimate[0] - 0.1) < 4 * r.standard_error[0]
        # As a number it is the same result.
        options = {**r.first_pass, "estimator": "local_linear"}
        again = matched_pair_calibration(y, s, **options, **who)
        assert_allclose(again.estimate, r.estimate)
    assert chosen["wave"] < chosen["line"] / 2


def test_bandwidth_has_the_unit_of_the_score():
    y, s, who = drawn(np.sqrt, 40)
    for options in ({}, {"direction": "both"}, {"adjacent": True}):
        options = {"epsilon": "mse", "estimator": "local_linear", **options}
        one, other = (
            matched_pair_calibration(y, scale * s, **options, **who) for scale in (1, 8)
        )
        assert_allclose(other.estimate, one.estimate)
        for group, epsilon in one.first_pass["epsilon"].items():
            assert other.first_pass["epsilon"][group] == pytest.approx(8 * epsilon)


def test_smallest_epsilon_finds_the_gap():
    y, s, who = drawn(lambda s: s, 300)
    curve = matched_pair_curve(y, s, **who, epsilon=np.geomspace(0.005, 0.5, 10))
    detectable = np.stack([r.minimum_detectable() for r in curve.results])
    wanted = float(detectable[4, 0]) * 1.0001
    chosen = curve.smallest_epsilon(wanted)
    assert chosen["a"] == curve.epsilon[4]
    assert (detectable[:4, 0] > wanted).all()
    r = matched_pair_calibration(y, s, epsilon=chosen, **who)
    assert r.minimum_detectable()[0] <= wanted
    assert np.isnan(list(curve.smallest_epsilon(1e-9).values())).all()
    assert curve.smallest_epsilon(wanted, power=0.95)["a"] > chosen["a"]
    with pytest.raises(ValueError, match="gap must be a number"):
        curve.smallest_epsilon(0)
