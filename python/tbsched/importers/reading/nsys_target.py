"""What an export of Nsight Systems says of GPUs and of streams as such."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TypeAlias

from tbsched.importers.reading.nsys_tables import (
    CONTEXTS,
    CUDA_GPUS,
    DEVICES,
    GPUS,
    NULL_STREAMS,
    STREAMS,
    Tables,
    maybe,
)
from tbsched.program.gpu_facts import GpuFacts

_NON_BLOCKING, _NULL = 2, 3  # the kinds of streams
_WARP = 32  # threads
MOST_DEVICES = 2**31 - 1
# The columns of the table of GPUs, in exports of these years and of earlier ones.
_GPU = {
    "name": "name", "sms": "smCount", "major": "computeMajor", "minor": "computeMinor",
    "warp_size": "threadsPerWarp", "copy_engines": "asyncEngines",
    "blocks_per_sm": "maxBlocksPerSm", "registers_per_sm": "maxRegistersPerSm",
    "shared_memory_per_sm": "maxShmemPerSm", "shared_memory_per_block": "maxShmemPerBlockOptin",
}  # fmt: skip
_CUDA_GPU = {
    "name": "name", "sms": "numMultiprocessors", "major": "computeCapabilityMajor",
    "minor": "computeCapabilityMinor", "warp_size": "numThreadsPerWarp",
    "copy_engines": "numMemcpyEngines", "blocks_per_sm": "maxBlocksPerMultiprocessor",
    "registers_per_sm": "maxRegistersPerMultiprocessor",
    "shared_memory_per_sm": "maxSharedMemoryPerMultiprocessor",
}  # fmt: skip
# A table, its column with the number of a GPU, that with its warps, and the others. CUDA may
# number GPUs in another order than the table does.
_TABLES = (
    (GPUS, "cuDevice", "maxWarpsPerSm", _GPU),
    (GPUS, "id", "maxWarpsPerSm", _GPU),
    (CUDA_GPUS, "deviceId", "maxWarpsPerMultiprocessor", _CUDA_GPU),
    (GPUS, "deviceId", "maxWarpsPerSm", _GPU),
)
_Said: TypeAlias = dict[str, object]


class Gpus:
    """The GPUs of a file: each process numbers those that it sees."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        # A process, its number of a GPU, the file's number, and how many SMs the process sees.
        columns = ("pid", "cudaId", "gpuId", "numMultiprocessors")
        self._seen = [*tables.rows(DEVICES, columns)]
        self._ids = {(process, device): number for process, device, number, _ in self._seen}
        found = defaultdict(set)
        for (_, device), number in self._ids.items():
            found[device].add(number)
        self._is_ambiguous = any(len(numbers) > 1 for numbers in found.values())
        contexts = tables.rows(CONTEXTS, ("processId", "contextId", "deviceId"))
        self._contexts = {(process, context): device for process, context, device in contexts}

    def of_row(self, process: int | None, device: int | None, context: object) -> int | None:
        """Returns the GPU of a row, by its device or else its context; None: nothing says it.

        A process that sees one GPU uses no other.
        """
        if device is None:
            device = self._contexts.get((process, context))
        if device is None:
            seen = {number for of, number, _, _ in self._seen if process in (None, of)}
            device = seen.pop() if len(seen) == 1 else None
        if type(device) is int and 0 <= device <= MOST_DEVICES:
            return self.numbered(process, device)
        return None

    def numbered(self, process: int | None, device: int) -> int:
        """A number that no other GPU has: CUDA's, if that is the same GPU in all processes."""
        number = self._ids.get((process, device)) if self._is_ambiguous else None
        return number if type(number) is int and 0 <= number < 2**31 else device

    def facts(self, process: int | None, number: int) -> GpuFacts:
        """Returns what the export says of a GPU, by its number in ``numbered``."""
        seen = (
            (gpu, sms)
            for of, device, gpu, sms in self._seen
            if process in (None, of or process)
            and number == (gpu if self._is_ambiguous else device)
        )
        gpu, sms = next(seen, (None, None))
        said = {} if gpu is None else self._row(GPUS, "id", gpu, "maxWarpsPerSm", _GPU)
        tables = iter(_TABLES)
        while not said and (asked := next(tables, None)):
            table, key, warps, names = asked
            said = self._row(table, key, number, warps, names)
        return GpuFacts.of(said | ({"sms": sms} if sms else {}))  # of a MIG instance fewer

    def _row(
        self, table: str, key: str, number: object, warps: str, names: dict[str, str]
    ) -> _Said:
        """Returns the facts in a table's row; 0 means unknown, except for the minor version."""
        for found, warps_per_sm, *values in self._tables.rows(table, (key, warps, *names.values())):
            if found == number:
                said = dict(zip(names, values, strict=True))
                if type(warps_per_sm) is int:
                    said["threads_per_sm"] = warps_per_sm * _WARP
                return {name: value for name, value in said.items() if value or name == "minor"}
        return {}


@dataclass(slots=True)
class Streams:
    """What is known of the streams of a process, by their numbers."""

    legacy: set[int] = field(default_factory=set)
    non_blocking: dict[int, bool] = field(default_factory=dict)
    priorities: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, tables: Tables, process: int | None) -> Streams:
        """Reads the streams of a process from the tables.

        Raises:
            ValueError: a number that cannot be.
        """
        found = cls()
        columns = ("streamId", "processId", "priority", "flag")
        for number, of, priority, flag in tables.rows(STREAMS, columns):
            stream = maybe("streamId", number)
            if stream is None or process not in (None, of or process):
                continue
            if flag == _NULL:
                found.legacy.add(stream)
            elif flag is not None:
                found.non_blocking[stream] = flag == _NON_BLOCKING
            if type(priority) is int:
                found.priorities[stream] = priority
        for table, name in ((CONTEXTS, "nullStreamId"), (NULL_STREAMS, "streamId")):
            for number, of in tables.rows(table, (name, "processId")):
                stream = maybe(name, number)
                if stream is not None and process in (None, of or process):
                    found.legacy.add(stream)
        return found
