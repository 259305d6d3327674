"""Hardware queues: number of streams whose first launches run while second ones wait behind.

A launch that waits holds up those behind it in its hardware queue. A stream whose launches find no
queue of their own starts only after another one's first launch has ended. Where fewer launches may
run at once than there are queues, launches that wait for an event fill the queues instead.
"""

from __future__ import annotations

from dataclasses import replace

from tbsched.calibration.asking.lab import Lab
from tbsched.calibration.asking.times import Numbers, Quantity, measured, observed, while_first
from tbsched.calibration.draft import draft
from tbsched.calibration.finding import DOCUMENTED, Finding, KnownValues, assumed, determined
from tbsched.calibration.probes.streams.grids import lasting
from tbsched.program.sequence import Event, RecordEvent, Sequence, WaitEvent
from tbsched.traces.trace import Trace

_PATH = "scheduler.hardware_queues"
_FIRST, _MAX_STREAMS = 64, 1024
_ISSUED = 2e-4  # seconds that two calls surely do not exceed
_SHORT = 1e-5


def ask(lab: Lab, known: KnownValues) -> list[Finding]:
    """Counts the hardware queues: runs two launches in each of more and more streams. Returns
    findings."""
    room = min(lab.sms * known.notes["single"], known["resident_grids"])
    streams = min(_FIRST, room + 1)
    while True:
        pair = lasting(_ISSUED * streams), lasting(_SHORT)
        sequence = Sequence(
            replace(launch, stream=stream) for stream in range(streams) for launch in pair
        )
        started_at_once = measured(observed(lab, sequence), _first_ones)
        if started_at_once.value < streams or streams > min(room, _MAX_STREAMS):
            break
        streams = min(4 * streams, room + 1)
    default = draft(known).hardware_queues
    if round(started_at_once.value) >= room > 1:
        return [_count_by_waiting_launches(lab, default)]
    finding = read(started_at_once, room, default, known.notes["details"].get("max_connections"))
    if finding.kind != DOCUMENTED:
        lab.quantities.append(started_at_once)
    return [finding]


def _first_ones(trace: Trace) -> Numbers:
    return while_first(trace, range(0, len(trace), 2))


def read(started_at_once: Quantity, room: int, default: int, max_connections: object) -> Finding:
    """Returns the finding from how many streams ran at once.

    Args:
        started_at_once: how many streams ran at once.
        room: most launches that can run at once, by room and by resident grids.
        default: number of queues if a process sets no other.
        max_connections: CUDA_DEVICE_MAX_CONNECTIONS of the process; None if unknown.
    """
    count = round(started_at_once.value)
    streams = len(started_at_once.sequence) // 2
    if count >= room or started_at_once.within > 0:
        because = f"{count} of {streams} streams ran at once; no more than {room} launches can"
        return assumed(_PATH, max(default, count), because)
    because = f"{count} of {streams} streams ran at once, whose second launches waited"
    return _counted(count, because, default, max_connections)


def _counted(count: int, because: str, default: int, max_connections: object) -> Finding:
    """Returns the finding of ``count`` hardware queues. If the process sets that number, the
    finding is the documented default."""
    if count == max_connections:
        because += ", as CUDA_DEVICE_MAX_CONNECTIONS says there; this is its default"
        return Finding(_PATH, default, DOCUMENTED, because)
    return determined(_PATH, count, because)


def _count_by_waiting_launches(lab: Lab, default: int) -> Finding:
    """Returns the finding of how many launches that wait for an event leave no queue for a ready
    one."""

    def behind(waiting: int) -> Quantity:
        """Measures the delay of a launch behind so many waiting streams."""
        first = lasting(_ISSUED * (waiting + 2))
        events: list[Event] = [first, RecordEvent(0, 0)]
        for stream in range(1, waiting + 1):
            events += [WaitEvent(0, stream), replace(lasting(_SHORT), stream=stream)]
        events.append(replace(lasting(_SHORT), stream=waiting + 1))
        return measured(observed(lab, Sequence(events)), _last_during_first)

    def finds_one(waiting: int) -> bool:
        return behind(waiting).value > 1

    high = 1
    while high < _MAX_STREAMS and finds_one(high):
        high *= 2
    count = lab.largest(finds_one, high // 2, min(high, _MAX_STREAMS)) + 1
    last, none = behind(count - 1), behind(count)
    if last.within or none.within or (last.value, none.value) != (2, 1):
        return assumed(_PATH, max(default, count), f"some {count} launches that wait fill them")
    lab.quantities += [last, none]
    return determined(
        _PATH, count, f"so many launches that wait for an event leave none, {count - 1} do"
    )


def _last_during_first(trace: Trace) -> Numbers:
    """Returns how many of the first and last launch started while the first one ran."""
    return while_first(trace, range(0, len(trace), len(trace) - 1))
