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
