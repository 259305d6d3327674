"""A real GPU that runs kernels beside rulers, through cuda.core."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tbsched.errors import missing
from tbsched.hardware.catalogue import ATTACHED
from tbsched.hardware.catalogue import device as find_device
from tbsched.launcher.observe import Gpu
from tbsched.program.sequence import Launch
from tbsched.sm.characterization.placing import known_as
from tbsched.sm.neighbours.rulers import HERE, THREADS, Ruler
from tbsched.sm.neighbours.runs import RulerRun

_CONTEXT = "kernels beside rulers"
_RECORD = np.dtype([("start_ns", "<u8"), ("end_ns", "<u8"), ("rate", "<f4"), ("sm", "<u4")])
_NEAR, _FAR = 1 << 24, 1 << 31  # bytes: what stays in L2, and what does not
_CLOCKS = 400_000  # of a ruler alone
_WORDS = 256  # bytes: what the kernels of a run share, and what the marks write
_LONG_NS = 200_000  # what takes less is called several times


class RulerGpu:
    """A GPU.

    Args:
        index: number of the GPU as CUDA counts them.

    Raises:
        NoGpuError: no usable GPU, with what was looked for.
        ImportError: cuda.core is missing.
        ValueError: no shipped device is called like this GPU.
    """

    def __init__(self, index: int = 0) -> None:
        with Gpu(index) as gpu:  # says what it is, and refuses what cannot be measured
            self.info = gpu.info
        try:
            from cuda import core
            from cuda.bindings import driver
        except ImportError:
            raise missing(_CONTEXT, "cuda.core", "'tbsched[sm]'") from None
        self.spec = find_device(ATTACHED) if index == 0 else known_as(self.info)
        self._core, self._driver = core, driver
        self._device = core.Device(index)
        self._device.set_current()
        self._streams = [self._device.create_stream() for _ in range(2)]
        number = str(self.info.details["compute_capability"]).replace(".", "")
        frame = (HERE / "frame.cuh").read_text("utf-8").replace("#pragma once", "")
        code = (HERE / "rulers.cu").read_text("utf-8").replace('#include "frame.cuh"', frame)
        options = core.ProgramOptions(std="c++17", arch=f"sm_{number}")
        self._code = core.Program(code, "c++", options).compile("cubin")
        self._records = self.spec.sms * self.spec.blocks_per_sm
        self._words = self._device.allocate(2 * _WORDS, stream=self._streams[0])
        size = self._records * _RECORD.itemsize
        self._written = self._device.allocate(size, stream=self._streams[0])
        self._far = self._device.allocate(_FAR, stream=self._streams[0])
        self._far.fill(0, stream=self._streams[0])
        pinned = core.LegacyPinnedMemoryResource()
        self._here = {size: pinned.allocate(size) for size in (2 * _WORDS, size)}
        self._kernels: dict[str, Any] = {}
        self._calls, self._salt = 1, 0
        self._device.sync()

    def run(self, call: Any, ruler: Ruler | None, blocks: int, launch: Launch) -> RulerRun:
        """Launches, waits, and reads what the kernels wrote."""
        first = self._streams[0]
        self._words.fill(0, stream=first)
        first.sync()
        count = blocks * self.spec.sms if ruler else 0
        carveout = -1 if launch.carveout is None else launch.carveout
        if ruler:
            expected = count + (1 if call else 0)
            self._rule(ruler, count, expected, 0 if call else _CLOCKS, carveout)
        if call:
            self._mark("mark_begin", carveout, np.uint32(count + 1))
            for _ in range(self._calls):
                call(int(first.handle))
            self._mark("mark_end", carveout)
        self._device.sync()
        spent = self._spent() if call else 0
        if call and not ruler and spent < _LONG_NS:
            self._calls = max(self._calls, int(_LONG_NS * self._calls / max(spent, 1)) + 1)
        seconds = spent / self._calls * 1e-9 if call else None
        return RulerRun(ruler.name if ruler else None, blocks, seconds, self._rate(count))

    def _rule(self, ruler: Ruler, count: int, expected: int, clocks: int, carveout: int) -> None:
        self._salt += 1
        size = _FAR if ruler.is_far else _NEAR
        self._launch(
            self._streams[1], ruler.kernel, count, THREADS, carveout,
            np.uint64(int(self._written.handle)), np.uint64(int(self._words.handle)), np.uint64(0),
            np.uint64(int(self._far.handle)), np.uint32(size - 1), np.uint32(self._salt),
            np.int64(clocks), np.uint32(expected),
        )  # fmt: skip

    def _mark(self, name: str, carveout: int, *expected: np.uint32) -> None:
        at = int(self._words.handle)
        arguments = np.uint64(at + _WORDS), np.uint64(at), *expected
        self._launch(self._streams[0], name, 1, 32, carveout, *arguments)

    def _launch(
        self, stream: Any, name: str, grid: int, threads: int, carveout: int, *arguments: Any
    ) -> None:
        config = self._core.LaunchConfig(grid=grid, block=threads)
        self._core.launch(stream, config, self._kernel(name, carveout), *arguments)

    def _kernel(self, name: str, carveout: int) -> Any:
        """Kernels share an SM only if they ask for the same split of its memory."""
        if name not in self._kernels:
            self._kernels[name] = self._code.get_kernel(name)
        kernel = self._kernels[name]
        wish = self._driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
        handle = self._driver.CUkernel(int(kernel.handle))
        self._driver.cuKernelSetAttribute(wish, carveout, handle, self._device.device_id)
        return kernel

    def _read(self, buffer: Any) -> Any:
        here = self._here[buffer.size]
        buffer.copy_to(here, stream=self._streams[0])
        self._streams[0].sync()
        memory = (ctypes.c_ubyte * buffer.size).from_address(int(here.handle))
        return np.ctypeslib.as_array(memory).copy()

    def _spent(self) -> int:
        row = self._read(self._words)[_WORDS : _WORDS + _RECORD.itemsize]
        mark = row.view(_RECORD)[0]
        return int(mark["end_ns"]) - int(mark["start_ns"])

    def _rate(self, count: int) -> float | None:
        """Of an SM, in the mean."""
        if not count:
            return None
        found = self._read(self._written)[: count * _RECORD.itemsize].view(_RECORD)
        return float(np.bincount(found["sm"], weights=found["rate"]).mean())
