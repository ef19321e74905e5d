"""Whether a gap has changed, looked at as often as you like."""

from ._monitor import Monitor

__all__ = ["Monitor"]
