"""Launches kernels of a cubin through the CUDA driver, and times them."""

from __future__ import annotations

import ctypes
import math
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from .catalogue import Real

_COUNT = 1 << 24  # elements of a buffer
_OUT_BYTES = 8 * _COUNT
_COMPARED = 1 << 22  # bytes of what a kernel wrote
_BATCH_MS = 1.0
_ATTRIBUTES = {"shared": 1, "constant": 2, "local": 3, "registers": 4, "most_threads": 0}
_MOST_DYNAMIC = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_TYPES = {
    "f16": np.dtype(np.float16), "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64), "i32": np.dtype(np.int32),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Function:
    """A kernel that was loaded."""

    handle: ctypes.c_void_p
    attributes: dict[str, int]
    shared: int = 0  # bytes of dynamic shared memory that its compiler asks for


class Context:
    """The primary context of a GPU.

    Args:
        library: of the driver.
    """

    def __init__(self, library: str = "libcuda.so.1") -> None:
        self._cuda = ctypes.CDLL(library)
        self.call("cuInit", 0)
        device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        name = ctypes.create_string_buffer(128)
        self.call("cuDeviceGetName", name, 128, device)
        self.name = name.value.decode()
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *arguments: object) -> None:
        """Calls the driver.

        Raises:
            RuntimeError: it refuses; names the function and the error.
        """
        error = getattr(self._cuda, name)(*arguments)
        if error:
            raise RuntimeError(f"{name}: error {error}")

    def room(self, size: int) -> ctypes.c_uint64:
        """Memory of the GPU."""
        there = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(there), ctypes.c_size_t(size))
        return there

    def read(self, into: np.ndarray, there: ctypes.c_uint64) -> None:
        """Waits for all kernels, and copies what they wrote."""
        self.call("cuCtxSynchronize")
        at = ctypes.c_void_p(into.ctypes.data)
        self.call("cuMemcpyDtoH_v2", at, there, ctypes.c_size_t(into.nbytes))

    def functions(self, cubin: bytes, names: list[str], shared: int = 0) -> dict[str, Function]:
        """Loads kernels of a cubin, and reads what the driver says of them."""
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), cubin)
        found = {}
        for name in names:
            handle = ctypes.c_void_p()
            self.call("cuModuleGetFunction", ctypes.byref(handle), module, name.encode())
            attributes = {}
            for key, number in _ATTRIBUTES.items():
                value = ctypes.c_int()
                self.call("cuFuncGetAttribute", ctypes.byref(value), number, handle)
                attributes[key] = value.value
            found[name] = Function(handle, attributes, shared)
        return found


