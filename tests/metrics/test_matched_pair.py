"""Adjacent pairs, weights by position and local linear regression, to the letter."""

import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from skrankfair.metrics import matched_pair_calibration
from tests import seeds
from tests.metrics.naive_rules import assert_close, with_item_weights
from tests.metrics.problems import Problem, make_problem, undefined_is_fine
from tests.reference import matched_pairs as naive

pytestmark = undefined_is_fine

OPTIONS = {
    "adjacent": {"adjacent": True},
    "dcg": {"position_weight": "dcg"},
    "dcg, both": {"position_weight": "dcg", "direction": "both"},
    "reciprocal, adjacent": {"position_weight": "reciprocal", "adjacent": True},
    "linear": {"estimator": "local_linear"},
    "linear, both": {"estimator": "local_linear", "direction": "both"},
    "linear, adjacent": {"estimator": "local_linear", "adjacent": True},
    "quadratic": {"estimator": "local_quadratic"},
    "quadratic, both": {"estimator": "local_quadratic", "direction": "both"},
    "linear, dcg": {"estimator": "local_linear", "position_weight": "dcg"},
}
EPSILONS = (0.0, 0.27, 1.3, np.inf)
in_chunks = seeds.in_chunks(8, always=2)
every_option = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)


def on_a_grid(p):
    """Scores in eighths: no regression hangs on two scores that nearly agree."""
    return replace(p, s=[round(8 * score) / 8 for score in p.s])


def measure(p, epsilon, **options):
    return matched_pair_calibration(p.y, p.s, epsilon=epsilon, **p.who, **options)


class TestByHand:
    """Estimate, number of pairs and epsilon of one group of a short list."""

    @staticmethod
    def measured(y, s, members, query=None, **options):
        member = np.isin(np.arange(len(y)), members)[:, None]
        r = matched_pair_calibration(
            *(y, s), sensitive_features=member, qid=query, **options
        )
        return r.estimate[0], r.support[0], r.first_pass["epsilon"][0]

    def test_example_of_the_paper(self):
        # Korevaar et al. section 4.1.4, in binary fractions of about the same size.
        s, y = [0.75, 0.734375, 0.71875], [1, 0, 1]
        assert self.measured(y, s, [2], epsilon=0.05) == (0.5, 2, 0.05)

    @pytest.mark.parametrize(
        ("members", "options", "expected"),
        [
            # Neighbours of both directions: values -3, -2, 7 at 0, 1/4, 1/8.
            ([2, 4], {"epsilon": 1}, (2 / 3, 3, 1)),
            ([2, 4], {"n_pairs": 2}, (2, 2, 0.125)),
            ([2, 4], {"epsilon": 0}, (-3, 1, 0)),
            ([2, 4], {"quantile": 1}, (2 / 3, 3, 0.25)),
            # Rows 0 and 2 tie and row 0 comes first: rows 1 and 2 are no neighbours.
            ([1], {"epsilon": 1}, (-2, 1, 1)),
        ],
    )
    def test_adjacent(self, members, options, expected):
        y, s = [3, 1, 0, 2, 9], [0.5, 0.75, 0.5, 0.25, 0.125]
        actual = self.measured(y, s, members, [0] * 5, adjacent=True, **options)
        assert actual == pytest.approx(expected)


@pytest.mark.parametrize("variance", ["cluster", "item"])
def test_slope_term_is_that_of_pairs_within_groups(variance):
    rng = np.random.default_rng(0)
    s, g = rng.integers(0, 30, 120) / 30, rng.choice(["a", "b", "c"], 120)
    q, w = np.repeat(np.arange(12), 10), rng.integers(1, 4, 120)
    y = 2 * s + rng.normal(size=120)
    r = matched_pair_calibration(
        *(y, s), sensitive_features=g, qid=q if variance == "cluster" else None,
        epsilon=0.3, item_weight=w,
    )  # fmt: skip
    near = (s - s[:, None] >= 0) & (s - s[:, None] <= 0.3 + 1e-15)
    if variance == "cluster":
        near &= q == q[:, None]
    weight = near * np.outer(w, w)
    same = weight * (g == g[:, None])
    value, distance = y[:, None] - y, s - s[:, None]
    slope = (same * value).sum() / (same * distance).sum()
    assert r.variance == variance
    assert r.as_gap().name == "matched_pair_calibration without the slope term"
    for i, group in enumerate("abc"):
        cross = weight * np.outer(g == group, g != group)
        plain, far = ((cross * x).sum() / cross.sum() for x in (value, distance))
        assert r.estimate[i] == pytest.approx(plain)
        assert r.slope_term[i] == pytest.approx(far * slope)
        assert r.test().estimate[i] == pytest.approx(plain - far * slope)
        assert r.to_frame().loc[group, "slope_term"] == r.slope_term[i]


