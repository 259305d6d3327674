"""Profiles of ranks: every nanosecond of each GPU once, and waits are those of the truth."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tbsched as tb
from helpers import examples
from ranked import Gemm, Host, Meet, Receive, Send, Step, Sync, documents, play, written
from tbsched.advice.account.peers import PEER, SLOWED, TRANSFER
from tbsched.advice.explain.explanation import Explanation

_US = 1000  # ns
_STEPS = 4


def explained(programs: Sequence[Sequence[Step]], lacking: int | None = None) -> Explanation:
    """What is found of the profiles of ranks that ran these programs, but for one of them."""
    with tempfile.TemporaryDirectory() as folder:
        files = written(Path(folder), documents(play(programs)))
        return tb.explain(tb.load_program([f for k, f in enumerate(files) if k != lacking]))


def seconds(found: Explanation, gpu: int, cause: str) -> float:
    return sum(row.seconds for row in found.account if (row.gpu, row.cause) == (gpu, cause))


def adds_up(found: Explanation) -> None:
    """Asserts that the causes of each GPU add up to the span, to 1 ns."""
    for place, gpu in enumerate(found.accounted.gpus):
        parts = found.accounted.parts
        own = parts.select(parts.first == place)
        assert int((own.end - own.begin).sum()) == found.accounted.span_ns
        total = sum(row.seconds for row in found.account if row.gpu == gpu)
        assert round(total * 1e9) == found.accounted.span_ns


def of_one_process(profiles: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Profiles of several GPUs as one, with a thread and a GPU for each of them."""
    events = []
    for gpu, profile in enumerate(profiles):
        for event in profile["traceEvents"]:
            args = dict(event["args"])
            if "correlation" in args:
                args["correlation"] += 1000 * gpu
            if "device" in args:
                args["device"] = gpu
            events.append({**event, "args": args, "tid": event["tid"] + 100 * gpu})
    return {**profiles[0], "traceEvents": events}


def training(rank: int, late: int, slow: Step, *, buckets: int = 3) -> list[Step]:
    """Steps of data parallel training whose rank ``late`` does something more."""
    found: list[Step] = []
    for _ in range(_STEPS):
        found += [slow] if rank == late else []
        found += [Gemm(300)] * 3
        for _ in range(buckets):
            found += [Gemm(200), Meet(150, beside=True)]
        found += [Meet(40, elements=1), Gemm(80, "sgd"), Sync()]
    return found


def test_the_function_of_a_late_host_is_the_first_cause() -> None:
    slow = Host("decode_images", 3000)
    found = explained([training(rank, 1, slow) for rank in (0, 1)])
    adds_up(found)
    first = found.roots[0]
    assert (first.gpu, first.cause, first.by) == (1, "host", "decode_images")
    assert first.waited > 0.97 * seconds(found, 0, PEER)
    assert first.own > 2.9e-3 * _STEPS


def test_waits_begin_in_buckets_during_the_backward_pass_and_have_the_cause_before_it() -> None:
    """While rank 0 waits, rank 1 runs its kernels; they are not why it is late."""
    found = explained([training(rank, 1, Host("decode_images", 3000)) for rank in (0, 1)])
    for_kernels = sum(
        row.seconds for row in found.account if row.cause == PEER and "rank 1: kernel" in row.by
    )
    assert for_kernels < 0.02 * seconds(found, 0, PEER)


def test_a_straggling_kernel_is_the_first_cause() -> None:
    found = explained([training(rank, 0, Gemm(2500, "straggler")) for rank in range(3)])
    adds_up(found)
    first = found.roots[0]
    assert (first.gpu, first.cause, first.by) == (0, "kernel", "straggler")
    assert first.own == 0.0
    for gpu in (1, 2):
        assert seconds(found, gpu, PEER) == pytest.approx(2.5e-3 * _STEPS, rel=0.15)


def test_ranks_alike_wait_for_nobody() -> None:
    found = explained([training(rank, 9, Gemm(1)) for rank in range(2)])
    adds_up(found)
    assert not any(row.cause == PEER for row in found.account)
    assert found.roots[0].cause == TRANSFER
    assert {row.cause for row in found.exposed} == {"needs"}


