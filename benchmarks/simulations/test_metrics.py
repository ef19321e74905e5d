"""Intervals and tests of the measures of rankings, on data whose truth is known.

All replications are measured in one call, on all their users at once; a replication is
then a block of rows of the table of sums. Pairs of normal scores and outcomes have a
closed form, DIPS and exposure are those of a small population that is known as a whole,
and lists that are filled from the top are enumerated.
"""

import itertools
from functools import partial

import numpy as np
import pytest
from scipy import special
from scipy.stats import norm, t

from benchmarks.simulations.common import (
    Model,
    RareEvents,
    Rows,
    assert_covers,
    assert_level,
    coverage,
    slices,
    tolerance,
)
from benchmarks.validity import each_alike
from skrankfair._estimates import sums
from skrankfair.datasets import make_biased_rankings
from skrankfair.inference import compare_independent
from skrankfair.metrics import (
    dips,
    expected_advantage,
    exposure,
    exposure_gap,
    exposure_parity,
    matched_pair_calibration,
    matched_pair_curve,
    mean_position,
    ndkl,
    normalized_discounted_difference,
    normalized_discounted_kl,
    normalized_discounted_ratio,
    pairwise_accuracy,
    pairwise_exposure,
    pairwise_parity,
    skew_at_k,
)
from tests.metrics.common import with_peak

pytestmark = pytest.mark.simulation
N_REPLICATIONS = 400


OF_USERS = Model(
    outcome_shift=0.3,
    score_shift=-0.4,
    user_outcome=2.0,
    user_score=1.5,
    user_correlation=0.3,
    outcome_noise=0.3,
    score_noise=0.3,
)
METRICS = {
    "accuracy": (
        pairwise_accuracy,
        {"comparison": "inter"},
        OF_USERS.inter_accuracy(),
    ),
    "exposure": (pairwise_exposure, {}, OF_USERS.exposure()),
    "matched": (
        matched_pair_calibration,
        {"epsilon": 3.0},
        OF_USERS.matched_pairs(3.0),
    ),
}
each_metric = pytest.mark.parametrize("name", METRICS)


class TestPairsOfUsers:
    """Users with 3 to 9 queries of 2 or 3 items, pairs of normal differences."""

    N_USERS = 200  # of a replication

    @pytest.fixture(scope="class")
    @classmethod
    def rows(cls):
        rng = np.random.default_rng(0)
        n_users = N_REPLICATIONS * cls.N_USERS
        user = np.repeat(np.arange(n_users), rng.integers(3, 10, n_users))
        return OF_USERS.rows(rng, rng.integers(2, 4, user.size), user)

    def replications(self, rows, name, *, by_user=True):
        """Return the results of the replications."""
        metric, options, _ = METRICS[name]
        who = {"sensitive_features": rows.group, "qid": rows.query}
        cluster = rows.user if by_user else None
        whole = metric(rows.y, rows.s, cluster=cluster, **who, **options)
        starts = np.arange(0, rows.user[-1] + 2, self.N_USERS)
        if not by_user:
            first = np.unique(rows.query, return_index=True)[1]
            starts = np.searchsorted(rows.user[first], starts)
        return list(slices(whole, starts))

    @each_metric
    def test_intervals_cover(self, rows, name):
        truth = METRICS[name][2]
        parts = self.replications(rows, name)
        assert_covers([part.confidence_interval() for part in parts], truth)
        contrasts = [part.contrast("a", "b").confidence_interval() for part in parts]
        assert_covers(contrasts, truth[0] - truth[1])
        if name == "accuracy":
            ratios = [part.contrast("a", "b", "ratio") for part in parts]
            intervals = [ratio.confidence_interval() for ratio in ratios]
            assert_covers(intervals, truth[0] / truth[1])

    @pytest.mark.study
    # A bootstrap resamples the sums of all metrics by the same code: one will do.
    @pytest.mark.parametrize("method", ["bootstrap", "percentile"])
    def test_resampled_intervals_cover(self, rows, method):
        intervals = [
            part.confidence_interval(method=method, random_state=seed)
            for seed, part in enumerate(self.replications(rows, "accuracy"))
        ]
        nominal = 0.95
        if method == "percentile":
            # The normal quantile in place of Student's, Q in place of Q - 1, and gaps
            # of 1 / n_resamples at both ends.
            quantile = norm.ppf(0.975) * np.sqrt(1 - 1 / self.N_USERS)
            nominal = 1 - 2 * t.sf(quantile, self.N_USERS - 1) - 2 * 0.95 / 1000
        assert_covers(intervals, METRICS["accuracy"][2], nominal)

    @each_metric
    def test_intervals_that_ignore_repeated_users_fail(self, rows, name):
        parts = self.replications(rows, name, by_user=False)
        intervals = [part.confidence_interval() for part in parts]
        assert (coverage(intervals, METRICS[name][2]) < 0.85).all()


