"""Small profiles that tests write: of torch.profiler, Nsight Systems and the examiner."""

from __future__ import annotations

import contextlib
import gzip
import json
import sqlite3
from pathlib import Path
from typing import Any

DEVICE = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132}


def kernel(
    correlation: int, ts: float, dur: float, stream: int = 7, /, **args: Any
) -> dict[str, Any]:
    """A kernel as Kineto writes it; ``name`` is the event's, everything else of its args."""
    name = args.pop("name", "k")
    given = {
        "queued": 0, "device": 0, "context": 1, "stream": stream, "correlation": correlation,
        "registers per thread": 32, "shared memory": 1024, "grid": [132, 1, 1],
        "block": [256, 1, 1], **args,
    }  # fmt: skip
    return {"ph": "X", "cat": "kernel", "name": name, "ts": ts, "dur": dur, "pid": 0,
            "tid": stream, "args": given}  # fmt: skip


def call(
    correlation: int, ts: float, dur: float, name: str = "cudaLaunchKernel", tid: int = 1
) -> dict[str, Any]:
    """A call of CUDA."""
    return {"ph": "X", "cat": "cuda_runtime", "name": name, "ts": ts, "dur": dur, "pid": 5,
            "tid": tid, "args": {"cbid": 1, "correlation": correlation}}  # fmt: skip


def move(
    correlation: int, ts: float, dur: float, stream: int = 7, name: str = "Memset (Device)"
) -> dict[str, Any]:
    """A copy or memset."""
    args = {"device": 0, "context": 1, "stream": stream, "correlation": correlation, "bytes": 4096}
    cat = "gpu_memset" if name.startswith("Memset") else "gpu_memcpy"
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": 0, "tid": stream,
            "args": args}  # fmt: skip


def sync(correlation: int, kind: str, stream: int = -1, **args: Any) -> dict[str, Any]:
    """What a call waits for."""
    given = {"cuda_sync_kind": kind, "stream": stream, "correlation": correlation, "device": 0,
             "context": 1, **args}  # fmt: skip
    return {"ph": "X", "cat": "cuda_sync", "name": kind, "ts": 0, "dur": 0, "pid": 0, "tid": stream,
            "args": given}  # fmt: skip


def kineto(place: Path, *events: object, **top: object) -> Path:
    """A trace of these events."""
    document = {"schemaVersion": 1, "deviceProperties": [DEVICE], "traceEvents": events, **top}
    data = json.dumps(document).encode()
    place.write_bytes(gzip.compress(data, mtime=0) if place.suffix == ".gz" else data)
    return place


# What of an export there is in some year, and the columns that came later.
VERSIONS = (2020, 2023, 2026)
_KERNEL = {
    "start": 2020, "end": 2020, "deviceId": 2020, "contextId": 2020, "greenContextId": 2026,
    "streamId": 2020, "correlationId": 2020, "globalPid": 2020, "demangledName": 2020,
    "shortName": 2020, "mangledName": 2023, "launchType": 2023, "registersPerThread": 2020,
    "gridX": 2020, "gridY": 2020, "gridZ": 2020, "blockX": 2020, "blockY": 2020, "blockZ": 2020,
    "staticSharedMemory": 2020, "dynamicSharedMemory": 2020, "localMemoryPerThread": 2020,
    "sharedMemoryExecuted": 2020, "graphNodeId": 2023, "graphId": 2026, "clusterX": 2026,
    "clusterY": 2026, "clusterZ": 2026, "sharedMemoryRequestedPercentage": 2026,
}  # fmt: skip
_MOVE = {"start": 2020, "end": 2020, "deviceId": 2020, "contextId": 2020, "streamId": 2020,
         "correlationId": 2020, "globalPid": 2020, "bytes": 2020, "graphNodeId": 2023}  # fmt: skip
_OF_EVENT = {"deviceId": 2020, "contextId": 2020, "streamId": 2020, "correlationId": 2020,
             "globalPid": 2020, "eventId": 2020, "eventSyncId": 2026}  # fmt: skip
