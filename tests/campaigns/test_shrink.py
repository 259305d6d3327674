"""Sequences shrink until no event and no number can be taken from them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest

from helpers import launch
from tbsched.campaigns import SequenceOptions
from tbsched.campaigns.shrinking.minimise import SHORTEST, Floors, minimise, size, without_launch
from tbsched.program.duration import Drawn
from tbsched.program.partition import Partition
from tbsched.program.sequence import (
    Copy,
    Graph,
    GraphLaunch,
    HostCall,
    HostFunction,
    Launch,
    MemAlloc,
    MemFree,
    Memset,
    RecordEvent,
    Release,
    Sequence,
    Synchronize,
    WaitEvent,
    WaitValue,
    WriteValue,
)

FLOORS = Floors(registers=32, carveout=100, local_memory=0, priority=0)
LARGE = Sequence(
    [
        Launch(300, 512, 64, 4096, carveout=50),
        Launch(20, 256, 128, 1000, local_memory=4096, priority=-1),
        Release(0),
        Launch(64, 96, 255, cluster=8),
        Release(1),
        Launch(5, 1024, 32),
    ]
)

TIMED = Sequence(
    [
        Launch(3, 64, 32, stream=0, duration=(1e-6, 2e-6, 3e-6)),
        RecordEvent(0, stream=0),
        WaitEvent(0, stream="legacy"),
        Launch(9, 256, 40, stream="legacy", duration=5e-6),
        Launch(4, 32, 32, priority=-1, duration=Drawn("normal", 1e-5, 1e-6)),
    ]
)
SMALL, MIDDLE, LARGEST = (Partition(range(sms)) for sms in (2, 4, 8))
ONLY = Launch(1, 1, 32, carveout=100, duration=SHORTEST)
NODE = Launch(9, 64, 32, carveout=50, duration=5e-6)
# Two streams: one of a partition, one in which graphs are launched.
WAYS = Sequence(
    [
        Launch(8, 64, 32, stream=0, partition=LARGEST, non_blocking=True, duration=1e-5),
        Launch(4, 64, 32, stream=0, partition=LARGEST, non_blocking=True, duration=1e-5,
               programmatic=True, memory_wait=1e-6, trigger=2e-6),
        Graph([NODE, NODE, NODE], edges=[(0, 1), (0, 2)]).launch(stream=1, non_blocking=True),
        WaitEvent(0, stream=0),
        Launch(4, 64, 32, cooperative=True, completion_event=0, duration=1e-5),
    ]
)  # fmt: skip


def test_whatever_is_special_goes() -> None:
    assert minimise(WAYS, lambda _: True, FLOORS) == Sequence([ONLY])


@pytest.mark.parametrize(
    ("name", "value"),
    [("cooperative", True), ("programmatic", True), ("trigger", 2e-6), ("memory_wait", 1e-6),
     ("completion_event", 0), ("non_blocking", True)],
)  # fmt: skip
def test_what_is_special_and_matters_stays_alone(name: str, value: object) -> None:
    def fails(candidate: Sequence) -> bool:
        return any(getattr(launch, name) == value for launch in candidate.launches)

    assert minimise(WAYS, fails, FLOORS) == Sequence([replace(ONLY, **{name: value})])


def test_a_partition_that_matters_is_the_smallest_that_the_options_or_the_sequence_have() -> None:
    def fails(candidate: Sequence) -> bool:
        return any(launch.partition is not None for launch in candidate.launches)

    (only,) = minimise(WAYS, fails, FLOORS).launches
    assert only == replace(ONLY, partition=LARGEST)
    floors = Floors.of(SequenceOptions(partitions=(None, MIDDLE, SMALL)))
    (only,) = minimise(WAYS, fails, floors).launches
    assert only == replace(ONLY, partition=SMALL)
    # Options in which everything is in a partition.
    floors = Floors.of(SequenceOptions(partitions=(MIDDLE, SMALL)))
    (only,) = minimise(WAYS, lambda _: True, floors).launches
    assert only == replace(ONLY, partition=SMALL)


def test_what_a_stream_has_goes_from_all_its_launches_at_once() -> None:
    def two_in_a_stream(candidate: Sequence) -> bool:
        streams = [launch.stream for launch in candidate.launches if launch.stream is not None]
        return len(streams) > len({*streams})

    found = minimise(WAYS, two_in_a_stream, FLOORS)
    assert found == Sequence([replace(ONLY, stream=found.launches[0].stream)] * 2)


def test_a_graph_that_matters_loses_nodes_edges_and_what_its_stream_has() -> None:
    def of(nodes: int) -> Callable[[Sequence], bool]:
        return lambda candidate: any(
            isinstance(event, GraphLaunch) and len(event.launches) >= nodes for event in candidate
        )

    node = replace(ONLY, duration=SHORTEST)
    assert minimise(WAYS, of(1), FLOORS) == Sequence([Graph([node]).launch(stream=1)])
    assert minimise(WAYS, of(3), FLOORS) == Sequence([Graph([node] * 3).launch(stream=1)])


def test_a_graph_that_does_not_matter_becomes_its_launches() -> None:
    found = minimise(WAYS[2:3], lambda candidate: len(candidate.launches) >= 3, FLOORS)
    assert found == Sequence([ONLY] * 3)
    assert size(found) < size(WAYS[2:3])
    assert size(Sequence([ONLY])) < size(Sequence([replace(ONLY, cooperative=True)]))


def test_without_a_launch_its_release_goes_and_later_ones_are_renumbered() -> None:
    assert without_launch(LARGE, 0) == Sequence([LARGE[1], LARGE[3], Release(0), LARGE[5]])
    assert without_launch(LARGE, 3) == LARGE[:5]


def test_without_a_launch_cuda_events_stay() -> None:
    assert without_launch(TIMED, 0) == Sequence(TIMED.events[1:])
    assert without_launch(TIMED, 1) == Sequence([*TIMED.events[:3], TIMED[4]])


def test_what_decides_by_kind_of_event_refuses_an_unknown_one() -> None:
    strange = SimpleNamespace(events=("a copy",), launches=())
    with pytest.raises(AssertionError, match="a copy"):
        without_launch(strange, 0)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="a copy"):
        minimise(strange, lambda _: False, FLOORS)  # type: ignore[arg-type]


def test_timed_sequences_shrink_to_one_short_launch_in_a_stream_of_its_own() -> None:
    only = Launch(1, 1, 32, carveout=100, duration=SHORTEST)
    assert minimise(TIMED, lambda _: True, FLOORS) == Sequence([only])


def test_blocks_with_durations_of_their_own_become_fewer_and_more() -> None:
    def fails(candidate: Sequence) -> bool:
        blocks = sum(each.blocks for each in candidate.launches)
        return blocks >= 5 and isinstance(candidate.launches[0].duration, tuple)

    (only,) = minimise(TIMED, fails, FLOORS).launches
    assert only.duration == (1e-6, 2e-6, 3e-6, 1e-6, 2e-6)


def test_a_cuda_event_that_matters_stays() -> None:
    def fails(candidate: Sequence) -> bool:
        return any(isinstance(event, WaitEvent) for event in candidate)

    found = minimise(TIMED, fails, FLOORS)
    assert [type(event) for event in found] == [Launch, WaitEvent]


def test_hosts_become_one_and_wait_where_it_matters() -> None:
    launches = [replace(ONLY, host=k, first_use=True) for k in range(3)]
    hosted = Sequence([*launches, Synchronize(host=1), RecordEvent(0, 0, host=2), Synchronize()])
    assert minimise(hosted, lambda _: True, FLOORS) == Sequence([ONLY])

    def fails(candidate: Sequence) -> bool:
        waits = any(isinstance(event, Synchronize) for event in candidate)
        return waits and any(launch.first_use for launch in candidate.launches)

    assert minimise(hosted, fails, FLOORS) == Sequence(
        [replace(ONLY, first_use=True), Synchronize()]
    )


def test_what_hosts_do_becomes_less_where_it_matters() -> None:
    call = HostCall("cudaFree", 1e-4, waits="device", host=1)
    function = HostFunction(1e-4, stream=3)
    values = (WriteValue("x", stream=0), WaitValue("x", stream=1))
    program = Sequence([ONLY, call, function, *values])
    assert minimise(program, lambda _: True, FLOORS) == Sequence([ONLY])

    def fails(candidate: Sequence) -> bool:
        kinds = {type(event) for event in candidate}
        return {HostCall, HostFunction, WaitValue} <= kinds

    found = minimise(program, fails, FLOORS)
    assert {*found} == {ONLY, HostCall("cudaFree"), HostFunction(), values[1]}


NODE = Launch(2, 32, 32, carveout=100, duration=1e-6)
GRAPH = Graph([NODE, NODE, NODE, NODE], edges=[(0, 2), (1, 3), (2, 3)])


def test_a_graph_loses_the_nodes_that_do_not_matter() -> None:
    def fails(candidate: Sequence) -> bool:
        return any(isinstance(event, GraphLaunch) and event.graph.edges for event in candidate)

    first = Launch(4, 32, 32, stream=0, duration=1e-6, non_blocking=True)
    found = minimise(Sequence([first, GRAPH.launch(1)]), fails, FLOORS)
    node = Launch(1, 1, 32, carveout=100, duration=SHORTEST)
    assert found == Sequence([Graph([node, node], edges=[(0, 1)]).launch(1)])


def test_a_graph_loses_its_copies_with_what_they_join() -> None:
    graph = Graph([NODE, Copy(64, "h2d"), NODE, Memset(8)], edges=[(0, 1), (1, 2), (2, 3)])

    def fails(candidate: Sequence) -> bool:
        return any(isinstance(event, GraphLaunch) for event in candidate)

    found = minimise(Sequence([graph.launch(1)]), fails, FLOORS)
    node = Launch(1, 1, 32, carveout=100, duration=SHORTEST)
    assert found == Sequence([Graph([node]).launch(1)])
    less = Graph([NODE, Copy(64, "h2d"), Memset(8)], edges=[(0, 1)])
    assert without_launch(Sequence([graph.launch(1)]), 1) == Sequence([less.launch(1)])


def test_nodes_of_a_cuda_event_keep_their_order() -> None:
    parts = [NODE, RecordEvent(0), NODE, WaitEvent(0), NODE]
    program = Sequence([Graph(parts, itertools.pairwise(range(5))).launch(1)])

    def fails(candidate: Sequence) -> bool:
        return {RecordEvent, WaitEvent} <= {type(node) for node in candidate.transfers}

    found = minimise(program, fails, FLOORS)
    node = Launch(1, 1, 32, carveout=100, duration=SHORTEST)
    events = [RecordEvent(0), WaitEvent(0)]
    assert found == Sequence([Graph([node, *events], edges=[(1, 2)]).launch(1)])
    assert minimise(program, lambda _: True, FLOORS) == Sequence([ONLY])


def test_what_frees_memory_goes_before_what_allocates_it() -> None:
    allocates = Graph([MemAlloc("a", 64), NODE, NODE]).launch(0)
    program = Sequence([allocates, Graph([NODE, MemFree("a")]).launch(0)])
    assert minimise(program, lambda _: True, FLOORS) == Sequence([ONLY])

    def fails(candidate: Sequence) -> bool:
        return any(isinstance(event, GraphLaunch) and event.graph.memory for event in candidate)

    (found,) = minimise(program, fails, FLOORS)
    assert isinstance(found, GraphLaunch)
    assert found.graph.memory == (MemAlloc("a", 64),)


def test_a_copy_shrinks_to_the_bytes_that_matter() -> None:
    graph = Graph([NODE, Copy(1 << 20, "d2h", duration=1e-3), Memset(4096)], edges=[(0, 1)])

    def fails(candidate: Sequence) -> bool:
        copies = [node for node in candidate.transfers if isinstance(node, Copy)]
        return any(copy.bytes >= 1000 for copy in copies) and len(candidate.transfers) == 2

    found = minimise(Sequence([graph.launch(1)]), fails, FLOORS)
    assert found.transfers == (Copy(1024, "d2h"), Memset(1))


def test_copies_in_streams_go_or_become_plain() -> None:
    copies = [
        Copy(1 << 20, "h2d", stream=0, pinned=False, blocking=True, non_blocking=True),
        Memset(4096, 1e-3, stream=0, non_blocking=True),
    ]
    program = Sequence([replace(NODE, stream=0, non_blocking=True), *copies])
    assert minimise(program, lambda _: True, FLOORS) == Sequence([ONLY])
    found = minimise(program, lambda candidate: len(candidate.transfers) == 2, FLOORS)
    assert found == Sequence([ONLY, Copy(1, "h2d"), Memset(1)])


def test_without_a_node_the_edges_of_the_others_stay() -> None:
    seq = Sequence([NODE, GRAPH.launch(1), NODE])
    assert without_launch(seq, 0) == seq[1:]
    for number, edges in ((1, [(0, 2), (1, 2)]), (3, [(1, 2)])):
        graph = Graph([NODE] * 3, edges)
        assert without_launch(seq, number) == Sequence([NODE, graph.launch(1), NODE])
    assert without_launch(Sequence([Graph([NODE]).launch()]), 0) == Sequence()


def test_anything_shrinks_to_the_floors() -> None:
    assert minimise(LARGE, lambda _: True, FLOORS) == Sequence([Launch(1, 1, 32, carveout=100)])


def test_what_does_not_fail_smaller_stays() -> None:
    assert minimise(LARGE, lambda candidate: candidate == LARGE, FLOORS) == LARGE


@pytest.mark.parametrize(
    ("field", "bound"), [("blocks", 17), ("threads", 33), ("registers", 100), ("shared_memory", 7)]
)
def test_numbers_stop_at_the_last_that_fails(field: str, bound: int) -> None:
    def fails(candidate: Sequence) -> bool:
        return any(getattr(launch, field) >= bound for launch in candidate.launches)

    (smallest,) = minimise(LARGE, fails, FLOORS).launches
    assert getattr(smallest, field) == bound


def test_a_release_that_matters_stays() -> None:
    def fails(candidate: Sequence) -> bool:
        return any(isinstance(event, Release) for event in candidate)

    found = minimise(LARGE, fails, FLOORS)
    assert len(found.launches) == 1
    assert len(found) == 2


def test_two_launches_become_one_that_has_the_blocks_of_both() -> None:
    def fails(candidate: Sequence) -> bool:
        return sum(each.blocks for each in candidate.launches) >= 30

    (only,) = minimise(Sequence([launch(15), launch(15, warps=2)]), fails, FLOORS).launches
    assert only.blocks == 30


def test_blocks_stay_a_multiple_of_a_cluster_that_matters() -> None:
    def fails(candidate: Sequence) -> bool:
        return any(each.cluster == 8 and each.blocks >= 20 for each in candidate.launches)

    (only,) = minimise(LARGE, fails, FLOORS).launches
    assert (only.cluster, only.blocks) == (8, 24)


def test_fewer_launches_are_smaller_than_fewer_blocks() -> None:
    assert size(Sequence([launch(1000)])) < size(Sequence([launch(1), launch(1)]))
