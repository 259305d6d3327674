"""Exports of Nsight Systems become programs, whatever columns they have."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import tbsched as tb
from importers.written import VERSIONS, nsys, row_of_call, row_of_kernel, rows


def read(
    tmp_path: Path, content: dict[str, list[dict[str, Any]]], version: int = 2026
) -> tb.Program:
    return tb.load_program(nsys(tmp_path / "report.sqlite", content, version), fit=False)


def assumed(program: tb.Program, words: str) -> bool:
    return any(words in sentence for sentence in program.assumed)


def test_everything_that_an_export_says(tmp_path: Path) -> None:
    program = read(tmp_path, rows())
    copy, first, record, wait, second, synchronize = program.sequence
    assert copy == tb.Copy(4096, "h2d", 5e-6, stream=tb.LEGACY_STREAM)
    assert isinstance(first, tb.Launch)
    assert isinstance(second, tb.Launch)
    assert (first.blocks, first.threads, first.registers) == (132, 256, 40)
    assert (first.shared_memory, first.local_memory, first.carveout) == (1024, 16, 50)
    assert (first.cluster, first.name, first.cooperative) == (2, "gemm<float>(int)", False)
    assert (second.cooperative, second.priority, second.stream) == (True, -2, 13)
    assert not second.non_blocking
    assert (record, wait) == (tb.RecordEvent(0, tb.LEGACY_STREAM), tb.WaitEvent(0, 13))
    assert synchronize == tb.Synchronize()
    assert program.measured["shared_memory_executed"].tolist() == [32768, 32768]
    assert program.measured["call_ns"].tolist() == [7_000, 13_000]
    assert program.device == "NVIDIA H100 80GB HBM3"
    assert not assumed(program, "Of every kernel: assumed no clusters")


@pytest.mark.parametrize("version", VERSIONS)
def test_versions_tell_the_same_program_as_far_as_they_go(tmp_path: Path, version: int) -> None:
    program = read(tmp_path, rows(), version)
    newest = read(tmp_path, rows())
    assert [type(event) for event in program.sequence] == [type(event) for event in newest.sequence]
    assert (program.measured == newest.measured).all()
    assert program.host == newest.host
    assert assumed(program, "no clusters") == (version < 2026)
    assert assumed(program, "stream 7") == (version < 2023)
    assert assumed(program, "no cooperative launch") == (version < 2023)
    tb.predict(program.sequence, "h100", host=program.host)


def test_events_that_were_not_traced_are_said_to_be_unknown(tmp_path: Path) -> None:
    content = rows()
    del content["CUPTI_ACTIVITY_KIND_CUDA_EVENT"]
    program = read(tmp_path, content)
    assert assumed(program, "--cuda-event-trace=true")


def test_graph_by_its_nodes(tmp_path: Path) -> None:
    content = rows()
    content["CUPTI_ACTIVITY_KIND_RUNTIME"].append(row_of_call(20, 60_000, 65_000, 6))
    content["CUPTI_ACTIVITY_KIND_KERNEL"] += [
        row_of_kernel(20, 70_000, 75_000, 7, graphNodeId=31),
        row_of_kernel(20, 76_000, 78_000, 7, graphNodeId=30),
    ]
    launched = read(tmp_path, content).sequence[-1]
    assert isinstance(launched, tb.GraphLaunch)
    assert [node.duration for node in launched.graph.nodes] == [5e-6, 2e-6]
    assert launched.graph.edges == ((0, 1),)


def test_nodes_of_graphs_without_records_are_said(tmp_path: Path) -> None:
    content = rows()
    content["CUPTI_ACTIVITY_KIND_RUNTIME"].append(row_of_call(20, 60_000, 65_000, 6))
    content["CUPTI_ACTIVITY_KIND_KERNEL"] += [
        row_of_kernel(20, 70_000, 75_000, 7, graphId=2, graphNodeId=(2 << 32) + 1),
        row_of_kernel(20, 76_000, 78_000, 7, graphId=2, graphNodeId=(2 << 32) + 3),
    ]
    said = "What 2 nodes of graphs do that leave no records, such as"
    assert assumed(read(tmp_path, content), said)


def test_graph_without_its_nodes_is_left_out_and_said_so(tmp_path: Path) -> None:
    content = rows()
    content["CUPTI_ACTIVITY_KIND_RUNTIME"].append(row_of_call(20, 60_000, 65_000, 6))
    content["CUPTI_ACTIVITY_KIND_GRAPH_TRACE"] = [
        {"start": 70_000, "end": 80_000, "correlationId": 20}
    ]
    program = read(tmp_path, content)
    assert len(program.sequence) == 6
    assert assumed(program, "1 launches of graphs: left out")


def test_only_the_process_with_most_kernels_is_read(tmp_path: Path) -> None:
    content = rows()
    content["CUPTI_ACTIVITY_KIND_KERNEL"].append(
        row_of_kernel(12, 21_000, 22_000, 7, globalPid=6 << 24)
    )
    program = read(tmp_path, content)
    assert len(program.measured) == 2
    assert assumed(program, "1 kernels ran in other processes: only process 5")


def test_parts_can_be_selected(tmp_path: Path) -> None:
    place = nsys(tmp_path / "report.sqlite", rows())
    assert len(tb.load_program(place, streams=[13]).measured) == 1
    assert tb.load_program(place, match="gemm").sequence.transfers == ()
    assert tb.load_program(place, start=30e-6).measured["start_ns"].tolist() == [31_000]
    assert tb.load_program(place, end=30e-6).measured["start_ns"].tolist() == [19_000]


@pytest.mark.parametrize(
    ("table", "changes", "words"),
    [
        ("CUPTI_ACTIVITY_KIND_KERNEL", {"gridX": -1}, "gridX: a number from 0 is needed"),
        ("CUPTI_ACTIVITY_KIND_KERNEL", {"start": "x" * 9}, "start: nanoseconds are needed"),
        ("CUPTI_ACTIVITY_KIND_KERNEL", {"end": None}, "end: nanoseconds are needed, got None"),
        ("CUPTI_ACTIVITY_KIND_KERNEL", {"deviceId": 2**31}, "deviceId: a number from 0 to"),
        ("CUPTI_ACTIVITY_KIND_KERNEL", {"blockX": 4096}, r"Launch.threads: 8192 is outside"),
        ("CUPTI_ACTIVITY_KIND_KERNEL", {"registersPerThread": -1}, "registersPerThread"),
        ("CUPTI_ACTIVITY_KIND_RUNTIME", {"end": 0}, "before it was made"),
        ("CUPTI_ACTIVITY_KIND_MEMCPY", {"bytes": None}, "bytes: a number"),
    ],
)
def test_row_that_cannot_be_is_named(
    tmp_path: Path, table: str, changes: dict[str, object], words: str
) -> None:
    content = rows()
    content[table][0] |= changes
    with pytest.raises(ValueError, match=words) as error:
        read(tmp_path, content)
    assert "report.sqlite" in str(error.value)
    assert "\n" not in str(error.value)


def test_database_without_kernels_and_what_is_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"report.sqlite: no kernels that ran on a GPU"):
        read(tmp_path, {})
    place = nsys(tmp_path / "whole.sqlite", rows())
    cut = tmp_path / "cut.sqlite"
    cut.write_bytes(place.read_bytes()[:5000])
    with pytest.raises(ValueError, match=r"cut.sqlite: cannot be read as an SQLite database"):
        tb.load_program(cut)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (5, "none of its 1 calls of CUDA launches anything"),
        (1, "it has 1 calls that launch work, so either they failed, or"),
    ],
)
def test_calls_without_work_say_why_there_may_be_none(tmp_path: Path, name: int, why: str) -> None:
    content = {each: rows()[each] for each in ("StringIds", "TARGET_INFO_GPU")}
    content["CUPTI_ACTIVITY_KIND_RUNTIME"] = [row_of_call(1, 1_000, 6_000, name)]
    with pytest.raises(ValueError, match=f"no kernels that ran on a GPU; {why}"):
        read(tmp_path, content)


def test_a_database_of_another_tool_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "other.sqlite"
    with contextlib.closing(sqlite3.connect(place)) as database:
        database.execute("CREATE TABLE spans (name, begin)")
    with pytest.raises(ValueError, match="without the tables of Nsight Systems; write one with"):
        tb.load_program(place)
