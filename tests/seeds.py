"""Random problems: some in every run, the rest of them with the simulations."""

import itertools

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


def one_in(n, *, rare=lambda value: False, **factors):
    """Parametrize by all combinations of factors, one in `n` of which runs by default.

    A factor maps names to values. The default run takes every value of each factor, and
    every combination of the other factors if one of them has `n` values. What it leaves
    out are the same paths through the code; it runs with the simulations, as does every
    combination with a value that is `rare`.
    """
    combinations = itertools.product(
        *(enumerate(factor.items()) for factor in factors.values())
    )
    params = []
    for combination in combinations:
        by_default = sum(index for index, _ in combination) % n == 0 and not any(
            rare(value) for _, (_, value) in combination
        )
        params.append(
            pytest.param(
                *(value for _, (_, value) in combination),
                marks=() if by_default else pytest.mark.simulation,
                id="-".join(name for _, (name, _) in combination),
            )
        )
    return pytest.mark.parametrize(list(factors), params)