def test_a_wait_for_a_rank_that_waits_has_the_cause_of_the_third() -> None:
    """Rank 0 meets rank 1, which is late as it met rank 2, whose host was late."""
    late = Host("write_log", 4000)
    programs: list[list[Step]] = [[], [], []]
    for _ in range(_STEPS):
        programs[0] += [Gemm(100), Meet(50, group=(0, 1)), Sync()]
        programs[1] += [Meet(50, group=(1, 2)), Gemm(100), Meet(50, group=(0, 1)), Sync()]
        programs[2] += [late, Meet(50, group=(1, 2)), Gemm(100), Sync()]
    found = explained(programs)
    adds_up(found)
    assert (
        "rank 2: host, write_log"
        in max(
            (row for row in found.account if (row.gpu, row.cause) == (0, PEER)),
            key=lambda row: row.seconds,
        ).by
    )
    assert found.roots[0][:3] == (2, "host", "write_log")


@pytest.mark.parametrize("ahead_us", [0, -5_000_000, 7_200_000_000])
def test_a_stage_waits_for_the_one_before_it_and_its_sends_wait_for_nobody(ahead_us: int) -> None:
    """Three stages; the host of the second one is late. Bytes go one way only."""
    programs: list[list[Step]] = [[], [], []]
    for _ in range(_STEPS):
        programs[0] += [Gemm(400), Send(30, 1)]
        programs[1] += [Receive(30, 0), Host("load_adapter", 2000), Gemm(400), Send(30, 2), Sync()]
        programs[2] += [Receive(30, 1), Gemm(400), Sync()]
    played = play(programs)
    with tempfile.TemporaryDirectory() as folder:
        files = written(Path(folder), documents(played, later={1: ahead_us, 2: -ahead_us}))
        found = tb.explain(tb.load_program(files))
    adds_up(found)
    met = found.accounted.collectives
    assert met is not None
    waited = {(0, 1): 0, (1, 0): 0, (1, 2): 0, (2, 1): 0}
    for (one, late), us in played.waited.items():
        waited[one, late] = us
    for (one, late), us in waited.items():
        own = (met.gpu == one) & (met.peer == late)
        assert int((met.until - met.begin)[own].sum()) == pytest.approx(us * _US, abs=100 * _US)
    told = [row for row in found.account if (row.gpu, row.cause) == (2, PEER)]
    assert max(told, key=lambda row: row.seconds).by == "rank 1: host, load_adapter"


def test_a_send_waits_for_room_until_the_peer_starts_the_receive_before_it() -> None:
    """The first send fits into the buffers; the second one waits for the first receive."""
    programs: list[list[Step]] = [
        [Gemm(10), Send(20, 1), Send(20, 1), Sync()],
        [Gemm(10), Host("load_adapter", 3000), Receive(20, 0), Receive(20, 0), Gemm(10), Sync()],
    ]
    with tempfile.TemporaryDirectory() as folder:
        kept = documents(play(programs))
        (_, second), (received, _) = (
            [each for each in document["traceEvents"] if "nccl" in each["name"].lower()
             and each["cat"] == "kernel"]
            for document in kept
        )  # fmt: skip
        second["dur"] = received["ts"] + 15 - second["ts"]
        found = tb.explain(tb.load_program(written(Path(folder), kept)))
    adds_up(found)
    waited = received["ts"] - second["ts"]
    assert waited > 2900
    assert seconds(found, 0, PEER) == pytest.approx(waited / 1e6, abs=1e-5)
    told = [row for row in found.account if (row.gpu, row.cause) == (0, PEER)]
    assert max(told, key=lambda row: row.seconds).by == "rank 1: host, load_adapter"


def test_a_missing_rank_leaves_waits_of_unknown_length() -> None:
    found = explained([training(rank, 1, Host("f", 3000)) for rank in range(3)], lacking=2)
    adds_up(found)
    assert seconds(found, 1, TRANSFER) == seconds(found, 0, TRANSFER) == 0.0
    assert seconds(found, 1, "collective") > 0.0
    assert seconds(found, 0, PEER) > 2.4e-3 * _STEPS
    assert any("1 of 3 ranks" in sentence for sentence in found.program.assumed)


def test_a_rank_alone_says_that_collectives_may_be_waits() -> None:
    with tempfile.TemporaryDirectory() as folder:
        played = play([training(rank, 1, Host("f", 3000)) for rank in (0, 1)])
        files = written(Path(folder), documents(played))
        found = tb.explain(tb.load_program(files[0]))
    assert "in collectives, waiting for a peer or moving bytes" in str(found)
    assert any("rank 0 alone" in sentence for sentence in found.program.assumed)


