"""Curves, calibration errors and impact against examples by hand and elsewhere."""

import math

import numpy as np
import pytest
from statsmodels.nonparametric.kernel_regression import KernelReg

from tests.reference import predictive_parity as naive


def make_rows(seed, n=60, n_clusters=15):
    """Make rows of two groups in clusters, some clusters of both."""
    rng = np.random.default_rng(seed)
    cluster = rng.integers(0, n_clusters, n)
    in_a = (cluster % 3 == 0) | (rng.random(n) < 0.2)
    s = rng.random(n)
    y = rng.random(n) < s
    return [v.tolist() for v in (y.astype(float), s, cluster, in_a, ~in_a)]


# Kernels


# Curves


def test_curve_by_hand():
    # Clusters u (two rows near 0) and v (one); uniform kernel of bandwidth 1.
    y, s, cluster = [1, 0, 0, 1], [0, 0.5, 0.25, 3], list("uuvx")
    in_group = [True] * 4
    options = ([0, 3, 9], 1, "uniform")
    curve = naive.nadaraya_watson(y, s, cluster, in_group, *options)
    # u weighs one, and 1/2 of it is 1: (1/2) / 2. Nothing at 9.
    assert curve == pytest.approx([1 / 4, 1, math.nan], nan_ok=True)
    curve = naive.nadaraya_watson(y, s, cluster, in_group, *options, "row")
    assert curve == pytest.approx([1 / 3, 1, math.nan], nan_ok=True)
    # psi at 0: u (1/2 - 1/4) / 2, v (0 - 1/4) / 2, x 0, without the kernel's 1/2.
    psi = naive.influence(y, s, cluster, in_group, *options)
    assert psi["u"][:2] == [1 / 8, 0]
    assert psi["v"][:2] == [-1 / 8, 0]
    assert psi["x"][:2] == [0, 0]
    matrix = naive.covariance(psi, psi)
    assert matrix[0][0] == pytest.approx(3 / 2 * 2 / 64)
    assert matrix[0][1] == 0
    # One row of u in another group: the cluster weighs one in both curves.
    in_a, in_b = [True, False, True, True], [False, True, False, False]
    assert naive.row_weights(cluster, in_a) == [1, 0, 1, 1]
    assert naive.row_weights(cluster, in_b) == [0, 1, 0, 0]
    assert naive.row_weights(cluster, in_group, w=[3, 1, 2, 0]) == [1.5, 0.5, 2, 0]


@pytest.mark.filterwarnings("ignore:After 0.17:FutureWarning")
@pytest.mark.parametrize("seed", range(3))
def test_curve_is_the_one_of_statsmodels(seed):
    y, s, cluster, in_a, _ = make_rows(seed)
    grid = [0.2, 0.5, 0.8]
    rows = [row for row in range(len(s)) if in_a[row]]
    other = KernelReg(
        [y[r] for r in rows], [s[r] for r in rows], "c", reg_type="lc", bw=[0.1]
    )
    curve = naive.nadaraya_watson(y, s, cluster, in_a, grid, 0.1, cluster_weight="row")
    assert curve == pytest.approx(other.fit(grid)[0])
    # Clusters of one row: both weightings are the same.
    single = list(range(len(s)))
    assert curve == pytest.approx(naive.nadaraya_watson(y, s, single, in_a, grid, 0.1))


def test_a_person_with_many_rows():
    # Figure 1: one person of many high rows flips the order by rows, not by clusters.
    s, y = [0.5] * 30, [0.4] * 10 + [1.0] * 10 + [0.5] * 10
    cluster = [*range(10), *[10] * 10, *range(11, 21)]
    in_a, in_b = [True] * 20 + [False] * 10, [False] * 20 + [True] * 10
    for weighting, sign in (("cluster", -1), ("row", 1)):
        options = ([0.5], 0.1, "gaussian", weighting)
        difference, _ = naive.contrast(y, s, cluster, in_a, in_b, *options)
        assert math.copysign(1, difference[0]) == sign


def test_leave_cluster_out_by_hand():
    # Cluster u has 1 and 0 at 0, v has 0 at 0: each is predicted by the other.
    y, s, cluster = [1, 0, 0], [0, 0, 0], list("uuv")
    error = naive.leave_cluster_out_error(y, s, cluster, [True] * 3, 1)
    assert error == pytest.approx((0.5 + 0 + 0.25) / 2)
    error = naive.leave_cluster_out_error(
        y, [0, 0, 9], cluster, [True] * 3, 1, "uniform"
    )
    assert error == math.inf


# Calibration errors


def test_smooth_error_by_hand():
    # Far apart: f is the outcome of the place.
    y, s, cluster = [1, 0, 1], [0, 0, 5], list("uuv")
    everyone = [True] * 3
    options = (1, "uniform")
    error = naive.smooth_error(y, s, cluster, everyone, *options)
    # 1/2 off at 0 (weights 1/2, 1/2), 4 off at 5 (weight 1).
    assert error == pytest.approx(math.sqrt((0.25 + 16) / 2))
    error = naive.smooth_error(y, s, cluster, everyone, *options, mean="row")
    assert error == pytest.approx(math.sqrt((0.5 + 16) / 3))
    assert math.isnan(naive.smooth_error(y, s, cluster, [False] * 3, *options))


