"""Write the names of scikit-learn's reference, to which the documentation links.

The documentation is built without a network, so the inventory is kept here. It is made
from the installed package and the addresses that its pages have had since 0.20:

    python docs/_inventories/scikit_learn.py
"""

import zlib
from pathlib import Path

from sklearn.utils.discovery import all_displays, all_estimators, all_functions

HEADER = """\
# Sphinx inventory version 2
# Project: scikit-learn
# Version: stable
# The remainder of this file is compressed using zlib.
"""


def main():
    """Write one line per class and function."""
    lines = set()
    kinds = {"class": [*all_estimators(), *all_displays()], "function": all_functions()}
    for kind, members in kinds.items():
        for name, member in members:
            parts = member.__module__.split(".")
            public = [part for part in parts if not part.startswith("_")]
            full = ".".join([*public, name])
            lines.add(f"{full} py:{kind} 1 modules/generated/{full}.html#$ -\n")
    text = "".join(sorted(lines)).encode()
    content = HEADER.encode() + zlib.compress(text, 9)
    Path(__file__).with_suffix(".inv").write_bytes(content)


if __name__ == "__main__":
    main()