def test_changes_of_a_rank_alone_hold_only_if_no_peer_is_waited_for_instead() -> None:
    steps: list[Step] = []
    for _ in range(_STEPS):
        steps += [Host("decode_images", 3000), Gemm(300), Meet(150), Sync()]
    with tempfile.TemporaryDirectory() as folder:
        files = written(Path(folder), documents(play([steps, steps])))
        found = tb.explain(tb.load_program(files[0]))
    assert found.changes
    assert all("wait for a peer instead" in change.condition for change in found.changes)


def test_a_collective_beside_kernels_is_slowed_only_where_others_tell() -> None:
    """Alone it takes 100 us three times; beside kernels 180 us, of which 80 us are theirs."""
    steps: list[Step] = []
    for _ in range(4):
        steps += [Gemm(100), Meet(100), Gemm(100), Sync()]
    steps += [Gemm(10), Meet(180, beside=True), Gemm(60), Gemm(10), Sync()]
    found = explained([steps, steps])
    adds_up(found)
    assert seconds(found, 0, SLOWED) == pytest.approx(80e-6, abs=2e-6)
    few = explained([steps[-5:], steps[-5:]])
    assert seconds(few, 0, SLOWED) == 0.0


@pytest.mark.parametrize("members", [(0, 1), (1, 0)])
def test_gpus_of_one_process_are_told_apart_as_ranks_are(members: tuple[int, int]) -> None:
    """One profile of two GPUs, each with a thread of its own; it says nothing of ranks."""
    given = documents(play([training(rank, 1, Host("decode_images", 3000)) for rank in (0, 1)]))
    both = of_one_process([given[rank] for rank in members])
    del both["distributedInfo"]
    with tempfile.TemporaryDirectory() as folder:
        program = tb.load_program(written(Path(folder), [both])[0], fit=False)
        found = tb.explain(program)
    assert program.gpus == (0, 1)
    adds_up(found)
    late = members.index(1)
    assert (found.roots[0].gpu, found.roots[0].by) == (late, "decode_images")
    assert seconds(found, 1 - late, PEER) > 2.4e-3 * _STEPS


def test_steps_that_each_rank_marks_are_those_of_the_first_rank() -> None:
    given = documents(play([training(rank, 1, Host("decode_images", 3000)) for rank in (0, 1)]))
    for profile in given:
        ends = [
            each["ts"] + each["dur"] for each in profile["traceEvents"]
            if each["name"] == "cudaDeviceSynchronize"
        ]  # fmt: skip
        for number, (begin, end) in enumerate(zip([1000, *ends], ends, strict=False)):
            profile["traceEvents"].append(
                {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 5,
                 "tid": 1, "ts": begin, "dur": end - begin, "args": {}}
            )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        found = tb.explain(tb.load_program(written(Path(folder), given)))
    assert found.accounted.steps.names == tuple(f"ProfilerStep#{k}" for k in range(_STEPS))
    adds_up(found)
    row = next(line for line in str(found).splitlines() if line.endswith("decode_images"))
    assert found.roots[0].saves_on_all is not None
    assert f"{1e3 * found.roots[0].saves_on_all / _STEPS:.3f} ms" in row


def test_ranks_with_two_gpus_each_are_numbered_one_after_the_other() -> None:
    given = documents(play([training(rank, 2, Host("late", 3000)) for rank in range(4)]))
    merged = [of_one_process(given[:2]), of_one_process(given[2:])]
    for rank, profile in enumerate(merged):
        profile["distributedInfo"] = {"rank": rank, "world_size": 2}
    with tempfile.TemporaryDirectory() as folder:
        program = tb.load_program(written(Path(folder), merged))
    found = tb.explain(program)
    assert [rank.gpus for rank in program.ranks] == [(0, 1), (2, 3)]
    adds_up(found)
    assert (found.roots[0].gpu, found.roots[0].by) == (2, "late")
    assert any("rank 1 (GPU 2): host, late" in row.by for row in found.account)


def test_no_change_is_promised_over_ranks() -> None:
    found = explained([training(rank, 1, Host("f", 3000)) for rank in (0, 1)])
    assert found.changes == ()
    assert "what one of them saves, it may wait for" in found.notes[0]


