"""Warnings of the package, in one place for ``warnings.filterwarnings``."""

from sklearn.exceptions import UndefinedMetricWarning

__all__ = ["UndefinedMetricWarning"]
