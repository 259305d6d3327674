"""Hardware queues: in how many streams a first launch runs, while a second one waits behind it.

A launch that waits holds up those behind it in its hardware queue. A stream whose launches find no
queue of their own starts only after another one's first launch has ended.
"""

from __future__ import annotations

from dataclasses import replace

from tbsched.calibration.asking.lab import Lab
from tbsched.calibration.asking.times import Numbers, Quantity, measured, observed, while_first
from tbsched.calibration.draft import draft
from tbsched.calibration.finding import DOCUMENTED, Finding, Found, assumed, told
from tbsched.calibration.probes.streams.grids import lasting
from tbsched.program.sequence import Sequence
from tbsched.traces.trace import Trace

_PATH = "scheduler.hardware_queues"
_FIRST, _MOST = 64, 1024
_ISSUED = 2e-4  # seconds, in which two launches are surely called


def ask(lab: Lab, found: Found) -> list[Finding]:
    """Two launches in each of more and more streams."""
    room = min(lab.sms * found.notes["single"], found["resident_grids"])
    streams = min(_FIRST, room + 1)
    while True:
        pair = lasting(_ISSUED * streams), lasting(1e-5)
        sequence = Sequence(
            replace(launch, stream=stream) for stream in range(streams) for launch in pair
        )
        seen = measured(observed(lab, sequence), _first_ones)
        if seen.value < streams or streams > min(room, _MOST):
            break
        streams = min(4 * streams, room + 1)
    asked = found.notes["details"].get("max_connections")
    finding = read(seen, room, draft(found).hardware_queues, asked)
    if finding.kind != DOCUMENTED:
        lab.quantities.append(seen)
    return [finding]


def _first_ones(trace: Trace) -> Numbers:
    return while_first(trace, range(0, len(trace), 2))


def read(seen: Quantity, room: int, default: int, asked: object) -> Finding:
    """From how many streams ran at once, and how many launches may.

    Args:
        seen: how many streams ran at once.
        room: how many launches may run at once, for want of room or of resident grids.
        default: how many queues there are where no process asks for another number.
        asked: CUDA_DEVICE_MAX_CONNECTIONS of the process; None: nobody says.
    """
    count = round(seen.value)
    streams = len(seen.sequence) // 2
    if count >= room or seen.within > 0:
        because = f"{count} of {streams} streams ran at once; no more than {room} launches can"
        return assumed(_PATH, max(default, count), because)
    because = f"{count} of {streams} streams ran at once, whose second launches waited"
    if count == asked:
        because += ", as CUDA_DEVICE_MAX_CONNECTIONS says there; this is its default"
        return Finding(_PATH, default, DOCUMENTED, because)
    return told(_PATH, count, because)
