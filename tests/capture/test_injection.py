"""From a program, through the injected library, the file and its reader, to what can be predicted.

The fake CUPTI plays the GPU.
"""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

import tbsched as tb
from capture.conftest import Played
from tbsched.launcher import injection

TWO = "gpu.begin(); gpu.launch(1); gpu.launch(2)\n"


def lines(place: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in place.read_text("utf-8").splitlines()]


def test_launches_come_back_with_all_that_cupti_knows(run: Played, tmp_path: Path) -> None:
    assert run(TWO).stderr == ""
    program = tb.load_program(tmp_path / "run.jsonl", fit=False)
    assert program.device == "Fake H100"
    assert [str(launch) for launch in program.sequence.launches] == [
        "Launch(blocks=66, threads=256, registers=32, shared_memory=1536, carveout=50, cluster=2, "
        "stream=13, priority=-1, duration=4e-06, name='add(float*, int)')"
    ] * 2
    assert program.measured["channel"].tolist() == [3, 3]
    assert program.measured["shared_memory_executed"].tolist() == [102400, 102400]
    assert program.measured["call_ns"].tolist() == [0, 10_000]
    assert program.measured["return_ns"].tolist() == [500, 10_500]
    assert program.measured["start_ns"].tolist() == [2_000, 12_000]
    assert not any("kernels" in sentence for sentence in program.assumed)


@pytest.mark.parametrize(("asked", "found"), [("32", 32), ("x", 8), ("", 8)])
def test_number_of_connections_is_kept(run: Played, tmp_path: Path, asked: str, found: int) -> None:
    run(TWO, CUDA_DEVICE_MAX_CONNECTIONS=asked)
    assert tb.load_program(tmp_path / "run.jsonl", fit=False).connections == found


def test_launch_takes_few_bytes(run: Played, tmp_path: Path) -> None:
    run("gpu.begin()\nfor call in range(100_000, 100_200): gpu.launch(call)")
    whole = (tmp_path / "run.jsonl").rename(tmp_path / "whole").stat().st_size
    run("gpu.begin(); gpu.launch(100_000)")
    assert 100 < (whole - (tmp_path / "run.jsonl").stat().st_size) / 199 < 200


def test_events_waits_and_copies_are_calls_of_the_host(run: Played, tmp_path: Path) -> None:
    run(
        """
        gpu.begin(); gpu.launch(1)
        gpu.play("call", "cudaEventRecord", 2, 77, wide(20_000), wide(20_100))
        gpu.play("event", 5, 2, 13)
        gpu.play("call", "cudaStreamWaitEvent", 3, 77, wide(21_000), wide(21_100))
        gpu.play("wait", STREAM_WAITS, 3, wide(21_000), wide(21_100), 14, 5)
        gpu.play("call", "cudaMemcpyAsync", 4, 77, wide(22_000), wide(22_500))
        gpu.play("copy", 4, 14, wide(25_000), wide(26_000), wide(4096), True, True)
        gpu.play("call", "cudaMemcpy", 5, 77, wide(23_000), wide(29_000))
        gpu.play("copy", 5, 7, wide(27_000), wide(28_000), wide(64), False, False)
        gpu.play("call", "cudaMemsetAsync", 6, 78, wide(24_000), wide(24_100))
        gpu.play("memset", 6, 14, wide(30_000), wide(30_500), wide(256))
        gpu.play("call", "cudaStreamSynchronize", 7, 77, wide(31_000), wide(32_000))
        gpu.play("wait", WAIT_FOR_STREAM, 7, wide(31_000), wide(32_000), 14, 0)
        gpu.play("call", "cudaEventSynchronize", 8, 77, wide(33_000), wide(33_100))
        gpu.play("wait", WAIT_FOR_EVENT, 8, wide(33_000), wide(33_100), 0, 5)
        gpu.play("call", "cudaDeviceSynchronize", 9, 77, wide(34_000), wide(34_100))
        gpu.play("wait", WAIT_FOR_CONTEXT, 9, wide(34_000), wide(34_100), 0, 0)
        """
    )
    events = tb.load_program(tmp_path / "run.jsonl", fit=False).sequence
    assert list(events)[1:] == [
        tb.RecordEvent(0, 13),
        tb.WaitEvent(0, 14),
        tb.Copy(4096, "h2d", 1e-6, stream=14, pinned=True, blocking=False),
        tb.Copy(64, "h2d", 1e-6, stream="legacy", pinned=False, blocking=True),
        tb.Memset(256, 5e-7, stream=14, host=1),
        tb.Synchronize(14),
        tb.Synchronize(event=0),
        tb.Synchronize(),
    ]


