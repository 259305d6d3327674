"""A GPU that runs the kernels of this folder, through CuPy, and what plays one."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

HERE = Path(__file__).parent
RECORD = np.dtype(
    [("start_ns", "<u8"), ("end_ns", "<u8"), ("rate", "<f4"), ("sm", "<u4")], align=True
)
MOST_BLOCKS = 70_000
FAR_BYTES = 1 << 31
NEAR_BYTES = 1 << 24
# Percent of the most shared memory. All kernels ask for all: only then do they share any SM.
CARVEOUT = 100
GATE_CLOCKS = 200_000  # longer than the host takes for two launches
FLOATS = 1 << 27  # of each array that real kernels read or write
Array = npt.NDArray[Any]


class Card(Protocol):
    """What a GPU can do here.

    Attributes:
        sms: how many SMs.
        about: name, driver and so on.
    """

    sms: int
    about: dict[str, Any]

    def launch(self, name: str, grid: int, threads: int, *args: Any, stream: int = 0) -> None:
        """Launches a kernel; an argument is an address or a NumPy scalar."""

    def address(self, name: str) -> int:
        """An address on the GPU: far, near, x0, y0, x1, y1, records0 …, control, roles0 …"""

    def clear(self) -> None:
        """Sets the control words and the records to zero."""

    def roles(self, number: int, sms: Sequence[int]) -> None:
        """Writes which SMs have a role."""

    def records(self, number: int, blocks: int) -> Array:
        """Waits, and reads what blocks wrote."""

    def copy(self, kind: str, count: int, stream: int) -> None:
        """Queues a copy or memset of so many bytes."""

    def gate(self) -> None:
        """Holds up what comes next in streams 0 and 1, so that it starts at the same time."""

    def wait(self) -> None:
        """Until all is done."""

    def facts(self, name: str) -> dict[str, int]:
        """Registers and shared memory of a kernel."""


class CupyCard:
    """A real GPU."""

    def __init__(self) -> None:
        import cupy

        self._cp = cupy
        self._kernels: dict[str, Any] = {}
        for file, cubin in cubins(cupy.cuda.Device().compute_capability).items():
            module = cupy.RawModule(path=str(cubin))
            for name in kernels_of(file):
                kernel = module.get_function(name)
                kernel.preferred_shared_memory_carveout = CARVEOUT
                self._kernels[name] = kernel
        properties = cupy.cuda.runtime.getDeviceProperties(0)
        self.sms = int(properties["multiProcessorCount"])
        self.about = {
            "name": properties["name"].decode(),
            "sms": self.sms,
            "driver": cupy.cuda.runtime.driverGetVersion(),
            "clock_khz": int(properties.get("clockRate", 0)),
        }
        self.streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(4)]
        sizes = {"far": FAR_BYTES, "near": NEAR_BYTES, "control": 256}
        sizes |= {f"{name}{k}": 4 * FLOATS for name in "xy" for k in range(2)}
        sizes |= {f"records{k}": MOST_BLOCKS * RECORD.itemsize for k in range(2)}
        sizes |= {f"roles{k}": 256 for k in range(2)}
        sizes |= {"mark": 256}
        self._memory = {name: cupy.zeros(size, cupy.uint8) for name, size in sizes.items()}
        self._pinned: Any = None
        for k in range(2):
            blocks = np.int32(FLOATS // 256)
            nobody, y = np.uint64(0), np.uint64(self.address(f"x{k}"))
            records = np.uint64(self.address(f"records{k}"))
            self.launch("fill", 1056, 256, records, nobody, y, blocks)
        self.wait()

    def launch(self, name: str, grid: int, threads: int, *args: Any, stream: int = 0) -> None:
        with self.streams[stream]:
            self._kernels[name]((grid,), (threads,), args)

    def address(self, name: str) -> int:
        return int(self._memory[name].data.ptr)

    def clear(self) -> None:
        for name in ("control", "mark"):
            self._cp.cuda.runtime.memset(self.address(name), 0, 256)
        self._cp.cuda.runtime.deviceSynchronize()

    def roles(self, number: int, sms: Sequence[int]) -> None:
        table = np.zeros(256, np.uint8)
        table[list(sms)] = 1
        self._memory[f"roles{number}"].set(table)
        self._cp.cuda.runtime.deviceSynchronize()

    def records(self, number: int, blocks: int) -> Array:
        self.wait()
        found = self._memory[f"records{number}"][: blocks * RECORD.itemsize].get()
        return np.asarray(found).view(RECORD)

    def mark(self) -> tuple[int, int]:
        """What the marks wrote."""
        self.wait()
        row = self._memory["mark"][: RECORD.itemsize].get().view(RECORD)[0]
        return int(row["start_ns"]), int(row["end_ns"])

    def copy(self, kind: str, count: int, stream: int) -> None:
        runtime = self._cp.cuda.runtime
        queue = self.streams[stream].ptr
        if self._pinned is None:
            self._pinned = self._cp.cuda.alloc_pinned_memory(1 << 26)
        there, other, here = self.address("x1"), self.address("y1"), self._pinned.ptr
        if kind == "set":
            runtime.memsetAsync(other, 0, count, queue)
        else:
            to, source, number = {
                "h2d": (other, here, 1), "d2h": (here, there, 2), "d2d": (other, there, 3),
            }[kind]  # fmt: skip
            runtime.memcpyAsync(to, source, count, number, queue)

    def gate(self) -> None:
        self.launch("gate", 1, 32, np.int64(GATE_CLOCKS))
        event = self._cp.cuda.Event(disable_timing=True)
        event.record(self.streams[0])
        self.streams[1].wait_event(event)

    def wait(self) -> None:
        self._cp.cuda.runtime.deviceSynchronize()

    def facts(self, name: str) -> dict[str, int]:
        kernel = self._kernels[name]
        return {"registers": int(kernel.num_regs), "shared_memory": int(kernel.shared_size_bytes)}


class PlayedCard:
    """In the place of a GPU, to rehearse: times and rates that mean nothing."""

    sms = 132

    def __init__(self) -> None:
        self.about = {"name": "played", "sms": self.sms}
        self._random = np.random.default_rng(1)
        self._last: dict[int, str] = {}

    def launch(self, name: str, grid: int, threads: int, *args: Any, stream: int = 0) -> None:
        assert 1 <= grid <= MOST_BLOCKS
        assert 32 <= threads <= 1024
        assert all(isinstance(value, np.generic) for value in args)
        source = "real.cu" if name not in kernels_of("bodies.cu") else "bodies.cu"
        assert name in kernels_of(source), name
        assert len(args) == parameters(name), (name, len(args))
        self._last[stream] = name

    def address(self, name: str) -> int:
        return zlib.crc32(name.encode())

    def clear(self) -> None:
        pass

    def roles(self, number: int, sms: Sequence[int]) -> None:
        assert all(0 <= sm < self.sms for sm in sms)

    def records(self, number: int, blocks: int) -> Array:
        found = np.zeros(blocks, RECORD)
        found["sm"] = np.arange(blocks) % self.sms
        found["start_ns"] = 10**18 + np.arange(blocks) // (16 * self.sms) * 9000
        found["end_ns"] = found["start_ns"] + self._random.integers(8000, 9000, blocks)
        found["rate"] = self._random.uniform(90, 100, blocks)
        return found

    def mark(self) -> tuple[int, int]:
        return 10**18, 10**18 + 200_000

    def copy(self, kind: str, count: int, stream: int) -> None:
        assert kind in {"set", "h2d", "d2h", "d2d"}
        assert count > 0
        assert 0 <= stream < 4

    def gate(self) -> None:
        self.launch("gate", 1, 32, np.int64(GATE_CLOCKS))

    def wait(self) -> None:
        pass

    def facts(self, name: str) -> dict[str, int]:
        return {"registers": 32, "shared_memory": 0}


def cubins(compute_capability: str) -> dict[str, Path]:
    """The machine code of each file of kernels, which nvcc makes."""
    folder = Path(tempfile.mkdtemp(prefix="neighbours-"))
    made = {file: folder / file.replace(".cu", ".cubin") for file in ("bodies.cu", "real.cu")}
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    flags = ["-std=c++17", f"-arch=sm_{compute_capability}", "-cubin", "-o"]
    running = [subprocess.Popen([nvcc, *flags, made[file], HERE / file]) for file in made]
    if any(each.wait() for each in running):
        raise SystemExit("nvcc refuses the kernels")
    return made


_KERNEL = re.compile(
    r'^(?:KERNEL\(|extern "C" __global__ void\s+(?:__launch_bounds__\(\w+\)\s+)?)(\w+)',
    re.MULTILINE,
)


def kernels_of(file: str) -> list[str]:
    """The names of the kernels of a file of this folder."""
    return _KERNEL.findall((HERE / file).read_text("utf-8"))


def parameters(name: str) -> int:
    """How many a kernel takes."""
    if name in kernels_of("real.cu"):
        return 4
    if name.startswith("halves"):
        return 2
    return {"mark_begin": 3, "mark_end": 2, "gate": 1}.get(name, 8)
