"""One Display class a picture; they draw numbers and compute none."""

from ._calibration import CalibrationByGroupDisplay
from ._estimates import GroupEstimatesDisplay
from ._marginal import MarginalOutcomeDisplay
from ._parity import PredictiveParityDisplay
from ._tradeoff import FairnessTradeoffDisplay

__all__ = [
    "CalibrationByGroupDisplay",
    "FairnessTradeoffDisplay",
    "GroupEstimatesDisplay",
    "MarginalOutcomeDisplay",
    "PredictiveParityDisplay",
]
