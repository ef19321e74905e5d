"""How much data a gap needs, with a pilot or without one."""

from ._plans import Plan, plan_pairs, plan_rates
from ._power_curve import PowerCurve, power_curve

__all__ = ["Plan", "PowerCurve", "plan_pairs", "plan_rates", "power_curve"]
