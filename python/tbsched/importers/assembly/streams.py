"""The streams of a recording: which of them a program has, and what they have done so far."""

from __future__ import annotations

from tbsched.importers.assembly.default_stream import streams_that_wait
from tbsched.importers.assembly.guesses import Guesses
from tbsched.importers.records import Kernel, Ran, Recording, Transfer
from tbsched.program.events.streams import LEGACY_STREAM, MAX_STREAM, Stream

# Work of a stream starts after the end of earlier work, except for programmatic launches. This is
# the tolerance for clocks of the GPU and rounding by profilers.
_APART_NS = 1000
_WAITS = "The streams {streams} wait for the default stream: assumed, as their times show."
_FREE = "The streams {streams} do not wait for the default stream: assumed, as their times show."
_UNKNOWN = (
    "Whether the streams {streams} wait for the default stream: assumed that they do not, as those "
    "of PyTorch."
)


class Streams:
    """Keeps the numbers that the profile gives streams, and remembers what was issued to them."""

    def __init__(self, recording: Recording, guesses: Guesses) -> None:
        self._recording = recording
        self._guesses = guesses
        self._numbers: dict[int, int] = {}
        self._last: dict[int, Ran] = {}
        self._end_ns: dict[int, int] = {}
        works = {item.stream for item in recording.records if isinstance(item, Kernel | Transfer)}
        self._has_legacy = not works.isdisjoint(recording.legacy_streams)
        self._waiting = streams_that_wait(recording)

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the profile's numbers of streams as text, in the order of their first use."""
        return tuple(str(stream) for stream in self._numbers)

    def numbered(self, stream: int) -> Stream:
        """Returns the number of a stream in the program: the profile's, if CUDA has such numbers.
        Raises ValueError: it has not."""
        if stream in self._recording.legacy_streams:
            return LEGACY_STREAM
        if not 0 <= stream <= MAX_STREAM:
            raise ValueError(f"stream {stream} is outside 0..{MAX_STREAM}")
        return self._numbers.setdefault(stream, stream)

    def is_non_blocking(self, stream: int) -> bool:
        """Returns whether a stream does not wait for the legacy stream; False if that is unused."""
        if not self._has_legacy or stream in self._recording.legacy_streams:
            return False
        known = self._recording.non_blocking.get(stream)
        if known is None and stream in self._waiting:
            known = not self._waiting[stream]
            self._guesses.of_stream(_FREE if known else _WAITS, stream)
        elif known is None:
            self._guesses.of_stream(_UNKNOWN, stream)
        return True if known is None else known

    def issue(self, stream: int, ran: Ran) -> None:
        """Notes the work that was issued to a stream last, and when it ended."""
        self._last[stream] = ran
        self._end_ns[stream] = max(ran.end_ns, self._end_ns.get(stream, ran.end_ns))

    def overlaps_last(self, kernel: Kernel) -> bool:
        """Returns whether a kernel started before the previous one of its stream had ended."""
        last = self._last.get(kernel.stream)
        return isinstance(last, Kernel) and kernel.start_ns < last.end_ns - _APART_NS

    def own_ns(self, call_ns: int, return_ns: int) -> int | None:
        """Returns how long a wait took after the last work ended; None: work ended later."""
        until = max(self._end_ns.values(), default=call_ns)
        if until > return_ns + _APART_NS:
            return None
        return max(return_ns - max(call_ns, until), 0)

    def waited_for(self, call_ns: int, return_ns: int) -> int | None:
        """Returns the stream whose work ended last during a waiting call; None: no work ended."""
        ended = {s: end for s, end in self._end_ns.items() if call_ns < end <= return_ns}
        return max(ended, key=lambda stream: ended[stream], default=None)
