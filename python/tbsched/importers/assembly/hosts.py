"""The host threads of a recording, and the time that passes between their calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.calls import CallLengths, waits_for_gpu
from tbsched.program.arrays import BoolArray
from tbsched.program.sequence import Copy, Event

NOBODY = -1  # the thread of work of which nobody knows who called, and when

_LONGER = (
    "Calls took {us:.1f} us longer than on a {name} without a profiler, at the mean: counted as "
    "time of the host before them."
)
_TURNS = (
    "Which threads wait for each other: assumed that {count} threads which call by turns are one, "
    "as those of PyTorch's forward and backward passes."
)
# Most switches between two threads that take turns, as a share of the calls of the thread with
# fewer calls. Independent threads interleave their calls, and switch more often.
_MOST_SWITCHES = 0.25


class Hosts:
    """Numbers threads in the order of their first calls, and finds the gaps before calls.

    Threads that call by turns have one number: one goes on where the other one stopped.

    A prediction makes a call take as long as on its device, or as long as it blocks. Under a
    profiler calls take longer, and the GPU gets the work at their end. So what they take longer
    belongs to the gap before them: calls return when they did.
    """

    def __init__(self, threads: Sequence[int], begin_ns: int, spec: DeviceSpec | None) -> None:
        """``threads``: of each call in the order of time."""
        self._one = taking_turns(threads)
        self._begin_ns = begin_ns
        self._spec = spec
        self._lengths = None if spec is None else CallLengths(spec)
        self._numbers: dict[int, int] = {}
        self._returned_ns: dict[int, int] = {}  # when the last call returned, if predicted
        self._longer_ns = self._calls = 0

    def numbered(self, thread: int) -> int:
        """Its number in the program."""
        return self._numbers.setdefault(self._one[thread], len(self._numbers))

    def gaps(self, thread: int, made: Iterable[Event], call_ns: int, return_ns: int) -> list[float]:
        """Seconds before each event of one call."""
        found = []
        thread = self._one[thread]
        before_ns = self._returned_ns.get(thread, self._begin_ns)
        for event in made:
            predicted_ns = self._predicted_ns(event, thread)
            if predicted_ns is None:
                start_ns = max(call_ns, before_ns)
                end_ns = max(start_ns, return_ns)
            else:
                start_ns = max(return_ns - predicted_ns, before_ns)
                end_ns = start_ns + predicted_ns
                self._longer_ns += max(0, return_ns - call_ns - predicted_ns)
                self._calls += 1
            found.append((start_ns - before_ns) / 1e9)
            before_ns = end_ns
        self._returned_ns[thread] = before_ns
        return found

    def sentences(self) -> tuple[str, ...]:
        """Returns the assumptions about threads."""
        count = sum(number for number in Counter(self._one.values()).values() if number > 1)
        turns = (_TURNS.format(count=count),) if count else ()
        if self._spec is None or not self._longer_ns:
            return turns
        us = self._longer_ns / self._calls / 1e3
        return (*turns, _LONGER.format(us=us, name=self._spec.title))

    def _predicted_ns(self, event: Event, thread: int) -> int | None:
        """Returns a call's predicted duration; None if the measured one counts, or if it blocks.

        A call for a copy from or to pageable memory moves the bytes itself.
        """
        if self._lengths is None:
            return None
        predicted_ns = self._lengths.next_ns(event, thread)
        moves = isinstance(event, Copy) and event.kind != "d2d" and not event.pinned
        return None if waits_for_gpu(event) or moves else predicted_ns


def taking_turns(threads: Sequence[int]) -> dict[int, int]:
    """Returns for each thread the one with most calls that it takes turns with, or itself.

    Threads take turns if each makes many calls before another one goes on.
    """
    order = np.array(threads, np.int64)
    found = {NOBODY: NOBODY}
    calls: dict[int, BoolArray] = {}  # calls of all threads that count as one
    for thread, count in Counter(each for each in threads if each != NOBODY).most_common():
        own = order == thread
        # The others have as many calls at least. Two threads switch once at least.
        most = int(_MOST_SWITCHES * count)
        for first, others in calls.items() if most else ():
            if np.count_nonzero(np.diff(own[own | others])) <= most:
                found[thread] = first
                calls[first] = own | others
                break
        else:
            found[thread] = thread
            calls[thread] = own
    return found
