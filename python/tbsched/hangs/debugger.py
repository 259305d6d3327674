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
    pc_threads_in,
    sample_in,
    threads_in,
)
from tbsched.hangs.snapshot import Extent, ResidentKernel, Sample, Snapshot

ELF = b"\x7fELF"
SECONDS = 30.0  # limit of one look
_GRACE_SECONDS = 5.0  # seconds that the debugger gets to let the process go on
_MAX_KERNELS = 16
_FIRST_KERNELS = 4  # that a first look asks about, which does not know how many there are
_MAX_SAMPLES = 4  # threads of a kernel, at different instructions
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
        """``process 4711``, or ``core dump core.nvcudmp``."""
        return f"process {self.process}" if self.core is None else f"core dump {self.core.name}"


def debugger() -> str | None:
    """Returns the path of cuda-gdb: of ``TBSCHED_CUDA_GDB``, or as found; None: not found."""
    given = os.environ.get("TBSCHED_CUDA_GDB")
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    for name in filter(None, (given, "cuda-gdb", f"{home}/bin/cuda-gdb")):
        if (path := shutil.which(name)) is not None:
            return path
        if name == given:
            return None
    return None


def check_process(process: int) -> None:
    """Checks that this user may look at a process. Raises ValueError: there is none of that number,
    or it belongs to another user."""
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
    """Checks that a file is a complete core dump of a GPU.

    Raises:
        FileNotFoundError: no such file.
        ValueError: not a core dump of a GPU, or cut; one line says what it is.
    """
    with core.open("rb") as file:
        head = file.read(64)
        size = file.seek(0, os.SEEK_END)
        if len(head) < 64 or head[:4] != ELF:
            raise ValueError(f"{storage.shown(core)}: {_description(head, size)}. {_TO_DUMP}")
        kind, machine, table, entry, count = (
            int.from_bytes(head[a:b], "little") for a, b in _HEADER_FIELDS
        )
        if machine in _HOST_MACHINES:
            what = "a core dump of the host" if kind == _CORE_DUMP else "a program or a library"
            raise ValueError(f"{storage.shown(core)}: {what}, not a core dump of a GPU. {_TO_DUMP}")
        file.seek(min(table, size))
        rows = file.read(entry * count)
    ends = [table + entry * count]
    for at in range(0, len(rows) - _SECTION_BYTES + 1, max(entry, _SECTION_BYTES)):
        kind, begin, length = (
            int.from_bytes(rows[at + a : at + b], "little") for a, b in _SECTION_FIELDS
        )
        ends.append(begin + length if kind != _NO_BITS else 0)
    if table == 0 or max(ends) > size:
        raise ValueError(
            f"{storage.shown(core)}: the dump is not complete: {size:,} bytes of {max(ends):,}. "
            f"{_TO_DUMP}"
        )


def _description(head: bytes, size: int) -> str:
    """Returns what a file is that does not begin as a core dump, in words."""
    if size == 0:
        return "empty: nothing of a core dump is written yet"
    if head[:4] == ELF:
        return f"{size:,} bytes, the beginning of a core dump that is not complete"
    if not any(head):
        return f"{size:,} bytes that begin with zeros: a core dump that is not complete"
    return f"{size:,} bytes, and neither a capture nor a core dump"


_TO_DUMP = (
    "Run the program with CUDA_ENABLE_USER_TRIGGERED_COREDUMP=1, CUDA_COREDUMP_PIPE=/tmp/dump and "
    "CUDA_COREDUMP_FILE=core.nvcudmp, write to the pipe when it hangs, and wait until the file "
    "no longer grows"
)
# Places in the header of an ELF file of 64 bits, and in a row of its table of sections.
_HEADER_FIELDS = (16, 18), (18, 20), (40, 48), (58, 60), (60, 62)
_SECTION_FIELDS = (4, 8), (24, 32), (32, 40)
_SECTION_BYTES = 64
_NO_BITS = 8
_CORE_DUMP = 4
_HOST_MACHINES = frozenset({3, 21, 62, 183, 243})  # x86, POWER, x86-64, Arm, RISC-V


