"""What a capture writes of work that was issued and has not ended, as the fake CUPTI plays it."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

import tbsched as tb
from capture.conftest import Played
from tbsched.hangs.unfinished import StreamFacts, read_unfinished

# What has not ended is written when it is half a second old.
WAIT = "import os, signal, time\ntime.sleep(1.2)\n"
LONG_ENOUGH = "import time; time.sleep(2.5)\n"  # for a hang to be told
KILL = "os.kill(os.getpid(), signal.SIGKILL)\n"


def played(run: Played, place: Path, code: str, end: str = KILL) -> list[dict[str, object]]:
    done = run(f"gpu.begin()\n{textwrap.dedent(code)}\n{WAIT}{end}", FAKE_CUPTI_CLOCK="1")
    assert done.stderr == ""
    return [json.loads(line) for line in (place / "run.jsonl").read_text("utf-8").splitlines()]


def of(lines: list[dict[str, object]], key: str) -> list[dict[str, object]]:
    return [line for line in lines if next(iter(line)) == key]


def launch(call: int, stream: int = 13, sides: int = 0, result: int = 0) -> str:
    what = f'"_Z3addPfi", {call}, wide({stream}), 40, 256, {sides}, {result}'
    return f'gpu.play("issue_launch", {what})\n'


def test_launch_that_never_ends_is_in_the_file_of_a_killed_program(
    run: Played, tmp_path: Path
) -> None:
    lines = played(run, tmp_path, 'gpu.play("set_carveout", 30)\n' + launch(1))
    (issued,) = of(lines, "issued")
    assert {key: issued[key] for key in ("issued", "what", "function", "thread", "stream")} == {
        "issued": 1, "what": "launch", "function": "cuLaunchKernel", "thread": 0, "stream": 13,
    }  # fmt: skip
    assert issued["name"] == "add(float*, int)"
    assert (issued["grid"], issued["block"]) == ([40, 1, 1], [256, 1, 1])
    assert (issued["dynamic_shared_memory"], issued["carveout"]) == (512, 30)
    assert of(lines, "alive")
    assert not of(lines, "inside")


def test_size_of_an_unfinished_launch_comes_from_its_module(run: Played, tmp_path: Path) -> None:
    launcher = pytest.importorskip("tbsched._launcher", reason="built without nvcc")
    image = launcher.patch(launcher.images()["sm_90"], 32, 64)
    (tmp_path / "a.cubin").write_bytes(image)
    code = """
        image = open("a.cubin", "rb").read()
        for call in (1, 2):  # a module that is loaded again has no other kernels
            gpu.play("module", image, wide(len(image)))
            gpu.play("issue_launch", "tbsched_probe", call, wide(13), 40, 256, 0, 0)
    """
    lines = played(run, tmp_path, code)
    issued, again = of(lines, "issued")
    assert again["code"] == 0
    assert (issued["registers"], issued["local_memory"]) == (32, 64)
    (code,) = of(lines, "code")
    assert issued["code"] == code["code"] == 0
    assert bytes.fromhex(str(code["hex"])) in image
    assert code["parameters_at"] in (0x210, 0x380)
    host = issued["host_arguments"]
    assert isinstance(host, list)
    assert host[:1] == [0]
    assert issued["arguments"][:1] == [0]  # type: ignore[index]
    assert len(issued["arguments"]) == 2 * len(host)  # type: ignore[arg-type]
    assert issued["managed_arguments"] == []


def test_place_of_a_launch_is_told_although_its_records_never_come(
    run: Played, tmp_path: Path
) -> None:
    done = run(launch(1) + launch(2, 14) + WAIT + KILL, FAKE_CUPTI_CLOCK="1")
    assert done.stderr == ""
    found = read_unfinished(tmp_path / "run.jsonl")
    assert found.gpus == {0: ("Fake H100", 132, "9.0")}
    assert found.streams[1, 13] == StreamFacts("non_blocking", -1)
    assert found.streams[1, 14] == StreamFacts("default", 0)


def test_what_has_ended_is_not_told(run: Played, tmp_path: Path) -> None:
    code = launch(1) + launch(2) + launch(3, sides=0, result=700)
    code += 'gpu.play("kernel", "k", 2, 1, 13, wide(1), wide(2), 2, 32, 16, wide(0), 0)\n'
    code += launch(4, 14) + 'gpu.play("issue_synchronize", 5, wide(14), 0)\n'
    lines = played(run, tmp_path, code)
    assert of(lines, "context")
    # 1 came before 2 in its stream, 3 failed, 4 was waited for.
    assert read_unfinished(tmp_path / "run.jsonl").operations == ()


@pytest.mark.parametrize("later_version", [False, True])
def test_waiting_for_the_context_ends_all_its_streams(
    run: Played, tmp_path: Path, later_version: bool
) -> None:
    code = (
        launch(1) + launch(2, 14) + f'gpu.play("issue_context_synchronize", 3, {later_version})\n'
    )
    played(run, tmp_path, code)
    assert read_unfinished(tmp_path / "run.jsonl").operations == ()


def test_what_was_issued_while_the_host_waited_may_not_have_ended(
    run: Played, tmp_path: Path
) -> None:
    code = """
        import threading
        begun, issued = threading.Event(), threading.Event()
        def wait():
            gpu.play("issue_synchronize", 5, wide(13), 1)
            begun.set(), issued.wait()
            gpu.play("issue_synchronize", 5, wide(13), 2)
        waiting = threading.Thread(target=wait)
        waiting.start()
        begun.wait()
    """
    code = f"{launch(1)}{textwrap.dedent(code)}{launch(2)}issued.set(); waiting.join()"
    lines = played(run, tmp_path, code)
    assert [line["issued"] for line in of(lines, "issued")] == [2]


def test_call_that_does_not_return_is_told_with_its_thread(run: Played, tmp_path: Path) -> None:
    lines = played(run, tmp_path, launch(1) + 'gpu.play("issue_free", 2, 1)')
    (inside,) = of(lines, "inside")
    assert (inside["inside"], inside["function"]) == (2, "cuMemFree_v2")
    assert inside["system_thread"] > 0  # type: ignore[operator]


@pytest.mark.parametrize("name", ["cuMemcpy2D_v2_ptds", "cuGraphUpload", "cuEventDestroy_v2"])
def test_calls_that_may_wait_and_issue_nothing_that_is_noted_are_told(
    run: Played, tmp_path: Path, name: str
) -> None:
    (inside,) = of(played(run, tmp_path, f'gpu.play("enter", "{name}", 4)'), "inside")
    assert (inside["inside"], inside["function"]) == (4, name)


@pytest.mark.parametrize("earlier", [False, True])
def test_values_that_a_stream_writes_are_told(run: Played, tmp_path: Path, earlier: bool) -> None:
    """By the function of today, and the first one of its name."""
    code = launch(1) + f'gpu.play("issue_write_value", 2, wide(13), {earlier})\n'
    lines = of(played(run, tmp_path, code), "issued")
    assert [line["what"] for line in lines] == ["launch", "write_value"]


def test_value_that_the_null_stream_writes_behind_other_work_is_told(
    run: Played, tmp_path: Path
) -> None:
    code = launch(1, 14) + 'gpu.play("issue_write_value", 2, wide(0), False)\n'
    lines = of(played(run, tmp_path, code), "issued")
    assert [line["what"] for line in lines] == ["launch", "write_value"]


def test_value_that_an_idle_stream_writes_is_not_told(run: Played, tmp_path: Path) -> None:
    code = launch(1, 14) + 'gpu.play("issue_write_value", 2, wide(5), False)\n'
    lines = of(played(run, tmp_path, code), "issued")
    assert [line["what"] for line in lines] == ["launch"]


def test_call_that_returns_late_is_told_to_have_returned(run: Played, tmp_path: Path) -> None:
    code = (
        'gpu.play("issue_free", 2, 1); import time; time.sleep(1.2); gpu.play("issue_free", 2, 2)'
    )
    lines = played(run, tmp_path, code)
    assert [line["inside"] for line in of(lines, "inside")] == [2]
    assert [line["returned"] for line in of(lines, "returned")] == [2]


def test_work_that_ends_late_without_a_record_is_told_to_have_ended(
    run: Played, tmp_path: Path
) -> None:
    code = launch(1) + 'gpu.play("graph_launch", 2, wide(5), wide(13))\n'
    code += "import time; time.sleep(1.2)\n"
    code += 'gpu.play("issue_synchronize", 5, wide(13), 0)\n'
    lines = played(run, tmp_path, code)
    assert [line["issued"] for line in of(lines, "issued")] == [1, 2]
    assert [line["ended"] for line in of(lines, "ended")] == [1, 2]


def test_events_are_told_of_while_something_waits_for_them(run: Played, tmp_path: Path) -> None:
    code = 'gpu.play("issue_record", 1, wide(13), wide(9))\n'  # its stream is idle
    code += 'gpu.play("issue_wait", 2, wide(14), wide(9))\n'
    code += launch(3) + 'gpu.play("issue_record", 4, wide(13), wide(9))\n'
    code += 'gpu.play("issue_wait", 5, wide(14), wide(9))\n' + launch(6, 14)
    code += 'gpu.play("issue_copy", 7, wide(14), wide(4096))\n'
    lines = of(played(run, tmp_path, code), "issued")
    assert [(line["issued"], line["what"]) for line in lines] == [
        (3, "launch"), (4, "record"), (5, "wait"), (6, "launch"), (7, "copy"),
    ]  # fmt: skip
    assert [line.get("event") for line in lines] == [None, 9, 9, None, None]
    assert lines[-1]["bytes"] == 4096


@pytest.mark.parametrize("flags", [0, 2])
def test_records_tell_whether_their_event_has_timing(
    run: Played, tmp_path: Path, flags: int
) -> None:
    code = launch(1) + f'gpu.play("create_event", wide(9), {flags})\n'
    code += 'gpu.play("issue_record", 2, wide(13), wide(9))\n'
    (record,) = of(played(run, tmp_path, code), "issued")[1:]
    assert record.get("timing", False) is (flags == 0)
    capture = read_unfinished(tmp_path / "run.jsonl")
    assert [each.has_timing for each in capture.operations] == [False, flags == 0]


def test_copies_and_memsets_tell_where_they_write(run: Played, tmp_path: Path) -> None:
    code = launch(1) + 'gpu.play("issue_copy", 2, wide(13), wide(64))\n'
    code += 'gpu.play("issue_memset", 3, wide(13), wide(8192), wide(4))\n'
    code += 'gpu.play("issue_write_value", 4, wide(13), False)\n'
    _, copy, memset, value = of(played(run, tmp_path, code), "issued")
    assert (copy["address"], copy["to"], copy["from"]) == (4096, "other", "host")
    assert (memset["address"], memset["to"], memset["bytes"]) == (8192, "other", 16)
    assert "source" not in memset
    assert (value["address"], value["to"]) == (copy["source"], "host")
    capture = read_unfinished(tmp_path / "run.jsonl")
    assert [each.address for each in capture.operations] == [None, 4096, 8192, value["address"]]


@pytest.mark.parametrize("result", [0, 901])
def test_launches_into_a_graph_are_not_told(run: Played, tmp_path: Path, result: int) -> None:
    code = 'gpu.play("stream_capture", True, 0)\n' + launch(1)
    code += f'gpu.play("stream_capture", False, {result})\n' + launch(2)
    lines = played(run, tmp_path, code)
    assert [line["issued"] for line in of(lines, "issued")] == [2]


def test_call_that_ends_no_capture_into_a_graph_is_none(run: Played, tmp_path: Path) -> None:
    """Of another thread (908), or of a stream that is not captured (401)."""
    code = 'gpu.play("stream_capture", True, 0)\n'
    code += "".join(f'gpu.play("stream_capture", False, {each})\n' for each in (908, 401, 903))
    code += launch(1) + 'gpu.play("stream_capture", False, 904)\n' + launch(2)
    lines = played(run, tmp_path, code)
    assert [line["issued"] for line in of(lines, "issued")] == [2]


def test_nothing_is_asked_about_a_stream_while_it_is_captured_into_a_graph(
    run: Played, tmp_path: Path
) -> None:
    code = 'gpu.play("stream_capture", True, 0)\nbefore = gpu.questions()\n' + launch(1, 14)
    code += 'gpu.play("graph_launch", 2, wide(5), wide(14))\n'
    code += 'gpu.play("issue_synchronize", 3, wide(13), 0)\n'
    code += "assert gpu.questions() == before\n"
    code += 'gpu.play("stream_capture", False, 0)\n' + launch(4, 14)
    done = run(code + WAIT + KILL, FAKE_CUPTI_CLOCK="1")
    assert done.stderr == ""
    found = read_unfinished(tmp_path / "run.jsonl")
    assert [each.call for each in found.operations] == [4]
    assert found.streams[1, 14] == StreamFacts("default", 0)


def test_launch_of_a_graph_during_the_capture_of_another_is_told(
    run: Played, tmp_path: Path
) -> None:
    """Its stream was used before, so that nothing needs to be asked."""
    code = launch(1, 14) + 'gpu.play("stream_capture", True, 0)\n'
    code += 'gpu.play("graph_launch", 2, wide(5), wide(14))\n'
    (line,) = of(played(run, tmp_path, code), "graph_launch")
    assert line == {"graph_launch": 2, "executable": 5, "context": 1, "stream": 14}


def test_wait_for_a_stream_during_a_capture_ends_no_other(run: Played, tmp_path: Path) -> None:
    code = launch(1) + 'gpu.play("stream_capture", True, 0)\n'
    code += 'gpu.play("issue_synchronize", 2, wide(14), 0)\n'
    code += 'gpu.play("stream_capture", False, 0)\n'
    lines = played(run, tmp_path, code)
    assert [line["issued"] for line in of(lines, "issued")] == [1]


def test_event_in_the_default_stream_waits_for_other_streams(run: Played, tmp_path: Path) -> None:
    code = launch(1, 14) + 'gpu.play("issue_record", 2, wide(0), wide(9))\n'
    code += 'gpu.play("issue_wait", 3, wide(13), wide(9))\n' + launch(4)
    lines = of(played(run, tmp_path, code), "issued")
    assert [(line["issued"], line["what"]) for line in lines] == [
        (1, "launch"), (2, "record"), (3, "wait"), (4, "launch"),
    ]  # fmt: skip


def test_records_in_an_idle_stream_are_kept_once(run: Played, tmp_path: Path) -> None:
    """Another stream holds them up. A wait for one of them keeps that one, too."""
    code = (
        launch(1, 14)
        + """
