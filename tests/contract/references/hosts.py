"""Host threads that make calls one after the other, written plainly; for the toy GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tbsched.program.sequence import (
    Event,
    HostCall,
    HostFunction,
    Launch,
    Synchronize,
    WaitValue,
    WriteValue,
)


@dataclass(frozen=True)
class CallTimes:
    """How long calls take, nanoseconds."""

    launch: int = 0
    event: int = 0
    synchronize: int = 0
    first_use: int = 0


@dataclass(eq=False)
class Thread:
    """A host thread, and the call that it makes next."""

    calls: list[tuple[int, Event, int]] = field(default_factory=list)  # number, event, gap
    due: int = 0
    asks: bool = False  # for the right to load a kernel
    loads: bool = False
    wants_place: bool = False
    lacks_place: bool = False  # also if it may look again
    # What its call waits for; None: it has not asked.
    awaits: Callable[[], bool] | None = None

    returned: dict[int, int] = field(default_factory=dict)  # when each of its calls did

    def begin(self) -> None:
        """Begins its next call after its gap."""
        if self.calls:
            self.due += self.calls[0][2]

    def end(self, returned: int) -> None:
        """Ends its call, and begins the next one."""
        self.asks = self.loads = False
        self.awaits = None
        number, _, _ = self.calls.pop(0)
        self.returned[number] = self.due = returned
        self.begin()


class Hosts:
    """All threads of a sequence, and who of them loads a kernel."""

    def __init__(self, events: list[Event], gap_ns: list[int], times: CallTimes) -> None:
        threads: dict[int, Thread] = {}
        for number, (event, gap) in enumerate(zip(events, gap_ns, strict=True)):
            threads.setdefault(getattr(event, "host", 0), Thread()).calls.append(
                (number, event, gap)
            )
        self.threads = list(threads.values())
        self.times = times
        self.loader: Thread | None = None
        self.loaded: set[str] = set()
        for thread in self.threads:
            thread.begin()

    def dues(self) -> list[int]:
        return [thread.due for thread in self.threads if thread.calls]

    def returned(self) -> dict[int, int]:
        """When each call returned."""
        found = [item for thread in self.threads for item in thread.returned.items()]
        return dict(sorted(found))

    def done(self) -> bool:
        return not any(thread.calls for thread in self.threads)

    def step(
        self,
        now: int,
        issue: Callable[[int, bool], None],
        has_place: Callable[[int], bool],
        awaited: Callable[[Synchronize | HostCall], Callable[[], bool]],
    ) -> bool:
        """Goes on with one call. False: no thread can.

        Args:
            now: the time.
            issue: an event, by its number, and whether its kernel has just been loaded.
            has_place: whether an event, by its number, finds a place in a hardware queue.
            awaited: whether all is over that a synchronisation which is called now waits for.
        """
        waiting = [t for t in self.threads if t.calls and t.due <= now and not t.wants_place]
        for thread in sorted(waiting, key=lambda t: (t.due, t.asks + t.loads, t.calls[0][0])):
            number, event, _ = thread.calls[0]
            if self._is_kept(thread):
                continue
            if isinstance(event, Synchronize):
                if thread.awaits is None:
                    thread.awaits = awaited(event)
                if not thread.awaits():
                    continue
                thread.end(now + self.times.synchronize)
                return True
            if isinstance(event, HostCall):
                duration = round(event.duration * 1e9)
                if event.waits is not None:
                    thread.awaits = thread.awaits or awaited(event)
                    if not thread.awaits():
                        continue
                    duration += self.times.synchronize
                thread.end(now + duration)
                return True
            if isinstance(event, Launch):
                if self.loader not in (None, thread):
                    continue
                if event.first_use and not thread.loads and event.name not in self.loaded:
                    self._go_on_loading(thread, event, now)
                    return True
            if not has_place(number):
                thread.wants_place = thread.lacks_place = True
                continue
            if thread.lacks_place:
                kept = [other for other in waiting if self._is_kept(other)]
                thread.lacks_place = False
                for other in kept:
                    other.due = now
            issue(number, thread.loads)
            if self.loader is thread:
                self.loader = None
                for other in waiting:
                    other.due = now
            is_launch = bool(event.launches)
            thread.end(now + (self.times.launch if is_launch else self.times.event))
            return True
        return False

    def _is_kept(self, thread: Thread) -> bool:
        """Whether threads that want a place keep this one from its call."""
        event = thread.calls[0][1]
        if thread.lacks_place or isinstance(event, Synchronize | HostCall):
            return False
        items = [other.calls[0][1] for other in self.threads if other.lacks_place]
        works = [item for item in items if not isinstance(item, WriteValue | WaitValue)]
        kept = (
            works
            if isinstance(event, HostFunction)
            else [w for w in works if isinstance(w, HostFunction)]
        )
        return bool(kept)

    def retry(self, now: int, has_place: Callable[[int], bool]) -> bool:
        """Whether a call that waited for a place finds one now, the first in the sequence."""
        waiting = [thread for thread in self.threads if thread.wants_place]
        for thread in sorted(waiting, key=lambda t: t.calls[0][0]):
            if has_place(thread.calls[0][0]):
                thread.wants_place, thread.due = False, now
                return True
        return False

    def _go_on_loading(self, thread: Thread, event: Launch, now: int) -> None:
        if not thread.asks:
            thread.asks = True
            thread.due = now + self.times.launch
            return
        thread.loads = True
        self.loader = thread
        thread.due = now + self.times.first_use
        if event.name is not None:
            self.loaded.add(event.name)