ONE_LIST = Model(outcome_shift=0.4, score_shift=-0.3)
CLUSTERED = Model(
    outcome_shift=0.4,
    score_shift=-0.3,
    user_outcome=1.5,
    user_score=1.5,
    user_correlation=0.3,
)


class TestItemsOfOneList:
    def lists(self, model):
        for seed in range(N_REPLICATIONS):
            rng = np.random.default_rng(seed)
            yield model.rows(rng, np.array([200]), np.array([0]))

    @pytest.mark.parametrize(
        ("metric", "options", "truth"),
        [
            (pairwise_accuracy, {"comparison": "inter"}, ONE_LIST.inter_accuracy()),
            (pairwise_exposure, {}, ONE_LIST.exposure()),
            (matched_pair_calibration, {"epsilon": 1.0}, ONE_LIST.matched_pairs(1.0)),
        ],
    )
    def test_intervals_cover(self, metric, options, truth):
        intervals, of_pairs = [], []
        for rows in self.lists(ONE_LIST):
            r = metric(rows.y, rows.s, sensitive_features=rows.group, **options)
            intervals.append(r.confidence_interval())
            p = r.estimate
            error = norm.ppf(0.975) * np.sqrt(np.abs(p * (1 - p)) / r.support)
            of_pairs.append((p - error, p + error))
        assert_covers(intervals, truth)
        # Pairs of one list are not independent.
        assert (coverage(of_pairs, truth) < 0.5).all()

    @pytest.mark.study
    @pytest.mark.parametrize(
        ("metric", "options", "truth"),
        [
            (pairwise_exposure, {}, CLUSTERED.exposure()),
            (matched_pair_calibration, {"epsilon": 1.0}, CLUSTERED.matched_pairs(1.0)),
        ],
    )
    def test_clusters_of_items(self, metric, options, truth):
        intervals, of_items = [], []
        for seed in range(N_REPLICATIONS):
            rng = np.random.default_rng(seed)
            rows = CLUSTERED.rows(rng, np.full(40, 8), np.arange(40))
            who = {"sensitive_features": rows.group, **options}
            r = metric(rows.y, rows.s, cluster=rows.user, **who)
            intervals.append(r.confidence_interval())
            of_items.append(metric(rows.y, rows.s, **who).confidence_interval())
        assert_covers(intervals, truth)
        assert (coverage(of_items, truth) < 0.85).all()

    @pytest.mark.parametrize(
        ("metric", "options"),
        [
            (pairwise_exposure, {}),
            (pairwise_accuracy, {"comparison": "inter"}),
            (matched_pair_calibration, {"epsilon": 0.5, "direction": "both"}),
        ],
    )
    def test_size_under_the_null(self, metric, options):
        # The groups have the same distribution: a fair score.
        pvalues = [
            metric(rows.y > 0, rows.s, sensitive_features=rows.group, **options)
            .test()
            .pvalue
            for rows in self.lists(Model())
        ]
        for level in (0.05, 0.2):
            assert_level(pvalues, level)


@pytest.mark.study
@pytest.mark.parametrize("direction", ["below", "both"])
def test_regression_removes_the_bias_of_a_wide_threshold(direction):
    """Outcomes rise steeply with the score, and a group is undervalued by 0.3."""
    rng = np.random.default_rng(0)
    n, truth = 300, np.array([-0.3, 0.3])
    query = np.repeat(np.arange(60), 10)
    estimates = {"mean": [], "local_linear": []}
    intervals = []
    for _ in range(n):
        group, score = rng.integers(0, 2, query.size), rng.random(query.size)
        y = 4 * score + 0.3 * (group == 1) + 0.5 * rng.normal(size=query.size)
        for estimator, values in estimates.items():
            r = matched_pair_calibration(
                *(y, score),
                sensitive_features=group,
                qid=query,
                epsilon=0.3,
                direction=direction,
                estimator=estimator,
            )
            values.append(r.estimate)
        intervals.append(r.confidence_interval())
    mean, linear = (np.mean(values, axis=0) - truth for values in estimates.values())
    error = np.std(estimates["local_linear"], axis=0) / np.sqrt(n)
    assert (np.abs(linear) < 4 * error).all()
    if direction == "below":
        # The partner's score is higher by 0.15 on average, its outcome by 0.6.
        assert (mean < -0.5).all()
    assert_covers(intervals, truth)


@pytest.mark.study
@pytest.mark.parametrize("shape", ["steep", "wave"])
def test_bandwidth_of_least_error_covers(shape):
    """Robust bias correction covers where a line at that bandwidth does not."""
    level = {
        "steep": lambda s: 1 / (1 + np.exp(-12 * (s - 0.5))),
        "wave": lambda s: 0.5 * np.sin(6 * s),
    }[shape]
    query, covered = np.repeat(np.arange(300), 15), []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        score, group = rng.random(query.size), rng.choice(["a", "b"], query.size)
        y = level(score) + 0.1 * (group == "a") + rng.normal(0, 0.3, 300)[query]
        y += rng.normal(0, 0.5, query.size)
        r = matched_pair_calibration(
            *(y, score), sensitive_features=group, qid=query,
            epsilon="mse", estimator="local_quadratic",
        )  # fmt: skip
        low, high = r.confidence_interval()
        covered.append(low[0] < 0.1 < high[0])
    assert 0.9 <= np.mean(covered) <= 0.99


