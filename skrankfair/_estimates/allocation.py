"""What may be allocated: a refusal in words comes before the memory is gone."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

_GIB = float(1 << 30)
# Where the machine does not tell: bytes.
_UNKNOWN = 8 * _GIB
# What a container may have, by the two versions of control groups.
_CONTAINER = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)


@cache
def memory_limit() -> float:
    """Return how much one array may take, in bytes: half of the memory there is."""
    try:
        total = float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        total = _UNKNOWN
    for name in _CONTAINER:
        try:
            total = min(total, float(Path(name).read_text(encoding="ascii")))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return total / 2


def check_memory(size: float, what: str, instead: str) -> None:
    """Raise a ValueError before an array is made that is too large.

    Parameters
    ----------
    size : float
        Bytes.
    what : str
        What takes them, as the beginning of a sentence.
    instead : str
        What to do, as the end of one.
    """
    limit = memory_limit()
    if size > limit:
        raise ValueError(
            f"{what} would take {size / _GIB:.3g} GiB of memory, more than the limit "
            f"of {limit / _GIB:.3g} GiB (half of what there is): {instead}"
        )