for number in range(100):
    gpu.play("issue_record", 2 + 2 * number, wide(0), wide(9))
    gpu.play("issue_record", 3 + 2 * number, wide(0), wide(8))
    if number == 49:
        gpu.play("issue_wait", 500, wide(13), wide(9))
"""
    )
    lines = of(played(run, tmp_path, code), "issued")
    assert [line["issued"] for line in lines] == [1, 100, 500, 200, 201]


def test_event_in_another_stream_waits_for_the_default_stream(run: Played, tmp_path: Path) -> None:
    code = launch(1, 0) + 'gpu.play("issue_record", 2, wide(14), wide(9))\n'
    code += 'gpu.play("issue_wait", 3, wide(13), wide(9))\n' + launch(4)
    code += 'gpu.play("issue_record", 5, wide(13), wide(8))\n'
    lines = of(played(run, tmp_path, code), "issued")
    assert [line["issued"] for line in lines] == [1, 2, 3, 4, 5]


def test_sms_of_a_green_context_are_told(run: Played, tmp_path: Path) -> None:
    lines = played(run, tmp_path, launch(1, 15) + launch(2, 14))
    known = {line["stream"]: line.get("green_sms") for line in of(lines, "stream")}
    assert (known[15], known[14]) == (16, None)


def test_arguments_in_one_buffer_are_told(run: Played, tmp_path: Path) -> None:
    launcher = pytest.importorskip("tbsched._launcher", reason="built without nvcc")
    (tmp_path / "a.cubin").write_bytes(launcher.patch(launcher.images()["sm_90"], 32, 64))
    code = """
        image = open("a.cubin", "rb").read()
        gpu.play("module", image, wide(len(image)))
        gpu.play("issue_packed", "tbsched_probe", 1, wide(13))
    """
    (issued,) = of(played(run, tmp_path, code), "issued")
    assert issued["arguments"][:2] == [0, 5]  # type: ignore[index]
    assert "host_arguments" not in issued


@pytest.mark.parametrize(("size", "last"), [(196, [192, 4]), (194, [192, 2]), (193, [192, 1])])
def test_arguments_of_few_bytes_are_told(
    run: Played, tmp_path: Path, size: int, last: list[int]
) -> None:
    """The kernel takes one argument: its size is in the module."""
    launcher = pytest.importorskip("tbsched._launcher", reason="built without nvcc")
    image = launcher.patch(launcher.images()["sm_90"], 32, 64)
    whole, cut = ((each << 18 | 0x1F000).to_bytes(4, "little") for each in (200, size))
    assert image.count(whole) == 1
    (tmp_path / "a.cubin").write_bytes(image.replace(whole, cut))
    code = """
        image = open("a.cubin", "rb").read()
        gpu.play("module", image, wide(len(image)))
        gpu.play("issue_packed", "tbsched_probe", 1, wide(13))
    """
    (issued,) = of(played(run, tmp_path, code), "issued")
    place, value, own_size = issued["small_arguments"]  # type: ignore[misc]
    assert (place, own_size) == (last[0], last[1])
    assert value == 5
    assert issued["arguments"][-2:] == [184, 5]  # type: ignore[index]


def test_launches_of_a_name_are_counted(run: Played, tmp_path: Path) -> None:
    ran = 'gpu.play("kernel", "_Z3addPfi", 1, 1, 14, wide(1), wide(2), 2, 32, 16, wide(0), 0)\n'
    lines = played(run, tmp_path, launch(1, 14) + ran + launch(2) + launch(3))
    assert [(line["issued"], line["before"]) for line in of(lines, "issued")] == [(2, 1), (3, 2)]


def test_programs_name_what_has_not_ended(run: Played, tmp_path: Path) -> None:
    played(run, tmp_path, launch(1) + launch(2))
    with pytest.raises(ValueError, match=r"no kernel has ended: a launch of add\(float\*, int\)"):
        tb.load_program(tmp_path / "run.jsonl", fit=False)


def test_assumptions_name_what_has_not_ended(run: Played, tmp_path: Path) -> None:
    ran = 'gpu.play("kernel", "k", 2, 1, 13, wide(1), wide(2), 2, 32, 16, wide(0), 0)\n'
    played(run, tmp_path, launch(2) + ran + launch(3, 14))
    program = tb.load_program(tmp_path / "run.jsonl", fit=False)
    assert len(program.sequence.launches) == 1
    assert any("1 operations that were issued, the first a launch" in x for x in program.assumed)


def test_whole_captures_say_nothing_of_it(run: Played, tmp_path: Path) -> None:
    code = launch(1) + WAIT
    code += 'gpu.play("kernel", "_Z3addPfi", 1, 1, 13, wide(1), wide(2), 2, 32, 16, wide(0), 0)\n'
    played(run, tmp_path, code, end="")
    program = tb.load_program(tmp_path / "run.jsonl", fit=False)
    assert not any("issued" in sentence for sentence in program.assumed)
    assert tb.hang(tmp_path / "run.jsonl").kind == "not_hanging"


def test_hang_is_told_from_the_file_of_a_killed_program(run: Played, tmp_path: Path) -> None:
    played(run, tmp_path, launch(1) + 'gpu.play("issue_free", 2, 1)\n' + LONG_ENOUGH)
    found = tb.hang(tmp_path / "run.jsonl")
    assert found.kind == "host"
    assert [(row.name, row.running, row.blocks) for row in found.resident] == [
        ("add(float*, int)", 40, 40)
    ]
    assert [call.function for call in found.calls] == ["cuMemFree_v2"]


def test_blocks_without_room_are_counted_from_the_file(run: Played, tmp_path: Path) -> None:
    code = 'gpu.play("issue_launch", "grid", 1, wide(13), 300, 1024, 0, 0)\n' + LONG_ENOUGH
    played(run, tmp_path, code)
    found = tb.hang(tmp_path / "run.jsonl")
    assert (found.kind, found.stranded[0].missing, found.stranded[0].cause) == ("room", 36, "warps")


def test_threads_that_compute_or_sleep_and_call_nothing_of_cuda_are_told(
    run: Played, tmp_path: Path
) -> None:
    code = (
        launch(1)
        + """
