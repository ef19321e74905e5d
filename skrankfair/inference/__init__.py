"""Tests and comparisons that need more than one estimate."""

from ._compare import compare

__all__ = ["compare"]
