"""What code says of waiting: kernels that nvcc compiled for compute capability 9.0."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tbsched as tb
from hangs.conftest import RECORDED
from hangs.test_hang import ALIVE, captured, inside, issued, of, of_stream
from tbsched.hangs.code import KernelCode, _KernelReader, kernel_code
from tbsched.hangs.disassembler import disassembler, instructions_of
from tbsched.hangs.instruction import Instruction
from tbsched.hangs.layout import with_loops_in_one_piece

BEGIN = 0x210
FAKE = Path(__file__).with_name("fake_nvdisasm.py")


@pytest.fixture(autouse=True)
def disassembles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists code as nvdisasm did."""
    monkeypatch.setenv("TBSCHED_NVDISASM", str(FAKE))


def code(name: str) -> KernelCode:
    instructions = instructions_of(name.encode(), "9.0")
    assert instructions is not None
    return kernel_code(instructions, BEGIN)


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("polls_host", [(8,)]),
        ("grid_barrier", [(0,)]),
        ("acquires", [(0,)]),
        ("locks", [(0,)]),
        ("polls_two", [(0,), (8,)]),
        ("ring_pop", [(0,), (0,)]),  # its loops begin at one place
        ("counts_clients", [(0,), (0,)]),  # it counts only what memory says
        ("chained_back", [(8,)]),
        ("fenced_poll", [(0,)]),  # a plain load behind a fence
        ("shared_flag", [()]),
        ("through_memory", [()]),
    ],
)
def test_loops_that_wait_for_memory(name: str, places: list[tuple[int, ...]]) -> None:
    found = code(name)
    assert [poll.arguments for poll in found.polls] == places
    assert found.may_wait
    assert found.is_whole


def test_what_a_poll_looks_at() -> None:
    assert code("shared_flag").polls[0].is_local
    assert code("through_memory").polls[0].is_indirect
    assert code("polls_host").written == {0}


@pytest.mark.parametrize("name", ["takes_work", "waits_for_time", "polls_until", "sums", "divides"])
def test_kernels_that_end(name: str) -> None:
    found = code(name)
    assert found.loops > 0
    assert not found.may_wait


def test_loops_that_only_their_own_values_end() -> None:
    for name, loops, is_one in (
        ("own_values", 1, True), ("own_values_often", 1, False), ("follows_list", 1, False),
        ("sums", 0, False), ("divides", 0, False), ("waits_for_time", 0, False),
        ("takes_work", 0, False), ("stencil", 0, False),
    ):  # fmt: skip
        assert (code(name).open_loops, code(name).is_one_open_loop) == (loops, is_one), name


def test_loop_without_a_bound_is_not_said_to_be_slow(tmp_path: Path) -> None:
    found = of(tmp_path, *with_code("own_values", 1, 13))
    assert (found.kind, found.fixes) == ("inside_kernel", ())
    assert "that only its own values end" in found.reason
    for name in ("own_values_often", "follows_list"):
        found = of(tmp_path, *with_code(name, 1, 13))
        assert (found.kind, found.may_be) == ("not_known", ("inside_kernel", "not_hanging"))
    both = *with_code("own_values", 1, 13), *with_code("sums", 2, 14)
    assert of(tmp_path, *both).kind == "not_known"


@pytest.mark.parametrize(
    ("name", "words", "kind"),
    [
        ("binary_search", [24, 1000, 4], "not_known"),  # the middle of two neighbours is the lower
        ("step_zero", [16, 1000, 4], "not_known"),  # by an amount from memory
        ("step_arg", [8, 2 * 10**9, 4, 12, 1, 4], "not_hanging"),
        ("step_arg", [8, 1000, 4, 12, 0, 4], "not_known"),
        ("gcd_sub", [], "not_known"),  # of nothing and a number
        ("doubles", [8, 1000, 4], "not_known"),  # nothing, twice, is nothing
        ("lcg_find", [8, 12345, 4], "not_hanging"),
        ("collatz", [8, 2 * 10**9, 4], "not_hanging"),  # of so many numbers
        ("collatz", [8, 2, 4], "not_known"),
    ],
)
def test_value_that_may_stand_still_ends_no_loop(
    tmp_path: Path, name: str, words: list[int], kind: str
) -> None:
    found = of(tmp_path, *with_code(name, 1, 13, small_arguments=words))
    assert found.kind == kind, found.text


def test_lock_that_comes_back_on_every_way_is_slow(tmp_path: Path) -> None:
    assert code("gives_back").releases_lock
    assert not code("keeps").releases_lock
    assert not code("locks").releases_lock  # all threads of a warp take it
    found = of(tmp_path, *with_code("gives_back", 1, 13))
    assert found.kind == "not_hanging"
    assert "gives_back is slow: nothing in the code keeps the lock" in found.reason
    assert of(tmp_path, *with_code("keeps", 1, 13)).kind == "inside_kernel"


def test_grid_that_has_ended_in_waves_does_not_wait_for_later_blocks(tmp_path: Path) -> None:
    shape = {
        "kernel": 0, "name": "grid_barrier", "grid": [300, 1, 1], "block": [1024, 1, 1],
        "registers": 32, "static_shared_memory": 0, "dynamic_shared_memory": 0,
        "cooperative": False,
    }  # fmt: skip
    ran_before = {"ran": 0, "call": 1, "context": 1, "stream": 13, "at": [10, 20]}
    lines = [shape, ran_before, *with_code("grid_barrier", 5, 13, blocks=300, threads=1024)]
    found = of(tmp_path, *lines)
    assert found.kind == "not_hanging"
    assert "of as many blocks has ended before" in found.proof[-1]
    shape["grid"] = [100, 1, 1]
    assert of(tmp_path, *lines).kind == "room"


