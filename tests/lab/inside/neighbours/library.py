"""Kernels of libraries, through PyTorch: alone, and beside real kernels."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import plan

if TYPE_CHECKING:
    from record import Recorder

BESIDE = (
    ("vector_add", "two"), ("mandelbrot", "one"), ("polynomial", "one"), ("sparse", "two"),
    ("walsh", "one"), ("gathering", "one"), ("hashing", "two"), ("stencil", "whole"),
)  # fmt: skip


class Operations:
    """Calls of PyTorch in a stream of the card."""

    def __init__(self, recorder: Recorder) -> None:
        import torch

        self._torch, self._recorder = torch, recorder
        card: Any = recorder.card
        self._streams = [torch.cuda.ExternalStream(stream.ptr) for stream in card.streams[:2]]
        half = {"device": "cuda", "dtype": torch.float16}
        a, b = torch.randn(2048, 2048, **half), torch.randn(2048, 2048, **half)
        wide = torch.randn(8192, 2048, device="cuda")
        image = torch.randn(16, 64, 56, 56, **half)
        weight = torch.randn(64, 64, 3, 3, **half)
        single = torch.randn(1024, 1024, device="cuda")
        out = torch.empty(2048, 2048, **half)
        single_out = torch.empty_like(single)
        self.calls: dict[str, Callable[[], object]] = {
            "matmul_half": lambda: torch.mm(a, b, out=out),
            "matmul_single": lambda: torch.mm(single, single, out=single_out),
            "softmax": lambda: torch.softmax(wide, 1),
            "layer_norm": lambda: torch.nn.functional.layer_norm(wide, (2048,)),
            "gelu": lambda: torch.nn.functional.gelu(wide),
            "sum": lambda: wide.sum(1),
            "cumsum": lambda: wide.cumsum(1),
            "convolution": lambda: torch.nn.functional.conv2d(image, weight, padding=1),
        }
        for number in range(2):
            with torch.cuda.stream(self._streams[number]):
                for call in self.calls.values():
                    for _ in range(2):
                        call()
        torch.cuda.synchronize()

    def call(self, name: str, stream: int) -> None:
        """Makes it, in a stream."""
        with self._torch.cuda.stream(self._streams[stream]):
            self.calls[name]()

    def launches(self, name: str) -> list[dict[str, Any]]:
        """What it launches, as the profiler of PyTorch says."""
        torch = self._torch
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            self.call(name, 0)
            torch.cuda.synchronize()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            profile.export_chrome_trace(str(path))
            events = json.loads(path.read_text("utf-8"))["traceEvents"]
        keys = ("grid", "block", "registers per thread", "shared memory")
        return [
            {"name": event["name"][:80], "us": event["dur"], **{k: event["args"][k] for k in keys}}
            for event in events
            if event.get("cat") == "kernel"
        ]


def library(recorder: Recorder) -> Iterator[Callable[[], object]]:
    """A case for each call, and for each call beside something."""
    if not hasattr(recorder.card, "streams"):
        return
    operations = Operations(recorder)
    names = list(operations.calls)
    for name in names:
        yield lambda name=name: timed(recorder, operations, name)
    for real in BESIDE:
        for name in names:
            yield lambda name=name, real=real: beside(recorder, operations, name, real)
    for name in names:
        yield lambda name=name: recorder.write(
            "library_launches", name=name, launches=operations.launches(name)
        )


def timed(recorder: Recorder, operations: Operations, name: str) -> None:
    """A call alone: its time, between marks in its stream."""
    card: Any = recorder.card
    runs = []
    for _ in range(4):
        card.clear()
        recorder.mark_begin(np.uint32(1))
        operations.call(name, 0)
        recorder.mark_end()
        begin, end = card.mark()
        runs.append(end - begin)
    recorder.write("library", name=name, runs=runs[1:])


def beside(recorder: Recorder, operations: Operations, name: str, real: tuple[str, str]) -> None:
    """A call, and a real kernel in another stream that begins when the call does."""
    card: Any = recorder.card
    grid = plan.grid_of(*real, card.sms)
    runs = []
    for _ in range(5):
        card.clear()
        recorder.mark_begin(np.uint32(1))
        operations.call(name, 0)
        recorder.mark_end()
        recorder.real(1, real[0], grid)
        begin, end = card.mark()
        own = card.records(1, grid)
        runs.append([0, end - begin, *(int(at) - begin for at in _ends(own))])
    recorder.write("library_pair", name=name, of=[*real, grid], runs=runs[1:])


def _ends(own: Any) -> tuple[int, int]:
    return int(own["start_ns"].min()), int(own["end_ns"].max())