import threading, time
def compute():
    end = time.monotonic() + 3.5
    while time.monotonic() < end:
        pass
threading.Thread(target=compute).start()
threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
for _ in range(300):  # a thread that wakes up again and again does not sleep for long
    time.sleep(0.01)
"""
    )
    lines = played(run, tmp_path, code)
    process = of(lines, "tbsched_capture")[0]["process"]
    news = of(lines, "alive")
    busy = {each for line in news for each in line.get("busy", [])}  # type: ignore[attr-defined]
    asleep = {each for line in news for each in line.get("asleep", [])}  # type: ignore[attr-defined]
    assert len(busy) == len(asleep - {process}) == 1  # which sleeps at its end
    assert process not in busy
    assert busy.isdisjoint(asleep)


def test_threads_that_call_cuda_are_not_told(run: Played, tmp_path: Path) -> None:
    code = (
        launch(1)
        + """
import time
end = time.monotonic() + 3
while time.monotonic() < end:
    gpu.play("issue_query", 2, wide(14))
"""
    )
    lines = played(run, tmp_path, code)
    assert len(of(lines, "alive")) >= 3
    assert not any("busy" in line for line in of(lines, "alive"))


LOAD = """
import time
image = open("a.cubin", "rb").read()
gpu.play("module", image, wide(len(image)))
def launch(call, stream=13):
    gpu.play("issue_launch", "tbsched_probe", call, wide(stream), 40, 256, 0, 0)