def test_writer_before_a_kernel_in_its_stream_has_ended(tmp_path: Path) -> None:
    flag = 0x7F0000001000
    writer = with_code("takes_work", 1, 13, arguments=[0, flag, 8, 0x7F0000002000])
    lines = *writer, *with_code("acquires", 2, 13, arguments=[0, flag])
    assert of(tmp_path, *lines).kind == "not_known"


def test_copy_of_the_host_in_the_legacy_stream_behind_a_kernel(tmp_path: Path) -> None:
    def copied(function: str, kernel: str, stream: int) -> tb.HangReport:
        copy = {**of_stream(2, 7, "copy", function), "bytes": 4}
        return of(tmp_path, *with_code(kernel, 1, stream), copy, inside(2, function))

    found = copied("cuMemcpyHtoD_v2", "acquires", 15)
    assert found.kind == "legacy_stream"
    assert {fix.kind for fix in found.fixes} == {"non_blocking"}
    assert copied("cuMemcpyHtoD_v2", "grid_barrier", 15).kind == "inside_kernel"
    assert copied("cuMemcpyDtoH_v2", "acquires", 15).kind == "host"
    assert copied("cuMemcpyHtoD_v2", "acquires", 7).kind == "host"


WRITES = [
    ("memset", "cuMemsetD8_v2"), ("memset", "cuMemsetD32Async"), ("copy", "cuMemcpyDtoDAsync_v2"),
    ("copy", "cuMemcpyHtoDAsync_v2"), ("copy", "cuMemcpyAsync"), ("copy", "cuMemcpy3DAsync_v2"),
    ("write_value", "cuStreamWriteValue32_v2"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "function"), WRITES)
@pytest.mark.parametrize(("of_kernel", "of_write"), [(15, 7), (7, 15)])
def test_write_that_was_issued_at_the_legacy_stream_behind_a_kernel(
    tmp_path: Path, what: str, function: str, of_kernel: int, of_write: int
) -> None:
    write = {**of_stream(2, of_write, what, function), "bytes": 4}
    synchronizes = inside(3, "cuCtxSynchronize")
    found = of(tmp_path, *with_code("acquires", 1, of_kernel), write, synchronizes)
    assert found.kind == "legacy_stream"
    assert {fix.kind for fix in found.fixes} == {"non_blocking"}
    assert "of call 2 waits at the legacy default stream for acquires; the code" in found.reason
    assert "the addresses of the two are not both known" in found.unseen[-1]
    for other in (13, of_kernel):  # where only the program's own order holds it, or nothing
        found = of(tmp_path, *with_code("acquires", 1, of_kernel), {**write, "stream": other})
        assert found.kind == "inside_kernel"


def test_write_behind_an_event_that_the_legacy_stream_holds_up(tmp_path: Path) -> None:
    record, wait = ({**of_stream(k, 6 + k, "record", "cuEventRecord"), "event": 5} for k in (1, 2))
    record, wait = {**record, "issued": 2}, {**wait, "issued": 3, "what": "wait", "stream": 13}
    memset = of_stream(4, 13, "memset", "cuMemsetD8Async")
    spins = with_code("acquires", 1, 15)
    assert of(tmp_path, *spins, record, wait, memset).kind == "legacy_stream"
    record["stream"] = 15  # so the program asks for that order
    assert of(tmp_path, *spins, record, wait, memset).kind == "inside_kernel"


def test_write_at_the_legacy_stream_that_others_may_make(tmp_path: Path) -> None:
    memset = of_stream(2, 7, "memset", "cuMemsetD8_v2")
    spins = with_code("acquires", 1, 15, arguments=[0, 0x7F0000001000])
    for other in (
        [issued(3, 13, "unknown")],
        [*with_code("grid_barrier", 3, 13, arguments=[0, 0x7F0000001000])],
        [of_stream(3, 13, "graph", "cuGraphLaunch")],
    ):
        assert of(tmp_path, *spins, memset, *other).kind != "legacy_stream"
    elsewhere = with_code("grid_barrier", 3, 13, arguments=[0, 0x7F0000002000])
    assert of(tmp_path, *spins, memset, *elsewhere).kind == "legacy_stream"


@pytest.mark.parametrize("key", ["busy", "asleep"])
def test_host_that_goes_on_may_issue_what_a_kernel_waits_for(tmp_path: Path, key: str) -> None:
    memset = of_stream(2, 7, "memset", "cuMemsetD8_v2")
    news = {"alive": 8_000_000_000, key: [4711]}
    for lines, kind in (
        (with_code("acquires", 1, 13), "inside_kernel"),
        ((*with_code("acquires", 1, 15), memset), "legacy_stream"),
    ):
        assert of(tmp_path, *lines).kind == kind
        found = of(tmp_path, *lines, news)
        assert (found.kind, found.may_be) == ("not_known", (kind, "not_hanging"))
        assert "thread 4711 of the host goes on" in found.reason
    of_itself = with_code("grid_barrier", 1, 13)  # no work to come ends its wait
    assert of(tmp_path, *of_itself, news).kind == "inside_kernel"


def test_function_of_the_host_at_the_legacy_stream_behind_a_kernel(tmp_path: Path) -> None:
    spins = with_code("polls_host", 1, 15, host=(8,))
    function = of_stream(2, 7, "host_function", "cuLaunchHostFunc")
    found = of(tmp_path, *spins, function)
    assert (found.kind, found.may_be) == ("not_known", ("legacy_stream", "host"))
    assert of(tmp_path, *spins, of_stream(2, 7, "memset", "cuMemsetD8_v2")).kind != "legacy_stream"


def test_loop_without_a_way_out() -> None:
    assert code("endless").has_endless_loop
    assert code("endless").may_wait


def test_kernel_without_a_loop_can_only_wait_at_its_barrier() -> None:
    assert code("named_barrier").must_wait


