"""Resident grids: how many small launches, each in a stream of its own, run at once."""

from __future__ import annotations

from dataclasses import replace

from tbsched.calibration.asking.lab import Lab, small
from tbsched.calibration.asking.times import Quantity, at_once, measured, observed
from tbsched.calibration.draft import draft
from tbsched.calibration.finding import Finding, KnownValues, assumed, determined
from tbsched.program.sequence import Launch, Sequence

_PATH = "scheduler.resident_grids"
_FIRST, _MAX_LAUNCHES = 192, 4096
_ISSUED = 1e-4  # seconds, in which a launch is surely called


def ask(lab: Lab, known: KnownValues) -> list[Finding]:
    """Counts how many grids can be resident: runs more and more launches until some start only
    after the first has ended. Returns a finding."""
    room = lab.sms * known.notes["single"]
    launches = min(_FIRST, room + 1)
    while True:
        alone = lasting(_ISSUED * launches)
        sequence = Sequence(replace(alone, stream=stream) for stream in range(launches))
        started_at_once = measured(observed(lab, sequence), at_once)
        if started_at_once.value < launches or launches > min(room, _MAX_LAUNCHES):
            break
        launches = min(4 * launches, room + 1)
    lab.quantities.append(started_at_once)
    return [read(started_at_once, room, draft(known).resident_grids)]


def lasting(seconds: float, blocks: int = 1) -> Launch:
    """Returns a launch of small blocks of a given duration, in stream 0."""
    return replace(small(blocks=blocks), stream=0, duration=seconds)


def read(started_at_once: Quantity, room: int, default: int) -> Finding:
    """Returns the finding from how many launches ran at once, and how many blocks the SMs hold."""
    count = round(started_at_once.value)
    if count < room and started_at_once.within == 0:
        return determined(
            _PATH, count, f"so many of {len(started_at_once.sequence)} launches ran at once"
        )
    return assumed(_PATH, max(default, count), f"{count} ran at once; the SMs hold {room} blocks")
