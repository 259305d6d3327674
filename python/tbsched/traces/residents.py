"""What every SM holds at one moment of a prediction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tbsched.program.arrays import HoldsArrays, Int32Array, Int64Array, StructuredArray
from tbsched.program.checks import integer
from tbsched.shown import Shown
from tbsched.traces.placement import DeviceInfo

PIECE = np.dtype([("launch", np.int32), ("sm", np.int32), ("begin", np.int32), ("end", np.int32)])


def resident_type(processing_blocks: int) -> np.dtype[np.void]:
    """Returns the type of :attr:`Residents.rows`."""
    return np.dtype(
        [("launch", np.int32), ("sm", np.int32), ("blocks", np.int32),
         ("warps", np.int32, (processing_blocks,)), ("warp_slots", np.uint64)]
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SmLimits:
    """What one SM has, as the policy that predicts knows it.

    Attributes:
        block_slots: thread block slots.
        warp_slots: per processing block.
        processing_blocks: how many there are.
        registers: per processing block.
        shared_memory: bytes, in its largest configuration.
        shared_memory_reserve: bytes that the runtime keeps in every block.

    Example:
        >>> held = tb.predict(tb.Sequence([tb.Launch(8, 64, 32)]), "h200").residents()
        >>> held.limits.block_slots, held.limits.processing_blocks, held.limits.warp_slots
        (32, 4, 16)
    """

    block_slots: int
    warp_slots: int
    processing_blocks: int
    registers: int
    shared_memory: int
    shared_memory_reserve: int


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Residents(Shown, HoldsArrays):
    """What every SM holds at one moment of a prediction (:meth:`tbsched.Trace.residents`).

    Attributes:
        device: what was predicted.
        at: the moment: how many events have happened, or in a timed sequence seconds.
        names: the name of each launch of the sequence, None for one without.
        limits: what one SM has.
        rows: a structured array, a row for the blocks of one launch that one SM took at the same
            time: ``launch``, ``sm``, ``blocks``, ``warps`` (per processing block), ``warp_slots``
            (bit s is the warp slot whose ``%warpid`` is s). It is sorted by launch and SM.
        pieces: a structured array of where shared memory lies, by SM and address: ``launch``,
            ``sm``, ``begin``, ``end``, in bytes from the SM's origin. Empty where memory is pooled.
        configured: int32 (sms,), bytes of shared memory that each SM is configured to; 0 where the
            next block decides.
        turn: int32 (sms,), the processing block that the next warp of each SM goes to; -1 where
            warps do not go in strict turn. Blocks that leave do not set it back.
        registers_per_warp: int32, one per launch that has come, as they are allocated.
        shared_memory: int32, bytes per block of each launch, with the runtime's reserve.

    Example:
        >>> held = tb.predict(tb.Sequence([tb.Launch(132, 256, 32, 1024)]), "h200").residents()
        >>> held.used_warps[0].tolist(), held.used_shared_memory[0].item()
        ([2, 2, 2, 2], 2048)
    """

    device: DeviceInfo
    at: int | float
    names: tuple[str | None, ...]
    limits: SmLimits
    rows: StructuredArray
    pieces: StructuredArray
    configured: Int32Array
    turn: Int32Array
    registers_per_warp: Int32Array
    shared_memory: Int32Array

    def of(self, sm: int) -> StructuredArray:
        """Returns the rows of one SM.

        Args:
            sm: its number, from 0.

        Raises:
            TypeError, ValueError: no such SM.

        Example:
            >>> sequence = tb.Sequence([tb.Launch(132, 256, 32), tb.Launch(264, 64, 32)])
            >>> tb.predict(sequence, "h200").residents().of(0)["blocks"].tolist()
            [1, 2]
        """
        number = integer("residents", "sm", sm, 0, self.device.sms - 1)
        sm_rows: StructuredArray = self.rows[self.rows["sm"] == number]
        return sm_rows

    @property
    def used_slots(self) -> Int64Array:
        """Thread block slots in use, int64 (sms,)."""
        return self._sum(self.rows["blocks"])

    @property
    def used_warps(self) -> Int64Array:
        """Warp slots in use, int64 (sms, processing blocks)."""
        return self._sum(self.rows["warps"])

    @property
    def used_registers(self) -> Int64Array:
        """Registers in use, int64 (sms, processing blocks)."""
        return self._sum(self.rows["warps"] * self.registers_per_warp[self.rows["launch"]][:, None])

    @property
    def used_shared_memory(self) -> Int64Array:
        """Bytes of shared memory in use, int64 (sms,)."""
        return self._sum(self.rows["blocks"] * self.shared_memory[self.rows["launch"]])

    def _sum(self, amounts: Int32Array) -> Int64Array:
        sums = np.zeros((self.device.sms, *amounts.shape[1:]), np.int64)
        np.add.at(sums, self.rows["sm"], amounts)
        return sums
