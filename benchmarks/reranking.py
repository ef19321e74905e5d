"""How fast re-ranking is, in L and beside others: ``python benchmarks/reranking.py``.

Times in L are ratios to one ``np.lexsort((score, query))`` of the same rows. Others get
the same arrays in the same process, make of them what they take, and are timed once
they return the same lists. Peers that are not installed are left out; to have all,
``pip install aif360 fairsearchcore hyperfair FairRankTune``, aif360 with pandas.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import io
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from peers import Peer, times_faster
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, kron, vstack

from skrankfair.inference._prefix_test import FairCounts
from skrankfair.mitigation import FairReranker
from skrankfair.mitigation._fair_exposure import exposure_mixture
from skrankfair.mitigation._floors import QueryLists

SIZE, K = 100, 50
#: Queries of `SIZE` candidates.
N_QUERIES = {
    "aif360": 1000,
    "FairRankTune": 2000,
    "hyperfair": 1000,
    "fairsearchcore": 10_000,
}
METHODS = ("det_greedy", "det_cons", "det_relaxed", "det_const_sort", "fa_ir")


@dataclass
class Lists:
    """Queries with equal numbers of candidates, each group as often in all of them."""

    score: np.ndarray
    group: np.ndarray
    query: np.ndarray

    @classmethod
    def drawn(cls, n_queries: int, n_groups: int, *, size: int = SIZE) -> Lists:
        rng = np.random.default_rng(0)
        n = n_queries * size
        group = np.tile(np.arange(size) % n_groups, n_queries)
        # Groups are unequal, so that there is something to mend.
        score = rng.random(n) - 0.2 * group
        return cls(score, group, np.repeat(np.arange(n_queries), size))

    def reranked(self, **options: object) -> np.ndarray:
        """Return the new scores."""
        fair = FairReranker(k=K, **options)
        who = {"sensitive_features": self.group, "qid": self.query}
        return fair.fit_transform(self.score[:, None], **who).ravel()

    def top(self, **options: object) -> np.ndarray:
        """Return the candidates of the first places of each query."""
        new = self.reranked(**options).reshape(-1, SIZE)
        return np.argsort(-new, axis=1)[:, :K]

    def each(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return scores and groups of each query."""
        score, group = (c.reshape(-1, SIZE) for c in (self.score, self.group))
        return list(zip(score, group, strict=True))


def aif360(lists: Lists) -> np.ndarray:
    """Return the first places by its DetConstSort."""
    post = importlib.import_module("aif360.algorithms.postprocessing")
    module = importlib.import_module(f"{post.__name__}.deterministic_reranking")
    datasets = importlib.import_module("aif360.datasets")
    out = []
    for score, group in lists.each():
        frame = pd.DataFrame({"score": score, "group": group})
        data = datasets.RegressionDataset(frame, "score", ["group"], [[0]])
        ranker = module.DeterministicReranking([{"group": 1}], [{"group": 0}])
        new = ranker.fit(data).predict(data, K, [0.5, 0.5], "Constrained")
        out.append([int(name) for name in new.instance_names])
    return np.array(out)


def fair_rank_tune(lists: Lists) -> np.ndarray:
    """Return the first places by its DetConstSort."""
    sort = importlib.import_module("FairRankTune.Rankers").DETCONSTSORT
    out = []
    for score, group in lists.each():
        order = np.argsort(-score)
        items, scores = pd.DataFrame(order), pd.DataFrame(score[order])
        new = sort(items, dict(enumerate(group)), scores, {0: 0.5, 1: 0.5}, K)[0]
        out.append(new[0].to_numpy())
    return np.array(out)


@cache
def fairsearchcore_floors(again: int = 0) -> Any:
    """Return its FA*IR; `again` counts how often it is made."""
    package = importlib.import_module("fairsearchcore")
    key = importlib.import_module("fairsearchcore.fail_prob").LegalAssignmentKey
    if not hasattr(key, "hash"):  # Python refuses numpy's integers, which it returns.
        key.hash, key.__hash__ = key.__hash__, lambda self: int(self.hash())
    fair = package.Fair(K, 0.5, 0.1)
    fair.create_adjusted_mtable()
    return fair


def fairsearchcore(lists: Lists) -> np.ndarray:
    """Return the first places by FA*IR, whose adjusted floors are known."""
    make = importlib.import_module("fairsearchcore.models").FairScoreDoc
    fair, out = fairsearchcore_floors(), []
    for score, group in lists.each():
        order = np.argsort(-score)
        columns = order.tolist(), score[order].tolist(), (group[order] == 1).tolist()
        documents = [make(*item) for item in zip(*columns, strict=True)]
        out.append([document.id for document in fair.re_rank(documents)])
    return np.array(out)


def hyperfair(lists: Lists) -> np.ndarray:
    """Return the first places by its simulated floors of one finite pool."""
    adjust = importlib.import_module("hyperfair.hyperfair").adjust_ranking
    out, drawn, cache = [], None, {}
    for score, group in lists.each():
        order = np.argsort(-score)
        options = {"n_exp": 20_000, "generatedData": drawn, "cache": cache, "seed": 0}
        _, ids, drawn = adjust(group[order], order, K, 0.1, **options)
        out.append(ids[:K])
    return np.array(out)