def test_binned_error_by_hand():
    y, s = [0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.6, 0.8]
    # Bins of 3 and 2: floor(r * 2 / 5) = 0, 0, 0, 1, 1.
    bins = naive.bins_of_equal_mass(y, s, 2)
    assert [n for n, _, _ in bins] == [3, 2]
    assert [float(m) for _, m, _ in bins] == [1 / 3, 1]
    expected = math.sqrt((3 * (1 / 3 - 0.2) ** 2 + 2 * 0.3**2) / 5)
    assert naive.binned_error(y, s, 2) == pytest.approx(expected)
    expected = (3 * (1 / 3 - 0.2) + 2 * 0.3) / 5
    assert naive.binned_error(y, s, 2, p=1) == pytest.approx(expected)
    # More bins than rows: every row by itself.
    expected = math.sqrt(np.mean((np.array(y) - s) ** 2))
    assert naive.binned_error(y, s, 15) == pytest.approx(expected)
    assert math.isnan(naive.binned_error([], []))


def test_ties_do_not_depend_on_the_order_of_rows():
    y, s = [0, 1, 1, 0, 1, 1], [0.5, 0.5, 0.5, 0.2, 0.9, 0.5]
    rng = np.random.default_rng(0)
    for n_bins in (2, 3, 4):
        expected = naive.binned_error(y, s, n_bins)
        for _ in range(5):
            order = rng.permutation(6)
            mixed = [y[r] for r in order], [s[r] for r in order]
            assert naive.binned_error(*mixed, n_bins) == pytest.approx(expected)
            assert naive.sweep_bins(*mixed) == naive.sweep_bins(y, s)
    # Two bins of three: one row at 0.2 and two of the four tied, mean 3/4.
    means = [float(m) for _, m, _ in naive.bins_of_equal_mass(y, s, 2)]
    assert means == [1.5 / 3, 2.5 / 3]


def test_sweep_by_hand():
    # Outcomes 0 0 1 0 1 1: two bins 1/3, 2/3; three 0, 1/2, 1; four bins of rows
    # 2 1 2 1 (floor(4 r / 6)): 0, 1, 1/2 falls.
    y, s = [0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    assert naive.sweep_bins(y, s) == 3
    assert naive.sweep_error(y, s) == naive.binned_error(y, s, 3)
    # Never falls: one less than rows. Falls at once: one. Equal means do not fall.
    assert naive.sweep_bins([0, 0, 1, 1], [1, 2, 3, 4]) == 3
    assert naive.sweep_bins([1, 1, 0, 0], [1, 2, 3, 4]) == 1
    assert naive.sweep_bins([0.1] * 7, range(7)) == 6
    assert naive.sweep_error([1, 1, 0, 0], [1, 2, 3, 4]) == 2


# Impact


def test_shifts_by_hand():
    # Two groups far from each other's curves: S* is the group's outcome at the score.
    y, s, g = [1, 0, 0.5, 0.25], [0.2, 0.9, 0.4, 0.6], list("aabb")
    member = {label: [c == label for c in g] for label in "ab"}
    star = naive.calibrated(y, s, range(4), member, 0.01)
    assert star == pytest.approx(y)
    shift = naive.positive_rate_shift(s, star, member, 0.45)
    # a: row 0 comes in, row 1 goes out. b: row 2 comes in, row 3 goes out.
    assert shift == {"a": 0, "b": 0}
    shift = naive.positive_rate_shift(s, star, member, 0.3)
    assert shift == {"a": 0, "b": -0.5}
    assert naive.positive_rate_shift(s, star, member, 0.45, [3, 1, 1, 0]) == {
        "a": 0.5,
        "b": 1,
    }
    # Ranks 4 1 3 2 become 1 4 2 3.
    assert naive.rank_shift(s, star, [0] * 4, member) == {"a": 0, "b": 0}
    assert naive.rank_shift(s, star, [0, 1, 0, 1], member) == {"a": 0, "b": 0}
    assert naive.rank_shift(s, star, [0, 1, 0, 2], member) == {"a": 0.5, "b": -0.5}
    # Of the first two only: 3 1 3 2 become 1 3 2 3.
    assert naive.rank_shift(s, star, [0] * 4, member, k=2) == {"a": 0, "b": 0}
    assert naive.ranks_from_top([1, 3, 1, 1], [0] * 4) == [3, 1, 3, 3]
    assert naive.ranks_from_top([1, 3, 1, 1], [0] * 4, 3) == [8 / 3, 1, 8 / 3, 8 / 3]
    with pytest.raises(ValueError, match="overlap"):
        naive.calibrated(y, s, range(4), {1: [True] * 4, 2: [True] * 4}, 0.01)


def test_label_binned_error_of_uniform_scores_in_one_bin():
    """Appendix A: 1/12 where E[Y | s] = s, of error 0, and 1 - s, of squared 1/3."""
    s = [(i + 0.5) / 400 for i in range(400)]
    for mean in (s, [1 - score for score in s]):
        assert naive.label_binned_error(mean, s, 1) ** 2 == pytest.approx(1 / 12, 1e-4)
    assert naive.label_binned_error(s, s, 400) == pytest.approx(0, abs=1e-9)