def cooperates(name: str, **more: object) -> list[dict[str, Any]]:
    return [*with_code(name, 1, 13, blocks=264, threads=512, cooperative=True, **more)]


@pytest.mark.parametrize(
    ("name", "who"),
    [("stencil", "all"), ("coop_converges", "by_memory"), ("coop_skips", None),
     ("grid_barrier", None)],
)  # fmt: skip
def test_who_comes_to_the_barriers_of_a_cooperative_grid(name: str, who: str | None) -> None:
    assert code(name).grid_barrier == who


def test_cooperative_solver_of_many_steps_is_slow(tmp_path: Path) -> None:
    found = of(tmp_path, *cooperates("stencil"), inside(2, "cuCtxSynchronize"))
    assert (found.kind, found.hangs) == ("not_hanging", False)
    assert "stencil is slow: nothing in the code keeps a block from a barrier" in found.reason
    # Not launched as one, its blocks need not all be on the GPU.
    assert of(tmp_path, *with_code("stencil", 1, 13)).kind == "not_known"
    # It waits for room beside a kernel that stays.
    holder = with_code("acquires", 0, 14, blocks=1, threads=1024)
    assert of(tmp_path, *holder, *cooperates("stencil", registers=64)).kind == "room"


def test_barriers_of_a_grid_that_differ_by_memory_or_by_block(tmp_path: Path) -> None:
    found = of(tmp_path, *cooperates("coop_converges"))
    assert (found.kind, found.may_be) == ("not_known", ("inside_kernel", "not_hanging"))
    assert "depends on memory" in found.reason
    assert of(tmp_path, *cooperates("coop_skips")).kind == "not_known"


def test_kernel_that_hands_over_at_a_barrier_may_wait_for_ever(tmp_path: Path) -> None:
    found = code("hands_over")
    assert found.loops > 0
    assert not found.polls
    assert found.may_wait
    assert not found.waits_in_block_only
    lines = *with_code("hands_over", 1, 13), inside(2, "cuCtxSynchronize")
    assert of(tmp_path, *lines).kind == "not_known"


def test_blocks_of_a_chained_scan_wait_for_earlier_ones_alone(tmp_path: Path) -> None:
    assert code("chained").waits_for_earlier_blocks
    assert not code("chained_back").waits_for_earlier_blocks
    assert not code("grid_barrier").waits_for_earlier_blocks
    chained, back = (with_code(name, 1, 13, blocks=90_000) for name in ("chained", "chained_back"))
    found = of(tmp_path, *chained)
    assert (found.kind, found.reason.partition(":")[0]) == ("not_hanging", "chained is slow")
    assert "blocks start in their order" in found.proof[-1]
    assert of(tmp_path, *back).kind == "room"


def test_chain_in_which_a_block_may_return_without_a_word_may_hang(tmp_path: Path) -> None:
    """It is no matter of room: the next block waits, and later blocks only for that one."""
    for name in ("chain_skips", "lookback_lost"):
        assert code(name).waits_for_earlier_blocks
        assert not code(name).is_chain
        for blocks in (700, 90_000):
            launch = with_code(name, 1, 13, blocks=blocks, small_arguments=[16, 10, 4, 24, 10, 4])
            assert of(tmp_path, *launch).kind in ("not_known", "inside_kernel")


def test_look_back_waits_for_earlier_blocks_alone(tmp_path: Path) -> None:
    """From the block before it on, it looks at one after the other."""
    assert code("lookback").is_chain
    assert of(tmp_path, *with_code("lookback", 1, 13, blocks=90_000)).kind == "not_hanging"


def test_grid_of_several_waves_without_code_ends_if_other_work_takes_time(tmp_path: Path) -> None:
    unknown = issued(2, 13, "gemm", 512, 1024)
    found = of(tmp_path, *with_code("waits_for_time", 1, 13), unknown)
    assert found.kind == "not_hanging"
    assert any("Whether gemm waits" in each for each in found.unseen)
    assert of(tmp_path, *with_code("acquires", 1, 13), unknown).kind == "inside_kernel"
    alone = of(tmp_path, unknown)
    assert alone.kind == "room"
    assert alone.reason.endswith("unless gemm is only slow")
    assert "The code of gemm: whether it waits for others, or computes." in alone.unseen
    spins = of(tmp_path, *with_code("acquires", 1, 13), issued(2, 14, "gemm", 5120, 1024))
    assert "only slow" not in spins.reason


@pytest.mark.parametrize(("threads", "kind"), [(64, "not_hanging"), (32, "inside_kernel")])
def test_wait_within_a_block_ends_if_it_has_in_such_a_block(
    tmp_path: Path, threads: int, kind: str
) -> None:
    """How many threads have to come may depend on how many there are."""
    kernel = {
        "kernel": 0, "name": "shared_flag", "grid": [2, 1, 1], "block": [threads, 1, 1],
        "registers": 32, "static_shared_memory": 0, "dynamic_shared_memory": 0,
        "local_memory": 0, "cooperative": False,
    }  # fmt: skip
    ran = {"ran": 0, "call": 1, "context": 1, "stream": 13, "at": [10, 20]}
    found = of(tmp_path, kernel, ran, *with_code("shared_flag", 2, 13))
    assert found.kind == kind


def test_rank_that_computes_lets_another_wait(tmp_path: Path) -> None:
    collective = issued(9, 13, "ncclDevKernel_AllReduce(int)", 24, 544)
    ranks = [
        captured(tmp_path / "rank0.jsonl", collective, ALIVE),
        captured(tmp_path / "rank1.jsonl", *with_code("waits_for_time", 1, 13), ALIVE),
    ]
    found = tb.hang(*ranks)
    assert found.kind == "not_hanging"
    assert "rank1.jsonl goes on: waits_for_time is slow" in found.reason