def peers() -> list[Peer]:
    """Return the comparisons with the packages that are installed."""
    fa_ir = {"method": "fa_ir", "group": 1, "alpha": 0.1}
    const_sort = {"method": "det_const_sort", "target": "equal"}
    rows = [
        ("DetConstSort", aif360, const_sort),
        ("DetConstSort of lists in its order", fair_rank_tune, const_sort),
        ("FA*IR, floors known", fairsearchcore, {**fa_ir, "target": "equal"}),
        ("FA*IR of a finite pool", hyperfair, {**fa_ir, "target": "candidates"}),
    ]
    out = []
    for work, theirs, options in rows:
        package = "FairRankTune" if theirs is fair_rank_tune else theirs.__name__
        if importlib.util.find_spec(package) is None:
            print(f"{package} is not installed")
            continue
        lists = Lists.drawn(N_QUERIES[package], 2)
        if theirs is fair_rank_tune:  # Else it misses floors.
            lists.score[:] = -np.tile(np.arange(SIZE), N_QUERIES[package])
        out.append(
            Peer(
                work,
                package,
                lambda lists=lists, options=options: lists.top(**options),
                lambda lists=lists, theirs=theirs: theirs(lists),
            )
        )
    return out


def floors_alone() -> None:
    """Print the times of the adjusted floors of FA*IR, which agree."""
    if importlib.util.find_spec("fairsearchcore") is None:
        return
    law = FairCounts.of(np.array([K]), np.array([[0.5]]), None, 0.1)
    floors = fairsearchcore_floors().create_adjusted_mtable()
    np.testing.assert_array_equal(law.least[0, :, 0], floors)
    ours = seconds(lambda: FairCounts.of(np.array([K]), np.array([[0.5]]), None, 0.1))
    theirs = seconds(lambda: fairsearchcore_floors(time.perf_counter_ns()))
    print(f"floors of FA*IR: {theirs / ours:,.0f}x fairsearchcore")


def seconds(function: Callable[[], object], repeats: int = 3) -> float:
    """Return the median processor time."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return float(np.median(times))


def in_sorts(n_queries: int) -> list[str]:
    """Measure, print and return the lines of a table of times in L."""
    lines = ["| `method` | two groups | five groups |", "|---|---|---|"]
    cells: dict[str, list[str]] = {method: [] for method in METHODS}
    for n_groups in (2, 5):
        lists = Lists.drawn(n_queries, n_groups)
        rows = np.random.default_rng(1).permutation(lists.score.size)
        lists = Lists(lists.score[rows], lists.group[rows], lists.query[rows])
        unit = seconds(lambda: np.lexsort((lists.score, lists.query)))  # noqa: B023
        for method in METHODS:
            options = {"method": method, "target": "equal"}
            ratio = seconds(lambda: lists.reranked(**options), 1) / unit  # noqa: B023
            cells[method].append(f"{ratio:.1f} L")
    for method, ratios in cells.items():
        lines.append(f"| `{method}` | {' | '.join(ratios)} |")
        print(lines[-1], flush=True)
    return lines


def whole_programs(lists: Lists, size: int) -> list[float]:
    """Return the optimum of the program of each query, in all entries of its matrix."""
    weight = 1 / np.log2(np.arange(2, size + 2))
    one, each = np.ones((1, size)), eye_array(size)
    doubly = vstack([kron(each, one), kron(one, each)])
    out = []
    columns = (column.reshape(-1, size) for column in (lists.score, lists.group))
    for score, group in zip(*columns, strict=True):
        member = np.eye(group.max() + 1)[group].T
        equal = member / member.sum(axis=1, keepdims=True) - 1 / size
        program = vstack([doubly, csr_array(np.kron(equal, weight))], format="csr")
        sums = np.r_[np.ones(2 * size), np.zeros(len(equal))]
        gain = np.outer(score, weight).ravel()
        out.append(-linprog(-gain, A_eq=program, b_eq=sums, method="highs").fun)
    return out


def programs(n_queries: int = 1000, size: int = 20) -> None:
    """Print the times of exposure_lp and of HiGHS alone, once the optima agree."""
    weight = 1 / np.log2(np.arange(2, size + 2))
    for n_groups in (2, 5):
        lists = Lists.drawn(n_queries, n_groups, size=size)
        alone = whole_programs(lists, size)
        starts = np.arange(n_queries + 1) * size
        columns = QueryLists(starts, None, lists.score, lists.group, n_groups)
        ranks, chances, _ = exposure_mixture(columns, weight, "parity")
        gains = np.add.reduceat(weight[ranks - 1] * lists.score, starts[:-1], axis=1)
        np.testing.assert_allclose((gains * chances).sum(axis=0), alone, atol=1e-6)
        ours = seconds(lambda: lists.reranked(method="exposure_lp"), 1)  # noqa: B023
        theirs = seconds(lambda: whole_programs(lists, size), 1)  # noqa: B023
        print(f"{n_groups} groups: {ours:.2f} s, HiGHS alone {theirs:.2f} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=float, default=1e5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    in_sorts(int(options.queries))
    programs()
    floors_alone()
    for row in peers():
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                ratio = f"{times_faster(row, clock=time.process_time):,.0f}x"
            except AssertionError as error:
                ratio = f"other lists: {str(error).strip().splitlines()[1]}"
        print(f"| {row.work} | {N_QUERIES[row.package]:,} | {row.package} | {ratio} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
