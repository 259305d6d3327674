"""What ran on all GPUs and what host threads did, as exports of Nsight Systems have it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tbsched as tb
from importers.test_recorded_exports import RECORDINGS
from importers.written import PROCESS, call, kineto, move, nsys, row_of_call, row_of_kernel, rows
from tbsched.advice.account.account import account_of
from tbsched.importers.reading import joined
from tbsched.program.activity import (
    ANNOTATION,
    CALL,
    COPY,
    FUNCTION,
    GRAPH,
    KERNEL,
    MEMSET,
    MIGRATION,
    UNKNOWN,
    Activity,
)
from tbsched.program.gpu_facts import GpuFacts

_OTHER = PROCESS + 1
KERNELS, COPIES = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY"
CALLS, GRAPHS = "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"


def read(tmp_path: Path, content: dict[str, list[dict[str, Any]]], **part: Any) -> tb.Program:
    return tb.load_program(nsys(tmp_path / "report.sqlite", content), fit=False, **part)


def activity_of(program: tb.Program) -> Activity:
    assert program.activity is not None
    return program.activity


def worked(program: tb.Program) -> list[tuple[int, int, str, int, int]]:
    """Returns the GPU, kind, name, start and end of each piece of work."""
    activity = activity_of(program)
    columns = [activity.work[name].tolist() for name in ("gpu", "kind", "start_ns", "end_ns")]
    names = (activity.names[number] for number in activity.work["name"].tolist())
    return [(*row[:2], name, *row[2:]) for name, *row in zip(names, *columns, strict=True)]


def hosted(program: tb.Program) -> set[tuple[int, str, int, int]]:
    """Returns the kind, name, begin and end of all that threads did."""
    activity = activity_of(program)
    columns = [activity.host[name].tolist() for name in ("kind", "begin_ns", "end_ns")]
    names = (activity.names[number] for number in activity.host["name"].tolist())
    return {(row[0], name, *row[1:]) for name, *row in zip(names, *columns, strict=True)}


def launched_by(program: tb.Program) -> Iterator[tuple[str, str | None, int | None]]:
    """Returns the name of each piece of work, and its call's name and process."""
    activity = activity_of(program)
    for row in activity.work:
        call_row = int(row["call"])
        name = activity.names[row["name"]]
        if call_row == UNKNOWN:
            yield name, None, None
        else:
            of = activity.host[call_row]
            yield name, activity.names[of["name"]], activity.processes[of["thread"]]


def row_of_copy(start: int, end: int, kind: int, **more: Any) -> dict[str, Any]:
    return {
        "start": start, "end": end, "deviceId": 0, "contextId": 1, "streamId": 7,
        "correlationId": 0, "globalPid": PROCESS << 24, "bytes": 4096, "copyKind": kind, **more,
    }  # fmt: skip


def test_work_and_calls_are_in_the_account(tmp_path: Path) -> None:
    content = rows()
    content["CUPTI_ACTIVITY_KIND_MEMSET"] = [row_of_copy(16_000, 17_000, 0)]
    program = read(tmp_path, content)
    # The clock of the program begins with its first call.
    assert sorted(worked(program), key=lambda row: row[3]) == [
        (0, COPY, "h2d pinned", 9_000, 14_000),
        (0, MEMSET, "memset", 15_000, 16_000),
        (0, KERNEL, "gemm<float>(int)", 19_000, 39_000),
        (0, KERNEL, "gemm<float>(int)", 44_000, 49_000),
    ]
    assert (CALL, "cudaMemcpyAsync", 0, 5_000) in hosted(program)
    assert len(hosted(program)) == 6
    assert [*launched_by(program)] == [
        ("gemm<float>(int)", "cudaLaunchKernel", 0),
        ("gemm<float>(int)", "cudaLaunchKernel", 0),
        ("h2d pinned", "cudaMemcpyAsync", 0),
        ("memset", None, None),
    ]
    assert activity_of(program).work["bytes"].tolist() == [0, 0, 4096, 4096]


