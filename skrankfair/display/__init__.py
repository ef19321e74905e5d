"""One Display class a picture; they draw numbers and compute none."""

from ._estimates import GroupEstimatesDisplay
from ._monotonicity import MonotonicityDisplay
from ._tradeoff import FairnessTradeoffDisplay

__all__ = ["FairnessTradeoffDisplay", "GroupEstimatesDisplay", "MonotonicityDisplay"]
