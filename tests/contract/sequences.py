"""Random sequences for the laws that every policy obeys."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import strategies as st

from contract.random_devices.checker import as_seen
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.partition import Partition
from tbsched.program.sequence import Event, Launch, Release, Sequence
from tbsched.traces.trace import Trace

USUAL_THREADS = st.sampled_from([1, 32, 64, 96, 128, 160, 256, 512, 1024])
THREADS = st.one_of(USUAL_THREADS, st.integers(1, 1024))
AROUND = st.sampled_from([1, 0, -1, 1])
MOST_BLOCKS = 10_000  # of a launch: more than any GPU holds at once


def most_threads(spec: DeviceSpec) -> int:
    """Returns the most threads of a block that fits an empty SM with one register per thread."""
    least = math.ceil(32 / spec.register_unit) * spec.register_unit
    held = spec.registers_per_sm // spec.processing_blocks // least
    warps = min(held, spec.warps_per_sm // spec.processing_blocks) * spec.processing_blocks
    return min(spec.threads_per_block, 32 * warps)


def most_registers(spec: DeviceSpec, threads: int) -> int:
    """Registers per thread with which such a block fits an empty SM."""
    warps = math.ceil(threads / 32)
    warps_each = math.ceil(warps / spec.processing_blocks)
    per_warp = spec.registers_per_sm // spec.processing_blocks // warps_each
    per_warp -= per_warp % spec.register_unit
    return min(255, spec.registers_per_thread, per_warp // 32)


def holds(spec: DeviceSpec, threads: int, registers: int, shared_memory: int) -> int:
    """About how many such blocks an idle GPU takes."""
    warps = math.ceil(threads / 32)
    shared = shared_memory + spec.shared_memory_reserve
    largest = spec.shared_memory_configurations[-1]
    return spec.sms * min(
        spec.blocks_per_sm,
        spec.warps_per_sm // warps,
        spec.registers_per_sm // (32 * registers * warps),
        largest // shared if shared else spec.blocks_per_sm,
    )


def largest_cluster(spec: DeviceSpec, partition: Partition | None = None) -> int:
    """The blocks of the largest cluster that an idle GPU or partition takes, of 16 at most."""
    own = set(range(spec.sms) if partition is None else partition.sms)
    whole: Counter[object] = Counter()  # SMs of whole TPCs, by GPC
    parts: Counter[object] = Counter()
    for tpc, gpc in enumerate(spec.gpc_of_tpc):
        if gpc < 0 and not spec.mechanisms.clusters_use_singletons:
            continue
        sms = {*range(tpc * spec.sms_per_tpc, min((tpc + 1) * spec.sms_per_tpc, spec.sms))}
        of_tpc = whole if sms <= own else parts
        of_tpc[gpc if gpc >= 0 else ("none", tpc)] += len(sms & own)
    if spec.mechanisms.clusters_take_whole_tpcs:
        parts = Counter({gpc: min(sms, spec.sms_per_tpc - 1) for gpc, sms in parts.items()})
    return min(16, spec.max_cluster, max((whole + parts).values(), default=1))


@functools.cache
def some_sms(sms: int) -> list[Partition]:
    """Partitions that overlap, or do not, and one of a single SM."""
    middle, last = sms // 2, sms - 1
    parts = [range(middle), range(middle, sms), range(sms // 3, sms), range(0, sms, 2), [last]]
    return [Partition(tuple(part)) for part in parts if part]


Choices = dict[str, tuple[int | Partition | None, ...]]

# Hypothesis examines each new strategy, which takes longer than drawing from it: so those that
# differ little are built once.
integers = functools.cache(st.integers)
sampled = functools.cache(st.sampled_from)


@functools.cache
def usual_or_up_to(usual: int, first: int, last: int) -> st.SearchStrategy[int]:
    return st.just(usual) | st.integers(first, last)


@functools.cache
def few_or_many(few: int, many: int) -> st.SearchStrategy[int | None]:
    """How many blocks; None for about as many as an idle GPU takes."""
    return st.one_of(st.integers(1, few), st.integers(1, many), st.none())


@st.composite
def choices(draw: st.DrawFn, spec: DeviceSpec, plain: bool, clusters: bool) -> Choices:
    """What the launches of one sequence may have: in each a few things, so that they meet."""
    offered: dict[str, list[tuple[int | Partition | None, ...]]] = {
        "local_memory": [(0,), (0,), (0, 0, 0, min(spec.local_memory_initial + 1, 2**19))],
    }
    if not plain:
        offered |= {
            "carveout": [(None,), (None, 0, 50, 100)],
            "stream": [(None,), (0,), (0, 1), (None, 0, 1)],
            "priority": [(0,), (0, -1), (0, -1)],
        }
    if not plain:
        offered["partition"] = [(None,), (None,), (None, *some_sms(spec.sms))]
    if clusters:
        offered["cluster"] = [(1,), (1, *range(1, largest_cluster(spec) + 1))]
    return {field: draw(sampled(tuple(rows))) for field, rows in offered.items()}


@st.composite
def launches(draw: st.DrawFn, spec: DeviceSpec, offered: Choices) -> Launch:
    """A launch that the device can run.

    Often it is one that just fits an idle GPU, or just does not: its last block then waits.
    """
    threads = min(draw(THREADS), most_threads(spec))
    most = most_registers(spec, threads)
    registers = draw(usual_or_up_to(min(16, most), 1, most))
    shared = draw(usual_or_up_to(0, 0, spec.shared_memory_per_block))
    blocks = draw(few_or_many(2 * spec.sms, min(2 * spec.sms * spec.blocks_per_sm, MOST_BLOCKS)))
    if blocks is None:
        blocks = min(holds(spec, threads, registers, shared), MOST_BLOCKS) + draw(AROUND)
    rest: dict[str, Any] = {
        field: draw(sampled(values)) if len(values) > 1 else values[0]
        for field, values in offered.items()
    }
    cluster = rest.get("cluster", 1)
    if cluster > 1 and cluster > largest_cluster(spec, rest.get("partition")):
        rest["partition"] = None
    return Launch(max(1, blocks // cluster) * cluster, threads, registers, shared, **rest)


@st.composite
def sequences(
    draw: st.DrawFn,
    spec: DeviceSpec,
    plain: bool = False,
    clusters: bool = False,
    most: int = 9,
) -> Sequence:
    """Launches and releases of launches still held.

    Plain ones have nothing that Algorithm 1 does not know.
    """
    offered = draw(choices(spec, plain, clusters))
    events: list[Event] = []
    held: list[int] = []
    count = 0
    length = integers(1, most)
    launch = launches(spec, offered)
    for _ in range(max(draw(length), draw(length))):  # rather long than short
        if held and draw(integers(0, 2)) == 2:
            released = held[draw(integers(0, len(held) - 1))]
            held.remove(released)
            events.append(Release(released))
        else:
            events.append(draw(launch))
            held.append(count)
            count += 1
    return Sequence(events)


class History:
    """What a policy does with each prefix of a sequence: the state after every event."""

    def __init__(self, sequence: Sequence, spec: DeviceSpec, policy: str) -> None:
        self.sequence, self.spec, self.policy = sequence, spec, policy

    @functools.cached_property
    def traces(self) -> list[Trace]:
        """The prediction for each prefix, the shortest first."""
        return [
            predict(self.sequence[: length + 1], self.spec, self.policy)
            for length in range(len(self.sequence))
        ]

    @functools.cached_property
    def finals(self) -> list[list[np.ndarray]]:
        rows = ([placement.final_smid for placement in trace] for trace in self.traces)
        return [[smid for smid in row if smid is not None] for row in rows]

    def launched_by(self) -> list[int]:
        """Per launch, the event that it is."""
        return [k for k, event in enumerate(self.sequence) if isinstance(event, Launch)]

    def final(self, event: int) -> list[np.ndarray]:
        """Per launch, where its blocks have gone after that event; -1 for those that wait."""
        return self.finals[event]

    def placed(self, number: int, event: int) -> int:
        """How many blocks of a launch have gone somewhere after that event."""
        final = self.final(event) if event >= 0 else []
        return int((final[number] >= 0).sum()) if number < len(final) else 0

    def fresh(self, number: int, event: int) -> list[int]:
        """Where that event put blocks of a launch."""
        before, after = self.placed(number, event - 1), self.placed(number, event)
        found: list[int] = self.final(event)[number][before:after].tolist()
        return found

    def released(self, event: int) -> set[int]:
        events = self.sequence.events[: event + 1]
        return {item.launch for item in events if isinstance(item, Release)}

    def resident(self, event: int) -> Iterator[tuple[Launch, Counter[int]]]:
        """Each launch with blocks that hold their SMs after that event: how many on each."""
        released = self.released(event)
        launched = self.traces[event].sequence.launches
        for number, (launch, smids) in enumerate(zip(launched, self.final(event), strict=True)):
            if number not in released:
                yield launch, Counter(smids[smids >= 0].tolist())

    def over(self, number: int, event: int, placed: int) -> bool:
        """Whether a launch has been released by one event, all of it placed by another."""
        return number in self.released(event) and not self.waits(number, placed)

    def waits(self, number: int, event: int) -> bool:
        """Whether a block of a launch has no SM after that event."""
        return self.placed(number, event) < self.sequence.launches[number].blocks

    def is_ready(self, number: int, event: int, placed: int) -> bool:
        """Whether what comes before a launch in its stream is over; see :meth:`over`."""
        launches = self.sequence.launches
        stream = launches[number].stream
        before = [k for k in range(number) if stream is not None and launches[k].stream == stream]
        return all(self.over(k, event, placed) for k in before[-1:])

    def in_line(self, event: int) -> set[int]:
        """The launches for which the event looks for room first.

        They have blocks to place, and whatever comes before them in their stream is over without
        a block being placed. What is let in by blocks that this very event places comes later.
        """
        launched = range(len(self.final(event)))
        return {
            number for number in launched
            if self.is_ready(number, event, event - 1) and self.waits(number, event - 1)
        }  # fmt: skip

    def _level(self, number: int) -> int:
        """Returns a launch's priority, within the range of the device."""
        priority = self.sequence.launches[number].priority
        return max(min(priority, 0), 1 - self.spec.priority_levels)

    def ahead(self, number: int, event: int) -> list[int]:
        """What is in line before a launch, and waits for room when the event is over."""
        launches = self.sequence.launches
        mine = (self._level(number), number)
        # What came after the first of these may not have been looked at.
        last = min(self.growing(event - 1, event), default=len(launches))
        return [
            k for k in self.in_line(event)
            if (self._level(k), k) < mine and k <= last and self.waits(k, event)
        ]  # fmt: skip

    def is_behind_growth(self, number: int, event: int) -> bool:
        """Whether an earlier launch in line needs more local memory, from first to last."""
        growing = self.growing(event, event) & self.in_line(event)
        return min(growing, default=number) < number

    def growing(self, placed: int, event: int) -> set[int]:
        """What needs more local memory than the GPU has after ``placed``, and is ready by then.

        Args:
            placed: the event after which blocks are where they are.
            event: what it has released, and which launches there are by then.
        """
        spec = self.spec
        if not as_seen(spec, self.policy).mechanisms.local_memory_configuration:
            return set()
        bytes_ = [launch.local_memory for launch in self.traces[event].sequence.launches]
        unit = spec.local_memory_unit
        there = [-(-own // unit) * unit for k, own in enumerate(bytes_) if self.placed(k, placed)]
        configured = max(spec.local_memory_initial, *there, 0)
        return {
            k for k, own in enumerate(bytes_)
            if own > configured and self.is_ready(k, event, event)
        }  # fmt: skip
