"""One Display class per plot; these classes draw numbers and compute none."""

from ._before_after import BeforeAfterDisplay
from ._calibration import CalibrationByGroupDisplay
from ._group_calibrator import GroupCalibratorDisplay
from ._group_estimates import GroupEstimatesDisplay
from ._marginal_outcome import MarginalOutcomeDisplay
from ._matched_pair_curve import MatchedPairCurveDisplay
from ._mitigation import MitigationDisplay
from ._monitor import MonitorDisplay
from ._monotonicity import MonotonicityDisplay
from ._outcome_inequality import OutcomeInequalityDisplay
from ._power_curve import PowerCurveDisplay
from ._predictive_parity import PredictiveParityDisplay
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
    "MonitorDisplay",
    "MonotonicityDisplay",
    "OutcomeInequalityDisplay",
    "PowerCurveDisplay",
    "PredictiveParityDisplay",
]