def test_all_processes_and_gpus_are_in_the_account(tmp_path: Path) -> None:
    content = rows()
    of_other = {"globalPid": _OTHER << 24, "demangledName": 8}
    content[KERNELS] += [
        row_of_kernel(12, 21_000, 22_000, 7, **of_other),
        row_of_kernel(15, 23_000, 24_000, 7, deviceId=1),
    ]
    content[CALLS].append(row_of_call(12, 9_000, 9_500, 3) | {"globalTid": (_OTHER << 24) + 1})
    program = read(tmp_path, content)
    assert len(program.measured) == 2
    assert [row[:3] for row in worked(program)] == [
        (0, KERNEL, "gemm<float>(int)"), (0, KERNEL, "gemm<float>(int)"), (0, KERNEL, "add"),
        (1, KERNEL, "gemm<float>(int)"), (0, COPY, "h2d pinned"),
    ]  # fmt: skip
    # Both processes have a call 12.
    launched = [*launched_by(program)]
    assert launched[2] == ("add", "cudaEventRecord", 1)
    assert launched[0] == ("gemm<float>(int)", "cudaLaunchKernel", 0)
    # Stream 7 of the other process is another stream.
    streams = activity_of(program).work["stream"].tolist()
    assert (streams[0], streams[3]) == (7, 7)
    assert streams[2] not in (7, 13)
    assert any("1 kernels ran in other processes" in said for said in program.assumed)
    assert any("1 kernel ran on 1 other GPU:" in said for said in program.assumed)


def test_each_process_may_number_gpus_in_its_own_way(tmp_path: Path) -> None:
    content = rows()
    content[KERNELS].append(row_of_kernel(12, 21_000, 22_000, 7, globalPid=_OTHER << 24))
    content["TARGET_INFO_CUDA_DEVICE"] = [
        {"gpuId": 3, "cudaId": 0, "pid": PROCESS}, {"gpuId": 2, "cudaId": 0, "pid": _OTHER},
    ]  # fmt: skip
    content["TARGET_INFO_GPU"] = [
        {"id": 2, "cuDevice": 0, "name": "NVIDIA A100-SXM4-40GB", "smCount": 108},
        {"id": 3, "cuDevice": 1, "name": "NVIDIA H100 PCIe", "smCount": 114},
    ]
    program = read(tmp_path, content)
    assert [row[0] for row in worked(program)] == [3, 3, 2, 3]
    assert (program.device, program.sms) == ("NVIDIA H100 PCIe", 114)


def _of_context(context: int, gpu: int) -> dict[str, int]:
    return {"processId": PROCESS, "contextId": context, "deviceId": gpu}


def test_the_gpu_of_a_row_without_one_is_that_of_its_context(tmp_path: Path) -> None:
    content = rows()
    content[KERNELS].append(row_of_kernel(15, 51_000, 52_000, 7, deviceId=None, contextId=2))
    content["TARGET_INFO_CUDA_CONTEXT_INFO"] = [_of_context(1, 0), _of_context(2, 3)]
    program = read(tmp_path, content)
    assert [row[0] for row in worked(program)] == [0, 0, 3, 0]
    assert not any("On which GPU" in said for said in program.assumed)


def test_a_process_that_sees_one_gpu_uses_no_other(tmp_path: Path) -> None:
    content = rows()
    for row in content[KERNELS]:
        row["deviceId"] = None
    content["TARGET_INFO_CUDA_DEVICE"] = [
        {"gpuId": 0, "cudaId": 2, "pid": PROCESS}, {"gpuId": 1, "cudaId": 0, "pid": _OTHER},
    ]  # fmt: skip
    program = read(tmp_path, content)
    assert [row[0] for row in worked(program)] == [2, 2, 0]
    assert not any("On which GPU" in said for said in program.assumed)


def test_work_of_which_nothing_says_the_gpu_is_said(tmp_path: Path) -> None:
    content = rows()
    content[KERNELS].append(row_of_kernel(15, 51_000, 52_000, 7, deviceId=None, contextId=2))
    program = read(tmp_path, content)
    assert [row[0] for row in worked(program)] == [0, 0, 0, 0]
    assert any("On which GPU 1 kernels, copies" in said for said in program.assumed)


