"""Recorded captures as Nsight Systems would export them: CUPTI's own records, other columns."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from importers.written import nsys

Row: TypeAlias = dict[str, Any]

_PROCESS = 5 << 24
_STREAM_KINDS = {"default": 1, "non_blocking": 2, "null": 3}
_WAITS = {"event": 1, "stream_wait_event": 2, "stream": 3, "context": 4}
_COPY_KINDS = {"h2d": 1, "d2h": 2, "d2d": 8}
_MEMORIES = {"pageable": 0, "pinned": 1, "device": 2}
_LAUNCH_TYPES = {False: 1, True: 2}


class _Export:
    """The rows of the lines of a capture."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Row]] = {}
        self.kernels: list[Row] = []
        self.functions: list[int] = []
        self.strings: list[str] = []
        self._add("ENUM_CUDA_KERNEL_LAUNCH_TYPE", id=1, name="REGULAR")
        self._add("ENUM_CUDA_KERNEL_LAUNCH_TYPE", id=2, name="COOPERATIVE_SINGLE_DEVICE")
        for name, number in _MEMORIES.items():
            self._add("ENUM_CUDA_MEM_KIND", id=number, name=name.upper())

    def _add(self, table: str, **row: object) -> None:
        self.rows.setdefault(table, []).append(row)

    def _string(self, text: str) -> int:
        if text not in self.strings:
            self.strings.append(text)
            self._add("StringIds", id=self.strings.index(text), value=text)
        return self.strings.index(text)

    def device(self, line: Row) -> None:
        self._add("TARGET_INFO_GPU", id=0, name=line["name"], smCount=line["sms"])

    def stream(self, line: Row) -> None:
        self._add(
            "TARGET_INFO_CUDA_STREAM", streamId=line["stream"], processId=5, contextId=1,
            priority=line["priority"], flag=_STREAM_KINDS[line["kind"]],
        )  # fmt: skip

    def function(self, line: Row) -> None:
        self.functions.append(self._string(line["name"]))

    def kernel(self, line: Row) -> None:
        (x, y, z), (bx, by, bz), (cx, cy, cz) = (
            line["grid"], line["block"], line.get("cluster", (1, 1, 1)),
        )  # fmt: skip
        self.kernels.append({
            "demangledName": line["name"], "launchType": _LAUNCH_TYPES[line["cooperative"]],
            "registersPerThread": line["registers"], "gridX": x, "gridY": y, "gridZ": z,
            "blockX": bx, "blockY": by, "blockZ": bz, "clusterX": cx, "clusterY": cy,
            "clusterZ": cz, "staticSharedMemory": line["static_shared_memory"],
            "dynamicSharedMemory": line["dynamic_shared_memory"],
            "localMemoryPerThread": line["local_memory"],
            "sharedMemoryRequestedPercentage": line.get("carveout"),
        })  # fmt: skip

    def _ran(self, table: str, line: Row, **more: object) -> None:
        start, end = line["at"]
        self._add(
            f"CUPTI_ACTIVITY_KIND_{table}", start=start, end=end, deviceId=0, contextId=1,
            streamId=line["stream"], correlationId=line["call"], globalPid=_PROCESS,
            graphNodeId=line.get("node"), graphId=line.get("graph"), **more,
        )  # fmt: skip

    def ran(self, line: Row) -> None:
        kernel = self.kernels[line["ran"]]
        name = self._string(kernel["demangledName"])
        more = {**kernel, "demangledName": name, "sharedMemoryExecuted": line["configured"]}
        self._ran("KERNEL", line, **more)

    def copy(self, line: Row) -> None:
        ends = {"srcKind": _MEMORIES[line["from"]], "dstKind": _MEMORIES[line["to"]]}
        self._ran("MEMCPY", line, bytes=line["bytes"], copyKind=_COPY_KINDS[line["copy"]], **ends)

    def memset(self, line: Row) -> None:
        self._ran("MEMSET", line, bytes=line["memset"], memKind=_MEMORIES[line["to"]])

    def call(self, line: Row) -> None:
        start, end = line["at"]
        self._add(
            "CUPTI_ACTIVITY_KIND_RUNTIME", start=start, end=end, nameId=self.functions[line["of"]],
            globalTid=_PROCESS + line["thread"], correlationId=line["call"],
        )  # fmt: skip

    def event(self, line: Row) -> None:
        self._add(
            "CUPTI_ACTIVITY_KIND_CUDA_EVENT", deviceId=0, contextId=1, streamId=line["stream"],
            correlationId=line["call"], globalPid=_PROCESS, eventId=line["event"],
        )  # fmt: skip

    def wait(self, line: Row) -> None:
        self._add(
            "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", start=line["at"][0], end=line["at"][1],
            deviceId=0, contextId=1, correlationId=line["call"], globalPid=_PROCESS,
            streamId=line.get("stream", 2**32 - 1), eventId=line.get("event", 2**32 - 1),
            syncType=_WAITS[line["wait"]],
        )  # fmt: skip


_TAKES: dict[str, Callable[[_Export, Row], None]] = {
    name: getattr(_Export, name)
    for name in (
        "device", "stream", "function", "kernel", "ran", "copy", "memset", "call", "event", "wait",
    )
}  # fmt: skip


def nsys_of(capture: Path, place: Path, version: int) -> Path:
    """An export of a year, of what a capture recorded; what nsys has no column for is left out."""
    export = _Export()
    with lzma.open(capture, "rt", encoding="utf-8") as lines:
        for text in lines:
            line = json.loads(text)
            if take := _TAKES.get(next(iter(line))):
                take(export, line)
    return nsys(place, export.rows, version)
