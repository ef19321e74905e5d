"""What a bug report has to say of the computer."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, requires, version

#: Ends of requirements of which a bug report says nothing.
_TOOLS = ("extra == 'docs'", "extra == 'lint'")


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
    _print_table(
        "System",
        {
            "python": sys.version.replace("\n", " "),
            "executable": sys.executable,
            "machine": platform.platform(),
        },
    )
    needed, optional = {"skrankfair", "pip"}, set()
    for text in requires("skrankfair") or ():
        (name,) = re.findall(r"^[\w.-]+", text)
        if "extra == " not in text:
            needed.add(name)
        elif not text.endswith(_TOOLS):
            optional.add(name)
    _print_table("Python dependencies", _versions(needed))
    _print_table("Optional dependencies", _versions(optional))


def _versions(names: Iterable[str]) -> dict[str, str | None]:
    """Return the installed versions, None for what is not installed."""
    versions: dict[str, str | None] = {}
    for name in sorted(names):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = None
    return versions


def _print_table(title: str, values: dict[str, str | None]) -> None:
    width = max(map(len, values))
    lines = [f"{name:>{width}}: {value}\n" for name, value in values.items()]
    sys.stdout.write("".join([f"\n{title}:\n", *lines]))