"""


def write_module(place: Path) -> None:
    """Writes the module of a kernel with arguments, which ``LOAD`` loads."""
    launcher = pytest.importorskip("tbsched._launcher", reason="built without nvcc")
    (place / "a.cubin").write_bytes(launcher.patch(launcher.images()["sm_90"], 32, 64))


def watched(run: Played, place: Path, code: str) -> list[list[int]]:
    """The addresses whose memory is told to have changed, of a program with a kernel's module."""
    write_module(place)
    lines = played(run, place, LOAD + textwrap.dedent(code))
    (first, *_) = of(lines, "issued")
    (address,) = set(first["arguments"][1::2])  # type: ignore[index]
    told = [line["changed"] for line in of(lines, "alive") if "changed" in line]
    return [[each - address for each in line] for line in told]  # type: ignore[attr-defined]


@pytest.mark.parametrize("place", ["", 'gpu.play("address_the_end")\n'])
def test_memory_of_the_host_that_changes_is_told(run: Played, tmp_path: Path, place: str) -> None:
    """Also before memory that is not there."""
    code = 'launch(1)\ntime.sleep(1.7)\ngpu.play("write_host")\ntime.sleep(2)\n'
    assert watched(run, tmp_path, place + code) == [[0]]


def test_memory_that_is_watched_with_other_memory_has_not_changed(
    run: Played, tmp_path: Path
) -> None:
    """With an address behind it, fewer bytes of it are compared."""
    code = """
        launch(1)
        gpu.play("address_words", wide(8))
        launch(2, 14)
        time.sleep(1.7)
        gpu.play("issue_synchronize", 3, wide(14), 0)
        time.sleep(2)
    """
    assert watched(run, tmp_path, code) == []


