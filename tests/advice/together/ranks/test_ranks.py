"""Programs of several GPUs: safe, or a hang, however late a rank is."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tbsched as tb
from advice.together.ranks.searching import few_histories
from contract.references.ranks import Play
from helpers import examples, gpu
from tbsched.program.sequence import Event

SLOTS = 4


def kernel(name: str | None, on: int, stream: int = 0, blocks: int = 20) -> tb.Launch:
    return tb.Launch(
        blocks, 1024, 64, stream=stream, gpu=on, host=on, meets=name, duration=1e-5, name=name
    )


def program(*launches: tb.Launch) -> tb.Sequence:
    return tb.Sequence(launches)


def test_order_of_issue_in_one_stream() -> None:
    a, b = (lambda on: kernel("a", on)), (lambda on: kernel("b", on))
    assert tb.coresident(program(a(0), b(0), a(1), b(1)), ["h200"] * 2).safe
    turned = program(a(0), b(0), b(1), a(1))
    found = tb.coresident(turned, ["h200"] * 2)
    assert found.safe is False
    assert "'a' and 'b' wait for each other in a circle" in found.argument
    assert found.host is not None
    assert found.witness == turned
    assert tb.predict(turned, ["h200"] * 2, host=found.host).hang is not None
    assert [fix.kind for fix in found.fixes] == ["order"]


def test_launch_that_its_gpu_never_takes_is_refused() -> None:
    meet = [kernel("a", 0, blocks=2), kernel("a", 1, blocks=2)]
    large = tb.Launch(500, 1024, 32, stream=3, cooperative=True, duration=1e-5)
    for launches in ([*meet, large], [large, *meet]):
        number = launches.index(large)
        with pytest.raises(ValueError, match=f"launches: launch {number}: cooperative: .* got 500"):
            tb.coresident(program(*launches), ["h200"] * 2)
        with pytest.raises(ValueError, match=f"beside: launch {number}: cooperative"):
            tb.budget(tb.Launch(1, 256, 32), ["h200"] * 2, beside=program(*launches))


@pytest.mark.parametrize(("launches", "safe"), [(16, True), (17, False)])
def test_gpu_takes_so_many_launches_of_a_group_at_a_time(launches: int, safe: bool) -> None:
    small = [replace(kernel("a", 0, stream, blocks=1), threads=32) for stream in range(launches)]
    seq = program(*small, kernel("a", 1, blocks=1))
    assert (tb.predict(seq, ["xavier"] * 2, connections=32).hang is None) is safe
    asked = {"connections": 32, "fixes": False}
    assert tb.coresident(seq, ["xavier"] * 2, **asked).safe is safe  # type: ignore[arg-type]


def test_launches_that_meet_no_other_take_places_among_the_resident_grids() -> None:
    one = replace(tb.device("h200"), resident_grids=2)
    seq = program(
        *(kernel(name, 0, k, blocks=1) for k, name in enumerate("ab")),
        kernel(None, 1, 2, blocks=1),
        *(kernel(name, 1, k, blocks=1) for k, name in enumerate("ba")),
    )
    assert tb.coresident(seq, [one, one], fixes=False).safe
    less = replace(one, resident_grids=1)
    found = tb.coresident(seq, [less, less], fixes=False)
    assert found.safe is False
    assert found.hang is not None
    assert {each.cause for each in found.hang.stranded} == {"grids"}


def test_many_launches_of_one_host_in_one_order_are_looked_at() -> None:
    seq = program(*(kernel("a", 0, stream, blocks=100) for stream in range(14)), kernel("a", 1))
    found = tb.coresident(seq, ["h200"] * 2, connections=32, fixes=False)
    assert found.safe is False


def test_room_for_two_collectives_at_a_time() -> None:
    def both(first: str, second: str, on: int, blocks: int) -> list[tb.Launch]:
        streams = {"a": 0, "b": 1}
        return [kernel(name, on, streams[name], blocks) for name in (first, second)]

    for blocks, safe in ((66, True), (67, False)):
        turned = program(*both("a", "b", 0, blocks), *both("b", "a", 1, blocks))
        found = tb.coresident(turned, ["h200"] * 2)
        assert found.safe is safe
    fixes = {fix.kind: fix for fix in found.fixes}
    assert fixes.keys() == {"order", "grid"}
    for fix in found.fixes:
        assert tb.coresident(fix.sequence, ["h200"] * 2).safe
    # In streams of their own, but in one order: who comes first on one GPU does so on the other.
    assert tb.coresident(
        program(*both("a", "b", 0, 132), *both("a", "b", 1, 132)), ["h200"] * 2
    ).safe


def test_a_kernel_that_fills_the_gpu_ends_and_a_collective_goes_on() -> None:
    full = tb.Launch(132, 1024, 64, stream=1, gpu=0, host=0, duration=1e-3)
    assert tb.coresident(program(full, kernel("a", 0), kernel("a", 1)), ["h200"] * 2).safe


def test_a_launch_that_never_fits_hangs_by_itself() -> None:
    found = tb.coresident(program(kernel("a", 0, 0, 133), kernel("a", 1)), ["h200"] * 2)
    assert found.safe is False
    assert found.argument == "it hangs although no rank is late"


def test_witness_in_which_blocks_do_not_end_together() -> None:
    # Clusters of four find the SMs that a kernel leaves one by one, and other ones than together.
    before = tb.Launch(452, 256, 64, 16 << 10, stream=0, gpu=0, host=0, duration=1e-4)
    other = tb.Launch(132, 512, 64, stream=12, gpu=1, host=1, duration=1.8e-4)
    meets = [
        tb.Launch(992, 64, 32, cluster=4, stream=0, gpu=on, host=on, meets="a", duration=4e-5)
        for on in (0, 1)
    ]
    sequence = program(before, meets[0], other, meets[1])
    assert tb.predict(sequence, ["h200"] * 2).hang is None
    found = tb.coresident(sequence, ["h200"] * 2)
    assert found.safe is False
    assert found.argument == (
        "it hangs although no rank is late, where blocks of a launch take different times"
    )
    assert found.witness is not None
    assert found.witness != sequence
    assert tb.predict(found.witness, ["h200"] * 2, host=found.host).hang is not None


def test_witness_in_which_a_kernel_takes_longer() -> None:
    # While the first kernel of GPU 0 lasts, its large one waits, and the small one comes first.
    before = tb.Launch(1, 32, 16, stream=0, gpu=0, host=0, duration=1e-6)
    late = tb.HostCall("load", duration=1e-3, gpu=0, host=0)
    ranks = [[kernel("large", on, 0, 100), kernel("small", on, 1, 66)] for on in (0, 1)]
    sequence = tb.Sequence([before, ranks[0][0], late, ranks[0][1], *ranks[1]])
    found = tb.coresident(sequence, ["h200"] * 2)
    assert found.safe is False
    assert found.argument == "it hangs if ranks are late and blocks of launch 0 take longer"
    assert found.witness is not None
    assert tb.predict(found.witness, ["h200"] * 2, host=found.host).hang is not None
    assert tb.predict(sequence, ["h200"] * 2, host=found.host).hang is None


Row: TypeAlias = tuple[int, int, int, int, int, int, int, str | None, int]


def of_rows(rows: list[Row]) -> tb.Sequence:
    return tb.Sequence(
        tb.Launch(
            blocks, threads, registers, shared << 10, cluster=cluster, stream=stream, gpu=on,
            host=on, non_blocking=True, duration=lasts / 1e6, meets=group,
        )
        for on, stream, blocks, threads, registers, shared, cluster, group, lasts in rows
    )  # fmt: skip


def test_witness_in_which_a_kernel_finds_no_room_and_holds_others_up() -> None:
    # On each GPU a kernel that needs much shared memory comes behind 'a', and 'b' behind it.
    rows = [
        # gpu, stream, blocks, threads, registers, KiB, cluster, group, microseconds
        (0, 12, 4, 1024, 64, 200, 4, None, 176), (0, 3, 76, 512, 32, 0, 1, "a", 57),
        (0, 1, 294, 64, 32, 0, 2, "c", 26), (0, 1, 136, 512, 16, 0, 4, "d", 12),
        (0, 10, 78, 512, 32, 200, 2, None, 47), (0, 2, 79, 1024, 16, 8, 1, "b", 42),
        (1, 10, 453, 256, 16, 8, 1, None, 239), (1, 3, 77, 512, 32, 0, 1, "a", 41),
        (1, 1, 294, 64, 32, 0, 2, "c", 48), (1, 10, 362, 64, 32, 48, 2, None, 161),
        (1, 1, 136, 512, 16, 0, 4, "d", 16), (1, 11, 494, 256, 64, 8, 1, None, 143),
        (1, 2, 79, 1024, 16, 8, 1, "b", 51),
    ]  # fmt: skip
    sequence = of_rows(rows)
    found = tb.coresident(sequence, ["h200"] * 2, connections=32, fixes=False)
    assert found.safe is False
    assert found.witness is not None
    assert tb.predict(found.witness, ["h200"] * 2, host=found.host, connections=32).hang is not None


def test_what_has_ended_before_the_first_arrival_takes_no_room() -> None:
    # The kernel is in the stream of 'b'. On GPU 1 'a' comes second, and nothing else is there then.
    def ranks(name: str, on: int, stream: int) -> tb.Launch:
        shape = (126, 1024, 16) if name == "a" else (268, 256, 64)
        return tb.Launch(
            *shape, 16 << 10, cluster=2 if name == "a" else 4, stream=stream, gpu=on, host=on,
            meets=name, duration=2e-5,
        )  # fmt: skip

    before = tb.Launch(196, 256, 32, stream=1, gpu=1, host=1, duration=2e-5)
    sequence = program(
        ranks("a", 0, 0), ranks("b", 0, 1), before, ranks("b", 1, 1), ranks("a", 1, 0)
    )
    assert tb.coresident(sequence, ["h200"] * 2, fixes=False).safe


def test_witness_in_which_a_kernel_stays_on_some_sms() -> None:
    # While two TPCs of each GPC are taken, clusters fill the others: what is free then has no pair.
    before = tb.Launch(210, 64, 64, 100 << 10, stream=1, gpu=1, host=1, duration=1e-5)
    meets = [
        tb.Launch(
            blocks, 64, 16, 100 << 10, cluster=4, stream=0, gpu=on, host=on, meets="a",
            duration=1e-5,
        )
        for on, blocks in ((0, 232), (1, 236))
    ]  # fmt: skip
    found = tb.coresident(program(meets[0], before, meets[1]), ["h200"] * 2, fixes=False)
    assert found.safe is False
    assert found.argument == "it hangs if ranks are late and blocks of launch 1 take longer"
    assert found.witness is not None
    assert tb.predict(found.witness, ["h200"] * 2, host=found.host).hang is not None


def test_witness_that_hangs_again_if_blocks_take_a_little_longer() -> None:
    rows = [
        # gpu, stream, blocks, threads, registers, KiB, cluster, group, microseconds
        (0, 2, 125, 544, 16, 200, 1, None, 197), (0, 2, 1497, 64, 16, 0, 1, "c", 42),
        (0, 0, 118, 512, 64, 48, 1, "a", 29), (0, 1, 96, 512, 32, 16, 4, "b", 9),
        (1, 2, 1496, 64, 16, 0, 1, "c", 15), (1, 1, 100, 512, 32, 16, 4, "b", 50),
        (1, 0, 148, 64, 32, 200, 4, None, 185), (1, 0, 118, 512, 64, 48, 1, "a", 16),
    ]  # fmt: skip
    found = tb.coresident(of_rows(rows), ["h200"] * 2, connections=32, fixes=False)
    assert found.witness is not None
    for seed in range(8):
        drawn = Random(seed)
        longer = tb.Sequence(
            replace(
                launch,
                duration=tuple(
                    each * (1 + 0.01 * drawn.random()) for each in launch.block_durations()
                ),
            )
            for launch in found.witness.launches
        )
        assert tb.predict(longer, ["h200"] * 2, host=found.host, connections=32).hang is not None


def test_pairs_say_what_arrives_first() -> None:
    def copied(name: str, on: int, stream: int) -> list[Event]:
        """A launch that waits for a copy, so that another stream may come first."""
        copy = tb.Copy(1 << 20, "h2d", stream=stream, gpu=on, host=on)
        return [copy, kernel(name, on, stream, 132)]

    events = [*copied("a", 0, 0), *copied("b", 0, 1), *copied("a", 1, 0), *copied("b", 1, 1)]
    sequence = tb.Sequence(events)
    assert tb.coresident(sequence, ["h200"] * 2).safe is not True
    assert tb.coresident(sequence, ["h200"] * 2, after=[(0, 1), (2, 3)]).safe


@pytest.mark.parametrize(
    "event",
    [
        tb.Memset(64, stream=3),
        tb.WriteValue("x", stream=3),
        replace(kernel(None, 0, 3), first_use=True),
        tb.Launch(1, 32, 16, stream=tb.LEGACY_STREAM, duration=1e-6),
        tb.HostCall("cuModuleLoadData", waits="device", holds="throughout"),
    ],
    ids=lambda event: type(event).__name__,
)
def test_what_is_not_looked_at_is_never_safe(event: Event) -> None:
    found = tb.coresident(tb.Sequence([event, kernel("a", 0), kernel("a", 1)]), ["h200"] * 2)
    assert found.safe is None
    assert "not looked at" in found.argument


def test_peer_copy_in_the_legacy_stream_waits_for_both_gpus() -> None:
    copy = tb.Copy(64, "p2p", stream=tb.LEGACY_STREAM, peer=1)
    of_one_thread = [replace(kernel("a", on), host=0) for on in (0, 1)]
    found = tb.coresident(tb.Sequence([copy, *of_one_thread]), ["h200"] * 2)
    assert found.safe is None
    assert "not looked at" in found.argument
    # A kernel of another thread may come before the copy, which holds up the other kernel.
    found = tb.coresident(tb.Sequence([copy, kernel("a", 0), kernel("a", 1)]), ["h200"] * 2)
    assert found.safe is False


def test_bad_input_is_refused() -> None:
    pair = program(kernel("a", 0), kernel("a", 1))
    with pytest.raises(ValueError, match="launch 1 is on GPU 1, but there are 1 devices"):
        tb.coresident(pair, ["h200"])
    with pytest.raises(ValueError, match="a device is needed"):
        tb.coresident(pair, [])
    with pytest.raises(ValueError, match=r"Launch\.meets says which"):
        tb.coresident(pair, ["h200"] * 2, groups=[[0, 1]])
    turned = replace(kernel("a", 1), in_block_order=True)
    with pytest.raises(ValueError, match=r"all launches that meet 'a' agree"):
        tb.coresident(program(kernel("a", 0), turned), ["h200"] * 2)
    with pytest.raises(ValueError, match="no launch meets another"):
        tb.coresident(program(kernel(None, 0)), ["h200"])


TOY = gpu(1, blocks_per_sm=SLOTS, warps_per_sm=64)


@pytest.mark.parametrize(
    "wait",
    [
        tb.Synchronize(gpu=1),
        tb.Synchronize(stream=0, gpu=1),
        tb.Synchronize(event=1),
        tb.HostCall("cudaFree", 1e-5, waits="device", gpu=1),
        tb.WaitEvent(1, stream=0),
    ],
    ids=repr,
)
def test_wait_for_another_host_may_be_called_after_that_ones_launch(wait: Event) -> None:
    record = tb.RecordEvent(1, stream=0, gpu=1, host=1)
    events = [wait, kernel("a", 0), kernel("a", 1), record]
    assert tb.predict(tb.Sequence(events), ["h200"] * 2, host=[1e-3, 0.0, 0.0, 0.0]).hang
    assert not tb.coresident(tb.Sequence(events), ["h200"] * 2).safe


@st.composite
def crossed_programs(draw: st.DrawFn) -> tuple[tb.Sequence, list[list[float]]]:
    """Two ranks that may wait for each other's work, and pauses of their hosts."""
    rank, event = st.integers(0, 1), st.integers(0, 1)
    drawn: st.SearchStrategy[Event] = st.one_of(
        st.builds(lambda name, on: kernel(name, on, on, 3), st.sampled_from("ab"), rank),
        st.builds(lambda name, on: kernel(name, on, on, 3), st.sampled_from("ab"), rank),
        st.builds(tb.Synchronize, gpu=rank, host=rank),
        st.builds(tb.Synchronize, event=event, host=rank),
        st.builds(
            tb.HostCall, st.just("cudaFree"), st.just(1e-6), waits=st.just("device"), gpu=rank
        ),
        st.builds(lambda k, on: tb.RecordEvent(k, stream=on, gpu=on, host=on), event, rank),
        st.builds(lambda k, on: tb.WaitEvent(k, stream=on, gpu=on, host=on), event, rank),
    )
    events = draw(st.lists(drawn, min_size=2, max_size=8))
    pauses = st.lists(
        st.sampled_from([0.0, 1e-5, 1e-3]), min_size=len(events), max_size=len(events)
    )
    return tb.Sequence(events), draw(st.lists(pauses, min_size=6, max_size=6))


