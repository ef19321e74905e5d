"""Nadaraya-Watson smoothing: the mean outcome at a score, with clustered errors."""

from ._curve import SmoothCurve, nadaraya_watson
from ._regressor import NadarayaWatsonRegressor

__all__ = ["NadarayaWatsonRegressor", "SmoothCurve", "nadaraya_watson"]