@pytest.mark.parametrize(
    ("made", "has_timing"),
    [
        ('gpu.play("create_event", wide(70), 0)', True),
        ('gpu.play("create_event", wide(70), 1)', True),  # cudaEventBlockingSync
        ('gpu.play("create_event", wide(70), 2)', False),  # cudaEventDisableTiming
        ("", False),  # made before the capture began
        (
            'gpu.play("create_event", wide(70), 0); gpu.play("destroy_event", wide(70))\n'
            'gpu.play("create_event", wide(70), 2)',
            False,
        ),
    ],
)
def test_events_have_timing_as_they_were_made(
    run: Played, tmp_path: Path, made: str, has_timing: bool
) -> None:
    run(
        f"gpu.begin(); gpu.launch(1)\n{made}\n"
        + "".join(
            f"""
gpu.play("issue_record", {call}, wide(13), wide(70))
gpu.play("call", "cudaEventRecord", {call}, 77, wide({call}0_000), wide({call}0_100))
gpu.play("event", 5, {call}, 13)
"""
            for call in (2, 3)
        )
    )
    calls = [line["timed"] for line in lines(tmp_path / "run.jsonl") if "timed" in line]
    assert calls == ([2] if has_timing else [])
    records = tb.load_program(tmp_path / "run.jsonl", fit=False).sequence[1:]
    assert [*records] == [tb.RecordEvent(0, 13, timing=has_timing)] * 2


def test_attributes_of_launches_come_from_callbacks(run: Played, tmp_path: Path) -> None:
    run(TWO + 'gpu.play("attributes", 2, 1, -3)')
    first, second = tb.load_program(tmp_path / "run.jsonl", fit=False).sequence.launches
    assert (first.programmatic, first.priority) == (False, -1)
    assert (second.programmatic, second.priority) == (True, -3)


def test_local_memory_comes_from_the_module(run: Played, tmp_path: Path) -> None:
    launcher = pytest.importorskip("tbsched._launcher", reason="built without nvcc")
    for size, name in ((64, "a"), (0, "b")):
        image = launcher.patch(launcher.images()["sm_90"], 32, size)
        (tmp_path / f"{name}.cubin").write_bytes(image)
    run(
        """
        gpu.begin()
        for name in "ab":
            image = open(f"{name}.cubin", "rb").read()
            gpu.play("module", image, wide(len(image)))
        gpu.play("module", b"no cubin", wide(8))
        gpu.launch(1, name="tbsched_probe", shared=0)
        gpu.launch(2, name="tbsched_probe", shared=8)
        gpu.launch(3, name="another")
        """
    )
    launches = tb.load_program(tmp_path / "run.jsonl", fit=False).sequence.launches
    assert [launch.local_memory for launch in launches] == [64, 0, 0]


def test_first_use_is_a_launch_that_loads_its_function(run: Played, tmp_path: Path) -> None:
    run(TWO + 'gpu.play("overhead", FUNCTION, 1, wide(10_000), wide(10_400))')
    launches = tb.load_program(tmp_path / "run.jsonl", fit=False).sequence.launches
    assert [launch.first_use for launch in launches] == [True, False]


