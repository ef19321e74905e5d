"""Random problems: some in every run, the rest of them with the simulations."""

import functools
import inspect
import itertools

import pytest


def in_chunks(stop, always):
    """Parametrize ``seeds`` by two ranges up to `stop`.

    Those below `always` run by default. The others, which prove the same of more
    problems, are marked ``simulation``.
    """
    chunks = [range(always), *rarely(range(always, stop))]
    ids = f"0-{always - 1}", f"{always}-{stop - 1}"
    return pytest.mark.parametrize("seeds", chunks, ids=ids)


def rarely(*values):
    """Mark values of a parameter, or tuples of several, to run with the simulations."""
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)),
            marks=pytest.mark.simulation,
        )
        for value in values
    ]


def together(names, params, size=10):
    """Parametrize by pieces of `params`, which are ``pytest.param``s with ids.

    A test takes all of its piece in turn: pytest and its workers need longer for a test
    than most small problems do. The note of a failure is the id of what failed.
    """
    names = [names] if isinstance(names, str) else list(names)
    pieces = []
    for rare in (False, True):
        some = [param for param in params if bool(param.marks) == rare]
        for start in range(0, len(some), size):
            piece = some[start : start + size]
            others = f" and {len(piece) - 1} more" if len(piece) > 1 else ""
            name = f"{piece[0].id}{others}"
            pieces.append(pytest.param(piece, marks=piece[0].marks, id=name))
    joined = "_and_".join(names)

    def decorate(test):
        @functools.wraps(test)
        def run(*args, **given):
            for param in given.pop(joined):
                values = dict(zip(names, param.values, strict=True))
                try:
                    test(*args, **given, **values)
                except BaseException as error:
                    error.add_note(f"In: {param.id}")
                    raise

        signature = inspect.signature(test)
        kept = [p for p in signature.parameters.values() if p.name not in names]
        own = inspect.Parameter(joined, inspect.Parameter.KEYWORD_ONLY)
        run.__signature__ = signature.replace(parameters=[*kept, own])
        return pytest.mark.parametrize(joined, pieces)(run)

    return decorate


def one_in(n, *, rare=lambda value: False, at_once=1, **factors):
    """Parametrize by all combinations of factors, one in `n` of which runs by default.

    A factor maps names to values. The default run takes every value of each factor, and
    every combination of the other factors if one of them has `n` values. What it leaves
    out are the same paths through the code; it runs with the simulations, as does every
    combination with a value that is `rare`. A test runs `at_once` combinations.
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
    if at_once > 1:
        return together(list(factors), params, at_once)
    return pytest.mark.parametrize(list(factors), params)
