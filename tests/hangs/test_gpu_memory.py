"""What a capture has read of the GPU's memory while nothing ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tbsched as tb
from hangs.test_code import code, disassembles, with_code
from hangs.test_hang import issued, of
from tbsched.hangs.code import kernel_code

RING = 0x7F0040001000  # its lower half is a large count, where a kernel takes one
__all__ = ["disassembles"]  # the fixture


def read(address: int = RING, **more: object) -> dict[str, Any]:
    """Memory that was read five times at last before the capture's end."""
    at = [7_800_000_000, 8_900_000_000]
    return {"gpu_memory": address, "bytes": 4096, "reads": 5, "at": at, **more}


def of_ring(place: Path, *reads: dict[str, Any]) -> tb.HangReport:
    """The report of a kernel that takes from a ring at its first argument."""
    return of(place, *with_code("ring_pop", 1, 13, arguments=[0, RING, 8, RING + 512]), *reads)


def test_kernel_that_polls_memory_that_stands_still_hangs(tmp_path: Path) -> None:
    assert not code("ring_pop").only_waits
    assert of_ring(tmp_path).kind == "not_known"
    found = of_ring(tmp_path, read())
    assert found.kind == "inside_kernel"
    assert (
        "None of the 4,096 bytes to which arguments of ring_pop point, and that were read 5 times, "
        "has changed for 1.1 s." in found.proof
    )


def test_memory_that_could_not_be_read_is_said(tmp_path: Path) -> None:
    def says(*reads: dict[str, Any], **header: object) -> bool:
        lines = with_code("ring_pop", 1, 13, arguments=[0, RING])
        unseen = of(tmp_path, *lines, *reads, **header).unseen
        return any("it was not read, or not long enough" in each for each in unseen)

    assert says(reads_gpu_memory=True)
    assert says(read(reads=1), reads_gpu_memory=True)
    assert not says(read(returned=1), reads_gpu_memory=True)
    assert not says()  # without --hang-after