def test_capture_tells_what_it_did_within_calls(run: Played, tmp_path: Path) -> None:
    code = """
        gpu.play("overhead", INSTRUMENTATION, 1, wide(10_000), wide(10_300))
        gpu.play("overhead", RESOURCE, 0, wide(10_100), wide(10_200))  # within the one before
        gpu.play("overhead", BUFFER_FLUSH, 0, wide(20_400), wide(20_500))
        gpu.play("overhead", RESOURCE, 0, wide(20_400), wide(20_900))  # in no call
        gpu.play("overhead", RESOURCE, 0, wide(100), wide(400))
        gpu.play("overhead", COMPILER, 1, wide(10_300), wide(10_400))  # of the program
    """
    run(f"{TWO}{textwrap.dedent(code)}")
    (sentence,) = (
        sentence
        for sentence in tb.load_program(tmp_path / "run.jsonl", fit=False).assumed
        if sentence.startswith("How long calls take")
    )
    assert sentence == (
        "How long calls take without a capture: of 1.0 us in 2 calls that launch, 0.4 us or more "
        "were the capture's own, up to 0.3 us in one (their median took 0.5 us); assumed that they "
        "always take as long."
    )


@pytest.mark.parametrize(("step", "found"), [("8000", 0), ("12000", 3)])
def test_callbacks_that_take_long_are_told_of(
    run: Played, tmp_path: Path, step: str, found: int
) -> None:
    code = TWO + 'for call in (1, 2, 3): gpu.play("attributes", call, 1, -3)'
    run(code, FAKE_CUPTI_STEP=step)
    own = [line for line in lines(tmp_path / "run.jsonl") if "overhead" in line]
    assert [line["overhead"] for line in own] == found * ["callback"]


def test_graph_has_its_edges_through_nodes_that_run_nothing(run: Played, tmp_path: Path) -> None:
    run(
        """
        gpu.begin()
        for one, other in ((2, 1), (9, 2), (3, 9)):
            gpu.play("graph_change", EDGE, wide(one), wide(other))
        for node in (1, 2, 9, 3):
            gpu.play("graph_change", CLONE, wide(100 + node), wide(node))
        for call in (20, 30):
            gpu.play("call", "cuGraphLaunch", call, 77, wide(100 * call), wide(100 * call + 50))
            gpu.play("graph_launch", call, wide(5), wide(14))
            for node in (101, 102, 103):
                gpu.launch(call, 13, node=node)
        """
    )
    graphs = list(tb.load_program(tmp_path / "run.jsonl", fit=False).sequence)
    assert len(graphs) == 2
    for launched in graphs:
        assert isinstance(launched, tb.GraphLaunch)
        assert launched.stream == 14
        assert sorted(launched.graph.edges) == [(0, 1), (1, 2)]


def test_kernels_that_never_ended_are_counted(run: Played, tmp_path: Path) -> None:
    run(TWO + 'gpu.play("kernel", "k", 3, 1, 13, wide(0), wide(0), 1, 32, 16, wide(0), 0)')
    assert lines(tmp_path / "run.jsonl")[-1]["unfinished"] == 1
    program = tb.load_program(tmp_path / "run.jsonl", fit=False)
    assert len(program.sequence.launches) == 2
    assert any("1 kernels that still ran" in sentence for sentence in program.assumed)


def test_records_that_cupti_lost_are_counted(run: Played, tmp_path: Path) -> None:
    run(TWO, FAKE_CUPTI_DROPPED="12")
    assert {"lost": 12} in lines(tmp_path / "run.jsonl")
    assert any(
        s.startswith("12 records")
        for s in tb.load_program(tmp_path / "run.jsonl", fit=False).assumed
    )


def test_callbacks_that_fail_do_not_end_the_program_and_are_told(
    run: Played, tmp_path: Path
) -> None:
    code = """
        import resource

        name = b"k" * (1 << 28)  # there is no memory for a copy
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[0])
        limit = pages * resource.getpagesize() + (1 << 27)
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        gpu.play("issue_launch", name, 8, wide(13), 40, 256, 0, 0)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    """
    done = run(TWO + textwrap.dedent(code))
    assert done.returncode == 0, done.stderr
    told = [line for line in lines(tmp_path / "run.jsonl") if "capture_failed" in line]
    assert told == [{"capture_failed": 1, "why": "std::bad_alloc"}]
    assumed = tb.load_program(tmp_path / "run.jsonl", fit=False).assumed
    assert any("1 times, std::bad_alloc: assumed" in sentence for sentence in assumed)


