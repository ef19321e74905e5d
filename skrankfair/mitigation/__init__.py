"""Mitigations that plug into scikit-learn's Pipelines and searches."""

from ._group_calibrator import GroupCalibrator

__all__ = ["GroupCalibrator"]