@pytest.mark.parametrize("said", [{"deviceId": 1}, {"deviceId": None, "contextId": 2}])
def test_a_wait_for_another_gpu_is_none_of_the_predicted_one(
    tmp_path: Path, said: dict[str, Any]
) -> None:
    content = rows()
    wait = {"start": 19_100, "end": 54_000, "streamId": 2**32 - 1, "eventId": 2**32 - 1}
    of = {"correlationId": 16, "globalPid": PROCESS << 24, "syncType": 4}
    content["TARGET_INFO_CUDA_CONTEXT_INFO"] = [_of_context(1, 0), _of_context(2, 1)]
    content["CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"].append({**wait, **of, **said})
    assert not any(isinstance(x, tb.Synchronize) for x in read(tmp_path, content).sequence)
    content["CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"][-1] |= {"deviceId": 0, "contextId": 1}
    assert any(isinstance(x, tb.Synchronize) for x in read(tmp_path, content).sequence)


def test_graphs_as_a_whole_are_work(tmp_path: Path) -> None:
    content = rows()
    content[CALLS].append(row_of_call(20, 60_000, 65_000, 6))
    graph = {"start": 70_000, "end": 80_000, "correlationId": 20, "deviceId": 0, "streamId": 7}
    content[GRAPHS] = [graph | {"graphId": 4, "graphExecId": 5}]
    program = read(tmp_path, content)
    assert worked(program)[-1] == (0, GRAPH, "graph 5", 69_000, 79_000)
    assert [*launched_by(program)][-1] == ("graph 5", "cudaGraphLaunch", 0)
    assert len(program.measured) == 2
    assert any("the account has each graph as a whole" in said for said in program.assumed)


def test_graphs_alone_are_a_profile(tmp_path: Path) -> None:
    graph = {"start": 70_000, "end": 80_000, "correlationId": 20, "graphId": 4}
    content = {GRAPHS: [graph], "TARGET_INFO_GPU": rows()["TARGET_INFO_GPU"]}
    program = read(tmp_path, content)
    assert len(program.sequence) == 0
    assert worked(program) == [(0, GRAPH, "graph 4", 0, 10_000)]
    assert program.device == "NVIDIA H100 80GB HBM3"
    assert any("no kernels one by one" in said for said in program.assumed)


def test_copies_alone_are_a_profile_of_torch_too(tmp_path: Path) -> None:
    copy = move(1, 3, 5, name="Memcpy HtoD (Pinned -> Device)")
    program = tb.load_program(kineto(tmp_path / "a.json", call(1, 1, 1, "cudaMemcpyAsync"), copy))
    assert len(program.sequence) == 0
    assert worked(program) == [(0, COPY, "h2d pinned", 0, 5_000)]
    assert any("no kernels one by one" in said for said in program.assumed)


def test_calls_have_no_version_in_any_format(tmp_path: Path) -> None:
    name = "cuMemcpyHtoDAsync_v2_ptsz"
    place = kineto(tmp_path / "a.json", call(1, 1, 1, name), move(1, 3, 5))
    assert hosted(tb.load_program(place)) == {(CALL, "cuMemcpyHtoDAsync", -2_000, -1_000)}


def test_a_part_without_kernels_is_accounted_for(tmp_path: Path) -> None:
    program = read(tmp_path, rows(), end=5e-6)
    assert [row[2] for row in worked(program)] == ["h2d pinned"]
    with pytest.raises(ValueError, match="no kernel is in the part that is selected"):
        read(tmp_path, rows(), start=1.0)


def test_migrations_of_unified_memory_are_no_copies(tmp_path: Path) -> None:
    content = rows()
    content[COPIES] += [
        row_of_copy(21_000, 22_000, 11, migrationCause=2, streamId=0),
        row_of_copy(23_000, 24_000, 12, migrationCause=1, streamId=0),
        row_of_copy(25_000, 26_000, 13, streamId=0),
    ]
    program = read(tmp_path, content)
    assert [row[1:3] for row in worked(program)[3:]] == [
        (MIGRATION, "h2d (page fault)"), (MIGRATION, "d2h (prefetch by the program)"),
        (MIGRATION, "d2d"),
    ]  # fmt: skip
    assert len(program.sequence.transfers) == 1
    assert any("3 migrations of unified memory: they are" in said for said in program.assumed)
    assert any("2 migrations of unified memory that" in said for said in program.assumed)
    assert not any("by a thread of their own" in said for said in program.assumed)


