"""Shares given in advance, and skews over cuts, of statistical parity."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from skrankfair.metrics import (
    GroupEstimates,
    ndkl,
    normalized_discounted_difference,
    normalized_discounted_kl,
    normalized_discounted_ratio,
    skew_at_k,
)
from skrankfair.scoring import make_fairness_scorer
from tests import seeds
from tests.metrics.common import assert_same
from tests.metrics.naive_rules import assert_close
from tests.metrics.problems import make_problem
from tests.reference import advantage as naive

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.UndefinedMetricWarning"
)
in_chunks = seeds.in_chunks(12, always=4)
TERMS = {
    normalized_discounted_difference: naive.difference_term,
    normalized_discounted_ratio: naive.ratio_term,
    normalized_discounted_kl: naive.kl_term,
}
METRICS = {**{metric: {"step": 2} for metric in TERMS}, ndkl: {}, skew_at_k: {"k": 2}}


def shares(labels, seed):
    """Shares that sum to 1, one of them of a label that is not in the data."""
    rng = np.random.default_rng(seed)
    drawn = rng.dirichlet(np.full(len(labels) + 1, 3.0))
    return dict(zip([*labels, "nobody"], drawn.tolist(), strict=True))


def assert_agrees(result, expected, hint):
    some = [result.groups.index(group) for group in expected]
    values, numbers = zip(*expected.values(), strict=True)
    assert_close(result.estimate[some], values, 1e-11, hint)
    assert result.support[some].tolist() == list(numbers), hint


@in_chunks
def test_of_the_paper(seeds):
    for seed in seeds:
        p = make_problem(seed)
        seen = p.seen()
        target = shares(list(seen.member), seed)
        nobody = dict.fromkeys(["nobody"], [False] * len(seen.q))
        if isinstance(p.sensitive_features, np.ndarray):  # a matrix has no such group
            nobody, target = {}, {g: target[g] for g in seen.member}
        columns = seen.s, seen.q, {**seen.member, **nobody}
        for metric, term in TERMS.items():
            for step in (1, 3):
                r = metric(None, p.s, **p.who, step=step, target=target)
                expected = naive.with_target(*columns, target, term, step, w=seen.w)
                assert_agrees(r, expected, (seed, metric.__name__, step))
        r = ndkl(None, p.s, **p.who, target=target)
        expected = naive.with_target(
            *columns, target, naive.kl_term, 1, w=seen.w, largest=False
        )
        assert_agrees(r, expected, seed)
        r = skew_at_k(None, p.s, **p.who, k=2, target=target)
        assert_agrees(r, naive.skew_with_target(*columns, target, 2, w=seen.w), seed)
        r = skew_at_k(None, p.s, **p.who, step=2)
        seen_columns = seen.s, seen.q, seen.member
        assert_agrees(r, naive.skew_over_cuts(*seen_columns, 2, w=seen.w), seed)
        if nobody:
            for joint, step, largest in ((ndkl, 1, False), (TERMS_KL, 2, True)):
                options = {} if joint is ndkl else {"step": step}
                r = joint(None, p.s, **p.who, **options, joint=True, target=target)
                expected = naive.joint_with_target(
                    *columns, target, step, w=seen.w, largest=largest
                )
                assert_close([r.estimate[0], r.support[0]], expected, 1e-11, seed)


TERMS_KL = normalized_discounted_kl


@in_chunks
def test_of_mean_shares(seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        q, n = np.repeat(np.arange(4), 9), 36
        s, g = rng.integers(0, 6, n), rng.choice(["a", "b"], n)
        g[:9] = "a"  # a list without one of the groups
        target = {"a": 0.3, "b": 0.7}
        member = {label: (g == label).tolist() for label in "ab"}
        who = {"sensitive_features": g, "qid": q, "average": "representation"}
        columns = s.tolist(), q.tolist(), member
        mean = {"average": "representation"}
        for metric, term in TERMS.items():
            r = metric(None, s, **who, step=3, target=target)
            assert_agrees(r, naive.with_target(*columns, target, term, 3, **mean), seed)
        r = skew_at_k(None, s, **who, k=3, target=target)
        assert_agrees(r, naive.skew_with_target(*columns, target, 3, **mean), seed)
        r = skew_at_k(None, s, **who, step=3)
        assert_agrees(r, naive.skew_over_cuts(*columns, 3, **mean), seed)
        joint = ndkl(None, s, **who, joint=True, target=target)
        alone = ndkl(None, s, **who, target=target)
        np.testing.assert_allclose(joint.estimate[0], alone.estimate, rtol=1e-12)


def test_by_hand():
    # aab|bb: shares of a of 1, 1, 2/3, 1/2, 2/5, against one half.
    who = {"sensitive_features": list("aabbb"), "target": "equal"}
    weights = [1 / math.log2(k + 1) for k in range(1, 6)]
    value = weights[0] / 2 + weights[1] / 2 + weights[2] / 6 + weights[4] / 10
    r = normalized_discounted_difference(None, range(5, 0, -1), step=1, **who)
    np.testing.assert_allclose(r.estimate, 2 * value / sum(weights))
    # What Geyik et al. ask of a list of the ten shown: none is like the target.
    score, group = np.arange(10), ["f"] * 2 + ["m"] * 8
    half = {"f": 0.5, "m": 0.5}
    r = skew_at_k(None, score, sensitive_features=group, k=10, target=half)
    np.testing.assert_allclose(r.estimate, np.log([0.4, 1.6]))


@pytest.mark.parametrize("metric", METRICS)
def test_own_shares_as_a_target(metric):
    # Given its own shares, a list has the same distances, but for what divides them.
    s, g = np.random.default_rng(0).permutation(20), np.arange(20) % 4 == 0
    who = {"sensitive_features": g, **METRICS[metric]}
    if metric in TERMS:
        who["normalize"] = False
    given = metric(None, s, target={True: 0.25, False: 0.75}, **who)
    np.testing.assert_allclose(given.estimate, metric(None, s, **who).estimate)


@pytest.mark.parametrize("average", ["queries", "representation", "clusters"])
@pytest.mark.parametrize("metric", METRICS)
def test_parts_add_up_and_are_stored(metric, average):
    rng = np.random.default_rng(0)
    q, s = np.repeat(np.arange(8), 5), rng.random(40)
    g = np.where(q < 4, rng.choice(["a", "b"], 40), rng.choice(["b", "c"], 40))
    if metric is skew_at_k:
        s[np.arange(40) % 5 == 0] += 2  # somebody of each
    options = {**METRICS[metric], "average": average}
    options["target"] = {"a": 0.2, "b": 0.3, "c": 0.5}

    def of(rows):
        return metric(None, s[rows], sensitive_features=g[rows], qid=q[rows], **options)

    whole, parts = of(q >= 0), [of(q < 4), of(q >= 4)]
    assert_same(sum(parts), whole, tolerance=1e-9)
    read = [GroupEstimates.from_json(part.to_json()) for part in parts]
    assert_same(read[0] + read[1], whole.compact(), tolerance=1e-9)
    null = (parts[0] + parts[1]).test(n_resamples=30, random_state=0)
    np.testing.assert_allclose(
        null.null_distribution,
        whole.test(n_resamples=30, random_state=0).null_distribution,
    )
    equal = [
        metric(
            None,
            s[rows],
            sensitive_features=g[rows],
            qid=q[rows],
            **METRICS[metric],
            average=average,
            target="equal",
        )
        for rows in (q < 4, q >= 4)
    ]
    with pytest.raises(ValueError, match="first pass differs"):
        sum(equal)


def test_as_a_scorer():
    class Given(BaseEstimator):
        def fit(self, X, y):
            return self

        def predict(self, X):
            return X["score"].to_numpy()

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"score": rng.random(60), "group": rng.choice(["a", "b"], 60)})
    target = {"a": 0.4, "b": 0.6}
    score = make_fairness_scorer(ndkl, target=target, sensitive_features="group")
    r = ndkl(None, X["score"], sensitive_features=X["group"], target=target)
    assert score(Given(), X, np.zeros(60)) == pytest.approx(-r.disparity())


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            "half",
            "target must be None, 'equal' for disjoint groups, or a .* got 'half'",
        ),
        (0.5, "got 0.5"),
        ({"a": 1.0}, "a share by group; it has none of b"),
        ({"a": 0.5, "b": 0.6}, "that sum to 1"),
        ({"a": 0.0, "b": 1.0}, "shares between 0 and 1"),
        ({"a": -0.5, "b": 1.5}, "target must be"),
        ({"a": "x", "b": 0.5}, "target must be"),
    ],
)
def test_bad_targets(target, message):
    for metric, options in METRICS.items():
        with pytest.raises(ValueError, match=message):
            metric(
                None,
                range(4),
                sensitive_features=list("abab"),
                target=target,
                **options,
            )


def test_equal_shares_of_groups_that_overlap():
    member = np.array([[True, True], [False, True], [True, False]])
    with pytest.raises(ValueError, match="'equal' for disjoint groups"):
        ndkl(None, range(3), sensitive_features=member, target="equal")
    r = ndkl(None, range(3), sensitive_features=member, target={0: 0.5, 1: 0.9})
    assert np.isfinite(r.estimate).all()


def test_k_and_step_exclude_each_other():
    with pytest.raises(ValueError, match="k must be None with a step"):
        skew_at_k(None, range(4), sensitive_features=list("abab"), k=1, step=1)