def test_memory_is_not_compared_with_that_of_kernels_that_have_ended(
    run: Played, tmp_path: Path
) -> None:
    code = """
        launch(1)
        time.sleep(1.4)
        gpu.play("issue_synchronize", 2, wide(13), 0)
        time.sleep(0.35)
        gpu.play("write_host")
        launch(3)
        time.sleep(2)
    """
    assert watched(run, tmp_path, code) == []


def test_capture_keeps_no_pipe_open(run: Played, tmp_path: Path) -> None:
    """A program that closes descriptors that it does not know may get their numbers."""
    code = """
        import os
        names = [os.path.realpath(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")]
        own = {os.path.realpath(f"/proc/self/fd/{n}") for n in (0, 1, 2)}
        assert not [each for each in names if "pipe:" in each and each not in own]
    """
    played(run, tmp_path, code)


def gpu_memory(
    run: Played, place: Path, code: str, **variables: str
) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """The lines of a program with a kernel that addresses memory of the GPU; and those on it."""
    write_module(place)
    code = LOAD + 'gpu.play("address_gpu")\nlaunch(1)\n' + textwrap.dedent(code) + WAIT + KILL
    done = run(f"gpu.begin()\n{code}", FAKE_CUPTI_CLOCK="1", **variables)
    assert done.stderr == ""
    lines = [json.loads(each) for each in (place / "run.jsonl").read_text("utf-8").splitlines()]
    return lines, of(lines, "gpu_memory")