def test_a_copy_that_was_called_is_one_even_if_pages_moved_for_it(tmp_path: Path) -> None:
    content = rows()
    copied = row_of_copy(21_000, 22_000, 2, migrationCause=2, correlationId=77)
    content[COPIES].append(copied)
    assert worked(read(tmp_path, content))[-1][1:3] == (COPY, "d2h")


def test_copies_between_gpus_have_a_name(tmp_path: Path) -> None:
    content = rows()
    content[COPIES].append(row_of_copy(21_000, 22_000, 10))
    assert worked(read(tmp_path, content))[-1][1:3] == (COPY, "p2p")


def test_what_threads_did_besides_calls(tmp_path: Path) -> None:
    content = rows()
    thread = (PROCESS << 24) + 1
    content["StringIds"] += [
        {"id": 20, "value": "forward"}, {"id": 21, "value": "poll"},
        {"id": 22, "value": "CUPTI Buffer flush"}, {"id": 23, "value": "Lazy Function Loading"},
    ]  # fmt: skip
    content["NVTX_EVENTS"] = [
        {"start": 1_000, "end": 2_000, "eventType": 59, "text": "step", "globalTid": thread},
        {"start": 1_500, "end": 1_800, "eventType": 60, "textId": 20, "globalTid": thread},
        {"start": 1_600, "eventType": 34, "text": "mark", "globalTid": thread},
        {"start": 1_000, "eventType": 75, "text": "domain", "globalTid": thread},
    ]
    of = {"globalTid": thread, "start": 3_000, "end": 4_000}
    content["OSRT_API"] = [of | {"nameId": 21}]
    content["PROFILER_OVERHEAD"] = [of | {"nameId": 22}, of | {"nameId": 22, "end": None}]
    content["CUPTI_ACTIVITY_KIND_OVERHEAD"] = [of | {"nameId": 23}]
    program = read(tmp_path, content)
    assert {row for row in hosted(program) if row[0] != CALL} == {
        (ANNOTATION, "step", 0, 1_000), (ANNOTATION, "forward", 500, 800),
        (FUNCTION, "poll", 2_000, 3_000),
        (FUNCTION, "Nsight Systems: CUPTI Buffer flush", 2_000, 3_000),
        (FUNCTION, "Lazy Function Loading", 2_000, 3_000),
    }  # fmt: skip
    assert len(activity_of(program).processes) == 1  # all of one thread


def test_the_gpu_is_described(tmp_path: Path) -> None:
    content = rows()
    content["TARGET_INFO_GPU"] = [
        {"id": 0, "cuDevice": 1, "name": "NVIDIA H100 80GB HBM3", "smCount": 132},
        {"id": 1, "cuDevice": 0, "name": "NVIDIA GeForce RTX 4060 Ti", "smCount": 34,
         "computeMajor": 8, "computeMinor": 9, "threadsPerWarp": 32, "asyncEngines": 1,
         "maxWarpsPerSm": 48, "maxBlocksPerSm": 24, "maxRegistersPerSm": 65536,
         "maxShmemPerSm": 102400, "maxShmemPerBlockOptin": 101376},
    ]  # fmt: skip
    facts = GpuFacts(
        name="NVIDIA GeForce RTX 4060 Ti", sms=34, major=8, minor=9, warp_size=32, copy_engines=1,
        threads_per_sm=1536, blocks_per_sm=24, registers_per_sm=65536,
        shared_memory_per_sm=102400, shared_memory_per_block=101376,
    )  # fmt: skip
    assert read(tmp_path, content).gpu == facts


