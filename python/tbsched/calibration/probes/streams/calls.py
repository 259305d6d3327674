"""Latencies between host and GPU: from a call to its launch, and from an end to the host.

The clocks of the host and of the GPU have nothing in common. So what is measured is the way from
the GPU to the host and back: a launch ends, the host sees it, and calls the next launch.
"""

from __future__ import annotations

from tbsched.calibration.asking.lab import Lab
from tbsched.calibration.asking.times import (
    Numbers,
    Quantity,
    calls,
    ended,
    measured,
    observed,
    started,
)
from tbsched.calibration.finding import Finding, KnownValues
from tbsched.calibration.probes.streams.grids import lasting
from tbsched.calibration.probes.streams.latencies import (
    LONG,
    SLACK_NS,
    checked,
    finding_of,
    unsure,
    with_slower_host_writes,
)
from tbsched.program.sequence import Sequence, Synchronize
from tbsched.traces.trace import Trace

_CALLS = 64  # the first half is a warm-up and not measured


def ask(lab: Lab, known: KnownValues) -> list[Finding]:
    """Measures how long calls and the ends of launches take, by a chain of launches after each of
    which the host waits twice. Returns findings."""
    wait = Synchronize(stream=0)
    chain = Sequence([lasting(LONG), wait, wait] * _CALLS)
    traces = observed(lab, chain)
    idle = measured(traces, _idle, SLACK_NS)
    from_call = measured(traces, _from_call, SLACK_NS)
    ends: Quantity = known.notes["ends"]
    completion_ns = known["completion_latency_ns"]
    findings = read(ends, idle, from_call, completion_ns)
    known.notes["others"] = [
        with_slower_host_writes(completion_ns, launch_latency_ns=findings[1].value)
    ]
    return checked(findings, known, [idle, from_call], lab)


def _idle(trace: Trace) -> Numbers:
    """Returns the durations of synchronizations that wait for nothing."""
    times = calls(trace)
    return [returned - began for began, returned in times[2::3][_CALLS // 2 :]]


def _from_call(trace: Trace) -> Numbers:
    """Returns, in ns, the times from the end of a launch to the start of the next one, less the
    time that the host took between its calls."""
    times = calls(trace)
    return [
        started(trace, at + 1) - ended(trace, at) - (times[3 * at + 3][0] - times[3 * at + 1][1])
        for at in range(_CALLS // 2, _CALLS - 1)
    ]


def read(ends: Quantity, idle: Quantity, from_call: Quantity, completion: int) -> list[Finding]:
    """Returns findings on how long calls take, from measured times.

    Args:
        ends: from the end of a launch to the next one of its stream.
        idle: how long a call takes that waits for nothing.
        from_call: from the end of a launch to the next one, which the host calls after it.
        completion: the part of ``ends``, in nanoseconds, that may include the host.
    """
    return [
        finding_of("synchronize_ns", [idle], [], "of a call that waits for nothing"),
        unsure(
            finding_of(
                "launch_latency_ns",
                [from_call],
                [ends, idle],
                "from a call to the start of its launch",
            ),
            completion,
        ),
    ]
