"""`Monitor`: whether a gap is too large or has changed, at any number of looks."""

from ._monitor import Monitor

__all__ = ["Monitor"]
