"""Numbers for the streams of a GPU. Those of a profile are CUPTI's, unique in one context only."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

_APART = 100_000  # from a number that is taken to the one that a stream gets instead
_MAX_NAMED = 8  # streams


class FileStream(NamedTuple):
    """A stream as a profile names it; ``context`` is None if it does not say that."""

    context: int | None
    number: int


class StreamNumbers:
    """Numbers streams as the profile does, unless a stream of another context of their GPU has that
    number; such a stream gets one that is 100,000 higher, or a multiple of that."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, dict[FileStream, int]] = {}  # by GPU
        self._taken: dict[Hashable, set[int]] = {}

    def of(self, gpu: Hashable, stream: FileStream) -> int:
        """Returns the number of a stream; of an unknown context the first one that has it."""
        numbers = self._numbers.setdefault(gpu, {})
        known = numbers.get(stream)
        if known is not None:
            return known
        taken = self._taken.setdefault(gpu, set())
        number = stream.number
        if stream.context is not None:
            while number in taken:
                number += _APART
            taken.add(number)
        numbers[stream] = number
        return number

    def given(self, gpu: Hashable, stream: FileStream) -> set[int]:
        """Returns the numbers that a stream got, if it was used; those of all streams with its
        number in the file, if its context is unknown."""
        return {
            number
            for used, number in self._numbers.get(gpu, {}).items()
            if used.number == stream.number and stream.context in (None, used.context)
        }

    def sentences(self) -> list[str]:
        """Returns a sentence about streams whose numbers had to change, in a list; [] if none."""
        changed = [
            f"{stream.number} of context {stream.context} is {number}"
            for numbers in self._numbers.values()
            for stream, number in numbers.items()
            if number != stream.number
        ]
        if not changed:
            return []
        more = len(changed) - _MAX_NAMED
        named = ", ".join(changed[:_MAX_NAMED]) + (f", and {more} more" if more > 0 else "")
        return [
            "Streams of several contexts of a GPU have one number in the file. Here they have "
            f"numbers of their own: {named}. A part is selected by the number in the file."
        ]