_FUNCTION = {"start": 2020, "end": 2020, "globalTid": 2020, "nameId": 2020}
TABLES: dict[str, dict[str, int]] = {
    "CUPTI_ACTIVITY_KIND_KERNEL": _KERNEL,
    "CUPTI_ACTIVITY_KIND_MEMCPY": {**_MOVE, "copyKind": 2020, "srcKind": 2020, "dstKind": 2020,
        "migrationCause": 2020},
    "CUPTI_ACTIVITY_KIND_MEMSET": {**_MOVE, "value": 2020, "memKind": 2020},
    "CUPTI_ACTIVITY_KIND_RUNTIME": {"start": 2020, "end": 2020, "eventClass": 2020,
        "globalTid": 2020, "correlationId": 2020, "nameId": 2020, "returnValue": 2020},
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": {**_OF_EVENT, "start": 2020, "end": 2020,
        "syncType": 2020},
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": _OF_EVENT,
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": {"start": 2023, "end": 2023, "deviceId": 2023,
        "graphId": 2023, "graphExecId": 2023, "contextId": 2023, "streamId": 2023,
        "correlationId": 2023, "globalPid": 2023},
    "CUPTI_ACTIVITY_KIND_OVERHEAD": _FUNCTION,
    "PROFILER_OVERHEAD": _FUNCTION,
    "OSRT_API": _FUNCTION,
    "NVTX_EVENTS": {"start": 2020, "end": 2020, "eventType": 2020, "text": 2020, "textId": 2020,
        "globalTid": 2020},
    "StringIds": {"id": 2020, "value": 2020},
    "TARGET_INFO_GPU": {"id": 2020, "cuDevice": 2023, "name": 2020, "smCount": 2020,
        "computeMajor": 2023, "computeMinor": 2023, "threadsPerWarp": 2023, "asyncEngines": 2023,
        "maxWarpsPerSm": 2023, "maxBlocksPerSm": 2023, "maxRegistersPerSm": 2023,
        "maxShmemPerSm": 2023, "maxShmemPerBlockOptin": 2023},
    "TARGET_INFO_CUDA_GPU": {"deviceId": 2020, "name": 2020, "numMultiprocessors": 2020,
        "computeCapabilityMajor": 2020, "computeCapabilityMinor": 2020},
    "TARGET_INFO_CUDA_DEVICE": {"gpuId": 2023, "cudaId": 2023, "pid": 2023,
        "numMultiprocessors": 2026},
    "TARGET_INFO_CUDA_NULL_STREAM": {"streamId": 2020, "processId": 2020},
    "TARGET_INFO_CUDA_STREAM": {"streamId": 2023, "processId": 2023, "contextId": 2023,
        "priority": 2023, "flag": 2023},
    "TARGET_INFO_CUDA_CONTEXT_INFO": {"nullStreamId": 2023, "processId": 2023, "contextId": 2023,
        "deviceId": 2023},
    "ENUM_CUDA_KERNEL_LAUNCH_TYPE": {"id": 2023, "name": 2023, "label": 2023},
    "ENUM_CUDA_MEM_KIND": {"id": 2020, "name": 2020, "label": 2020},
}  # fmt: skip
PROCESS = 5
_GLOBAL = PROCESS << 24
_CALLS = {
    1: "cudaLaunchKernel_v7000", 2: "cudaMemcpyAsync_v3020", 3: "cudaEventRecord_v3020",
    4: "cudaStreamWaitEvent_v3020", 5: "cudaDeviceSynchronize_v3020", 6: "cudaGraphLaunch_v10000",
    7: "gemm<float>(int)", 8: "add",
}  # fmt: skip


def row_of_kernel(
    correlation: int, start: int, end: int, stream: int, **more: Any
) -> dict[str, Any]:
    """A kernel of 132 x 256, with some of everything."""
    return {
        "start": start, "end": end, "deviceId": 0, "contextId": 1, "streamId": stream,
        "correlationId": correlation, "globalPid": _GLOBAL, "demangledName": 7, "shortName": 8,
        "launchType": 1, "registersPerThread": 40, "gridX": 66, "gridY": 2, "gridZ": 1,
        "blockX": 128, "blockY": 2, "blockZ": 1, "staticSharedMemory": 1000,
        "dynamicSharedMemory": 24, "localMemoryPerThread": 16, "sharedMemoryExecuted": 32768,
        "clusterX": 2, "clusterY": 1, "clusterZ": 1, "sharedMemoryRequestedPercentage": 50,
        **more,
    }  # fmt: skip


