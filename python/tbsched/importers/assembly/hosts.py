"""The host threads of a recording, and the time that passes between their calls."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from tbsched.hardware.spec import DeviceSpec
from tbsched.importers.assembly.waits import Call
from tbsched.prediction.calls import CallLengths, waits_for_gpu
from tbsched.program.arrays import BoolArray, Int64Array
from tbsched.program.sequence import Copy, Event

NOBODY = -1  # the thread of work of which nobody knows who called, and when

_LONGER = (
    "Calls took {us:.1f} us longer than on a {name} without a profiler, at the median: counted as "
    "time of the host before them."
)
_TURNS = (
    "Which threads wait for each other: assumed that {count} threads which call by turns are one, "
    "as those of PyTorch's forward and backward passes."
)
# Most switches between two threads that take turns, and most calls that one makes while the other
# is in a call, as shares of the calls of the thread with fewer calls. Independent threads
# interleave their calls, or one calls while the other waits.
_MAX_SWITCHES_PER_CALL = 0.25
_ROUNDED_NS = 1000  # tolerated overlap of calls


class Hosts:
    """Numbers threads in the order of their first calls, and finds the gaps before calls.

    Threads that call by turns have one number: one goes on where the other one stopped.

    A prediction makes a call take as long as on its device, or as long as it blocks. Under a
    profiler calls take longer, and the GPU gets the work at their end. So what they take longer
    belongs to the gap before them: calls return when they did.
    """

    def __init__(self, calls: Sequence[Call], begin_ns: int, spec: DeviceSpec | None) -> None:
        """``calls``: in the order of time."""
        self._party = taking_turns([call[:3] for call in calls])
        self._begin_ns = begin_ns
        self._spec = spec
        self._lengths = None if spec is None else CallLengths(spec)
        self._numbers: dict[int, int] = {}
        self._returned_ns: dict[int, int] = {}  # when the last call returned, if predicted
        self._excess_ns: list[int] = []  # of each call: measured minus predicted duration

    def numbered(self, thread: int) -> int:
        """Returns the number in the program of a thread of the profile."""
        return self._numbers.setdefault(self._party[thread], len(self._numbers))

    def gaps(
        self, thread: int, events: Iterable[Event], call_ns: int, return_ns: int
    ) -> list[float]:
        """Returns the seconds before each event that one call makes."""
        gaps = []
        thread = self._party[thread]
        before_ns = self._returned_ns.get(thread, self._begin_ns)
        for event in events:
            predicted_ns = self._predicted_ns(event, thread)
            if predicted_ns is None:
                start_ns = max(call_ns, before_ns)
                end_ns = max(start_ns, return_ns)
            else:
                start_ns = max(return_ns - predicted_ns, before_ns)
                end_ns = start_ns + predicted_ns
                self._excess_ns.append(max(0, return_ns - call_ns - predicted_ns))
            gaps.append((start_ns - before_ns) / 1e9)
            before_ns = end_ns
        self._returned_ns[thread] = before_ns
        return gaps

    def sentences(self) -> tuple[str, ...]:
        """Returns the assumptions about threads."""
        count = sum(threads for threads in Counter(self._party.values()).values() if threads > 1)
        turns = (_TURNS.format(count=count),) if count else ()
        us = statistics.median(self._excess_ns or [0]) / 1e3
        if self._spec is None or not us:
            return turns
        return (*turns, _LONGER.format(us=us, name=self._spec.title))

    def _predicted_ns(self, event: Event, thread: int) -> int | None:
        """Returns a call's predicted duration; None if the measured one counts, or if it blocks. A
        call for a copy from or to pageable memory moves the bytes itself."""
        if self._lengths is None:
            return None
        predicted_ns = self._lengths.next_ns(event, thread)
        moves = isinstance(event, Copy) and event.kind != "d2d" and not event.pinned
        return None if waits_for_gpu(event) or moves else predicted_ns


def taking_turns(timed_calls: Sequence[tuple[int, int, int]]) -> dict[int, int]:
    """Returns for each thread the one with most calls that it takes turns with, or itself.

    Threads take turns if each makes many calls before another one goes on, and none is in a call
    while another one makes calls.

    Args:
        timed_calls: of each call when it was made and when it returned, and the thread, by time.
    """
    begin_ns, end_ns, order = np.array(timed_calls, np.int64).reshape(-1, 3).T
    threads = order.tolist()
    party = {NOBODY: NOBODY}
    calls: dict[int, BoolArray] = {}  # calls of all threads that count as one
    for thread, count in Counter(caller for caller in threads if caller != NOBODY).most_common():
        is_own = order == thread
        # The others have as many calls at least. Two threads switch once at least.
        max_switches = int(_MAX_SWITCHES_PER_CALL * count)
        for first, is_other in calls.items() if max_switches else ():
            is_either = is_own | is_other
            at_once = _calls_at_once(begin_ns[is_either], end_ns[is_either], is_own[is_either])
            if (
                np.count_nonzero(np.diff(is_own[is_either])) <= max_switches
                and at_once <= max_switches
            ):
                party[thread] = first
                calls[first] = is_own | is_other
                break
        else:
            party[thread] = thread
            calls[thread] = is_own
    return party


def _calls_at_once(begin_ns: Int64Array, end_ns: Int64Array, is_own: BoolArray) -> int:
    """Returns how many calls of two parties, by time, were made while the other was in a call."""
    count = 0
    for party in (is_own, ~is_own):
        until = np.maximum.accumulate(np.where(party, end_ns, np.int64(-(2**62))))
        count += int(np.count_nonzero(until[~party] > begin_ns[~party] + _ROUNDED_NS))
    return count
