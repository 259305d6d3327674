"""What the RTAS 2020 paper claims of a GPU, as sequences to run on one.

"Dissecting the CUDA Scheduling Hierarchy: a Performance and Predictability Perspective". Its Tables
II to IV are *cells*: blocks that are held until all are placed. Streams, priorities and the default
stream are *programs*: blocks that end by themselves, in processes with so many hardware queues.

Run as a script, this records both (``tests/traces/hierarchy/``), once for each number of queues::

    python tests/conformance/papers/hierarchy.py --out DIR --connections 8

``hierarchy.cu`` measures what the paper says of arithmetic units, copies and GPCs::

    nvcc -O2 -std=c++20 -arch=sm_90 -o parts tests/conformance/papers/hierarchy.cu
    python tests/conformance/papers/hierarchy.py --out DIR --places | OUT=DIR ./parts
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import tbsched as tb
from tbsched.launcher.observe import Gpu
from tbsched.program.sequence import Event, Stream
from tbsched.traces.placement import Placement

US = 1e-6
Named = dict[str, list[Event]]
WARPS = range(1, 33)
LEVELS = range(6)  # of priority
AMOUNTS = (0, 1, 128, *range(256, 8193, 256), 3071, 3073, 16384, 49152, 101376)
SIZES = (64, 128, 256, 512, 768, 1024)


# -- cells -----------------------------------------------------------------------------------------


def cells(sms: int) -> dict[str, tb.Sequence]:
    """Tables II to IV, shared memory, registers, and the examples of the text."""
    found: dict[str, list[tb.Launch]] = {}
    for name, first, carveout in (
        ("II", [], 100),
        ("II_default", [], None),
        ("III", [_held(sms, 32)], 100),
        ("III_default", [_held(sms, 32, None)], None),
        ("IV", [_held(sms - 1, 6)], 100),
    ):
        for x, y in itertools.product(WARPS, WARPS):
            found[f"{name}_{x}_{y}"] = [*first, _held(1, x, carveout), _held(1, y, carveout)]
    for carveout, (x, y), amount in itertools.product(
        (100, None), ((1, 3), (4, 5), (1, 1), (2, 9), (16, 16)), AMOUNTS
    ):
        found[f"shared{carveout}_{carveout}_{x}_{y}_{amount}"] = [
            _held(1, x, carveout, shared_memory=amount),
            _held(1, y, carveout),
        ]
    for registers, x, y in itertools.product(
        (16, 24, 32, 33, 40, 41, 48, 56, 64), (1, 2, 4, 7, 16), (1, 3, 5, 9, 16, 31)
    ):
        both = [_held(1, warps, registers=registers) for warps in (x, y)]
        found[f"registers_{registers}_{x}_{y}"] = both
    found.update(_examples(sms))
    return {name: tb.Sequence(launches) for name, launches in found.items()}


def _held(blocks: int, warps: int, carveout: int | None = 100, **more: Any) -> tb.Launch:
    return tb.Launch(blocks, 32 * warps, more.pop("registers", 16), carveout=carveout, **more)


def _examples(sms: int) -> dict[str, list[tb.Launch]]:
    half, two = sms // 2, sms - 2
    return {
        "fig5_4_4": [_held(half, 4), _held(half, 4)],
        "fig5_4_5": [_held(half, 4), _held(half, 5)],
        "balance_2": [_held(two, 16), _held(16, 2)],
        "balance_4": [_held(two, 16), _held(16, 4)],
        "uneven_6_11_15": [_held(1, 6), _held(1, 11), _held(1, 15)],
        "one_grid": [_held(sms, 32)],
        "carveouts_small": [_held(1, 1), _held(1, 1, 0)],
        "carveouts_full_same": [_held(sms, 1), _held(1, 1)],
        "carveouts_full_other": [_held(sms, 1), _held(1, 1, 0)],
        "equation_1": [_held(4 * sms, 16, registers=64)],
        "fits_nowhere": [_held(sms, 32), _held(1, 32), _held(2 * sms, 32)],
    }


# -- programs --------------------------------------------------------------------------------------


def programs(sms: int, queues: int) -> Iterator[tuple[str, str, tb.Sequence]]:
    """What each is about, its name, and the program: about queues, and with 8 of all else."""
    kinds: dict[str, Callable[[], Named]] = {
        f"queues{queues}": lambda: _false_dependencies(queues),
        "priorities": lambda: _priorities(sms),
        "streams": lambda: _streams(sms),
        "default_stream": _default_stream,
        "bounds": _intervals,
    }
    for about, make in kinds.items():
        for name, events in make().items() if about.startswith("queues") or queues == 8 else ():
            yield about, name, tb.Sequence(events)


def _timed(
    blocks: int, threads: int, us: float | tuple[float, ...], stream: Stream | None,
    name: str = "", **more: Any,
) -> tb.Launch:  # fmt: skip
    carveout = more.pop("carveout", 100)
    duration = tuple(u * US for u in us) if isinstance(us, tuple) else us * US
    return tb.Launch(
        blocks, threads, 32 if threads > 512 else 16, carveout=carveout, stream=stream,
        duration=duration, name=name or None, **more,
    )  # fmt: skip


def _one(us: float, stream: Stream | None, **more: Any) -> tb.Launch:
    return _timed(1, 64, us, stream, **more)


def _false_dependencies(queues: int) -> Named:
    """Streams as many as queues, one more, twice as many."""
    named: Named = {}
    for count in sorted({queues, queues + 1, 2 * queues, 2 * queues + 1}):
        long = max(600, 12 * count)
        a = [_timed(1, 64, long, k, f"a{k}") for k in range(count)]
        b = [_timed(1, 64, 50, k, f"b{k}") for k in range(count)]
        named[f"depth{count}"] = list(itertools.chain.from_iterable(zip(a, b, strict=True)))
        named[f"breadth{count}"] = [*a, *b]
        named[f"blocked{count}"] = [a[0], b[0], *a[1:]]
    return named


def _priorities(sms: int) -> Named:
    """A launch fills the GPU, and others that would fill it wait: of two levels, or of all six."""

    def full(us: float, stream: int, name: str = "", **more: Any) -> tb.Launch:
        return _timed(2 * sms, 1024, us, stream, name, **more)

    named: Named = {}
    for later, first in itertools.product(LEVELS, LEVELS):
        waiting = [full(40, k + 1, priority=-p) for k, p in enumerate((first, later))]
        named[f"pair{-first}{-later}"] = [full(80, 0, "base"), *waiting]
    draw = random.Random(1)
    for number in range(20):
        levels = draw.sample(LEVELS, len(LEVELS))
        waiting = [full(30, k + 1, priority=-p) for k, p in enumerate(levels)]
        named[f"six{number}"] = [full(120, 0, "base"), *waiting]
    named["boundary"] = [
        _timed(8 * sms, 1024, 60, 0, "low"),
        full(30, 1, "high", priority=-5),
    ]
    named["room"] = [
        _timed(sms, 1024, 60, 0, "low"),
        _timed(4, 64, 30, 1, "high", priority=-5),
    ]
    return named


def _streams(sms: int) -> Named:
    return {
        "same_stream": [_one(60, 0), _one(60, 0), _one(60, 0)],
        "two_streams": [_one(100, 0), _one(100, 1), _one(100, 2)],
        "event": [
            _one(60, 0), tb.RecordEvent(0, 0), tb.WaitEvent(0, 1), _one(60, 1), _one(60, 2),
        ],
        "grids": [_one(1500, None) for _ in range(132)],
        "carveouts": [_timed(sms, 64, 100, 0, carveout=100), _one(50, 1, carveout=0)],
        "carveouts_alike": [_timed(sms, 64, 100, 0, carveout=100), _one(50, 1, carveout=100)],
        "carveouts_idle_sm": [_one(100, 0, carveout=100), _one(50, 1, carveout=0)],
    }  # fmt: skip


def _default_stream() -> Named:
    legacy, free = tb.LEGACY_STREAM, {"non_blocking": True}
    return {
        "between": [_one(60, 0), _one(60, legacy), _one(60, 1)],
        "first": [_one(80, legacy), _one(40, 0), _one(40, 1)],
        "last": [_one(80, 0), _one(40, 1), _one(40, legacy)],
        "twice": [_one(60, legacy), _one(60, legacy)],
        "non_blocking": [
            _one(80, 0, **free), _one(80, legacy), _one(80, 1, **free), _one(40, 2),
        ],
        "urgent": [_one(80, legacy), _one(40, 1, priority=-5)],
        "event_passes": [
            _one(80, legacy), tb.RecordEvent(0, legacy), tb.WaitEvent(0, 1), _one(40, 1, **free),
        ],
        "waits_for_all": [*(_one(40 + 20 * k, k) for k in range(5)), _one(40, legacy)],
    }  # fmt: skip


def _intervals() -> Named:
    """Blocks that run for a time within an interval, after which launches are named, in us."""
    named: Named = {}
    for seed in range(60):
        draw = random.Random(1000 + seed)
        count, several = draw.randint(2, 12), draw.randint(1, 6)
        urgency = [draw.choice((0, 0, 0, -1, -5)) for _ in range(several)]
        rows = [
            (
                draw.choice((draw.randint(1, 40), draw.randint(1, 300), draw.randint(1, 600))),
                draw.choice(SIZES), draw.randrange(several),
                round(draw.uniform(100, 1000)), draw.choice((0.0, 0.1, 0.5, 0.9)),
            )
            for _ in range(count)
        ]  # fmt: skip
        for number in range(3):
            named[f"bounds{seed}_{number}"] = [
                _timed(
                    blocks, threads,
                    tuple(round(draw.uniform((1 - part) * high, high), 1) for _ in range(blocks)),
                    stream, f"{(1 - part) * high:.1f}-{high}", priority=urgency[stream],
                )
                for blocks, threads, stream, high, part in rows
            ]  # fmt: skip
    return named


# -- places ----------------------------------------------------------------------------------------


def places() -> Iterator[str]:
    """A case a line: its name, the SM that is watched, and the SMs that work meanwhile.

    Raises:
        NoGpuError: no usable GPU: the GPCs are those of this board.
    """
    spec = tb.device("gpu")  # boards differ in their maps
    gpcs = [[sm for tpc in tpcs for sm in (2 * tpc, 2 * tpc + 1)] for tpcs in spec.gpcs]
    for watched in (0, 21, 70):
        gpc = next(sms for sms in gpcs if watched in sms)
        own = [sm for sm in gpc if sm // 2 != watched // 2]
        far = [sm for sms in gpcs for sm in sms if sms is not gpc]
        far.sort()
        meanwhile = {
            "alone": [],
            "tpc": [watched ^ 1],
            "gpc1": own[:1],
            "far1": far[40:41],
            "gpc_all": own,
            "far_all": far[:: len(far) // len(own)][: len(own)],
        }
        for name, sms in meanwhile.items():
            yield " ".join(map(str, (f"v{watched}_{name}", watched, *sms)))


# -- on a GPU --------------------------------------------------------------------------------------


def main() -> None:
    """Writes ``cells.jsonl.xz`` and ``timed-q*.jsonl.xz``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the traces")
    parser.add_argument("--connections", type=int, default=8, help="hardware queues")
    parser.add_argument("--places", action="store_true", help="print the places, and end")
    arguments = parser.parse_args()
    if arguments.places:
        print("\n".join(places()))
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    queues = arguments.connections
    os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = str(queues)
    with Gpu() as gpu:
        if queues == 8:
            held = cells(gpu.info.sms)
            tb.save_traces(
                arguments.out / "cells.jsonl.xz",
                [
                    replace(trace, id=name, placements=tuple(Placement(p.smid) for p in trace))
                    for name, trace in zip(held, gpu.observe_many(held.values()), strict=True)
                    if isinstance(trace, tb.Trace)
                ],
            )
        timed = list(programs(gpu.info.sms, queues))
        tb.save_traces(
            arguments.out / f"timed-q{queues}.jsonl.xz",
            [
                replace(trace, id=f"{name}-q{queues}-0", extra={**trace.extra, "about": about})
                for (about, name, _), trace in zip(
                    timed, gpu.observe_many(seq for _, _, seq in timed), strict=True
                )
                if isinstance(trace, tb.Trace)
            ],
        )


if __name__ == "__main__":
    main()
