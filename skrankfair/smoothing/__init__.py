"""Nadaraya-Watson smoothing: the mean outcome at a score, with clustered errors."""

from ._curve import nadaraya_watson
from ._regressor import NadarayaWatsonRegressor

__all__ = ["NadarayaWatsonRegressor", "nadaraya_watson"]
