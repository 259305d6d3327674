"""Every kind of event is in the table, and one that is not is refused, not taken for another."""

from __future__ import annotations

import typing
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tbsched.program.events.kinds import KINDS, Event, Kind, event_from_data, event_to_data
from tbsched.program.sequence import (
    Copy,
    Graph,
    GraphLaunch,
    HostCall,
    HostFunction,
    Launch,
    Memset,
    RecordEvent,
    Release,
    Sequence,
    Synchronize,
    WaitEvent,
    WaitValue,
    WriteValue,
    with_launches,
)

NODE = Launch(4, 64, 32, duration=1e-3)
GRAPH = Graph([NODE, NODE, NODE], edges=[(0, 2), (1, 2)])
ONE_OF_EACH = (
    NODE, Release(3), RecordEvent(1, 2), WaitEvent(1, 0), GRAPH.launch(3),
    Copy(8, "h2d", stream=2, pinned=False, blocking=True), Memset(8, 1e-6, non_blocking=True),
    Synchronize(2), HostFunction(1e-6, stream=1, name="log"),
    HostCall("cudaFree", 1e-6, waits="stream", stream=1), WriteValue("ready", 2, stream=1),
    WaitValue("ready", stream="legacy", host=1),
)  # fmt: skip


@dataclass(frozen=True)
class Fence:
    """An event that nobody knows."""

    launches: tuple[Launch, ...] = ()


def test_table_has_the_kinds_that_type_checkers_know() -> None:
    assert {kind.event for kind in KINDS} == set(typing.get_args(Event))
    assert len({kind.key for kind in KINDS}) == len(KINDS) == len(ONE_OF_EACH)


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=repr)
def test_event_can_be_read_back_from_its_data(event: Event) -> None:
    assert event_from_data("here", event_to_data(event)) == event


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=repr)
def test_launches_of_an_event_are_the_launch_itself_or_nodes_or_none(event: Event) -> None:
    nodes = GRAPH.nodes if isinstance(event, GraphLaunch) else ()
    assert event.launches == ((event,) if isinstance(event, Launch) else nodes)


def test_unknown_event_is_refused_with_those_there_are() -> None:
    unknown: Any = Fence()
    with pytest.raises(TypeError, match="HostCall, WriteValue or WaitValue is needed, got"):
        Sequence([unknown])
    with pytest.raises(ValueError, match=r'here: .* or \{"wait_value": …\} is needed'):
        event_from_data("here", {"fence": 1})


def test_unknown_event_of_a_sequence_is_neither_written_nor_copied() -> None:
    unknown: Any = Fence()
    sequence = Sequence()
    sequence._events = (unknown,)
    with pytest.raises(TypeError, match="Fence is no kind of event"):
        sequence.to_json()
    with pytest.raises(AssertionError, match="unreachable, but got: Fence"):
        with_launches(sequence, ())


def test_kind_of_the_table_that_a_sequence_forgets_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unknown: Any = Fence
    known = Kind("fence", unknown, lambda fence: 1, lambda where, given: unknown())
    monkeypatch.setattr("tbsched.program.events.kinds.KINDS", (*KINDS, known))
    with pytest.raises(TypeError, match=r"Sequence\.events\[0\]"):
        Sequence.from_json('[{"fence": 1}]')


def test_event_has_timing_in_all_of_its_records_or_in_none() -> None:
    plain, timed = RecordEvent(0, stream=0), RecordEvent(0, stream=1, timing=True)
    kernel = Launch(1, 32, 16, stream=0, duration=1e-6)
    assert repr(timed) == "RecordEvent(event=0, stream=1, timing=True)"
    assert Sequence([kernel, timed, timed, RecordEvent(1, stream=0)]).timed
    message = r"Sequence.events\[1\]: event 0: timing is .* here, and .* in an earlier record"
    completes = replace(kernel, completion_event=0)
    graph = Graph([RecordEvent(0), replace(kernel, stream=None)])
    for pair in ([plain, timed], [timed, plain], [completes, timed], [timed, completes],
                 [timed, graph.launch(stream=0)]):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            Sequence(pair)
    with pytest.raises(TypeError, match=r"RecordEvent.timing: True or False is needed, got 1"):
        RecordEvent(0, stream=0, timing=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"timing: True, but a node of a graph has none"):
        Graph([RecordEvent(0, timing=True), replace(kernel, stream=None)])


def test_launches_are_replaced_in_their_order() -> None:
    seq = Sequence([Launch(1, 32, 16), Release(0), Launch(2, 32, 16)])
    others = [Launch(3, 32, 16), Launch(4, 32, 16)]
    assert with_launches(seq, others) == Sequence([others[0], Release(0), others[1]])


def test_nodes_of_graphs_are_replaced_with_the_launches_around_them() -> None:
    others = [Launch(blocks, 32, 16, duration=1.0) for blocks in range(1, 6)]
    seq = with_launches(Sequence([NODE, GRAPH.launch(3), NODE]), others)
    assert seq.events == (others[0], Graph(others[1:4], GRAPH.edges).launch(3), others[4])


@pytest.mark.parametrize("count", [1, 3])
def test_as_many_launches_are_needed(count: int) -> None:
    seq = Sequence([Launch(1, 32, 16), Launch(2, 32, 16)])
    with pytest.raises(ValueError, match=f"launches: {count} for 2"):
        with_launches(seq, [Launch(1, 32, 16)] * count)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HostFunction(-1.0), r"HostFunction\.duration: -1\.0 is outside 0\.\.1e9 seconds"),
        (lambda: HostFunction(stream=-1), r"HostFunction\.stream: -1 is outside 0\.\."),
        (
            lambda: HostFunction(stream="legacy", non_blocking=True),
            r"HostFunction\.non_blocking: True, but HostFunction\.stream is 'legacy'",
        ),
        (lambda: HostCall(""), r"HostCall\.name: '' is empty"),
        (lambda: HostCall("f", waits="devices"), r"HostCall\.waits: 'devices' is unknown.*device"),
        (lambda: HostCall("f", waits="stream"), r"HostCall\.stream: None, but .* is 'stream'"),
        (lambda: HostCall("f", waits="device", stream=1), r"HostCall\.stream: 1, but .* 'device'"),
        (lambda: HostCall("f", float("nan")), r"HostCall\.duration: nan is outside"),
        (lambda: WriteValue("x", -1, stream=0), r"WriteValue\.value: -1 is outside 0\.\."),
        (lambda: WaitValue("x", 2**63, stream=0), r"WaitValue\.value: \d+ is outside 0\.\."),
        (lambda: WaitValue("x", stream=0, host=2000), r"WaitValue\.host: 2000 is outside"),
    ],
)
def test_what_a_host_does_is_checked(make: Callable[[], Event], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: HostFunction("1"),
        lambda: HostFunction(name=1),
        lambda: HostCall(1),
        lambda: HostCall("f", waits=1),
        lambda: WriteValue(1, stream=0),
        lambda: WaitValue("x", 1.5, stream=0),
    ],
)
def test_what_a_host_does_has_the_right_types(make: Callable[[], Event]) -> None:
    with pytest.raises(TypeError, match="needed, got"):
        make()


def test_work_of_a_stream_agrees_whether_it_blocks_with_its_host_functions() -> None:
    kernel = replace(NODE, stream=1, non_blocking=True)
    with pytest.raises(ValueError, match=r"an earlier host function has False"):
        Sequence([HostFunction(stream=1), kernel])
    assert Sequence([HostFunction(stream=1, non_blocking=True), kernel]).timed
