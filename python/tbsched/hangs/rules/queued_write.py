"""Work that writes what a kernel polls, and that waits behind other work in a hardware queue."""

from __future__ import annotations

from dataclasses import replace

from tbsched.counting import listed
from tbsched.hangs.evidence import Evidence
from tbsched.hangs.fixes import fixes_for
from tbsched.hangs.hang import QUEUE
from tbsched.hangs.replay import Stranded, replay_operations
from tbsched.hangs.rules.finding import NOTHING, Finding
from tbsched.hangs.unfinished import LAUNCH, Operation, name_of
from tbsched.hangs.writes import TRANSFERS, is_awaited


def write_waits_in_its_queue(evidence: Evidence) -> Finding:
    """Finds a copy, memset or value that a kernel polls, and that waits in a hardware queue."""
    spec, capture, replay = evidence.seen.spec, evidence.capture, evidence.replay
    if evidence.snapshot is not None or spec is None or capture is None or replay is None:
        return NOTHING
    for index, own in enumerate(evidence.issued):
        holds = [each for each in evidence.running(LAUNCH) if _is_polled(own, each, evidence)]
        if not holds or any(own.is_behind(each) for each in holds):
            continue
        if index in replay.timely:
            continue
        stranded, operations = _as_launch(index, evidence)
        if stranded is None or stranded.cause != "hardware_queue":
            continue
        names = listed(dict.fromkeys(map(name_of, holds)))
        fixes, _ = fixes_for(
            stranded, operations, capture.streams, spec, replay, evidence.seen.seconds
        )
        return Finding(
            kind=QUEUE,
            reason=f"{name_of(own)} never starts: other work is before it in its hardware queue, "
            f"and {names} waits for what it writes",
            stranded=evidence.never_starting(),
            fixes=fixes,
            proof=(f"Call {own.call}, {own.function}, writes to memory that {names} polls.",),
        )
    return NOTHING


def _is_polled(transfer: Operation, launch: Operation, evidence: Evidence) -> bool:
    """Returns whether a launch surely polls what a copy, memset or value is written to."""
    code = evidence.code_of(launch)
    return (
        transfer.what in TRANSFERS
        and code is not None
        and is_awaited(transfer, launch, code, evidence.operations)
    )


def _as_launch(index: int, evidence: Evidence) -> tuple[Stranded | None, tuple[Operation, ...]]:
    """Returns whether a transfer never starts if a small kernel does it; and the operations so."""
    own = evidence.issued[index]
    kernel = replace(own, what=LAUNCH, name=name_of(own), block=(32, 1, 1), registers=16)
    operations = (*evidence.issued[:index], kernel, *evidence.issued[index + 1 :])
    assert evidence.capture is not None
    assert evidence.seen.spec is not None
    replay = replay_operations(operations, evidence.capture.streams, evidence.seen.spec, None)
    return next((each for each in replay.stranded if each.operation == index), None), operations