WATCHED = {"TBSCHED_HANG_AFTER": "1"}


def test_memory_of_the_gpu_is_read_while_nothing_ends(run: Played, tmp_path: Path) -> None:
    """The copies are not among what the program has done."""
    lines, reads = gpu_memory(run, tmp_path, "time.sleep(1.5)\n", **WATCHED)
    last = reads[-1]
    assert {key: value for key, value in last.items() if key not in ("at", "reads")} == {
        "gpu_memory": 0x7F0000000000, "bytes": 256,
    }  # fmt: skip
    first_ns, last_ns = last["at"]  # type: ignore[misc]
    assert last["reads"] >= 4  # type: ignore[operator]
    assert 0 < first_ns < last_ns
    assert not [line for line in lines if {"copy", "call"} & {next(iter(line))}]
    assert [line["what"] for line in of(lines, "issued")] == ["launch"]
    assert 99 not in [line["stream"] for line in of(lines, "stream")]


def test_words_are_told_by_how_they_change(run: Played, tmp_path: Path) -> None:
    code = """
        for number in range(24):
            gpu.play("write_gpu", 3, number)
            gpu.play("write_gpu", 4, number % 2)
            gpu.play("write_gpu", 5, 7 * number % 31)
            gpu.play("write_gpu", 6, int(number > 12))
            time.sleep(0.1)
    """
    _, reads = gpu_memory(run, tmp_path, code, **WATCHED)
    base = 0x7F0000000000
    assert any(
        line.get("counted") == 1
        and line.get("counted_at") == [base + 12]
        and line.get("renewed_at") == [base + 20]
        and line.get("returned") == 1
        for line in reads
    )
    assert any(line.get("once") == 1 for line in reads)


