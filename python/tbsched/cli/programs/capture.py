"""``tbsched capture``."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from tbsched import storage, unpacking
from tbsched.cli.console import DISAGREEMENT, NO_GPU, note
from tbsched.cli.files import check_output
from tbsched.cli.options import output_option
from tbsched.hangs.hang import HangReport
from tbsched.hangs.watch import Watch, checked_seconds, report_place
from tbsched.importers import captured_files
from tbsched.launcher.injection import injected
from tbsched.views.terminal import visible

_PERIOD = 0.5  # seconds between two looks at the files
_GRACE = 10.0  # seconds that a program gets to end
_PR_SET_PDEATHSIG = 1  # of Linux


def capture(
    program: Annotated[
        list[str],
        typer.Argument(
            help="What to run, and its arguments; after -- if they begin with a dash.",
            metavar="PROGRAM...",
        ),
    ],
    output: Annotated[
        Path,
        output_option(
            "A capture; if its name ends in .xz or .gz, it is compressed when the program has "
            "ended. An old capture is replaced then; any other file is refused."
        ),
    ],
    hang_after: Annotated[
        float | None,
        typer.Option(
            "--hang-after",
            help="If nothing ends and nothing is issued for this time although something has not "
            "ended: find out why, as `tbsched hang` does, and write the report beside the "
            "capture, as run.hang.txt beside run.jsonl. Before, memory of the GPU to which kernels "
            "have addresses is copied to the host, to see whether it changes.",
            metavar="SECONDS",
        ),
    ] = None,
    kill: Annotated[
        bool,
        typer.Option(
            "--kill",
            help="With --hang-after: end the program if it hangs; not if it may only be slow.",
        ),
    ] = False,
) -> int:
    """Run a CUDA program and record every launch, copy, event and wait of it.

    The exit status is the program's; it is 3 if the program ended with 0 and launched nothing, and
    1 if --kill ended it.
    """
    if hang_after is not None:
        checked_seconds("--hang-after", hang_after)
    elif kill:
        raise ValueError("--kill: needs --hang-after, which says when a program hangs")
    if output.is_symlink():  # which stays
        output = Path(os.path.realpath(output))
    executable = shutil.which(program[0]) or ""
    words = (executable, *program[1:])  # of which any may be too long for a path
    check_output(output, *(Path(word) for word in words if os.path.isfile(word)))  # noqa: PTH113
    captured_files.check_replaceable(output)
    if not executable:
        raise ValueError(f"PROGRAM: {program[0]} is not found, or cannot be run")
    packer = unpacking.PACKERS.get(output.suffix)
    unpacked_output = output if packer is None else output.with_suffix("")
    written = captured_files.place_for(unpacked_output)
    before = set(_captures_of(written))
    files = functools.partial(_new_captures, written, before)
    watch = None if hang_after is None else Watch(files, hang_after)
    environment = injected(os.environ, written, hang_after)
    status = _run(program, environment, watch, kill, report_place(output))
    captures = files()
    launches = {path: captured_files.launches_of(path) for path in captures}
    if not captures or (output.exists() and not any(map(captured_files.has_work, captures))):
        _note_nothing(captures, output)
        return status or NO_GPU
    for path, count in launches.items():
        final = output.with_name(path.name.replace(written.stem, unpacked_output.stem, 1))
        final_path = _moved_into_place(path, final, packer, output.suffix)
        note(f"wrote {visible(str(final_path))}: {count} launch{'es' if count != 1 else ''}")
    return status


def _run(
    program: list[str],
    environment: dict[str, str],
    watch: Watch | None,
    kill: bool,
    report: Path,
) -> int:
    """Runs a program to its end, which signals for this process reach too."""
    # A program that is to be ended if it hangs does not outlive this process, whatever ends that.
    before = _end_with_this_process if kill else None
    with (
        subprocess.Popen(program, env=environment, preexec_fn=before) as process,
        _passing_on(process),
    ):
        if watch is not None and _hangs(process, watch, report) and kill:
            _end(process, Path(environment["TBSCHED_CAPTURE"]))
            return DISAGREEMENT
        status = process.wait()
    return 128 - status if status < 0 else status


def _hangs(process: subprocess.Popen[bytes], watch: Watch, report: Path) -> bool:
    """Watches a program until it ends, or until it hangs: then writes the report. Returns whether
    it hangs."""
    last_words = ""
    with contextlib.closing(watch):
        while process.poll() is None:
            result = watch.look() if watch.is_quiet() else None
            if isinstance(result, HangReport):
                report.write_text(f"{result}\n", "utf-8")
                words = f"tbsched capture: {result.kind}: {result.reason}; see {report}"
                if not result.may_be_slow:
                    note(words)
                    return True
            elif result is not None:
                words = f"tbsched capture: nothing ends, and why is not known: {result}"
            if result is not None and words != last_words:
                last_words = words
                note(last_words)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(min(_PERIOD, watch.seconds / 2))
    return False


def _end_with_this_process() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _end(process: subprocess.Popen[bytes], capture: Path) -> None:
    """Ends the program that was started here, and the processes of it that are captured."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)
    process_ids = _captured_into(capture)  # they may spin on a GPU though their parent has ended
    process.kill()
    for process_id in process_ids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process_id, signal.SIGKILL)
    process.wait()
    note("tbsched capture: it hangs, so it was ended")


