"""Rankings as columns, and rankings in which one group has a known advantage."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from textwrap import dedent
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from .._inputs.validation import Array, check_choice, check_number, generator

_EXCEPTIONS = {
    "constant": "",
    "decreasing": " at the top, which falls evenly to 0 at the bottom",
    "padded": " below the first {k}, which are not protected",
    "rooney": " below the first {k}, of which {tokens} are protected, at random places",
}


def rankings_to_columns(rankings: Iterable[Iterable[Any]]) -> dict[str, Any]:
    """Turn ordered lists of group labels into the columns of a metric.

    Papers and rankers often have one list of labels per ranking, the best item first.
    Metrics take one row per item, with its score and its query.

    Parameters
    ----------
    rankings : iterable of iterables
        One ordered list of group labels per ranking, from the top down. Lists of items
        work too: look up the labels of the items in the column afterwards.

    Returns
    -------
    columns : dict of str to ndarray or list
        By the names of a metric's arguments: "y_score", the number of places from the
        bottom, which is 1 for the last of a list; "sensitive_features", the labels; and
        "qid", the number of the list, from 0.

    Raises
    ------
    ValueError
        If there is no list, or one without items.

    See Also
    --------
    make_biased_rankings : Rankings with an advantage of known size.

    Examples
    --------
    >>> from skrankfair.datasets import rankings_to_columns
    >>> from skrankfair.metrics import pairwise_parity
    >>> columns = rankings_to_columns(["mmfmf", "mfmmf", "fmmmf"])
    >>> pairwise_parity(**columns, signed=True).estimate.round(3)
    array([-0.333,  0.333])
    """
    lists = [list(ranking) for ranking in rankings]
    lengths = [len(labels) for labels in lists]
    if min(lengths, default=0) == 0:
        raise ValueError(
            "rankings must be lists of at least one item each; got "
            f"{len(lists)} lists, of {lengths[:5]} items."
        )
    return {
        "y_score": np.concatenate([np.arange(n, 0, -1) for n in lengths]),
        "sensitive_features": [label for labels in lists for label in labels],
        "qid": np.repeat(np.arange(len(lists)), lengths),
    }


def make_biased_rankings(
    n_rankings: int = 100,
    n_items: int = 100,
    share: float = 0.5,
    advantage: float = 0.5,
    *,
    pattern: str = "constant",
    k: int = 10,
    random_state: int | np.random.Generator | None = None,
) -> Bunch:
    """Draw rankings in which a protected group has an advantage.

    Each ranking is filled from the top: while items of both groups remain, the next one
    is protected with probability `advantage`, whatever is above it; when one group is
    used up, the other follows.

    Parameters
    ----------
    n_rankings : int, default=100
    n_items : int, default=100
        Items of each ranking.
    share : float, default=0.5
        Share of the protected group; ``round(share * n_items)`` items are protected.
    advantage : float, default=0.5
        The α of Kuhlman et al.: 0 is a total disadvantage of the protected group, 1 a
        total advantage; near `share` there is none.
    pattern : {"constant", "decreasing", "padded", "rooney"}, default="constant"
        Where the advantage holds. "decreasing": the probability falls evenly from
        `advantage` at the top to 0 at the bottom. "padded": the first `k` are not
        protected. "rooney": of the first `k` a tenth is protected, and one at least, at
        random places. Below the first `k` the probability is `advantage`.
    k : int, default=10
        How many positions at the top "padded" and "rooney" fill in their own way.
    random_state : int, Generator or None, default=None
        Seed or generator of the random numbers. None draws anew in each call.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object; its columns have ``n_rankings * n_items`` rows, from the
        top of the first ranking down, and the names of a metric's arguments.

        y_score : ndarray of int
            ``n_items`` at the top, 1 at the bottom.
        sensitive_features : ndarray of str
            "protected" or "other".
        qid : ndarray of int
            Ranking, from 0.
        n_protected : int
            Protected items of each ranking.
        position_share : ndarray of shape (n_items,)
            The exact probability that the item at a position is protected.
        DESCR : str
            The distribution.

    Raises
    ------
    ValueError
        For a number outside its range, or a group that has too few items to fill the
        first `k` positions as the pattern asks.

    See Also
    --------
    skrankfair.metrics.expected_advantage : Metrics of position probabilities.

    Notes
    -----
    All patterns but "constant" are those of the supplement of Kuhlman et al., and break
    the assumptions of their theorems: the share of the group does not only fall, or
    only rise, from the top down. For a padding with the protected group, pass the share
    and the advantage of the others, and exchange the labels.

    The item at a position depends only on the number of protected items above it, and
    `position_share` follows the distribution of this number from the top down.

    References
    ----------
    Yang, K., Stoyanovich, J. (2017). "Measuring Fairness in Ranked Outputs". SSDBM.

    Kuhlman, C., Gerych, W., Rundensteiner, E. (2021). "Measuring Group Advantage: A
    Comparative Study of Fair Ranking Metrics". AIES. §6.

    Examples
    --------
    >>> from skrankfair.datasets import make_biased_rankings
    >>> from skrankfair.metrics import pairwise_parity
    >>> data = make_biased_rankings(50, 40, share=0.2, advantage=0.5, random_state=0)
    >>> pairwise_parity(
    ...     None,
    ...     data.y_score,
    ...     sensitive_features=data.sensitive_features,
    ...     qid=data.qid,
    ...     signed=True,
    ... ).estimate.round(2)
    array([-0.73,  0.73])
    >>> data.position_share[[0, 9, 19, 39]].round(3)
    array([0.5 , 0.49, 0.09, 0.  ])
    """
    check_number(n_rankings, "n_rankings", 1, np.inf, integer=True)
    check_number(n_items, "n_items", 1, np.inf, integer=True)
    check_number(share, "share", 0, 1)
    check_number(advantage, "advantage", 0, 1)
    check_choice(pattern, "pattern", tuple(_EXCEPTIONS))
    check_number(k, "k", 1, np.inf, integer=True)
    n_protected = round(float(share) * n_items)
    tokens = {"padded": 0, "rooney": max(1, k // 10)}.get(pattern)
    if tokens is not None and not k - n_items + n_protected <= tokens <= n_protected:
        raise ValueError(
            f"k must leave {tokens} of the first k places to the protected group, and "
            f"the others to the rest; got k={k} for {n_protected} of {n_items} items."
        )

    def chance(position: int, taken: Array) -> Array:
        """Return the probability of a protected item after `taken` of them."""
        probability = np.full(taken.size, float(advantage))
        if pattern == "decreasing":
            probability *= 1 - position / n_items
        elif tokens is not None and position < k:
            probability = (tokens - taken) / (k - position)
        probability[taken == n_protected] = 0.0
        probability[position - taken == n_items - n_protected] = 1.0
        return probability

    drawn = generator(random_state).random((int(n_rankings), int(n_items)))
    protected, taken = np.empty(drawn.shape, dtype=bool), np.zeros(len(drawn))
    for position in range(int(n_items)):
        protected[:, position] = drawn[:, position] < chance(position, taken)
        taken += protected[:, position]
    exception = _EXCEPTIONS[pattern].format(k=k, tokens=tokens)
    description = f"""\
        Biased rankings
        ===============

        {n_rankings:,} rankings of {n_items} items, {n_protected} of them protected,
        after Yang and Stoyanovich, "Measuring Fairness in Ranked Outputs". The data are
        simulated, not collected.

        Each ranking is filled from the top: while both groups have items left, the next
        one is protected with probability {advantage:g}{exception}; then the rest
        follows. An advantage of 0 puts the protected group last, 1 puts it first, and a
        value near its share ({share:g}) gives it about the same chance at every
        position.
        """
    return Bunch(
        y_score=np.tile(np.arange(n_items, 0, -1), n_rankings),
        sensitive_features=np.where(protected.ravel(), "protected", "other"),
        qid=np.repeat(np.arange(n_rankings), n_items),
        n_protected=n_protected,
        position_share=_position_share(int(n_items), n_protected, chance),
        DESCR=dedent(description),
    )


def _position_share(
    n_items: int, n_protected: int, chance: Callable[[int, Array], Array]
) -> Array:
    """Return the probability of a protected item at each position."""
    numbers, out = np.arange(n_protected + 1), np.empty(n_items)
    distribution = (numbers == 0).astype(float)
    for position in range(n_items):
        here = distribution * np.clip(chance(position, numbers), 0.0, 1.0)
        out[position] = here.sum()
        distribution -= here
        distribution[1:] += here[:-1]
    return np.clip(out, 0.0, 1.0)
