"""What streams waited for, where a profile has the calls but not the events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from tbsched.importers.assembly.guesses import Guesses
from tbsched.importers.records import Called, EventCall

_INFERRED = (
    "For what {count} calls make a stream wait: assumed another stream whose work ended before the "
    "waiting one went on."
)
_NOTHING = (
    "For what {count} calls make a stream wait: assumed nothing, as the times show no work that "
    "was waited for."
)
# On an idle GPU a kernel starts 1.1 to 2.7 us after its call returned, and one that waits for an
# event of another stream up to 5 us after the end of that one's work (H100, torch.profiler).
STARTS_NS = 4000
WAKES_NS = 6000


class Work(NamedTuple):
    """What a call launched: in which stream, and when it ran; None: nobody knows its call."""

    stream: int
    start_ns: int
    end_ns: int
    return_ns: int | None

    @property
    def has_waited(self) -> bool:
        """Whether the work started later than its call explains."""
        return self.return_ns is not None and self.start_ns - self.return_ns > STARTS_NS


# A call: when it was made, when it returned, the thread, and what it was.
Call: TypeAlias = tuple[int, int, int, Called]


def with_waits(
    calls: Sequence[Call],
    work_of: Callable[[Called], Work | None],
    legacy: frozenset[int],
    guesses: Guesses,
) -> list[Call]:
    """Returns the calls with waits for unknown events replaced by waits for inferred ones.

    PyTorch's ``a.wait_stream(b)`` records an event in b and makes a wait for it. Where a profile
    does not say who a is, it is the stream of the thread's next work. Programs fork from the
    default stream and join in it. So if a is not the default stream, b is; and if a is, b is
    another stream, the one whose work ended last. In any case the work of b had ended before the
    next work of a started. Else b is the stream whose work ended just before a went on, if the
    work of a had waited; or for which a waited elsewhere in the program.

    Args:
        calls: by time.
        work_of: what a call launched; None: nothing.
        legacy: the default streams.
        guesses: what is told what was assumed.
    """
    if not any(_is_unknown(item) for *_, item in calls):
        return [*calls]
    sure = _awaited(calls, work_of, legacy, frozenset())
    pairs = frozenset((stream, after.stream) for after, stream in sure.values())
    awaited = _awaited(calls, work_of, legacy, pairs)
    event_numbers = (item.event for *_, item in calls if isinstance(item, EventCall))
    event = max(event_numbers, default=0)
    calls_with_waits: list[Call] = []
    for index, call in enumerate(calls):
        begin, end, thread, item = call
        if not _is_unknown(item):
            calls_with_waits.append(call)
        elif index not in awaited:
            guesses.note(_NOTHING)
        else:
            guesses.note(_INFERRED)
            after, stream = awaited[index]
            event += 1
            calls_with_waits.append((begin, begin, thread, EventCall(event=event, stream=stream)))
            waits = EventCall(event=event, stream=after.stream, waits=True)
            calls_with_waits.append((begin, end, thread, waits))
    return calls_with_waits


def _is_unknown(item: Called) -> bool:
    """Returns whether a call makes a stream wait for an event that the profile does not name."""
    return isinstance(item, EventCall) and not item.known


def _next_work(calls: Sequence[Call], work_of: Callable[[Called], Work | None]) -> dict[int, Work]:
    """Returns, by the place of each unknown wait, the work that it delays, if there is any."""
    of_thread: dict[int, Work] = {}
    of_stream: dict[int, Work] = {}
    next_work: dict[int, Work] = {}
    for index in range(len(calls) - 1, -1, -1):
        _, _, thread, item = calls[index]
        work = work_of(item)
        if work is not None:
            of_thread[thread] = of_stream[work.stream] = work
        elif isinstance(item, EventCall) and not item.known:
            after = of_thread.get(thread) if item.stream < 0 else of_stream.get(item.stream)
            if after is not None:
                next_work[index] = after
    return next_work


def _awaited(
    calls: Sequence[Call],
    work_of: Callable[[Called], Work | None],
    legacy: frozenset[int],
    pairs: frozenset[tuple[int, int]],
) -> dict[int, tuple[Work, int]]:
    """Returns, by the place of an unknown wait, the work that waited and the awaited stream.

    Args:
        calls, work_of, legacy: as of :func:`with_waits`.
        pairs: streams of which the second waited for the first elsewhere in the program, so that
            it does here, too, if the times allow.
    """
    waiting = _next_work(calls, work_of)
    ended: dict[int, int] = {}  # by stream: the end of all work issued so far
    used: set[tuple[Work, int]] = set()
    awaited: dict[int, tuple[Work, int]] = {}
    for index, (_, _, _, item) in enumerate(calls):
        work = work_of(item)
        if work is not None:
            ended[work.stream] = max(work.end_ns, ended.get(work.stream, work.end_ns))
        after = waiting.get(index)
        if after is None:
            continue
        fitting = [
            stream
            for stream, end_ns in ended.items()
            if stream != after.stream and end_ns <= after.start_ns and (after, stream) not in used
        ]
        likely = [stream for stream in fitting if stream in legacy or after.stream in legacy]
        if not likely and after.has_waited:
            likely = [s for s in fitting if after.start_ns - ended[s] <= WAKES_NS]
        likely = likely or [stream for stream in fitting if (stream, after.stream) in pairs]
        if likely:
            awaited_stream = max(likely, key=lambda stream: ended[stream])
            used.add((after, awaited_stream))
            awaited[index] = after, awaited_stream
    return awaited
