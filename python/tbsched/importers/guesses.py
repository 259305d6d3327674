"""What a profile does not say, what is assumed instead, and the sentences that say so."""

from __future__ import annotations

from collections import Counter
from typing import TypeVar

from tbsched.importers.records import Kernel, Recording, Transfer

REGISTERS = 32
_Value = TypeVar("_Value")
# Of each field: what is assumed.
_ASSUMED = {
    "registers": f"{REGISTERS} registers per thread",
    "shared memory": "no shared memory",
    "local memory": "no local memory",
    "cluster": "no clusters",
    "carveout": "a carveout that the driver chooses",
    "priority": "priority 0",
    "cooperative launch": "no cooperative launch",
    "programmatic launch": "no programmatic launch",
}


class Guesses:
    """Counts what had to be assumed while a program is made."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._kernels = 0
        self._fields: Counter[str] = Counter()
        self._notes: Counter[str] = Counter()

    def given(self, field: str, value: _Value | None, otherwise: _Value) -> _Value:
        """A value of the profile; if it has none, what is assumed."""
        if value is not None:
            return value
        self._fields[field] += 1
        return otherwise

    def once(self, sentence: str) -> None:
        """Something that was assumed, however often."""
        self._notes[sentence] = 1

    def note(self, sentence: str, count: int = 1) -> None:
        """Something else that was assumed, with ``{count}`` where its number stands."""
        self._notes[sentence] += count

    def shared_memory(self, kernel: Kernel) -> int:
        """Bytes of a block, static and dynamic."""
        parts = (kernel.static_shared_memory, kernel.dynamic_shared_memory)
        known = [part for part in parts if part is not None]
        return self.given("shared memory", sum(known) if known else None, 0)

    def pinned(self, moved: Transfer) -> bool:
        """Whether the memory of the host is pinned."""
        if moved.pinned is None:
            self.note("Whether the memory of {count} copies is pinned: assumed that it is.")
        return moved.pinned is not False

    def count_kernel(self) -> None:
        """One more kernel, of which each field was asked for once."""
        self._kernels += 1

    def sentences(self) -> tuple[str, ...]:
        """All that was assumed, the reader's own first."""
        found = list(self._recording.missing)
        for field, what in _ASSUMED.items():
            if count := self._fields[field]:
                of = (
                    "every kernel"
                    if count == self._kernels
                    else f"{count} of {self._kernels} kernels"
                )
                found.append(f"The {field} of {of}: assumed {what}.")
        if not self._recording.first_uses:
            found.append("Which launches load their kernel (lazy loading): assumed none.")
        found += [sentence.format(count=count) for sentence, count in self._notes.items()]
        return tuple(dict.fromkeys(found))
