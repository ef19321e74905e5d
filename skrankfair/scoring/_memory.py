"""How a constrained search finds the estimates behind its scores.

scikit-learn reduces the scores of a search to arrays of floats before it calls
``refit=``. A `fairness_constrained` with a confidence level needs more than that: it
adds up the estimates of the folds. They reach it as follows.

- A scorer returns a `FairnessScore`, a float that carries its estimates. It takes them
  along when it is pickled from a worker process to the process of the search.
- scikit-learn keeps these floats until the search is done, and so also while it calls
  ``refit=``. `_ALIVE` refers to them weakly: it holds the scores of the searches that
  run now, and nothing of one that has ended.
- Nobody else pays for it. A constraint with a confidence level announces itself
  (`ask_for_estimates`). A scorer describes where its scores come from only while such
  a constraint exists in its process, or existed in the process that pickled it.

`scores_of_search` picks the scores of one search among those that are alive. They come
from one scorer and share all parameters but those that are searched. A test set belongs
to a fold only if its scores equal those of the fold for every candidate, told apart by
the candidate's parameters. Another search that runs in another thread is therefore not
mistaken for this one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from threading import Lock
from typing import Any
from weakref import WeakSet, WeakValueDictionary

import joblib
import numpy as np
from scipy.optimize import linear_sum_assignment

from .._inputs.validation import Array
from ..metrics import EqualizedOdds, GroupEstimates

Result = GroupEstimates | EqualizedOdds


def described_params(params: Mapping[str, Any]) -> dict[str, str]:
    """Return parameters of an estimator as text, those of nested estimators too.

    Estimators are described by their type; arrays and other containers are left out.
    """
    texts = {}
    for name, value in params.items():
        if hasattr(value, "get_params") and not isinstance(value, type):
            texts[name] = type(value).__name__
            nested = described_params(value.get_params())
            texts |= {f"{name}__{key}": text for key, text in nested.items()}
        elif value is None or isinstance(value, str | int | float | np.generic):
            texts[name] = repr(value)
        elif callable(value):
            texts[name] = getattr(value, "__qualname__", type(value).__name__)
    return texts


@dataclass(frozen=True)
class Origin:
    """Where a score comes from."""

    scorer: str  # the scorer that made it
    #: The estimator's type, under the empty name, and its parameters, as `described`.
    params: Mapping[str, str]
    test_set: str  # a digest of the data that were scored
    size: float  # number of clusters that were scored, or of rows that are not clusters
    #: Labels of the clusters of the data; None where they are not clusters.
    clusters: Array | None

    @classmethod
    def of(cls, scorer: str, estimator: Any, y_true: Any, estimates: Result) -> Origin:
        """Describe a score before its estimates lose their table of clusters."""
        sums = estimates.sums
        clusters = None
        if sums.kind == "cluster" and sums.table is not None:
            clusters = sums.table.labels
        read = getattr(estimator, "get_params", None)
        params = {"": type(estimator).__name__}
        params |= described_params({} if read is None else read())
        test_set = joblib.hash((np.asarray(y_true), clusters, sums.count))
        return cls(scorer, params, test_set, sums.count, clusters)


class FairnessScore(float):
    """A score that carries the estimates behind it.

    Parameters
    ----------
    value : float
    estimates : GroupEstimates, EqualizedOdds or None, default=None
    disparity : str or None, default=None
    origin : Origin or None, default=None

    Attributes
    ----------
    estimates : GroupEstimates, EqualizedOdds or None
        The result by group, without its table of clusters and, of a hundred groups and
        more, without their covariances unless a constraint asks. None for a metric of
        scikit-learn, and where scikit-learn scores several metrics at once and no
        `fairness_constrained` has asked for a confidence bound.
    disparity : str or None
        How the groups became one number; None is the metric's own way.
    origin : Origin or None
        The scorer, the parameters and the data that the score comes from, while a
        `fairness_constrained` asks for them.
    """

    estimates: Result | None
    disparity: str | None
    origin: Origin | None

    def __new__(
        cls,
        value: float,
        estimates: Result | None = None,
        disparity: str | None = None,
        origin: Origin | None = None,
    ) -> FairnessScore:
        """Make a score; one with an origin can be found while it is alive."""
        score = super().__new__(cls, value)
        score.estimates = estimates
        score.disparity = disparity
        score.origin = origin
        if origin is not None and not np.isnan(value):
            _refer_to(score, origin)
        return score

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel between processes with the estimates."""
        return FairnessScore, (float(self), self.estimates, self.disparity, self.origin)


#: The scores with an origin that somebody holds, and the labels of clusters that the
#: scores of one test set share.
_ALIVE: WeakValueDictionary[int, FairnessScore] = WeakValueDictionary()
_CLUSTERS: WeakValueDictionary[str, Array] = WeakValueDictionary()
#: The constraints of this process that need estimates.
_ASKING: WeakSet[Any] = WeakSet()
_NUMBER = count()
_LOCK = Lock()


def ask_for_estimates(constraint: Any) -> None:
    """Let scorers carry estimates as long as the constraint exists."""
    with _LOCK:
        _ASKING.add(constraint)


def estimates_are_asked_for() -> bool:
    """Return whether a constraint of this process needs estimates."""
    with _LOCK:
        return bool(_ASKING)


def _refer_to(score: FairnessScore, origin: Origin) -> None:
    with _LOCK:
        if origin.clusters is not None:
            shared = _CLUSTERS.setdefault(origin.test_set, origin.clusters)
            score.origin = replace(origin, clusters=shared)
        _ALIVE[next(_NUMBER)] = score