@in_chunks
@every_option
def test_estimate_and_support(seeds, options):
    for seed, average in itertools.product(seeds, ("pairs", "queries")):
        p = make_problem(seed)
        if average == "queries" or options.get("estimator") == "local_quadratic":
            p = on_a_grid(p)
        seen = p.seen()
        for epsilon in EPSILONS:
            r = measure(p, epsilon, average=average, variance="cluster", **options)
            expected = naive.matched_pair_calibration(
                *(seen.y, seen.s, seen.q, seen.member),
                epsilon=epsilon,
                average=average,
                w=seen.w,
                **options,
            )
            estimate, support = zip(*expected.values(), strict=True)
            hint = (seed, average, epsilon)
            assert_close(r.estimate, estimate, 1e-10, hint)
            np.testing.assert_array_equal(r.support, support, err_msg=str(hint))


@pytest.mark.parametrize("options", [{}, {"adjacent": True}])
def test_decimals_are_as_far_apart_as_they_say(options):
    """0.75 - 0.70 is 0.05 and a little more in binary numbers."""
    tenths = np.arange(3, 98)
    s = np.ravel(np.stack([tenths, tenths + 5], axis=1)) / 100
    g, q = np.tile(["a", "b"], tenths.size), np.repeat(np.arange(tenths.size), 2)
    columns = {"sensitive_features": g, "qid": q, "direction": "both", **options}
    r = matched_pair_calibration(g == "a", s, epsilon=0.05, **columns)
    assert r.support.tolist() == [tenths.size] * 2
    nearer = matched_pair_calibration(g == "a", s, epsilon=0.05 - 1e-13, **columns)
    assert nearer.support.tolist() == [0, 0]


@in_chunks
def test_epsilon_by_group(seeds):
    for seed in seeds:
        p = make_problem(seed)
        seen = p.seen()
        epsilon = {g: index / 8 for index, g in enumerate(p.groups)}
        r = measure(p, epsilon, variance="cluster")
        for g, estimate, support in zip(r.groups, r.estimate, r.support, strict=True):
            args = (seen.y, seen.s, seen.q, {g: seen.member[g]}, epsilon[g])
            expected = naive.matched_pair_calibration(*args, w=seen.w)[g]
            assert_close((estimate, support), expected, 1e-12, (seed, g))


def jackknife(p, unit, epsilon, *, strata=False, **options):
    """Return the estimates and what every unit adds to the jackknife, (units, G)."""
    labels = list(dict.fromkeys(unit))
    rows = {label: [r for r, u in enumerate(unit) if u == label] for label in labels}
    changes = np.full((len(labels), len(p.groups)), np.nan)
    estimates = []
    for column, g in enumerate(p.groups):
        args = p.y, p.s, p.q, p.member[g], epsilon
        of_group = partial(naive.estimate_and_pairs, *args, w=p.w, **options)
        estimate, pairs = of_group()
        estimates.append(estimate)
        touched = {unit[row] for pair in pairs for row in pair}
        inside = {label: strata and p.member[g][rows[label][0]] for label in labels}
        for place, label in enumerate(labels):
            change = 0.0
            if label in touched:
                alike = sum(inside[other] == inside[label] for other in touched)
                left_out, _ = of_group(without=rows[label])
                change = np.sqrt(1 - 1 / alike) * (left_out - estimate)
            changes[place, column] = change
    return estimates, changes


def assert_same(result, expected, hint):
    """Compare errors where the result has one: two units stand behind the group."""
    estimates, changes = expected
    assert_close(result.estimate, estimates, 1e-9, hint)
    actual, expected = result.covariance, changes.T @ changes
    unknown = np.isnan(np.diag(actual))
    expected[unknown] = expected[:, unknown] = np.nan
    np.testing.assert_allclose(
        actual, expected, rtol=1e-8, atol=1e-9, err_msg=str(hint)
    )