@settings(max_examples=examples(400), deadline=None)
@given(crossed_programs())
def test_safe_never_hangs_however_hosts_wait_for_each_other(
    drawn: tuple[tb.Sequence, list[list[float]]],
) -> None:
    sequence, pauses = drawn
    try:
        with few_histories():
            found = tb.coresident(sequence, ["h200"] * 2)
    except ValueError:  # nobody meets, or an event that nobody records
        return
    if found.safe:
        for host in pauses:
            assert tb.predict(sequence, ["h200"] * 2, host=host).hang is None


@st.composite
def small_programs(draw: st.DrawFn) -> tb.Sequence:
    gpus = draw(st.integers(1, 3))
    groups = draw(st.integers(1, 3))
    events: list[Event] = []
    members: Counter[str] = Counter()
    for on in range(gpus):
        for k in draw(st.permutations(range(groups))):
            if draw(st.integers(0, 5)):
                members[f"g{k}"] += 1
                stream, blocks = draw(st.integers(0, 2)), draw(st.integers(1, 4))
                events.append(
                    tb.Launch(
                        blocks, 32, 16, stream=stream, gpu=on, host=on, duration=1e-6, meets=f"g{k}"
                    )
                )
            if not draw(st.integers(0, 3)):
                other = draw(
                    st.sampled_from(
                        [
                            tb.Launch(
                                draw(st.integers(1, 6)), 32, 16, stream=draw(st.integers(0, 2)),
                                gpu=on, host=on, duration=1e-6,
                            ),
                            tb.RecordEvent(on, draw(st.integers(0, 2)), host=on, gpu=on),
                            tb.WaitEvent(on, draw(st.integers(0, 2)), host=on, gpu=on),
                            tb.Synchronize(host=on, gpu=on),
                        ]
                    )
                )  # fmt: skip
                events.append(other)
    alone = {name for name, count in members.items() if count == 1}
    return tb.Sequence(
        event
        for event in events
        if not (isinstance(event, tb.Launch) and event.meets in alone and event.blocks == 1)
    )


@settings(max_examples=examples(600), deadline=None)
@given(small_programs())
def test_small_programs_agree_with_all_interleavings(sequence: tb.Sequence) -> None:
    if not any(one.meets for one in sequence.launches):
        return
    gpus = 1 + max(one.gpu for one in sequence.launches)
    gpus = max([gpus] + [1 + event.gpu for event in sequence])
    found = tb.coresident(sequence, [TOY] * gpus, fixes=False)
    hangs = Play(sequence, SLOTS, gpus).can_hang()
    if found.safe:
        assert not hangs
    if found.safe is False:
        assert hangs