LISTING = (RECORDED / "code.txt").read_text("utf-8").splitlines()
INSTRUCTIONS = [line.split("*/", 1)[1].strip(" ;") for line in LISTING if "*/" in line]


@given(st.lists(st.sampled_from(INSTRUCTIONS) | st.text(max_size=30), max_size=25))
def test_any_code_has_an_answer(texts: list[str]) -> None:
    found = kernel_code(tuple([(16 * k, text) for k, text in enumerate(texts)]), BEGIN)
    assert len(found.polls) <= len(texts)


@given(st.lists(st.sampled_from(INSTRUCTIONS), max_size=25))
def test_code_that_cannot_be_reached_changes_nothing(dead: list[str]) -> None:
    texts = ["LDC.64 R2, c[0x0][0x210]", "LD.E.STRONG.GPU R0, desc[UR4][R2.64]",
             "ISETP.NE.AND P0, PT, R0, RZ, PT", "@!P0 BRA 0x10", "EXIT"]  # fmt: skip
    dead = [each for each in dead if "BRA" not in each]
    whole = kernel_code(tuple([(16 * k, text) for k, text in enumerate([*texts, *dead])]), BEGIN)
    alone = kernel_code(tuple([(16 * k, text) for k, text in enumerate(texts)]), BEGIN)
    assert whole == alone
    assert [poll.arguments for poll in alone.polls] == [(0,)]


def test_without_nvdisasm_the_answer_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TBSCHED_NVDISASM", "/nowhere/nvdisasm")
    assert disassembler() is None
    assert instructions_of(b"another", "9.0") is None
    found = of(tmp_path, *with_code("waits_for_time", 1, 13))
    assert found.kind == "not_known"
    assert any("nvdisasm" in each for each in found.unseen)


def with_code(
    name: str, call: int, stream: int, *, blocks: int = 4, threads: int = 64,
    host: tuple[int, ...] = (), **more: object,
) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
    """A launch that has not ended, and its code."""
    line = {"code": call, "name": name, "parameters_at": BEGIN, "hex": name.encode().hex()}
    launch = issued(
        call, stream, name, blocks, threads, code=call, host_arguments=list(host),
        managed_arguments=[], **more,
    )  # fmt: skip
    return line, launch


@pytest.mark.parametrize(
    ("blocks", "kernels"),
    [
        (4, ["waits_for_time"]),
        (9000, ["waits_for_time"]),
        (4, ["sums", "divides", "polls_until"]),
    ],
)
def test_slow_programs_do_not_hang(tmp_path: Path, blocks: int, kernels: list[str]) -> None:
    lines = [
        line
        for call, name in enumerate(kernels)
        for line in with_code(name, call, 13 + call % 2, blocks=blocks, threads=1024)
    ]
    found = of(tmp_path, *lines, inside(9, "cuCtxSynchronize"))
    assert (found.kind, found.hangs) == ("not_hanging", False)
    assert f"{kernels[0]}" in found.reason
    assert any("taken to be slow" in each for each in found.unseen)


def test_queue_behind_a_slow_kernel_is_no_hang(tmp_path: Path) -> None:
    def lines(first: str) -> list[dict[str, Any]]:
        return [*with_code(first, 1, 13), *with_code("divides", 2, 13), *with_code("sums", 3, 14)]

    assert of(tmp_path, *lines("waits_for_time"), connections=1).kind == "not_hanging"
    assert of(tmp_path, *lines("acquires"), connections=1).kind == "queue"


def test_consumer_of_a_slow_producer_does_not_hang(tmp_path: Path) -> None:
    flag, other = 0x7F0000001000, 0x7F0000002000

    def of_producer(place: int) -> tb.HangReport:
        lines = [*with_code("acquires", 1, 13, arguments=[0, flag]),
                 *with_code("takes_work", 2, 14, arguments=[0, place, 8, other])]  # fmt: skip
        return of(tmp_path, *lines)

    found = of_producer(flag)
    assert (found.kind, found.reason) == (
        "not_hanging", "acquires waits for what takes_work writes, which is slow",
    )  # fmt: skip
    assert any("Whether takes_work has ended" in each for each in found.unseen)
    assert of_producer(other).kind == "not_known"


def test_kernels_that_end_make_room(tmp_path: Path) -> None:
    """They may have ended already: their records come late."""
    lines = [*with_code("waits_for_time", 1, 13, blocks=264, threads=1024),
             *with_code("grid_barrier", 2, 13, blocks=300, threads=1024)]  # fmt: skip
    found = of(tmp_path, *lines)
    assert (found.kind, found.stranded[0].name, found.stranded[0].missing) == (
        "room", "grid_barrier", 36,
    )  # fmt: skip


def test_kernel_that_polls_memory_of_the_host(tmp_path: Path) -> None:
    wait = inside(9, "cuStreamSynchronize")
    found = of(tmp_path, *with_code("polls_host", 1, 13, host=(8,)), wait)
    assert found.kind == "host"
    assert "polls_host waits for memory of the host to change" in found.reason
    assert "cuStreamSynchronize" in found.reason
    assert any("calls nothing of CUDA answers it" in each for each in found.unseen)
    assert found.resident[0].does == "spins"
    assert of(tmp_path, *with_code("polls_host", 1, 13), wait).kind == "inside_kernel"


def test_copy_behind_a_kernel_is_not_what_it_waits_for(tmp_path: Path) -> None:
    lines = with_code("polls_host", 1, 13, host=(8,))
    function = "cuMemcpyDtoHAsync_v2"
    behind, beside = ({**of_stream(2, each, "copy", function), "bytes": 4} for each in (13, 14))
    found = of(tmp_path, *lines, behind, inside(2, function))
    assert found.kind == "host"
    assert found.reason.endswith(f"the host is in {function}, which has not returned")
    assert of(tmp_path, *lines, beside, inside(2, function)).kind == "inside_kernel"


