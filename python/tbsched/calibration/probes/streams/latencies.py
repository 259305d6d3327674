"""Latencies: from the end of one launch to the start of the next, by what the next one waits for.

After each pair the host waits until all has ended. So only one launch waits at a time, and only one
hardware queue matters.

The observing kernel writes to host memory when it ends, which delays whatever waits for it by a
time that depends on the host. So only the sum of the latency and that delay is known.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as ListOf
from dataclasses import replace

from tbsched.calibration.asking.lab import Lab
from tbsched.calibration.asking.times import (
    Numbers,
    Quantity,
    ended,
    measured,
    observed,
    of_sms,
    started,
)
from tbsched.calibration.draft import draft, with_values
from tbsched.calibration.finding import ASSUMED, Finding, KnownValues, Values, assumed, determined
from tbsched.calibration.probes.preference import whole_sm
from tbsched.calibration.probes.streams.grids import lasting
from tbsched.program.sequence import Event, RecordEvent, Sequence, Synchronize, WaitEvent
from tbsched.traces.trace import Trace

_PAIRS = 24
LONG = 8e-5  # seconds, in which what follows is surely called
# A latency is determined if its median is known to this many nanoseconds, or to this share.
SLACK_NS, SLACK_SHARE = 100.0, 0.1
_WRITES, _SLOW_NS = "scheduler.host_write_ns", 500.0


def ask(lab: Lab, known: KnownValues) -> list[Finding]:
    """Measures latencies by pairs of launches, of which the second waits for room, for its stream,
    or for an event. Returns findings."""
    kernel = lasting(LONG)
    full = replace(whole_sm(known, lab.sms), stream=0, duration=LONG)
    exits = _measured(lab, _pairs([full, replace(full, stream=1)]), _between_blocks)
    ends = _measured(lab, _pairs([kernel, kernel]), _between)
    waits: list[Event] = [kernel, RecordEvent(0, 0), WaitEvent(0, 1), replace(kernel, stream=1)]
    events = _measured(lab, _pairs(waits), _between)
    known.notes["ends"] = ends
    known.notes["others"] = [with_slower_host_writes(ends.value - exits.value)]
    return checked(read(exits, ends, events), known, [exits, ends, events], lab)


def _pairs(events: ListOf[Event]) -> Sequence:
    return Sequence([*events, Synchronize()] * _PAIRS)


def _measured(lab: Lab, sequence: Sequence, samples_of: Callable[[Trace], Numbers]) -> Quantity:
    return measured(observed(lab, sequence), samples_of, SLACK_NS)


def _between(trace: Trace) -> Numbers:
    """Returns the times from the end of each first launch to the start of the second."""
    return [started(trace, at + 1) - ended(trace, at) for at in range(0, len(trace), 2)]


def _between_blocks(trace: Trace) -> Numbers:
    """Returns, in ns, the times from the end of a block to the start of the next one on its SM."""
    gaps: Numbers = []
    for at in range(0, len(trace), 2):
        before, after = of_sms(trace, at), of_sms(trace, at + 1)
        gaps += [after[sm][0] - before[sm][1] for sm in before.keys() & after.keys()]
    return gaps


def read(exits: Quantity, ends: Quantity, events: Quantity) -> list[Finding]:
    """Returns findings on latencies, from measured gaps: between blocks of an SM, between launches
    of a stream, and behind a CUDA event."""
    return [
        finding_of("exit_latency_ns", [exits], [], "to the next block on its SM"),
        unsure(
            finding_of(
                "completion_latency_ns", [ends], [exits], "to the next launch of its stream"
            ),
            ends.value - exits.value,
        ),
        finding_of("event_latency_ns", [events], [ends], "to a launch that waits for an event"),
    ]


def finding_of(name: str, plus: ListOf[Quantity], less: ListOf[Quantity], words: str) -> Finding:
    """Returns the finding of a latency in ns: the sum of the medians of ``plus`` less that of
    ``less``. It is determined if it is known well enough, else assumed."""
    value = sum(quantity.value for quantity in plus) - sum(quantity.value for quantity in less)
    within = sum(quantity.within**2 for quantity in (*plus, *less)) ** 0.5
    because = f"the median time {words}, to {max(within, 1):.0f} ns"
    path, rounded = f"scheduler.{name}", max(round(value), 0)
    if within <= max(SLACK_NS, SLACK_SHARE * value) and value > -SLACK_NS:
        return determined(path, rounded, because)
    return assumed(path, rounded, f"{because}, which is not well known")


def unsure(finding: Finding, sum_ns: float) -> Finding:
    """Returns the finding; as an assumption, if the part of it that may be the time of the host,
    ``sum_ns``, matters."""
    if sum_ns <= max(SLACK_NS, SLACK_SHARE * finding.value):
        return finding
    because = f"{finding.because}; a part may be {_WRITES}, which depends on the host"
    return replace(finding, kind=ASSUMED, because=because)


def with_slower_host_writes(sum_ns: float, **launch_latency_ns: int) -> Values:
    """Returns latencies of a device with slower host writes that shows the same times."""
    part = round(min(_SLOW_NS, sum_ns))
    return {
        "completion_latency_ns": round(sum_ns) - part,
        "host_write_ns": part,
        **{name: value + part for name, value in launch_latency_ns.items()},
    }


def checked(
    findings: list[Finding], known: KnownValues, quantities: ListOf[Quantity], lab: Lab
) -> list[Finding]:
    """Returns the findings; as assumptions, unless a device with these values shows the measured
    times."""
    lab.quantities += quantities
    values = {finding.name: finding.value for finding in findings}
    spec = with_values(draft(known), **values)
    if all(quantity.explained_by(spec) for quantity in quantities):
        return findings
    because = "; but a device with these latencies shows other times"
    return [assumed(f.path, f.value, f.because + because) for f in findings]