class Driver(Context):
    """A context, with the buffers that all kernels share."""

    def __init__(self, library: str = "libcuda.so.1") -> None:
        super().__init__(library)
        self._events = [ctypes.c_void_p() for _ in range(2)]
        for event in self._events:
            self.call("cuEventCreate", ctypes.byref(event), 0)
        self._inputs = {name: self._filled(kind) for name, kind in _TYPES.items()}
        random = np.random.default_rng(3)
        self._index = self._sent(random.integers(0, 2**31 - 1, _COUNT, np.int32))
        jitter = random.integers(0, 5, _COUNT // 8, np.int32)
        self._rows = self._sent(8 * np.arange(_COUNT // 8, dtype=np.int32) + jitter)
        self._out = self.room(_OUT_BYTES)

    def _sent(self, values: np.ndarray) -> ctypes.c_uint64:
        there = self.room(values.nbytes)
        at = ctypes.c_void_p(values.ctypes.data)
        self.call("cuMemcpyHtoD_v2", there, at, ctypes.c_size_t(values.nbytes))
        return there

    def _filled(self, kind: np.dtype) -> tuple[ctypes.c_uint64, ctypes.c_uint64]:
        random = np.random.default_rng(7)
        made = []
        for _ in range(2):
            if kind.kind == "i":
                values = random.integers(-(2**31), 2**31 - 1, _COUNT, np.int32)
            else:
                values = random.random(_COUNT, np.float32).astype(kind)
            made.append(self._sent(values))
        return made[0], made[1]

    def resident(self, function: Function, threads: int, shared: int) -> int:
        """How many such blocks an SM holds."""
        count = ctypes.c_int()
        self.call(
            "cuOccupancyMaxActiveBlocksPerMultiprocessor",
            ctypes.byref(count), function.handle, threads, ctypes.c_size_t(shared),
        )  # fmt: skip
        return count.value

    def suggested(self, function: Function, shared: int) -> int:
        """The block size that the driver suggests."""
        grid, block = ctypes.c_int(), ctypes.c_int()
        self.call(
            "cuOccupancyMaxPotentialBlockSize",
            ctypes.byref(grid), ctypes.byref(block), function.handle, None,
            ctypes.c_size_t(shared), 0,
        )  # fmt: skip
        return block.value

    def launch(self, real: Real, function: Function, grid: int, threads: int) -> Launcher:
        """A launch that is ready to be repeated."""
        a, b = self._inputs[real.type]
        n, m = ctypes.c_int(real.n), ctypes.c_int(real.m)
        shared = function.shared + real.shared + real.shared_per_thread * threads
        none = [ctypes.c_uint64(0), ctypes.c_uint64(0)]  # Triton's own last two
        arguments = (a, b, self._index, self._rows, self._out, n, m, *none)
        return Launcher(self, function, arguments, grid, threads, shared)

    def cleared(self) -> None:
        """Zeros where kernels write."""
        self.call("cuMemsetD8_v2", self._out, 0, ctypes.c_size_t(_OUT_BYTES))

    def written(self) -> np.ndarray:
        """The first bytes that a kernel wrote; waits for it."""
        found = np.empty(_COMPARED, np.uint8)
        self.read(found, self._out)
        return found

    @contextmanager
    def timed(self, into: list[float]) -> Iterator[None]:
        """Appends the milliseconds that what is launched takes."""
        first, last = self._events
        self.call("cuEventRecord", first, None)
        yield
        self.call("cuEventRecord", last, None)
        self.call("cuEventSynchronize", last)
        passed = ctypes.c_float()
        self.call("cuEventElapsedTime", ctypes.byref(passed), first, last)
        into.append(passed.value)


class Launcher:
    """A kernel, a grid and a block size."""

    def __init__(
        self,
        driver: Driver,
        function: Function,
        arguments: tuple[ctypes._SimpleCData[int], ...],
        grid: int,
        threads: int,
        shared: int,
    ) -> None:
        self._driver, self._kept = driver, arguments
        pointers = [ctypes.cast(ctypes.byref(each), ctypes.c_void_p) for each in arguments]
        self._packed = (ctypes.c_void_p * len(pointers))(*pointers)
        self._arguments = (
            function.handle, grid, 1, 1, threads, 1, 1, shared, None, self._packed, None,
        )  # fmt: skip

    def go(self) -> None:
        """Launches it once."""
        self._driver.call("cuLaunchKernel", *self._arguments)

    def batch(self) -> int:
        """How many launches take about a millisecond."""
        took: list[float] = []
        self.go()
        with self._driver.timed(took):
            self.go()
            self.go()
        return min(100, max(3, math.ceil(2 * _BATCH_MS / max(took[0], 1e-3))))

    def microseconds(self, count: int) -> float:
        """Returns the time of a launch when so many follow one another."""
        took: list[float] = []
        with self._driver.timed(took):
            for _ in range(count):
                self.go()
        return 1000 * took[0] / count


def differs(kind: str, found: np.ndarray, wanted: np.ndarray) -> float:
    """By how much results differ, as a share of the greatest; 0: not at all."""
    if np.array_equal(found, wanted):
        return 0.0
    if kind == "i32":
        return 1.0
    x, y = (np.nan_to_num(each.view(_TYPES[kind]).astype(np.float64)) for each in (found, wanted))
    return float(np.abs(x - y).max() / max(np.abs(y).max(), 1e-30))


def median(values: list[float]) -> float:
    return statistics.median(values)
