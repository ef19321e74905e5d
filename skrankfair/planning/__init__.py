"""How much data a gap needs, with a pilot or without one."""

from ._plans import plan_pairs, plan_rates
from ._power_curve import power_curve

__all__ = ["plan_pairs", "plan_rates", "power_curve"]
