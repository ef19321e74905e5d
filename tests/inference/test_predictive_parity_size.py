"""Size, power and coverage on few data sets; parity_size.py in benchmarks has more."""

import numpy as np
import pytest
from scipy import special

from skrankfair.inference import predictive_parity_test

N_REPLICATIONS = 200


def draw(rng, n_users, bump):
    user = np.repeat(np.arange(n_users), 1 + rng.poisson(3, n_users))

    def correlated(rho):
        own, noise = rng.normal(size=n_users)[user], rng.normal(size=user.size)
        return special.ndtr(np.sqrt(rho) * own + np.sqrt(1 - rho) * noise)

    in_a = (rng.random(n_users) < 0.5)[user]
    s = correlated(0.5)
    mean = 0.2 + 0.5 * s + bump * in_a * np.exp(-0.5 * ((s - 0.6) / 0.15) ** 2)
    y = (correlated(0.8) < mean).astype(float)
    return y, s, np.where(in_a, "a", "b"), user


@pytest.fixture(scope="module", name="rates")
def _rates():
    found = {}
    for name, bump in (("equal", 0.0), ("differ", 0.3)):
        rows = []
        for seed in range(N_REPLICATIONS):
            y, s, group, user = draw(np.random.default_rng([seed, 1]), 150, bump)
            options = {"sensitive_features": group, "n_resamples": 1000}
            options["grid"] = np.quantile(s, np.linspace(0.05, 0.95, 15))
            t = predictive_parity_test(y, s, cluster=user, **options)
            low, high = t.band(kind="pointwise")
            grid = t.grid
            truth = bump * np.exp(-0.5 * ((grid - 0.6) / 0.15) ** 2)
            row = {
                "sup_t": t.pvalue < 0.05,
                "bonferroni": t.pointwise_pvalues.min() * grid.size < 0.05,
                "covered": np.mean((low[0] <= truth) & (truth <= high[0])),
            }
            if name == "equal":
                t = predictive_parity_test(y, s, **options)
                row["ignoring"] = t.pvalue < 0.05
            rows.append(row)
        found[name] = {key: np.array([row[key] for row in rows]) for key in rows[0]}
    return found


@pytest.mark.simulation
def test_rejects_a_true_null_at_its_level_and_only_with_clusters(rates):
    error = np.sqrt(0.05 * 0.95 / N_REPLICATIONS)
    equal = {name: values.mean() for name, values in rates["equal"].items()}
    # Four binomial standard errors.
    assert equal["sup_t"] < 0.05 + 4 * error
    assert equal["bonferroni"] < 0.05 + 4 * error
    assert equal["ignoring"] > 0.05 + 4 * error


@pytest.mark.simulation
def test_sup_t_has_more_power(rates):
    differ = rates["differ"]
    assert not (differ["bonferroni"] & ~differ["sup_t"]).any()
    assert differ["sup_t"].mean() > differ["bonferroni"].mean() + 0.03
    assert differ["sup_t"].mean() > 0.5


@pytest.mark.simulation
def test_pointwise_intervals_cover(rates):
    for values in rates.values():
        # Points of one data set depend: the error is that of their mean.
        covered = values["covered"]
        error = covered.std() / np.sqrt(N_REPLICATIONS)
        assert abs(covered.mean() - 0.95) < 0.01 + 4 * error
        assert error < 0.02


def unlike(rng, n=800):
    """One straight curve, and groups whose scores lie at different ends."""
    in_a = rng.random(n) < 0.5
    s = np.where(in_a, rng.beta(2, 4, n), rng.beta(4, 2, n))
    return s, in_a, s


def steep(rng, n=800):
    in_a = rng.random(n) < 0.5
    s = np.where(in_a, rng.beta(2, 6, n), rng.beta(6, 2, n))
    return s, in_a, special.expit(12 * (s - 0.5))


def rare(rng, n=1500):
    s = rng.beta(2, 3, n)
    return s, rng.random(n) < 0.03, s


def few_scores(rng, n=800):
    s, in_a, _ = unlike(rng, n)
    s = np.floor(10 * s) / 10
    return s, in_a, special.expit(6 * (s - 0.5))


@pytest.mark.simulation
@pytest.mark.parametrize("design", [unlike, steep, rare, few_scores])
def test_one_curve_and_different_scores(design):
    """The paper's smoother rejects 20 to 90% of these, and a null is true in all."""
    n_replications, rejected = 80, 0
    for seed in range(n_replications):
        rng = np.random.default_rng([seed, 5])
        s, in_a, mean = design(rng)
        t = predictive_parity_test(
            rng.random(s.size) < mean, s, sensitive_features=in_a, n_resamples=1000
        )
        assert t.compared.any()
        rejected += t.pvalue < 0.05
    # Four binomial standard errors above 5%.
    assert rejected / n_replications < 0.05 + 4 * np.sqrt(0.05 * 0.95 / n_replications)


@pytest.mark.simulation
def test_a_gap_between_groups_of_different_scores_is_found():
    n_replications, rejected, difference = 40, 0, []
    for seed in range(n_replications):
        rng = np.random.default_rng([seed, 6])
        s, in_a, _ = unlike(rng, 2000)
        mean = 0.2 + 0.6 * s + np.where(in_a, 0.1, -0.1)
        t = predictive_parity_test(
            rng.random(s.size) < mean, s, sensitive_features=in_a, n_resamples=1000
        )
        rejected += t.pvalue < 0.05
        # Groups are True and False; False, whose scores are high, comes first.
        difference.append(np.nanmean(t.difference))
    assert rejected / n_replications > 0.8
    error = np.std(difference) / np.sqrt(n_replications)
    assert abs(np.mean(difference) + 0.2) < 4 * error
