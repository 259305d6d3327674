"""Co-residency in programs that do more than launch."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tbsched as tb
from advice.together.interleavings import Program, keep_order
from helpers import examples, gpu
from tbsched import views
from tbsched.advice.together.given import has_other_work
from tbsched.program.sequence import Event

CASES = int(os.environ.get("TBSCHED_CASES", examples(200)))
KERNEL = tb.Launch(8, 128, 32, duration=1e-3)
CONSUMER = replace(KERNEL, stream=tb.LEGACY_STREAM, name="consumer")
COPY = tb.Copy(1 << 20, "h2d", stream=1)
A, B = replace(KERNEL, stream=0, name="a"), replace(KERNEL, stream=1, name="b")
FREE = tb.HostCall("cudaFree", 1e-4, waits="device")
WRITES, WAITS = tb.WriteValue("x", stream=0), tb.WaitValue("x", stream=1)


def asked(*events: Event, **given: Any) -> tb.Coresidency:
    return tb.coresident(tb.Sequence(events), "h200", **given)


def check_witness(found: tb.Coresidency, connections: int | None = None) -> tb.Trace:
    """The predictor shows the witness: what is stranded begins only when a second has passed."""
    assert found.witness is not None
    assert found.host is not None
    trace = tb.predict(found.witness, "h200", host=found.host, connections=connections)
    assert found.stranded is not None
    if found.stranded < len(found.launches):
        placement = trace[found.order.index(found.stranded)]
        assert placement.start_ns is not None
        late = (placement.smid < 0) | (placement.start_ns >= 1_000_000_000)
        assert late.sum() == found.waiting > 0
    return trace


def test_kernel_of_the_legacy_stream_that_waits_for_a_copy_of_a_proxy() -> None:
    for events in ([CONSUMER, COPY], [COPY, CONSUMER]):
        found = asked(*events)
        assert (found.safe, found.cause, found.stranded) == (False, "legacy_stream", 1)
        assert found.groups == ((0, 1),)
        assert found.others == (COPY,)
        assert (found.behind, found.waiting) == (0, 0)
        assert found.argument == "Copy 1 never happens (legacy_stream), behind consumer"
        assert "This strands Copy 1 (1 s stands for kernels that stay):" in str(found)
        trace = check_witness(found)
        assert trace.transfer_ns is not None
        assert trace.transfer_ns[0, 0] >= 1_000_000_000
        kinds = {fix.kind: fix for fix in found.fixes}
        assert kinds["order"].after == ((1, 0),)
        assert kinds["order"].text == "launch consumer when Copy 1 is over"
        for fix in found.fixes:
            assert fix.sequence is not None
            assert tb.coresident(fix.sequence, "h200", after=fix.after).safe is True


def test_copy_of_a_non_blocking_stream_does_not_wait() -> None:
    assert asked(replace(COPY, non_blocking=True), CONSUMER).safe is True
    # If nobody waits for the copy, it may come when it comes.
    assert asked(CONSUMER, COPY, groups=[[0]]).safe is True


def test_fix_makes_the_stream_of_a_copy_non_blocking() -> None:
    first = replace(CONSUMER, name="first")
    found = asked(first, replace(CONSUMER, name="second"), COPY, groups=[[0, 2]], after=[(0, 1)])
    assert found.safe is False
    texts = [fix.text for fix in found.fixes]
    assert any("non-blocking" in text or "NonBlocking" in text for text in texts)


def test_value_that_is_written_behind_a_kernel_that_waits() -> None:
    found = asked(A, WRITES, WAITS, B)
    assert (found.safe, found.cause, found.stranded, found.behind) == (False, "value", 1, 0)
    check_witness(found)
    assert asked(WRITES, A, WAITS, B).safe is True
    never = asked(A, WAITS, B)
    assert (never.safe, never.cause) == (False, "value")
    lowered = tb.WriteValue("x", 0, stream=2)
    assert asked(WRITES, lowered, A, WAITS, B).safe is not True
    assert asked(tb.WriteValue("x", 0, stream=0), WRITES, A, WAITS, B).safe is True


def test_wait_for_a_value_holds_up_its_hardware_queue() -> None:
    events = [WAITS, replace(A, stream=2), replace(WRITES, stream=3)]
    assert asked(*events, connections=8).safe is True
    behind = [WAITS, replace(A, stream=2), replace(WRITES, stream=2)]
    assert asked(*behind, groups=[[0]], connections=8).safe is True
    found = asked(*behind, groups=[[0]], connections=1)
    assert (found.safe, found.cause) == (False, "hardware_queue")
    assert found.behind is None
    check_witness(found, connections=1)


@pytest.mark.parametrize(
    ("call", "safe"),
    [
        (FREE, False),
        (replace(FREE, host=1), True),
        (tb.Synchronize(), False),
        (tb.Synchronize(stream=1), True),
        (tb.HostCall("wait", waits="stream", stream=0), False),
        (tb.HostCall("wait", waits="stream", stream=2), True),
        (tb.HostCall("cudaMalloc", 1e-3), True),
        (replace(COPY, stream=0, blocking=True), False),
        (replace(COPY, stream=2, blocking=True), True),
    ],
)
def test_call_between_members(call: Event, safe: bool) -> None:
    found = asked(A, call, B)
    assert found.safe is safe
    if not safe:
        assert (found.cause, found.stranded, found.behind) == ("host", 1, 0)
        check_witness(found)
    assert asked(call, A, B).safe is True


def test_call_may_be_a_member() -> None:
    found = asked(A, FREE, groups=[[0, 1]])
    assert (found.safe, found.cause, found.stranded) == (False, "host", 1)
    assert asked(FREE, A, groups=[[0, 1]]).safe is True


def test_call_of_another_thread_that_holds_up_all_is_never_safe() -> None:
    register = tb.HostCall("cudaHostUnregister", 1e-4, waits="device", host=1)
    found = asked(A, register, B)
    assert found.safe is None
    assert "may wait for ever (host)" in found.argument


def test_host_function_between_members() -> None:
    between = asked(A, tb.HostFunction(1e-5, stream=0), replace(B, stream=0))
    assert (between.safe, between.cause) == (False, "stream")
    check_witness(between)
    assert asked(A, tb.HostFunction(1e-5, stream=1), B).safe is True
    proxy = asked(CONSUMER, tb.HostFunction(1e-5, stream=1))
    assert (proxy.safe, proxy.cause) == (False, "legacy_stream")


def test_event_that_another_member_records() -> None:
    record, wait = tb.RecordEvent(0, stream=0), tb.WaitEvent(0, stream=1)
    found = asked(A, record, wait, B)
    assert (found.safe, found.cause, found.behind) == (False, "event", 0)
    check_witness(found)
    assert asked(record, A, wait, B).safe is True
    assert asked(A, record, tb.Synchronize(event=0), B).cause == "host"


def test_record_in_the_legacy_stream_orders_other_streams() -> None:
    found = asked(A, B, tb.RecordEvent(0, stream=tb.LEGACY_STREAM))
    assert (found.safe, found.cause) == (False, "legacy_stream")
    assert asked(A, B, tb.RecordEvent(0, stream=2)).safe is True


def test_record_for_which_nothing_waits_orders_no_launches() -> None:
    """Launches of one stream may come in any order, with the record and without it."""
    own = replace(A, non_blocking=True)
    record = tb.RecordEvent(0, stream=0)
    for events in ([own, own], [own, record, own], [own, record, own, tb.Synchronize(stream=3)]):
        found = asked(*events, groups=[[0]])
        assert (found.safe, found.cause, found.behind) == (False, "stream", 1)
    many = [tb.RecordEvent(k, stream=k % 2) for k in range(8)]
    others = [replace(KERNEL, stream=2), *many, COPY]
    assert asked(*others, groups=[[0]]).safe is asked(others[0], COPY, groups=[[0]]).safe is True
    awaited = [own, record, own, tb.Synchronize(event=0)]
    assert asked(*awaited, groups=[[0]]).safe is True


def test_record_is_called_before_the_calls_in_which_its_thread_waits() -> None:
    record, apart = tb.RecordEvent(0, stream=1, host=1), replace(FREE, host=1)
    assert asked(record, A, apart, groups=[[0, 1]]).safe is True
    assert asked(apart, A, record, groups=[[0, 1]]).safe is False


@pytest.mark.parametrize("host", [0, 1])
def test_thread_that_waits_for_a_stream_waits_for_what_is_recorded_there(host: int) -> None:
    """The record waits for the kernel in the legacy stream, and the call for the record."""
    record = tb.RecordEvent(0, stream=1, host=host)
    last = tb.Launch(2, 32, 16, stream=2, non_blocking=True, duration=1e-5, host=host)
    for call in (
        tb.Synchronize(stream=1, host=host),
        tb.HostCall("cudaStreamSynchronize", 1e-5, waits="stream", stream=1, host=host),
    ):
        found = asked(CONSUMER, record, call, last, groups=[[0, 1]])
        assert (found.safe, found.cause, found.behind) == (False, "host", 0)
        check_witness(found)
        assert asked(CONSUMER, call, last, groups=[[0, 1]]).safe is True


def test_function_that_waits_holds_up_the_other_streams_of_its_queue() -> None:
    events = [A, replace(COPY, stream=0), tb.HostFunction(1e-5, stream=0), B]
    assert asked(*events, groups=[[1]], connections=8).safe is True
    found = asked(*events, groups=[[1]], connections=1)
    assert (found.safe, found.cause, found.behind) == (False, "hardware_queue", 0)
    check_witness(found, connections=1)


def test_graph_of_more_than_kernels() -> None:
    nodes = [tb.Memset(4096), KERNEL, tb.HostFunction(1e-5), replace(KERNEL, name="last")]
    found = asked(tb.Graph(nodes, edges=[(0, 1), (1, 2), (2, 3)]).launch())
    assert (found.safe, found.cause, found.stranded) == (False, "node", 1)
    check_witness(found)
    assert asked(tb.Graph(nodes, edges=[(0, 1), (2, 3)]).launch()).safe is True
    graph = tb.Graph(nodes, edges=[(0, 1), (2, 3)])
    twice = asked(graph.launch(stream=0), graph.launch(stream=1), groups=[[0, 2]])
    assert (twice.safe, twice.cause) == (False, "node")


def test_graph_that_waits_for_an_event_of_another_one() -> None:
    waits = tb.Graph([KERNEL, tb.WaitEvent(0), replace(KERNEL, name="last")], edges=[(1, 2)])
    behind = tb.Graph([KERNEL, tb.RecordEvent(0), tb.Memset(64)], edges=[(0, 1)])
    beside = tb.Graph([KERNEL, tb.RecordEvent(0), tb.Memset(64)], edges=[(2, 1)])
    found = asked(behind.launch(0), waits.launch(1), groups=[[0, 2]])
    assert (found.safe, found.cause) == (False, "event")
    check_witness(found)
    assert asked(behind.launch(0), waits.launch(1), groups=[[0, 1]]).safe is True
    assert asked(beside.launch(0), waits.launch(1), groups=[[0, 2]]).safe is True
    assert asked(waits.launch(1), behind.launch(0), groups=[[0, 2]]).safe is True
    again = [*behind.nodes, tb.RecordEvent(0)]
    first = tb.Graph(again, edges=[(0, 1), (3, 1)])
    assert asked(first.launch(0), waits.launch(1), groups=[[0, 2]]).safe is False
    last = tb.Graph(again, edges=[(1, 3)])
    assert asked(last.launch(0), waits.launch(1), groups=[[0, 2]]).safe is True


def test_graph_that_waits_for_its_own_record_or_for_a_stream() -> None:
    parts = [KERNEL, tb.RecordEvent(0), tb.WaitEvent(0), replace(KERNEL, name="last")]
    chain = tb.Graph(parts, edges=[(0, 1), (1, 2), (2, 3)])
    other = replace(KERNEL, stream=3)
    record = tb.RecordEvent(0, stream=3)
    assert asked(chain.launch(0), other, record, groups=[[0, 1]]).safe is False
    apart = tb.Graph(parts, edges=[(1, 2), (2, 3)])
    assert asked(other, record, apart.launch(0), groups=[[0, 2]]).safe is True
    assert asked(other, record, apart.launch(0), groups=[[0, 1, 2]]).safe is True
    waits = tb.Graph([tb.WaitEvent(0), KERNEL], edges=[(0, 1)])
    found = asked(other, record, waits.launch(0), groups=[[0, 1]])
    assert (found.safe, found.cause) == (False, "event")
    check_witness(found)
    late = replace(other, completion_event=0)
    with pytest.raises(ValueError, match=r"event 1, WaitEvent.*completion_event"):
        asked(late, waits.launch(0), groups=[[0, 1]])


def test_a_conditional_node_is_refused() -> None:
    """The kernel that decides finds no room beside 132 blocks, which would wait for its body."""
    node = tb.Launch(8, 32, 32, duration=1e-5)
    graph = tb.Graph([tb.Conditional(tb.Graph([node]), times=1)])
    with pytest.raises(ValueError, match="event 1 launches a graph with a conditional node"):
        asked(tb.Launch(132, 32, 32, stream=0, duration=1e-5), graph.launch(1))


def test_background_kernel_before_a_copy_that_a_member_waits_for() -> None:
    found = asked(B, COPY, A, groups=[[1, 2]])
    assert (found.safe, found.cause, found.behind) == (False, "stream", 0)
    check_witness(found)


def test_copy_of_the_legacy_stream_that_blocks_holds_up_other_threads() -> None:
    blocks = tb.Copy(1 << 20, "d2h", stream=tb.LEGACY_STREAM, blocking=True)
    other = tb.Launch(8, 128, 32, stream=3, non_blocking=True, duration=1e-3, host=1)
    found = asked(replace(CONSUMER, host=1), blocks, other, groups=[[0, 1]])
    assert (found.safe, found.cause) == (False, "host")


def test_copy_that_waits_for_its_stream_holds_up_its_channel() -> None:
    others = [replace(KERNEL, stream=k, blocks=1) for k in range(2, 6)]
    copies = [replace(COPY, stream=k) for k in range(1, 6)]
    found = asked(*others, *copies, groups=[[4]])
    assert found.safe is not True
    assert "copy_engine" in f"{found.cause} {found.argument}"
    assert asked(*others[:3], *copies[:4], groups=[[3]]).safe is True


def test_memset_that_finds_no_room_is_never_safe() -> None:
    full = tb.Launch(132, 1024, 64, stream=0, duration=1e-3)
    memset = tb.Memset(1 << 24, stream=1)
    assert asked(full, memset).safe is None
    assert asked(A, memset).safe is True
    assert asked(full, tb.Memset(1024, stream=1)).safe is True
    assert "memsets run on SMs" in asked(full, memset).argument


@pytest.mark.parametrize("device", tb.devices())
def test_every_device_answers(device: str) -> None:
    proxy = tb.coresident(tb.Sequence([CONSUMER, COPY]), device, fixes=False)
    assert (proxy.safe, proxy.cause) == (False, "legacy_stream")
    small = replace(A, blocks=1)
    assert tb.coresident(tb.Sequence([small, tb.Memset(1 << 16, stream=1)]), device).safe in (
        True,
        None,
    )


def test_room_still_counts_beside_other_work() -> None:
    workers = tb.Launch(128, 256, 168, 100 * 1024, name="workers", duration=1e-3)
    schedulers = tb.Launch(16, 128, 32, name="schedulers", duration=1e-3)
    found = asked(workers, COPY, schedulers)
    assert (found.safe, found.cause, found.waiting) == (False, "registers", 12)
    assert "carveout" in {fix.kind for fix in found.fixes}
    assert asked(workers, COPY, replace(schedulers, carveout=100)).safe is True
    # The host waits for all before it launches the schedulers: they are no group then.
    apart = asked(workers, tb.Synchronize(), schedulers, groups=[[0], [1]])
    assert apart.safe is True


def test_group_that_waits_for_the_end_of_another_one() -> None:
    events = [A, replace(COPY, stream=0), replace(B, stream=0)]
    assert asked(*events, groups=[[0], [1]]).safe is True
    assert asked(*events, groups=[[0, 1]]).safe is False


def test_result_is_shown_and_saved() -> None:
    found = asked(CONSUMER, COPY)
    assert "This strands Copy 1" in found._repr_html_()
    data = views.data(found)
    assert data["others"] == [{"copy": {"bytes": 1 << 20, "kind": "h2d", "stream": 1}}]
    assert data["host"] == [1e-3, 1e-3]
    assert data["fixes"][0]["after"] == [[1, 0]]
    assert data["fixes"][0]["sequence"][1] == data["others"][0]
    with pytest.raises(AssertionError, match="Copy 1 never happens"):
        tb.assert_coresident(tb.Sequence([CONSUMER, COPY]), "h200")


def test_many_events_take_seconds() -> None:
    events: list[Event] = []
    for k in range(20):
        where = {"stream": k % 6}
        events += [replace(COPY, **where), tb.Launch(1, 32, 16, duration=1e-5, **where)]  # type: ignore[arg-type]
    found = asked(*events, seconds=60)
    assert (found.safe, found.cause) == (False, "stream")


def test_budget_counts_other_work() -> None:
    mine = tb.Launch(1, 1024, 32, stream=0, duration=1e-3)
    beside = [replace(KERNEL, stream=1), tb.Copy(1 << 20, "d2h", stream=1)]
    assert tb.budget(mine, "h200", beside=tb.Sequence(beside)) == tb.budget(
        mine, "h200", beside=beside[:1]
    )  # type: ignore[arg-type]
    after = [*beside, tb.RecordEvent(0, stream=1), tb.WaitEvent(0, stream=0)]
    assert not tb.budget(mine, "h200", beside=tb.Sequence(after))


def test_what_is_not_looked_at_is_refused() -> None:
    late = replace(A, completion_event=3)
    with pytest.raises(ValueError, match=r"event 1, .*completion_event"):
        asked(late, tb.WaitEvent(3, stream=1), B)
    with pytest.raises(ValueError, match="at most 500"):
        asked(A, *([COPY] * 500))
    with pytest.raises(ValueError, match="circle"):
        asked(A, tb.Synchronize(), B, after=[(1, 0)])
    with pytest.raises(ValueError, match=r"groups\[0\]: 9 is outside 0\.\.2"):
        asked(A, COPY, B, groups=[[9]])
    with pytest.raises(ValueError, match="one GPU"):
        asked(A, tb.Copy(8, "p2p", gpu=0, peer=1), B)
    for wrong in ({"plays": -1}, {"fixes": 1}):
        with pytest.raises((TypeError, ValueError), match=r"plays|fixes"):
            tb.coresident(tb.Sequence([A]), ["h200"], **wrong)  # type: ignore[call-overload]


def test_wait_for_an_event_that_nobody_records_holds_up_nothing() -> None:
    wait = tb.WaitEvent(9, stream=tb.LEGACY_STREAM)
    assert asked(A, wait, B).safe
    assert asked(A, tb.RecordEvent(9, stream=tb.LEGACY_STREAM), wait, B).safe is False


STREAMS = st.sampled_from([0, 1, 2, tb.LEGACY_STREAM])
HOSTS = st.integers(0, 1)
FREE_STREAM = 2  # non-blocking


def _stream(event: Any) -> Any:
    """The event, whose stream is a non-blocking one if that stream is."""
    if event.stream == FREE_STREAM and hasattr(event, "non_blocking"):
        return replace(event, non_blocking=True)
    return event


@st.composite
def launches(draw: st.DrawFn) -> Event:
    """A small kernel."""
    stream, host = draw(STREAMS), draw(HOSTS)
    return _stream(tb.Launch(2, 32, 16, stream=stream, host=host, duration=1e-5))


@st.composite
def others(draw: st.DrawFn) -> Event:
    """Other work of a stream, or a call that waits."""
    stream, host = draw(STREAMS), draw(HOSTS)
    where: dict[str, Any] = {"stream": stream, "host": host}
    return draw(
        st.sampled_from([
            _stream(tb.Copy(1 << 20, "h2d", **where)),
            _stream(tb.HostFunction(1e-5, **where)),
            tb.WriteValue("x", **where),
            tb.WaitValue("x", **where),
            tb.RecordEvent(0, **where),
            tb.RecordEvent(1, **where, timing=True),
            tb.WaitEvent(0, **where),
            tb.HostCall("cudaFree", 1e-5, waits="device", host=host),
            tb.HostCall("cudaStreamSynchronize", 1e-5, waits="stream", **where),
            tb.Synchronize(**where),
        ])
    )  # fmt: skip


@st.composite
def rarer(draw: st.DrawFn) -> Event:
    """What the literal reference does not know: the driver's kernels, graphs, copies that block."""
    stream, host = draw(STREAMS), draw(HOSTS)
    where: dict[str, Any] = {"stream": stream, "host": host}
    kernel = tb.Launch(2, 64, 32, duration=1e-5)
    between = [kernel, tb.HostFunction(1e-6), tb.Memset(64), tb.RecordEvent(0), tb.WaitEvent(0)]
    nodes = [kernel, draw(st.sampled_from(between)), kernel]
    edges = draw(st.sets(st.sampled_from([(0, 1), (1, 2), (0, 2)])))
    return draw(
        st.sampled_from([
            _stream(tb.Copy(1 << 20, "h2d", blocking=True, **where)),
            _stream(tb.Copy(1 << 20, "d2h", pinned=False, **where)),
            _stream(tb.Copy(1 << 16, "d2d", **where)),
            _stream(tb.Memset(1 << 16, **where)),
            _stream(tb.Memset(64, **where)),
            _stream(tb.Graph(nodes, edges=edges).launch(**where)),
            _stream(tb.Launch(2, 32, 16, duration=1e-5, first_use=True, **where)),
            _stream(tb.Launch(2, 32, 16, duration=1e-5, local_memory=4096, **where)),
        ])
    )  # fmt: skip


