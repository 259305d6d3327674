"""Figures of profiles: the account of many kernels, compared with reading the file."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.measure import Figure, ratios
from tbsched.advice.explain.explain import explain
from tbsched.importers.programs import load_program

KERNELS = 60_000  # more than are predicted
_H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132}
_OPERATOR_US, _KERNEL_US = 9.8, 4.0


def profiles() -> Iterator[Figure]:
    """The account of a profile of one stream, whose host launches a kernel in each operator."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "trace.json"
        document = {"schemaVersion": 1, "deviceProperties": [_H100], "traceEvents": _events()}
        place.write_text(json.dumps(document), "utf-8")
        values = ratios(
            lambda: explain(load_program(place)).account,
            lambda: json.loads(place.read_bytes()),
            rounds=3,
        )
    yield Figure(f"account of {KERNELS:,} kernels", values, "<= 10", "json.loads of the file")


def _events() -> list[dict[str, Any]]:
    """Three events per kernel, as torch.profiler writes them."""
    found: list[dict[str, Any]] = []
    for number in range(KERNELS):
        us = round(number * _OPERATOR_US, 3)
        host = {"ph": "X", "pid": 9, "tid": 1}
        found += [
            {**host, "cat": "cpu_op", "name": "aten::add", "ts": us, "dur": 8.5},
            {
                **host, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": us + 2.1,
                "dur": 4.2, "args": {"correlation": number + 1},
            },
            {
                "ph": "X", "cat": "kernel", "name": "add", "pid": 0, "tid": 7, "ts": us + 7.5,
                "dur": _KERNEL_US,
                "args": {
                    "device": 0, "context": 1, "stream": 7, "correlation": number + 1,
                    "registers per thread": 32, "shared memory": 0, "grid": [198, 1, 1],
                    "block": [256, 1, 1],
                },
            },
        ]  # fmt: skip
    return found