def test_kernel_that_waits_for_an_answer_of_the_host(tmp_path: Path) -> None:
    found = of(tmp_path, *with_code("mailbox", 1, 13, host=(0,)))
    assert (found.kind, found.resident[0].name) == ("host", "mailbox")
    assert any("wait for each other there" in each for each in found.unseen)
    assert of(tmp_path, *with_code("mailbox", 1, 13)).kind == "not_known"


def test_host_that_goes_on_to_write_what_a_kernel_waits_for(tmp_path: Path) -> None:
    place = 0x7F0000001000

    def of_memory(name: str, at: float, *changed: int, **more: object) -> tb.HangReport:
        lines = with_code(name, 1, 13, host=(0,), arguments=[0, place, 8, place + 512])
        news = {"alive": round(at * 1e9), "changed": [*changed], **more}
        return of(tmp_path, *lines, inside(2, "cuStreamSynchronize"), news)

    found = of_memory("acquires", 8, place)
    assert (found.kind, found.hangs) == ("not_hanging", False)
    assert "the host goes on to write" in found.reason
    assert of_memory("acquires", 3, place).kind == "host"  # it did, and does no longer
    assert of_memory("acquires", 8, place + 512).kind == "host"  # of another kernel
    found = of_memory("acquires", 8, busy=[4711])
    assert (found.kind, found.may_be) == ("not_known", ("host", "not_hanging"))
    found = of_memory("mailbox", 8, place)  # which itself writes there
    assert (found.kind, found.may_be) == ("not_known", ("host", "not_hanging"))


def test_host_that_runs_in_a_driver_that_does_not_answer_is_not_slow(tmp_path: Path) -> None:
    """Calls of the driver for which CUPTI has no callback are not in the file."""

    def of_driver(*lines: dict[str, Any], **alive: object) -> tb.HangReport:
        place = tmp_path / "driver.jsonl"
        runs = {**ALIVE, "busy": [4711], **alive}
        waits = with_code("polls_host", 1, 13, host=(8,))
        return tb.hang(captured(place, *waits, *lines, runs, notes_flushes=True))

    assert of_driver().kind == "not_known"
    found = of_driver(flushing=2_000_000_000)
    assert found.kind == "host"
    assert any("thread 4711 waits in the driver" in each for each in found.proof)
    # Here another thread is known to be there.
    synchronizes = inside(2, "cuStreamSynchronize")
    assert of_driver(synchronizes, flushing=2_000_000_000).kind == "not_known"


def test_memory_that_a_kernel_itself_writes_is_no_answer_of_the_host(tmp_path: Path) -> None:
    beats, stop = 0x7F0000001000, 0x7F0000001200  # it writes to the first and polls the second
    lines = with_code("polls_host", 1, 13, host=(0, 8), arguments=[0, beats, 8, stop])
    wait = inside(2, "cuEventSynchronize")
    for changed, kind in ((beats, "host"), (stop, "not_hanging")):
        news = {"alive": 8_000_000_000, "changed": [changed]}
        assert of(tmp_path, *lines, wait, news).kind == kind
    with_third = {**lines[1], "arguments": [0, beats, 8, stop, 16, 0x7F0000001400]}
    with_third["host_arguments"] = [0, 8, 16]  # it does not write there
    news = {"alive": 8_000_000_000, "changed": [0x7F0000001400]}
    found = of(tmp_path, lines[0], with_third, wait, news)
    assert (found.kind, found.may_be) == ("not_known", ("host", "not_hanging"))


def test_kernel_that_would_write_to_the_host_explains_the_wait(tmp_path: Path) -> None:
    lines = [*with_code("polls_host", 1, 13, host=(8,)), *with_code("divides", 2, 13),
             *with_code("sums", 3, 14, host=(0,))]  # fmt: skip
    assert of(tmp_path, *lines, connections=1).kind == "queue"
    lines[-1] = {**lines[-1], "host_arguments": []}
    assert of(tmp_path, *lines, connections=1).kind == "host"


@pytest.mark.parametrize("function", ["cuMemcpyHtoD_v2", "cuMemcpyDtoHAsync_v2"])
def test_blocking_copy_behind_a_kernel_that_waits(function: str, tmp_path: Path) -> None:
    copy = inside(2, function)
    assert of(tmp_path, *with_code("acquires", 1, 15), copy).kind == "host"
    assert of(tmp_path, *with_code("grid_barrier", 1, 15), copy).kind == "inside_kernel"


def test_driver_that_gives_no_records_loads_code(tmp_path: Path) -> None:
    lines = [*with_code("acquires", 1, 13), *with_code("sums", 2, 14),
             inside(9, "cuCtxSynchronize_v2")]  # fmt: skip
    assert of(tmp_path, *lines, notes_flushes=True).kind == "inside_kernel"
    stuck = {**ALIVE, "flushing": 1_000_000_000}
    found = of(tmp_path, *lines, stuck, notes_flushes=True, tbsched_capture=1)
    assert found.kind == "inside_kernel"  # CUPTI has answered since
    place = tmp_path / "stuck.jsonl"
    place.write_text(
        (tmp_path / "run.jsonl").read_text("utf-8") + f"{json.dumps(stuck)}\n", "utf-8"
    )
    found = tb.hang(place)
    assert (found.kind, found.stranded[0].name) == ("loading", "sums")
    assert "CUDA_MODULE_LOADING=EAGER" in found.fixes[0].text
    loaded = [{"loading": "function", "call": call, "at": [1, 2]} for call in (7, 8)]
    with place.open("a", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in loaded)
    assert tb.hang(place).kind == "inside_kernel"  # all that were launched had been loaded
    graph = {**of_stream(3, 14, "graph", "cuGraphLaunch")}
    with place.open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps(graph)}\n")
    assert tb.hang(place).kind == "loading"


