"""Whether a gap has changed, looked at as often as you like."""

from ._monitor import Alarm, Monitor

__all__ = ["Alarm", "Monitor"]
