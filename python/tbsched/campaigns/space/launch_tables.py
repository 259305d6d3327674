"""Decodes the bytes as which launches and sequences are drawn.

A launch is drawn as one short byte string, one byte per field. Each byte picks from a table that is
sorted upwards and dense at the boundaries of the mechanisms, so that byte strings, which Hypothesis
shrinks towards zeros, shrink towards fewer blocks, threads, registers and bytes. One draw per
launch instead of one per field halves what Hypothesis costs per example.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tbsched.campaigns.space.limits import largest_clusters, most_at_once
from tbsched.campaigns.space.options import SequenceOptions
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.arrays import Int32Array
from tbsched.program.event_table import FIELDS, RELEASE, EventTable
from tbsched.program.partition import Partition
from tbsched.program.sequence import Event, Launch, Release, Sequence

Bytes: TypeAlias = npt.NDArray[np.uint8]
# Whether launches fill all SMs equally, and which of _VARYING vary. If everything varied in every
# launch, the GPU would be full before a rule about one field shows.
Theme: TypeAlias = tuple[bool, ...]
WARP = 32
# Fields that the options name the values of, in the order of their bytes.
_REST = ("carveout", "local_memory", "cluster", "priority", "partition", "cooperative")
_VARYING = ("registers", "shared_memory", *_REST)
BLOCKS, CLUSTER, PRIORITY, PARTITION, COOPERATIVE = map(
    FIELDS.index, ("blocks", "cluster", "priority", "partition", "cooperative")
)
_AT_ONCE = 2  # fields, where not all vary
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


@dataclass(frozen=True, slots=True)
class SequenceTables:
    """Decoder of the bytes of a sequence, a row of ``width`` bytes per launch."""

    launches: LaunchTables
    releases: bool

    @classmethod
    def of(
        cls, spec: DeviceSpec, options: SequenceOptions, also: SequenceOf[DeviceSpec] = ()
    ) -> SequenceTables:
        """See :meth:`LaunchTables.of`."""
        return cls(LaunchTables.of(spec, options, also), options.releases)

    @property
    def width(self) -> int:
        return self.launches.width + (1 if self.releases else 0)

    def build(self, drawn: tuple[Theme, list[bytes]]) -> Sequence:
        """Returns the sequence of a theme and the rows of its launches."""
        theme, rows = drawn
        events: list[Event] = []
        launches = self.launches.launches(rows, theme)
        for launch, before in zip(launches, self._released(row[-1] for row in rows), strict=True):
            events += map(Release, before)
            events.append(launch)
        return Sequence(events)

    def table(
        self, themes: npt.NDArray[np.bool_], rows: Bytes, counts: SequenceOf[int]
    ) -> EventTable:
        """Returns the events that :meth:`build` makes, for many sequences.

        Args:
            themes: bool (sequences, 9), of each one of :attr:`LaunchTables.themes`.
            rows: uint8 (launches of all sequences, width).
            counts: launches of each sequence.
        """
        launch_rows = self.launches.rows(rows, np.repeat(themes, counts, axis=0))
        last = iter(rows[:, -1].tolist())
        order: list[int] = []  # numbers of launch rows; of a launch that is released, less than 0
        sizes = []
        first = 0
        for count in counts:
            begin = len(order)
            for row_index, before in enumerate(
                self._released(itertools.islice(last, count)), first
            ):
                order += [-1 - launch for launch in before]
                order.append(row_index)
            first += count
            sizes.append(len(order) - begin)
        source = np.array(order, np.int64)
        launches = source >= 0
        cells = np.zeros((len(source), 1 + len(FIELDS)), np.int32)
        cells[launches, 1:] = launch_rows[source[launches]]
        cells[~launches, 0] = RELEASE
        cells[~launches, 1] = -1 - source[~launches]
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        return EventTable(cells, bounds, self.launches.partitions)

    def _released(self, last_bytes: Iterable[int]) -> Iterator[list[int]]:
        """Yields, for each launch, the numbers of the launches that are released before it."""
        resident: list[int] = []
        for launch, byte in enumerate(last_bytes):
            released = []
            if self.releases:
                newest_first = resident[::-1]
                for position in _RELEASES[byte * len(_RELEASES) >> 8]:
                    if position < len(newest_first):
                        resident.remove(newest_first[position])
                        released.append(newest_first[position])
            yield released
            resident.append(launch)


@dataclass(frozen=True, slots=True)
class LaunchTables:
    """Per field of a launch, the values that a byte picks from, ascending."""

    spec: DeviceSpec
    holders: tuple[DeviceSpec, ...]  # each takes every launch
    blocks: tuple[Int32Array, Int32Array]  # in general, and to fill every SM alike
    threads: tuple[Int32Array, Int32Array]
    registers: Int32Array
    shared_memory: Int32Array
    rest: tuple[Int32Array, ...]  # values of the fields of _REST
    bytes_of_rest: tuple[int | None, ...]  # their place in a drawn row; None: only one value
    most_registers: Int32Array  # by warps per block
    partitions: tuple[Partition, ...]  # that launches have by number; -1: none
    clusters: Int32Array  # (partitions and none, sizes): in its place, the largest that fits
    themes: tuple[Theme, ...]  # those that a sequence may have; few fields first, and then all

    @classmethod
    def of(
        cls, spec: DeviceSpec, options: SequenceOptions, also: SequenceOf[DeviceSpec] = ()
    ) -> LaunchTables:
        """Returns the tables of a device.

        Args:
            spec: launches are within its limits.
            options: what else they are drawn from.
            also: other models that run the launches: a cooperative one has no more blocks than each
                of them holds, and a partition no larger clusters.
        """
        clusters = tuple(size for size in options.clusters if size <= spec.max_cluster) or (1,)
        carveouts = tuple(-1 if value is None else value for value in options.carveouts)
        partitions = tuple({part: None for part in options.partitions if part is not None})
        partition_numbers = tuple(
            -1 if part is None else partitions.index(part) for part in options.partitions
        )
        rest = (
            carveouts, options.local_memory, clusters, options.priorities, partition_numbers,
            options.cooperative,
        )  # fmt: skip
        # A field with one value takes no byte.
        has_several = [len(values) > 1 for values in rest]
        holders = tuple(dict.fromkeys((spec, *also)))
        # Without a partition, clusters fit the device, even if other models place none.
        largest = [
            *largest_clusters(holders, partitions, clusters),
            *largest_clusters((spec,), (None,), clusters),
        ]
        return cls(
            spec=spec,
            holders=holders,
            blocks=(_array(block_counts(spec)), _array(filling_block_counts(spec))),
            threads=(_array(thread_counts(spec)), _array(filling_thread_counts(spec))),
            registers=_array(register_counts(spec, options.min_registers)),
            shared_memory=_array(shared_memory_sizes(spec)),
            rest=tuple(_array(values) for values in rest),
            bytes_of_rest=tuple(
                3 + sum(has_several[: field + 1]) if more else None
                for field, more in enumerate(has_several)
            ),
            most_registers=_array(
                _max_registers(spec, warps) for warps in range(spec.warps_per_sm + 1)
            ),
            partitions=partitions,
            clusters=_clusters_that_fit(clusters, largest),
            themes=_themes([0, 1, *(2 + rest for rest, more in enumerate(has_several) if more)]),
        )

    @property
    def width(self) -> int:
        """Bytes per launch."""
        return 4 + sum(byte is not None for byte in self.bytes_of_rest)

    @property
    def everything(self) -> Theme:
        """The theme in which all fields vary."""
        return self.themes[len(self.themes) // 2 - 1]

    def launches(self, rows: list[bytes], theme: Theme) -> list[Launch]:
        """Returns the launches of one sequence."""
        return self.made_of(self.rows(self.drawn(rows), np.array([theme] * len(rows))))

    @staticmethod
    def drawn(rows: list[bytes]) -> Bytes:
        """Returns the bytes of launches as an array, uint8 (launches, width)."""
        return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)

    def made_of(self, rows: Int32Array) -> list[Launch]:
        """Returns the launches that have these :data:`FIELDS`."""
        partitions = (*self.partitions, None)  # -1 is the last one
        return [
            Launch(blocks, threads, registers, shared, local, None if carveout < 0 else carveout,
                   cluster, priority=priority, partition=partitions[part], cooperative=bool(whole))
            for blocks, threads, registers, shared, local, carveout, cluster, priority, part, whole
            in rows.tolist()
        ]  # fmt: skip

    def rows(self, drawn: Bytes, themes: npt.NDArray[np.bool_]) -> Int32Array:
        """Returns the fields of launches that drawn bytes stand for.

        Args:
            drawn: uint8 (launches, at least :attr:`width`).
            themes: bool (launches, 9), of each one of :attr:`themes`.

        Returns:
            int32 (launches, 10), of each the :data:`FIELDS`.
        """
        return self.fitted(self.picked(drawn, themes))

    def picked(self, drawn: Bytes, themes: npt.NDArray[np.bool_]) -> Int32Array:
        """Returns the fields of launches as :meth:`rows` does, before they are brought within the
        limits: each is picked by itself."""
        bytes_ = drawn.astype(np.int32)

        def pick(values: Int32Array, byte: int) -> Int32Array:
            picked: Int32Array = values[bytes_[:, byte] * len(values) >> 8]
            return picked

        def either(values: tuple[Int32Array, Int32Array], byte: int) -> Int32Array:
            return np.where(themes[:, 0], pick(values[1], byte), pick(values[0], byte))

        rows = np.empty((len(drawn), len(FIELDS)), np.int32)
        rows[:, BLOCKS] = either(self.blocks, 0)
        rows[:, 1] = either(self.threads, 1)
        rows[:, 2] = np.where(themes[:, 1], pick(self.registers, 2), self.registers[0])
        rows[:, 3] = np.where(themes[:, 2], pick(self.shared_memory, 3), 0)
        for field, (name, values, byte) in enumerate(
            zip(_REST, self.rest, self.bytes_of_rest, strict=True), 3
        ):
            rows[:, FIELDS.index(name)] = (
                values[0] if byte is None
                else np.where(themes[:, field], pick(values, byte), values[0])
            )  # fmt: skip
        return rows

    def fitted(self, rows: Int32Array) -> Int32Array:
        """Returns the same rows, changed in place so that fields which share a limit are within it
        together."""
        threads = rows[:, 1]
        rows[:, 2] = np.minimum(rows[:, 2], self.most_registers[-(-threads // WARP)])
        sms = np.array([*map(len, self.partitions), self.spec.sms], np.int32)[rows[:, PARTITION]]
        if self.partitions:
            # As many blocks for each of its SMs.
            rows[:, BLOCKS] = -(-rows[:, BLOCKS] * sms // self.spec.sms)
        rows[:, CLUSTER] = self.clusters[rows[:, PARTITION], rows[:, CLUSTER]]
        cluster = rows[:, CLUSTER]
        rows[:, BLOCKS] = -(-rows[:, BLOCKS] // cluster) * cluster
        # A block for each SM always fits.
        may_exceed = (cluster > 1) | (rows[:, BLOCKS] > sms)
        together = np.flatnonzero(may_exceed & (rows[:, COOPERATIVE] != 0))
        if together.size:
            max_blocks = most_at_once(self.holders, rows[together], self.partitions)
            fewer = np.minimum(rows[together, BLOCKS], max_blocks)
            rows[together, BLOCKS] = np.where(max_blocks > 0, fewer, rows[together, BLOCKS])
            rows[together, COOPERATIVE] = max_blocks > 0
        return rows


def _array(values: Iterable[int]) -> Int32Array:
    return np.array(tuple(values), np.int32)


def _clusters_that_fit(sizes: SequenceOf[int], largest: SequenceOf[int]) -> Int32Array:
    """Returns a table, int32 (limits, sizes): for each limit and each wanted cluster size, the
    largest of ``sizes`` within both; 1: none is."""
    return np.array(
        [
            [max((fitting for fitting in sizes if fitting <= min(size, limit)), default=1)
             for size in range(max(sizes) + 1)]
            for limit in largest
        ],
        np.int32,
    ).reshape(len(largest), max(sizes) + 1)  # fmt: skip


def _max_registers(spec: DeviceSpec, warps: int) -> int:
    """Returns the most registers per thread of a block of so many warps; 0: it cannot run."""
    deepest = max(1, -(-warps // spec.processing_blocks))
    per_warp = spec.registers_per_sm // spec.processing_blocks // deepest
    return min(
        255, spec.registers_per_thread, per_warp // spec.register_unit * spec.register_unit // WARP
    )


def _themes(varying: list[int]) -> tuple[Theme, ...]:
    """Returns the themes for fields with several values, given by their places in _VARYING."""
    partition = _VARYING.index("partition")
    other_fields = [field for field in varying if field != partition]
    few = [
        fields for count in range(_AT_ONCE + 1)
        for fields in itertools.combinations(other_fields, count)
    ]  # fmt: skip
    every = dict.fromkeys([*few, tuple(other_fields)])
    # Whatever varies, partitions do in a third of the sequences: they go with all the rest.
    in_partitions = [(*fields, partition) for fields in every] if partition in varying else []
    return tuple(
        (fills, *(field in fields for field in range(len(_VARYING))))
        for fills in (False, True)
        for fields in (*every, *(every if in_partitions else ()), *in_partitions)
    )


def block_counts(spec: DeviceSpec) -> tuple[int, ...]:
    """Returns numbers of blocks to draw: dense if small, and around multiples of the SMs."""
    sms, max_blocks = spec.sms, spec.sms * spec.blocks_per_sm + 1
    below = {*range(1, 17), *range(1, sms, max(1, sms // 32))}
    parts = {sms * part // 8 + near for part in range(1, 8) for near in (-1, 0, 1)}
    levels = {sms * level + near for level in (1, 2, 3) for near in (-1, 0, 1)}
    above = {sms * quarters // 4 for quarters in range(5, 12)}
    deep = {sms * 4 + 1, sms * 8, sms * 16 - 1, max_blocks}
    counts = _ascending(below | parts | levels | above | deep, 1, max_blocks)
    # Launches that leave the GPU room for more are drawn twice as often.
    return tuple(sorted([*counts, *(n for n in counts if n <= sms)]))


def filling_block_counts(spec: DeviceSpec) -> tuple[int, ...]:
    """Numbers of blocks that are as many for each SM, mostly one."""
    return tuple(spec.sms * level for level in (1, 1, 1, 1, 2, 3, spec.blocks_per_sm))


def filling_thread_counts(spec: DeviceSpec) -> tuple[int, ...]:
    """Few threads per block, so that many blocks fit."""
    return tuple(n for n in thread_counts(spec) if n <= 4 * WARP)


def thread_counts(spec: DeviceSpec) -> tuple[int, ...]:
    """Returns threads per block to draw: every number of warps, small ones more often."""
    max_warps = min(spec.warps_per_sm, spec.threads_per_block // WARP) or 1
    counts: list[int] = []
    for warps in range(1, max_warps + 1):
        counts += [WARP * warps] * (3 if warps <= 9 else 1)
        if warps % 4 == 0:
            counts += [WARP * (warps - 1) + 1, WARP * warps - 1, WARP * warps, WARP * warps + 1]
    max_threads = min(spec.threads_per_block, WARP * spec.warps_per_sm)
    return tuple(
        sorted(n for n in counts if n <= max_threads and _max_registers(spec, -(-n // WARP)) >= 1)
    )


def register_counts(spec: DeviceSpec, fewest: int) -> tuple[int, ...]:
    """Returns registers per thread to draw: multiples of the allocation unit and the number after
    each, small ones more often."""
    unit = max(1, spec.register_unit // WARP)
    multiples = range(unit, 256, unit)
    counts = _ascending({fewest, *multiples, *(n + 1 for n in multiples[::4]), 255}, fewest, 255)
    # Half of the launches hold few registers, so that other resources bind as well.
    return tuple(sorted([*counts, *counts[:4] * (len(counts) // 4)]))


def shared_memory_sizes(spec: DeviceSpec) -> tuple[int, ...]:
    """Returns bytes per block to draw: for every n the most of which n fit an SM, and 1 more."""
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
