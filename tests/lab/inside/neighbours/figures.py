"""The experiments of the hierarchy paper's Figures 5 to 8, on the GPU here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from record import Recorder

HALVES = (
    "halves_fp64_fp64", "halves_fp64_logic", "halves_fp64_multiply", "halves_fp32_fp32",
    "halves_fp32_logic", "halves_fp32_fp64", "halves_logic_logic",
)  # fmt: skip
MEGABYTE = 1 << 20
COPIES = ("set", "d2d", "h2d", "d2h")
# A part of a vector addition: 16 KiB of each of three arrays.
PART = 3 * 16384
FOOTPRINTS = (MEGABYTE // 2, *(k * MEGABYTE for k in (1, 2, 5, 10, 20, 50, 100, 200, 500)))


def figures(recorder: Recorder) -> Iterator[Callable[[], object]]:
    """A case for each point."""
    for threads in (128, 160):
        yield lambda threads=threads: mandelbrots(recorder, threads)
    for name in HALVES:
        for threads in (256, 512):
            yield lambda name=name, threads=threads: halves(recorder, name, threads)
    for count in (0, 1, 2, 3):
        for kind in COPIES:
            yield lambda k=kind, n=count: beside_copies(recorder, 50 * MEGABYTE, k, n, "7")
    for footprint in FOOTPRINTS:
        for kind in COPIES:
            for count in (0, 1):
                yield lambda f=footprint, k=kind, n=count: beside_copies(recorder, f, k, n, "8")


def mandelbrots(recorder: Recorder, threads: int, repeats: int = 5) -> None:
    """Figure 5: four blocks of 128 threads in one stream, and four of other ones in another."""
    runs = []
    for _ in range(repeats):
        recorder.real(0, "mandelbrot", 4, 128)
        recorder.real(1, "mandelbrot", 4, threads)
        found = [recorder.card.records(k, 4).copy() for k in range(2)]
        first = int(min(own["start_ns"].min() for own in found))
        runs.append([
            [[int(row["sm"]), int(row["start_ns"]) - first, int(row["end_ns"]) - first]
             for row in own] for own in found
        ])  # fmt: skip
    recorder.write("figure5", threads=threads, runs=runs)


def halves(recorder: Recorder, name: str, threads: int, repeats: int = 5) -> None:
    """Figure 6: one block; of each eight warps four do one thing and four another."""
    runs = []
    for _ in range(repeats):
        at = np.uint64(recorder.card.address("records0"))
        recorder.card.launch(name, 1, threads, at, np.uint32(200))
        row = recorder.card.records(0, 1)[0]
        runs.append(int(row["end_ns"]) - int(row["start_ns"]))
    recorder.write("figure6", name=name, threads=threads, runs=runs)


def beside_copies(
    recorder: Recorder, footprint: int, kind: str, streams: int, figure: str, repeats: int = 4
) -> None:
    """Figures 7 and 8: a vector addition while copies or memsets of 50 MB go on."""
    parts = -(-footprint // PART)
    card, runs = recorder.card, []
    each = 12 if kind in ("h2d", "d2h") else 60
    for _ in range(repeats):
        for k in range(each if streams else 0):
            for stream in range(1, 1 + streams):
                card.copy(kind, 50 * MEGABYTE, stream)
            if k == each // 4:
                _vector_add(recorder, parts)
        if not streams:
            _vector_add(recorder, parts)
        own = card.records(0, parts)
        card.wait()
        runs.append([
            int(own["end_ns"].max() - own["start_ns"].min()),
            int(np.median(own["end_ns"] - own["start_ns"])),
        ])  # fmt: skip
    recorder.write(
        f"figure{figure}", footprint=footprint, what=kind, streams=streams, runs=runs[1:]
    )


def _vector_add(recorder: Recorder, parts: int) -> None:
    card = recorder.card
    card.launch(
        "vector_add", parts, 256, np.uint64(card.address("records0")),
        np.uint64(card.address("x0")), np.uint64(card.address("y0")), np.int32(parts),
    )  # fmt: skip