def row_of_call(
    correlation: int, start: int, end: int, name: int = 1, tid: int = 1
) -> dict[str, Any]:
    """A call, by the number of its name."""
    return {"start": start, "end": end, "globalTid": _GLOBAL + tid, "correlationId": correlation,
            "nameId": name}  # fmt: skip


def rows() -> dict[str, list[dict[str, Any]]]:
    """A copy and two kernels, of which the second waits in another stream, then a wait for all."""
    of = {"deviceId": 0, "contextId": 1, "globalPid": _GLOBAL, "eventId": 9}
    return {
        "CUPTI_ACTIVITY_KIND_KERNEL": [
            row_of_kernel(12, 20_000, 40_000, 7),
            row_of_kernel(15, 45_000, 50_000, 13, launchType=2),
        ],
        "CUPTI_ACTIVITY_KIND_MEMCPY": [
            {**of, "start": 10_000, "end": 15_000, "streamId": 7, "correlationId": 11,
             "bytes": 4096, "copyKind": 1, "srcKind": 1, "dstKind": 2},
        ],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [
            row_of_call(11, 1_000, 6_000, 2), row_of_call(12, 8_000, 12_000),
            row_of_call(13, 12_500, 13_000, 3), row_of_call(14, 13_200, 13_500, 4),
            row_of_call(15, 14_000, 18_000), row_of_call(16, 19_000, 55_000, 5),
        ],
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT": [{**of, "streamId": 7, "correlationId": 13}],
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": [
            {**of, "start": 13_300, "end": 13_400, "streamId": 13, "correlationId": 14,
             "syncType": 2},
        ],
        "StringIds": [{"id": number, "value": value} for number, value in _CALLS.items()],
        "TARGET_INFO_GPU": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "smCount": 132}],
        "TARGET_INFO_CUDA_STREAM": [
            {"streamId": 7, "processId": PROCESS, "contextId": 1, "priority": 0, "flag": 3},
            {"streamId": 13, "processId": PROCESS, "contextId": 1, "priority": -2, "flag": 1},
        ],
        "TARGET_INFO_CUDA_CONTEXT_INFO": [
            {"nullStreamId": 7, "processId": PROCESS, "contextId": 1},
        ],
        "ENUM_CUDA_KERNEL_LAUNCH_TYPE": [
            {"id": 1, "name": "CUDA_KERNEL_LAUNCH_TYPE_REGULAR"},
            {"id": 2, "name": "CUDA_KERNEL_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE"},
        ],
        "ENUM_CUDA_MEM_KIND": [
            {"id": 0, "name": "CUDA_MEMOPR_MEMORY_KIND_PAGEABLE"},
            {"id": 1, "name": "CUDA_MEMOPR_MEMORY_KIND_PINNED"},
        ],
    }  # fmt: skip


def nsys(place: Path, content: dict[str, list[dict[str, Any]]], version: int = 2026) -> Path:
    """An export of these rows with the tables and the columns of a year."""
    place.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(place)) as database, database:
        for table, columns in TABLES.items():
            there = [name for name, since in columns.items() if since <= version]
            if not there or (table not in content and table != "CUPTI_ACTIVITY_KIND_RUNTIME"):
                continue  # tables without rows are not written
            quoted = ", ".join(f'"{name}"' for name in there)
            database.execute(f"CREATE TABLE {table} ({quoted})")
            for row in content.get(table, []):
                values = [row.get(name) for name in there]
                marks = ", ".join("?" * len(there))
                database.execute(f"INSERT INTO {table} VALUES ({marks})", values)
    return place


def log(place: Path, *entries: dict[str, Any], **top: object) -> Path:
    """A log of the examiner."""
    document = {"scenario_name": "s", "benchmark_name": "spin", "label": "one", **top,
                "times": [{}, {"cpu_times": [0.1, 0.2]}, *entries]}  # fmt: skip
    place.write_text(json.dumps(document), "utf-8")
    return place


def entry(start: float, *ends: float, **more: object) -> dict[str, Any]:
    """A kernel whose blocks start at once, of 128 threads each."""
    times = [time for end in ends for time in (start, end)]
    return {
        "block_count": len(ends), "thread_count": 128, "shared_memory": 0,
        "cuda_launch_times": [start - 2e-5, start - 1e-5, 0], "block_times": times,
        "block_smids": [*range(len(ends))], **more,
    }  # fmt: skip
