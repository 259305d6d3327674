"""How much work a stream takes behind work that does not end, and what waits for a call that waits.

An H200 filled streams with patterns until a call waited: `tests/traces/hosts/filled-h200.json`.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import tbsched as tb
from helpers import ROOT
from tbsched.program.sequence import Event

FILLS = json.loads((ROOT / "tests/traces/hosts/filled-h200.json").read_text())["fills"]
GATE = 1.0  # seconds, longer than all calls
MOST = 3000  # calls of a pattern that never waits
QUICK, OTHER, FIRST = 0, 1, 2  # streams: of other threads, of what is awaited, the first filled one
EVENT = 0

KERNEL = tb.Launch(1, 32, 16, stream=FIRST, duration=1e-6)
IN_GRAPH = replace(KERNEL, stream=None)
KINDS: dict[str, Event] = {
    "L": KERNEL,
    "H": tb.HostFunction(1e-6, stream=FIRST),
    "R": tb.RecordEvent(1, stream=FIRST),
    "r": tb.RecordEvent(1, stream=FIRST),
    "T": tb.RecordEvent(3, stream=FIRST, timing=True),
    "W": tb.WaitEvent(EVENT, stream=FIRST),
    "C": tb.Copy(4096, "h2d", stream=FIRST),
    "c": tb.Copy(4 << 20, "h2d", stream=FIRST),
    "D": tb.Copy(4096, "d2h", stream=FIRST),
    "P": tb.Copy(4096, "d2d", stream=FIRST),
    "M": tb.Memset(4, stream=FIRST),
    "m": tb.Memset(1 << 20, stream=FIRST),
    "V": tb.WriteValue("written", stream=FIRST),
    "A": tb.WaitValue("over", 0, stream=FIRST),
    "G": tb.Graph([IN_GRAPH]).launch(stream=FIRST),
    "g": tb.Graph(8 * [IN_GRAPH], edges=[(k, k + 1) for k in range(7)]).launch(stream=FIRST),
}
# Not in the model: large parameters (B), batches (b), pools (F).
KNOWN = [fill for fill in FILLS if set(fill[3]) <= KINDS.keys()]
GATES: dict[str, Event] = {
    "K": replace(KERNEL, duration=GATE),
    "H": tb.HostFunction(GATE, stream=FIRST),
    "V": tb.WaitValue("gate", stream=FIRST),
}
OTHERS: dict[str, Event] = {
    "record": tb.RecordEvent(2, stream=QUICK, host=2),
    "function": tb.HostFunction(1e-6, stream=QUICK, host=3),
    "copy": tb.Copy(4096, "h2d", stream=QUICK, host=4),
    "launch": replace(KERNEL, stream=QUICK, host=5),
    "malloc": tb.HostCall("cudaMalloc", 1e-6, holds=True, host=6),
}


def filled(
    queues: int, gate: str, streams: int, pattern: str, calls: int, device: tb.DeviceSpec
) -> tuple[list[int], list[str]]:
    """Which calls return only when the gate opens, and which calls of other threads."""
    events: list[Event] = [replace(KERNEL, stream=QUICK), tb.Synchronize()]
    events += [replace(GATES[gate], stream=FIRST + k) for k in range(streams)]
    if "W" in pattern:
        gate_of_other = GATES["K" if gate == "H" else gate]
        events += [replace(gate_of_other, stream=OTHER), tb.RecordEvent(EVENT, stream=OTHER)]
    first = len(events)
    for number in range(calls):
        turn, place = divmod(number, len(pattern))
        events.append(replace(KINDS[pattern[place]], stream=FIRST + turn % streams))
    last = len(events)
    for host, call in enumerate(OTHERS.values(), 2):
        events += [tb.HostCall("sleep", GATE / 2 + 3e-3 * host, host=host), call]
    if gate == "V":
        events += [
            tb.HostCall("sleep", GATE, host=7),
            tb.WriteValue("gate", stream=99, host=7),
        ]
    trace = tb.predict(tb.Sequence(events), device, connections=queues, host=0.0)
    assert trace.hang is None
    assert trace.call_times is not None
    late = [returned > GATE for _, returned in trace.call_times]
    found = [number for number in range(calls) if late[first + number]]
    return found, [name for k, name in enumerate(OTHERS) if late[last + 2 * k + 1]]


@pytest.mark.parametrize("fill", KNOWN, ids=lambda fill: "/".join(map(str, fill[:4])))
def test_calls_wait_where_those_of_the_gpu_did(fill: list[object]) -> None:
    queues, gate, streams, pattern, issued, blocked, late = fill
    calls = issued + 1 if blocked else MOST  # type: ignore[operator]
    found, others = filled(queues, gate, streams, pattern, calls, tb.device("h200"))  # type: ignore[arg-type]
    assert found == ([issued] if blocked else [])
    assert others == (late if blocked else [])


@pytest.mark.parametrize(("pattern", "issued"), [("LH", 112), ("C", 1021)])
def test_streams_in_one_queue_have_stretches_and_places_for_copies_together(
    pattern: str, issued: int
) -> None:
    """As an H200 showed: 56 stretches and 1,021 places in all (docs/explanation/hosts.md)."""
    assert filled(1, "K", 2, pattern, issued + 1, tb.device("h200"))[0] == [issued]


def test_without_stretches_functions_keep_no_call_waiting() -> None:
    unlimited = replace(tb.device("h200"), stream_stretches=1 << 20)
    assert filled(32, "K", 1, "LH", 400, unlimited)[0] == []


def late_calls(called: list[list[int]]) -> tuple[list[int], bool]:
    """Returns the events, but the last one, whose calls took over 0.5 ms; and if the last did."""
    late = [returned - began > 500_000 for began, returned in called]
    of_functions = range(3, len(called) - 2)  # before the last event its thread sleeps
    return [number for number in of_functions if late[number]], late[-1]


def test_records_with_timing_wait_for_a_stretch() -> None:
    """An event behind each of 60 host functions, and then a call of another thread, on an H200."""
    kept_waiting: dict[str, set[str]] = {"seen": set(), "expected": set()}
    for trace in tb.load_traces(ROOT / "tests/traces/hosts/full-stretches-h200.jsonl.xz"):
        other, timing = trace.id.split("-")
        played = tb.predict(trace.sequence, "h200", host=0.0)
        assert played.call_times is not None
        expected = [[round(at * 1e9) for at in times] for times in played.call_times]
        for who, called in (("seen", trace.extra["called_ns"]), ("expected", expected)):
            late, last_is_late = late_calls(called)
            assert late[:1] == ([116] if timing == "timing" else [])  # the 57th record
            if last_is_late:
                kept_waiting[who].add(other)
    assert kept_waiting["expected"] == {"function"}
    assert kept_waiting["seen"] == {"function", "launch"}
