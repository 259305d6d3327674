"""Hypothesis strategies for launches, sequences and timed programs that a device can run."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from tbsched.errors import missing, shown

try:
    from hypothesis import strategies as st
except ImportError as error:
    raise missing("tbsched's strategies", "Hypothesis", "hypothesis") from error

from tbsched.campaigns.oracles import prefix
from tbsched.campaigns.space.launch_tables import LaunchTables, SequenceTables
from tbsched.campaigns.space.options import SequenceOptions
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.duration import Drawn
from tbsched.program.sequence import (
    LEGACY_STREAM,
    Event,
    Launch,
    RecordEvent,
    Sequence,
    Stream,
    WaitEvent,
)

Drawable = TypeVar("Drawable")
Built = TypeVar("Built")
Device: TypeAlias = "str | os.PathLike[str] | DeviceSpec"

STREAMS = 4
CUDA_EVENTS = 2
_BETWEEN = 2  # CUDA events recorded or waited for before a launch, at most
# Few numbers, so that much happens at the same time.
_DURATIONS = (1e-6, 2e-6, 3e-6, 7e-6, 2e-5, 5e-5)  # seconds
ALIKE, EACH = "alike", "each"
_KINDS = (ALIKE, EACH, "uniform", "normal", "lognormal", "exponential")


def launches(device: Device, options: SequenceOptions | None = None) -> st.SearchStrategy[Launch]:
    """Launches that the device can run; they shrink towards one block of one warp.

    Args:
        device: a name, a path to a ``.toml``, or a spec.
        options: what else is drawn from; the number of launches and releases mean nothing here.

    Raises:
        TypeError, ValueError: an unknown device, or no options.

    Example:
        >>> from hypothesis import given, settings
        >>> from tbsched.strategies import launches
        >>> @settings(max_examples=20, deadline=None)
        ... @given(launches("h200"))
        ... def test_a_launch_alone_starts_at_once(launch):
        ...     assert tb.predict(tb.Sequence([launch]), "h200")[0].placed > 0
        >>> test_a_launch_alone_starts_at_once()
    """
    tables = LaunchTables.of(find_device(device), _checked(options))
    row = st.binary(min_size=tables.width, max_size=tables.width)
    everything = tables.themes[len(tables.themes) // 2 - 1]
    return _built(row, lambda drawn: tables.launches([drawn], everything)[0])


def sequences(
    device: Device, options: SequenceOptions | None = None
) -> st.SearchStrategy[Sequence]:
    """Sequences that the device can run; they shrink towards few events and small launches.

    Args:
        device: a name, a path to a ``.toml``, or a spec; :meth:`DeviceSpec.check` accepts what is
            drawn by construction, nothing is filtered.
        options: what else is drawn from.

    Raises:
        TypeError, ValueError: an unknown device, or no options.

    Example:
        >>> from hypothesis import given, settings
        >>> from tbsched.strategies import SequenceOptions, sequences
        >>> @settings(max_examples=20, deadline=None)
        ... @given(sequences("rtx3090", SequenceOptions(max_launches=3)))
        ... def test_predictions_repeat(seq):
        ...     assert tb.compare(tb.predict(seq, "rtx3090"), tb.predict(seq, "rtx3090")).exact
        >>> test_predictions_repeat()
    """
    options = _checked(options)
    tables = SequenceTables.of(find_device(device), options)
    rows = st.lists(
        st.binary(min_size=tables.width, max_size=tables.width),
        min_size=options.min_launches,
        max_size=options.max_launches,
    )
    return _built(st.tuples(st.sampled_from(tables.launches.themes), rows), tables.build)


def programs(device: Device, options: SequenceOptions | None = None) -> st.SearchStrategy[Sequence]:
    """Timed programs that the device can run: streams, CUDA events, priorities and durations.

    Launches are in one of four streams, in the legacy stream or in one of their own. They run for
    microseconds: all blocks equally long, each as long as it was drawn, or by a distribution. Two
    CUDA events are recorded and waited for in any of the streams. All launches of a stream have
    one priority, and those of the legacy stream have 0, as CUDA demands. Programs shrink towards
    few events, streams of their own and launches of one block of one warp for a microsecond.

    Args:
        device: a name, a path to a ``.toml``, or a spec; :meth:`DeviceSpec.check` accepts what is
            drawn by construction, nothing is filtered.
        options: what else is drawn from; None draws priorities 0 and -1. Releases mean nothing
            here.

    Raises:
        TypeError, ValueError: an unknown device, or no options.

    Example:
        >>> from hypothesis import given, settings
        >>> from tbsched.strategies import programs
        >>> @settings(max_examples=20, deadline=None)
        ... @given(programs("h200"))
        ... def test_no_block_ends_before_it_starts(program):
        ...     timeline = tb.predict(program, "h200").timeline
        ...     assert (timeline["start_ns"] <= timeline["end_ns"]).all()
        >>> test_no_block_ends_before_it_starts()
    """
    options = SequenceOptions(priorities=(0, -1)) if options is None else _checked(options)
    # A launch's own priority counts where it has a stream of its own.
    steps = st.lists(
        st.tuples(st.lists(_cuda_events(), max_size=_BETWEEN), launches(device, options), _runs()),
        min_size=options.min_launches,
        max_size=options.max_launches,
    )
    priorities = st.tuples(*[st.sampled_from(options.priorities)] * STREAMS)
    return _built(st.tuples(steps, priorities), _program)


def prefixes(recorded: Iterable[Sequence]) -> st.SearchStrategy[Sequence]:
    """Some of the sequences, cut after any launch; they shrink towards the first one's shortest.

    Args:
        recorded: at least one, each of at least one launch.

    Raises:
        ValueError: none, or one without a launch.

    Example:
        >>> from hypothesis import given, settings
        >>> from tbsched.strategies import prefixes
        >>> recorded = tb.Sequence([tb.Launch(132, 512, 32), tb.Launch(66, 256, 32)])
        >>> @settings(max_examples=5, deadline=None)
        ... @given(prefixes([recorded]))
        ... def test_a_prefix_begins_alike(seq):
        ...     assert seq[0] == recorded[0]
        >>> test_a_prefix_begins_alike()
    """
    whole = list(recorded)
    if not whole or not all(sequence.launches for sequence in whole):
        raise ValueError("recorded: at least one sequence, each of at least one launch, is needed")
    longest = max(len(sequence.launches) for sequence in whole)
    pairs = st.tuples(st.integers(1, longest), st.sampled_from(whole))
    return _built(pairs, lambda pair: prefix(pair[1], min(pair[0], len(pair[1].launches))))


def _built(
    drawn: st.SearchStrategy[Drawable], build: Callable[[Drawable], Built]
) -> st.SearchStrategy[Built]:
    """As ``drawn.map(build)``, but a failing test prints what was built, and not from what."""

    @st.composite
    def built(draw: st.DrawFn) -> Built:
        return build(draw(drawn))

    return built()


def _checked(options: SequenceOptions | None) -> SequenceOptions:
    if options is None:
        return SequenceOptions()
    if not isinstance(options, SequenceOptions):
        raise TypeError(f"options: a SequenceOptions is needed, got {shown(options)}")
    return options


def _cuda_events() -> st.SearchStrategy[Event]:
    kinds = st.sampled_from((RecordEvent, WaitEvent))
    streams = st.sampled_from((*range(STREAMS), LEGACY_STREAM))
    return st.builds(lambda kind, *at: kind(*at), kinds, st.integers(0, CUDA_EVENTS - 1), streams)


@dataclass(frozen=True, slots=True)
class _Run:
    """In which stream a launch of a program runs, and for how long."""

    stream: Stream | None
    kind: str  # of durations
    durations: tuple[float, ...]
    seed: int

    def of(self, launch: Launch, priorities: tuple[int, ...]) -> Launch:
        priority = launch.priority
        if self.stream is not None:
            priority = 0 if self.stream == LEGACY_STREAM else priorities[self.stream]
        return replace(
            launch, stream=self.stream, priority=priority, duration=self._duration(launch.blocks)
        )

    def _duration(self, blocks: int) -> float | tuple[float, ...] | Drawn:
        first = self.durations[0]
        if self.kind == ALIKE:
            return first
        if self.kind == EACH:
            return tuple(itertools.islice(itertools.cycle(self.durations), blocks))
        return Drawn(self.kind, first, 0.0 if self.kind == "exponential" else first / 4, self.seed)


def _runs() -> st.SearchStrategy[_Run]:
    return st.builds(
        _Run,
        stream=st.sampled_from((None, *range(STREAMS), LEGACY_STREAM)),
        kind=st.sampled_from(_KINDS),
        durations=st.lists(st.sampled_from(_DURATIONS), min_size=1, max_size=3).map(tuple),
        seed=st.integers(0, 9),
    )


def _program(
    drawn: tuple[list[tuple[list[Event], Launch, _Run]], tuple[int, ...]],
) -> Sequence:
    steps, priorities = drawn
    events: list[Event] = []
    for before, launch, run in steps:
        events += [*before, run.of(launch, priorities)]
    return Sequence(events)