def test_a_process_may_see_a_part_of_a_gpu(tmp_path: Path) -> None:
    content = rows()
    content["TARGET_INFO_CUDA_DEVICE"] = [
        {"gpuId": 0, "cudaId": 0, "pid": PROCESS, "numMultiprocessors": 28}
    ]
    assert read(tmp_path, content).sms == 28


def test_earlier_years_describe_gpus_elsewhere(tmp_path: Path) -> None:
    content = rows()
    del content["TARGET_INFO_GPU"]
    content["TARGET_INFO_CUDA_GPU"] = [
        {"deviceId": 0, "name": "Tesla T4", "numMultiprocessors": 40,
         "computeCapabilityMajor": 7, "computeCapabilityMinor": 5},
    ]  # fmt: skip
    gpu = read(tmp_path, content).gpu
    assert gpu == GpuFacts(name="Tesla T4", sms=40, major=7, minor=5)


def test_earlier_years_tell_of_the_default_stream_elsewhere(tmp_path: Path) -> None:
    content = rows()
    del content["TARGET_INFO_CUDA_CONTEXT_INFO"], content["TARGET_INFO_CUDA_STREAM"]
    content["TARGET_INFO_CUDA_NULL_STREAM"] = [{"streamId": 13, "processId": PROCESS}]
    launches = read(tmp_path, content).sequence.launches
    assert [each.stream == tb.LEGACY_STREAM for each in launches] == [False, True]


def test_odd_rows_are_kept(tmp_path: Path) -> None:
    content = rows()
    shapeless = {"gridX": None, "gridY": None, "gridZ": None, "blockX": None}
    content[KERNELS] = [
        row_of_kernel(12, -20_000, -10_000, 7, **shapeless),
        row_of_kernel(15, 45_000, 44_000, 13, demangledName=99),
    ]
    program = read(tmp_path, content)
    first, second, _ = worked(program)
    assert first[3:] == (0, 10_000)
    assert second[2:] == ("string 99", 65_000, 65_000)
    assert any("grid and the blocks of 1 kernels" in said for said in program.assumed)
    assert any("1 kernels, copies or memsets end before" in said for said in program.assumed)


def test_order_of_rows_does_not_matter(tmp_path: Path) -> None:
    content = rows()
    shuffled = {
        table: random.Random(3).sample(given, len(given)) for table, given in content.items()
    }
    assert shuffled != content
    here, there = read(tmp_path, content), read(tmp_path, shuffled)
    assert here.sequence == there.sequence
    assert sorted(worked(here)) == sorted(worked(there))
    assert sorted(launched_by(here)) == sorted(launched_by(there))


def test_part_of_the_time_is_accounted_for(tmp_path: Path) -> None:
    program = read(tmp_path, rows(), start=30e-6)
    assert [row[2] for row in worked(program)] == ["gemm<float>(int)"]


@pytest.mark.parametrize("is_capture", [False, True])
def test_long_programs_have_only_an_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_capture: bool
) -> None:
    monkeypatch.setattr(joined, "MAX_PREDICTED", 1)
    monkeypatch.setattr("tbsched.importers.programs.MAX_PREDICTED", 1)
    place = RECORDINGS / "cupy_legacy_stream-a.jsonl.xz"
    program = tb.load_program(place) if is_capture else read(tmp_path, rows())
    assert len(program.sequence) == 0
    assert len(worked(program)) > 2
    assert any("kernels are more than the 1 that" in said for said in program.assumed)


def test_what_is_measured_knows_its_work(tmp_path: Path) -> None:
    program = read(tmp_path, rows())
    for measured in (program.measured, program.transfers):
        work = activity_of(program).work[measured["work"]]
        np.testing.assert_array_equal(work["start_ns"], measured["start_ns"])


def test_account_is_of_the_whole_time(tmp_path: Path) -> None:
    parts = account_of(activity_of(read(tmp_path, rows()))).rows()
    causes = {(row.cause, row.by): round(row.seconds * 1e9) for row in parts}
    assert causes["kernel", "gemm<float>(int)"] == 25_000
    assert causes["copy", "h2d pinned"] == 5_000
    assert sum(causes.values()) == 40_000
