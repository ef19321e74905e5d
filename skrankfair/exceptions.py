"""Warnings of the package, in one place for ``warnings.filterwarnings``."""

from sklearn.exceptions import UndefinedMetricWarning


class SmallSampleWarning(UserWarning):
    """Errors rest on so few effective clusters that they are hardly known."""


__all__ = ["SmallSampleWarning", "UndefinedMetricWarning"]