@pytest.mark.parametrize(("gap", "share"), [(0.0, 0.2), (0.0, 0.5), (0.15, 0.2)])
def test_slope_is_no_unfairness(gap, share):
    """From below with a wide threshold: random labels, and a group that is better."""
    rng = np.random.default_rng(1)
    n, query, pvalues, fits = 200, np.repeat(np.arange(60), 15), [], []
    for _ in range(n):
        member, score = rng.random(query.size) < share, rng.normal(size=query.size)
        chance = 0.8 / (1 + np.exp(-2 * score)) + gap * member
        r = matched_pair_calibration(
            rng.random(query.size) < chance,
            score,
            sensitive_features=member,
            qid=query,
            epsilon=0.6,
        )
        pvalues.append(r.pvalue[1])
        z = r.estimate / r.standard_error
        fits.append((np.abs(z[1]) > 2, r.as_gap().estimate[1], r.slope_term[1]))
    plain, mean, slope = np.mean(fits, axis=0)
    spread = np.std([fit[1] for fit in fits]) / np.sqrt(n)
    assert abs(mean - gap) < 4 * spread
    assert slope < -0.04
    if gap:
        assert np.mean(np.array(pvalues) < 0.05) > 0.6
    else:
        assert plain > 0.2
        assert_level(pvalues)


OF_PEOPLE = {
    "pairs": (dips, {"position_weight": "dcg", "tie_cost": 0.5}),
    "queries": (dips, {"position_weight": "geometric", "average": "queries"}),
    "share": (exposure, {"position_weight": "reciprocal"}),
    "expected": (exposure_gap, {"target": "expected"}),
    "relevance": (exposure_gap, {"target": "relevance", "average": "amortized"}),
}


@pytest.mark.study
class TestPopulation:
    """Users of a population of a few dozen, whose values are the truth."""

    N_REPLICATIONS, N_USERS, N_PEOPLE = 800, 60, 50

    @pytest.fixture(scope="class")
    @classmethod
    def people(cls):
        """People with 1 to 4 queries of 3 to 7 items; grades and scores have ties.

        Each has a taste of their own for "a", which their queries share.
        """
        rng = np.random.default_rng(0)
        user = np.repeat(np.arange(cls.N_PEOPLE), rng.integers(1, 5, cls.N_PEOPLE))
        query = np.repeat(np.arange(user.size), rng.integers(3, 8, user.size))
        row_user = user[query]
        group = rng.choice(["a", "b"], query.size)
        taste = rng.normal(-0.3, 2, cls.N_PEOPLE)
        quality = rng.normal(size=query.size)
        y = np.clip(np.rint(quality), 0, 2)
        s = (quality + taste[row_user] * (group == "a")).round()
        return Rows(y, s, group, query, row_user)

    @pytest.fixture(scope="class")
    @classmethod
    def drawn(cls, people):
        """The users of all replications."""
        rng = np.random.default_rng(1)
        starts = np.searchsorted(people.user, np.arange(cls.N_PEOPLE + 1))
        chosen = rng.integers(0, cls.N_PEOPLE, cls.N_REPLICATIONS * cls.N_USERS)
        sizes = np.diff(starts)[chosen]
        user = np.repeat(np.arange(chosen.size), sizes)
        first = np.repeat(np.cumsum(sizes) - sizes, sizes)
        rows = people.take(np.arange(user.size) - first + starts[chosen][user])
        query = rows.query + user * (people.query.max() + 1)
        return rows._replace(query=query, user=user)

    def replications(self, name, rows):
        metric, options = OF_PEOPLE[name]
        who = {"sensitive_features": rows.group, "qid": rows.query}
        whole = metric(rows.y, rows.s, cluster=rows.user, **who, **options)
        users = self.N_REPLICATIONS * self.N_USERS + 1
        return list(slices(whole, np.arange(0, users, self.N_USERS)))

    def truth_of(self, name, people):
        metric, options = OF_PEOPLE[name]
        who = {"sensitive_features": people.group, "qid": people.query}
        return metric(people.y, people.s, **who, **options).estimate

    @pytest.mark.parametrize("name", OF_PEOPLE)
    def test_intervals_cover(self, people, drawn, name):
        truth = self.truth_of(name, people)
        assert np.all(np.abs(truth) > 0.01)
        parts = self.replications(name, drawn)
        assert_covers([part.confidence_interval() for part in parts], truth)
        gaps = [part.contrast("a", "b").confidence_interval() for part in parts]
        assert_covers(gaps, truth[0] - truth[1])

    # Amortised relevance has no part in the tastes.
    @pytest.mark.parametrize("name", ["pairs", "queries", "expected"])
    def test_size_under_the_null(self, drawn, name):
        # Which group is which is tossed for every user, so that neither is favoured.
        rng = np.random.default_rng(2)
        tossed = rng.integers(0, 2, drawn.user[-1] + 1)[drawn.user] == 1
        other = np.where(drawn.group == "a", "b", "a")
        rows = drawn._replace(group=np.where(tossed, other, drawn.group))
        gaps = [part.contrast("a", "b") for part in self.replications(name, rows)]
        # By hand, as not every metric is equal for all groups of another toss.
        ratios = np.array([gap.estimate / gap.standard_error for gap in gaps])
        pvalues = 2 * t.sf(np.abs(ratios), [gap.df for gap in gaps])
        for level in (0.05, 0.2):
            assert_level(pvalues, level)


