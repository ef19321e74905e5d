"""Scores that remember the estimates behind them.

scikit-learn keeps the scores of a search as plain floats. A search that is constrained
with confidence needs the estimates of the folds to add them up, so the newest scores
are kept here, whichever process made them, and found again by value and origin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import joblib
import numpy as np

from .._inputs.validation import Array

if TYPE_CHECKING:
    from ..metrics import GroupEstimates


def described(params: Mapping[str, Any]) -> dict[str, str]:
    """Return parameters of an estimator as text, those of nested estimators too.

    Estimators are described by their type; arrays and other containers are left out.
    """
    texts = {}
    for name, value in params.items():
        if hasattr(value, "get_params") and not isinstance(value, type):
            texts[name] = type(value).__name__
            nested = described(value.get_params())
            texts |= {f"{name}__{key}": text for key, text in nested.items()}
        elif value is None or isinstance(value, str | int | float | np.generic):
            texts[name] = repr(value)
        elif callable(value):
            texts[name] = getattr(value, "__qualname__", type(value).__name__)
    return texts


@dataclass(frozen=True)
class Origin:
    """Where a score comes from.

    Attributes
    ----------
    scorer : str
        The scorer that made it.
    sign : {-1, 1}
        Whether more of what the scorer measures is better.
    params : dict of str to str
        The estimator's parameters, as `described`.
    test_set : str
        A digest of the data that were scored.
    clusters : ndarray or None
        Labels of the clusters of the data; None where they are not clusters.
    """

    scorer: str
    sign: int
    params: Mapping[str, str]
    test_set: str
    clusters: Array | None

    @classmethod
    def of(
        cls,
        scorer: str,
        sign: int,
        estimator: Any,
        y_true: Any,
        estimates: GroupEstimates,
    ) -> Origin:
        """Describe a score before its estimates lose their table of clusters."""
        sums = estimates.sums
        clusters = None
        if sums.kind == "cluster" and sums.table is not None:
            clusters = sums.table.labels
        read = getattr(estimator, "get_params", None)
        params: Mapping[str, Any] = {} if read is None else read()
        test_set = joblib.hash((np.asarray(y_true), clusters, sums.count))
        return cls(scorer, sign, described(params), test_set, clusters)


class FairnessScore(float):
    """A score that remembers the estimates behind it.

    Parameters
    ----------
    value : float
    estimates : GroupEstimates or None
    disparity : str or None
    origin : Origin or None

    Attributes
    ----------
    estimates : GroupEstimates or None
        The result by group, without its table of clusters; None for a metric of
        scikit-learn.
    disparity : str or None
        How the groups became one number.
    origin : Origin or None
        The scorer, the parameters and the data that it comes from.
    """

    estimates: GroupEstimates | None
    disparity: str | None
    origin: Origin | None

    def __new__(
        cls,
        value: float,
        estimates: GroupEstimates | None,
        disparity: str | None,
        origin: Origin | None,
    ) -> FairnessScore:
        """Make a score, and keep it at hand for a constrained search."""
        score = super().__new__(cls, value)
        score.estimates = estimates
        score.disparity = disparity
        score.origin = origin
        if origin is not None and not np.isnan(value):
            _remember(score, origin)
        return score

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel between processes with the estimates."""
        return FairnessScore, (float(self), self.estimates, self.disparity, self.origin)


_Key = tuple[str, float, frozenset[tuple[str, str]], str]

#: The scores of this process, the oldest first. Clusters are kept once a test set.
_SCORES: dict[_Key, FairnessScore] = {}
_CLUSTERS: WeakValueDictionary[str, Array] = WeakValueDictionary()
_KEPT = 20_000
_LOCK = Lock()


def _remember(score: FairnessScore, origin: Origin) -> None:
    key = (
        origin.scorer,
        float(score),
        frozenset(origin.params.items()),
        origin.test_set,
    )
    with _LOCK:
        if origin.clusters is not None:
            shared = _CLUSTERS.setdefault(origin.test_set, origin.clusters)
            object.__setattr__(origin, "clusters", shared)
        _SCORES.pop(key, None)
        _SCORES[key] = score
        while len(_SCORES) > _KEPT:
            del _SCORES[next(iter(_SCORES))]


class Memory:
    """The remembered scores at one moment, by value, the newest first."""

    def __init__(self) -> None:
        self._by_value: dict[float, list[tuple[FairnessScore, Origin]]] = {}
        with _LOCK:
            newest_first = list(reversed(_SCORES.values()))
        for score in newest_first:
            if score.origin is not None:
                found = (score, score.origin)
                self._by_value.setdefault(float(score), []).append(found)

    def find(
        self, scores: Array, params: Mapping[str, Any], name: str
    ) -> list[tuple[FairnessScore, Origin]]:
        """Return what is behind the scores of one candidate on several folds.

        Equal scores are told apart by the candidate's parameters and by their data.

        Parameters
        ----------
        scores : ndarray of shape (n_splits,)
        params : dict
            The candidate's parameters.
        name : str
            What the scores are called, for the message.

        Returns
        -------
        list of (FairnessScore, Origin)

        Raises
        ------
        ValueError
            If no scorer of this session made the scores.
        """
        texts = described(params)
        options = [
            [
                (score, origin)
                for score, origin in self._by_value.get(float(value), ())
                if all(texts.get(k, v) == v for k, v in origin.params.items())
            ]
            for value in scores
        ]
        for scorer in dict.fromkeys(origin.scorer for _, origin in options[0]):
            found: dict[str, tuple[FairnessScore, Origin]] = {}
            for fold in options:
                for score, origin in fold:
                    if origin.scorer == scorer and origin.test_set not in found:
                        found[origin.test_set] = (score, origin)
                        break
            if len(found) == len(options):
                return list(found.values())
        raise ValueError(
            f"confidence= needs the estimates behind {name!r}, which were not made in "
            "this session by a scorer of skrankfair.scoring; use confidence=None."
        )


def pooled_estimates(
    found: list[tuple[FairnessScore, Origin]], name: str
) -> tuple[GroupEstimates, str | None]:
    """Return the sum of the estimates of several folds, and their disparity.

    Parameters
    ----------
    found : list of (FairnessScore, Origin)
        From `Memory.find`.
    name : str
        What the scores are called, for the messages.

    Returns
    -------
    estimates : GroupEstimates
    disparity : str or None

    Raises
    ------
    ValueError
        If the folds share clusters, or were measured with different options.
    """
    _check_disjoint([origin.clusters for _, origin in found], name)
    parts = [score.estimates for score, _ in found if score.estimates is not None]
    total = parts[0]
    try:
        for part in parts[1:]:
            total += part
    except ValueError as error:
        raise ValueError(
            f"The folds of {name!r} cannot be pooled, which confidence= needs: {error} "
            "For matched pairs pass epsilon= to the scorer."
        ) from error
    return total, found[0][0].disparity


def _check_disjoint(folds: list[Array | None], name: str) -> None:
    """Raise a ValueError if a cluster has rows in two folds."""
    seen: set[Any] = set()
    for clusters in folds:
        labels = [] if clusters is None else clusters.tolist()
        shared = seen.intersection(labels)
        if shared:
            raise ValueError(
                f"The folds of {name!r} cannot be pooled, which confidence= needs: "
                f"they share {len(shared)} clusters (such as {next(iter(shared))!r}), "
                "which would count twice. Split with GroupKFold on the clusters, or "
                "use confidence=None."
            )
        seen.update(labels)
