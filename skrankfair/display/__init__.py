"""One Display class a picture; they draw numbers and compute none."""

from ._estimates import GroupEstimatesDisplay
from ._group_calibrator import GroupCalibratorDisplay
from ._inequality import OutcomeInequalityDisplay
from ._matched_pair_curve import MatchedPairCurveDisplay
from ._tradeoff import FairnessTradeoffDisplay

__all__ = [
    "FairnessTradeoffDisplay",
    "GroupCalibratorDisplay",
    "GroupEstimatesDisplay",
    "MatchedPairCurveDisplay",
    "OutcomeInequalityDisplay",
]