_HOST = st.builds(Host, st.sampled_from(["load", "log", "tokenize"]), st.integers(1, 4000))
_GEMM = st.builds(Gemm, st.integers(1, 2000), st.sampled_from(["gemm", "norm", "softmax"]))


@st.composite
def _programs(draw: st.DrawFn) -> list[list[Step]]:
    """Ranks with the same collectives in the same order, and whatever else between them."""
    world = draw(st.integers(2, 4))
    programs: list[list[Step]] = [[] for _ in range(world)]
    for _ in range(draw(st.integers(1, 6))):
        size = draw(st.integers(2, world))
        members = tuple(sorted(draw(st.permutations(range(world)))[:size]))
        meet = Meet(
            draw(st.integers(3, 500)), draw(st.sampled_from(["allreduce", "_allgather_base"])),
            draw(st.sampled_from([16, 1 << 16])), None if size == world else members,
            draw(st.booleans()),
        )  # fmt: skip
        for rank in members:
            own = draw(st.lists(st.one_of(_HOST, _GEMM, st.just(Sync())), max_size=4))
            programs[rank] += [*own, meet]
    return [[Gemm(5), *steps, Meet(5), Gemm(5)] for steps in programs]


@settings(max_examples=examples(120), deadline=None)
@given(_programs(), st.integers(-(10**9), 10**9))
def test_any_program_adds_up_and_waits_as_it_did(programs: list[list[Step]], ahead_us: int) -> None:
    played = play(programs)
    with tempfile.TemporaryDirectory() as folder:
        files = written(Path(folder), documents(played, later={1: ahead_us}))
        found = tb.explain(tb.load_program(files), predicted=False)
    adds_up(found)
    rank = found.program.ranks[1]
    assert rank.uncertain is not None
    assert abs(rank.added + ahead_us / 1e6) <= rank.uncertain + 1e-6
    met = found.accounted.collectives
    assert met is not None
    waited = met.until - met.begin
    # What is not longer than clocks are uncertain is not known to be a wait.
    off = _US + 2 * max(round(1e9 * (each.uncertain or 0.0)) for each in found.program.ranks)
    for (one, late), us in played.waited.items():
        own = met.gpu == one
        told = int(waited[own & (met.peer == late)].sum())
        assert abs(told - us * _US) <= off * int(own.sum())
    assert abs(int(waited.sum()) - _US * sum(played.waited.values())) <= off * len(waited)
    assert (waited[waited > 0] > 2 * _US).all()
    reasons = sum(root.waited for root in found.roots)
    told = sum(row.seconds for row in found.account if row.cause == PEER)
    assert reasons == pytest.approx(told, abs=1e-9 * len(found.account))


@settings(max_examples=examples(60), deadline=None)
@given(
    st.integers(2, 4), st.data(), st.integers(500, 5000), st.booleans(), st.integers(0, 4)
)  # fmt: skip
def test_one_late_rank_is_the_reason_of_all_waits(
    world: int, data: st.DataObject, us: int, host: bool, buckets: int
) -> None:
    late = data.draw(st.integers(0, world - 1))
    slow: Step = Host("late_thing", us) if host else Gemm(us, "late_thing")
    found = explained([training(rank, late, slow, buckets=buckets) for rank in range(world)])
    adds_up(found)
    told = [row for row in found.account if row.cause == PEER]
    guilty = sum(row.seconds for row in told if f"rank {late}: " in row.by)
    named = sum(row.seconds for row in told if "late_thing" in row.by)
    whole = sum(row.seconds for row in told)
    assert guilty == whole
    assert named > 0.9 * whole


def test_sends_in_a_group_of_two_need_no_rank_to_be_of_a_pair() -> None:
    programs: list[list[Step]] = [[], []]
    for _ in range(_STEPS):
        programs[0] += [Host("load_adapter", 2000), Gemm(400), Send(30, 1), Sync()]
        programs[1] += [Receive(30, 0), Gemm(100), Sync()]
    with tempfile.TemporaryDirectory() as folder:
        kept = documents(play(programs))
        for document in kept:
            for each in document["traceEvents"]:
                each["args"].pop("Dst Rank", None)
                each["args"].pop("Src Rank", None)
        found = tb.explain(tb.load_program(written(Path(folder), kept)))
    adds_up(found)
    told = [row for row in found.account if (row.gpu, row.cause) == (1, PEER)]
    assert max(told, key=lambda row: row.seconds).by == "rank 0: host, load_adapter"