def test_kernels_that_answer_each_other_may_be_slow(tmp_path: Path) -> None:
    assert code("acquires").only_waits
    assert not code("plays").only_waits  # it computes between two polls
    found = of(tmp_path, *with_code("plays", 1, 13), *with_code("plays", 2, 14))
    assert (found.kind, found.may_be) == ("not_known", ("inside_kernel", "not_hanging"))


def test_blocks_that_take_turns_by_their_number_are_slow(tmp_path: Path) -> None:
    assert code("in_turn").waits_for_earlier_blocks
    found = of(tmp_path, *with_code("in_turn", 1, 13, blocks=3000))
    assert found.kind == "not_hanging"


def test_grid_of_more_blocks_than_the_model_takes(tmp_path: Path) -> None:
    found = of(tmp_path, *with_code("sums", 1, 13, blocks=2_000_000_000))
    assert found.kind == "not_hanging"
    found = of(tmp_path, *with_code("grid_barrier", 1, 13, blocks=2_000_000_000, threads=1024))
    assert (found.kind, found.stranded[0].missing) == ("room", 2_000_000_000 - 264)
    assert found.resident[0].running == 264


def test_programmatic_launch_takes_the_room_of_others(tmp_path: Path) -> None:
    memory = {"dynamic_shared_memory": 100 << 10}
    first = with_code("triggers", 1, 13, blocks=132, threads=128, **memory)
    second = with_code("waits_for_previous", 2, 13, blocks=132, threads=128, **memory)
    second[1]["programmatic"] = True
    found = of(tmp_path, *first, *second, issued(3, 14, "route", 16, 128, **memory))
    assert (found.kind, found.stranded[0].name, found.stranded[0].missing) == ("room", "route", 16)


def test_cooperative_launch_names_what_there_is_too_little_of(tmp_path: Path) -> None:
    memory = {"dynamic_shared_memory": 120 << 10}
    holder = with_code("acquires", 1, 13, blocks=10, **memory)
    solve = {**issued(2, 14, "solve", 132, 256, **memory), "cooperative": True}
    found = of(tmp_path, *holder, solve)
    row = found.stranded[0]
    assert (found.kind, row.missing, row.cause) == ("room", 132, "shared_memory")


@pytest.mark.parametrize(
    ("change", "only_waits"),
    [({}, True), ({0x60: "ISETP.NE.AND P1, PT, R4, R6, PT"}, False),
     ({0x48: "@P2 BRA 0x60"}, False),
     ({0x10: "S2R R4, SR_TID.X"}, True),  # or it passes its end, which is no work
     ({0x50: "@P2 IADD3 R4, R4, 0x1, RZ"}, False),
     ({0x10: "S2R R4, SR_TID.X", 0x60: "ISETP.LT.AND P1, PT, R4, 0xa, PT"}, True),
     ({0x10: "S2R R4, SR_TID.X", 0x60: "ISETP.GT.AND P1, PT, R4, 0xa, PT"}, False),
     ({0x10: "LDG.E R4, desc[UR4][R2.64]", 0x60: "ISETP.LT.AND P1, PT, R4, 0xa, PT"}, False),
     ({0x10: "LDG.E R5, desc[UR4][R2.64]", 0x18: "LOP3.LUT R4, R5, 0x3, RZ, 0xc0, !PT",
       0x60: "ISETP.LT.AND P1, PT, R4, 0xa, PT"}, True),
     ({0x10: "S2R R4, SR_TID.X", 0x18: "@P3 LDG.E R4, desc[UR4][R2.64]",
       0x60: "ISETP.LT.AND P1, PT, R4, 0xa, PT"}, False),
     ({0x50: "IADD3 R4, R4, c[0x0][0x0], RZ", 0x60: "ISETP.LT.AND P1, PT, R4, 0xa, PT"}, True),
     ({0x50: "IADD3 R4, R4, c[0x0][0x218], RZ", 0x60: "ISETP.LT.AND P1, PT, R4, 0xa, PT"}, False),
     ({0x60: "ISETP.NE.AND P1, PT, R4, 0x7fffff, PT"}, False),
     ({0x50: "IADD3 R4, R4, 0x3, RZ"}, True),  # so does this one
     ({0x10: "S2R R4, SR_TID.X", 0x50: "IADD3 R4, R4, -0x1, RZ",
       0x60: "ISETP.NE.AND P1, PT, R4, RZ, PT"}, True),  # and the thread that begins with 0
     ({0x10: "S2R R4, SR_TID.X", 0x14: "ISETP.NE.AND P2, PT, R4, RZ, PT", 0x18: "@!P2 BRA 0x80",
       0x50: "IADD3 R4, R4, -0x1, RZ", 0x60: "ISETP.NE.AND P1, PT, R4, RZ, PT"}, True),
     ({0x14: "MOV R7, RZ", 0x1c: "MOV R4, RZ", 0x74: "IADD3 R7, R7, 0x1, RZ",
       0x78: "ISETP.LT.AND P1, PT, R7, 0x64, PT", 0x7c: "@P1 BRA 0x1c"}, True),
     ({0x14: "MOV R7, RZ", 0x1c: "MOV R4, RZ", 0x60: "ISETP.NE.AND P1, PT, R4, 0xffff, PT",
       0x74: "IADD3 R7, R7, 0x1, RZ", 0x78: "ISETP.LT.AND P1, PT, R7, 0x640, PT",
       0x7c: "@P1 BRA 0x1c"}, False)],  # many turns of many turns
)  # fmt: skip
def test_loop_of_few_turns_takes_long_only_by_waiting(
    change: dict[int, str], only_waits: bool
) -> None:
    rows = {
        0x00: "LDC.64 R2, c[0x0][0x210]",
        0x10: "MOV R4, RZ",
        0x20: "LDG.E.STRONG.SYS R0, desc[UR4][R2.64]",
        0x30: "ISETP.NE.AND P0, PT, R0, RZ, PT",
        0x40: "@!P0 BRA 0x20",
        0x50: "IADD3 R4, R4, 0x1, RZ",
        0x60: "ISETP.NE.AND P1, PT, R4, 0xa, PT",
        0x70: "@P1 BRA 0x20",
        0x80: "EXIT",
    }
    found = kernel_code(tuple(sorted((rows | change).items())), BEGIN)
    assert len(found.polls) == 1
    assert found.only_waits == only_waits