def take_snapshot(
    target: Target, before: Snapshot | None = None, *, seconds: float = SECONDS, hosts: bool = True
) -> Snapshot:
    """Returns what the debugger sees. The process stands still for about a second, then goes on.

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
    start = time.monotonic()
    notes: list[str] = []
    first = ["info cuda devices", "info cuda kernels"]
    if hosts and target.process is not None:
        first.append("thread apply all bt 40")
    kernel_count = len(before.kernels) if before is not None else _FIRST_KERNELS
    session = _Session(path, target, seconds)
    asked = [*first, *_kernel_commands(range(min(kernel_count, _MAX_KERNELS)))]
    wanted = () if before is None else _threads_to_sample(before)
    asked += [
        command for kernel, *thread in wanted for command in _thread_commands(kernel, *thread)
    ]
    answers = session.ask(asked)
    _check_answers(target, answers, session)
    found = kernels_in(answers["info cuda kernels"])
    if len(found) > _MAX_KERNELS:
        notes.append(f"{len(found) - _MAX_KERNELS} more kernels are on the GPU: not looked into.")
    if session.has_timed_out:
        notes.append(f"The debugger was stopped after {seconds:g} s: some of this is missing.")
    return Snapshot(
        source=target.words, gpus=gpus_in(answers["info cuda devices"]),
        kernels=tuple([_with_blocks(kernel, answers) for kernel in found]),
        samples=tuple(_samples(found, wanted, answers)),
        threads=threads_in(answers.get("thread apply all bt 40", "")),
        seconds=time.monotonic() - start, notes=tuple(notes),
    )  # fmt: skip


_ThreadId = tuple[int, Extent, Extent]


def _kernel_commands(numbers: Iterable[int]) -> list[str]:
    """Returns the debugger's commands that list blocks and threads of kernels."""
    commands = []
    for number in numbers:
        commands += [f"cuda kernel {number}", f"info cuda threads #{number}"]
    commands.append("set cuda coalescing off")
    for number in numbers:
        commands += [f"cuda kernel {number} #", f"info cuda blocks #{number}"]
    return [*commands, "set cuda coalescing on"]


def _thread_commands(kernel: int, block: Extent, thread: Extent) -> list[str]:
    """Returns the debugger's commands that read a thread's code and registers."""
    which = f"kernel {kernel} block {_extent_text(block)} thread {_extent_text(thread)}"
    listings = [f"x/{back // 16 + 32}i $pc-{back} #{which}" for back in _WINDOWS]
    return [f"cuda {which}", f"print $pc #{which}", *listings, f"info registers #{which}"]


def _extent_text(extent: Extent) -> str:
    """Returns an index of a block or thread as the debugger writes it: ``(0,0,0)``."""
    return f"({extent[0]},{extent[1]},{extent[2]})"


def _threads_to_sample(before: Snapshot) -> list[_ThreadId]:
    """Returns threads at different instructions of each kernel, those of most threads last. Most
    threads of a block wait at its barrier for the one that spins."""
    threads: list[_ThreadId] = []
    for kernel in before.kernels[:_MAX_KERNELS]:
        chosen = kernel.pc_threads[-_MAX_SAMPLES:][::-1]
        threads += [(kernel.number, place.block, place.thread) for place in chosen]
    return threads


def _with_blocks(kernel: ResidentKernel, answers: dict[str, str]) -> ResidentKernel:
    """Returns a kernel with its running blocks and its threads' program counters."""
    blocks = blocks_in(answers.get(f"info cuda blocks #{kernel.number}", ""))
    places = pc_threads_in(answers.get(f"info cuda threads #{kernel.number}", ""))
    return replace(kernel, blocks=blocks, pc_threads=places)


def _samples(
    kernels: Iterable[ResidentKernel], wanted: Iterable[_ThreadId], answers: dict[str, str]
) -> Iterable[Sample]:
    """Yields program counter, listing and registers of each thread that was asked for."""
    grids = {kernel.number: kernel.grid_id for kernel in kernels}
    for number, block, thread in wanted:
        commands = _thread_commands(number, block, thread)
        switched, pc, *listings, registers = (answers.get(command, "") for command in commands)
        if number not in grids or "Invalid" in switched or "focus" not in switched.lower():
            continue
        sample = sample_in(grids[number], block, thread, pc, listings, registers)
        if sample is not None:
            yield sample


def _check_answers(target: Target, answers: dict[str, str], session: _Session) -> None:
    """Checks that the debugger could look at the target. Raises ValueError: it could not; the line
    says why."""
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
        """Returns what each command printed; a comment after ``#`` tells equal ones apart."""
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
            plain = command.partition("#")[0].rstrip()
            words += ["-ex", f"echo \\n{mark} {number}\\n", "-ex", plain]
        words += ["-ex", f"echo \\n{mark} end\\n"]
        if self.target.core is None:
            words += ["-ex", "detach"]
        text = self._run(words)
        messages = text.partition(mark)[0] + self.errors
        self.has_failed = f"{mark} 0" not in text or any(words in messages for words in _REFUSALS)
        answers = {}
        for piece in text.split(f"\n{mark} ")[1:]:
            which, _, rest = piece.partition("\n")
            if which.isdigit() and int(which) < len(commands):
                answers[commands[int(which)]] = rest
        return answers

    def _run(self, words: list[str]) -> str:
        """Runs the debugger with a time limit, and returns what it prints."""
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
    """Interrupts, then ends, the debugger, so that the process goes on; returns its output."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        try:
            return process.communicate(timeout=_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            continue
    return b"", b""


def _quoted(path: Path) -> str:
    """Returns a path as a quoted word of the debugger's command line. Raises ValueError: it has a
    line break."""
    text = str(path.absolute())
    if any(letter in text for letter in "\n\r"):
        raise ValueError("the path of a core dump with a line break cannot be read")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
