"""Reads what cuda-gdb prints. All of it is data: names of kernels have any characters."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tbsched.hangs.snapshot import (
    BlockRange,
    Extent,
    Gpu,
    HostThread,
    PcThreads,
    ResidentKernel,
    Sample,
)

_EXTENT = r"\((\d+),(\d+),(\d+)\)"
_KERNEL = re.compile(
    rf"^\*?\s+(\d+)\s+\S+\s+(\d+)\s+(\d+)\s+\S+\s+0x([0-9a-f]+)\s+{_EXTENT}\s+{_EXTENT}\s+(\S.*?)\s*$"
)
_RANGE = re.compile(rf"^\*?\s+{_EXTENT}\s+{_EXTENT}\s+(\d+)\s+running\s*$")
_SINGLE = re.compile(rf"^\*?\s+{_EXTENT}\s+running\s+(\d+)\s+(\d+)\s*$")
_THREADS = re.compile(
    rf"^\*?\s+{_EXTENT}\s+{_EXTENT}\s+{_EXTENT}\s+{_EXTENT}\s+(\d+)\s+0x([0-9a-f]+)\s+(.*?)\s*$"
)
_GPU = re.compile(
    r"^\*?\s+(\d+)\s+[0-9a-f]+:[0-9a-f]+\.[0-9a-f]+\s+(\S.*?)\s+\S+\s+sm_\d+\w?\s+(\d+)\s+\d+\s"
)
_THREAD = re.compile(r'^Thread \S+ \(Thread 0x[0-9a-f]+ \(LWP (\d+)\)(?: "(.*)")?\):$')
_FRAME = re.compile(r"^#\d+\s+(?:0x[0-9a-f]+ in )?(.+?) \(.*$")
_LIBRARIES = re.compile(
    r" from \S*/(?:libc|libpthread|ld-linux\S*|libcuda|libcudadebugger|libcupti)\.so"
)
_INSTRUCTION = re.compile(r"^(?:=>)?\s+0x([0-9a-f]+)(?: <[^>]*>)?:\s+(\S.*?)\s*$")
_REGISTER = re.compile(r"^(\S+)\s+0x([0-9a-f]+)\s")
_PC = re.compile(r"^\$\d+ = .*?0x([0-9a-f]+)(?: <(.*)>)?\s*$")


def gpus_in(text: str) -> tuple[Gpu, ...]:
    """Returns the GPUs that ``info cuda devices`` lists."""
    rows = (match for line in text.splitlines() if (match := _GPU.match(line)))
    return tuple([Gpu(int(row[1]), row[2], int(row[3])) for row in rows])


def kernels_in(text: str) -> tuple[ResidentKernel, ...]:
    """Returns the kernels that ``info cuda kernels`` lists, in the order of CUDA's grid numbers."""
    rows = []
    for line in text.splitlines():
        if (row := _KERNEL.match(line)) is None:
            continue
        mask = int(row[4], 16)
        sms = tuple([sm for sm in range(mask.bit_length()) if mask >> sm & 1])
        grid, block = _extent(row, 5), _extent(row, 8)
        rows.append(
            ResidentKernel(
                int(row[1]), int(row[3]), int(row[2]), sms, grid, block, bare_name(row[11])
            )
        )
    return tuple(sorted(rows, key=lambda kernel: kernel.grid_id))


def bare_name(invocation: str) -> str:
    """Returns a kernel's name without arguments, return type and declaration. ``void
    scale<int>(float*)(a=0x1)`` is ``scale<int>``."""
    depth, end = 0, len(invocation)
    for i, letter in enumerate(invocation):
        if letter == "(" and depth == 0 and not invocation.startswith("(anonymous namespace)", i):
            end = i
            break
        depth += (letter == "<") - (letter == ">" and depth > 0)
    name = invocation[:end].strip()
    depth = 0
    for i in range(len(name) - 1, -1, -1):  # the type that a template returns comes first
        depth += (name[i] in ">)") - (name[i] in "<(")
        if name[i] == " " and depth == 0:
            return name[i + 1 :] or invocation
    return name or invocation