def _captured_into(capture: Path) -> list[int]:
    """Returns the numbers of running processes that write to a capture."""
    wanted = b"TBSCHED_CAPTURE=" + os.fsencode(capture.absolute())
    process_ids = []
    for process_folder in Path("/proc").iterdir():
        if process_folder.name.isdigit() and int(process_folder.name) != os.getpid():
            with contextlib.suppress(OSError):
                if wanted in (process_folder / "environ").read_bytes().split(b"\0"):
                    process_ids.append(int(process_folder.name))
    return process_ids


def _new_captures(path: Path, before: set[Path]) -> list[Path]:
    """Returns the captures that the program has begun to write."""
    return [
        file
        for file in _captures_of(path)
        if file not in before and captured_files.is_capture(file)
    ]


@contextlib.contextmanager
def _passing_on(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Passes Ctrl-C and SIGTERM on to the program that is captured."""

    def pass_on(signal_number: int, frame: FrameType | None) -> None:
        # The terminal sends Ctrl-C to all processes in its foreground.
        if signal_number != signal.SIGINT or not _is_in_foreground():
            process.send_signal(signal_number)

    before = {
        signal_number: signal.signal(signal_number, pass_on)
        for signal_number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for signal_number, handler in before.items():
            signal.signal(signal_number, handler)


def _is_in_foreground() -> bool:
    """Returns whether this process group is the one that the terminal's Ctrl-C goes to."""
    try:
        return os.tcgetpgrp(sys.__stdin__.fileno()) == os.getpgrp()  # type: ignore[union-attr]
    except (AttributeError, OSError, ValueError):
        return False


def _captures_of(path: Path) -> list[Path]:
    """Returns the captures of a program's processes: ``run.jsonl``, ``run.4711.jsonl``, ..."""
    name = re.compile(rf"{re.escape(path.stem)}(\.\d+(-\d+)?)?{re.escape(path.suffix)}")
    return sorted(file for file in path.parent.iterdir() if name.fullmatch(file.name))


def _moved_into_place(
    written: Path, final: Path, packer: unpacking.Packer | None, suffix: str
) -> Path:
    """Packs a capture, moves it to its place if that is free, and returns the path where it is."""
    if packer is not None:
        final = final.with_name(final.name + suffix)
    if final == written or not captured_files.is_free(final):
        return written
    if packer is None:
        storage.put_in_place(written, final)
        return final
    with (
        storage.opened(written) as file,
        storage.replacing(final) as out,
        packer(out) as packed,
    ):
        shutil.copyfileobj(file, packed)
    written.unlink()
    return final


def _note_nothing(captures: list[Path], output: Path) -> None:
    """Says that nothing was launched, and that what was there before stays."""
    for file in captures:
        file.unlink()
    why = (
        "the program launched no kernels; run it until it has, and look whether it runs on the CPU"
        if captures
        else "the program did not use CUDA, or what is above kept it from being captured; name the "
        "program itself behind --, not one that starts it elsewhere, such as sudo, docker or ssh"
    )
    stays = f"; {visible(str(output))} stays as it was" if output.exists() else ""
    note(f"tbsched capture: nothing is captured: {why}{stays}")
