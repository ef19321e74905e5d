"""`rankings_to_columns`: ordered lists become the columns that metrics take."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np


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