def test_killed_program_leaves_a_readable_file(run: Played, tmp_path: Path) -> None:
    done = run(
        TWO + "import os, signal, time\n"
        "while not os.stat('run.jsonl').st_size > 800: time.sleep(0.02)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert done.returncode == -9
    program = tb.load_program(tmp_path / "run.jsonl", fit=False)
    assert len(program.sequence.launches) == 2
    assert any(sentence.startswith("The end:") for sentence in program.assumed)


def test_forked_child_writes_nothing_and_another_program_a_file_of_its_own(
    run: Played, tmp_path: Path
) -> None:
    run(
        TWO + "import os, subprocess, sys\n"
        "if not os.fork(): sys.exit()\n"
        "os.wait()\n"
        "if 'INNER' not in os.environ:\n"
        "    code = 'from capture.playing import *; g = injected(); g.begin(); g.launch(1)'\n"
        "    subprocess.run([sys.executable, '-c', code], env={**os.environ, 'INNER': '1'})"
    )
    found = sorted(tmp_path.glob("run*"))
    assert [place.name.count(".") for place in found] == [2, 1]
    assert [len(tb.load_program(place, fit=False).sequence.launches) for place in found] == [1, 2]
    assert [line for line in lines(tmp_path / "run.jsonl") if "end" in line] == [
        {"end": 0, "launches": 2, "unfinished": 0}
    ]


def test_file_that_is_there_is_not_written_to(run: Played, tmp_path: Path) -> None:
    done = run(
        """
        import os
        names = [f"run{number}.jsonl" for number in ("", f".{os.getpid()}")]
        for name in names: open(name, "w").write("own")
        gpu = injected()
        gpu.begin(); gpu.launch(1)
        print(os.getpid(), *(open(name).read() for name in names))
        """,
        prelude="from capture.playing import *",
    )
    process, *kept = done.stdout.split()
    assert kept == ["own", "own"]
    place = tmp_path / f"run.{process}-2.jsonl"
    assert len(tb.load_program(place, fit=False).sequence.launches) == 1


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"FAKE_CUPTI_BUSY": "1"}, "another profiler uses CUPTI in this process"),
        ({"TBSCHED_CUPTI": "none.so"}, "TBSCHED_CUPTI: none.so"),
        ({"TBSCHED_CAPTURE": "no/folder.jsonl"}, "no/folder.jsonl: cannot be written"),
    ],
)
def test_program_runs_uncaptured_where_it_cannot_be_captured(
    run: Played, tmp_path: Path, variables: dict[str, str], why: str
) -> None:
    code = f"""
        import os
        os.environ.update({variables})
        ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).InitializeInjection()
        print("ran")
    """
    done = run(code, prelude="import ctypes")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert done.stderr.startswith(f"tbsched capture: {why}")
    assert done.stderr.endswith("; the program runs uncaptured\n")
    assert not list(tmp_path.glob("*.jsonl"))


def test_without_a_driver_the_process_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str, *arguments: bytes) -> None:
        raise RuntimeError("capture: cuptiSubscribe: CUPTI_ERROR_UNKNOWN")

    monkeypatch.setattr(injection, "_call", refuse)
    monkeypatch.setenv("TBSCHED_LIBCUDA", str(tmp_path / "none.so"))
    with pytest.raises(tb.NoGpuError, match=r"the CUDA driver.*none\.so"), tb.capture():
        pass
    monkeypatch.setenv("TBSCHED_LIBCUDA", "libc.so.6")  # a driver is there, something else is wrong
    with pytest.raises(RuntimeError, match="CUPTI_ERROR_UNKNOWN"), tb.capture():
        pass


def test_full_disk_is_said_once_and_the_program_goes_on(run: Played, tmp_path: Path) -> None:
    done = run(
        "import resource, time\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
        "gpu.begin()\n"
        "for call in range(200): gpu.launch(call)\n"
        "time.sleep(0.6)\n"
        "for call in range(200): gpu.launch(call)\n"
        "print('ran')"
    )
    assert done.stdout == "ran\n"
    assert done.stderr.count("File too large; the rest is not captured") == 1
    assert 0 < len(tb.load_program(tmp_path / "run.jsonl", fit=False).sequence.launches) < 100
