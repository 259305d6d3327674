"""Runs variants of real kernels, compares what they write, and times them.

python tests/lab/inside/variants.py --out report --seconds 60

Compiles ``kernels/*.cu`` with nvcc, makes variants of each kernel (more registers, other orders of
the instructions), and writes ``variants.jsonl``: a line per kernel, with the microseconds of each
variant in interleaved rounds, and whether its output is the original's bit for bit. Where the
original's own output differs from run to run, as with sums by atomics, a variant's may differ as
much. Further orders drawn by chance are run and compared, and not timed. It needs tbsched and
nvdisasm. Each kernel runs in a process of its own with a time limit.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from lab.inside import advice
from lab.inside.kernels.catalogue import KERNELS, SMS, Real, grids, sizes
from lab.inside.kernels.timing import Driver, Launcher, differs
from lab.script import parse
from sm.variants.score import wrong

ROUNDS = 15
AGAIN = 20  # fresh rounds of the best one and the original
LIMIT_S = 6.0  # for a kernel
STARTING_S = 15.0  # for a process until it has its context and buffers
MOST = 14  # variants of a kernel that are timed
ORDERS = ("loads", "critical", "apart")
DRAWS = 2  # orders drawn by chance that are timed
CHECKED = 6  # further ones that are only compared
REPEATS = 5  # runs of the original, which show by how much its output differs from itself


@dataclass(frozen=True)
class Made:
    """A variant, as another process made it."""

    name: str
    timed: bool
    registers: int
    order: str
    moved: int
    resident: int | None
    cubin: bytes


def main() -> int:
    """Compiles, makes variants, runs and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="for how long")
    parser.add_argument("--driver", default="libcuda.so.1", help="the driver's library")
    parser.add_argument("--only", nargs="*", help="names of kernels; all by default")
    parser.add_argument("--device", default="h200", help="the GPU, as the predictor knows it")
    arguments = parse(parser)
    start = time.monotonic()
    until = start + arguments.seconds
    cubins = advice.compiled(arguments.out / "cubins")
    triton = advice.compiled_by_triton(arguments.out / "cubins")
    print(f"compiled after {time.monotonic() - start:.1f} s", flush=True)
    wanted = [k for k in KERNELS if not arguments.only or k.name in arguments.only]
    # Held-out ones first; by the last letters: a run that is cut short has some of everything.
    wanted.sort(key=lambda k: (not k.held_out, k.function[::-1]))
    lines = arguments.out / "variants.jsonl"
    lines.write_text(json.dumps({"tbsched_variants": 1}) + "\n", "utf-8")
    forked = multiprocessing.get_context("fork")
    worker = Worker(arguments.driver)
    done = failed = 0
    with ProcessPoolExecutor(mp_context=forked) as pool:
        tasks = {pool.submit(made, k, cubins, triton, arguments.device): k for k in wanted}
        for task in as_completed(tasks):
            real = tasks[task]
            left = until - time.monotonic()
            if left < 1:
                print("no time left", flush=True)
                break
            try:
                variants, shared, seconds = task.result()
                row = worker.run(real, variants, shared, min(left, LIMIT_S))
                row["making_s"] = round(seconds, 2)
            except Exception as error:
                traceback.print_exc()
                row = {"failed": f"no variants: {error!r}"}
            done, failed = done + 1, failed + ("failed" in row)
            with lines.open("a", encoding="utf-8") as file:
                print(
                    json.dumps({"kernel": real.name, "held_out": real.held_out, **row}), file=file
                )
            show(real, row)
        worker.stop()
        pool.shutdown(wait=False, cancel_futures=True)
    print(f"over after {time.monotonic() - start:.1f} s: {done} kernels, {failed} failed")
    return 0


def threads_of(real: Real) -> int:
    """The block size that is used: 256 threads, or the one that is nearest."""
    return min(sizes(real), key=lambda size: abs(size - 256))


def made(
    real: Real, cubins: list[Path], triton: dict[tuple[str, int], tuple[Path, int]], device: str
) -> tuple[list[Made], int, float]:
    """The variants, the dynamic shared memory that the compiler asks for, and the seconds."""
    from tbsched.sm import variants

    start = time.monotonic()
    threads = threads_of(real)
    shared = 0
    if real.in_triton:
        path, shared = triton[real.function, threads]
    else:
        path = next(p for p in cubins if f" {real.function}(" in advice.source_of(p))
    found = variants(
        (path.read_bytes(), real.function),
        device,
        threads=threads,
        shared_memory=shared + real.shared + real.shared_per_thread * threads,
        orders=ORDERS,
        draws=DRAWS + CHECKED,
    )
    more = {f"random {seed}" for seed in range(DRAWS, DRAWS + CHECKED)}
    everything = [
        Made(v.name, v.order not in more, v.registers, v.order, v.moved, v.resident, v.cubin)
        for v in found
    ]
    # All that are only padded or only reordered come before those that are both.
    least = everything[0].registers
    timed = sorted(
        (v for v in everything if v.timed), key=lambda v: bool(v.order) and v.registers != least
    )
    checked = [v for v in everything if not v.timed and v.registers == least]
    return timed[:MOST] + checked, shared, time.monotonic() - start


