"""One Display class per plot; these classes draw numbers and compute none."""

from ._calibration import CalibrationByGroupDisplay
from ._rows import GroupEstimatesDisplay
from ._tradeoff import FairnessTradeoffDisplay

__all__ = [
    "CalibrationByGroupDisplay",
    "FairnessTradeoffDisplay",
    "GroupEstimatesDisplay",
]
