"""Random programs for random devices: held ones, and timed ones with streams and CUDA events."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

from hypothesis import strategies as st

from contract.sequences import sequences
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.duration import Drawn
from tbsched.program.partition import Partition
from tbsched.program.sequence import LEGACY_STREAM, Event, RecordEvent, Sequence, WaitEvent

# Few, so that much happens at the same time.
SECONDS = st.sampled_from([1e-6, 1e-6, 3e-6, 5e-5, 0.0])
STREAMS = st.sampled_from([None, 0, 1, LEGACY_STREAM])
MARKS = st.one_of(
    st.builds(RecordEvent, st.integers(0, 1), st.sampled_from([0, 1, LEGACY_STREAM])),
    st.builds(WaitEvent, st.integers(0, 1), st.sampled_from([0, 1, LEGACY_STREAM])),
)


def held(spec: DeviceSpec, policy: str) -> st.SearchStrategy[Sequence]:
    """Launches and releases; only Hopper's own policy places clusters."""
    return sequences(spec, clusters=policy == "hopper", most=6)


@st.composite
def durations(draw: st.DrawFn, blocks: int) -> Any:
    """One duration for all blocks, one for each, or a distribution."""
    kind = draw(st.integers(0, 3))
    if kind == 0:
        few = draw(st.lists(SECONDS, min_size=2, max_size=3))
        return tuple(itertools.islice(itertools.cycle(few), blocks))
    if kind == 1:
        return Drawn("uniform", 3e-6, 3e-6, draw(st.integers(0, 9)))
    return draw(SECONDS)


@st.composite
def timed(draw: st.DrawFn, spec: DeviceSpec, policy: str) -> Sequence:
    """The launches of a held program, each with its durations, and marks between them."""
    events: list[Event] = []
    partition_of: dict[Any, Partition | None] = {LEGACY_STREAM: None}
    for launch in draw(held(spec, policy)).launches:
        events += draw(st.lists(MARKS, max_size=2))
        duration = draw(durations(launch.blocks))
        stream: Any = draw(STREAMS)
        if partition_of.setdefault(stream, launch.partition) != launch.partition:
            stream = None
        events.append(dataclasses.replace(launch, duration=duration, stream=stream))
    return Sequence(events)
