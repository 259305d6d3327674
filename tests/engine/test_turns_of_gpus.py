"""Several GPUs are simulated in turn: how long the turns are changes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import tbsched as tb
from helpers import examples
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
    WaitEvent,
    WriteValue,
)

US = 1e-6
GPUS = 3
H200 = tb.device("h200")
STREAMS = st.integers(0, 1) | st.just("legacy")
MARKS = st.integers(0, 2)
TIMES = st.integers(0, 90).map(lambda us: us * US)


@st.composite
def launches(draw: st.DrawFn, *, meet: bool = True) -> Launch:
    """A launch that fills a GPU or little of it, and may meet others or let the next one start."""
    blocks = draw(st.sampled_from([1, 3, 132, 700]))
    one = Launch(blocks, draw(st.sampled_from([32, 1024])), 16, duration=draw(TIMES))
    if meet and draw(st.booleans()):
        return replace(one, blocks=min(blocks, 132), meets=draw(st.sampled_from("ab")))
    programmatic = draw(st.booleans())
    mark = draw(st.none() | MARKS)
    return replace(one, programmatic=programmatic, trigger=draw(st.none() | TIMES),
                   completion_event=mark)  # fmt: skip


def graphs() -> st.SearchStrategy[GraphLaunch]:
    nodes = st.lists(launches(meet=False), min_size=1, max_size=3)
    plain = nodes.map(lambda each: [Launch(k.blocks, 32, 16, duration=k.duration) for k in each])
    return st.builds(lambda each: GraphLaunch(tb.Graph(each), stream=1), plain)


EVENTS: st.SearchStrategy[Event] = st.one_of(
    launches(),
    launches(),
    launches(meet=False),
    graphs(),
    st.builds(RecordEvent, MARKS, STREAMS),
    st.builds(WaitEvent, MARKS, STREAMS),
    st.builds(Synchronize, STREAMS),
    st.builds(Synchronize, event=MARKS),
    st.builds(HostCall, st.just("call"), TIMES, waits=st.sampled_from([None, "device"])),
    st.builds(HostFunction, TIMES, stream=STREAMS),
    st.builds(Copy, st.just(4096), st.just("d2h"), TIMES, stream=STREAMS, pinned=st.booleans()),
    st.builds(Memset, st.just(64), TIMES, stream=STREAMS),
)
PLACED = st.builds(
    lambda event, gpu, host: replace(event, gpu=gpu, host=host),
    EVENTS, st.integers(0, GPUS - 1), st.integers(0, GPUS - 1),
)  # fmt: skip


def seen(trace: tb.Trace, launches: int) -> object:
    """Returns what a prediction says of the first launches, of hosts and of copies."""
    each = [
        (p.smid.tolist(), p.start_ns.tolist(), p.end_ns.tolist())  # type: ignore[union-attr]
        for p in [trace[k] for k in range(launches)]
    ]
    hang, waits = trace.hang, trace.waits
    assert waits is not None  # a timed sequence has times
    return (
        each, [repr(wait) for wait in waits], repr(trace.transfer_ns),
        None if hang is None else hang.text,
    )  # fmt: skip


@settings(deadline=None, derandomize=True, max_examples=examples(300))
@given(
    events=st.lists(PLACED, min_size=2, max_size=14),
    given_by=st.sampled_from(["host", "launch_interval"]),
    every=st.integers(0, 20),
)
@example(  # a host that a copy holds up, and that then makes another GPU waited for
    events=[
        Launch(132, 1024, 16, stream=1, duration=50 * US),
        RecordEvent(0, 1),
        Copy(4096, "d2h", stream=0, pinned=False, gpu=1, host=1),
        WaitEvent(0, 1, gpu=1, host=1),
        Synchronize(gpu=1, host=1),
        Launch(1, 32, 16, stream=0, duration=US, gpu=1, host=1),
    ],
    given_by="launch_interval",
    every=0,
)
def test_a_write_that_nobody_waits_for_changes_nothing(
    events: list[Event], given_by: str, every: int
) -> None:
    calls: dict[str, Any] = {given_by: every * US}
    write = WriteValue("nobody", 1, stream=0, gpu=GPUS, host=GPUS)
    program, more = Sequence(events), Sequence([*events, write])
    devices = [H200] * (GPUS + 1)
    try:
        found = tb.predict(program, devices, **calls)
    except ValueError:
        assume(False)
    count = len(program.launches)
    assert seen(tb.predict(more, devices, **calls), count) == seen(found, count)


def test_a_host_goes_on_when_a_launch_starts_whose_completion_event_it_awaits() -> None:
    first = Launch(132, 1024, 16, stream=0, duration=1e-3, completion_event=0)
    program = Sequence(
        [first, Synchronize(event=0), Launch(1, 32, 16, stream=0, duration=US, gpu=1)]
    )
    trace = tb.predict(program, ["h200", "h200"])
    later, end = trace[1].start_ns, trace[0].end_ns
    assert later is not None
    assert end is not None
    assert later[0] < end[0]
