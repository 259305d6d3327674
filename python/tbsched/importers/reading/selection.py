"""Which part of a profile is read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tbsched.errors import shown
from tbsched.importers.records import GraphCall, Ran, Record
from tbsched.program.activity import ALWAYS, Times
from tbsched.program.checks import integer, seconds

_AHEAD_NS = 10**9  # by which a host is ahead of the GPU at most, unless work has no call then


@dataclass(frozen=True, slots=True)
class Selection:
    """The kernels, copies and memsets that start in a time, in some streams, with some names.

    Attributes:
        start, end: seconds from the first work on the GPU; the end is not included. None: all.
        streams: as the profile numbers them, of all contexts and GPUs; None: all.
        match: a regular expression that is searched for in the names of kernels; None: all. Copies
            and memsets have no names, so they are left out with it.

    Raises:
        TypeError, ValueError: not seconds, the end before the start, no numbers of streams, or no
            regular expression.
    """

    start: float | None = None
    end: float | None = None
    streams: frozenset[int] | None = None
    match: re.Pattern[str] | None = None

    @classmethod
    def of(
        cls,
        start: float | None,
        end: float | None,
        streams: Iterable[int] | None,
        match: str | None,
    ) -> Selection:
        """Returns the checked selection of a user."""
        limits = {"start": start, "end": end}
        for name, value in limits.items():
            if value is not None:
                seconds("load_program", name, value)
        if start is not None and end is not None and end <= start:
            raise ValueError(f"load_program.end: {end} is not after load_program.start: {start}")
        chosen = None
        if streams is not None:
            if isinstance(streams, str) or not isinstance(streams, Iterable):
                raise TypeError(
                    f"load_program.streams: a list of numbers is needed, got {shown(streams)}"
                )
            chosen = frozenset(
                integer("load_program", "streams", stream, 0, 2**63 - 1) for stream in streams
            )
        return cls(start, end, chosen, None if match is None else _pattern(match))

    @property
    def timed(self) -> bool:
        """Whether it selects a part of the time."""
        return self.start is not None or self.end is not None

    def takes_time(self, start_ns: int, first_ns: int) -> bool:
        """Returns whether work that starts at a time is selected, given the start of all work."""
        since = start_ns - first_ns
        after = self.start is None or since >= round(self.start * 1e9)
        return after and (self.end is None or since < round(self.end * 1e9))

    def of_host(self, first_ns: int) -> tuple[Times, ...]:
        """Returns the times in which host calls are needed: first few, then more if calls lack."""
        if not self.timed:
            return (ALWAYS,)
        until = ALWAYS.until_ns if self.end is None else first_ns + round(self.end * 1e9)
        if self.start is None:
            return (ALWAYS._replace(until_ns=until),)
        since = first_ns + round(self.start * 1e9) - _AHEAD_NS
        return Times(since, until), ALWAYS._replace(until_ns=until)

    def takes(self, stream: int, name: str | None) -> bool:
        """Returns whether work of a stream is selected, by its kernel's name if it has one."""
        if self.streams is not None and stream not in self.streams:
            return False
        return self.match is None or (name is not None and self.match.search(name) is not None)

    def of_records(self, records: list[Record], first_ns: int) -> list[Record]:
        """Returns the selected records, for a reader that collects all records first."""
        return [
            record
            for record in records
            if not isinstance(record, Ran)
            or (
                self.takes_time(record.start_ns, first_ns)
                and self.takes(record.stream, getattr(record, "name", None))
            )
        ]

    def of_calls(self, records: list[Record]) -> list[Record]:
        """Returns the records without calls outside the selected work, or of other streams than
        that work's, which may have other numbers here than in the file."""
        work = [record for record in records if isinstance(record, Ran)]
        begins = [r.start_ns if r.call_ns is None else r.call_ns for r in work]
        graphs = [r.call_ns for r in records if isinstance(r, GraphCall) and r.call_ns is not None]
        first, last = min(begins + graphs, default=0), max((r.end_ns for r in work), default=0)
        streams = None if self.streams is None else {None, -1, *(r.stream for r in work)}
        return [
            r
            for r in records
            if isinstance(r, Ran | GraphCall)
            or (
                (streams is None or getattr(r, "stream", None) in streams)
                and (r.call_ns is None or first <= r.call_ns <= last)
            )
        ]

    def __bool__(self) -> bool:
        return self != EVERYTHING


EVERYTHING = Selection()


def _pattern(match: object) -> re.Pattern[str]:
    """Returns the compiled regular expression of ``match``."""
    if not isinstance(match, str):
        raise TypeError(f"load_program.match: text is needed, got {shown(match)}")
    try:
        return re.compile(match)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(
            f"load_program.match: {shown(match)} is no regular expression: {error}"
        ) from None
