"""Kernel launches."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from tbsched.errors import shown
from tbsched.program.arrays import Float64Array, Int64Array
from tbsched.program.checks import MAX_SECONDS, integer, known_fields, seconds
from tbsched.program.duration import Drawn
from tbsched.program.events.streams import Stream, checked_stream

MAX_BLOCKS = 2**31 - 1
MAX_LAUNCHES = 1_000_000
_RANGES = (
    ("blocks", 1, MAX_BLOCKS),
    ("threads", 1, 1024),
    ("registers", 1, 255),
    ("shared_memory", 0, 2**24),
    ("local_memory", 0, 512 * 1024),
    ("cluster", 1, 16),
    ("priority", -(2**15), 2**15),
)
_HELD = np.empty(0, np.int64)  # the durations of blocks that are held until released
_HELD.flags.writeable = False


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel launch.

    Its blocks stay on their SMs until a :class:`Release`, or for its duration.

    Attributes:
        blocks: thread blocks in the grid, 1 to 2**31 - 1.
        threads: threads per block, 1 to 1024.
        registers: registers per thread, as the driver reports them, 1 to 255.
        shared_memory: bytes per block, static and dynamic together. The runtime's reserve of 1 KB
            does not count.
        local_memory: bytes per thread.
        carveout: preferred shared memory, in percent of the largest configuration, 0 to 100; None
            leaves the choice to the driver.
        cluster: blocks per thread block cluster, 1 to 16; it divides ``blocks``.
        stream: a number from 0. Launches with the same number run one after the other, in order.
            None is a stream of its own. CUDA's default stream is :data:`LEGACY_STREAM`, not 0; it
            is for launches with durations.
        priority: as in CUDA, a lower number is more urgent.
        duration: seconds that each block runs, 0 to 1e9. A tuple has one number per block, and a
            :class:`Drawn` draws them. None holds the blocks until they are released.
        name: what pictures and reports call the launch.

    Raises:
        TypeError, ValueError: a field out of its range; names the field, the value and the limit.

    Example:
        >>> tb.Launch(blocks=132, threads=256, registers=32, carveout=50)
        Launch(blocks=132, threads=256, registers=32, carveout=50)
        >>> tb.Launch(8, 64, 32, stream=tb.LEGACY_STREAM, duration=2e-5).duration
        2e-05
    """

    blocks: int
    threads: int
    registers: int
    shared_memory: int = 0
    local_memory: int = 0
    carveout: int | None = None
    cluster: int = 1
    stream: Stream | None = None
    priority: int = 0
    duration: float | tuple[float, ...] | Drawn | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        for field, low, high in _RANGES:
            value = getattr(self, field)
            # Nearly all are; to look first makes loading traces twice as fast.
            if not (type(value) is int and low <= value <= high):
                object.__setattr__(self, field, integer("Launch", field, value, low, high))
        if self.carveout is not None:
            carveout = integer("Launch", "carveout", self.carveout, 0, 100)
            object.__setattr__(self, "carveout", carveout)
        if self.stream is not None:
            object.__setattr__(self, "stream", checked_stream("Launch", self.stream))
        if self.blocks % self.cluster:
            raise ValueError(
                f"Launch.cluster: {self.cluster} does not divide Launch.blocks: {self.blocks}"
            )
        if self.duration is not None:
            object.__setattr__(self, "duration", self._checked_duration())
        if self.name is not None and not isinstance(self.name, str):
            raise TypeError(f"Launch.name: a string or None is needed, got {shown(self.name)}")

    def _checked_duration(self) -> float | tuple[float, ...] | Drawn:
        if isinstance(self.duration, Drawn):
            return self.duration
        if not isinstance(self.duration, tuple):
            return seconds("Launch", "duration", self.duration)
        if len(self.duration) != self.blocks:
            raise ValueError(
                f"Launch.duration: {len(self.duration)} numbers for {self.blocks} blocks"
            )
        if set(map(type, self.duration)) == {float}:
            # Nearly all are; to look at them at once makes predictions of recordings faster.
            given = np.array(self.duration)
            if np.all((given >= 0) & (given <= MAX_SECONDS)):
                return self.duration
        return tuple(
            seconds("Launch", f"duration[{block}]", value)
            for block, value in enumerate(self.duration)
        )

    def block_durations(self) -> Float64Array | None:
        """Seconds that each block runs, float64 (blocks,); None if held until released.

        Example:
            >>> tb.Launch(2, 64, 32, duration=(1e-5, 3e-5)).block_durations().tolist()
            [1e-05, 3e-05]
        """
        if self.duration is None:
            return None
        if isinstance(self.duration, Drawn):
            return self.duration.draw(self.blocks)
        return np.broadcast_to(np.array(self.duration, np.float64), self.blocks).copy()

    def duration_ns(self) -> Int64Array:
        """Whole nanoseconds that blocks run, int64.

        The array has one number per block, one for all blocks, or none if they are held until
        released.

        Example:
            >>> tb.Launch(8, 64, 32, duration=2e-5).duration_ns().tolist()
            [20000]
        """
        if self.duration is None:
            return _HELD
        if isinstance(self.duration, float):
            return np.rint(np.array([self.duration]) * 1e9).astype(np.int64)
        durations = self.block_durations()
        assert durations is not None
        return np.rint(durations * 1e9).astype(np.int64)

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The launch itself, in a tuple; every kind of event says which launches it makes."""
        return (self,)

    def __repr__(self) -> str:
        shown = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)
            if field.name in _ALWAYS_SHOWN or getattr(self, field.name) != field.default
        ]
        return f"Launch({', '.join(shown)})"


_ALWAYS_SHOWN = ("blocks", "threads", "registers")
_FIELDS = tuple(field.name for field in fields(Launch))
# What every record of a trace file spells out, whether or not it is the default.
_ALWAYS_WRITTEN = (*_ALWAYS_SHOWN, "shared_memory", "carveout", "cluster")


def launch_to_data(launch: Launch) -> dict[str, Any]:
    """Its fields; those at their default are left out, but for the usual ones."""
    data = {
        field.name: getattr(launch, field.name)
        for field in fields(launch)
        if field.name in _ALWAYS_WRITTEN or getattr(launch, field.name) != field.default
    }
    if isinstance(launch.duration, Drawn):
        data["duration"] = asdict(launch.duration)
    return data


def launch_from_data(where: str, given: object) -> Launch:
    values = known_fields(where, given, _FIELDS, _ALWAYS_SHOWN)
    if "duration" in values:
        values["duration"] = _duration(f"{where}.duration", values["duration"])
    return Launch(**values)


def _duration(where: str, given: object) -> Any:
    if isinstance(given, list):
        return tuple(given)
    if isinstance(given, dict):
        return Drawn(**known_fields(where, given, _DRAWN_FIELDS, ("distribution", "mean")))
    return given


_DRAWN_FIELDS = tuple(field.name for field in fields(Drawn))
