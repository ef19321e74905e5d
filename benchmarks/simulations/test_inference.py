"""Levels, power and coverage of the tests, on data whose truth is known."""

import itertools
from functools import partial

import numpy as np
import pytest
from scipy import special

from benchmarks.simulations.common import (
    assert_covers,
    assert_level,
    quiet,
    rejection_rate,
    slices,
    tolerance,
)
from skrankfair.datasets import make_biased_rankings, make_confounded_queries
from skrankfair.inference import (
    compare,
    compare_independent,
    marginal_outcome_test,
    monotonicity_test,
    outcome_inequality_test,
    predictive_parity_test,
    score_order_test,
)
from skrankfair.metrics import (
    brier_score,
    calibration_in_the_large,
    log_loss,
    matched_pair_calibration,
    mean_squared_error,
    pairwise_accuracy,
    pairwise_exposure,
    selection_rate,
    skew_at_k,
)
from tests.inference.test_compare import both, frame, one_list
from tests.inference.test_monotonicity import bump, columns, fair, ranked
from tests.metrics.common import with_peak

pytestmark = pytest.mark.simulation


@pytest.fixture(autouse=True)
def _quiet():
    with quiet():
        yield


def generators(n, *stream):
    """Yield a generator for each data set."""
    return (np.random.default_rng([seed, *stream]) for seed in range(n))


# Predictive parity


def test_memory_grows_with_groups_and_not_with_their_pairs():
    rng = np.random.default_rng(0)
    score, member = rng.random(1000), rng.random((1000, 64)) < 0.1
    columns = {"sensitive_features": member, "grid": np.linspace(0.2, 0.8, 5)}
    y, call = rng.random(1000) < score, partial(predictive_parity_test, **columns)
    found, peak = with_peak(lambda: call(y, score, n_resamples=300))
    assert found.pvalue > 0.01
    # Products of all curves take 110 MB.
    assert peak < 40e6


def users_with_a_bump(rng, bump, n_users=150):
    """Outcomes and scores of users depend; the curve of "a" has a bump at 0.6."""
    user = np.repeat(np.arange(n_users), 1 + rng.poisson(3, n_users))

    def correlated(rho):
        own, noise = rng.normal(size=n_users)[user], rng.normal(size=user.size)
        return special.ndtr(np.sqrt(rho) * own + np.sqrt(1 - rho) * noise)

    in_a = (rng.random(n_users) < 0.5)[user]
    s = correlated(0.5)
    mean = 0.2 + 0.5 * s + bump * in_a * np.exp(-0.5 * ((s - 0.6) / 0.15) ** 2)
    return (correlated(0.8) < mean).astype(float), s, np.where(in_a, "a", "b"), user


@pytest.mark.study
def test_curves_of_dependent_rows():
    """Clusters keep the level, sup-t has more power, and intervals cover."""
    n, tests, covered = 200, {0.0: [], 0.3: []}, []
    for height, of_height in tests.items():
        for rng in generators(n, 1):
            y, s, group, user = users_with_a_bump(rng, height)
            grid = np.quantile(s, np.linspace(0.05, 0.95, 15))
            options = {"sensitive_features": group, "n_resamples": 1000, "grid": grid}
            t = predictive_parity_test(y, s, cluster=user, **options)
            bonferroni = t.pointwise_pvalues.min() * grid.size
            ignoring = predictive_parity_test(y, s, **options).pvalue
            of_height.append((t.pvalue, bonferroni, ignoring))
            low, high = t.band(kind="pointwise")
            truth = height * np.exp(-0.5 * ((grid - 0.6) / 0.15) ** 2)
            covered.append(np.mean((low[0] <= truth) & (truth <= high[0])))
    sup_t, bonferroni, ignoring = np.transpose(tests[0.0])
    assert_level(sup_t, at_most=True)
    assert_level(bonferroni, at_most=True)
    assert rejection_rate(ignoring) > 0.05 + tolerance(0.05, n)
    sup_t, bonferroni, _ = np.transpose(tests[0.3]) < 0.05
    assert not (bonferroni & ~sup_t).any()
    assert sup_t.mean() > max(0.5, bonferroni.mean() + 0.03)
    # Points of one data set depend: the error is that of their mean.
    error = np.std(covered) / np.sqrt(len(covered))
    assert abs(np.mean(covered) - 0.95) < 0.01 + 4 * error


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


