"""Hypothesis strategies for launches, sequences and timed programs that a device can run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TypeAlias, TypeVar

from tbsched.errors import missing, shown

try:
    from hypothesis import strategies as st
except ImportError as error:
    raise missing("tbsched's strategies", "Hypothesis", "hypothesis") from error

from tbsched.campaigns.oracles import prefix
from tbsched.campaigns.space.launch_tables import LaunchTables, SequenceTables
from tbsched.campaigns.space.options import SequenceOptions
from tbsched.campaigns.space.program_tables import ProgramTables
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.checks import instance
from tbsched.program.sequence import Launch, Sequence

Drawable = TypeVar("Drawable")
Built = TypeVar("Built")
Device: TypeAlias = "str | os.PathLike[str] | DeviceSpec"


def launches(device: Device, options: SequenceOptions | None = None) -> st.SearchStrategy[Launch]:
    """Returns a strategy of launches that a device can run; they shrink to one warp.

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
    return _built(row, lambda drawn: tables.launches([drawn], tables.everything)[0])


def sequences(
    device: Device, options: SequenceOptions | None = None
) -> st.SearchStrategy[Sequence]:
    """Returns a strategy of sequences that a device can run; they shrink towards few events and
    small launches.

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
    return sequences_of(SequenceTables.of(find_device(device), options), options)


def sequences_of(tables: SequenceTables, options: SequenceOptions) -> st.SearchStrategy[Sequence]:
    """Returns the sequences that the tables mean."""
    rows = _rows(tables.width, options)
    return _built(st.tuples(st.sampled_from(tables.launches.themes), rows), tables.build)


def programs(device: Device, options: SequenceOptions | None = None) -> st.SearchStrategy[Sequence]:
    """Returns a strategy of timed programs with streams, events, graphs and copies.

    Launches are in one of four streams, in the legacy stream or in one of their own. They run for
    microseconds: all blocks equally long, each as long as it was drawn, or by a distribution. Some
    are programmatic, trigger, wait for memory, or name a completion event. Some are the nodes of a
    graph, which may have copies and memsets, and may be launched twice. Two CUDA events are
    recorded and waited for in any of the streams, and in graphs. Copies, memsets and host functions
    are between the launches, and in graphs, some of which allocate memory. Streams write a value
    and wait for it. Several host threads call, which synchronise now and then, and make other calls
    that take time or wait. A stream has one priority and one partition, those of its first launch,
    and is non-blocking or not. The legacy stream has priority 0 and no partition. No launch is a
    first use, which :func:`tbsched.observe` refuses. Programs shrink towards few events, streams of
    their own and launches of one block of one warp for a microsecond.

    Args:
        device: a name, a path to a ``.toml``, or a spec; :meth:`DeviceSpec.check` accepts what is
            drawn by construction, nothing is filtered.
        options: what else is drawn from; None draws the priorities, partitions and cooperative
            launches of :meth:`SequenceOptions.everything`. Releases mean nothing here.

    Raises:
        TypeError, ValueError: an unknown device, or no options.

    Example:
        >>> from hypothesis import given, settings
        >>> from tbsched.strategies import programs
        >>> @settings(max_examples=20, deadline=None)
        ... @given(programs("h200"))
        ... def test_it_can_be_saved(program):
        ...     assert tb.Sequence.from_json(program.to_json()) == program
        >>> test_it_can_be_saved()
    """
    spec = find_device(device)
    if options is None:
        everything = SequenceOptions.everything(spec)
        options = SequenceOptions(
            priorities=everything.priorities,
            partitions=everything.partitions,
            cooperative=everything.cooperative,
        )
    options = _checked(options)
    tables = ProgramTables.of(spec, options)
    return _built(_rows(tables.width, options), tables.build)


def prefixes(recorded: Iterable[Sequence]) -> st.SearchStrategy[Sequence]:
    """Returns a strategy of recorded sequences, cut after any launch.

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
    whole = [instance("prefixes", "recorded", each, Sequence) for each in recorded]
    if not whole or not all(sequence.launches for sequence in whole):
        raise ValueError("recorded: at least one sequence, each of at least one launch, is needed")
    longest = max(len(sequence.launches) for sequence in whole)
    pairs = st.tuples(st.integers(1, longest), st.sampled_from(whole))
    return _built(pairs, lambda pair: prefix(pair[1], min(pair[0], len(pair[1].launches))))


def _rows(width: int, options: SequenceOptions) -> st.SearchStrategy[list[bytes]]:
    row = st.binary(min_size=width, max_size=width)
    return st.lists(row, min_size=options.min_launches, max_size=options.max_launches)


def _built(
    drawn: st.SearchStrategy[Drawable], build: Callable[[Drawable], Built]
) -> st.SearchStrategy[Built]:
    """Returns ``drawn.map(build)``, but failing tests print the result and not its input."""

    @st.composite
    def built(draw: st.DrawFn) -> Built:
        return build(draw(drawn))

    return built()


def _checked(options: SequenceOptions | None) -> SequenceOptions:
    """Returns the options; None stands for the defaults."""
    if options is None:
        return SequenceOptions()
    if not isinstance(options, SequenceOptions):
        raise TypeError(f"options: a SequenceOptions is needed, got {shown(options)}")
    return options