@st.composite
def programs(
    draw: st.DrawFn, *, rare: bool = False
) -> tuple[list[Event], tuple[int, ...], tuple[int, ...]]:
    """Events, the numbers of a group among the operations, and of the events of these."""
    other = others() | rarer() if rare else others()
    events = draw(st.lists(launches(), min_size=1, max_size=3))
    events += draw(st.lists(other, min_size=1, max_size=3))
    events = draw(st.permutations(events))
    kernels = [k for k, one in enumerate(events) if isinstance(one, tb.Launch)]
    numbers = [*kernels, *(k for k in range(len(events)) if k not in kernels)]
    group = draw(st.sets(st.integers(0, len(events) - 1), min_size=1))
    return events, tuple(sorted(group)), tuple(numbers[k] for k in group)


@settings(max_examples=CASES, deadline=None)
@given(programs(), st.booleans())
def test_as_all_interleavings(
    program: tuple[list[Event], tuple[int, ...], tuple[int, ...]], one_queue: bool
) -> None:
    """The answer is that of the literal reference; not known it is only where queues are shared."""
    events, group, in_group = program
    sequence = tb.Sequence(events)
    spec = gpu(4, "h200", hardware_queues=1 if one_queue else 32)
    found = tb.coresident(sequence, spec, groups=[group], fixes=False)
    hangs = Program(events, frozenset(in_group), one_queue=one_queue).hangs()
    if found.safe is None:
        assert one_queue or not has_other_work(sequence)
    else:
        assert found.safe is not hangs