PARITY = {
    normalized_discounted_difference: {"step": 2},
    normalized_discounted_ratio: {"step": 2},
    normalized_discounted_kl: {"step": 2},
    ndkl: {},
    skew_at_k: {"k": 6},  # which always has a member
    exposure_parity: {},
    pairwise_parity: {},
}
each_parity = pytest.mark.parametrize("metric", PARITY, ids=lambda m: m.__name__)


@pytest.mark.study
class TestFilledLists:
    """Users with one to three lists of eight items, three of them in the group.

    They are filled from the top with an advantage that is the user's.
    """

    N_USERS, N_ITEMS, N_MEMBERS = 60, 8, 3
    ADVANTAGES = np.array([0.3, 0.8])  # of every other user

    @classmethod
    def columns_of(cls, member):
        return {
            "y_score": np.tile(-np.arange(cls.N_ITEMS), len(member)),
            "sensitive_features": member.ravel(),
            "qid": np.repeat(np.arange(len(member)), cls.N_ITEMS),
        }

    @pytest.fixture(scope="class")
    @classmethod
    def drawn(cls):
        """Columns of all replications, users one after the other."""
        rng = np.random.default_rng(0)
        n_users = N_REPLICATIONS * cls.N_USERS
        user = np.repeat(np.arange(n_users), rng.integers(1, 4, n_users))
        advantage = cls.ADVANTAGES[rng.integers(0, 2, n_users)][user]
        draws = rng.random((user.size, cls.N_ITEMS)) < advantage[:, None]
        member, left = np.zeros(draws.shape, dtype=bool), np.full(user.size, 3)
        for place in range(cls.N_ITEMS):
            others = cls.N_ITEMS - place - left
            member[:, place] = (draws[:, place] | (others == 0)) & (left > 0)
            left -= member[:, place]
        return cls.columns_of(member), np.repeat(user, cls.N_ITEMS)

    def probability(self, order, advantage):
        """Return the probability of a list, given who is a member at each place."""
        left = {True: self.N_MEMBERS, False: self.N_ITEMS - self.N_MEMBERS}
        chance = 1.0
        for member in map(bool, order):
            if all(left.values()):
                chance *= advantage if member else 1 - advantage
            left[member] -= 1
        return chance

    def truth_of(self, metric, average):
        """Return the values of others and members over all lists that may be drawn."""
        if average == "queries":
            orders = np.zeros((56, self.N_ITEMS), dtype=bool)
            places = list(itertools.combinations(range(self.N_ITEMS), self.N_MEMBERS))
            orders[np.arange(56)[:, None], places] = True
            chances = [
                np.mean([self.probability(order, a) for a in self.ADVANTAGES])
                for order in orders
            ]
            assert sum(chances) == pytest.approx(1)
            r = metric(None, **self.columns_of(orders), **PARITY[metric])
            return np.array(chances) @ r.sums.rows.by_group[:, :, 0]
        share = self.N_MEMBERS / self.N_ITEMS
        shares = [
            make_biased_rankings(1, self.N_ITEMS, share, a).position_share
            for a in self.ADVANTAGES
        ]
        share = np.mean(shares, axis=0)[:, None]
        sizes = np.array([self.N_MEMBERS, self.N_ITEMS - self.N_MEMBERS])
        matrix = np.repeat(np.hstack([share, 1 - share]) / sizes, sizes, axis=1)
        member = np.arange(self.N_ITEMS) < self.N_MEMBERS
        table = expected_advantage(matrix, sensitive_features=member, step=2, k=6)
        return table[metric.__name__].to_numpy()

    @each_parity
    @pytest.mark.parametrize("average", ["queries", "representation"])
    def test_intervals_cover(self, drawn, metric, average):
        columns, user = drawn
        truth = self.truth_of(metric, average)
        assert np.all(np.abs(truth) > 0.01)
        options = {"cluster": user, "average": average, **PARITY[metric]}
        users = N_REPLICATIONS * self.N_USERS + 1
        whole = metric(None, **columns, **options)
        parts = list(slices(whole, np.arange(0, users, self.N_USERS)))
        assert_covers([part.confidence_interval() for part in parts], truth)
        estimates = [part.estimate for part in parts]
        error = np.std(estimates, axis=0) / N_REPLICATIONS**0.5
        if average == "queries":
            assert np.all(np.abs(np.mean(estimates, axis=0) - truth) < 5 * error)


