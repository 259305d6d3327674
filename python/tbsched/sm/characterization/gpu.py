"""A real GPU that runs loops, through cuda.core."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tbsched.errors import missing
from tbsched.hardware.catalogue import ATTACHED
from tbsched.hardware.catalogue import device as find_device
from tbsched.launcher.observe import Gpu
from tbsched.program.arrays import StructuredArray
from tbsched.sm.characterization.bench import Compiled
from tbsched.sm.characterization.frames import BOARD_BYTES, KERNEL, RECORD_BYTES
from tbsched.sm.characterization.loops import Loop
from tbsched.sm.characterization.opcodes import OPCODES, Opcode
from tbsched.sm.characterization.placing import Placed, known_as
from tbsched.sm.characterization.runs import RECORD

_OPERANDS = 4096  # bytes before the board
_CONTEXT = "GPUs that run instruction loops"


class GpuBench:
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
        except ImportError:
            raise missing(_CONTEXT, "cuda.core", "cuda-core") from None
        self.spec = find_device(ATTACHED) if index == 0 else known_as(self.info)
        self.iterations = 64
        self._core = core
        self._device = core.Device(index)
        self._device.set_current()
        self._stream = self._device.create_stream()
        warps = self.spec.sms * self.spec.warps_per_sm
        self._records_at = _OPERANDS + BOARD_BYTES + 8 * self.spec.sms
        self._records_at += -self._records_at % RECORD_BYTES
        size = self._records_at + warps * RECORD_BYTES
        self._there = self._device.allocate(size, stream=self._stream)
        self._here = core.LegacyPinnedMemoryResource().allocate(size)
        memory = (ctypes.c_ubyte * size).from_address(int(self._here.handle))
        self._bytes = np.ctypeslib.as_array(memory)
        self._kernels: dict[bytes, Any] = {}

    def about(self) -> Mapping[str, Any]:
        return {"name": self.info.name, "sms": self.info.sms, **self.info.details}

    def workshop(self, opcodes: Iterable[Opcode]) -> Compiled:
        capability = str(self.info.details["compute_capability"]).replace(".", "")
        return Compiled(opcodes, f"sm_{capability}")

    def run(self, loop: Loop, placed: Placed, iterations: int) -> StructuredArray:
        """Launches the kernel with a loop, waits for it, and returns what its warps recorded, a row
        for each."""
        warps = placed.blocks * placed.threads // 32
        self._bytes[:] = 0
        operands = OPCODES[loop.opcode].operands()
        self._bytes[: len(operands)] = np.frombuffer(operands, np.uint8)
        self._there.copy_from(self._here, stream=self._stream)
        at = int(self._there.handle)
        kernel_arguments = (
            iterations, placed.target, placed.measuring, placed.short_block, placed.short_warps,
        )  # fmt: skip
        addresses = (at + self._records_at, at + _OPERANDS, at)
        self._core.launch(
            self._stream,
            self._core.LaunchConfig(grid=placed.blocks, block=placed.threads),
            self._kernel(loop),
            *map(np.uint64, addresses),
            *map(np.uint32, kernel_arguments),
        )
        self._there.copy_to(self._here, stream=self._stream)
        self._stream.sync()
        end = self._records_at + warps * RECORD_BYTES
        return self._bytes[self._records_at : end].copy().view(RECORD)

    def _kernel(self, loop: Loop) -> Any:
        """Returns the kernel of a loop, which is loaded at the first call."""
        if loop.cubin not in self._kernels:
            code = self._core.ObjectCode.from_cubin(loop.cubin)
            self._kernels[loop.cubin] = code.get_kernel(KERNEL)
        return self._kernels[loop.cubin]