@settings(max_examples=CASES, deadline=None)
@given(programs(rare=True), st.integers(0, 2**32), st.booleans())
def test_nothing_that_is_safe_hangs_in_any_order(
    program: tuple[list[Event], tuple[int, ...], tuple[int, ...]], seed: int, one_queue: bool
) -> None:
    """Random orders of calls with random gaps, of launches that meet."""
    events, _, _ = program
    count = len(tb.Sequence(events).launches)
    spec = gpu(4, "h200", hardware_queues=1 if one_queue else 32)
    found = tb.coresident(tb.Sequence(events), spec, groups=[range(count)], fixes=False)
    if found.safe is not True:
        return
    drawn = random.Random(seed)
    for _ in range(8):
        order = in_some_order(events, drawn)
        meeting = [meets_all(one) for one in order]
        gaps = [drawn.choice((0.0, 1e-6, 1e-4, 1e-2)) for _ in order]
        if meets_twice(meeting):
            return
        hang = tb.predict(tb.Sequence(meeting), spec, host=gaps).hang
        assert hang is None or not hang.stranded
        assert hang is None or not hang.waiting


def meets_twice(events: list[Event]) -> bool:
    """Whether a graph is launched twice: its blocks would meet those of a launch that waits."""
    graphs = [one.graph for one in events if isinstance(one, tb.GraphLaunch)]
    return any(one in graphs[:k] for k, one in enumerate(graphs))


