"""Data that are hard on standard errors, in which a null hypothesis is true."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

Rows = dict[str, np.ndarray]


@dataclass(frozen=True)
class Design:
    """Data with a true null hypothesis: groups differ by chance alone.

    Attributes
    ----------
    title : str
    sizes : callable
        Items of each query, from a generator.
    present : float or None
        The share of the queries that have the group at all, two items of it.
    share : float
        The share of the items that are of the group.
    threshold : float
        Outcomes are 1 above it, in standard deviations.
    noise : float
        Of the scores.
    outcome : str
        "binary", "lognormal" or "t3".
    levels : int
        So many distinct scores; 0 is as many as there are.
    users : int
        So many users, who have a power-law number of the queries; 0: each its own.
    weighted : bool
        Whether queries have weights from 1 to 20.
    overlapping : bool
        Whether items may be of two groups, or of none.
    """

    title: str
    sizes: Callable[[np.random.Generator], Any]
    present: float | None = None
    share: float = 0.5
    threshold: float = 0.0
    noise: float = 1.0
    outcome: str = "binary"
    levels: int = 0
    users: int = 0
    weighted: bool = False
    overlapping: bool = False

    def columns(self, rows: Rows, groups: Any) -> dict[str, Any]:
        """Return the columns beside outcomes and scores as metrics take them."""
        columns = {"sensitive_features": groups}
        if np.unique(rows["qid"]).size > 1:
            columns["qid"] = rows["qid"]
            if self.users or self.weighted:
                columns["cluster"] = rows["owner"]
            if "sample_weight" in rows:
                columns["sample_weight"] = rows["sample_weight"]
        return columns

    def draw(self, rng: np.random.Generator) -> Rows:
        """Draw the columns."""
        lengths = np.asarray(self.sizes(rng), dtype=int)
        n_queries = lengths.size
        query = np.repeat(np.arange(n_queries), lengths)
        owner = np.arange(n_queries)
        if self.users:
            chance = np.arange(1, self.users + 1) ** -1.0
            owner = rng.choice(self.users, n_queries, p=chance / chance.sum())
        group = self._labels(rng, query, lengths)
        # Every owner of queries has a taste for the group, and its ranker a bias.
        # In one list that would be a true difference.
        taste, bias = 0.5 * rng.normal(size=(2, owner.max() + 1))[:, owner][:, query]
        if n_queries == 1:
            taste, bias = np.zeros((2, query.size))
        quality = rng.normal(size=query.size) + taste * group
        score = quality + self.noise * (rng.normal(size=query.size) + bias * group)
        other = quality + self.noise * (rng.normal(size=query.size) + bias * group)
        outcome = quality + rng.normal(size=query.size)
        if self.outcome == "binary":
            outcome = (outcome > self.threshold * np.sqrt(2)).astype(float)
        elif self.outcome == "lognormal":
            outcome = np.exp(1.5 * outcome)
        else:
            outcome = quality + rng.standard_t(3, size=query.size)
        if self.levels:
            score, other = (np.clip(np.round(s), -2, 2) for s in (score, other))
        rows = {
            "y_true": outcome,
            "y_score": score,
            "other": other,
            "group": group,
            "second": rng.random(query.size) < 0.4,
            "qid": query,
            "owner": owner[query],
        }
        if self.weighted:
            rows["sample_weight"] = rng.integers(1, 21, n_queries)[query].astype(float)
        return rows

    def _labels(self, rng: np.random.Generator, query: Any, lengths: Any) -> Any:
        if self.present is None:
            return rng.random(query.size) < self.share
        group = np.zeros(query.size, dtype=bool)
        ends = np.cumsum(lengths)
        for end, length in zip(ends, lengths, strict=True):
            if rng.random() < self.present:
                group[end - length + rng.choice(length, 2, replace=False)] = True
        return group


def power_law(n_queries: int, largest: int) -> Callable[[np.random.Generator], Any]:
    """Return sizes from 4 to `largest` items with a tail of exponent 1.1."""
    return lambda rng: np.minimum(4 * rng.random(n_queries) ** (-1 / 1.1), largest)


def equal(n_queries: int, n_items: int = 10) -> Callable[[np.random.Generator], Any]:
    """Return the same size for every query."""
    return lambda rng: np.full(n_queries, n_items)


DESIGNS = {
    **{f"equal{n}": Design(f"{n} equal queries", equal(n)) for n in (5, 10, 20, 40)},
    "equal200": Design("200 equal queries", equal(200)),
    "power40": Design("power law, 40 queries", power_law(40, 400)),
    "power200": Design("power law, 200 queries", power_law(200, 200)),
    "dominant": Design(
        "20 queries, one with 30% of the rows", lambda rng: [10] * 19 + [81]
    ),
    "rare": Design("a group in 5% of 200 queries", equal(200), present=0.05),
    "rare1000": Design("a group in 5% of 1000 queries", equal(1000), present=0.05),
    "outcome1": Design("outcomes of 1%, 200 queries", equal(200), threshold=2.33),
    "ties": Design("five distinct scores", equal(100), levels=5),
    "lognormal": Design("lognormal outcomes", equal(100), outcome="lognormal"),
    "t3": Design("outcomes with t3 noise", equal(100), outcome="t3"),
    "users": Design("20 users, power law of queries", equal(200), users=20),
    "weights": Design("query weights 1 to 20, 60 queries", equal(60), weighted=True),
    "overlap": Design("overlapping groups", equal(100), overlapping=True),
    "accurate": Design("near-perfect accuracy", equal(40), noise=0.05),
    **{
        f"list{n}_{round(100 * share)}": Design(
            f"one list of {n}, group of {100 * share:.0f}%", equal(1, n), share=share
        )
        for n in (50, 200, 1000)
        for share in (0.05, 0.1, 0.2, 0.5)
    },
}


@dataclass(frozen=True)
class CurveDesign:
    """Scores and outcomes of two groups with one and the same curve.

    Attributes
    ----------
    title : str
    scores : tuple of tuple
        Parameters of the beta distributions of the scores of the groups.
    curve : callable
        The mean outcome at a score.
    n_rows : int
    share : float
        The share of the rows that are of the first group.
    deciles : bool
        Whether scores are rounded to ten values.
    clusters : callable or None
        The sizes of clusters, whose rows have a common effect.
    """

    title: str
    scores: tuple[tuple[float, float], tuple[float, float]] = ((2, 2), (2, 2))
    curve: Callable[[np.ndarray], np.ndarray] = lambda s: s
    n_rows: int = 2000
    share: float = 0.5
    deciles: bool = False
    clusters: Callable[[np.random.Generator], Any] | None = None

    def draw(self, rng: np.random.Generator) -> Rows:
        """Draw the columns."""
        sizes = np.ones(self.n_rows, dtype=int)
        if self.clusters is not None:
            sizes = np.asarray(self.clusters(rng), dtype=int)
        cluster = np.repeat(np.arange(sizes.size), sizes)
        group = rng.random(cluster.size) < self.share
        a, b = np.where(group[:, None], *np.array(self.scores)[:, None]).T
        score = rng.beta(a, b)
        if self.deciles:
            score = np.floor(10 * score) / 10 + 0.05
        chance = self.curve(score)
        if self.clusters is not None:
            effect = 0.5 * rng.normal(size=sizes.size)[cluster]
            odds = special.logit(np.clip(chance, 0.01, 0.99))
            chance = special.expit(odds + effect)
        outcome = (rng.random(score.size) < chance).astype(float)
        return {"y": outcome, "s": score, "g": group.astype(int), "c": cluster}


def steep(s: np.ndarray) -> np.ndarray:
    """Return a steep logistic curve."""
    return 1 / (1 + np.exp(-12 * (s - 0.5)))


def wavy(s: np.ndarray) -> np.ndarray:
    """Return a wavy curve."""
    return 0.5 + 0.3 * np.sin(6 * np.pi * s)


def rare(s: np.ndarray) -> np.ndarray:
    """Return the curve of an outcome of 3% on average."""
    return 0.06 * s


CURVES = {
    "straight": CurveDesign("straight, Beta(2, 4) and (4, 2)", ((2, 4), (4, 2))),
    "steep": CurveDesign("steep, Beta(2, 6) and (6, 2)", ((2, 6), (6, 2)), steep),
    "wavy": CurveDesign("wavy, Beta(2, 3) and (3, 2)", ((2, 3), (3, 2)), wavy),
    "deciles": CurveDesign(
        "deciles, Beta(2, 3) and (3, 2)", ((2, 3), (3, 2)), deciles=True
    ),
    "small": CurveDesign("a group of 3% of 2,000", share=0.03),
    "small10": CurveDesign("a group of 10% of 1,000", n_rows=1000, share=0.1),
    "few": CurveDesign("outcomes of 3%", curve=rare),
    "clusters20": CurveDesign("20 clusters of 50 rows", clusters=equal(20, 50)),
    "clusters40": CurveDesign("40 clusters, power law", clusters=power_law(40, 400)),
}


@dataclass(frozen=True)
class Sellers:
    """Pure noise: groups of very different sizes that deserve what they get."""

    title: str
    n_groups: int
    n_queries: int
    n_items: int = 10

    def draw(self, seed: int) -> dict[str, np.ndarray]:
        """Draw the columns of an audit."""
        rng = np.random.default_rng([self.n_groups, seed])
        chance = rng.random(self.n_groups) ** 2 + 0.02
        query = np.repeat(np.arange(self.n_queries), self.n_items)
        quality = rng.normal(size=query.size)
        group = rng.choice(self.n_groups, query.size, p=chance / chance.sum())
        return {
            "y_true": quality + rng.normal(size=query.size) > 0.5,
            "y_score": quality + rng.normal(size=query.size),
            "sensitive_features": group,
            "qid": query,
        }