@pytest.mark.parametrize(
    ("change", "only_waits"),
    [({}, True), ({0x60: "NOP"}, False), ({0x60: "ISETP.LT.AND P0, PT, R15, 0x1, P0"}, False),
     ({0x60: "ISETP.GT.OR P0, PT, R15, 0x1, P0"}, False),
     ({0x60: "ISETP.LT.OR P0, PT, R10, 0x1, P0"}, False),
     ({0x60: "ISETP.GE.AND P0, PT, R15, 0x1, P0", 0x70: "@P0 VIADD R15, R15, 0xffffffff"}, True),
     ({0x70: "@P0 VIADD R15, R15, 0xffffffff"}, False), ({0x70: "VIADD R15, R15, 0x1"}, False),
     ({0x70: "@!P0 VIADD R15, R15, 0x1"}, False),
     ({0x70: "@!P0 LDG.E R15, desc[UR6][R8.64]"}, False),
     ({0x20: "LDG.E R15, desc[UR6][R8.64]"}, False),
     ({0x75: "@P0 IADD3 R15, R15, 0x2, RZ"}, False)],
)  # fmt: skip
def test_loop_that_polls_one_place_after_the_other_up_to_a_limit(
    change: dict[int, str], only_waits: bool
) -> None:
    rows = {
        0x00: "S2R R19, SR_CTAID.X",
        0x10: "LDC.64 R8, c[0x0][0x210]",
        0x20: "IADD3 R15, R19, -0x1, RZ",
        0x30: "IMAD.WIDE R10, R15, 0xc, R8",
        0x40: "LDG.E.STRONG.SYS R10, desc[UR6][R10.64]",
        0x50: "ISETP.NE.AND P0, PT, R10, 0x1, PT",
        0x60: "ISETP.LT.OR P0, PT, R15, 0x1, P0",
        0x70: "@!P0 VIADD R15, R15, 0xffffffff",
        0x80: "ISETP.NE.AND P1, PT, R10, 0x2, PT",
        0x90: "@P1 BRA 0x30",
        0xA0: "EXIT",
    }
    assert kernel_code(tuple(sorted((rows | change).items())), BEGIN).only_waits == only_waits


@pytest.mark.parametrize(
    ("name", "words", "turns"),
    [
        ("grid_sync_steps", [8, 10, 4], 12),  # its wait is behind the kernel's last instruction
        ("try_wait", [8, 8, 4], 4),  # one of four phases, and what is left of them
        ("plays_in_turn", [8, 0, 4, 12, 10, 4], 12),  # the second half of a register pair
        ("follows_links", [16, 100, 4], 102),  # the count is the second operand
    ],
)
def test_loops_that_the_compiler_has_taken_apart(
    tmp_path: Path, name: str, words: list[int], turns: int
) -> None:
    places = zip(words[::3], words[1::3], strict=True)
    instructions = instructions_of(name.encode(), "9.0")
    assert instructions is not None
    constants = {BEGIN + place: (value, value) for place, value in places}
    assert kernel_code(instructions, BEGIN, constants).only_waits
    assert not kernel_code(instructions, BEGIN).only_waits
    ordered = with_loops_in_one_piece(instructions)
    reader = _KernelReader(ordered, BEGIN, constants)
    assert {reader.ranges.turns(loop) for loop in reader.loops} >= {None, turns}
    assert with_loops_in_one_piece(ordered) == ordered
    found = of(tmp_path, *with_code(name, 1, 13, small_arguments=words, cooperative=False))
    assert found.kind == "inside_kernel"


def test_writes_on_other_ways_do_not_count() -> None:
    """A register of the address is written again on the way to the poll."""
    assert not code("sense_barrier").writes_anywhere
    assert not code("heartbeat").writes_anywhere  # a guarded instruction loads the address
    assert code("heartbeat").only_waits
    assert code("waits_in_function").polls[0].arguments == (0,)  # by its caller


def test_steps_between_barriers_until_memory_has_converged_are_no_wait(tmp_path: Path) -> None:
    found = of(tmp_path, *with_code("jacobi_residual", 1, 13, blocks=132, threads=256))
    assert (found.kind, found.may_be) == ("not_known", ("inside_kernel", "not_hanging"))


def test_long_chain_of_additions_in_a_loop_is_read_soon() -> None:
    """Each is made of the one before."""
    rows = [f"IADD3 R{4 + k % 9}, R{4 + (k + 8) % 9}, 0x1, RZ" for k in range(900)]
    texts = [*rows, "ISETP.LT.AND P0, PT, R11, c[0x0][0x210], PT", "@P0 BRA 0x0", "EXIT"]
    found = kernel_code(tuple([(16 * k, text) for k, text in enumerate(texts)]), BEGIN)
    assert (found.loops, found.open_loops) == (1, 0)


def test_semaphore_of_libcu_waits() -> None:
    assert code("semaphore").only_waits


