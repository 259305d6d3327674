"""The CUDA driver, for kernels with any number of registers, and what its answers are compared to.

Needs the CUDA toolkit.
"""

from __future__ import annotations

import ctypes
import functools
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

from compiled import ROOT, shared_library
from tbsched import _launcher
from tbsched.program.sequence import Launch

HERE = ROOT / "tests" / "lab" / "oracles"


class Answer(NamedTuple):
    """An error of the driver, or 0, and its answer."""

    error: int
    value: int


class Driver:
    """Kernels and streams of the primary context of GPU 0."""

    def __init__(self, folder: Path) -> None:
        library = folder / "liboracle.so"
        shared_library(library, [HERE / "driver.cc"], "-O1")
        ctypes.CDLL("libcuda.so.1", ctypes.RTLD_GLOBAL)
        self._library = ctypes.CDLL(str(library))
        self.check(self._library.oracle_open(), "oracle_open")
        cubin = folder / "spin.cubin"
        subprocess.run(
            ["nvcc", "-cubin", "-arch=native", "-o", cubin, HERE / "spin.cu"], check=True
        )
        self._image = cubin.read_bytes()
        self._functions: dict[tuple[int, int], ctypes.c_void_p] = {}

    @staticmethod
    def check(error: int, call: str) -> None:
        if error != 0:
            raise RuntimeError(f"{call}: error {error}")

    @functools.cached_property
    def fewest_registers(self) -> int:
        return _launcher.usage(self._image)[0][1]

    def function(self, launch: Launch) -> ctypes.c_void_p:
        """The kernel with the registers and local memory of a launch, its attributes set."""
        key = launch.registers, launch.local_memory
        if key not in self._functions:
            image = _launcher.patch(self._image, *key)
            found = ctypes.c_void_p()
            self.check(self._library.oracle_load(image, b"spin", ctypes.byref(found)), "load")
            self._functions[key] = found
        function = self._functions[key]
        carveout = -1 if launch.carveout is None else launch.carveout
        error = self._library.oracle_prepare(function, launch.shared_memory, carveout)
        self.check(error, "oracle_prepare")
        return function

    def blocks(self, launch: Launch) -> Answer:
        """Blocks on an SM, as the driver says."""
        value = ctypes.c_int()
        shared = ctypes.c_size_t(launch.shared_memory)
        error = self._library.oracle_blocks(
            self.function(launch), launch.threads, shared, ctypes.byref(value)
        )
        return Answer(error, value.value)

    def header_blocks(self, launch: Launch) -> Answer:
        """Blocks on an SM, as cuda_occupancy.h says."""
        value = ctypes.c_int()
        shared = ctypes.c_size_t(launch.shared_memory)
        carveout = -1 if launch.carveout is None else launch.carveout
        error = self._library.oracle_header_blocks(
            launch.registers, launch.threads, shared, carveout, ctypes.byref(value)
        )
        return Answer(error, value.value)

    def clusters(self, launch: Launch) -> Answer:
        """Clusters on the GPU, as the driver says."""
        value = ctypes.c_int()
        shared = ctypes.c_size_t(launch.shared_memory)
        error = self._library.oracle_clusters(
            self.function(launch),
            launch.blocks,
            launch.threads,
            shared,
            launch.cluster,
            ctypes.byref(value),
        )
        return Answer(error, value.value)

    def stream(self, priority: int) -> ctypes.c_void_p:
        found = ctypes.c_void_p()
        self.check(self._library.oracle_stream(priority, ctypes.byref(found)), "stream")
        return found

    def event(self) -> ctypes.c_void_p:
        found = ctypes.c_void_p()
        self.check(self._library.oracle_event(ctypes.byref(found)), "event")
        return found

    def launch(self, launch: Launch, stream: ctypes.c_void_p | None, seconds: float) -> int:
        """The driver's error; 0: none."""
        return int(
            self._library.oracle_launch(
                self.function(launch),
                launch.blocks,
                launch.threads,
                ctypes.c_size_t(launch.shared_memory),
                launch.cluster,
                stream,
                ctypes.c_ulonglong(round(seconds * 1e9)),
            )
        )

    def record(self, event: ctypes.c_void_p, stream: ctypes.c_void_p) -> None:
        self.check(self._library.oracle_record(event, stream), "record")

    def wait(self, stream: ctypes.c_void_p, event: ctypes.c_void_p) -> None:
        self.check(self._library.oracle_wait(stream, event), "wait")

    def synchronize(self, stream: ctypes.c_void_p | None = None) -> None:
        if stream is None:
            self.check(self._library.oracle_synchronize(), "synchronize")
        else:
            self.check(self._library.oracle_synchronize_stream(stream), "synchronize stream")
