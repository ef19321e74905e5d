"""Warnings of the package, in one place for ``warnings.filterwarnings``."""

from sklearn.exceptions import UndefinedMetricWarning


class SmallSampleWarning(UserWarning):
    """Errors rest on few effective clusters or extreme values, and are hardly known."""


__all__ = ["SmallSampleWarning", "UndefinedMetricWarning"]
