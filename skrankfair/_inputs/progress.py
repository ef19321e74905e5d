"""The progress of a long call: a line of text on a terminal or in a notebook."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from .validation import check_choice


@contextmanager
def shown(
    progress: bool | Callable[[str], object],
) -> Iterator[Callable[[str], object]]:
    """Yield a function that takes a line of text: the caller's, or rich's status.

    Without rich the lines are written to standard error. A ValueError is raised unless
    `progress` is a function, True or False.
    """
    if callable(progress):
        yield progress
        return
    check_choice(progress, "progress", (True, False))
    if not progress:
        yield lambda text: None
    elif find_spec("rich") is None:
        yield lambda text: sys.stderr.write(f"{text}\n")
    else:
        from rich.console import Console
        from rich.text import Text

        # As Text, since the names of groups may look like markup.
        with Console(stderr=True).status("starting") as status:
            yield lambda text: status.update(Text(text))