@pytest.mark.filterwarnings("ignore:skew_at_k is infinite")
@each_parity
def test_size_of_the_permutation_test(metric):
    # p is uniform in fair lists but for its steps: at 10%.
    rng = np.random.default_rng(0)
    pvalues = []
    for _ in range(200):
        r = metric(
            None, rng.permutation(24), sensitive_features=np.arange(24) < 8,
            **PARITY[metric],
        )  # fmt: skip
        pvalues.append(r.test(n_resamples=49, random_state=rng).pvalue[1])
    rejected = np.mean(np.array(pvalues) <= 0.1)
    assert rejected < 0.1 + 1.25 * tolerance(0.1, 200)
    if metric is not skew_at_k:  # which has few values
        assert rejected > 0.1 - 1.25 * tolerance(0.1, 200)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_metrics_turn_at_the_share(share):
    """Figure 2: the generator has no exact parity, but the metrics turn at it."""
    grid = np.arange(0, 1.01, 0.1)
    options = {
        normalized_discounted_difference: {},
        normalized_discounted_kl: {},
        exposure_parity: {},
        pairwise_parity: {},
    }
    for metric, extra in options.items():
        means = []
        for alpha in grid:
            data = make_biased_rankings(20, 300, share, alpha, random_state=0)
            who = {"sensitive_features": data.sensitive_features, "qid": data.qid}
            r = metric(None, data.y_score, **who, **extra)
            means.append(r.estimate[1])
        turn = int(np.argmin(means))
        assert abs(grid[turn] - share) < 0.11, metric.__name__
        # Up on both sides, but for the noise of neighbours.
        assert (np.diff(means[: turn - 1]) < 0).all()
        assert (np.diff(means[turn + 1 :]) > 0).all()
        if metric is pairwise_parity:
            np.testing.assert_allclose([means[0], means[-1]], 1)
        elif share != 0.5:
            weak = means[0] if share < 0.5 else means[-1]
            assert weak < 0.95


def test_exact_shares_give_the_metric_of_the_mean():
    n_rankings = 3000
    data = make_biased_rankings(n_rankings, 20, 0.3, 0.6, random_state=0)
    r = pairwise_parity(
        None,
        data.y_score,
        sensitive_features=data.sensitive_features,
        qid=data.qid,
        average="representation",
    )
    share, sizes = data.position_share[:, None], np.array([6, 14])
    matrix = np.repeat(np.hstack([share, 1 - share]) / sizes, sizes, axis=1)
    group = np.arange(20) < data.n_protected
    table = expected_advantage(matrix, sensitive_features=group, step=5)
    expected = table.loc[True, "pairwise_parity"]
    assert abs(r.estimate[1] - expected) < 5 * r.standard_error[1]


def test_exposure_parity_of_users_that_differ():
    """Shuffles within queries, which know of no user, rejected 14%."""
    rng, pvalues = np.random.default_rng(0), []
    user, query = np.repeat(np.arange(40), 40), np.repeat(np.arange(160), 10)
    for seed in range(100):
        member = rng.random(query.size) < 0.4
        score = rng.normal(size=query.size) + 0.6 * rng.normal(size=40)[user] * member
        who = {"sensitive_features": member, "qid": query, "cluster": user}
        r = exposure_parity(None, score, signed=True, **who)
        pvalues.append(r.test(n_resamples=99, random_state=seed).pvalue)
    assert_level(pvalues)


@pytest.mark.study
@pytest.mark.parametrize("options", [{}, {"direction": "both"}])
def test_band_of_a_curve(options):
    """At some threshold an interval misses in 13% to 25%."""
    model, rng, ends, estimates = (
        Model(user_outcome=0.5),
        np.random.default_rng(0),
        [],
        [],
    )
    for _ in range(60):
        p = model.rows(rng, np.full(60, 15), np.arange(60))
        grid = np.geomspace(0.02, 1, 8)
        who = {"sensitive_features": p.group, "qid": p.query, "epsilon": grid}
        curve = matched_pair_curve(p.y, p.s, **who, **options)
        ends.append(curve.simultaneous_interval(n_resamples=2000))
        estimates.append(curve.estimate)
    low, high = np.moveaxis(np.array(ends), 1, 0)
    truth = np.mean(estimates, axis=0)
    assert_level(((low <= truth) & (truth <= high)).all(axis=1), at_most=True)


# Gaps by engagement, and mean positions


