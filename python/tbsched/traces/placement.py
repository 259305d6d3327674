"""What traces are made of: a device, and where the blocks of each launch went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tbsched.counting import counted
from tbsched.program.arrays import HoldsArrays, Int32Array, Int64Array
from tbsched.program.checks import integer
from tbsched.program.events.launch import Launch


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """The device that a trace is of: a trace file's header.

    Attributes:
        name: such as ``NVIDIA H200``, or the name of the model that predicted.
        sms: number of SMs.
        details: further keys. An observation has compute_capability, driver, cuda, uuid and more. A
            prediction has ``model``, ``policy`` and what explanations and maps need to know:
            ``warps_in_turn`` (whether a warp waits for the processing block whose turn it is),
            ``configuration_per`` (whether a ``TPC`` or an ``SM`` has a shared-memory configuration
            of its own) and ``topology`` (the fields of that table in the device file).
        assumed: of a prediction, the fields of the device whose values are assumed, as
            ``DeviceSpec.provenance`` names them; None where nobody says, as of an observation.

    Example:
        >>> trace = tb.predict(tb.Sequence([tb.Launch(8, 64, 32)]), "rtx3090")
        >>> trace.device.sms, trace.device.details["policy"]
        (82, 'ampere')
    """

    name: str
    sms: int
    details: Mapping[str, Any] = field(default_factory=dict, hash=False)
    assumed: tuple[str, ...] | None = field(default=None, compare=False)


@dataclass(frozen=True, eq=False, slots=True)
class Placement(HoldsArrays):
    """Where the blocks of one launch went. Its arrays are read-only.

    Attributes:
        smid: int32 (blocks,), the SM of each block that was placed before the next event; -1 for a
            block that was not.
        final_smid: int32 (blocks,), the SM of each block after all events; None where it was not
            recorded.
        limiter: what refused the blocks that are -1: ``slots``, ``warps``, ``registers``,
            ``shared_memory``, ``configuration``, ``local_memory``, ``cooperative``, ``queue`` or
            ``stream``. In a timed sequence it is what the launch waited for first, and can also be
            ``priority``, ``hardware_queue``, ``event``, ``value``, ``legacy_stream``, ``grids``,
            ``turn``, ``trigger``, ``node``, ``first_use`` or ``host``; ``policy`` where a policy of
            your own let blocks wait. None where nothing did, or where nobody knows.
        start_ns: int64 (blocks,), when each block started, in nanoseconds. It is None in a
            prediction of a held sequence. An observation of one has the GPU's global timer. In a
            timed sequence a prediction counts from the host's first call, and an observation from
            the first start. In a program that hangs, ``NEVER_NS`` for a block that never starts.
        end_ns: int64 (blocks,), when each block ended, likewise; ``NEVER_NS`` for a block that
            never ends.
        warp_slots: int32 (blocks, warps), ``%warpid`` of each warp; -1 for blocks that were not
            placed, None unless asked for.
        hardware_queue: the number of the hardware queue that the launch went through; None where it
            is not known.

    Example:
        >>> full = [tb.Launch(132, 1024, 64), tb.Launch(4, 1024, 32), tb.Release(0)]
        >>> waits = tb.predict(tb.Sequence(full), "h200")[1]
        >>> waits.smid.tolist(), waits.limiter, waits.placed
        ([-1, -1, -1, -1], 'registers', 0)
        >>> bool((waits.final_smid >= 0).all())
        True
    """

    smid: Int32Array
    final_smid: Int32Array | None = None
    limiter: str | None = None
    start_ns: Int64Array | None = None
    end_ns: Int64Array | None = None
    warp_slots: Int32Array | None = None
    hardware_queue: int | None = None

    @property
    def placed(self) -> int:
        """How many blocks were placed before the next event."""
        return int(np.count_nonzero(self.smid >= 0))

    def occupancy(self, sms: int) -> Int64Array:
        """Returns the blocks per SM before the next event, a new array, int64 (sms,).

        Args:
            sms: number of SMs of the device.

        Raises:
            TypeError, ValueError: not a number of SMs, or fewer than blocks are on.

        Example:
            >>> trace = tb.predict(tb.Sequence([tb.Launch(6, 64, 32)]), "xavier")
            >>> trace[0].occupancy(trace.device.sms).tolist()
            [1, 1, 1, 1, 1, 0, 1, 0]
        """
        integer("occupancy", "sms", sms, int(self.smid.max(initial=-1)) + 1, 2**20)
        return np.bincount(self.smid[self.smid >= 0], minlength=sms)


@dataclass(frozen=True, eq=False, slots=True)
class Room(HoldsArrays):
    """What each SM had room for when a launch was considered.

    Attributes:
        blocks: int32 (sms,), how many blocks of the launch would have fitted.
        limiter: per SM, what bound that number, a word as in ``Placement.limiter``; ``"partition"``
            of an SM that is not in the launch's.
        limiters: per SM, all that bound it: the word of ``limiter``, then each resource that alone
            would have allowed no more blocks.

    Example:
        >>> capacity = tb.predict(tb.Sequence([tb.Launch(6, 64, 32)]), "xavier").capacities()[0]
        >>> int(capacity.blocks[0]), capacity.limiter[0]
        (32, 'warps')
        >>> half = tb.Launch(8, 1024, 32, 48 * 1024)
        >>> tb.predict(tb.Sequence([half]), "xavier").capacities()[0].limiters[0]
        ('warps', 'registers', 'shared_memory')
    """

    blocks: Int32Array
    limiter: tuple[str, ...]
    limiters: tuple[tuple[str, ...], ...] = ()


def wrong_shape(launch: Launch, placement: Placement) -> tuple[str, object, str] | None:
    """Returns an array of a wrong shape: its name, the shape, and what is needed; else None."""
    blocks = (launch.blocks,)
    for key in ("smid", "final_smid", "start_ns", "end_ns"):
        array = getattr(placement, key)
        if array is None and key != "smid":
            continue
        shape = getattr(array, "shape", None)
        if shape != blocks:
            return key, shape, counted(launch.blocks, "block")
    if placement.warp_slots is not None:
        shape, warps = placement.warp_slots.shape, -(-launch.threads // 32)
        # Those of the first blocks alone may have been recorded.
        if len(shape) != 2 or shape[0] > launch.blocks or shape[1] != warps:
            return "warp_slots", shape, f"{counted(launch.blocks, 'block')} of {warps} warps"
    return None


def first_outside(smids: Sequence[Int32Array | None], sms: int) -> int | None:
    """Returns the first launch with a block on an SM that is not there; -1 is none."""
    # All at once: of one launch alone the calls take longer than the comparison.
    recorded = [smid for smid in smids if smid is not None]
    if not recorded:
        return None
    every = np.concatenate(recorded)
    if every.min() >= -1 and every.max() < sms and every.dtype.kind == "i":
        return None
    are_integers = (smid is None or smid.dtype.kind == "i" for smid in smids)
    return next(
        index
        for index, (smid, is_whole) in enumerate(zip(smids, are_integers, strict=True))
        if not is_whole or (smid is not None and (smid.min() < -1 or smid.max() >= sms))
    )
