"""Fairness of rankings and risk scores, for users of scikit-learn."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import (
        datasets,
        display,
        distributed,
        exceptions,
        inference,
        metrics,
        mitigation,
        model_selection,
        monitoring,
        planning,
        rankers,
        scoring,
        smoothing,
    )
    from ._cli.terminal import show_versions
    from ._reports.audit import AuditReport, audit
    from ._reports.cross_validated import audit_cv
    from ._reports.mitigation import mitigation_report
    from .metrics import GroupEstimates

__all__ = [
    "AuditReport",
    "GroupEstimates",
    "audit",
    "audit_cv",
    "datasets",
    "display",
    "distributed",
    "exceptions",
    "inference",
    "metrics",
    "mitigation",
    "mitigation_report",
    "model_selection",
    "monitoring",
    "planning",
    "rankers",
    "scoring",
    "show_versions",
    "smoothing",
]

__version__ = "0.1.0"

# Where the names live that are no modules. Everything is imported when it is first
# used, so that nobody waits for what they do not use.
_HOMES = {
    "AuditReport": "._reports.audit",
    "GroupEstimates": ".metrics",
    "audit": "._reports.audit",
    "audit_cv": "._reports.cross_validated",
    "mitigation_report": "._reports.mitigation",
    "show_versions": "._cli.terminal",
}


def __dir__() -> list[str]:
    """Return the public names, of which some are not imported yet."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name not in _HOMES:
        return import_module(f".{name}", __name__)
    globals()[name] = value = getattr(import_module(_HOMES[name], __name__), name)
    return value
