"""What a profile does not say, what is assumed instead, and the sentences that say so."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TypeVar

from tbsched.importers.records import Kernel, Recording, Transfer

REGISTERS = 32
_MAX_STREAMS_NAMED = 8
_Value = TypeVar("_Value")
# Assumption for each field, in words.
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

_LOADING = (
    "Which launches load their kernel (lazy loading): predicted as if none did; in the account "
    "those do whose first call took more than 100 us on an idle GPU."
)


# Fields that have another name in ``tbsched.Launch``.
_FIELDS = {
    "shared memory": "shared_memory",
    "local memory": "local_memory",
    "cooperative launch": "cooperative",
    "programmatic launch": "programmatic",
}
# Names of kernels that contain the shape of clusters: cuBLAS's nvjet_sm90_hsh_128x64_64x8_1x2_…,
# cuDNN's …_cga1x2x1_… and CUTLASS's …_128x128x64_2x1x1_0_….
_CLUSTERS = (
    re.compile(r"^nvjet_sm\d+_[a-z0-9]+_\d+x\d+_\d+x\d+_(\d)x(\d)_"),
    re.compile(r"_cga(\d)x(\d)x(\d)_"),
    re.compile(r"cutlass3x_\w*?_\d+x\d+x\d+_(\d)x(\d)x(\d)_0_"),
)


class Guesses:
    """Counts what had to be assumed while a program is made."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._kernels = 0
        self._fields: Counter[str] = Counter()
        self._notes: Counter[str] = Counter()
        self._streams: dict[str, dict[str, None]] = {}

    def given(self, field: str, value: _Value | None, otherwise: _Value) -> _Value:
        """Returns a value of the profile, or what is assumed if the profile has none."""
        if value is not None:
            return value
        self._fields[field] += 1
        return otherwise

    def of_stream(self, sentence: str, stream: int) -> None:
        """Notes an assumption about a stream; ``{streams}`` stands for all with the same one."""
        self._streams.setdefault(sentence, {})[str(stream)] = None

    def note(self, sentence: str, count: int = 1) -> None:
        """Notes an assumption; ``{count}`` in the sentence stands for how often it was made."""
        self._notes[sentence] += count

    def shared_memory(self, kernel: Kernel) -> int:
        """Returns the shared memory of a kernel's block, static and dynamic, in bytes."""
        parts = (kernel.static_shared_memory, kernel.dynamic_shared_memory)
        known = [part for part in parts if part is not None]
        return self.given("shared memory", sum(known) if known else None, 0)

    def carveout(self, kernel: Kernel) -> int | None:
        """Returns the carveout in per cent; None: not set, so the driver chooses."""
        if "carveout" in self._recording.sources:
            return kernel.carveout
        return self.given("carveout", kernel.carveout, None)

    def cluster(self, kernel: Kernel) -> int:
        """Returns the blocks per cluster; of a profile without the field, by the kernel's name."""
        if kernel.cluster is None:
            for pattern in _CLUSTERS:
                match = pattern.search(kernel.name)
                size = math.prod(map(int, match.groups())) if match else 0
                if size and kernel.grid is not None and math.prod(kernel.grid) % size == 0:
                    self.note("The clusters of {count} launches: taken from names of kernels.")
                    return size
        return self.given("cluster", kernel.cluster, 1)

    def pinned(self, moved: Transfer) -> bool:
        """Returns whether the host memory of a transfer is pinned; assumed if unknown."""
        if moved.pinned is None:
            self.note("Whether the memory of {count} copies is pinned: assumed that it is.")
        return moved.pinned is not False

    def count_kernel(self) -> None:
        """Counts a kernel, after each of its fields was read once."""
        self._kernels += 1

    def sources(self) -> dict[str, str]:
        """Returns the sources of the fields that the profile has for some kernel."""
        without_values = {
            _FIELDS.get(f, f) for f, count in self._fields.items() if count == self._kernels
        }
        return {k: v for k, v in self._recording.sources.items() if k not in without_values}

    def sentences(self) -> tuple[str, ...]:
        """Returns all assumptions, those of the reader first."""
        sentences = list(self._recording.missing)
        for count in sorted(set(self._fields.values()), reverse=True):
            fields = [
                field_name for field, field_name in _ASSUMED.items() if self._fields[field] == count
            ]
            share = f"{count} of {self._kernels} kernels"
            kernels = "every kernel" if count == self._kernels else share
            sentences.append(f"Of {kernels}: assumed {', '.join(fields)}.")
        if not self._recording.first_uses:
            sentences.append(_LOADING)
        sentences += [sentence.format(count=count) for sentence, count in self._notes.items()]
        for sentence, streams in self._streams.items():
            first = [*streams][:_MAX_STREAMS_NAMED]
            more = f" and {len(streams) - len(first)} more" if len(streams) > len(first) else ""
            sentences.append(sentence.format(streams=", ".join(first) + more))
        return tuple(dict.fromkeys(sentences))
