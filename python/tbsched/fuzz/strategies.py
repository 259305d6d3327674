"""Hypothesis strategies for launches and sequences that a device can run.

A launch is drawn as one short byte string, one byte per field. Each byte picks from a table that is
sorted upwards and dense at the boundaries of the mechanisms, so that byte strings, which Hypothesis
shrinks towards zeros, shrink towards fewer blocks, threads, registers and bytes. One draw per
launch instead of one per field halves what Hypothesis costs per example.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tbsched.fuzz.options import SequenceOptions
from tbsched.sequence import Event, Launch, Release, Sequence
from tbsched.spec import DeviceSpec
from tbsched.spec import device as find_device

WARP = 32
# Whether the launches of a sequence hold more than the fewest registers, and any shared memory.
# Where every resource varies in every launch, the GPU is full before a rule about one shows.
BINDING = ((False, False), (True, False), (False, True), (True, True))
# Which resident launches are released before a launch, the latest being 0. Half of the bytes: none.
_RELEASES: tuple[tuple[int, ...], ...] = (
    *[()] * 10,
    (0,),
    (1,),
    (2,),
    (3,),
    (4,),
    (0, 1),
    (0, 2),
    (1, 2),
    (1, 3),
    (0, 1, 2),
    (0, 1, 2, 3, 4, 5, 6, 7),
)


def launches(
    device: str | os.PathLike[str] | DeviceSpec, options: SequenceOptions | None = None
) -> st.SearchStrategy[Launch]:
    """Launches that the device can run; they shrink towards one block of one warp.

    Raises:
        TypeError, ValueError: an unknown device.
    """
    draw = _LaunchTables.of(find_device(device), options or SequenceOptions())
    return st.binary(min_size=draw.width, max_size=draw.width).map(draw.launch)


def sequences(
    device: str | os.PathLike[str] | DeviceSpec, options: SequenceOptions | None = None
) -> st.SearchStrategy[Sequence]:
    """Sequences that the device can run; they shrink towards few events and small launches.

    Args:
        device: a name, a path to a ``.toml``, or a spec; :meth:`DeviceSpec.check` accepts what is
            drawn by construction, nothing is filtered.
        options: what else is drawn from.

    Raises:
        TypeError, ValueError: an unknown device.
    """
    options = options or SequenceOptions()
    tables = SequenceTables.of(find_device(device), options)
    rows = st.lists(
        st.binary(min_size=tables.width, max_size=tables.width),
        min_size=options.min_launches,
        max_size=options.max_launches,
    )
    return st.tuples(st.sampled_from(BINDING), rows).map(tables.build)


@dataclass(frozen=True, slots=True)
class SequenceTables:
    """What the bytes of a sequence mean, a row of ``width`` bytes per launch."""

    launches: _LaunchTables
    releases: bool

    @classmethod
    def of(cls, spec: DeviceSpec, options: SequenceOptions) -> SequenceTables:
        return cls(_LaunchTables.of(spec, options), options.releases)

    @property
    def width(self) -> int:
        return self.launches.width + (1 if self.releases else 0)

    def build(self, drawn: tuple[tuple[bool, bool], list[bytes]]) -> Sequence:
        """The sequence of a member of :data:`BINDING` and the rows of its launches."""
        (registers, shared_memory), rows = drawn
        events: list[Event] = []
        resident: list[int] = []
        for number, row in enumerate(rows):
            newest_first = resident[::-1]
            for position in _pick(_RELEASES, row[-1]) if self.releases else ():
                if position < len(newest_first):
                    resident.remove(newest_first[position])
                    events.append(Release(newest_first[position]))
            events.append(self.launches.launch(row, registers, shared_memory))
            resident.append(number)
        return Sequence(events)


def _pick(table: tuple[Any, ...], byte: int) -> Any:
    return table[byte * len(table) >> 8]


@dataclass(frozen=True, slots=True)
class _LaunchTables:
    """Per field of a launch, the values that a byte picks from, ascending."""

    blocks: tuple[int, ...]
    threads: tuple[int, ...]
    registers: tuple[int, ...]
    shared_memory: tuple[int, ...]
    rest: tuple[tuple[str, tuple[Any, ...]], ...]
    most_registers: tuple[int, ...]  # by warps per block

    @classmethod
    def of(cls, spec: DeviceSpec, options: SequenceOptions) -> _LaunchTables:
        clusters = tuple(size for size in options.clusters if size <= spec.max_cluster)
        choices = {
            "carveout": options.carveouts,
            "local_memory": options.local_memory,
            "cluster": clusters or (1,),
            "priority": options.priorities,
        }
        return cls(
            blocks=block_counts(spec),
            threads=thread_counts(spec),
            registers=register_counts(spec, options.min_registers),
            shared_memory=shared_memory_sizes(spec),
            rest=tuple(choices.items()),
            most_registers=tuple(
                _most_registers(spec, warps) for warps in range(spec.warps_per_sm + 1)
            ),
        )

    @property
    def width(self) -> int:
        """Bytes per launch; a field with one value takes none."""
        return 4 + sum(len(values) > 1 for _, values in self.rest)

    def launch(self, row: bytes, registers: bool = True, shared_memory: bool = True) -> Launch:
        threads = _pick(self.threads, row[1])
        most = self.most_registers[-(-threads // WARP)]
        rest: dict[str, Any] = {}
        byte = 4
        for name, values in self.rest:
            if len(values) > 1:
                rest[name] = _pick(values, row[byte])
                byte += 1
            else:
                rest[name] = values[0]
        blocks, cluster = _pick(self.blocks, row[0]), rest["cluster"]
        return Launch(
            blocks=-(-blocks // cluster) * cluster,
            threads=threads,
            registers=min(_pick(self.registers, row[2] if registers else 0), most),
            shared_memory=_pick(self.shared_memory, row[3]) if shared_memory else 0,
            **rest,
        )


def _most_registers(spec: DeviceSpec, warps: int) -> int:
    """Registers per thread that a block of so many warps may have; 0: it cannot run at all."""
    deepest = max(1, -(-warps // spec.processing_blocks))
    per_warp = spec.registers_per_sm // spec.processing_blocks // deepest
    return min(
        255, spec.registers_per_thread, per_warp // spec.register_unit * spec.register_unit // WARP
    )


def block_counts(spec: DeviceSpec) -> tuple[int, ...]:
    """Numbers of blocks, dense below and at multiples of the SMs; up to one more than ever fits."""
    sms, most = spec.sms, spec.sms * spec.blocks_per_sm + 1
    below = {*range(1, 17), *range(1, sms, max(1, sms // 32))}
    parts = {sms * part // 8 + near for part in range(1, 8) for near in (-1, 0, 1)}
    levels = {sms * level + near for level in (1, 2, 3) for near in (-1, 0, 1)}
    above = {sms * quarters // 4 for quarters in range(5, 12)}
    deep = {sms * 4 + 1, sms * 8, sms * 16 - 1, most}
    counts = _ascending(below | parts | levels | above | deep, 1, most)
    # Launches that leave the GPU room for more are drawn twice as often.
    return tuple(sorted([*counts, *(n for n in counts if n <= sms)]))


def thread_counts(spec: DeviceSpec) -> tuple[int, ...]:
    """Threads per block: every number of warps, both ends of multiples of four; few ones often."""
    most_warps = min(spec.warps_per_sm, spec.threads_per_block // WARP) or 1
    counts: list[int] = []
    for warps in range(1, most_warps + 1):
        counts += [WARP * warps] * (3 if warps <= 9 else 1)
        if warps % 4 == 0:
            counts += [WARP * (warps - 1) + 1, WARP * warps - 1, WARP * warps, WARP * warps + 1]
    most = min(spec.threads_per_block, WARP * spec.warps_per_sm)
    return tuple(
        sorted(n for n in counts if n <= most and _most_registers(spec, -(-n // WARP)) >= 1)
    )


def register_counts(spec: DeviceSpec, fewest: int) -> tuple[int, ...]:
    """Registers per thread: multiples of the allocation unit and the one after, few ones often."""
    unit = max(1, spec.register_unit // WARP)
    multiples = range(unit, 256, unit)
    counts = _ascending({fewest, *multiples, *(n + 1 for n in multiples[::4]), 255}, fewest, 255)
    # Half of the launches hold few registers, so that other resources bind as well.
    return tuple(sorted([*counts, *counts[:4] * (len(counts) // 4)]))


def shared_memory_sizes(spec: DeviceSpec) -> tuple[int, ...]:
    """Bytes per block: the largest of which n fit an SM, and one byte more, for every n."""
    unit, reserve = spec.shared_memory_unit, spec.shared_memory_reserve
    sizes = {0, 1, unit, unit + 1}
    for capacity in spec.shared_memory_configurations:
        ways = range(1, spec.blocks_per_sm + 1)
        largest = spec.shared_memory_configurations[-1]
        for blocks in ways if capacity == largest else (1, 2, 3):
            size = capacity // blocks // unit * unit - reserve
            sizes |= {size, size + 1}
    ascending = _ascending(sizes, 0, spec.shared_memory_per_block)
    # More than a third of the launches hold none, so that other resources bind as well.
    return (*[0] * (2 * len(ascending) // 3), *ascending)


def _ascending(values: Iterable[int], low: int, high: int) -> tuple[int, ...]:
    return tuple(sorted(value for value in set(values) if low <= value <= high)) or (low,)
