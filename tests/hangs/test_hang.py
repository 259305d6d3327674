"""Which kind a hang is: from captures, and from what a real debugger printed of real hangs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import tbsched as tb
from hangs.conftest import RECORDED, Answering
from helpers import examples
from tbsched.cli.app import app
from tbsched.hangs import debugger, find
from tbsched.hangs.memory import parse_maps
from tbsched.importers import captured_files

HEAD: list[dict[str, Any]] = [
    {"tbsched_capture": 1, "process": 1, "connections": 8, "notes_issued": True},
    {"device": 0, "name": "NVIDIA H200", "compute_capability": "9.0", "sms": 132},
    {"context": 1, "device": 0, "null_stream": 7},
    {"stream": 13, "context": 1, "kind": "non_blocking", "priority": 0},
    {"stream": 14, "context": 1, "kind": "non_blocking", "priority": 0},
    {"stream": 15, "context": 1, "kind": "default", "priority": 0},
    {"stream": 16, "context": 1, "kind": "default", "priority": 0},
]
ALIVE = {"alive": 9_000_000_000}


def issued(
    call: int, stream: int, name: str = "k", blocks: int = 4, threads: int = 64, **more: object
) -> dict[str, Any]:
    return {
        "issued": call, "what": "launch", "function": "cuLaunchKernel", "thread": 0,
        "system_thread": 1, "at": 1000 * call, "context": 1, "stream": stream, "name": name,
        "grid": [blocks, 1, 1], "block": [threads, 1, 1], "dynamic_shared_memory": 0,
        "registers": 32, "static_shared_memory": 0, "local_memory": 0, "cooperative": False,
        "programmatic": False, **more,
    }  # fmt: skip


def inside(call: int, function: str) -> dict[str, Any]:
    return {"inside": call, "function": function, "thread": 0, "system_thread": 1, "at": 5000}


def captured(place: Path, *lines: dict[str, Any], **header: object) -> Path:
    first = {**HEAD[0], **header}
    text = "".join(f"{json.dumps(line)}\n" for line in (first, *HEAD[1:], *lines))
    place.write_text(text, "utf-8")
    return place


def of(place: Path, *lines: dict[str, Any], **header: object) -> tb.HangReport:
    return tb.hang(captured(place / "run.jsonl", *lines, ALIVE, **header))


def test_gpu_of_more_sms_than_there_can_be_is_refused(tmp_path: Path) -> None:
    place = captured(tmp_path / "run.jsonl", {**HEAD[1], "sms": 2**31 - 1}, issued(1, 13), ALIVE)
    words = r"run\.jsonl: line 8: sms: a number from 0 to 65536 is needed, got 2147483647"
    with pytest.raises(ValueError, match=words):
        tb.hang(place)


def test_room_names_blocks_and_what_binds(tmp_path: Path) -> None:
    found = of(tmp_path, issued(1, 13, "grid", 300, 1024))
    (row,) = found.stranded
    assert (found.kind, row.name, row.missing, row.blocks, row.cause) == (
        "room", "grid", 36, 300, "warps",
    )  # fmt: skip
    assert [(len(each.sms), each.blocks, each.cause) for each in row.limits] == [(132, 2, "warps")]
    assert found.fixes[0].text == "at most 264 blocks for grid, not 300"
    assert any("blocks before them" in each for each in found.unseen)


def test_room_names_all_that_binds_on_every_sm(tmp_path: Path) -> None:
    work = issued(1, 13, "work", 264, 1024, registers=10)
    found = of(tmp_path, work, issued(2, 14, "schedule", 2, 128, registers=10))
    assert "no SM has room for one more (configuration and warps)" in found.reason
    found = of(tmp_path, work, issued(2, 14, "work again", 2, 1024, registers=10))
    assert "no SM has room for one more (warps)" in found.reason


def test_changes_that_were_not_tried_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [issued(number, 12 + number, f"grid {number}", 33, 1024) for number in range(1, 10)]
    found = of(tmp_path, *many, connections=32)
    assert (found.kind, found.fixes) == ("room", ())
    assert "Which changes help: of more than 8 kernels none are tried." in found.unseen
    monkeypatch.setattr(find, "_FIX_SECONDS", 0.0)
    found = of(tmp_path, issued(1, 13, "grid", 300, 1024))
    assert found.fixes == ()
    assert "Whether more changes help: the search ended after 0 s." in found.unseen


def test_queue_names_what_is_before_it_and_how_many_queues_are_enough(tmp_path: Path) -> None:
    lines = issued(1, 13, "spin"), issued(2, 13, "next"), issued(3, 14, "set_flag", 1)
    found = of(tmp_path, *lines, connections=1)
    assert (found.kind, found.stranded[0].name, found.stranded[0].behind) == (
        "queue", "set_flag", "next",
    )  # fmt: skip
    assert [fix.kind for fix in found.fixes] == ["connections", "order"]
    assert "CUDA_DEVICE_MAX_CONNECTIONS=2 " in found.fixes[0].text
    assert found.fixes[1].text == "launch set_flag before next"
    assert of(tmp_path, *lines, connections=8).kind == "not_known"


def test_queue_held_by_other_work_than_a_launch(tmp_path: Path) -> None:
    copy = {**of_stream(2, 16, "copy", "cuMemcpyHtoDAsync_v2"), "bytes": 1024}
    found = of(tmp_path, issued(1, 16, "spin"), copy, issued(3, 13, "late", 1), connections=1)
    assert (found.kind, found.stranded[-1].behind) == ("queue", None)
    assert found.reason.endswith("other work is before it in its hardware queue, and waits itself")


def of_stream(call: int, stream: int, what: str, function: str) -> dict[str, Any]:
    """An operation that is no launch."""
    line = {**issued(call, stream), "what": what, "function": function}
    for key in ("name", "grid", "block"):
        del line[key]
    return line


def test_wait_for_a_value_holds_its_hardware_queue(tmp_path: Path) -> None:
    waits = of_stream(1, 13, "wait_value", "cuStreamWaitValue32_v2")
    found = of(tmp_path, waits, issued(2, 14, "late", 1), connections=1)
    assert (found.kind, found.stranded[0].name) == ("queue", "late")
    assert not found.resident
    assert of(tmp_path, waits, issued(2, 14, "late", 1), connections=8).kind == "host"


@pytest.mark.parametrize(("timing", "kind"), [(True, "queue"), (False, "not_known")])
def test_record_with_timing_holds_its_hardware_queue(
    tmp_path: Path, timing: bool, kind: str
) -> None:
    record = {**of_stream(2, 13, "record", "cuEventRecord"), "event": 70, "timing": timing}
    found = of(tmp_path, issued(1, 13, "spin"), record, issued(3, 14, "late", 1), connections=1)
    assert found.kind == kind


def test_event_made_anew_may_have_timing(tmp_path: Path) -> None:
    """Its handle is that of an event without timing, which was destroyed."""
    record = {**of_stream(2, 13, "record", "cuEventRecord"), "event": 70}
    waits = {**of_stream(3, 15, "wait", "cuStreamWaitEvent"), "event": 70}
    again = {**of_stream(4, 13, "record", "cuEventRecord"), "event": 70, "timing": True}
    late = issued(5, 14, "late", 1)
    found = of(tmp_path, issued(1, 13, "spin"), record, waits, again, late, connections=1)
    assert (found.kind, found.stranded[-1].name) == ("queue", "late")


def test_write_behind_a_kernel_may_be_the_awaited_one(tmp_path: Path) -> None:
    writes = of_stream(2, 14, "write_value", "cuStreamWriteValue32_v2")
    waits = of_stream(3, 13, "wait_value", "cuStreamWaitValue32_v2")
    found = of(tmp_path, issued(1, 14, "spin"), writes, waits, issued(4, 13, "late", 1))
    assert (found.kind, found.stranded[0].behind) == ("not_known", "spin")
    assert any("Whether call 2 writes the value" in each for each in found.unseen)


def test_write_behind_its_own_wait_is_not_what_it_waits_for(tmp_path: Path) -> None:
    waits = of_stream(2, 13, "wait_value", "cuStreamWaitValue32_v2")
    writes = of_stream(4, 13, "write_value", "cuStreamWriteValue32_v2")
    first = of_stream(1, 14, "write_value", "cuStreamWriteValue32_v2")  # nothing holds it up
    for lines in ((waits, writes), (waits, issued(3, 13, "work"), writes), (first, waits)):
        found = of(tmp_path, *lines)
        assert found.kind == "host"
        assert "waits for a value" in found.reason


def test_host_function_behind_a_wait_is_not_reached(tmp_path: Path) -> None:
    found = of(
        tmp_path,
        issued(1, 14, "spin"),
        of_stream(2, 14, "write_value", "cuStreamWriteValue32_v2"),
        of_stream(3, 13, "wait_value", "cuStreamWaitValue32_v2"),
        of_stream(4, 13, "host_function", "cuLaunchHostFunc"),
    )
    assert (found.kind, found.resident[0].name) == ("not_known", "spin")


def test_wait_for_a_value_in_the_legacy_stream(tmp_path: Path) -> None:
    waits = of_stream(1, 7, "wait_value", "cuStreamWaitValue32_v2")
    found = of(tmp_path, waits, issued(2, 16, "set_flag", 1))
    assert found.kind == "legacy_stream"
    assert {fix.kind for fix in found.fixes} == {"non_blocking"}


def test_capture_that_failed_says_so(tmp_path: Path) -> None:
    failed = {"capture_failed": 3, "why": "std::bad_alloc"}
    for lines in ((failed,), (issued(1, 13, "spin"), failed)):
        found = of(tmp_path, *lines)
        assert found.kind == "not_known"
        assert any("failed 3 times (std::bad_alloc)" in each for each in found.unseen)


def test_connections_that_no_gpu_has(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"run\.jsonl: connections: .*1000008 is outside"):
        of(tmp_path, issued(1, 13, "spin"), connections=1000008)


def test_direction_of_a_copy_that_the_file_does_not_say_is_assumed(tmp_path: Path) -> None:
    for function, is_said in (("cuMemcpyAsync", False), ("cuMemcpyDtoDAsync_v2", True)):
        copy = {**of_stream(2, 16, "copy", function), "bytes": 1 << 20}
        found = of(tmp_path, issued(1, 16, "spin"), copy)
        assert any("Which way the copy of call 2" in each for each in found.unseen) is not is_said


@pytest.mark.parametrize("between", ["launch", "memset"])
def test_legacy_stream(tmp_path: Path, between: str) -> None:
    middle = issued(2, 7, "middle")
    if between == "memset":
        middle = {**middle, "what": "memset", "bytes": 4096}
        del middle["grid"], middle["block"], middle["name"]
    lines = issued(1, 15, "spin"), middle, issued(3, 16, "set_flag", 1)
    found = of(tmp_path, *lines)
    assert found.kind == "legacy_stream"
    assert "set_flag" in {row.name for row in found.stranded}
    assert {fix.kind for fix in found.fixes} == {"non_blocking"}
    assert "None" not in found.text
    if between == "memset":
        words = "it waits at the legacy default stream for work that waits itself"
        assert found.reason.endswith(words)


def test_launch_call_of_a_new_kernel_loads_it(tmp_path: Path) -> None:
    lines = issued(1, 13, "spin"), issued(2, 14, "set_flag", 1), inside(2, "cuLaunchKernel")
    found = of(tmp_path, *lines)
    assert (found.kind, found.stranded[0].name) == ("loading", "set_flag")
    assert "CUDA_MODULE_LOADING=EAGER" in found.fixes[0].text


def test_launch_call_of_a_kernel_that_ran_before_does_not_load_it(tmp_path: Path) -> None:
    shape = {
        "kernel": 0, "name": "set_flag", "grid": [1, 1, 1], "block": [64, 1, 1], "registers": 32,
        "static_shared_memory": 0, "dynamic_shared_memory": 0, "cooperative": False,
    }  # fmt: skip
    ran = {"ran": 0, "call": 9, "at": [1, 2], "context": 1, "stream": 14, "configured": 0}
    lines = issued(1, 13, "spin"), issued(2, 14, "set_flag", 1), inside(2, "cuLaunchKernel")
    assert of(tmp_path, shape, ran, *lines).kind != "loading"


@pytest.mark.parametrize(
    "function",
    ["cuLibraryLoadData", "cuModuleLoadDataEx", "cuFuncLoad", "cuGraphInstantiateWithFlags",
     "cuGraphAddKernelNode_v2", "cuGraphExecUpdate_v2"],
)  # fmt: skip
def test_calls_that_load_code(tmp_path: Path, function: str) -> None:
    found = of(tmp_path, issued(1, 13, "spin"), inside(2, function))
    assert (found.kind, found.calls[0].function) == ("loading", function)


@pytest.mark.parametrize("function", ["cuMemFree_v2", "cuMemAlloc_v2", "cuMemHostAlloc_v2"])
def test_calls_that_wait_unasked_are_of_the_host(tmp_path: Path, function: str) -> None:
    found = of(tmp_path, issued(1, 13, "spin"), inside(2, function))
    assert found.kind == "host"
    assert function in found.reason


def test_functions_of_the_host_one_after_the_other_may_be_slow(tmp_path: Path) -> None:
    lines = [
        line
        for call in range(1, 40, 2)
        for line in (
            issued(call, 13, "train_step", 1024, 256),
            of_stream(call + 1, 13, "host_function", "cuLaunchHostFunc"),
        )
    ]
    ran_before = ran("train_step")
    found = of(tmp_path, *ran_before, *lines, inside(41, "cuCtxSynchronize"))
    assert (found.kind, found.may_be) == ("not_known", ("host", "not_hanging"))
    assert (found.hangs, found.may_be_slow) == (True, True)
    assert found.text.startswith("not known whether it hangs: stream 13 has 20 functions")
    found = of(tmp_path, *ran_before, *lines[:2], inside(41, "cuCtxSynchronize"))
    assert found.kind == "host"
    assert "Whether that function of the host is only slow." in found.unseen


@pytest.mark.parametrize("key", ["busy", "asleep"])
def test_function_of_the_host_that_computes_or_sleeps_may_be_slow(tmp_path: Path, key: str) -> None:
    function = of_stream(2, 13, "host_function", "cuLaunchHostFunc")
    waits = function, inside(3, "cuCtxSynchronize")
    found = of(tmp_path, *waits, {"alive": 8_000_000_000, key: [4711]})
    assert (found.kind, found.may_be) == ("not_known", ("host", "not_hanging"))
    assert "; thread 4711 of the host goes on, and may only be slow" in found.reason
    found = of(tmp_path, *waits, {"alive": 2_000_000_000, key: [4711]})  # it does no longer
    assert found.kind == "host"


@pytest.mark.parametrize("what", ["wait_value", "host_function"])
def test_streams_that_wait_for_the_host(tmp_path: Path, what: str) -> None:
    waits = {**issued(1, 13), "what": what, "function": f"cu_{what}"}
    found = of(tmp_path, waits, issued(2, 13, "after"), inside(3, "cuStreamSynchronize"))
    assert (found.kind, found.stranded[0].name) == ("host", "after")


def test_all_on_the_gpu_without_code_is_not_known(tmp_path: Path) -> None:
    found = of(
        tmp_path, issued(1, 13, "spin"), issued(2, 13, "after"), inside(3, "cuCtxSynchronize")
    )
    assert (found.kind, found.stranded[0].cause) == ("not_known", "stream")
    assert "after comes after it by the program's own order" in found.reason
    assert found.may_be == ("inside_kernel", "not_hanging")
    assert any("without a debugger" in sentence for sentence in found.unseen)


def test_events_are_the_programs_own_order(tmp_path: Path) -> None:
    record = {**issued(2, 13), "what": "record", "event": 5}
    wait = {**issued(3, 14), "what": "wait", "event": 5}
    found = of(tmp_path, issued(1, 13, "spin"), record, wait, issued(4, 14, "after"))
    assert (found.kind, found.stranded[0].cause) == ("not_known", "event")


def test_what_ended_does_not_hang(tmp_path: Path) -> None:
    assert of(tmp_path, issued(1, 13), {"ended": 1}).kind == "not_hanging"
    assert of(tmp_path, issued(1, 13), {"end": 5, "launches": 1, "unfinished": 1}).reason == (
        "the program has ended by itself"
    )


def test_file_that_ends_soon_after_its_last_news_does_not_hang(tmp_path: Path) -> None:
    place = captured(tmp_path / "run.jsonl", issued(1, 13, "grid", 300, 1024), {"alive": 500_000})
    found = tb.hang(place)
    assert found.kind == "not_hanging"
    assert "before the end of the file" in found.reason


def test_earlier_captures_do_not_tell(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"run\.jsonl: an earlier tbsched made this capture"):
        of(tmp_path, notes_issued=False)


def test_process_with_several_gpus_is_refused(tmp_path: Path) -> None:
    other = {"context": 2, "device": 1, "null_stream": 8}
    second = {"device": 1, "name": "NVIDIA H200", "compute_capability": "9.0", "sms": 132}
    elsewhere = {**issued(1, 8, "far", 8, 128), "context": 2}
    with pytest.raises(ValueError, match=r"several GPUs have not ended \(1 on GPU 0, 1 on GPU 1\)"):
        of(tmp_path, second, other, elsewhere, issued(2, 13, "near", 8, 128))


def test_names_do_not_forge_lines(tmp_path: Path) -> None:
    found = of(tmp_path, issued(1, 13, "A\nHANGS", 300, 1024), issued(2, 14, "B", 1, 1024))
    assert "A\ufffdHANGS" in str(found)
    assert "HANGS" not in {line.strip() for line in str(found).splitlines()}


@given(
    blocks=st.integers(1, 2000), threads=st.sampled_from([32, 96, 256, 1024]),
    registers=st.integers(16, 64), memory=st.integers(0, 200 * 1024),
)  # fmt: skip
@settings(max_examples=examples(60), deadline=None)
def test_missing_blocks_are_those_without_room(
    tmp_path_factory: pytest.TempPathFactory, blocks: int, threads: int, registers: int, memory: int
) -> None:
    launch = tb.Launch(blocks, threads, registers, memory)
    line = issued(
        1, 13, "grid", blocks, threads, registers=registers, dynamic_shared_memory=memory
    )  # fmt: skip
    found = of(tmp_path_factory.mktemp("grid"), line)
    missing = max(blocks - tb.capacity(launch, "h200").blocks, 0)
    assert found.kind == ("room" if missing else "not_known")
    assert sum(row.missing for row in found.stranded) == missing


# With the debugger. What it prints was recorded on an H200.


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("room_readme", "room", "12 of 128 blocks of workers have not started"),
        ("slow_many", "not_known", "busy waits for memory of the GPU"),  # the same look each time
        ("slow_compute", "not_hanging", "compute computes"),
        ("inside_need", "not_known", "is not seen without a capture"),
        ("queue_one", "not_known", "is not seen without a capture"),
        ("legacy_between", "not_known", "is not seen without a capture"),
        ("loading_function", "not_known", "is not seen without a capture"),
        ("loading_local", "not_known", "is not seen without a capture"),
        ("host_free", "host", "cuMemFree_v2"),
        ("host_waitvalue", "host", "no kernel is on the GPU"),
    ],
)
def test_kind_of_a_process(
    answering: Answering, process: int, name: str, kind: str, words: str
) -> None:
    answering(name)
    found = tb.hang(pid=process)
    assert found.kind == kind
    assert words in found.reason
    assert found.process == process


TRUE_KINDS = {
    "inside_need": "inside_kernel", "queue_one": "queue", "legacy_between": "legacy_stream",
    "loading_function": "loading", "loading_local": "loading", "host_flag": "host",
}  # fmt: skip


@pytest.mark.parametrize("name", TRUE_KINDS)
def test_process_without_a_capture_is_said_to_be_what_it_may_be(
    answering: Answering, process: int, name: str
) -> None:
    answering(name)
    found = tb.hang(pid=process)
    assert (found.kind, found.hangs, found.may_be_slow) == ("not_known", True, False)
    assert TRUE_KINDS[name] in found.may_be
    assert found.text.startswith("HANGS, why is not known: w")
    assert any("tbsched capture --hang-after 5 --kill" in each for each in found.unseen)


def test_call_of_the_driver_without_a_name_may_load_a_kernel(
    answering: Answering, process: int
) -> None:
    answering("loading_local")
    found = tb.hang(pid=process)
    assert found.proof[-1] == "The host is in a call of CUDA without a name: it may load a kernel."
    answering("queue_one")
    assert tb.hang(pid=process).proof[-1] == "The host is in cuCtxSynchronize_v2."


def test_threads_that_wait_for_their_own_block_need_no_capture(
    answering: Answering, process: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (RECORDED / "queue_one.txt").read_text("utf-8")
    local = text.replace("LD.E.STRONG.GPU R0,desc[UR6][R2.64]", "LDS R0,[R2]")
    (tmp_path / "shared.txt").write_text(local, "utf-8")
    answering("queue_one")
    monkeypatch.setenv("TBSCHED_FAKE_GDB", str(tmp_path / "shared.txt"))
    assert tb.hang(pid=process).kind == "inside_kernel"


def test_what_threads_do_is_told(answering: Answering, process: int) -> None:
    answering("room_readme")
    found = tb.hang(pid=process)
    assert [(row.name, row.running, row.does, row.seen) for row in found.resident] == [
        ("schedulers", 16, "spins", "debugger"), ("workers", 116, "spins", "debugger"),
    ]  # fmt: skip
    assert [len(row.sms) for row in found.resident] == [16, 116]
    assert found.calls[0].callers[-1] == "main"


def test_a_second_is_between_two_looks(
    answering: Answering,
    process: int,
    monkeypatch: pytest.MonkeyPatch,
    seconds_between_looks: float,
) -> None:
    monkeypatch.setattr(find, "_SECONDS_BETWEEN_LOOKS", seconds_between_looks)
    answering("room_readme")
    begun = time.monotonic()
    tb.hang(pid=process)
    assert time.monotonic() - begun >= 2


def test_capture_adds_what_binds(answering: Answering, process: int, tmp_path: Path) -> None:
    answering("room_readme")
    lines = (
        issued(172, 13, "schedulers", 16, 128),
        issued(174, 14, "workers", 128, 256, dynamic_shared_memory=102400, registers=168),
        inside(176, "cuCtxSynchronize_v2"),
    )
    place = captured(tmp_path / "run.jsonl", *lines, ALIVE, process=process)
    found = tb.hang(place, pid=process)
    assert (found.kind, found.stranded[0].missing, found.stranded[0].cause) == (
        "room", 12, "registers",
    )  # fmt: skip
    assert found.stranded[0].limits
    assert {row.seen for row in found.resident} == {"debugger"}
    assert not any("differ" in sentence for sentence in found.proof)


def attached(
    answering: Answering,
    name: str,
    process: int,
    place: Path,
    *lines: dict[str, Any],
    **header: Any,
) -> tb.HangReport:
    """What a process and its capture give together."""
    answering(name)
    first = {"process": process, **header}
    return tb.hang(captured(place / "run.jsonl", *lines, ALIVE, **first), pid=process)


def test_first_launch_that_is_not_on_the_gpu_is_loaded(
    answering: Answering, process: int, tmp_path: Path
) -> None:
    lines = issued(1, 13, "wait_flag"), issued(2, 14, "set_flag", 1, 32)
    found = attached(answering, "loading_function", process, tmp_path, *lines)
    assert (found.kind, found.stranded[0].name, found.stranded[0].behind) == (
        "loading", "set_flag", "wait_flag",
    )  # fmt: skip


def test_launch_in_the_queue_behind_a_kernel_that_is_seen(
    answering: Answering, process: int, tmp_path: Path
) -> None:
    lines = issued(1, 13, "wait_flag"), issued(2, 13, "busy"), issued(3, 14, "set_flag", 1, 32)
    found = attached(answering, "queue_one", process, tmp_path, *lines, connections=1)
    assert (found.kind, found.stranded[0].name, found.stranded[0].behind) == (
        "queue", "set_flag", "busy",
    )  # fmt: skip


def test_legacy_stream_behind_a_kernel_that_is_seen(
    answering: Answering, process: int, tmp_path: Path
) -> None:
    lines = issued(1, 15, "wait_flag"), issued(2, 7, "busy"), issued(3, 16, "set_flag", 1, 32)
    found = attached(answering, "legacy_between", process, tmp_path, *lines)
    assert found.kind == "legacy_stream"


def test_what_is_not_seen_and_could_have_run_has_ended(
    answering: Answering, process: int, tmp_path: Path
) -> None:
    lines = issued(1, 13, "old"), issued(2, 14, "wait_flag"), issued(3, 14, "after")
    found = attached(answering, "queue_one", process, tmp_path, *lines)
    assert found.kind == "inside_kernel"
    assert [row.name for row in found.stranded] == ["after"]


def test_memory_that_the_host_can_read_is_the_hosts() -> None:
    memory = parse_maps(
        "7f333d000000-7f335c800000 ---p 00000000 00:00 0 \n"
        "7f335c800000-7f335ca00000 rw-s 00000000 00:01 6149      /dev/zero (deleted)\n"
    )
    assert memory(0x7F335C800000)
    assert not memory(0x7F335CA00000)
    assert not memory(0x7F333D000000)
    assert not memory(0)


def test_kernel_that_polls_the_host(
    answering: Answering, process: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering("host_flag")
    memory = parse_maps("7f335c800000-7f335ca00000 rw-s 00000000 00:01 6149 /dev/zero\n")
    monkeypatch.setattr("tbsched.hangs.find.host_memory_of", lambda process: memory)
    found = tb.hang(pid=process)
    assert (found.kind, found.calls[0].function) == ("host", "cuStreamSynchronize")
    assert any("0x7f335c800000" in sentence for sentence in found.proof)


# What cannot be looked at.


def test_nothing_to_look_at() -> None:
    with pytest.raises(ValueError, match=r"hang: a capture, a core dump or pid= is needed"):
        tb.hang()


@pytest.mark.parametrize("pid", [1.5, "17", {17: 18}])
def test_processes_that_are_no_list_of_numbers(pid: Any) -> None:
    with pytest.raises(TypeError, match=r"hang\.pid: a list is needed, got "):
        tb.hang(pid=pid)


def test_process_that_is_not_there(answering: Answering, process: int) -> None:
    answering("room_readme")
    with pytest.raises(ValueError, match="pid: there is no process 2147483647"):
        tb.hang(pid=2**31 - 1)


def test_process_that_may_not_be_traced(answering: Answering, process: int) -> None:
    answering("room_readme", "refused")
    with pytest.raises(ValueError, match=r"pid: process \d+: cannot be looked at: this user may"):
        tb.hang(pid=process)


def test_debugger_that_does_not_answer_is_left(answering: Answering, process: int) -> None:
    answering("room_readme", "slow")
    with pytest.raises(ValueError, match=r"the debugger gave no answer for 1 s"):
        tb.hang(pid=process, seconds=1.0)
    os.kill(process, 0)  # it goes on


def test_another_users_process(
    answering: Answering, process: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering("room_readme")
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    with pytest.raises(ValueError, match=r"pid: process \d+ belongs to user \S+, and another"):
        tb.hang(pid=process)


def test_without_a_debugger(process: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TBSCHED_CUDA_GDB", "/nowhere/cuda-gdb")
    assert debugger.debugger() is None
    with pytest.raises(FileNotFoundError, match="cuda-gdb is not found, and the process is not"):
        tb.hang(pid=process)


def test_capture_of_a_process_is_found_by_itself_and_no_debugger_comes(
    answering: Answering, tmp_path: Path
) -> None:
    answering("room_readme")
    place = tmp_path / "run.jsonl"
    with subprocess.Popen(
        [sys.executable, "-S", "-c", "input('runs\\n')"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={"TBSCHED_CAPTURE": str(place)},
    ) as waits:  # fmt: skip
        assert waits.stdout is not None
        assert waits.stdout.readline() == b"runs\n"  # before that it may have no environment
        captured(place, issued(1, 13, "grid", 300, 1024), ALIVE, process=waits.pid)
        found = tb.hang(pid=waits.pid)
        waits.kill()
    assert (found.kind, found.process) == ("room", waits.pid)
    assert any("CUDA takes one tool at a time" in each for each in found.unseen)
    assert not (tmp_path / "looks").exists()
    assert waits.returncode == -signal.SIGKILL


def elf(kind: int, machine: int) -> bytes:
    """The beginning of an ELF file whose table of sections is not there yet."""
    numbers = b"".join(each.to_bytes(2, "little") for each in (kind, machine))
    return (
        b"\x7fELF" + bytes(12) + numbers + bytes(20) + (1 << 20).to_bytes(8, "little") + bytes(40)
    )


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "empty: nothing of a core dump is written yet. Run the program with CUDA_ENABLE"),
        (bytes(100), "100 bytes that begin with zeros: a core dump that is not complete"),
        (b"something else", "14 bytes, and neither a capture nor a core dump. Run the program"),
    ],
)
def test_core_dumps_that_are_none_by_their_name(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "core.nvcudmp").write_bytes(content)
    with pytest.raises(ValueError, match=f"core.nvcudmp: {why}") as error:
        tb.hang(tmp_path / "core.nvcudmp")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "not a capture"),
        (
            b"\x7fELF" + bytes(20),
            "24 bytes, the beginning of a core dump that is not complete. Run",
        ),
        (elf(4, 190), r"not complete: 88 bytes of 1,048,576\. Run the program with CUDA_ENABLE"),
        (elf(4, 62), "a core dump of the host, not a core dump of a GPU. Run the program"),
        (elf(2, 62), "a program or a library, not a core dump of a GPU"),
        (b'{"tbsched_capture":1}\n{"issued":"x"}\n', "line 2: issued"),
    ],
)
def test_files_that_cannot_be(
    answering: Answering, tmp_path: Path, content: bytes, why: str
) -> None:
    answering("room_readme")
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match=why):
        tb.hang(tmp_path / "file")


def test_assertion_has_the_whole_answer(tmp_path: Path) -> None:
    place = captured(tmp_path / "run.jsonl", issued(1, 13, "grid", 300, 1024), ALIVE)
    with pytest.raises(AssertionError, match=r"(?s)HANGS, no room.*at most 264 blocks for grid"):
        tb.assert_not_hanging(place)
    tb.assert_not_hanging(RECORDED / "ended.jsonl")


# Ranks.


def rank(place: Path, number: int, *names: str) -> Path:
    lines = [issued(k + 1, 13, name, 24, 544) for k, name in enumerate(names)]
    return captured(place / f"rank{number}.jsonl", *lines, ALIVE, process=number + 1)


REDUCE, GATHER = "ncclDevKernel_AllReduce(int)", "ncclDevKernel_AllGather(int)"


def test_ranks_in_other_orders(tmp_path: Path) -> None:
    ranks = rank(tmp_path, 0, REDUCE, GATHER), rank(tmp_path, 1, GATHER, REDUCE)
    found = tb.hang(*ranks)
    assert found.kind == "order_of_ranks"
    assert "rank0.jsonl waits in ncclDevKernel_AllReduce" in found.reason
    assert len(found.proof) == 2


def test_ranks_in_one_order_do_not_wait_for_each_other(tmp_path: Path) -> None:
    ranks = rank(tmp_path, 0, REDUCE, GATHER), rank(tmp_path, 1, REDUCE, GATHER)
    assert tb.hang(*ranks).kind == "inside_kernel"


def test_ranks_in_other_orders_whose_kernels_have_run_before(tmp_path: Path) -> None:
    ranks = []
    for number, names in enumerate(((REDUCE, GATHER), (GATHER, REDUCE))):
        shapes = [
            {
                "kernel": k, "name": name, "grid": [24, 1, 1], "block": [544, 1, 1],
                "registers": 32, "static_shared_memory": 0, "dynamic_shared_memory": 0,
                "cooperative": False,
            }
            for k, name in enumerate((REDUCE, GATHER))
        ]  # fmt: skip
        ended = [
            {"ran": k, "call": k + 1, "context": 1, "stream": 13, "at": [10, 20]} for k in (0, 1)
        ]
        pending = [issued(k + 3, 13, name, 24, 544) for k, name in enumerate(names)]
        mine = issued(9, 14, "mine", 1)
        place = tmp_path / f"rank{number}.jsonl"
        ranks.append(captured(place, *shapes, *ended, *pending, mine, ALIVE, process=number + 1))
    assert tb.hang(*ranks).kind == "order_of_ranks"


def test_collectives_in_streams_that_do_not_wait_for_each_other(tmp_path: Path) -> None:
    ranks = [
        captured(
            tmp_path / f"rank{number}.jsonl",
            *(issued(k + 1, 13 + k, name, 24, 544) for k, name in enumerate(names)),
            ALIVE,
            process=number + 1,
        )
        for number, names in enumerate(((REDUCE, GATHER), (GATHER, REDUCE)))
    ]
    assert tb.hang(*ranks).kind == "inside_kernel"


def part(call: int, what: str, stream: int, event: int = 5) -> dict[str, Any]:
    return {
        "issued": call, "what": what, "function": "cuEventRecord", "thread": 0, "system_thread": 1,
        "at": 1000 * call, "context": 1, "stream": stream, "event": event,
    }  # fmt: skip


def ran(name: str) -> list[dict[str, Any]]:
    kernel = {
        "kernel": 0, "name": name, "grid": [24, 1, 1], "block": [544, 1, 1], "registers": 32,
        "static_shared_memory": 0, "dynamic_shared_memory": 0, "local_memory": 1736,
        "cooperative": False,
    }  # fmt: skip
    return [kernel, {"ran": 0, "call": 1, "context": 1, "stream": 13, "at": [10, 20]}]


def ranks_of(place: Path, *lines: list[dict[str, Any]], **header: object) -> list[Path]:
    return [
        captured(place / f"rank{k}.jsonl", *own, process=k + 1, started_ns=10**18, **header)
        for k, own in enumerate(lines)
    ]


WAITS_IN = issued(9, 13, REDUCE, 24, 544)


def test_rank_that_has_not_issued_the_collective_is_named(tmp_path: Path) -> None:
    found = tb.hang(*ranks_of(tmp_path, [*ran(REDUCE), WAITS_IN, ALIVE], ran(REDUCE)))
    assert found.kind == "host"
    assert "which rank1.jsonl has not issued" in found.reason
    assert "no call of CUDA is open" in found.reason
    assert any("nothing has been issued in the last 9.0 s" in each for each in found.proof)
    ended = [*ran(REDUCE), {"end": 30, "launches": 1}]
    found = tb.hang(*ranks_of(tmp_path, [*ran(REDUCE), WAITS_IN, ALIVE], ended))
    assert (found.kind, found.reason[-22:]) == ("host", "that program has ended")


def test_one_rank_alone_says_that_others_are_needed(tmp_path: Path) -> None:
    paths = ranks_of(tmp_path, [*ran(REDUCE), WAITS_IN, ALIVE], ran(REDUCE))
    alone, both = tb.hang(paths[0]), tb.hang(*paths)
    assert alone.kind == "inside_kernel"
    assert any(each.startswith("What the other ranks do") for each in alone.unseen)
    assert not any(each.startswith("What the other ranks do") for each in both.unseen)


def test_rank_that_has_come_shortly_before_goes_on(tmp_path: Path) -> None:
    late = [*ran(REDUCE), {"call": 8, "of": 0, "thread": 0, "at": [8 * 10**9, 85 * 10**8]}]
    function = {"function": 0, "name": "cudaLaunchKernel"}
    found = tb.hang(*ranks_of(tmp_path, [WAITS_IN, ALIVE], [function, *late]))
    assert found.kind == "not_hanging"
    assert "rank0.jsonl waits in ncclDevKernel_AllReduce(int), and rank1.jsonl" in found.reason


def test_rank_that_hangs_for_another_reason_has_the_answer(tmp_path: Path) -> None:
    room = issued(2, 13, "grid", 300, 1024)
    found = tb.hang(*ranks_of(tmp_path, [WAITS_IN, ALIVE], [room, ALIVE]))
    assert (found.kind, found.process) == ("room", 2)


@pytest.mark.parametrize(
    ("mine", "theirs", "why"),
    [
        ([issued(9, 13, GATHER, 24, 544)], [WAITS_IN], "they are of other kinds"),
        ([issued(9, 13, REDUCE, 1, 544)], [WAITS_IN], "they have 1 and 24 blocks"),
        (
            [WAITS_IN, part(10, "record", 13), part(11, "wait", 14),
             issued(12, 13, REDUCE, 24, 544), part(13, "record", 13), part(14, "wait", 15)],
            [WAITS_IN, part(10, "record", 13), part(11, "wait", 15),
             issued(12, 13, REDUCE, 24, 544), part(13, "record", 13), part(14, "wait", 14)],
            "their communicators have the streams 14 and 15",
        ),
        ([*ran(REDUCE), WAITS_IN], [*ran(REDUCE), WAITS_IN], "such have ended before"),
    ],
)  # fmt: skip
def test_ranks_in_different_collectives(
    tmp_path: Path, mine: list[dict[str, Any]], theirs: list[dict[str, Any]], why: str
) -> None:
    found = tb.hang(*ranks_of(tmp_path, [*mine, ALIVE], [*theirs, ALIVE]))
    assert found.kind == "order_of_ranks"
    assert why in found.reason
    assert any("no capture is given" in each for each in found.unseen)


def test_ranks_number_their_collectives_as_the_file_does(tmp_path: Path) -> None:
    # Records of the first rank have not come, so it would count from 0.
    mine = [issued(k, 13, name, 24, 544, before=6) for k, name in ((8, REDUCE), (9, GATHER))]
    theirs = [*ran(REDUCE), {**mine[1], "before": 6}, {**mine[0], "issued": 10, "at": 10_000}]
    found = tb.hang(*ranks_of(tmp_path, [*mine, ALIVE], [*theirs, ALIVE]))
    assert "number 7 of that name" in found.reason


def test_collective_that_has_run_needs_no_more_local_memory(tmp_path: Path) -> None:
    collective = issued(9, 14, REDUCE, 24, 544, local_memory=1736)
    holder = issued(8, 13, "holder", 264, 1024)
    found = of(tmp_path, *ran(REDUCE), holder, collective)
    assert (found.kind, found.stranded[0].cause) == ("room", "warps")


# Default streams, green contexts, graphs.


def test_event_that_the_default_stream_holds_up(tmp_path: Path) -> None:
    event = part(2, "record", 7), part(3, "wait", 14)
    found = of(tmp_path, issued(1, 15, "merge"), *event, issued(4, 14, "sort"))
    assert (found.kind, found.stranded[0].name) == ("legacy_stream", "sort")
    found = of(tmp_path, issued(1, 7, "merge"), *event, issued(4, 14, "sort"))
    assert found.kind == "not_known"


def test_green_context_has_room_for_fewer_blocks(tmp_path: Path) -> None:
    green = {"stream": 13, "context": 1, "kind": "non_blocking", "priority": 0, "green_sms": 16}
    barrier = issued(1, 13, "barrier", 32, 1024, dynamic_shared_memory=120 << 10)
    found = of(tmp_path, green, HEAD[3], barrier)
    assert (found.kind, found.stranded[0].missing) == ("room", 16)
    assert any("SMs of a green context" in each for each in found.unseen)


def test_graph_that_does_not_end_is_not_known(tmp_path: Path) -> None:
    graph = {**part(1, "graph", 13), "function": "cuGraphLaunch"}
    found = of(tmp_path, graph, inside(2, "cuCtxSynchronize"))
    assert (found.kind, found.may_be) == ("not_known", ("inside_kernel", "room", "not_hanging"))
    assert of(tmp_path, graph, issued(3, 14, "spin")).kind == "not_known"


def test_capture_of_a_graph_that_does_not_end_is_one_with_a_launch(tmp_path: Path) -> None:
    graph = {**part(1, "graph", 13), "function": "cuGraphLaunch"}
    place = tmp_path / "run.jsonl"
    place.write_text(f"{json.dumps(graph, separators=(',', ':'))}\n", "utf-8")
    assert captured_files.launches_of(place) == 1


# The command line.


def status(*words: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["hang", *map(str, words)], standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return int(done.return_value or 0), done.stdout


def test_status_says_whether_it_hangs(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    found, text = status(RECORDED / "room.jsonl", "--html", page)
    assert (found, text.splitlines()[0][:15]) == (1, "HANGS, no room:")
    assert "24 of 128 blocks of dispatch never start" in text
    assert "a carveout of 72 % for gather_rows" in text
    assert "<svg" in page.read_text("utf-8")
    assert status(RECORDED / "ended.jsonl")[0] == 0
    with pytest.raises(ValueError, match="not a capture"):
        status(Path(__file__))


def test_bad_value_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"run\.jsonl: grid: three numbers"):
        of(tmp_path, issued(1, 13, "A", 8, 128, grid=[8, "", 1]))


def test_other_verbs_take_what_was_issued_and_has_not_ended() -> None:
    def said(verb: str, *options: str) -> tuple[str, str]:
        words = [verb, str(RECORDED / "room.jsonl"), *options]
        done = CliRunner().invoke(app, words, standalone_mode=False)
        if done.exception is not None:
            raise done.exception
        return done.stdout, done.stderr

    answers = {
        "coresident": "24 of 128 blocks of dispatch never start",
        "capacity": "104 blocks of dispatch fit, beside gather_rows",
    }
    for verb, answer in answers.items():
        out, notes = said(verb)
        assert answer in out
        assert "no launch has ended; taken are 2 launches" in notes
        assert "`tbsched hang" in notes
    out, _ = said("capacity", "--device", "h100")
    assert "of dispatch fit" in out
    with pytest.raises(
        ValueError, match=r"no duration is known; `tbsched hang .*room\.jsonl` says"
    ):
        said("predict")
