"""``tbsched capture``, and captures of one's own process."""

from __future__ import annotations

import gzip
import lzma
import os
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
OLD = b'{"tbsched_capture":1,"of":"another run"}\n'


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
    Path("run.jsonl.xz").write_bytes(lzma.compress(OLD))
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
        (("-o", "program", "true", "program"), "program is what is read; write another file"),
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


@pytest.mark.parametrize("name", ["results.csv", "run.jsonl", "run.jsonl.xz", "run.gz", "linked"])
def test_file_that_is_no_capture_is_never_replaced(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    Path("target.csv").write_text("a,b")
    place = Path(name)
    place.symlink_to("target.csv") if name == "linked" else place.write_text("a,b")
    before = sorted(Path().iterdir())
    program = python("open('ran', 'w')")
    assert status(monkeypatch, "-o", name, *program) == 2
    (said,) = capfd.readouterr().err.splitlines()
    assert "is there and is no capture, so it is not replaced; choose another name" in said
    assert sorted(Path().iterdir()) == before
    assert place.read_text("utf-8") == "a,b"
    with pytest.raises(ValueError, match="is there and is no capture"):
        tb.capture(name)


def test_pipe_is_not_replaced_either(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo("pipe")
    assert status(monkeypatch, "-o", "pipe", "true") == 2
    assert "pipe is there and is no capture" in capfd.readouterr().err
    assert Path("pipe").is_fifo()


def test_program_that_only_copies_has_a_capture(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    code = f'{PRELUDE}; gpu.begin(); gpu.play("issue_copy", 1, wide(14), wide(4096))'
    monkeypatch.setenv("FAKE_CUPTI_CLOCK", "1")
    program = python(f"{code}; import time; time.sleep(1.2)")
    assert status(monkeypatch, "-o", "run.jsonl", *program) == 0
    assert capfd.readouterr().err == "wrote run.jsonl: 0 launches\n"
    assert '"what":"copy"' in Path("run.jsonl").read_text("utf-8")


@pytest.mark.parametrize("name", ["run.jsonl", "run.jsonl.xz", "run.jsonl.gz"])
@pytest.mark.parametrize(
    ("code", "why"),
    [
        (
            "",
            "the program did not use CUDA, or what is above kept it from being captured; name the "
            "program itself behind --, not one that starts it elsewhere, such as sudo, docker or "
            "ssh",
        ),
        (
            f"{PRELUDE}; gpu.begin()",
            "the program launched no kernels; run it until it has, and look whether it runs on the "
            "CPU",
        ),
    ],
)
def test_capture_stays_where_nothing_is_launched(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    name: str,
    code: str,
    why: str,
) -> None:
    old = {".xz": lzma.compress, ".gz": gzip.compress}.get(Path(name).suffix, bytes)(OLD)
    Path(name).write_bytes(old)
    for end, expected in ((0, 3), (7, 7)):
        program = python(f"{code}\nimport sys; sys.exit({end})")
        assert status(monkeypatch, "-o", name, *program) == expected
        said = f"tbsched capture: nothing is captured: {why}; {name} stays as it was\n"
        assert capfd.readouterr().err == said
        assert [each.name for each in Path().iterdir()] == [name]
        assert Path(name).read_bytes() == old


@pytest.mark.parametrize("name", ["run.jsonl", "linked", "run.jsonl.xz"])
def test_capture_is_replaced_once_there_is_another(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    pack, unpack = (lzma.compress, lzma.decompress) if name.endswith("xz") else (bytes, bytes)
    place = Path(name)
    if name == "linked":
        place.symlink_to("run.jsonl")
    place.write_bytes(pack(OLD))
    place.chmod(0o640)
    again = f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {ONE!r}])"
    same = f"assert open({name!r}, 'rb').read() == {pack(OLD)!r}"
    assert status(monkeypatch, "-o", name, *python(f"{ONE}\n{again}\n{same}")) == 0
    target = "run.jsonl" if name == "linked" else name
    first, second = sorted(capfd.readouterr().err.splitlines(), key=len)
    assert first.endswith(f"{target}: 1 launch")
    assert re.search(r"run\.\d+\.jsonl(\.xz)?: 1 launch$", second)
    assert b'"ran"' in unpack(place.read_bytes())
    assert place.stat().st_mode & 0o777 == 0o640
    assert place.is_symlink() == (name == "linked")
    assert not list(Path().glob("*part*"))
    assert len(list(Path().glob("run*"))) == 2


@pytest.mark.parametrize("beside", [OLD, b"a,b"])
def test_file_of_the_unpacked_name_stays(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], beside: bytes
) -> None:
    Path("run.jsonl").write_bytes(beside)
    assert status(monkeypatch, "-o", "run.jsonl.gz", *python(ONE)) == 0
    assert capfd.readouterr().err == "wrote run.jsonl.gz: 1 launch\n"
    assert Path("run.jsonl").read_bytes() == beside
    assert b'"ran"' in gzip.decompress(Path("run.jsonl.gz").read_bytes())
    assert len(list(Path().iterdir())) == 2


def test_what_the_program_writes_itself_stays(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("run.1.jsonl").write_bytes(OLD)
    code = f"{ONE}\nopen('run.12.jsonl', 'w').write('own')"
    assert status(monkeypatch, "-o", "run.jsonl.xz", *python(code)) == 0
    assert capfd.readouterr().err == "wrote run.jsonl.xz: 1 launch\n"
    assert Path("run.1.jsonl").read_bytes() == OLD
    assert Path("run.12.jsonl").read_text("utf-8") == "own"


def test_what_comes_to_the_place_meanwhile_stays(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("run.jsonl").write_bytes(OLD)
    code = f"{ONE}\nopen('run.jsonl', 'w').write('own')"
    assert status(monkeypatch, "-o", "run.jsonl", *python(code)) == 0
    assert Path("run.jsonl").read_text("utf-8") == "own"
    said = re.fullmatch(r"wrote (run\.part-\w+\.jsonl): 1 launch\n", capfd.readouterr().err)
    assert said is not None
    assert len(tb.load_program(said[1], fit=False).sequence.launches) == 1


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
            flushes = gpu.flushes()
            with tb.capture(path) as captured:
                print(gpu.flushes() > flushes)
                print(*map(gpu.records, ("cuMemAlloc", "cudaLaunchKernel")))
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
            print(*map(gpu.records, ("cuMemAlloc", "cudaLaunchKernel")))
            print(len(captured.program.sequence.launches))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == 2 * [
        "True",
        "False True",
        "capture: a capture runs already in this process",
        "capture.program: the capture is not over; read it after the block",
        "False False",
        "2",
    ]
    assert tb.load_program("one.jsonl", fit=False).measured["call_ns"].tolist() == [0, 10_000]
    assert "cuMemAlloc" not in Path("one.jsonl").read_text("utf-8")


@pytest.mark.parametrize(("other", "launches"), [("call", "1"), ("1", None)])
def test_own_capture_waits_for_a_profiler_that_ends(
    monkeypatch: pytest.MonkeyPatch, other: str, launches: str | None
) -> None:
    monkeypatch.setenv("FAKE_CUPTI_LATE", "1")
    monkeypatch.setenv("FAKE_CUPTI_BUSY", other)
    code = """
        import tbsched as tb
        from capture.playing import Gpu
        gpu = Gpu()
        try:
            with tb.capture() as captured:
                gpu.begin()
                gpu.launch(1)
            print(len(captured.program.sequence.launches))
        except RuntimeError as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    (said,) = done.stdout.splitlines()
    if launches is not None:
        assert said == launches
        return
    assert said.startswith("capture: another profiler uses CUPTI in this process; only one can.")
    for way in (
        "set TEARDOWN_CUPTI=1 in the environment before the program starts",
        "capture before its first block",
        "run `tbsched capture -o FILE -- PROGRAM`",
    ):
        assert way in said


def test_own_capture_is_replaced_at_the_end_by_one_with_launches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FAKE_CUPTI_LATE", "1")
    Path("run.jsonl").write_bytes(OLD)
    code = f"""
        import os
        from pathlib import Path
        import tbsched as tb
        from capture.playing import Gpu
        gpu, place, folder = Gpu(), Path("run.jsonl"), Path.cwd()
        for launches, own in ((0, None), (1, None), (1, "own")):
            with tb.capture("run.jsonl") as captured:
                gpu.begin()
                if launches: gpu.launch(1)
                print(place.read_bytes() == {OLD!r}, end=" ")
                if own: place.write_text(own)
                os.chdir("/")
            try:
                print(len(captured.program.sequence.launches), end=" ")
            except ValueError:
                print("none", end=" ")
            os.chdir(folder)
            print(*sorted(each.name.split("-")[0] for each in folder.iterdir()))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "True none run.jsonl",
        "True 1 run.jsonl",
        "False 1 run.jsonl run.part",
    ]
    assert Path("run.jsonl").read_text("utf-8") == "own"
