"""Which rules of a device a prediction rests on, in words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from tbsched.hardware.device_fields import FIELDS
from tbsched.program.sequence import (
    Copy,
    Event,
    GraphLaunch,
    HostCall,
    HostFunction,
    Launch,
    Memset,
    RecordEvent,
    Sequence,
    Synchronize,
    WaitValue,
    WriteValue,
)

_BY_PATH = {field.path: field for field in FIELDS}

# Rows of ``when`` in schema/device.toml: what some launch must have, all of it.
_OF_LAUNCHES: Mapping[str, Callable[[Launch], bool]] = {
    "cluster": lambda launch: launch.cluster > 1,
    "local_memory": lambda launch: launch.local_memory > 0,
    "shared_memory": lambda launch: launch.shared_memory > 0,
    "carveout": lambda launch: launch.carveout is not None,
    "priority": lambda launch: launch.priority != 0,
    "first_use": lambda launch: launch.first_use,
}
SEVERAL, DURATION, QUEUE, GRAPH, TRANSFER = "several", "duration", "queue", "graph", "transfer"
CONDITIONAL, HOST_FUNCTION, VALUE = "conditional", "host_function", "value"
TIMED_RECORD = "timed_record"
PEER, GPUS = "peer", "gpus"
HOST, PROCESSES = "host", "processes"  # of a call, whatever its sequence
# Events whose rules are those of CUDA's documentation: no GPU was measured.
_UNMEASURED: Mapping[type[Event], str] = {
    HostCall: "host calls",
}
NEEDS = frozenset(
    {
        *_OF_LAUNCHES, SEVERAL, DURATION, QUEUE, GRAPH, CONDITIONAL, TRANSFER, PEER, GPUS,
        HOST_FUNCTION, VALUE, TIMED_RECORD, HOST, PROCESSES,
    }
)  # fmt: skip


def needs_of(launches: Collection[Launch]) -> set[str]:
    """Returns the rows of :data:`NEEDS` that launches have, which stay on their SMs."""
    found = {need for need, has in _OF_LAUNCHES.items() if any(map(has, launches))}
    return found | {SEVERAL} if len(launches) > 1 else found


def needs_of_sequence(seq: Sequence) -> set[str]:
    """Returns the rows of :data:`NEEDS` that a sequence has."""
    found = needs_of(seq.launches)
    transfers = sum(isinstance(each, Copy | Memset) for each in seq.transfers)
    is_one_of_several = len(seq.launches) + transfers > 1
    there = {
        SEVERAL: is_one_of_several,
        DURATION: seq.timed,
        QUEUE: seq.timed and is_one_of_several,
        GRAPH: any(isinstance(event, GraphLaunch) for event in seq),
        CONDITIONAL: any(
            isinstance(event, GraphLaunch) and event.graph.has_conditionals for event in seq
        ),
        TRANSFER: transfers > 0,
        PEER: any(isinstance(each, Copy) and each.kind == "p2p" for each in seq.transfers),
        GPUS: seq.gpus > 1,
        HOST_FUNCTION: any(isinstance(each, HostFunction) for each in seq.transfers),
        VALUE: any(isinstance(event, WriteValue | WaitValue) for event in seq),
        TIMED_RECORD: any(isinstance(event, RecordEvent) and event.timing for event in seq),
        HOST: any(isinstance(event, Synchronize | HostCall) for event in seq),
    }
    return found | {need for need, is_there in there.items() if is_there}


def unmeasured_rules(seq: Sequence) -> tuple[str, ...]:
    """Returns the rules, in words, that a sequence rests on and that no GPU was measured for."""
    kinds = map(type, (*seq, *seq.transfers))
    return tuple(dict.fromkeys(_UNMEASURED[kind] for kind in kinds if kind in _UNMEASURED))


def rules_of(fields: Iterable[str], needs: Collection[str] = NEEDS) -> tuple[str, ...]:
    """Returns the rules of some fields that a prediction rests on, in words.

    Args:
        fields: as ``DeviceSpec.provenance`` names them; one that is not known, such as of a newer
            version, is skipped.
        needs: what was predicted has these; by default anything.
    """
    known = [_BY_PATH[path] for path in fields if path in _BY_PATH]
    return tuple(
        dict.fromkeys(field.rule for field in known if not field.when or field.when in needs)
    )
