"""Random problems: some in every run, the rest of them with the simulations."""

import pytest


def in_chunks(stop, size, always):
    """Parametrize ``seeds`` by ranges of `size` up to `stop`.

    Those below `always` run by default. The others, which prove the same of more
    problems, are marked ``simulation``.
    """
    chunks = [
        pytest.param(
            range(start, start + size),
            marks=() if start < always else pytest.mark.simulation,
            id=f"{start}-{start + size - 1}",
        )
        for start in range(0, stop, size)
    ]
    return pytest.mark.parametrize("seeds", chunks)


def rarely(*values):
    """Mark values of a parameter, or tuples of several, to run with the simulations."""
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)),
            marks=pytest.mark.simulation,
        )
        for value in values
    ]