def test_memory_of_the_gpu_is_not_read_unless_hangs_are_looked_for(
    run: Played, tmp_path: Path
) -> None:
    _, reads = gpu_memory(run, tmp_path, "time.sleep(1)\nassert gpu.copies() == 0\n")
    assert reads == []


def test_memory_of_the_gpu_is_not_read_while_work_ends(run: Played, tmp_path: Path) -> None:
    code = """
        for call in range(2, 30):
            gpu.play("issue_synchronize", call, wide(13), 0)
            launch(100 + call)
            gpu.play("kernel", "_Z3addPfi", 100 + call, 1, 13, wide(1), wide(2), 2, 32, 16, wide(0),
                     0)
            time.sleep(0.1)
        assert gpu.copies() == 0
        os = __import__("os"); os._exit(0)
    """
    _, reads = gpu_memory(run, tmp_path, code, **WATCHED)
    assert reads == []


@pytest.mark.parametrize("end", ["", "raise SystemExit(0)\n"])
def test_copies_that_never_end_hold_nothing_up(run: Played, tmp_path: Path, end: str) -> None:
    code = 'gpu.play("hold_copies")\ntime.sleep(1.5)\nassert gpu.copies() == 1\n' + end
    lines, reads = gpu_memory(run, tmp_path, code, **WATCHED)
    assert reads == []
    assert lines[0]["reads_gpu_memory"] is True
    assert bool(of(lines, "end")) == bool(end)


def test_work_before_an_event_ends_with_what_waited_for_it(run: Played, tmp_path: Path) -> None:
    code = launch(1, 14)
    code += 'gpu.play("issue_record", 2, wide(14), wide(900))\n'
    code += 'gpu.play("issue_wait", 3, wide(13), wide(900))\n'
    code += launch(4) + launch(5, 14) + WAIT
    code += 'gpu.play("kernel", "_Z3addPfi", 4, 1, 13, wide(1), wide(2), 2, 32, 16, wide(0), 0)\n'
    lines = played(run, tmp_path, code)
    assert {line["ended"] for line in of(lines, "ended")} == {1, 2, 3}
    left = read_unfinished(tmp_path / "run.jsonl").operations
    assert [each.call for each in left] == [5]
