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
from tbsched.importers.reading.stream_numbers import FileStream
from tbsched.program.gpu_facts import GpuFacts

_NON_BLOCKING, _NULL = 2, 3  # the kinds of streams
_WARP = 32  # threads
MAX_DEVICES = 2**31 - 1
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
_Facts: TypeAlias = dict[str, object]


class Gpus:
    """The GPUs of a file: each process numbers those that it sees."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        # A process, its number of a GPU, the file's number, and how many SMs the process sees.
        columns = ("pid", "cudaId", "gpuId", "numMultiprocessors")
        self._seen = [*tables.rows(DEVICES, columns)]
        self._ids = {(process, device): gpu for process, device, gpu, _ in self._seen}
        gpus_by_device = defaultdict(set)
        for (_, device), gpu in self._ids.items():
            gpus_by_device[device].add(gpu)
        self._is_ambiguous = any(len(gpus) > 1 for gpus in gpus_by_device.values())
        contexts = tables.rows(CONTEXTS, ("processId", "contextId", "deviceId"))
        self._contexts = {(process, context): device for process, context, device in contexts}

    def of_row(self, process: int | None, device: int | None, context: object) -> int | None:
        """Returns the GPU of a row, by its device or else its context; None: nothing says it. A
        process that sees one GPU uses no other."""
        if device is None:
            device = self._contexts.get((process, context))
        if device is None:
            devices = {device_id for pid, device_id, _, _ in self._seen if process in (None, pid)}
            device = devices.pop() if len(devices) == 1 else None
        if type(device) is int and 0 <= device <= MAX_DEVICES:
            return self.numbered(process, device)
        return None

    def numbered(self, process: int | None, device: int) -> int:
        """Returns the number of a GPU: CUDA's own, if that is the same GPU in all processes."""
        gpu = self._ids.get((process, device)) if self._is_ambiguous else None
        return gpu if type(gpu) is int and 0 <= gpu < 2**31 else device

    def facts(self, process: int | None, gpu_number: int) -> GpuFacts:
        """Returns what the export says of a GPU, by its number in ``numbered``."""
        matching = (
            (gpu, sms)
            for pid, device, gpu, sms in self._seen
            if process in (None, pid or process)
            and gpu_number == (gpu if self._is_ambiguous else device)
        )
        gpu, sms = next(matching, (None, None))
        facts = {} if gpu is None else self._row(GPUS, "id", gpu, "maxWarpsPerSm", _GPU)
        tables = iter(_TABLES)
        while not facts and (table_columns := next(tables, None)):
            table, key, warps, names = table_columns
            facts = self._row(table, key, gpu_number, warps, names)
        return GpuFacts.of(facts | ({"sms": sms} if sms else {}))  # of a MIG instance fewer

    def _row(
        self, table: str, key: str, wanted_id: object, warps: str, names: dict[str, str]
    ) -> _Facts:
        """Returns the facts in a table's row; 0 means unknown, except for the minor version."""
        for row_id, warps_per_sm, *values in self._tables.rows(
            table, (key, warps, *names.values())
        ):
            if row_id == wanted_id:
                facts = dict(zip(names, values, strict=True))
                if type(warps_per_sm) is int:
                    facts["threads_per_sm"] = warps_per_sm * _WARP
                return {name: value for name, value in facts.items() if value or name == "minor"}
        return {}


@dataclass(slots=True)
class Streams:
    """What is known of the streams of a process, as the file names them."""

    legacy: set[FileStream] = field(default_factory=set)
    non_blocking: dict[FileStream, bool] = field(default_factory=dict)
    priorities: dict[FileStream, int] = field(default_factory=dict)

    @classmethod
    def of(cls, tables: Tables, process: int | None) -> Streams:
        """Returns the streams of a process, from the tables of an export.

        Raises:
            ValueError: a number that cannot be.
        """
        streams = cls()
        columns = ("streamId", "contextId", "processId", "priority", "flag")
        for stream_id, context, pid, priority, flag in tables.rows(STREAMS, columns):
            number = maybe("streamId", stream_id)
            if number is None or process not in (None, pid or process):
                continue
            stream = FileStream(maybe("contextId", context), number)
            if flag == _NULL:
                streams.legacy.add(stream)
            elif flag is not None:
                streams.non_blocking[stream] = flag == _NON_BLOCKING
            if type(priority) is int:
                streams.priorities[stream] = priority
        for table, name in ((CONTEXTS, "nullStreamId"), (NULL_STREAMS, "streamId")):
            for stream_id, context, pid in tables.rows(table, (name, "contextId", "processId")):
                number = maybe(name, stream_id)
                if number is not None and process in (None, pid or process):
                    streams.legacy.add(FileStream(maybe("contextId", context), number))
        return streams
