"""The table of the kinds of events. Whoever must decide by the kind finds all of them here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from tbsched.errors import did_you_mean, shown
from tbsched.program.events.cuda_events import (
    RecordEvent,
    WaitEvent,
    cuda_event_to_data,
    record_event_from_data,
    wait_event_from_data,
)
from tbsched.program.events.graph import GraphLaunch, graph_from_data, graph_to_data
from tbsched.program.events.host_call import HostCall, host_call_from_data, host_call_to_data
from tbsched.program.events.host_function import (
    HostFunction,
    host_function_from_data,
    host_function_to_data,
)
from tbsched.program.events.launch import Launch, launch_from_data, launch_to_data
from tbsched.program.events.memory_values import (
    WaitValue,
    WriteValue,
    memory_value_to_data,
    wait_value_from_data,
    write_value_from_data,
)
from tbsched.program.events.release import Release, release_from_data, release_to_data
from tbsched.program.events.synchronize import (
    Synchronize,
    synchronize_from_data,
    synchronize_to_data,
)
from tbsched.program.events.transfers import (
    Copy,
    Memset,
    Transfer,
    copy_from_data,
    memset_from_data,
    transfer_to_data,
)

# Events that give the GPU no work, but order what streams and hosts do.
Control: TypeAlias = RecordEvent | WaitEvent | Synchronize | HostCall | WriteValue | WaitValue
# A kind that one `match` of the package forgets is an error of the type checker and, through
# `assert_never`, of the running program.
Event: TypeAlias = Launch | Release | GraphLaunch | Transfer | Control


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of event.

    Attributes:
        key: what it is called in trace files.
        event: its class.
        to_data: its fields as plain values.
        from_data: the inverse; its first argument says where, for messages of errors.
    """

    key: str
    event: type[Event]
    to_data: Callable[[Any], object]
    from_data: Callable[[str, object], Event]


KINDS = (
    Kind("launch", Launch, launch_to_data, launch_from_data),
    Kind("release", Release, release_to_data, release_from_data),
    Kind("record_event", RecordEvent, cuda_event_to_data, record_event_from_data),
    Kind("wait_event", WaitEvent, cuda_event_to_data, wait_event_from_data),
    Kind("graph", GraphLaunch, graph_to_data, graph_from_data),
    Kind("copy", Copy, transfer_to_data, copy_from_data),
    Kind("memset", Memset, transfer_to_data, memset_from_data),
    Kind("synchronize", Synchronize, synchronize_to_data, synchronize_from_data),
    Kind("host_function", HostFunction, host_function_to_data, host_function_from_data),
    Kind("host_call", HostCall, host_call_to_data, host_call_from_data),
    Kind("write_value", WriteValue, memory_value_to_data, write_value_from_data),
    Kind("wait_value", WaitValue, memory_value_to_data, wait_value_from_data),
)
_BY_CLASS = {kind.event: kind for kind in KINDS}


def event_to_data(event: Event) -> dict[str, object]:
    """Returns an event as trace files hold it: ``{"release": 0}``.

    Raises:
        TypeError: no kind of event.
    """
    kind = _BY_CLASS.get(type(event))
    if kind is None:
        raise TypeError(f"{type(event).__name__} is no kind of event")
    return {kind.key: kind.to_data(event)}


def event_from_data(where: str, data: object) -> Event:
    """Returns the inverse of :func:`event_to_data`.

    Raises:
        TypeError, ValueError: naming ``where`` and the field.
    """
    if isinstance(data, dict) and len(data) == 1:
        ((key, fields),) = data.items()
        for kind in KINDS:
            if kind.key == key:
                return kind.from_data(f"{where}.{key}", fields)
    needed = [f'{{"{kind.key}": …}}' for kind in KINDS]
    message = f"{where}: {', '.join(needed[:-1])} or {needed[-1]} is needed"
    if isinstance(data, dict):
        names = [kind.key for kind in KINDS]
        unknown = [key for key in data if key not in names][:1]
        message += f", got {', '.join(map(shown, [*data][:5])) or 'an empty object'}"
        message += "".join(did_you_mean(key, names) for key in unknown)
    raise ValueError(message)
