"""Two traces of one sequence, block by block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tbsched.errors import did_you_mean, on_one_line, shown
from tbsched.program.arrays import HoldsArrays, Int32Array, Int64Array
from tbsched.program.checks import instance, integer
from tbsched.shown import Shown
from tbsched.traces.placement import Placement, Room
from tbsched.traces.trace import Trace

LEVELS = ("occupancy", "exact")


@dataclass(frozen=True, slots=True)
class LaunchDiff:
    """One launch, compared.

    Attributes:
        occupancy: whether each SM has the same number of blocks in both traces.
        exact: whether every block is on the same SM in both traces.

    Example:
        >>> trace = tb.predict(tb.Sequence([tb.Launch(132, 256, 32)]), "h200")
        >>> tb.compare(trace, trace).launches
        (LaunchDiff(occupancy=True, exact=True),)
    """

    occupancy: bool
    exact: bool


@dataclass(frozen=True, eq=False, slots=True)
class Divergence(HoldsArrays):
    """The first launch on which two traces differ, and what is known of it.

    Attributes:
        launch: its number, from 0.
        level: the coarsest level at which it differs, ``occupancy`` or ``exact``.
        blocks: int64, the indices of the blocks on different SMs.
        sms: int64, the SMs with different numbers of blocks; empty where only the order differs.
        a_blocks: int64, blocks on each SM of the device in the first trace.
        b_blocks: int64, blocks on each SM of the device in the second trace.
        capacity: what each SM had room for, as the prediction says. None where neither trace is a
            prediction of a held sequence, or where it was read from a file.

    Example:
        >>> sequence = tb.Sequence([tb.Launch(132, 1024, 32), tb.Launch(66, 256, 32)])
        >>> a, b = (tb.predict(sequence, "h200", policy) for policy in (None, "first_fit"))
        >>> found = tb.compare(a, b).first_divergence
        >>> found.launch, found.level, found.a_blocks[:3].tolist(), found.b_blocks[:3].tolist()
        (0, 'occupancy', [1, 1, 1], [2, 0, 2])
    """

    launch: int
    level: str
    blocks: Int64Array
    sms: Int64Array
    a_blocks: Int64Array
    b_blocks: Int64Array
    capacity: Room | None


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Diff(Shown):
    """What :func:`compare` found; ``print(diff)`` explains the first divergence.

    Attributes:
        a: the first trace, usually the prediction.
        b: the second trace.
        launches: one :class:`LaunchDiff` per launch.

    Example:
        >>> sequence = tb.Sequence([tb.Launch(132, 1024, 32), tb.Launch(66, 256, 32)])
        >>> a, b = (tb.predict(sequence, "h200", policy) for policy in (None, "round_robin"))
        >>> diff = tb.compare(a, b)
        >>> diff.occupancy, diff.exact, diff.first_divergence.level
        (True, False, 'exact')
    """

    a: Trace
    b: Trace
    launches: tuple[LaunchDiff, ...]

    @property
    def occupancy(self) -> bool:
        """Each launch puts the same number of blocks on each SM."""
        return all(launch.occupancy for launch in self.launches)

    @property
    def exact(self) -> bool:
        """Every block is on the same SM."""
        return all(launch.exact for launch in self.launches)

    def agrees(self, level: str = "occupancy") -> bool:
        """Returns whether the traces agree at a level.

        Args:
            level: ``occupancy`` (blocks per SM) or ``exact`` (the SM of each block).

        Raises:
            ValueError: no such level.

        Example:
            >>> trace = tb.predict(tb.Sequence([tb.Launch(132, 256, 32)]), "h200")
            >>> tb.compare(trace, trace).agrees("exact")
            True
        """
        return bool(getattr(self, check_level(level)))

    def warp_slots_agree(self, processing_blocks: int = 4) -> bool:
        """Returns whether warps have the same slots, up to rotated processing blocks per SM.

        The processing block at which an SM starts is latent (measured: traces h200/slots). So the
        processing blocks of an SM may be rotated: if a warp is two processing blocks further than
        in the other trace, all warps of that SM must be. The index of a warp within its processing
        block must be equal. Only warps that were placed before the next event are compared.

        Args:
            processing_blocks: per SM of the device, 1 to 1024.

        Raises:
            TypeError, ValueError: a trace without warp slots, or not those of every block; a
                number of processing blocks outside 1..1024.

        Example:
            >>> sequence = tb.Sequence([tb.Launch(132, 256, 32)])
            >>> trace = tb.predict(sequence, "h200", warp_slots=True)
            >>> tb.compare(trace, trace).warp_slots_agree()
            True
        """
        integer("warp_slots_agree", "processing_blocks", processing_blocks, 1, 1024)
        agreements = [_slots(p, q) for p, q in zip(self.a, self.b, strict=True)]
        if not self.exact:
            return False
        sm, a, b = np.concatenate([np.empty((3, 0), np.int32), *agreements], axis=1)
        turned = np.unique([sm, (b - a) % processing_blocks], axis=1)
        same_index = np.array_equal(a // processing_blocks, b // processing_blocks)
        return same_index and len(np.unique(sm)) == turned.shape[1]

    @property
    def first_divergence(self) -> Divergence | None:
        """Returns the first difference in occupancy, else the first of all; None if all agree."""
        for level in LEVELS:
            for index, launch in enumerate(self.launches):
                if not getattr(launch, level):
                    return self._divergence(index, level)
        return None

    def _divergence(self, launch: int, level: str) -> Divergence:
        """Returns where and how a launch differs at a level."""
        a, b = self.a[launch], self.b[launch]
        a_blocks, b_blocks = (p.occupancy(self.a.device.sms) for p in (a, b))
        source = self.a.capacities or self.b.capacities
        return Divergence(
            launch=launch,
            level=level,
            blocks=np.flatnonzero(a.smid != b.smid),
            sms=np.flatnonzero(a_blocks != b_blocks),
            a_blocks=a_blocks,
            b_blocks=b_blocks,
            capacity=None if source is None else source()[launch],
        )


def compare(a: Trace, b: Trace) -> Diff:
    """Compares two traces of one sequence; the first is usually the prediction.

    Args:
        a, b: traces of the same sequence on devices with the same number of SMs.

    Returns:
        A :class:`Diff` with ``occupancy``, ``exact`` and ``first_divergence``.

    Raises:
        TypeError: not traces.
        ValueError: traces of different sequences, or of different numbers of SMs.

    Example:
        >>> sequence = tb.Sequence([tb.Launch(132, 256, 32)])
        >>> tb.compare(tb.predict(sequence, "h200"), tb.predict(sequence, "h200", "round_robin"))
        <Diff: occupancy 1 of 1 launch, exact 0 of 1 launch>
    """
    instance("compare", "a", a, Trace)
    instance("compare", "b", b, Trace)
    if a.others or b.others:
        raise ValueError("compare: a trace of several GPUs; it knows one")
    if a.device.sms != b.device.sms:
        raise ValueError(
            f"compare: device.sms: {on_one_line(a.device.name)} has {a.device.sms}, "
            f"{on_one_line(b.device.name)} has {b.device.sms}"
        )
    if a.sequence != b.sequence:
        raise ValueError("compare: sequence: the traces are of different sequences")
    launches = tuple(_launch(p, q, a.device.sms) for p, q in zip(a, b, strict=True))
    return Diff(a, b, launches)


def check_level(level: str) -> str:
    """Returns the level itself.

    Raises:
        ValueError: not one of :data:`LEVELS`.
    """
    if not isinstance(level, str) or level not in LEVELS:
        raise ValueError(
            f"level: {shown(level)} is not one of {', '.join(LEVELS)}{did_you_mean(level, LEVELS)}"
        )
    return level


def _launch(a: Placement, b: Placement, sms: int) -> LaunchDiff:
    if np.array_equal(a.smid, b.smid):
        return LaunchDiff(True, True)
    return LaunchDiff(np.array_equal(a.occupancy(sms), b.occupancy(sms)), False)


def _slots(a: Placement, b: Placement) -> Int32Array:
    """Returns the SM by the first trace, and the slot in either, of each warp placed in both."""
    if a.warp_slots is None or b.warp_slots is None or a.warp_slots.shape != b.warp_slots.shape:
        raise ValueError("warp_slots: both traces need those of every block and warp")
    placed = (a.smid >= 0) & (b.smid >= 0)
    sm = np.repeat(a.smid[placed], a.warp_slots.shape[1])
    return np.stack([sm, a.warp_slots[placed].ravel(), b.warp_slots[placed].ravel()])