class Worker:
    """A process with the GPU, which is killed and replaced if a kernel takes too long.

    Args:
        library: of the driver.
    """

    def __init__(self, library: str) -> None:
        self._forked = multiprocessing.get_context("fork")
        self._library = library
        self._process: Any = None
        self._pipe: Any = None

    def run(self, real: Real, variants: list[Made], shared: int, limit: float) -> dict[str, Any]:
        """Runs a kernel's variants: what is known of them, with ``failed`` if that is not all."""
        if self._process is None:
            self._pipe, there = self._forked.Pipe()
            self._process = self._forked.Process(target=serve, args=(there, self._library))
            self._process.start()
            there.close()
            limit += STARTING_S
        row: dict[str, Any] = {}
        end = time.monotonic() + limit
        try:
            self._pipe.send((real, variants, shared))
            while self._pipe.poll(max(0.0, end - time.monotonic())):
                row |= self._pipe.recv()
                if row.pop("over", False):
                    break
            else:
                row |= {"failed": f"{row.get('at', 'start')}: took more than {limit:.0f} s"}
        except (EOFError, OSError) as error:
            row |= {"failed": f"{row.get('at', 'start')}: the process ended, {error!r}"}
        if "failed" in row:  # a kernel that fails takes its context with it
            self.stop()
        return row

    def stop(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join(5)
            self._pipe.close()
            self._process = None


def serve(pipe: Any, library: str) -> None:
    """Runs what comes through a pipe, until it is closed."""
    driver = None
    while True:
        try:
            real, variants, shared = pipe.recv()
        except EOFError:
            return
        try:
            driver = driver or Driver(library)
            work(pipe, driver, real, variants, shared)
        except Exception as error:
            traceback.print_exc()
            pipe.send({"failed": repr(error), "over": True})


def work(pipe: Any, driver: Driver, real: Real, variants: list[Made], shared: int) -> None:
    """Runs, compares and times the variants of a kernel; sends what is known as it goes."""
    threads = threads_of(real)
    dynamic = shared + real.shared + real.shared_per_thread * threads
    launches: list[Launcher] = []
    rows: list[dict[str, Any]] = []
    reference, grid, own, repeats = None, 0, 0.0, True
    for variant in variants:
        pipe.send({"at": variant.name, "gpu": driver.name})
        loaded = driver.functions(variant.cubin, [real.function], shared)[real.function]
        resident = driver.resident(loaded, threads, dynamic)
        grid = grid or min(grids(real, threads, resident), key=lambda g: abs(g - SMS * resident))
        launcher = driver.launch(real, loaded, grid, threads)
        apart, same = 0.0, True
        for _ in range(2 if rows else REPEATS):
            driver.cleared()
            launcher.go()
            found = driver.written()
            reference = found if reference is None else reference
            apart = max(apart, differs(real.type, found, reference))
            same &= bool(np.array_equal(found, reference))
        if not rows:
            own, repeats = apart, same
        rows.append({
            "name": variant.name, "registers": variant.registers, "order": variant.order,
            "moved": variant.moved, "driver_registers": loaded.attributes["registers"],
            "predicted": variant.resident, "resident": resident, "same": same,
            "differs": apart, "us": [],
        })  # fmt: skip
        if variant.timed:
            launches.append(launcher)
    pipe.send({"at": "timing", "threads": threads, "blocks": grid, "variants": rows})
    pipe.send({"repeats": repeats, "own": own})
    count = launches[0].batch()
    draw = random.Random(1)
    timed = rows[: len(launches)]
    for _ in range(ROUNDS):
        for number in draw.sample(range(len(timed)), len(timed)):
            timed[number]["us"].append(round(launches[number].microseconds(count), 3))
    pipe.send({"variants": rows})
    pipe.send({"fresh": again(launches, timed, count, draw), "over": True})


def again(
    launches: list[Launcher], rows: list[dict[str, Any]], count: int, draw: random.Random
) -> dict[str, list[float]]:
    """Fresh times: of the original, and of the fastest padded, reordered and other variant."""
    order = sorted(range(1, len(rows)), key=lambda k: advice.median(rows[k]["us"]))
    padded = [k for k in order if not rows[k]["order"]][:1]
    moved = [k for k in order if rows[k]["registers"] == rows[0]["registers"]][:1]
    finalists = sorted({0, *padded, *moved, *order[:1]})
    fresh: dict[str, list[float]] = {}
    for _ in range(AGAIN):
        for number in draw.sample(finalists, len(finalists)):
            took = round(launches[number].microseconds(count), 3)
            fresh.setdefault(rows[number]["name"], []).append(took)
    return fresh


def show(real: Real, row: dict[str, Any]) -> None:
    """A line about a kernel."""
    found = row.get("variants", [])
    times = {v["name"]: advice.median(v["us"]) for v in found if v["us"]}
    best = min(times, key=lambda name: times[name], default="")
    text = f"{real.name}: {len(found)} variants"
    if best:
        text += f", best {best} {times[best]:.1f} us, original {times['original']:.1f} us"
    if not row.get("repeats", True):
        text += f", does not repeat: the original differs from itself by {row['own']:.1g}"
    if names := wrong(row):
        text += f", WRONG: {names}"
    print(text + (f", FAILED: {row['failed']}" if "failed" in row else ""), flush=True)


if __name__ == "__main__":
    sys.exit(main())
