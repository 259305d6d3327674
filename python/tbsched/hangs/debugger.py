"""Looks at a process, or at a core dump of a GPU, with cuda-gdb. It changes nothing there."""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from tbsched import storage
from tbsched.hangs.debugger_text import (
    blocks_in,
    gpus_in,
    kernels_in,
    places_in,
    sample_in,
    threads_in,
)
from tbsched.hangs.look import Extent, Look, Resident, Sample

ELF = b"\x7fELF"
SECONDS = 30.0  # limit of one look
_GRACE = 5.0  # seconds that the debugger gets to let the process go on
_MOST_KERNELS = 16
_FIRST_KERNELS = 4  # that a first look asks about, which does not know how many there are
_MOST_SAMPLES = 4  # threads of a kernel, at different instructions
_SETTINGS = (
    "set debuginfod enabled off", "set pagination off", "set width 0", "set confirm off",
    "set python print-stack none",
)  # fmt: skip
_REFUSALS = (  # to attach, or to read the file
    "ptrace:", "Could not attach", "The program is not being run", "Failed to open",
    "out of ELF image", "not a core",
)  # fmt: skip
_WINDOWS = (0x200, 0x100, 0x80, 0x40, 0x20, 0)  # bytes of code before an instruction


@dataclass(frozen=True, slots=True)
class Target:
    """What the debugger looks at: a process, or a file with a core dump of the GPU."""

    process: int | None = None
    core: Path | None = None

    @property
    def words(self) -> str:
        """The target, in words."""
        return f"process {self.process}" if self.core is None else f"core dump {self.core.name}"


def debugger() -> str | None:
    """Returns the path of cuda-gdb: of ``TBSCHED_CUDA_GDB``, on the path, or of the toolkit."""
    given = os.environ.get("TBSCHED_CUDA_GDB")
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    for name in filter(None, (given, "cuda-gdb", f"{home}/bin/cuda-gdb")):
        if (found := shutil.which(name)) is not None:
            return found
        if name == given:
            return None
    return None


def check_process(process: int) -> None:
    """Refuses a process that cannot be looked at.

    Raises:
        ValueError: there is none of that number, or it belongs to another user.
    """
    try:
        owner = Path(f"/proc/{process}").stat().st_uid
    except OSError:
        raise ValueError(f"pid: there is no process {process} on this machine") from None
    if owner != os.geteuid() and os.geteuid() != 0:
        try:
            name = pwd.getpwuid(owner).pw_name
        except KeyError:
            name = str(owner)
        raise ValueError(
            f"pid: process {process} belongs to user {name}, and another user's cannot be looked "
            "at; run this as that user, or as root"
        )


def check_core(core: Path) -> None:
    """Refuses what is no complete core dump of a GPU.

    Raises:
        FileNotFoundError: no such file.
        ValueError: not a core dump of a GPU, or cut; one line says what it is.
    """
    with core.open("rb") as file:
        head = file.read(64)
        size = file.seek(0, os.SEEK_END)
        if len(head) < 64 or head[:4] != ELF:
            raise ValueError(f"{storage.shown(core)}: {_what_it_is(head, size)}. {_MAKE_IT}")
        kind, machine, table, entry, count = (
            int.from_bytes(head[a:b], "little") for a, b in _OF_THE_FILE
        )
        if machine in _OF_HOSTS:
            what = "a core dump of the host" if kind == _CORE_DUMP else "a program or a library"
            raise ValueError(f"{storage.shown(core)}: {what}, not a core dump of a GPU. {_MAKE_IT}")
        file.seek(min(table, size))
        rows = file.read(entry * count)
    ends = [table + entry * count]
    for at in range(0, len(rows) - _SECTION + 1, max(entry, _SECTION)):
        kind, begin, length = (
            int.from_bytes(rows[at + a : at + b], "little") for a, b in _OF_A_SECTION
        )
        ends.append(begin + length if kind != _NO_BITS else 0)
    if table == 0 or max(ends) > size:
        raise ValueError(
            f"{storage.shown(core)}: the dump is not complete: {size:,} bytes of {max(ends):,}. "
            f"{_MAKE_IT}"
        )


def _what_it_is(head: bytes, size: int) -> str:
    """Returns what a file is that does not begin as a core dump, in words."""
    if size == 0:
        return "empty: nothing of a core dump is written yet"
    if head[:4] == ELF:
        return f"{size:,} bytes, the beginning of a core dump that is not complete"
    if not any(head):
        return f"{size:,} bytes that begin with zeros: a core dump that is not complete"
    return f"{size:,} bytes, and neither a capture nor a core dump"


