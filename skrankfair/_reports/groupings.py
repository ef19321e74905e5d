"""Several groupings in one audit, and references."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .._estimates import formatting as fmt
from .._inputs.groups import as_groups, frame_columns
from .._inputs.validation import Array, check_choice, to_numpy

if TYPE_CHECKING:
    import pandas as pd


#: What becomes of several columns of labels.
CROSS = (True, False, "both")


def crossed_columns(groups: Any) -> dict[str, Array]:
    """Return the columns of labels that are crossed, by name; none if nothing is."""
    frame = frame_columns(groups)
    if frame is None or len(frame[0]) < 2:
        return {}
    arrays = [to_numpy(column, "sensitive_features") for column in frame[0]]
    if all(array.dtype.kind == "b" for array in arrays):
        return {}  # groups that may overlap
    return {fmt.label(name): a for name, a in zip(frame[1], arrays, strict=True)}


def name_of(groups: Any) -> str:
    """Return the name of the columns that make the groups; empty without one."""
    crossed = " × ".join(crossed_columns(groups))
    name = crossed or getattr(groups, "name", None)
    return "" if name is None else fmt.label(name)


def groupings_of(groups: Any, cross: bool | str) -> dict[str, Any]:
    """Return the groupings of an audit that has several, by name; else none.

    Raises
    ------
    ValueError
        For an unknown `cross`, or one that has nothing to cross.
    """
    check_choice(cross, "cross", CROSS)
    columns = crossed_columns(groups)
    if cross is True:
        return {}
    if not columns:
        raise ValueError(
            "cross must be True unless sensitive_features is a frame of several "
            f"columns of labels; got {cross!r}."
        )
    return {**columns, **({" × ".join(columns): groups} if cross else {})}


def members_of(groupings: Mapping[str, Any]) -> pd.DataFrame:
    """Return which rows are of which group of several groupings, a column per group."""
    import pandas as pd

    members = {}
    for name, labels in groupings.items():
        groups = as_groups(labels)
        for i, label in enumerate(groups.labels):
            members[_name(name, label)] = groups.mask(i)
    return pd.DataFrame(members)


def _name(grouping: str, label: Hashable) -> str:
    """Return the name of a group among those of other groupings."""
    said = fmt.label(label)
    return said if isinstance(label, tuple) else f"{grouping}={said}"


def references_of(
    reference: Any,
    groups: Iterable[Hashable],
    groupings: Mapping[str, Any] | None = None,
) -> dict[Hashable, Hashable]:
    """Return the group with which each group is compared instead of with the rest.

    Raises
    ------
    ValueError
        For a reference that is none of the groups.
    """
    if reference is None:
        return {}
    groups, groupings = list(groups), groupings or {}
    of = {} if groupings else dict.fromkeys(groups, reference)
    given = dict(reference) if isinstance(reference, Mapping) else {}
    for name, labels in groupings.items():
        crossed = frame_columns(labels)
        names = [name] if crossed is None else list(map(fmt.label, crossed[1]))
        if given.keys() >= set(names):
            values = tuple(given[column] for column in names)
            label = values[0] if crossed is None else values
            of |= {_name(name, g): _name(name, label) for g in as_groups(labels).labels}
    if not of or not {*of.values()} <= {*groups} or given.keys() - groupings.keys():
        raise ValueError(
            f"reference must be one of the groups {groups}, or of several groupings "
            f"one by column, such as {{'race': 'white'}}; got {reference!r}."
        )
    return of
