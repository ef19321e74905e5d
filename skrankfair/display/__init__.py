"""One Display class per plot, each of which draws numbers and computes none."""

from ._calibration import CalibrationByGroupDisplay
from ._rows import GroupEstimatesDisplay
from ._tradeoff import FairnessTradeoffDisplay

__all__ = [
    "CalibrationByGroupDisplay",
    "FairnessTradeoffDisplay",
    "GroupEstimatesDisplay",
]
