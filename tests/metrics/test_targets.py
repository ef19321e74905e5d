"""Shares given in advance, and skews over cuts, of statistical parity."""

from functools import partial

import numpy as np
import pytest

from skrankfair.metrics import (
    GroupEstimates,
    ndkl,
    normalized_discounted_kl,
    skew_at_k,
)
from tests import seeds
from tests.calls import OF_LISTS
from tests.metrics.common import assert_same
from tests.metrics.naive_rules import assert_close
from tests.metrics.problems import make_problem, undefined_is_fine
from tests.metrics.test_statistical_parity import TERMS, assert_agrees
from tests.reference import advantage as naive

pytestmark = undefined_is_fine
in_chunks = seeds.in_chunks(12, always=4)
METRICS = {**{metric: {"step": 2} for metric in TERMS}, ndkl: {}, skew_at_k: {"k": 2}}


def shares(labels, seed):
    """Shares that sum to 1, one of them of a label that is not in the data."""
    rng = np.random.default_rng(seed)
    drawn = rng.dirichlet(np.full(len(labels) + 1, 3.0))
    return dict(zip([*labels, "nobody"], drawn.tolist(), strict=True))


def measures(step, target):
    """Yield metrics, options, and naive functions of scores, queries and members."""
    for metric, term in TERMS.items():
        how = {"step": step, "target": target}
        yield metric, how, partial(naive.with_target, term=term, **how)
    how = {"target": target, "term": naive.kl_term, "step": 1, "largest": False}
    yield ndkl, {"target": target}, partial(naive.with_target, **how)
    how = {"target": target, "k": 2}
    yield skew_at_k, how, partial(naive.skew_with_target, **how)


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
        for step in (1, 3):
            for metric, options, by_hand in measures(step, target):
                r = metric(None, p.s, **p.who, **options)
                expected = by_hand(*columns, w=seen.w)
                assert_agrees(r, expected, (seed, metric, options), 1e-11)
        if nobody:
            for joint, step, largest in (
                (ndkl, 1, False),
                (normalized_discounted_kl, 2, True),
            ):
                options = {} if joint is ndkl else {"step": step}
                r = joint(None, p.s, **p.who, **options, joint=True, target=target)
                expected = naive.joint_with_target(
                    *columns, target, step, w=seen.w, largest=largest
                )
                assert_close([r.estimate[0], r.support[0]], expected, 1e-11, seed)


@in_chunks
def test_of_mean_shares(seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        q, n = np.repeat(np.arange(4), 9), 36
        s, g = rng.integers(0, 6, n), rng.choice(["a", "b"], n)
        g[:9] = "a"  # a list without one of the groups
        target = {"a": 0.3, "b": 0.7}
        member = {label: (g == label).tolist() for label in "ab"}
        mean = {"average": "representation"}
        who = {"sensitive_features": g, "qid": q, **mean}
        for metric, options, by_hand in measures(3, target):
            r = metric(None, s, **who, **options)
            expected = by_hand(s.tolist(), q.tolist(), member, **mean)
            assert_agrees(r, expected, (seed, metric), 1e-11)
        joint = ndkl(None, s, **who, joint=True, target=target)
        alone = ndkl(None, s, **who, target=target)
        np.testing.assert_allclose(joint.estimate[0], alone.estimate, rtol=1e-12)


def test_by_hand():
    # What Geyik et al. ask of a list of the ten shown: none is like the target.
    score, group = np.arange(10), ["f"] * 2 + ["m"] * 8
    r = skew_at_k(None, score, sensitive_features=group, k=10, target="equal")
    np.testing.assert_allclose(r.estimate, np.log([0.4, 1.6]))


TARGET = {"a": 0.2, "b": 0.3, "c": 0.5}


GIVEN = [
    *OF_LISTS.items(),
    *((metric, {**options, "target": TARGET}) for metric, options in METRICS.items()),
]


@seeds.one_in(
    3,
    given={str(number): given for number, given in enumerate(GIVEN)},
    average={name: name for name in ("queries", "representation", "clusters")},
)
def test_parts_add_up_and_are_stored(given, average):
    (metric, options), rng = given, np.random.default_rng(0)
    q, s = np.repeat(np.arange(8), 5), rng.random(40)
    g = np.where(q < 4, rng.choice(["a", "b"], 40), rng.choice(["b", "c"], 40))
    if metric is skew_at_k:
        s[np.arange(40) % 5 == 0] += 2  # somebody of each

    def of(rows, **changed):
        who = {"sensitive_features": g[rows], "qid": q[rows], "average": average}
        return metric(None, s[rows], **who, **{**options, **changed})

    whole, parts = of(q >= 0), [of(q < 4), of(q >= 4)]
    for merged in (sum(parts), parts[1] + parts[0]):
        assert_same(merged, whole, tolerance=1e-9)
    read = [GroupEstimates.from_json(part.to_json()) for part in parts]
    assert_same(read[0] + read[1], whole.compact(), tolerance=1e-9)
    how = {"method": "permutation", "n_resamples": 30, "random_state": 0}
    null, expected = (r.test(**how).null_distribution for r in (sum(parts), whole))
    np.testing.assert_allclose(null, expected)
    if "target" in options:
        with pytest.raises(ValueError, match="first pass differs"):
            of(q < 4, target="equal") + of(q >= 4, target="equal")
