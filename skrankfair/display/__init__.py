"""One Display class a picture; they draw numbers and compute none."""

from ._before_after import BeforeAfterDisplay
from ._calibration import CalibrationByGroupDisplay
from ._estimates import GroupEstimatesDisplay
from ._group_calibrator import GroupCalibratorDisplay
from ._inequality import OutcomeInequalityDisplay
from ._marginal import MarginalOutcomeDisplay
from ._matched_pair_curve import MatchedPairCurveDisplay
from ._mitigation import MitigationDisplay
from ._monotonicity import MonotonicityDisplay
from ._parity import PredictiveParityDisplay
from ._tradeoff import FairnessTradeoffDisplay

__all__ = [
    "BeforeAfterDisplay",
    "CalibrationByGroupDisplay",
    "FairnessTradeoffDisplay",
    "GroupCalibratorDisplay",
    "GroupEstimatesDisplay",
    "MarginalOutcomeDisplay",
    "MatchedPairCurveDisplay",
    "MitigationDisplay",
    "MonotonicityDisplay",
    "OutcomeInequalityDisplay",
    "PredictiveParityDisplay",
]