def blocks_in(text: str) -> tuple[BlockRange, ...]:
    """Returns the running blocks that ``info cuda blocks`` lists, coalesced or not."""
    blocks = []
    for line in text.splitlines():
        if row := _RANGE.match(line):
            blocks.append(BlockRange(_extent(row, 1), _extent(row, 4), int(row[7])))
        elif row := _SINGLE.match(line):
            index = _extent(row, 1)
            blocks.append(BlockRange(index, index, 1, int(row[5])))
    return tuple(blocks)


def pc_threads_in(text: str) -> tuple[PcThreads, ...]:
    """Returns the threads at each program counter that ``info cuda threads`` lists, most first."""
    by_pc: dict[int, PcThreads] = {}
    for line in text.splitlines():
        if (row := _THREADS.match(line)) is None:
            continue
        pc, count = int(row[14], 16), int(row[13])
        old = by_pc.get(pc)
        if old is None:
            source = "" if row[15] == "0" else ":".join(row[15].rsplit(None, 1))
            by_pc[pc] = PcThreads(pc, count, _extent(row, 1), _extent(row, 4), source)
        else:
            by_pc[pc] = PcThreads(pc, old.threads + count, old.block, old.thread, old.line)
    return tuple(sorted(by_pc.values(), key=lambda place: (-place.threads, place.pc)))


def threads_in(text: str) -> tuple[HostThread, ...]:
    """Returns the host threads that ``thread apply all bt`` lists, without the debugger's own."""
    threads: list[HostThread] = []
    functions: list[str] = []
    frames: list[str] = []
    heading: tuple[int, str] | None = None

    def end() -> None:
        """Adds the thread whose frames have been read, unless the debugger made it."""
        if heading is not None and not any("libcudadebugger" in frame for frame in frames[:4]):
            is_in_driver = bool(frames) and "libcuda.so" in frames[-1]
            runs = _host_function(frames)
            threads.append(HostThread(*heading, tuple(functions), is_in_driver, runs))

    for line in text.splitlines():
        if row := _THREAD.match(line):
            end()
            heading, functions, frames = (int(row[1]), row[2] or ""), [], []
        elif heading is not None and (row := _FRAME.match(line)):
            frames.append(line)
            if row[1] != "??":
                functions.append(row[1])
    end()
    return tuple(sorted(threads, key=lambda thread: thread.system_thread))


def _host_function(frames: list[str]) -> str:
    """Returns the function that a thread of the driver calls; empty: none. Outside of the driver's
    frames such a thread has those of the C library alone."""
    first = next((position for position, each in enumerate(frames) if "libcuda.so" in each), None)
    if first is None or not all(map(_LIBRARIES.search, frames[first:])):
        return ""
    inside = [frame for frame in frames[:first] if not _LIBRARIES.search(frame)]
    row = _FRAME.match(inside[-1]) if inside else None
    return "" if row is None else row[1].replace("??", "without a name")


def sample_in(
    grid_id: int, block: Extent, thread: Extent, pc: str, listings: list[str], registers: str
) -> Sample | None:
    """Returns one thread's instruction, those around it, and its registers; None: it has gone."""
    row = next((row for line in pc.splitlines() if (row := _PC.match(line))), None)
    if row is None:
        return None
    address_, symbol = int(row[1], 16), row[2] or ""
    instructions: tuple[tuple[int, str], ...] = ()
    for listing in listings:
        listed = tuple(_instructions(listing))
        # Before the kernel begins there is no code, and the debugger prints nothing of it.
        if any(address == address_ for address, _ in listed) and len(listed) > len(instructions):
            instructions = listed
    values = {
        row[1]: int(row[2], 16) for line in registers.splitlines() if (row := _REGISTER.match(line))
    }
    values.pop("pc", None)
    return Sample(grid_id, block, thread, address_, symbol, instructions, values)


def _instructions(listing: str) -> Iterator[tuple[int, str]]:
    """Yields address and text of the instructions in a listing."""
    for line in listing.splitlines():
        if row := _INSTRUCTION.match(line):
            yield int(row[1], 16), row[2]


def _extent(row: re.Match[str], first: int) -> Extent:
    """Returns three adjacent groups of a match as integers."""
    return int(row[first]), int(row[first + 1]), int(row[first + 2])