@pytest.mark.parametrize(
    "change",
    [
        {"gpu_memory": RING + 512},  # not what it polls
        {"reads": 3},
        {"at": [8_000_000_000, 8_900_000_000]},
        {"at": [1_800_000_000, 2_900_000_000]},  # long ago
    ],
)
def test_memory_that_was_not_read_well_enough_says_nothing(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    assert of_ring(tmp_path, read(**change)).kind == "not_known"


def test_kernel_that_may_compute_for_long_may_leave_its_memory_alone(tmp_path: Path) -> None:
    assert code("plays").may_compute_long
    plays = with_code("plays", 1, 13, arguments=[0, RING, 8, RING + 256, 16, RING + 512])
    found = of(tmp_path, *plays, read())
    assert (found.kind, found.may_be) == ("not_known", ("inside_kernel", "not_hanging"))
    assert any(each.startswith("None of the 4,096 bytes") for each in found.proof)


def test_kernel_without_code_beside_it_may_be_what_it_waits_for(tmp_path: Path) -> None:
    beside = issued(2, 14, "beside")
    ring = with_code("ring_pop", 1, 13, arguments=[0, RING])
    assert of(tmp_path, *ring, beside, read()).kind == "not_known"


@pytest.mark.parametrize("kernel", ["ring_pop", "acquires", "plays"])
def test_counter_that_goes_on_is_no_hang(tmp_path: Path, kernel: str) -> None:
    """Whatever the code lets one expect."""
    lines = with_code(kernel, 1, 13, arguments=[0, RING, 8, RING + 512, 16, RING + 1024])
    found = of(tmp_path, *lines, read(counted=2, counted_at=[RING + 8, RING + 520]))
    assert found.kind == "not_hanging"
    assert found.reason == (
        f"memory of the GPU to which an argument of {kernel} points goes on changing"
    )


def test_memory_that_was_read_before_has_stood_still_since(tmp_path: Path) -> None:
    earlier = read(at=[6_700_000_000, 7_800_000_000], counted=1, counted_at=[RING])
    assert of_ring(tmp_path, earlier, read()).kind == "inside_kernel"


@pytest.mark.parametrize(
    "change", [{"returned": 1}, {"once": 1}, {"renewed": 1, "renewed_at": [RING + 4]}]
)
def test_lock_that_comes_and_goes_decides_nothing(tmp_path: Path, change: dict[str, Any]) -> None:
    found = of_ring(tmp_path, read(**change))
    assert (found.kind, found.may_be) == ("not_known", ("inside_kernel", "not_hanging"))
    assert any(each.startswith("Whether it gets on: memory") for each in found.unseen)


def test_data_with_new_values_is_progress_and_what_is_polled_is_not(tmp_path: Path) -> None:
    def new(address: int) -> str:
        return of_ring(tmp_path, read(renewed=1, renewed_at=[address])).kind

    assert new(RING + 516) == "not_hanging"
    assert new(RING + 4) == "not_known"


def test_what_threads_count_while_they_poll_is_no_progress(tmp_path: Path) -> None:
    assert code("counts_clients").written_while_polling == {0, 8}
    waits = with_code("counts_clients", 1, 13, arguments=[0, RING, 8, RING + 512])
    assert of(tmp_path, *waits, read(counted=1, counted_at=[RING + 512])).kind != "not_hanging"


def test_room_is_a_matter_of_the_model(tmp_path: Path) -> None:
    lines = with_code("ring_pop", 1, 13, blocks=300, threads=1024, arguments=[0, RING])
    assert of(tmp_path, *lines, read()).kind == "room"


def test_grid_without_room_for_all_its_blocks_may_get_on(tmp_path: Path) -> None:
    """Its own memory says so; that of another kernel says nothing of it."""
    beside = with_code("polls_host", 0, 14, arguments=[0, RING + 1024, 8, RING + 2048])
    for words, kind in (({}, "room"), ({"counted": 1, "counted_at": [RING]}, "not_hanging")):
        for name, blocks in (("ring_pop", 300), ("chain_skips", 90_000)):
            lines = with_code(
                name, 1, 13, blocks=blocks, threads=1024, arguments=[0, RING, 8, RING + 512],
                small_arguments=[16, 10, 4],
            )  # fmt: skip
            wanted = kind if name == "ring_pop" or kind != "room" else "inside_kernel"
            found = of(tmp_path, *lines, read(**words))
            assert found.kind == wanted, found.text
    ring = with_code("ring_pop", 1, 13, blocks=300, threads=1024, arguments=[0, RING])
    other = read(counted=1, counted_at=[RING + 1024])
    assert of(tmp_path, *ring, *beside, other).kind == "room"


def test_counted_loop_in_parts_is_soon_over_if_its_count_is_known(tmp_path: Path) -> None:
    """The compiler takes 16 turns at once, then 8, then 4 in a loop of their own."""
    assert code("in_parts").may_compute_long  # with a count that is not known
    for count, kind in ((100_000, "inside_kernel"), (100_000_000, "not_known")):
        lines = with_code(
            "in_parts", 1, 13, arguments=[0, RING, 8, RING + 256, 16, RING + 512],
            small_arguments=[24, count, 4],
        )  # fmt: skip
        assert of(tmp_path, *lines, read()).kind == kind


def test_kernel_that_waits_in_shared_memory_alone_leaves_its_memory_alone(tmp_path: Path) -> None:
    """Its loops have as many turns as the block has threads, or a warp."""
    lines = with_code("shares_row", 1, 13, arguments=[0, RING, 8, RING + 512])
    assert of(tmp_path, *lines, read()).kind == "inside_kernel"


@pytest.mark.parametrize("kernel", ["stages", "coop_converges"])
def test_steps_that_are_counted_in_no_memory_that_was_read_may_go_on(
    tmp_path: Path, kernel: str
) -> None:
    """At barriers in shared memory, and of the grid, whose memory is the driver's."""
    waits = with_code(kernel, 1, 13, arguments=[0, RING])
    assert of(tmp_path, *waits, read()).kind == "not_known"


def test_what_each_turn_of_a_loop_must_leave_in_memory() -> None:
    rows = {
        0x00: "LDC.64 R2, c[0x0][0x210]",
        0x10: "LDC.64 R8, c[0x0][0x218]",
        0x20: "LDG.E.STRONG.SYS R0, desc[UR4][R2.64]",
        0x30: "ISETP.NE.AND P0, PT, R0, RZ, PT",
        0x40: "@!P0 BRA 0x20",
        0x50: "IADD3 R4, R4, 0x1, RZ",
        0x60: "ISETP.NE.AND P1, PT, R4, R7, PT",
        0x70: "@P1 BRA 0x20",
        0x80: "EXIT",
    }
    for row, at in (
        ("NOP", None),
        ("STG.E desc[UR4][R8.64], R4", None),
        ("REDG.E.ADD.F32.FTZ.RN.STRONG.GPU desc[UR4][R8.64], R4", None),  # may be saturated
        ("REDG.E.ADD.STRONG.GPU desc[UR4][R8.64], R4", 8),
        ("STG.E.STRONG.SYS desc[UR4][R8.64], R4", 8),
    ):
        found = kernel_code(tuple(sorted((rows | {0x68: row}).items())), 0x210)
        assert found.may_compute_long == (at is None), row
        assert found.traced == ({at} - {None})


@pytest.mark.parametrize(
    ("change", "is_long"),
    [
        ({}, False),
        ({0x50: "ISETP.GE.U32.AND P0, PT, R14, 0x7fffffff, PT"}, True),  # a second
        ({0x50: "ISETP.GE.U32.AND P0, PT, R14, R20, PT"}, True),
        ({0x60: "ISETP.GE.AND.EX P0, PT, R12, 0x1, PT, P0"}, True),
        ({0x20: "MOV R12, RZ"}, True),
    ],
)
def test_loop_that_a_clock_ends_is_over_soon_if_its_time_is_known(
    change: dict[int, str], is_long: bool
) -> None:
    rows = {
        0x10: "CS2R R10, SR_CLOCKLO",
        0x20: "CS2R R12, SR_CLOCKLO",
        0x30: "IADD3 R14, P0, -R10, R12, RZ",
        0x40: "IMAD.X R12, R13, 0x1, ~R11, P0",
        0x50: "ISETP.GE.U32.AND P0, PT, R14, 0x4e20, PT",
        0x60: "ISETP.GE.AND.EX P0, PT, R12, RZ, PT, P0",
        0x70: "@!P0 BRA 0x20",
        0x80: "EXIT",
    }
    code_ = kernel_code(tuple(sorted((rows | change).items())), 0x210)
    assert code_.may_compute_long == is_long


def test_host_that_goes_on_may_answer_what_only_it_can_write(tmp_path: Path) -> None:
    """The kernel polls an argument that it never writes."""
    only_read = [*with_code("fenced_poll", 1, 13, arguments=[0, RING, 8, RING + 512]), read()]
    runs = {"alive": 8_900_000_000, "busy": [77]}
    assert of(tmp_path, *only_read).kind == "inside_kernel"
    assert of(tmp_path, *only_read, runs).kind == "not_known"
