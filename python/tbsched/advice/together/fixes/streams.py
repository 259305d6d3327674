"""Streams of their own, for launches that wait for others in their stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from tbsched.advice.together.fixes.fix import Fix, Unproved, each_and_all
from tbsched.advice.together.given import to_launch
from tbsched.program.events.transfers import Transfer
from tbsched.program.sequence import LEGACY_STREAM, GraphLaunch, Launch, Sequence


def streams(unproved: Unproved) -> Iterator[Fix]:
    """Yields fixes with a stream of its own for one launch, for each, then for all."""
    launches = unproved.problem.launches
    often = Counter(launch.stream for launch in launches)
    shared = [
        number
        for number, one in enumerate(launches)
        if one.stream == LEGACY_STREAM or (one.stream is not None and often[one.stream] > 1)
    ]
    for numbers in each_and_all(shared):
        what = to_launch(launches, numbers)
        kind_ = "a stream of its own" if len(numbers) == 1 else "a stream each"
        legacy = any(launches[number].stream == LEGACY_STREAM for number in numbers)
        kind = f"{kind_} (cudaStreamNonBlocking)" if legacy else kind_
        changes = {number: _in_own_stream(launches[number]) for number in numbers}
        yield unproved.changed("streams", f"{what} in {kind}", changes)
    yield from _non_blocking(unproved)


def _non_blocking(unproved: Unproved) -> Iterator[Fix]:
    """Yields fixes with a non-blocking stream in place of one with copies or host functions."""
    program = unproved.problem.program
    if program is None:
        return
    for number, event in enumerate(program):
        if not isinstance(event, Transfer) or event.non_blocking or event.stream == LEGACY_STREAM:
            continue
        stream = event.stream
        changed = Sequence(
            replace(other, non_blocking=True)
            if isinstance(other, Launch | GraphLaunch | Transfer)
            and (k == number or (stream is not None and other.stream == stream))
            else other
            for k, other in enumerate(program)
        )
        what = "its own stream" if stream is None else f"stream {stream}"
        text = f"make {what}, of the {type(event).__name__} (event {number}), non-blocking"
        fix = unproved.changed("streams", f"{text} (cudaStreamNonBlocking)", {})
        yield replace(fix, launches=changed.launches, sequence=changed)


def _in_own_stream(launch: Launch) -> Launch:
    """Returns the launch without a numbered stream; non-blocking if it was in the legacy one."""
    legacy = launch.stream == LEGACY_STREAM
    return replace(launch, stream=None, non_blocking=launch.non_blocking or legacy)
