"""Captures that are watched while they are written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tbsched as tb
from hangs.test_hang import ALIVE, HEAD, issued, of_stream
from tbsched.hangs.watch import Watch, report_place

SECONDS = 0.3


def write(place: Path, *lines: dict[str, object]) -> None:
    with place.open("a", encoding="utf-8") as file:
        file.write("".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write(tmp_path / "run.jsonl", *HEAD, issued(1, 13))
    return tmp_path / "run.jsonl"


def test_it_is_quiet_once_until_there_are_news(place: Path) -> None:
    watch = Watch(lambda: [place], SECONDS)
    write(place, ALIVE)
    assert not watch.is_quiet()
    time.sleep(SECONDS)
    assert watch.is_quiet()
    assert not watch.is_quiet()
    write(place, issued(2, 13), ALIVE)
    assert not watch.is_quiet()
    time.sleep(SECONDS)
    assert watch.is_quiet()
    watch.close()


def test_work_of_cupti_and_of_the_capture_is_no_news(place: Path) -> None:
    watch = Watch(lambda: [place], SECONDS)
    write(place, ALIVE)
    watch.is_quiet()
    time.sleep(SECONDS)
    write(place, {"overhead": "buffer_flush", "at": [1, 2]})
    write(place, {"gpu_memory": 1 << 40, "bytes": 4, "reads": 4, "at": [1, 2]})
    assert watch.is_quiet()
    watch.look_again()
    assert not watch.is_quiet()
    time.sleep(SECONDS)
    assert watch.is_quiet()
    watch.close()


def test_program_of_which_all_has_ended_is_not_quiet(place: Path) -> None:
    watch = Watch(lambda: [place], SECONDS)
    watch.is_quiet()
    time.sleep(SECONDS)
    assert not watch.is_quiet()  # no line says that it waits
    watch.close()


def test_half_a_line_is_no_news(place: Path) -> None:
    watch = Watch(lambda: [place], SECONDS)
    write(place, ALIVE)
    watch.is_quiet()
    with place.open("a", encoding="utf-8") as file:
        file.write('{"issued":')
    time.sleep(SECONDS)
    assert watch.is_quiet()
    watch.close()


def test_program_that_may_be_slow_is_told_of_and_looked_at_again(tmp_path: Path) -> None:
    place = tmp_path / "run.jsonl"
    functions = [of_stream(call, 13, "host_function", "cuLaunchHostFunc") for call in (1, 2)]
    write(place, *HEAD, *functions, ALIVE)
    watch = Watch(lambda: [place], SECONDS)
    watch.is_quiet()
    for _ in range(2):
        time.sleep(SECONDS)
        assert watch.is_quiet()
        found = watch.look()
        assert isinstance(found, tb.HangReport)
        assert found.may_be_slow
    watch.close()


def test_report_is_beside_the_capture() -> None:
    assert report_place(Path("a/run.jsonl.xz")) == Path("a/run.hang.txt")


# Plays a program that hangs: it writes what the capture library would.
HANGING = """
import json, os, sys, time
lines = json.loads(sys.argv[1])
lines[0]["process"] = os.getpid()
with open(os.environ["TBSCHED_CAPTURE"], "w", buffering=1) as file:
    for line in lines: print(json.dumps(line, separators=(",", ":")), file=file)
    for second in range(1, int(sys.argv[2]) * 10):
        time.sleep(0.1)
        print(json.dumps({"alive": 10**9 * second}), file=file)
"""


def run(
    folder: Path, seconds: int, *options: str, library: Path
) -> subprocess.CompletedProcess[str]:
    lines = [*HEAD, issued(1, 13, "grid", 300, 1024)]
    command = [sys.executable, "-m", "tbsched", "capture", "-o", "run.jsonl", *options, "--"]
    program = [sys.executable, "-S", "-c", HANGING, json.dumps(lines), str(seconds)]
    return subprocess.run(
        [*command, *program], cwd=folder, capture_output=True, text=True, timeout=60,
        env={
            **os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "TBSCHED_CUDA_GDB": "/nowhere/cuda-gdb", "CUDA_INJECTION64_PATH": str(library),
        },
    )  # fmt: skip


@pytest.fixture
def library() -> Path:
    from tbsched.launcher import injection

    try:
        return injection.library()
    except ImportError as error:
        pytest.skip(str(error))


def test_watched_program_goes_on_after_the_report(tmp_path: Path, library: Path) -> None:
    done = run(tmp_path, 3, "--hang-after", "1", library=library)
    assert "room: 36 of 300 blocks of grid never start" in done.stderr
    assert "see run.hang.txt" in done.stderr
    report = (tmp_path / "run.hang.txt").read_text("utf-8")
    assert report.startswith("HANGS, no room: 36 of 300 blocks of grid never start")


def test_watched_program_is_ended_if_asked(tmp_path: Path, library: Path) -> None:
    begun = time.monotonic()
    done = run(tmp_path, 600, "--hang-after", "1", "--kill", library=library)
    assert done.returncode == 1
    assert "it hangs, so it was ended" in done.stderr
    assert time.monotonic() - begun < 50
    assert tb.hang(tmp_path / "run.jsonl").kind == "room"


@pytest.mark.parametrize(("options", "printed"), [(("--hang-after", "30"), "30.0"), ((), "None")])
def test_library_knows_after_how_long_it_is_asked(
    tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...],
    printed: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("TBSCHED_HANG_AFTER", "7")  # of a capture around this one
    code = "import os; print(os.environ.get('TBSCHED_HANG_AFTER'))"
    command = [sys.executable, "-m", "tbsched", "capture", "-o", "run.jsonl", *options, "--"]
    done = subprocess.run(
        [*command, sys.executable, "-S", "-c", code], cwd=tmp_path, capture_output=True, text=True,
        timeout=60, env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    assert done.stdout.strip() == printed


def test_program_that_ends_in_time_has_no_report(tmp_path: Path, library: Path) -> None:
    done = run(tmp_path, 1, "--hang-after", "30", library=library)
    assert "hang" not in done.stderr
    assert not (tmp_path / "run.hang.txt").exists()


@pytest.mark.parametrize("options", [("--kill",), ("--hang-after", "0"), ("--hang-after", "-1")])
def test_options_that_cannot_be(tmp_path: Path, library: Path, options: tuple[str, ...]) -> None:
    done = run(tmp_path, 1, *options, library=library)
    assert done.returncode == 2
    assert not (tmp_path / "run.jsonl").exists()


def test_seconds_of_the_context_manager_are_checked() -> None:
    with pytest.raises(ValueError, match=r"capture\.hang_after: seconds above 0"):
        tb.capture(hang_after=0)
    assert tb.capture(hang_after=1).hang is None