def engaged(seed, bend, n_queries=150):
    """Draw queries whose scores favour a group by `bend` at low engagement alone."""
    rng = np.random.default_rng(seed)
    shape = n_queries, 6
    group, utility = rng.random(shape) < 0.4, rng.normal(size=shape)
    z, y = rng.random(shape), utility + rng.normal(size=shape) > 0.5
    score = utility + bend * group * np.where(z < 0.5, 1, -1)
    columns = {
        "sensitive_features": np.where(group, "f", "m").ravel(),
        "qid": np.repeat(np.arange(n_queries), 6),
    }
    return y.ravel().astype(float), score.ravel(), z.ravel(), columns


@pytest.mark.study
def test_gaps_of_strata_are_false_alarms_at_the_level_and_found():
    rejected, hidden = {0.0: 0, 1.0: 0}, {0.0: 0, 1.0: 0}
    for bend, seed in itertools.product(rejected, range(100)):
        y, score, z, columns = engaged(seed, bend)
        r = pairwise_accuracy(y, score, engagement=z, bins=4, **columns)
        rejected[bend] += r.breakdown()["pvalue_corrected"].min() < 0.05
        hidden[bend] += bool(r.hidden_gaps)
    # By Bonferroni at most 5%, within three errors of the simulation.
    assert rejected[0.0] < 100 * 0.05 + 3 * np.sqrt(100 * 0.05 * 0.95)
    assert hidden[0.0] <= rejected[0.0]
    assert hidden[1.0] > 0.6 * 100


def test_mean_positions_are_in_their_intervals():
    names = {"all": 0, "intra": 0, "inter": 0}
    truth = {}
    for comparison in names:
        y, score, _, columns = engaged(10**6, 0.5, 60_000)
        truth[comparison] = mean_position(y, score, comparison=comparison, **columns)
    for seed, comparison in itertools.product(range(400), names):
        y, score, _, columns = engaged(seed, 0.5)
        r = mean_position(y, score, comparison=comparison, **columns)
        low, high = r.confidence_interval()
        true = truth[comparison].estimate[0]
        names[comparison] += not low[0] <= true <= high[0]
    assert max(names.values()) < 400 * 0.05 + 3 * np.sqrt(400 * 0.05 * 0.95)
    assert min(names.values()) > 5


@pytest.mark.study
def test_groups_of_few_events_are_accused_rarely_and_worse_ones_found():
    """Events of about one of 40 items that can be compared: most samples have none."""
    few = RareEvents("", 2000, 0.05, ((1, 30), (1, 9)))
    many = RareEvents("", 6000, 0.2, ((1, 30), (1, 9)))
    shares = []
    for design, factor, times in ((few, 1, 200), (many, 0.4, 20)):
        pvalues = []
        for seed in range(times):
            columns = design.draw(seed)
            group = columns["sensitive_features"]
            score = columns["y_score"] * np.where(group == 1, factor, 1)
            r = matched_pair_calibration(
                columns["y_true"], score, sensitive_features=group
            )
            pvalues.append(r.test().corrected().min())
            stored = r.compact().test().corrected().min()
            assert stored == pytest.approx(pvalues[-1], rel=0.05)
        shares.append(np.mean(np.array(pvalues) <= 0.05))
    assert shares[0] < 0.05 + tolerance(0.05, 200)
    assert shares[1] > 0.8


