"""One Display class a picture; they draw numbers and compute none."""

from ._estimates import GroupEstimatesDisplay

__all__ = ["GroupEstimatesDisplay"]