@pytest.mark.parametrize(
    ("name", "threads", "words"),
    [
        ("smooth", 256, [16, 16, 4, 20, 20, 4]),  # cuda::pipeline; a turn for each lane, too
        ("equalise", 256, [8, 256, 4]),  # a counter of a byte never comes to 256
        ("transfer", 32, [16, 100, 4]),  # between two locks it waits for 20,000 cycles
    ],
)
def test_loops_that_are_over_soon_or_never(
    tmp_path: Path, name: str, threads: int, words: list[int]
) -> None:
    launch = with_code(name, 1, 13, threads=threads, small_arguments=words)
    assert of(tmp_path, *launch).kind == "inside_kernel"


def test_branch_that_never_leaves_ends_no_loop() -> None:
    instructions = instructions_of(b"equalise", "9.0")
    assert instructions is not None
    for levels, is_endless in ((256, True), (255, False), (-1, False)):
        found = kernel_code(instructions, BEGIN, {BEGIN + 8: (levels, levels)})
        assert found.has_endless_loop is is_endless


def test_lock_that_a_thread_gives_back_before_it_tries_no_more(tmp_path: Path) -> None:
    """So the threads of its warp that still try do not keep it from that."""
    assert code("done_flag_lock").releases_lock
    assert of(tmp_path, *with_code("done_flag_lock", 1, 13)).kind == "not_hanging"


@pytest.mark.parametrize(
    ("name", "words", "kind"),
    [
        ("scan_mail", [], "inside_kernel"),  # of 32 boxes
        ("hash_insert", [8, 1023, 4, 12, 2000, 4], "inside_kernel"),  # the table is full
        ("hash_insert", [8, (1 << 28) - 1, 4, 12, 2000, 4], "not_known"),
        ("compute_then_wait", [8, 1000, 4], "inside_kernel"),
        ("compute_then_wait", [8, 1 << 30, 4], "not_known"),
        ("waits_for_each", [8, 1000, 4], "not_known"),  # it does something in between
        ("works_until_done", [], "not_known"),
        ("traps_late", [], "not_hanging"),
    ],
)
def test_waits_with_something_else_in_between(
    tmp_path: Path, name: str, words: list[int], kind: str
) -> None:
    found = of(tmp_path, *with_code(name, 1, 13, small_arguments=words))
    assert found.kind == kind, found.text


def test_loop_that_a_flag_or_the_clock_ends_is_no_wait(tmp_path: Path) -> None:
    """One branch of two predicates leaves it: ``@!P0 BRA P1``."""
    assert not code("timeout_poll").polls
    assert of(tmp_path, *with_code("timeout_poll", 1, 13)).kind == "not_hanging"
    assert Instruction(0, "@!P0 BRA P1, 0x50").guards == {"P0", "P1"}
    assert of(tmp_path, *with_code("acquires", 1, 13)).kind == "inside_kernel"  # by no clock


LONG = 1_000_000


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("named_bar", [8, 2 * 10**9, 4]),  # bar.arrive; four turns at once
        ("mbar_long", [8, LONG, 4, 12, LONG, 4]),  # the counter is the second operand
        ("tma_long", [16, LONG, 4, 20, LONG, 4]),  # a turn loads the limit again
        ("pipe_long", [16, LONG, 4, 20, LONG, 4]),  # cuda::pipeline
        ("shared_ring", [16, LONG, 4, 20, LONG, 4]),  # its address is computed in each turn
    ],
)
def test_counts_say_whether_a_kernel_that_waits_may_only_be_slow(
    tmp_path: Path, name: str, words: list[int]
) -> None:
    """The same kernel: with a few turns it can take long only by waiting; with many it must."""
    few = [5 if place % 3 == 1 else word for place, word in enumerate(words)]
    for own, kind in ((few, "inside_kernel"), (words, "not_hanging"), ([], "not_known")):
        launch = with_code(name, 1, 13, threads=128, small_arguments=own)
        found = of(tmp_path, *launch)
        assert found.kind == kind, found.text
    assert "too short for" in of(tmp_path, *with_code(name, 1, 13, small_arguments=words)).reason


def test_long_work_leaves_no_memory_alone_to_which_it_stores() -> None:
    constants = {BEGIN + place: (2000 * LONG, 2000 * LONG) for place in (8, 12)}
    for name, is_quiet in (("mbar_long", True), ("named_bar", False)):
        instructions = instructions_of(name.encode(), "9.0")
        assert instructions is not None
        found = kernel_code(instructions, BEGIN, constants)
        assert found.instructions_at_least >= LONG
        assert bool(found.instructions_without_store) == is_quiet


@pytest.mark.parametrize(("turns", "kind"), [(4, "inside_kernel"), (1 << 30, "not_hanging")])
def test_barrier_to_which_some_threads_do_not_come(tmp_path: Path, turns: int, kind: str) -> None:
    launch = with_code("sync_in_branch", 1, 13, threads=96, small_arguments=[8, turns, 4])
    assert of(tmp_path, *launch, inside(2, "cuStreamSynchronize")).kind == kind
    assert of(tmp_path, *launch).kind == "not_hanging"  # its record may come late
    many = with_code("sync_in_branch", 1, 13, threads=96, blocks=10_000, small_arguments=[8, 4, 4])
    assert of(tmp_path, *many, inside(2, "cuStreamSynchronize")).kind == "not_hanging"
    launches = [
        line
        for call in range(1, 6)
        for line in with_code("sync_in_branch", call, 13, small_arguments=[8, 4, 4])
    ]
    assert of(tmp_path, *launches, inside(9, "cuStreamSynchronize")).kind == "not_hanging"
    copy = {**of_stream(2, 13, "copy", "cuMemcpyDtoHAsync_v2"), "bytes": 1 << 20}
    small = with_code("sync_in_branch", 1, 13, threads=96, small_arguments=[8, 4, 4])
    for size, kind_behind in ((1 << 20, "inside_kernel"), (1 << 32, "not_hanging")):
        lines = *small, {**copy, "bytes": size}, inside(3, "cuStreamSynchronize")
        assert of(tmp_path, *lines).kind == kind_behind
