"""Rankings in which one group has an advantage of known size."""

from __future__ import annotations

import numpy as np
from scipy import special
from sklearn.utils import Bunch

from .._inputs.validation import Array, check_number, generator

_DESCR = """\
Biased rankings
===============

{n_rankings:,} rankings of {n_items} items, {n_protected} of them protected, after Yang
and Stoyanovich, "Measuring Fairness in Ranked Outputs". The data are simulated, not
collected.

Each ranking is filled from the top: while both groups have items left, the next one is
protected with probability {advantage:g}; then the rest follows. An advantage of 0 puts
the protected group last, 1 puts it first, and a value near its share ({share:g}) gives
it about the same chance at every position.
"""


def make_biased_rankings(
    n_rankings: int = 100,
    n_items: int = 100,
    share: float = 0.5,
    advantage: float = 0.5,
    *,
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
        For a number outside its range.

    See Also
    --------
    skrankfair.metrics.expected_advantage : Metrics of position probabilities.

    Notes
    -----
    With m protected items of n, the first i - 1 draws have a binomial number of
    protected ones, of which position i sees whether it has reached m, or that of the
    others n - m: ``P_i = α [1 - P(B_{i-1, α} ≥ m) - P(B_{i-1, 1-α} ≥ n - m)] +
    P(B_{i-1, 1-α} ≥ n - m)``.

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
    rng = generator(random_state)
    n_protected = round(float(share) * n_items)
    drawn = rng.random((int(n_rankings), int(n_items))) < advantage
    taken = np.cumsum(drawn, axis=1)
    others = np.arange(1, n_items + 1) - taken
    # After a group is used up, draws count only if they are of the group that is left.
    protected = drawn & (taken <= n_protected)
    protected |= others > n_items - n_protected
    return Bunch(
        y_score=np.tile(np.arange(n_items, 0, -1), n_rankings),
        sensitive_features=np.where(protected.ravel(), "protected", "other"),
        qid=np.repeat(np.arange(n_rankings), n_items),
        n_protected=n_protected,
        position_share=_position_share(int(n_items), n_protected, float(advantage)),
        DESCR=_DESCR.format(
            n_rankings=n_rankings,
            n_items=n_items,
            n_protected=n_protected,
            advantage=advantage,
            share=share,
        ),
    )


def _position_share(n_items: int, n_protected: int, advantage: float) -> Array:
    """Return the probability of a protected item at each position."""
    drawn = np.arange(n_items)
    over = _at_least(n_protected, drawn, advantage)
    only = _at_least(n_items - n_protected, drawn, 1 - advantage)
    out: Array = advantage * (1 - over - only) + only
    return np.clip(out, 0.0, 1.0)


def _at_least(least: int, n: Array, probability: float) -> Array:
    """Return the probability of at least `least` successes of n."""
    out = np.zeros(n.size)
    if least == 0:
        return out + 1.0
    enough = n >= least
    out[enough] = special.bdtrc(least - 1, n[enough], probability)
    return out