def parity(rng, s, in_a, mean):
    y = rng.random(s.size) < mean
    return predictive_parity_test(y, s, sensitive_features=in_a, n_resamples=1000)


@pytest.mark.study
@pytest.mark.parametrize("design", [unlike, steep, rare, few_scores])
def test_one_curve_and_different_scores(design):
    """The paper's smoother rejects 20 to 90% of these, and a null is true in all."""
    tests = [parity(rng, *design(rng)) for rng in generators(80, 5)]
    assert all(t.compared.any() for t in tests)
    assert_level([t.pvalue for t in tests], at_most=True)


def apart(rng, gap, sizes, share=0.5, effect=0.0):
    """Two groups of clusters without common scores, whose outcomes differ by a gap."""
    in_b = rng.random(sizes.size) < share
    user = np.repeat(np.arange(sizes.size), sizes)
    s = rng.uniform(0, 0.5, user.size) + 0.5 * in_b[user]
    own = effect * rng.normal(size=sizes.size)
    mean = special.expit(own - 1)[user] - gap * in_b[user]
    y = (rng.random(user.size) < mean).astype(float)
    return y, s, {"sensitive_features": in_b[user], "cluster": user}


@pytest.mark.study
@pytest.mark.parametrize(
    ("gap", "options", "least"),
    [
        (0.0, {"sizes": np.ones(400, int)}, 0.0),
        (0.0, {"sizes": np.ones(2000, int), "share": 0.05}, 0.0),
        (0.0, {"sizes": 1 + np.arange(60) ** 2 // 40, "effect": 1.0}, 0.0),
        (0.0, {"sizes": np.r_[np.full(24, 5), 600], "effect": 0.5}, 0.0),
        (0.1, {"sizes": np.ones(1000, int)}, 0.85),
    ],
)
def test_the_order_of_groups_without_common_scores(gap, options, least):
    tests = []
    for rng in generators(200, 9):
        y, s, who = apart(rng, gap, **options)
        tests.append(score_order_test(y, s, n_resamples=1000, **who).pvalue)
    if gap:
        assert rejection_rate(tests) > least
    else:
        assert_level(tests, at_most=True)


def test_the_order_of_groups_of_which_one_has_a_longer_tail():
    tests = []
    for rng in generators(200, 9):
        in_b = rng.random(600) < 0.7
        sd = np.where(in_b, 1.5, 0.5)
        y = np.exp(sd * rng.normal(size=600) - sd**2 / 2)
        s = rng.uniform(0, 0.5, 600) + 0.5 * in_b
        who = {"sensitive_features": in_b, "n_resamples": 1000}
        tests.append(score_order_test(y, s, **who).pvalue)
    assert_level(tests, at_most=True)


def test_the_critical_value_of_two_uncorrelated_moments():
    # Outcomes do not depend on anything: the two moments have disjoint queries and
    # mean 0, so no correlation; their maximum has the distribution Φ².
    rng, n_resamples = np.random.default_rng(0), 40_000
    group, qid = rng.choice(["a", "b"], 40_000), np.repeat(np.arange(20_000), 2)
    data = rng.random(40_000), rng.normal(size=40_000)
    who = {"sensitive_features": group, "qid": qid, "random_state": 0}
    for level in (0.9, 0.95):
        who |= {"confidence_level": level, "n_resamples": n_resamples}
        t = outcome_inequality_test(*data, **who)
        value = special.ndtri(np.sqrt(level))
        density = 2 * np.exp(-(value**2) / 2) / np.sqrt(2 * np.pi) * np.sqrt(level)
        error = tolerance(level, n_resamples) / density
        assert abs(t.critical_value - value) < error
    p = 1 - special.ndtr(t.statistic) ** 2
    assert abs(t.pvalue - p) < tolerance(p, n_resamples)


@pytest.mark.parametrize(("level", "slope"), [(0.35, 0), (0, 2.2)])
def test_level_and_slope_are_found_where_curves_alone_find_less(level, slope):
    found = []
    for rng in generators(40, 7):
        logit, in_a = rng.normal(size=1000), rng.random(1000) < 0.5
        s = special.expit(logit)
        gap = in_a * (level + slope * (s - 0.5))
        t = parity(rng, s, in_a, special.expit(logit + gap))
        found.append([t.pvalue < 0.05, np.nanmin(t.pvalues) < 0.05])
    both, curves = np.mean(found, axis=0)
    assert both >= curves + 0.05
    assert both > 0.4


def test_a_gap_between_groups_of_different_scores_is_found():
    n, tests = 40, []
    for rng in generators(n, 6):
        s, in_a, _ = unlike(rng, 2000)
        gap = np.where(in_a, 0.1, -0.1)
        tests.append(parity(rng, s, in_a, 0.2 + 0.6 * s + gap))
    assert rejection_rate([t.pvalue for t in tests]) > 0.8
    # Groups are True and False; False, whose scores are high, comes first.
    difference = [np.nanmean(t.difference) for t in tests]
    assert abs(np.mean(difference) + 0.2) < 4 * np.std(difference) / np.sqrt(n)


# Marginal outcomes


def test_a_line_is_unbiased_at_the_boundary():
    """Outcomes rise by 1 for 1 of score; a mean looks above the threshold."""
    n, threshold = 120, 0.4
    values = {"constant": [], "local_linear": []}
    for rng in generators(n, 7):
        s, group = rng.random(1000), rng.choice(["a", "b"], size=1000)
        y = rng.random(1000) < s
        for boundary, outcomes in values.items():
            t = marginal_outcome_test(
                *(y, s),
                sensitive_features=group,
                threshold=threshold,
                bandwidth=0.2,
                kernel="gaussian",
                boundary=boundary,
            )
            outcomes.append(t.outcomes[0])
    bias = {name: np.mean(values[name]) - threshold for name in values}
    error = {name: np.std(values[name]) / np.sqrt(n) for name in values}
    assert abs(bias["local_linear"]) < 4 * error["local_linear"]
    # A half normal of scale 0.2, cut at 0.6: about 0.16 above.
    assert bias["constant"] > 0.1 > 10 * error["constant"]


def test_marginal_outcomes_of_clusters():
    pvalues = []
    for rng in generators(200, 9):
        cluster = np.repeat(np.arange(250), 1 + rng.poisson(3, 250))
        own = special.ndtr(rng.normal(size=250))
        group = rng.choice(["a", "b"], size=250)[cluster]
        s = rng.random(cluster.size) ** np.where(group == "a", 1.0, 0.7)
        y = 0.5 * (own[cluster] + rng.random(s.size)) < s
        t = marginal_outcome_test(
            y, s, sensitive_features=group, cluster=cluster, threshold=0.4
        )
        pvalues.append(t.pvalue)
    assert_level(pvalues, at_most=True)


@pytest.mark.parametrize("n", [400, 2000])
def test_a_rare_group_is_not_accused(n):
    """A group of 5% has another slope and the same outcome at the threshold."""
    pvalues, missed = [], 0
    for rng in generators(100, 8):
        s = rng.beta(3, 2, n)
        group = np.where(rng.random(n) < 0.05, "b", "a")
        above = s - 0.5
        mean = np.where(group == "b", s, 0.5 + 0.5 * above + 1.5 * above**2)
        y = rng.random(n) < mean
        t = marginal_outcome_test(y, s, sensitive_features=group, threshold=0.5)
        pvalues.append(t.pvalue)
        low, high = t.confidence_interval()
        missed += bool(low[0] > 0 or high[0] < 0)
    assert_level(pvalues, at_most=True)  # without a p-value there is no accusation
    assert missed / 100 < 0.05 + tolerance(0.05, 100)


# Outcome inequalities


def rejections(n, draw, **options):
    """Return p-values of data sets, each some columns and who they are of."""
    tests = []
    for rng in generators(n, 3):
        data, who = draw(rng)
        t = outcome_inequality_test(
            *data, **who, n_resamples=400, random_state=0, **options
        )
        tests.append(t.pvalue)
    return tests


def no_signal(rng, n_queries=300, user_effect=0.0):
    """Outcomes that the score knows nothing of; users of 5 queries prefer a group."""
    query = np.repeat(np.arange(n_queries), 6)
    group = rng.integers(0, 2, query.size)
    taste = rng.normal(0, user_effect, n_queries // 5)[query // 5]
    y = rng.normal(size=query.size) + taste * group
    who = {"sensitive_features": group, "qid": query, "cluster": query // 5}
    return (y, rng.random(query.size)), who


def test_inequalities_that_are_all_0():
    assert_level(rejections(600, no_signal))


def test_inequalities_with_clusters():
    def by_user(rng):
        return no_signal(rng, 500, 2.0)

    def by_query(rng):
        data, who = by_user(rng)
        return data, {**who, "cluster": None}

    # 100 clusters: Student's t is for one mean, and the largest of some is tested.
    share = rejection_rate(rejections(400, by_user))
    assert abs(share - 0.05) < tolerance(0.05, 400) + 0.005
    assert rejection_rate(rejections(200, by_query)) > 0.1


def inequalities_and_matched_pairs(data, n, **options):
    """Return the p-values of both in each of n parts of the data."""
    names = ("y_true", "y_score", "sensitive_features", "qid")
    inequality = [
        outcome_inequality_test(
            *(y, s),
            sensitive_features=group,
            qid=query,
            n_resamples=400,
            random_state=0,
            **options,
        ).pvalue
        for y, s, group, query in zip(
            *(data[name].reshape(n, -1) for name in names), strict=True
        )
    ]
    result = matched_pair_calibration(
        *(data.y_true, data.y_score),
        sensitive_features=data.sensitive_features,
        qid=data.qid,
        epsilon=0.1,
        direction="both",
    )
    starts = np.arange(n + 1) * (result.sums.rows.n_rows // n)
    return inequality, [part.pvalue[0] for part in slices(result, starts)]


@pytest.mark.parametrize(("n_items", "n"), [(10, 200), (40, 100)])
def test_inequalities_have_less_power_than_matched_pairs(n_items, n):
    data = make_confounded_queries(n * 500, n_items=n_items, random_state=0)
    inequality, matched = map(
        rejection_rate, inequalities_and_matched_pairs(data, n, k=None)
    )
    assert matched - inequality > tolerance(0.5, n)
    if n_items == 40:  # neighbours have scores that are close
        assert inequality > 0.05 + tolerance(0.05, n)


def test_a_fair_ranker():
    fairly = {"bias": ((1.3, 1.3), (0.8, 0.8)), "share": (1 / 7, 5 / 7)}
    data = make_confounded_queries(400 * 300, random_state=0, **fairly)
    inequality, matched = inequalities_and_matched_pairs(data, 400)
    assert_level(inequality, at_most=True)
    assert_level(matched)


# Monotonicity


def panels(rng, n_panels=20, n_lists=10, noise=0.5, n=10, n_members=4):
    """Lists of a panel copy from each other."""
    scores = rng.normal(size=(n_panels, 1, n))
    scores = scores + noise * rng.normal(size=(n_panels, n_lists, n))
    return ranked(scores, n_members).reshape(-1, n)


def reserved(rng, first=2, n_lists=60, n=10, n_members=4):
    """The first positions are for others; from there members have an advantage."""
    data = make_biased_rankings(
        n_lists, n - first, n_members / (n - first), 0.85, random_state=rng
    )
    tail = data.sensitive_features.reshape(n_lists, -1) == "protected"
    return np.hstack([np.zeros((n_lists, first), dtype=bool), tail])


@pytest.mark.study
@pytest.mark.parametrize("increasing", ["auto", False])
def test_flat_shares_are_the_hardest_monotone_law(increasing):
    rng = np.random.default_rng(0)
    options = {"increasing": increasing, "n_resamples": 99, "random_state": rng}
    tests = [monotonicity_test(**columns(fair(rng)), **options) for _ in range(1000)]
    assert rejection_rate([t.pvalue - 1e-9 for t in tests]) == pytest.approx(
        0.05, abs=0.015
    )


def test_rankings_that_depend():
    """Chi-square, and lists as clusters, reject too often."""
    rng = np.random.default_rng(0)
    pvalues = []
    for _ in range(150):
        options = columns(panels(rng), increasing=False, n_resamples=99)
        options["random_state"] = rng
        tests = (
            monotonicity_test(**options, cluster=options["qid"] // 10),
            monotonicity_test(**options),
            monotonicity_test(**options, method="chi2"),
        )
        pvalues.append([t.pvalue - 1e-9 for t in tests])
    by_panel, by_list, chi2 = rejection_rate(pvalues)
    assert by_panel < 0.05 + 1.25 * tolerance(0.05, 150)
    assert by_list > 0.25
    assert chi2 > 0.1


@pytest.mark.parametrize("law", [reserved, bump], ids=["reserved", "bump"])
def test_rejects_what_is_not_monotone(law):
    rng = np.random.default_rng(2)
    tests = [
        monotonicity_test(**columns(law(rng)), n_resamples=199, random_state=rng)
        for _ in range(40)
    ]
    assert np.mean([t.rejected for t in tests]) > 0.8


def test_resamples_spread_as_new_rankings():
    rng = np.random.default_rng(4)
    fresh = [
        monotonicity_test(**columns(fair(rng, 100)), method="chi2").statistic
        for _ in range(600)
    ]
    resampled = [
        monotonicity_test(
            **columns(fair(rng, 100)), n_resamples=200, random_state=rng
        ).null_distribution
        for _ in range(30)
    ]
    # Quantiles of 600 draws: about 5% standard error in the middle of the law.
    for level in (0.5, 0.75, 0.9):
        drawn = np.quantile(np.concatenate(resampled), level)
        assert drawn == pytest.approx(np.quantile(fresh, level), rel=0.2)


def test_the_band_covers_the_law():
    rng = np.random.default_rng(5)
    law = make_biased_rankings(1, 10, 0.5, 0.7).position_share
    inside = []
    for _ in range(200):
        data = make_biased_rankings(60, 10, 0.5, 0.7, random_state=rng)
        test = monotonicity_test(
            data.y_score,
            sensitive_features=data.sensitive_features,
            qid=data.qid,
            group="protected",
            method="chi2",
        )
        inside.append((test.band_low <= law) & (law <= test.band_high))
    # Position by position; the fit has less noise than the shares.
    assert (np.mean(inside, axis=0) > 0.93).all()


# Comparisons


def test_two_models_on_one_list():
    intervals = []
    for seed in range(400):
        y, *scores = one_list(200, seed)
        results = [pairwise_accuracy(y, s, sensitive_features=0 * y) for s in scores]
        intervals.append(compare(*results).confidence_interval())
    assert_covers(intervals, 0.0)  # both scores are as good


@pytest.mark.study
def test_two_models_on_the_same_queries():
    """The truth is the difference over all 120,000 queries."""
    whole = both("accuracy", frame(n_queries=120_000))
    truth = whole[0].estimate - whole[1].estimate
    starts = np.arange(0, 120_001, 200)
    differences = list(
        itertools.starmap(
            compare, zip(*(slices(result, starts) for result in whole), strict=True)
        )
    )
    for method in ("t", "bootstrap"):
        intervals = [
            difference.confidence_interval(
                method=method, n_resamples=500, random_state=seed
            )
            for seed, difference in enumerate(differences)
        ]
        assert_covers(intervals, truth)


def test_two_samples_in_which_nothing_has_changed():
    """Users have 1 to 8 queries each; the second sample is a third of the first."""
    rng = np.random.default_rng(0)

    def week(n_users):
        query_user = np.repeat(np.arange(n_users), rng.integers(1, 9, n_users))
        user = np.repeat(query_user, 6)
        query = np.repeat(np.arange(query_user.size), 6)
        taste = rng.normal(size=n_users)[user]
        group = rng.choice(["f", "m"], user.size, p=[0.3, 0.7])
        score = rng.normal(size=user.size) + taste * (group == "f")
        who = {"sensitive_features": group, "qid": query, "cluster": user}
        return pairwise_exposure(None, score, **who)

    tests = [compare_independent(week(60), week(20)).test() for _ in range(250)]
    assert_level([test.pvalue for test in tests])


def rare_losses(rng, sizes, risks):
    """Draw outcomes of two groups; all have the risk of the first as their score."""
    group = np.repeat([0, 1], sizes)
    y = (rng.random(group.size) < np.asarray(risks)[group]).astype(float)
    return y, np.full(y.size, risks[0]), {"sensitive_features": group}


@pytest.mark.study
def test_rare_events_in_a_small_sample_are_no_change_but_many_are():
    """Of 100 rows with a risk of 1%, a third has no event; 1,000 before have ten."""
    shares = []
    for risk in (0.01, 0.1):
        changes = []
        for rng in generators(200, 7):
            now = rare_losses(rng, (900, 100), (0.01, risk))
            before = rare_losses(rng, (3000, 1000), (0.01, 0.01))
            a, b = (brier_score(y, s, **who) for y, s, who in (now, before))
            gaps = compare_independent(a.against_rest(), b.against_rest())
            changes.append([compare_independent(a, b).pvalue[1], gaps.pvalue[1]])
        shares.append((np.array(changes) <= 0.05).mean(axis=0))
    assert (shares[0] < 0.05 + tolerance(0.05, 200)).all()
    assert (shares[1] > 0.8).all()


@pytest.mark.study
@pytest.mark.parametrize(("n_rows", "rate"), [(8, 0.8), (16, 0.9), (10, 0.5)])
def test_gaps_of_shares_near_an_end_have_not_changed(n_rows, rate):
    """A small group of which all are chosen by chance; a large gap is found."""
    found = []
    for rng in generators(200, 12):
        weeks, tests = [], []
        for size, rates in (
            ((200, 200), (rate, rate)),
            ((64, n_rows), (rate, rate)),
            ((600, 200), (0.9, 0.6)),
            ((600, 200), (0.9, 0.9)),
        ):
            group = np.repeat([0, 1], size)
            chosen = rng.random(group.size) < np.array(rates)[group]
            weeks.append(selection_rate(None, chosen, sensitive_features=group))
        for a, b in (weeks[:2], weeks[2:]):
            gaps = compare_independent(a.against_rest(), b.against_rest())
            tests += [gaps.pvalue[1], compare_independent(a, b).contrast(0, 1).pvalue]
        found.append(tests)
    shares = (np.array(found) < 0.05).mean(axis=0)
    assert (shares[:2] < 0.05 + tolerance(0.05, 200)).all()
    assert (shares[2:] > 0.9).all()


@pytest.mark.study
@pytest.mark.parametrize(
    ("n_rows", "risks"),
    [(100, (0.002, 0.01)), (100, (0.01, 0.03)), (300, (0.02, 0.05))],
)
def test_a_group_of_few_events_is_rarely_within_a_margin_that_it_reaches(n_rows, risks):
    """The gap is as large as the margin; within a tenth of it a group is often seen."""
    margin, within = risks[1] - risks[0], []
    for rng in generators(200, 10):
        y, s, who = rare_losses(rng, (2000, n_rows), risks)
        r = calibration_in_the_large(y, s, **who)
        margins = (-margin, margin), (-np.inf, margin), (-10 * margin, 10 * margin)
        tests = [r.equivalence_test(each) for each in margins]
        within.append([test.equivalent[1] for test in tests])
    shares = np.mean(within, axis=0)
    assert (shares[:2] < 0.05 + tolerance(0.05, 200)).all()
    assert shares[2] > 0.8


@pytest.mark.study
@pytest.mark.parametrize("n_events", [1, 3, 10])
def test_few_events_in_a_group_are_no_difference_of_equal_models(n_events):
    """Nothing was seen of events that did not happen: 3 of them, and 15% differed."""
    differs, missed, p = [], [], n_events / 100
    for rng in generators(300, 11):
        y, s, who = rare_losses(rng, (3000, 100), (p, p))
        noise = 0.1 * p * rng.normal(size=(2, y.size))
        low, high = (
            mean_squared_error(y, scores, **who)
            for scores in (noise[0], 2 * s + noise[1])
        )
        differs.append(compare(low, high).test().pvalue[1] <= 0.05)
        ends = np.array(low.confidence_interval())[:, 1]
        missed.append(not ends[0] <= p + (0.1 * p) ** 2 <= ends[1])
    assert np.mean([differs, missed], axis=1).max() < 0.05 + tolerance(0.05, 300)


@pytest.mark.study
def test_few_events_in_a_few_unequal_clusters_are_no_difference_of_equal_models():
    """Signs drawn for the clusters of the group tell nothing of events they lack."""
    differs = []
    for rng in generators(200, 12):
        drawn = rng.pareto(1.0, 330) * np.repeat([1, 2], [300, 30]) + 1
        sizes = np.minimum(drawn, 60).astype(int)
        y, s, who = rare_losses(
            rng, [sizes[:300].sum(), sizes[300:].sum()], (0.01, 0.01)
        )
        who["cluster"] = np.repeat(np.arange(330), sizes)
        noise = 0.001 * rng.normal(size=(2, y.size))
        low, high = (
            mean_squared_error(y, scores, **who)
            for scores in (noise[0], 2 * s + noise[1])
        )
        differs.append(compare(low, high).test().pvalue[1] <= 0.05)
    assert np.mean(differs) < 0.05 + tolerance(0.05, 200)


@pytest.mark.study
def test_gaps_of_two_models_with_rare_events_are_alike():
    """Scores of 0.4 and 2.06 times the risk have the same expected log loss."""
    found = []
    for rng in generators(300, 8):
        y, _, who = rare_losses(rng, (1800, 200), (0.01, 0.01))
        low, high = (log_loss(y, np.full(y.size, s), **who) for s in (0.004, 0.0205))
        gaps = compare(low.against_rest(), high.against_rest())
        contrast = compare(low, high).contrasts()["pvalue"]
        found.append([gaps.pvalue[1], contrast[0]])
    assert (
        np.mean(np.array(found) <= 0.05, axis=0) < 0.05 + tolerance(0.05, 300)
    ).all()


@pytest.mark.study
def test_rates_of_two_models_are_rarely_within_a_margin_that_they_reach():
    # A group of 60 in which few decisions differ may show none, and no error then.
    rng, wrong = np.random.default_rng(0), []
    for _ in range(400):
        group, old = np.where(rng.random(200) < 0.3, "a", "b"), rng.random(200) < 0.1
        chance = np.where(group == "a", 0.6, 0.1)  # the rate of "a" rises by 5 points
        new = np.where(rng.random(200) < 0.1, rng.random(200) < chance, old)
        b, a = (selection_rate(None, d, sensitive_features=group) for d in (new, old))
        pair, gap = compare(b, a), compare(b.against_rest(), a.against_rest())
        results = pair, gap, pair.contrast("a", "b")
        tests = [result.equivalence_test(0.05).pvalue for result in results]
        wrong.append([np.ravel(pvalues)[0] < 0.05 for pvalues in tests])
    assert (np.mean(wrong, axis=0) <= 0.05 + tolerance(0.05, 400) / 4).all()


def test_clusters_of_lists_without_the_group_are_not_accused_of_skew():
    pvalues = []
    for rng in generators(200, 9):
        query = np.repeat(np.arange(60), rng.integers(12, 22, 60))
        r = skew_at_k(
            None,
            rng.normal(size=query.size),
            k=5,
            sensitive_features=rng.random(query.size) < 0.4,
            qid=query,
            cluster=query // 2,
        )
        pvalues.append(r.test(n_resamples=200, random_state=0).corrected())
    rejected = np.nanmin(np.nan_to_num(pvalues, nan=1.0), axis=1) <= 0.05
    assert rejected.mean() < 0.05 + tolerance(0.05, 200)
