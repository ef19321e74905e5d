"""How often intervals of gaps within levels of a column hold the true gap."""

import numpy as np
import pytest

from skrankfair import audit

pytestmark = pytest.mark.simulation

#: Rate of all, rows of the group and of the others at each level, and levels.
SMALL = [(0.15, 6, 60, 2), (0.1, 10, 40, 5), (0.5, 4, 20, 6)]


@pytest.mark.study
@pytest.mark.parametrize("clustered", [False, True])
def test_intervals_of_gaps_within_levels_hold(clustered):
    """Levels differ in rates and in who is there; users have rows in all of them."""
    rng = np.random.default_rng(0)
    n_users, per_user, gap, n_runs = 150, 6, 0.05, 400
    base = np.array([0.3, 0.5, 0.7])
    covered = rejected = 0
    for _ in range(n_runs):
        user = np.repeat(np.arange(n_users), per_user)
        level = rng.integers(3, size=user.size)
        group = rng.random(user.size) < np.array([0.15, 0.35, 0.6])[level]
        taste = 0.15 * rng.choice([-1, 1], n_users)[user] * clustered
        chosen = rng.random(user.size) < base[level] + taste - gap * group
        report = audit(
            chosen,
            chosen,
            sensitive_features=np.where(group, "a", "b"),
            cluster=user,
            within=level,
            task="decision",
            metrics="selection_rate",
        )
        rows = {row[1:3]: row for row in report.sections[0].rows}
        ((_, whole),) = [(k, v) for k, v in rows.items() if k[1] == "within all levels"]
        sign = 1 if whole[1] == "b" else -1
        low, high = (float(end) / 100 for end in whole[4].strip("[]").split(", "))
        covered += low <= sign * gap <= high
        rejected += not low <= 0 <= high
    print(f"\ncoverage {covered / n_runs:.3f}, power {rejected / n_runs:.2f}")
    assert 0.93 <= covered / n_runs <= 0.97
    assert rejected / n_runs > 0.2


@pytest.mark.study
@pytest.mark.parametrize(("rate", "own", "others", "n_levels"), SMALL)
def test_small_groups_are_rarely_accused(rate, own, others, n_levels):
    """Few rows of the group per level often show no event and no variance."""
    rng = np.random.default_rng(0)
    n_runs = 200
    level = np.repeat(np.arange(n_levels), own + others)
    group = np.tile(np.repeat(["a", "b"], [own, others]), n_levels)
    accused = 0
    for _ in range(n_runs):
        chosen = rng.random(level.size) < rate
        columns = {"sensitive_features": group, "within": level, "task": "decision"}
        report = audit(chosen, chosen, **columns, metrics="selection_rate")
        accused += "a gap remains" in report.headline
    print(f"\naccused {accused / n_runs:.3f}")
    assert accused / n_runs <= 0.07