@in_chunks
@every_option
def test_cluster_covariance(seeds, options):
    known = 0
    for seed, average in itertools.product(seeds, ("pairs", "queries")):
        p = on_a_grid(make_problem(seed, (6, 22)))
        seen, given, weights, how = p.seen(), {"average": average, **options}, {}, {}
        if seed % 2 and average == "pairs":
            v, seen, kept = with_item_weights(p, seed)
            weights, how = {"item_weight": v}, {"v": kept}
        for epsilon, unit in itertools.product((0.27, 1.3), ("q", "cluster")):
            cluster = {"variance": "cluster", "cluster": getattr(p, unit)}
            r = measure(p, epsilon, **cluster, **given, **weights)
            expected = jackknife(seen, getattr(seen, unit), epsilon, **given, **how)
            known += np.count_nonzero(~np.isnan(r.standard_error))
            assert_same(r, expected, (seed, average, epsilon, unit))
    assert known > 5


@seeds.in_chunks(20, always=4)
@pytest.mark.parametrize(
    "name", [n for n in OPTIONS if "position_weight" not in OPTIONS[n]]
)
def test_item_covariance(seeds, name):
    options, known = OPTIONS[name], 0
    for seed, epsilon in itertools.product(seeds, (0.0, 0.27, 1.3, np.inf)):
        p = on_a_grid(make_problem(seed, (4, 14)))
        seen = p.seen()
        r = measure(p, epsilon, variance="item", **options)
        expected = jackknife(seen, range(len(seen.q)), epsilon, strata=True, **options)
        known += np.count_nonzero(~np.isnan(r.standard_error))
        assert_same(r, expected, (seed, epsilon))
        # Of one list, in clusters.
        n = len(p.q)
        one = replace(p, q=[0] * n, w=None)
        cluster = np.random.default_rng(seed).integers(0, 5, n).tolist()
        features = {"sensitive_features": p.sensitive_features, "cluster": cluster}
        r = matched_pair_calibration(p.y, p.s, epsilon=epsilon, **features, **options)
        assert r.variance == "item"
        assert_same(r, jackknife(one, cluster, epsilon, **options), (seed, epsilon))
    assert known > 5


@pytest.mark.parametrize("rare", [True, False])
def test_events_that_few_items_cannot_show(rare):
    """Without an event, few items get the variance that as many others would show."""
    rng, n = np.random.default_rng(3), 48
    few = np.arange(n) < 8
    y, score = np.where(rare, np.arange(n) % 10 == 9, np.arange(n) % 2), rng.random(n)
    member = {False: ~few, True: few}
    p = Problem(y.tolist(), score.tolist(), [0] * n, [], few, member, None, [])
    r = matched_pair_calibration(
        y, score, sensitive_features=few, epsilon=0.3, direction="both"
    )
    _, changes = jackknife(p, range(n), 0.3, strata=True, direction="both")
    near = np.abs(np.subtract.outer(score, score)) <= 0.3
    for g, inside in enumerate(member.values()):
        pairs = (near & np.not_equal.outer(few, few)).sum(axis=0)
        variance, items = [], []
        for some in (inside, ~inside):
            variance.append((changes[some, g] ** 2).sum())
            items.append(pairs[some].sum() ** 2 / (pairs[some] ** 2).sum())
        small = int(np.argmin(items))
        as_few = variance[1 - small] * items[1 - small] / items[small]
        assert not rare or as_few > 2 * variance[small]
        unseen = rare * (as_few - variance[small])
        assert r.standard_error[g] ** 2 == pytest.approx(sum(variance) + unseen)
        assert r.covariance[g, g] == pytest.approx(sum(variance))


@pytest.mark.filterwarnings("ignore::skrankfair.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize("copies", [1, 2])
def test_regression_takes_nothing_from_pairs_at_the_threshold(copies):
    # Their kernel is 0, of which rounding leaves something in some sums.
    rows = np.repeat(np.arange(6), copies)
    y = np.array([0.0, 0.25, 0.25, 0.75, 0.0, 1.0])[rows]
    s = np.array([0.7, 0.0, 0.5, 0.3, 0.2, 1.0])[rows]
    group, q = np.array(list("bababb"))[rows], np.tile(np.arange(copies), 6)
    who = {"sensitive_features": group, "qid": q}
    who["sample_weight"] = np.full(rows.size, 2.0 / copies)
    for options in ({"position_weight": "dcg"}, {}, {"direction": "both"}):
        options |= {"epsilon": 0.2, "estimator": "local_linear"}
        r = matched_pair_calibration(y, s, **who, **options)
        assert np.isnan(r.estimate).all(), (r.estimate, options)