_Found = tuple[FairnessScore, Origin]


def scores_of_search(
    splits: Array, params: Sequence[Mapping[str, Any]], name: str
) -> dict[int, list[_Found]]:
    """Return what is behind the scores of a search that is choosing now.

    `splits`, of shape (n_candidates, n_splits), are the scores, NaN where undefined,
    `params` the parameters of the candidates; the message calls the scores `name`.
    The result has each candidate that is defined in every split, with one score per
    split. A ValueError says that no scorer of a running search made the scores.
    """
    defined = np.flatnonzero(~np.isnan(splits).any(axis=1)).tolist()
    if not defined:
        return {}
    texts = [described_params(params[candidate]) for candidate in defined]
    with _LOCK:
        alive = list(_ALIVE.values())
    found = [(score, score.origin) for score in alive if score.origin is not None]
    for scores in _by_search(found, _searched(params)):
        matched = _matched(splits[defined], texts, scores)
        if matched is not None:
            return dict(zip(defined, matched, strict=True))
    raise ValueError(
        f"confidence_level= needs the estimates behind {name!r}, which exist only "
        "while the search runs, and only if a scorer of skrankfair.scoring made the "
        "scores: pass fairness_constrained(...) as refit= of the search, or use "
        "confidence_level=None."
    )


def _searched(params: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the parameters that may differ between candidates, or where they begin.

    A list of steps or transformers has parameters of its own beside it.
    """
    searched = set()
    for each in params:
        for key in each:
            parent = key.rpartition("__")[0]
            searched.add(key if described_params({key: each[key]}) else parent)
    return searched


def _by_search(found: Iterable[_Found], searched: set[str]) -> list[list[_Found]]:
    """Return the scores by scorer and by the parameters that candidates share."""
    groups: dict[Any, list[_Found]] = {}
    for score, origin in found:
        fixed = frozenset(
            (name, text)
            for name, text in origin.params.items()
            if not any(
                key == "" or f"{name}__".startswith(f"{key}__") for key in searched
            )
        )
        groups.setdefault((origin.scorer, fixed), []).append((score, origin))
    return list(groups.values())


def _matched(
    splits: Array, texts: list[dict[str, str]], scores: list[_Found]
) -> list[list[_Found]] | None:
    """Return the scores by candidate and split; None if some are not among them."""
    by_value: dict[str, dict[float, list[_Found]]] = {}
    size: dict[str, float] = {}
    for score, origin in scores:
        values = by_value.setdefault(origin.test_set, {})
        values.setdefault(float(score), []).append((score, origin))
        size[origin.test_set] = origin.size
    columns = [
        {test_set: _column(split, texts, by_value[test_set]) for test_set in by_value}
        for split in splits.T
    ]
    # Training sets, scored by return_train_score=True, are the larger ones. They only
    # come into question where the scores of both are equal for every candidate.
    cost = [
        [size[key] if column[key] else np.inf for key in size] for column in columns
    ]
    try:
        used, chosen = linear_sum_assignment(cost)
    except ValueError:  # Some split has no test set.
        return None
    if len(used) < len(columns):
        return None
    keys = list(size)
    folds = [columns[i][keys[j]] for i, j in zip(used, chosen, strict=True)]
    return [list(parts) for parts in zip(*folds, strict=True)]


def _column(
    split: Array, texts: list[dict[str, str]], by_value: dict[float, list[_Found]]
) -> list[_Found]:
    """Return the score of each candidate on a test set; none if one has no score."""
    column = []
    for value, text in zip(split.tolist(), texts, strict=True):
        for score, origin in by_value.get(value, ()):
            if all(origin.params.get(k, v) == v for k, v in text.items()):
                column.append((score, origin))
                break
        else:
            return []
    return column


def without_covariances(estimates: Any) -> Any:
    """Return a compact result without the covariances of many groups."""
    if isinstance(estimates, EqualizedOdds):
        return EqualizedOdds(*map(without_covariances, estimates.rates))
    folded = estimates.sums.folded
    if folded is None:
        return estimates
    sums = replace(estimates.sums, folded=folded.of_each_group())
    return replace(estimates, sums=sums)


def pooled_estimates(scores: list[_Found], name: str) -> Result:
    """Return the sum of the estimates of several folds of one candidate.

    `scores` are from `scores_of_search`; the message calls them `name`. A ValueError
    says that the folds were measured with different options.
    """
    parts = [score.estimates for score, _ in scores if score.estimates is not None]
    total: Any = parts[0]
    try:
        for part in parts[1:]:
            total += part
    except ValueError as error:
        raise ValueError(
            f"The folds of {name!r} cannot be pooled, which confidence_level= needs: "
            f"{error} For matched pairs pass epsilon= to the scorer."
        ) from error
    return total


def check_disjoint(scores: list[_Found], name: str) -> None:
    """Raise a ValueError if a cluster has rows in two folds of a candidate."""
    seen: set[Any] = set()
    for _, origin in scores:
        labels = [] if origin.clusters is None else origin.clusters.tolist()
        shared = seen.intersection(labels)
        if shared:
            raise ValueError(
                f"The folds of {name!r} cannot be pooled, which confidence_level= "
                f"needs: they share {len(shared)} clusters (such as "
                f"{next(iter(shared))!r}), which would count twice. Split with "
                "GroupKFold on the clusters, or use confidence_level=None."
            )
        seen.update(labels)