@pytest.mark.study
@pytest.mark.parametrize("comparison", ["all", "inter"])
def test_users_count_alike_in_tests_by_their_weights(comparison):
    """The means over queries of a rare group and of others differ in fair rankings."""
    pvalues, apart = [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        size = rng.integers(2, 41, 1000)
        query = np.repeat(np.arange(1000), size)
        y, user = rng.lognormal(size=query.size), query // 5
        who = {"sensitive_features": rng.random(query.size) < 0.1, "qid": query}
        options = {**who, "cluster": user, "comparison": comparison}
        data = y, y + rng.normal(size=query.size)
        pvalues.append(pairwise_accuracy(*data, **each_alike(options)).pvalue[0])
        mean = pairwise_accuracy(*data, **options, average="queries")
        assert np.isnan(mean.pvalue).all()
        low, high = mean.contrast(0, 1).confidence_interval()
        apart.append(not low < 0 < high)
    assert_level(np.array(pvalues))
    assert np.mean(apart) > 0.2


@pytest.mark.parametrize("worse", [0.0, 1.0])
def test_the_order_inside_groups_is_compared_with_that_inside_others(worse):
    """Pairs across the others, of unlike base rates, made all groups seem worse."""
    pvalues = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        group = rng.integers(0, 3, 2400)
        chance = np.array([0.1, 0.3, 0.7])[group]
        y = rng.random(2400) < chance
        s = y + rng.normal(size=2400) + special.logit(chance)
        s += worse * rng.normal(size=2400) * (group == 1)
        who = {"sensitive_features": group, "qid": np.arange(2400) // 12}
        pvalues.append(pairwise_accuracy(y, s, comparison="intra", **who).pvalue)
    if worse:
        assert np.mean(np.array(pvalues)[:, 1] < 0.05) > 0.35
    else:
        assert_level(np.array(pvalues))


@pytest.mark.study
@pytest.mark.parametrize(("sharp", "worse"), [(2.0, 0), (2.8, 0), (2.0, 1), (2.8, 1.4)])
def test_a_small_group_of_a_sharp_list(sharp, worse):
    """Fifteen good items, at the top by chance, seemed certain: 16% were accused."""
    pvalues = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        group, y = np.arange(1500) < 50, rng.random(1500) < 0.3
        s = rng.normal(size=1500) + (sharp - worse * group) * y
        r = pairwise_accuracy(y, s, sensitive_features=group)
        pvalues.append(r.test("t").pvalue[1])
    if worse:
        assert np.mean(np.array(pvalues) < 0.05) > 0.8
    else:
        assert_level(np.array(pvalues), at_most=True)


FIRST_PLACES = {
    "pairwise exposure": (pairwise_exposure, {"k": 5}),
    "pairwise accuracy": (pairwise_accuracy, {"k": 5}),
    "inter-group accuracy": (pairwise_accuracy, {"k": 5, "comparison": "inter"}),
    "exposure": (exposure_gap, {"target": "population"}),
    "exposure of the first": (
        exposure_gap,
        {"target": "population", "position_weight": "top", "k": 5},
    ),
    "exposure by merit": (exposure_gap, {"position_weight": "reciprocal"}),
}


@pytest.mark.study
@pytest.mark.filterwarnings("ignore::skrankfair.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize("items", [10, 20, 40])
@pytest.mark.parametrize("name", FIRST_PLACES)
def test_a_small_group_in_the_first_places(name, items):
    """None of one, two or four due there by chance seemed certain: to 37% accused."""
    (metric, options), pvalues = FIRST_PLACES[name], []
    query = np.repeat(np.arange(40), 50)
    for seed in range(200):
        rng = np.random.default_rng([seed, items])
        group, y = rng.random(2000) < items / 2000, rng.random(2000) < 0.3
        s = rng.normal(size=2000) + (y if "accuracy" in name or "merit" in name else 0)
        if group.any():
            r = metric(y, s, sensitive_features=group, qid=query, **options)
            pvalues.append(r.pvalue)
    assert_level(np.nan_to_num(pvalues, nan=1.0), at_most=True)


@pytest.mark.study
@pytest.mark.filterwarnings("ignore::skrankfair.exceptions.SmallSampleWarning")
@pytest.mark.parametrize("weight", ["top", "reciprocal"])
@pytest.mark.parametrize("below", [0.0, 1.5])
def test_a_small_group_of_items_that_recur(weight, below):
    """Eight good or bad items of a catalogue seemed certain: to 13% were accused."""
    pvalues, query = [], np.repeat(np.arange(100), 40)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        item = np.concatenate([rng.permutation(100)[:40] for _ in range(100)])
        group = np.isin(item, rng.permutation(100)[: 24 if below else 8])
        s = rng.normal(0, 3, 100)[item] + rng.normal(size=4000) - 3 * below * group
        rows = {"sensitive_features": group, "qid": query, "position_weight": weight}
        users = np.stack([query, item], axis=1)
        r = exposure_gap(None, s, target="population", cluster=users, **rows)
        pvalues.append(r.pvalue)
    if below:
        assert np.mean(np.array(pvalues)[:, 1] < 0.05) > 0.8
    else:
        assert_level(np.array(pvalues), at_most=True)


@pytest.mark.study
@pytest.mark.parametrize(
    ("weight", "below"), [("dcg", 0), ("reciprocal", 0), ("dcg", 2)]
)
def test_a_small_group_of_two_samples(weight, below):
    pvalues = []
    for seed in range(200):
        rng, samples = np.random.default_rng(seed), []
        for n_lists in (40, 200):
            query = np.repeat(np.arange(n_lists), 30)
            group = (rng.random(n_lists) < 0.5).repeat(30) & (
                np.arange(query.size) % 30 == 0
            )
            s = rng.normal(size=query.size) - below * group * (n_lists == 40)
            rows = {
                "sensitive_features": group,
                "qid": query,
                "position_weight": weight,
            }
            samples.append(exposure_gap(None, s, target="population", **rows))
        pvalues.append(compare_independent(*samples).pvalue)
    if below:
        assert np.mean(np.array(pvalues)[:, 1] < 0.05) > 0.6
    else:
        assert_level(np.array(pvalues), at_most=True)


def market(rng, first, items):
    """Return the exposure gap of a catalogue of 200 items, seen by 80 users."""
    label = rng.permutation(200) < items
    item = np.concatenate([rng.permutation(200)[:10] for _ in range(80)])
    query = np.repeat(np.arange(80), 10)
    y, s = rng.normal(size=(2, 200))[:, item] + rng.normal(size=(2, 800))
    users = np.stack([query, item], axis=1) + first
    rows = {"sensitive_features": label[item], "qid": query, "cluster": users}
    return exposure_gap(y, s, **rows)


@pytest.mark.study
@pytest.mark.filterwarnings("ignore::skrankfair.exceptions.SmallSampleWarning")
@pytest.mark.parametrize("items", [8, 40])
def test_catalogues_of_two_markets(items):
    """The large group had the error of users alone: it was accused in 17%."""
    pvalues = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        markets = [market(rng, first, items) for first in (0, 1000)]
        pvalues.append(compare_independent(*markets).pvalue)
    assert_level(np.array(pvalues), at_most=True)


@pytest.mark.study
@pytest.mark.parametrize("lists", ["apart", "tied", "of users"])
@pytest.mark.parametrize("name", ["pairwise accuracy", "inter-group accuracy"])
def test_one_item_in_each_list_and_the_first_place(name, lists):
    """The large group was accused in 36%, and both where some lists were all tied."""
    (metric, options), pvalues = FIRST_PLACES[name], []
    times = 10 if lists == "of users" else 1
    query = np.repeat(np.arange(40 * times), 20)
    group = np.tile([1] + [0] * 19, 40 * times)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        y, s = rng.random(query.size) < 0.4, rng.normal(size=query.size)
        if times > 1:  # the item of a user keeps its quality
            s[group == 1] *= 0.3
            s[group == 1] += np.repeat(rng.normal(size=40), times)
        s[query < 4 * (lists == "tied")] = 0
        rows = {"sensitive_features": group, "qid": query, "cluster": query // times}
        pvalues.append(metric(y, s, **rows, **options | {"k": 1}).pvalue)
    assert_level(np.nan_to_num(pvalues, nan=1.0), at_most=True)


@pytest.mark.parametrize("name", FIRST_PLACES)
def test_a_small_group_that_is_put_below_is_found(name):
    (metric, options), pvalues = FIRST_PLACES[name], []
    query = np.repeat(np.arange(40), 50)
    for seed in range(100):
        rng = np.random.default_rng(seed)
        group, y = rng.random(2000) < 0.05, rng.random(2000) < 0.3
        s = rng.normal(size=2000) + y - 2 * group
        r = metric(y, s, sensitive_features=group, qid=query, **options)
        pvalues.append(r.pvalue[1])
    assert np.mean(np.array(pvalues) < 0.05) > 0.8


# Memory


def test_memory_of_a_curve_is_not_for_each_threshold(monkeypatch):
    n, n_groups, thresholds = 10_000, 200, np.linspace(0.1, 0.2, 8)
    # What all results may keep is as large beside the rows as for a million.
    monkeypatch.setattr(sums, "_MOST_LEADING", n)
    monkeypatch.setattr(sums, "MOST_PRODUCTS", n // 5)
    rng = np.random.default_rng(0)
    score, y = rng.random((2, n))
    group, query = rng.integers(0, n_groups, n), rng.integers(0, n // 50, n)
    given = {"sensitive_features": group, "qid": query}
    peaks = []
    for grid in (thresholds[-1:], thresholds):
        make = partial(matched_pair_curve, y, score, **given, epsilon=grid)
        found, peak = with_peak(make)
        peaks.append(peak)
    # The rows of all thresholds would take 300 bytes per row.
    assert peaks[1] - peaks[0] < 50 * n + 400 * n_groups * thresholds.size
    alone = matched_pair_calibration(y, score, **given, epsilon=0.2)
    last, total = found.results[-1], (found + found).results[-1]
    np.testing.assert_array_equal(last.estimate, alone.estimate)
    with pytest.raises(ValueError, match="compare groups before compact"):
        last.contrast(0, 1)
    for one, all_rows in ((last, alone), (total, alone + alone)):
        np.testing.assert_allclose(
            one.standard_error, all_rows.standard_error, rtol=0.05
        )


def with_prices(seed, n_queries):
    """Columns in which the group is cheap, and the outcome falls with the price."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(n_queries), 12)
    group, score = rng.permutation(query.size) % 2, rng.random(query.size)
    price = rng.random(query.size) - 0.5 * group
    y = score - price + 0.1 * group + rng.normal(0, 0.2, query.size)
    return y, score, price, {"sensitive_features": group, "qid": query}


def test_the_truth_at_equal_prices():
    """A group of lower prices seems to be undervalued by more than it is."""
    hidden, found, covered = [], [], []
    for seed in range(40):
        y, score, price, who = with_prices(seed, 100)
        plain = matched_pair_calibration(y, score, direction="both", epsilon=0.1, **who)
        r = matched_pair_calibration(y, score, covariates=price, epsilon=0.1, **who)
        hidden.append(plain.estimate[1])
        found.append(r.estimate[1])
        low, high = r.confidence_interval()
        # Prices of matched items differ by what their densities make of them.
        covered.append(low[1] < 0.1 < high[1])
    assert np.mean(hidden) > 0.5
    assert abs(np.mean(found) - 0.1) < 4 * np.std(found) / np.sqrt(40) + 0.005
    assert sum(covered) >= 33  # 38 are expected, 4 standard deviations are 5.5
