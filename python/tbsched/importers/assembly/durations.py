"""First guess of the blocks' duration, from the time of their kernel in a profile."""

from __future__ import annotations

from typing import Any, TypeAlias

from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.program import BLOCK_TIMES
from tbsched.program.sequence import Launch, Sequence

# Blocks, threads, registers, shared memory, local memory, carveout and cluster of a launch.
Shape: TypeAlias = tuple[Any, ...]
_KERNELS = f"{BLOCK_TIMES}: assumed that of its whole kernel"


class Waves:
    """In how many waves the blocks of a launch run, if it is alone on a device.

    Args:
        spec: the device; None: nobody knows it, so a launch has one wave.
    """

    def __init__(self, spec: DeviceSpec | None) -> None:
        self._spec = spec
        self._rooms: dict[Shape, int] = {}

    def of(self, shape: Shape) -> int:
        """Returns the number of waves of a launch; 1 if it cannot run on the device.

        Args:
            shape: the first fields of a ``Launch``, up to its cluster.
        """
        if self._spec is None:
            return 1
        # Beyond a full GPU, only the room of a block matters, not the size of the grid.
        blocks, *block, cluster = shape
        max_blocks = self._spec.sms * self._spec.blocks_per_sm
        small = (min(blocks, max_blocks - max_blocks % cluster), *block, cluster)
        room = self._rooms.get(small)
        if room is None:
            room = self._rooms[small] = self._room(Launch(*small))
        return -(-int(blocks) // room)

    def _room(self, launch: Launch) -> int:
        """Returns how many blocks of a launch are resident on an idle GPU, at least 1."""
        assert self._spec is not None
        try:
            return max(predict(Sequence([launch]), self._spec)[0].placed, 1)
        except ValueError:
            return launch.blocks

    def sentence(self, device: str | None, sms: int | None) -> str:
        """Returns the sentence that says how durations of blocks were assumed."""
        if self._spec is None:
            gpu = "a GPU that nobody named" if device is None else device
            if device is not None and sms is not None:
                gpu = f"{device} with {sms:,} SMs"
            return f"{_KERNELS}, as no device here is {gpu}; name one with device."
        return (
            f"{_KERNELS}, divided by the waves that the kernel has alone on a {self._spec.title}."
        )
