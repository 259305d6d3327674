"""Random sequences for the laws that every policy obeys."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

import numpy as np
from hypothesis import strategies as st

from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.sequence import Event, Launch, Release, Sequence
from tbsched.traces.trace import Trace

USUAL_THREADS = st.sampled_from([1, 32, 64, 96, 128, 160, 256, 512, 1024])
THREADS = st.one_of(USUAL_THREADS, st.integers(1, 1024))


def most_registers(spec: DeviceSpec, threads: int) -> int:
    """Registers per thread with which such a block fits an empty SM."""
    warps = math.ceil(threads / 32)
    warps_each = math.ceil(warps / spec.processing_blocks)
    per_warp = spec.registers_per_sm // spec.processing_blocks // warps_each
    per_warp -= per_warp % spec.register_unit
    return min(spec.registers_per_thread, per_warp // 32)


@st.composite
def launches(draw: st.DrawFn, spec: DeviceSpec, plain: bool = False) -> Launch:
    """A launch that the device can run; a plain one has nothing that Algorithm 1 does not know."""
    threads = min(draw(THREADS), spec.threads_per_block, 32 * spec.warps_per_sm)
    few = st.integers(1, 2 * spec.sms)
    many = st.integers(1, 2 * spec.sms * spec.blocks_per_sm)
    rest: dict[str, int | None] = {}
    if not plain:
        rest = {
            "carveout": draw(st.sampled_from([None, None, None, 0, 50, 100])),
            "stream": draw(st.sampled_from([None, None, None, 0, 1])),
            "priority": draw(st.sampled_from([0, 0, 0, -1, 1])),
        }
    return Launch(
        draw(st.one_of(few, few, many)),
        threads,
        draw(st.one_of(st.just(16), st.integers(1, most_registers(spec, threads)))),
        draw(st.one_of(st.just(0), st.integers(0, spec.shared_memory_per_block))),
        draw(st.sampled_from([0, 0, 0, spec.local_memory_initial + 1])),
        **rest,  # type: ignore[arg-type]
    )


@st.composite
def sequences(draw: st.DrawFn, spec: DeviceSpec, plain: bool = False, most: int = 9) -> Sequence:
    """Launches and releases of launches still held."""
    events: list[Event] = []
    held: list[int] = []
    count = 0
    for _ in range(draw(st.integers(1, most))):
        if held and draw(st.integers(0, 2)) == 0:
            released = draw(st.sampled_from(held))
            held.remove(released)
            events.append(Release(released))
        else:
            events.append(draw(launches(spec, plain)))
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

    def final(self, event: int) -> list[np.ndarray]:
        """Per launch, where its blocks have gone after that event; -1 for those that wait."""
        rows = [placement.final_smid for placement in self.traces[event]]
        return [row for row in rows if row is not None]

    def released(self, event: int) -> set[int]:
        events = self.sequence.events[: event + 1]
        return {item.launch for item in events if isinstance(item, Release)}

    def resident(self, event: int) -> Iterator[tuple[Launch, int]]:
        """Each block that holds its SM after that event, with the SM."""
        released = self.released(event)
        launched = self.traces[event].sequence.launches
        for number, (launch, smids) in enumerate(zip(launched, self.final(event), strict=True)):
            if number not in released:
                yield from ((launch, int(sm)) for sm in smids if sm >= 0)

    def waiting(self, event: int) -> set[int]:
        """The launches with blocks to place, but for those that wait for their stream."""
        final, released = self.final(event), self.released(event)
        unplaced = {number for number, row in enumerate(final) if (row < 0).any()}
        launched = self.traces[event].sequence.launches
        ready = set()
        for number in unplaced:
            before = [k for k in range(number) if launched[number].stream is not None
                      and launched[k].stream == launched[number].stream]  # fmt: skip
            if all(k in released and k not in unplaced for k in before[-1:]):
                ready.add(number)
        return ready