_MAKE_IT = (
    "Run the program with CUDA_ENABLE_USER_TRIGGERED_COREDUMP=1, CUDA_COREDUMP_PIPE=/tmp/dump and "
    "CUDA_COREDUMP_FILE=core.nvcudmp, write to the pipe when it hangs, and wait until the file "
    "no longer grows"
)
# Places in the header of an ELF file of 64 bits, and in a row of its table of sections.
_OF_THE_FILE = (16, 18), (18, 20), (40, 48), (58, 60), (60, 62)
_OF_A_SECTION = (4, 8), (24, 32), (32, 40)
_SECTION = 64
_NO_BITS = 8
_CORE_DUMP = 4
_OF_HOSTS = frozenset({3, 21, 62, 183, 243})  # x86, POWER, x86-64, Arm, RISC-V


def look_at(
    target: Target, before: Look | None = None, *, seconds: float = SECONDS, hosts: bool = True
) -> Look:
    """Looks once. The process stands still meanwhile, mostly for a second, and goes on afterwards.

    Args:
        target: what to look at.
        before: an earlier look: the same threads of its kernels are sampled again.
        seconds: a limit; then the debugger is told to leave.
        hosts: whether to look at the threads of the host.

    Raises:
        ValueError: the process or the file cannot be looked at; one line says why.
        FileNotFoundError: there is no cuda-gdb.
    """
    path = debugger()
    if path is None:
        raise FileNotFoundError(
            "cuda-gdb is not found; it comes with the CUDA toolkit; TBSCHED_CUDA_GDB may name it"
        )
    if target.process is not None:
        check_process(target.process)
    if target.core is not None:
        check_core(target.core)
    begun = time.monotonic()
    notes: list[str] = []
    first = ["info cuda devices", "info cuda kernels"]
    if hosts and target.process is not None:
        first.append("thread apply all bt 40")
    kernels = len(before.kernels) if before is not None else _FIRST_KERNELS
    session = _Session(path, target, seconds)
    asked = [*first, *_of_kernels(range(min(kernels, _MOST_KERNELS)))]
    wanted = () if before is None else _wanted(before)
    asked += [command for kernel, *thread in wanted for command in _of_thread(kernel, *thread)]
    answers = session.ask(asked)
    _check_seen(target, answers, session)
    found = kernels_in(answers["info cuda kernels"])
    if len(found) > _MOST_KERNELS:
        notes.append(f"{len(found) - _MOST_KERNELS} more kernels are on the GPU: not looked into.")
    if session.has_timed_out:
        notes.append(f"The debugger was stopped after {seconds:g} s: some of this is missing.")
    return Look(
        source=target.words,
        gpus=gpus_in(answers["info cuda devices"]),
        kernels=tuple([_with_blocks(kernel, answers) for kernel in found]),
        samples=tuple(_samples(found, wanted, answers)),
        threads=threads_in(answers.get("thread apply all bt 40", "")),
        seconds=time.monotonic() - begun,
        notes=tuple(notes),
    )


_Wanted = tuple[int, Extent, Extent]


def _of_kernels(numbers: Iterable[int]) -> list[str]:
    """Commands about kernels, one of each for each; the first says which kernel is meant."""
    found = []
    for number in numbers:
        found += [f"cuda kernel {number}", f"info cuda threads #{number}"]
    found.append("set cuda coalescing off")
    for number in numbers:
        found += [f"cuda kernel {number} #", f"info cuda blocks #{number}"]
    return [*found, "set cuda coalescing on"]


def _of_thread(kernel: int, block: Extent, thread: Extent) -> list[str]:
    where = f"kernel {kernel} block {_written(block)} thread {_written(thread)}"
    listings = [f"x/{at // 16 + 32}i $pc-{at} #{where}" for at in _WINDOWS]
    return [f"cuda {where}", f"print $pc #{where}", *listings, f"info registers #{where}"]


def _written(extent: Extent) -> str:
    return f"({extent[0]},{extent[1]},{extent[2]})"


def _wanted(before: Look) -> list[_Wanted]:
    """Returns threads at different instructions of each kernel, those of most threads last.

    Most threads of a block wait at its barrier for the one that spins.
    """
    found: list[_Wanted] = []
    for kernel in before.kernels[:_MOST_KERNELS]:
        chosen = kernel.places[-_MOST_SAMPLES:][::-1]
        found += [(kernel.number, place.block, place.thread) for place in chosen]
    return found


def _with_blocks(kernel: Resident, answers: dict[str, str]) -> Resident:
    blocks = blocks_in(answers.get(f"info cuda blocks #{kernel.number}", ""))
    places = places_in(answers.get(f"info cuda threads #{kernel.number}", ""))
    return replace(kernel, blocks=blocks, places=places)


