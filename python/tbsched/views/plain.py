"""Values as what JSON can hold, and fields of them as columns of tables.

A name of a field may be ``key=attribute`` where the two differ; ``config=config.name`` reaches
further in.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any

import numpy as np

from tbsched.hardware.initial_state import InitialState
from tbsched.program.events.launch import Launch, launch_to_data
from tbsched.program.sequence import Sequence, events_to_data
from tbsched.traces.placement import DeviceInfo


def fields(value: object, names: str) -> dict[str, Any]:
    """Some fields of a value as what JSON can hold."""
    return {key: plain(get(value)) for key, get in _getters(names)}


def columns_of(rows: Iterable[object], names: str) -> dict[str, list[Any]]:
    """A column for each of some fields of several values."""
    listed = list(rows)
    return {key: list(map(get, listed)) for key, get in _getters(names)}


@functools.cache
def _getters(names: str) -> list[tuple[str, attrgetter[Any]]]:
    """The keys, and what gets the value of each."""
    pairs = [name.partition("=") for name in names.split()]
    return [(key, attrgetter(attribute or key)) for key, _, attribute in pairs]


def plain(value: Any) -> Any:
    """Returns a value as JSON data; a value of an unknown type is returned as it is."""
    match value:
        case np.ndarray():
            return _rows(value) if value.dtype.names else value.tolist()
        case Sequence():
            return events_to_data(value)
        case Launch():
            return launch_to_data(value)
        case InitialState():
            return value.components()
        case DeviceInfo():  # as the header of a trace file has it
            return {"name": value.name, "sms": value.sms, **value.details}
        case Mapping():
            return {key: plain(item) for key, item in value.items()}
        case list() | tuple():
            return list(map(plain, value))
    if dataclasses.is_dataclass(value):
        return {
            field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    return value


def _rows(table: np.ndarray[Any, Any]) -> list[dict[str, Any]]:
    """Returns an object per row of a structured array."""
    names = table.dtype.names or ()
    columns = [table[name].tolist() for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