def meets_all(event: Event) -> Event:
    """The event with launches that meet."""
    if isinstance(event, tb.Launch):
        return replace(event, meets="all")
    if not isinstance(event, tb.GraphLaunch):
        return event
    nodes = [
        replace(node, meets="all") if isinstance(node, tb.Launch) else node
        for node in event.graph.nodes
    ]
    return replace(event, graph=event.graph.with_nodes(nodes))


def in_some_order(events: list[Event], drawn: random.Random) -> list[Event]:
    """The events in an order that keeps what the question keeps."""
    left, order = list(range(len(events))), []
    while left:
        free = [
            k for k in left if not any(o < k and keep_order(events[o], events[k]) for o in left)
        ]
        order.append(drawn.choice(free))
        left.remove(order[-1])
    return [events[k] for k in order]


@pytest.mark.parametrize(
    "between",
    [
        tb.HostFunction(1e-5, stream=0),
        tb.WriteValue("x", stream=0),
        tb.RecordEvent(0, stream=0, timing=True),
    ],
    ids=repr,
)
def test_functions_writes_and_records_with_timing_hold_a_queue_that_is_shared(
    between: Event,
) -> None:
    def program(**more: str) -> tb.Sequence:
        first, last = (tb.Launch(1, 128, 32, stream=k, duration=1e-3, **more) for k in (0, 1))
        return tb.Sequence([first, between, last])

    assert tb.predict(program(meets="m"), "h200", connections=1).hang
    assert not tb.coresident(program(), "h200", connections=1).safe
    assert tb.coresident(program(), "h200").safe