def _samples(
    kernels: Iterable[Resident], wanted: Iterable[_Wanted], answers: dict[str, str]
) -> Iterable[Sample]:
    """Yields what sampled threads execute: program counter, listing and registers."""
    grids = {kernel.number: kernel.grid_id for kernel in kernels}
    for number, block, thread in wanted:
        commands = _of_thread(number, block, thread)
        switched, pc, *listings, registers = (answers.get(command, "") for command in commands)
        if number not in grids or "Invalid" in switched or "focus" not in switched.lower():
            continue
        sample = sample_in(grids[number], block, thread, pc, listings, registers)
        if sample is not None:
            yield sample


def _check_seen(target: Target, answers: dict[str, str], session: _Session) -> None:
    """Refuses what the debugger could not look at.

    Raises:
        ValueError: it could not; the line says why.
    """
    if "info cuda kernels" in answers and not session.has_failed:
        return
    words = session.errors.lower()
    process = target.process
    if "not permitted" in words or "permission" in words:
        why = (
            "this user may not trace processes here; run as root, or allow it with "
            "`sysctl kernel.yama.ptrace_scope=0`, or, in a container, with --cap-add=SYS_PTRACE"
        )
    elif "already" in words and "trac" in words:
        why = "another debugger or tracer is attached"
    elif session.has_timed_out:
        why = f"the debugger gave no answer for {session.seconds:g} s"
    else:
        last = [line for line in session.errors.splitlines() if line.strip()][-1:]
        why = " ".join((last[0] if last else "cuda-gdb said nothing").split())[:200]
    what = f"pid: process {process}" if target.core is None else f"{target.core}"
    raise ValueError(f"{what}: cannot be looked at: {why}")


class _Session:
    """One run of cuda-gdb, which answers commands and leaves."""

    def __init__(self, path: str, target: Target, seconds: float) -> None:
        self.path, self.target, self.seconds = path, target, seconds
        self.errors = ""
        self.has_timed_out = False
        self.has_failed = False

    def ask(self, commands: list[str]) -> dict[str, str]:
        """Returns what was printed after each command. What follows ``#`` only tells them apart."""
        mark = f"@@{secrets.token_hex(12)}"
        words = [self.path, "-nx", "-batch"]
        for setting in _SETTINGS:
            words += ["-iex", setting]
        if self.target.core is None:
            # Symbols of a large program take many seconds to read, and nobody asks for them.
            words += ["-iex", "set auto-solib-add off", "-p", str(self.target.process)]
            words += ["-ex", "sharedlibrary libcuda"]
        else:
            words += ["-ex", f"target cudacore {_quoted(self.target.core)}"]
        for number, command in enumerate(commands):
            asked = command.partition("#")[0].rstrip()
            words += ["-ex", f"echo \\n{mark} {number}\\n", "-ex", asked]
        words += ["-ex", f"echo \\n{mark} end\\n"]
        if self.target.core is None:
            words += ["-ex", "detach"]
        text = self._run(words)
        said = text.partition(mark)[0] + self.errors
        self.has_failed = f"{mark} 0" not in text or any(words in said for words in _REFUSALS)
        answers = {}
        for piece in text.split(f"\n{mark} ")[1:]:
            which, _, rest = piece.partition("\n")
            if which.isdigit() and int(which) < len(commands):
                answers[commands[int(which)]] = rest
        return answers

    def _run(self, words: list[str]) -> str:
        """Runs the debugger with a time limit; returns its output."""
        environment = {**os.environ, "LC_ALL": "C"}
        environment.pop("CUDA_INJECTION64_PATH", None)
        with subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True, env=environment,
        ) as process:  # fmt: skip
            try:
                out, err = process.communicate(timeout=self.seconds)
            except subprocess.TimeoutExpired:
                self.has_timed_out = True
                out, err = _end_gently(process)
            except BaseException:
                _end_gently(process)
                raise
        self.errors = err.decode("utf-8", "replace")
        return out.decode("utf-8", "replace")


def _end_gently(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Ends the debugger gently, so that it lets the process go on."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        try:
            return process.communicate(timeout=_GRACE)
        except subprocess.TimeoutExpired:
            continue
    return b"", b""


def _quoted(path: Path) -> str:
    """Returns a path as a word of the debugger's command line.

    Raises:
        ValueError: it has a line break.
    """
    text = str(path.absolute())
    if any(letter in text for letter in "\n\r"):
        raise ValueError("the path of a core dump with a line break cannot be read")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
