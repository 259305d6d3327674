"""Work that writes what a kernel polls, told by the addresses in a capture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hangs.test_code import code, disassembles, with_code
from hangs.test_hang import inside, issued, of, of_stream

FLAG, ELSEWHERE = 0x7F0000001000, 0x7F0000200000
__all__ = ["disassembles"]  # the fixture


def transfer(call: int, stream: int, what: str, address: int, **more: object) -> dict[str, Any]:
    function = {
        "memset": "cuMemsetD8Async", "copy": "cuMemcpyHtoDAsync_v2",
        "write_value": "cuStreamWriteValue32_v2",
    }[what]  # fmt: skip
    line = {**of_stream(call, stream, what, function), "address": address, "to": "other"}
    return line | ({"bytes": 4} if what != "write_value" else {}) | more


@pytest.mark.parametrize("what", ["memset", "copy", "write_value"])
@pytest.mark.parametrize(
    ("address", "kind"),
    [(FLAG, "legacy_stream"), (FLAG + 8, "inside_kernel"), (ELSEWHERE, "inside_kernel")],
)
def test_write_at_the_legacy_stream_that_is_awaited_or_not(
    tmp_path: Path, what: str, address: int, kind: str
) -> None:
    spins = with_code("acquires", 1, 15, arguments=[0, FLAG])
    found = of(tmp_path, *spins, transfer(2, 7, what, address))
    assert found.kind == kind
    if kind == "legacy_stream":
        assert f"as does this {what.replace('_', ' ')}" in found.reason
        assert not any("addresses of the two" in each for each in found.unseen)


def test_memset_of_more_memory_than_is_polled(tmp_path: Path) -> None:
    spins = with_code("acquires", 1, 15, arguments=[0, FLAG])
    memset = transfer(2, 7, "memset", FLAG - 4096, bytes=8192)
    assert of(tmp_path, *spins, memset).kind == "legacy_stream"


def test_copy_to_one_of_several_polled_words(tmp_path: Path) -> None:
    """Where in the array is polled is not known: the nearest array before counts."""
    spins = with_code("chained_back", 1, 15, arguments=[0, ELSEWHERE, 8, FLAG])
    assert code("chained_back").polls[0].offset is None
    writes_flags = transfer(2, 7, "copy", FLAG + 64)
    writes_sums = transfer(2, 7, "copy", ELSEWHERE + 64)
    assert of(tmp_path, *spins, writes_flags).kind == "inside_kernel"  # its blocks write there, too
    assert of(tmp_path, *spins, writes_sums).kind != "legacy_stream"


@pytest.mark.parametrize(
    ("what", "address", "kind"),
    [
        ("memset", FLAG, "queue"), ("write_value", FLAG, "queue"),
        ("memset", ELSEWHERE, "inside_kernel"),
    ],
)  # fmt: skip
def test_write_in_the_queue_behind_work_that_waits_itself(
    tmp_path: Path, what: str, address: int, kind: str
) -> None:
    spins = with_code("acquires", 1, 13, arguments=[0, FLAG])
    lines = *spins, issued(2, 13, "next"), transfer(3, 14, what, address)
    found = of(tmp_path, *lines, connections=1)
    assert found.kind == kind
    if kind == "queue":
        assert found.reason.startswith(f"the {what.replace('_', ' ')} of call 3 never starts")
        assert "CUDA_DEVICE_MAX_CONNECTIONS=2 " in found.fixes[0].text
    assert of(tmp_path, *lines, connections=8).kind != "queue"


def test_write_behind_the_kernel_in_its_own_stream_is_no_matter_of_queues(tmp_path: Path) -> None:
    spins = with_code("acquires", 1, 13, arguments=[0, FLAG])
    lines = *spins, issued(2, 13, "next"), transfer(3, 13, "memset", FLAG)
    assert of(tmp_path, *lines, connections=1).kind == "inside_kernel"


@pytest.mark.parametrize(("address", "kind"), [(FLAG, "not_hanging"), (ELSEWHERE, "inside_kernel")])
def test_write_behind_slow_work_comes_late(tmp_path: Path, address: int, kind: str) -> None:
    slow = with_code("sums", 1, 13, arguments=[0, ELSEWHERE + 4096])
    spins = with_code("acquires", 3, 14, arguments=[0, FLAG])
    found = of(tmp_path, *slow, transfer(2, 13, "memset", address), *spins)
    assert found.kind == kind


def test_blocking_copy_to_polled_memory_behind_the_kernel(tmp_path: Path) -> None:
    """The kernel also writes something: its result."""
    function = "cuMemcpyHtoD_v2"
    for address, kind in ((FLAG, "host"), (ELSEWHERE, "inside_kernel")):
        copy = {**transfer(2, 7, "copy", address), "function": function}
        spins = with_code("polls_host", 1, 7, arguments=[0, ELSEWHERE, 8, FLAG])
        assert of(tmp_path, *spins, copy, inside(2, function)).kind == kind


def test_variables_of_the_gpu_are_memory_too() -> None:
    assert [poll.arguments for poll in code("wait_global").polls] == [(-9,)]
    assert code("barrier_global").written == {0, -17}
    assert code("set_global").written == {-1, -9, -25}


def test_kernel_that_counts_in_a_variable_waits_for_itself(tmp_path: Path) -> None:
    memset = of_stream(2, 7, "memset", "cuMemsetD8_v2")
    assert of(tmp_path, *with_code("barrier_global", 1, 15), memset).kind == "inside_kernel"
    assert of(tmp_path, *with_code("wait_global", 1, 15), memset).kind == "legacy_stream"


@pytest.mark.parametrize(("rounds", "kind"), [(30, "inside_kernel"), (10_000_000, "not_known")])
def test_argument_that_bounds_a_loop_around_a_wait(tmp_path: Path, rounds: int, kind: str) -> None:
    words = [8, 128, 4, 12, rounds, 4]
    launch = with_code("stages", 1, 13, arguments=[0, FLAG], small_arguments=words)
    assert of(tmp_path, *launch).kind == kind
    assert of(tmp_path, *with_code("stages", 1, 13)).kind == "not_known"


def test_launches_of_a_kernel_are_read_with_their_own_arguments(tmp_path: Path) -> None:
    def stages(call: int, stream: int, rounds: int) -> tuple[dict[str, Any], ...]:
        return with_code("stages", call, stream, small_arguments=[12, rounds, 4])

    both = *stages(1, 13, 30), *stages(2, 14, 10_000_000)
    assert of(tmp_path, *both).kind == "not_known"
    both = *stages(1, 13, 30), *stages(2, 14, 40)
    assert of(tmp_path, *both).kind == "inside_kernel"


def wait_for_value(call: int, stream: int, address: int) -> dict[str, Any]:
    line = of_stream(call, stream, "wait_value", "cuStreamWaitValue32_v2")
    return {**line, "address": address, "to": "other"}


@pytest.mark.parametrize(("address", "kind"), [(FLAG, "inside_kernel"), (ELSEWHERE, "host")])
@pytest.mark.parametrize("what", ["memset", "copy", "write_value"])
def test_stream_that_waits_for_what_is_written_behind_a_kernel(
    tmp_path: Path, what: str, address: int, kind: str
) -> None:
    spins = with_code("endless", 1, 13)
    write = transfer(2, 13, what, address)
    assert of(tmp_path, *spins, write, wait_for_value(3, 14, FLAG)).kind == kind


def test_stream_that_waits_for_what_a_kernel_writes(tmp_path: Path) -> None:
    spins = with_code("grid_barrier", 1, 13, arguments=[0, FLAG])
    assert of(tmp_path, *spins, wait_for_value(2, 14, FLAG)).kind == "inside_kernel"
    assert of(tmp_path, *spins, wait_for_value(2, 14, ELSEWHERE)).kind == "host"


def test_values_at_different_addresses(tmp_path: Path) -> None:
    """The launch waits for the second value, which is not the one that is written."""
    writes = transfer(1, 13, "write_value", FLAG)
    waits = wait_for_value(2, 14, ELSEWHERE), issued(3, 14, "late", 1)
    assert of(tmp_path, issued(9, 13), writes, *waits).kind == "host"
