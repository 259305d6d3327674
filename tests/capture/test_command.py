"""``tbsched capture``, and captures of one's own process."""

from __future__ import annotations

import lzma
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import tbsched as tb
from capture.conftest import PRELUDE
from tbsched.cli import app as command_line
from tbsched.launcher import injection

ONE = f"{PRELUDE}; gpu.begin(); gpu.launch(1)"


@pytest.fixture(autouse=True)
def captured(surroundings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in surroundings.items():
        monkeypatch.setenv(name, value)


def status(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["tbsched", "capture", *arguments])
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def python(code: str) -> tuple[str, ...]:
    return ("--", sys.executable, "-S", "-c", code)


def test_exit_status_is_that_of_the_program(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    code = f"{ONE}; import sys; sys.exit(7)"
    assert status(monkeypatch, "-o", "run.jsonl", *python(code.replace("\n", ";"))) == 7
    assert capfd.readouterr().err == "wrote run.jsonl: 1 launch\n"
    kill = "import os; os.kill(os.getpid(), 9)"
    assert status(monkeypatch, "-o", "run.jsonl", *python(kill)) == 137
    assert "nothing is captured" in capfd.readouterr().err


def test_packed_output_replaces_what_was_there(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("run.jsonl.xz").write_text("old")
    assert status(monkeypatch, "-o", "run.jsonl.xz", *python(ONE)) == 0
    assert capfd.readouterr().err == "wrote run.jsonl.xz: 1 launch\n"
    assert lzma.decompress(Path("run.jsonl.xz").read_bytes()).startswith(b'{"tbsched_capture":1,')
    assert not Path("run.jsonl").exists()
    assert len(tb.load_program("run.jsonl.xz", fit=False).sequence.launches) == 1


@pytest.mark.parametrize(
    ("output", "found"),
    [("run", r"run\.\d+"), ("run.xz", r"run\.\d+\.xz"), ("[x].gz", r"\[x\]\.\d+\.gz")],
)
def test_files_of_other_processes_are_named_and_packed_too(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], output: str, found: str
) -> None:
    again = f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {ONE!r}])"
    code = f"{ONE}\n{again} {'#' * 5000}"
    Path("run.old.jsonl").write_text("not of this run")
    assert status(monkeypatch, "-o", output, *python(code)) == 0
    first, second = capfd.readouterr().err.splitlines()
    assert first == f"wrote {output}: 1 launch"
    assert re.fullmatch(f"wrote {found}: 1 launch", second)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("-o", "run.jsonl", "no-such-program"), "PROGRAM: no-such-program is not found"),
        (("-o", "no/run.jsonl", "true"), "no such folder"),
        (("-o", ".", "true"), "cannot be written: is a folder"),
        (("-o", "program", "./program"), "program is what is read; write another file"),
        (("-o", "program.xz", "./program"), "program is what is read; write another file"),
        (("-o", "program.xz", "true", "program"), "program is what is read; write another file"),
        (("-o", "program.xz", "true"), "program is there and is no capture"),
    ],
)
def test_what_cannot_be_run_or_written_is_refused_before(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    why: str,
) -> None:
    Path("program").write_text("#!/bin/sh")
    Path("program").chmod(0o755)
    assert status(monkeypatch, *arguments) == 2
    assert why in capfd.readouterr().err
    assert Path("program").read_text("utf-8") == "#!/bin/sh"


def test_another_injected_tool_is_not_pushed_aside(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CUDA_INJECTION64_PATH", "/opt/nsys.so")
    assert status(monkeypatch, "-o", "run.jsonl", "true") == 2
    assert "/opt/nsys.so is injected already" in capfd.readouterr().err


def test_build_without_cupti_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(injection, "_LIBRARY", "none.so")
    assert status(monkeypatch, "-o", "run.jsonl", "true") == 2
    assert "built without CUPTI's headers; install a CUDA toolkit" in capfd.readouterr().err


def test_interrupt_ends_the_program_and_keeps_the_file() -> None:
    code = f"{ONE}\nimport time; time.sleep(60)"
    place = Path("run.jsonl")
    command = [sys.executable, "-m", "tbsched", "capture", "-o", str(place), *python(code)]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        while not (place.exists() and '"ran"' in place.read_text("utf-8")):
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said.endswith("wrote run.jsonl: 1 launch\n")
    assert len(tb.load_program("run.jsonl", fit=False).sequence.launches) == 1


def test_own_process_is_captured_while_the_block_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_CUPTI_LATE", "1")
    code = """
        import tbsched as tb
        from capture.playing import Gpu, wide
        gpu = Gpu()
        gpu.launch(1)
        for path in ("one.jsonl", None):
            with tb.capture(path) as captured:
                gpu.begin(); gpu.launch(2); gpu.launch(3)
                gpu.play("call", "cuMemAlloc", 4, 77, wide(0), wide(1))
                try:
                    with tb.capture():
                        pass
                except RuntimeError as error:
                    print(error)
                try:
                    captured.program
                except ValueError as error:
                    print(error)
            print(len(captured.program.sequence.launches))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == 2 * [
        "capture: a capture runs already in this process",
        "capture.program: the capture is not over; read it after the block",
        "2",
    ]
    assert tb.load_program("one.jsonl", fit=False).measured["call_ns"].tolist() == [0, 10_000]
    assert "cuMemAlloc" not in Path("one.jsonl").read_text("utf-8")
