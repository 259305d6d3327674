"""Times real kernels with every sensible block size, so that advice about it can be scored.

python tests/lab/inside/advice.py --out report --seconds 60

Compiles ``kernels/*.cu`` with nvcc, and writes the cubins, ``timings.jsonl`` (a line per kernel:
what the driver says of it, and the microseconds of each configuration), and prints a summary. It
needs no installed tbsched.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import subprocess
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from lab.inside.kernels.catalogue import KERNELS, SOURCES, Real, grids, sizes
from lab.inside.kernels.timing import Driver, Function, differs, median
from lab.script import parse

Functions = dict[int, Function]  # by block size; 0: for any
ROUNDS = 5
_AGREE = 1e-2  # sums in another order differ by less


def main() -> int:
    """Compiles, times and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="for how long")
    parser.add_argument("--driver", default="libcuda.so.1", help="the driver's library")
    parser.add_argument("--only", nargs="*", help="names of kernels; all by default")
    arguments = parse(parser)
    start = time.monotonic()
    cubins = compiled(arguments.out / "cubins")
    with_triton = compiled_by_triton(arguments.out / "cubins")
    print(f"compiled after {time.monotonic() - start:.1f} s", flush=True)
    # By the names' last letters: a run that is cut short has some of everything.
    wanted = [k for k in KERNELS if not arguments.only or k.name in arguments.only]
    wanted.sort(key=lambda k: k.function[::-1])
    timings = arguments.out / "timings.jsonl"
    timings.write_text(json.dumps({"tbsched_timings": 1}) + "\n", "utf-8")
    until = start + arguments.seconds
    # A kernel that fails takes its context with it, so that another process goes on.
    forked = multiprocessing.get_context("fork")
    before = -1
    while time.monotonic() < until:
        done = {json.loads(line).get("kernel") for line in timings.read_text("utf-8").splitlines()}
        left = [real for real in wanted if real.name not in done]
        if not left or len(done) == before:
            break
        before = len(done)
        worker = forked.Process(
            target=work, args=(arguments.driver, left, cubins, with_triton, timings, until)
        )
        worker.start()
        worker.join()
    print(f"over after {time.monotonic() - start:.1f} s")
    rows = [json.loads(line) for line in timings.read_text("utf-8").splitlines()[1:]]
    print(f"{len(rows)} of {len(wanted)} kernels, {sum('failed' in row for row in rows)} failed")
    return 1 if any("failed" in row for row in rows) else 0


def work(
    library: str,
    kernels: list[Real],
    cubins: list[Path],
    with_triton: dict[tuple[str, int], tuple[Path, int]],
    timings: Path,
    until: float,
) -> None:
    """Times kernels until one fails."""
    driver = Driver(library)
    functions: dict[str, Functions] = {}
    for path in cubins:
        names = sorted({k.function for k in KERNELS if f" {k.function}(" in source_of(path)})
        for name, function in driver.functions(path.read_bytes(), names).items():
            functions[name] = {0: function}
    for (name, threads), (path, shared) in with_triton.items():
        loaded = driver.functions(path.read_bytes(), [name], shared)
        functions.setdefault(name, {})[threads] = loaded[name]
    print(f"{driver.name}, {len(functions)} kernels", flush=True)
    with timings.open("a", encoding="utf-8") as file:
        for real in kernels:
            if time.monotonic() > until:
                print(f"{real.name}: no time left")
                return
            try:
                row = measured(driver, real, functions[real.function])
                show(row)
            except Exception as error:
                traceback.print_exc()
                print(json.dumps({"kernel": real.name, "failed": str(error)}), file=file)
                return
            print(json.dumps({"gpu": driver.name, **row}), file=file, flush=True)


def compiled(folder: Path) -> list[Path]:
    """The cubins of all sources, compiled at the same time."""
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if nvcc is None:
        raise SystemExit("no nvcc to compile the kernels with")
    folder.mkdir(exist_ok=True)

    def one(source: Path) -> Path:
        path = folder / f"{source.stem}.cubin"
        command = [nvcc, "-O3", "-std=c++20", "-cubin", "-arch=sm_90", "-o", path, source]
        subprocess.run(command, check=True, capture_output=True)
        return path

    with ThreadPoolExecutor() as pool:
        return list(pool.map(one, SOURCES))


def source_of(cubin: Path) -> str:
    """The source that a cubin was compiled from."""
    return next(path for path in SOURCES if path.stem == cubin.stem).read_text("utf-8")


def compiled_by_triton(folder: Path) -> dict[tuple[str, int], tuple[Path, int]]:
    """By kernel and block size the cubin and its dynamic shared memory; nothing without Triton."""
    wanted = [(k.function, threads) for k in KERNELS if k.in_triton for threads in sizes(k)]
    try:
        with ProcessPoolExecutor() as pool:
            made = list(pool.map(by_triton, *zip(*wanted, strict=True)))
    except (ImportError, RuntimeError) as error:
        print(f"without Triton: {error}")
        return {}
    found = {}
    for (name, threads), result in zip(wanted, made, strict=True):
        if isinstance(result, str):
            print(f"{name} with {threads} threads: {result}")
            continue
        path = folder / f"{name}.{threads}.cubin"
        path.write_bytes(result[0])
        found[name, threads] = path, result[1]
    return found


def by_triton(name: str, threads: int) -> tuple[bytes, int] | str:
    """The cubin and its dynamic shared memory, or why there is none."""
    from lab.inside.kernels import triton_sources

    try:
        return triton_sources.compiled(name, threads // 32)
    except Exception as error:
        return str(error).splitlines()[0]


def measured(driver: Driver, real: Real, functions: Functions) -> dict[str, Any]:
    """Times all configurations of a kernel, in turns so that a drift meets all of them."""
    launches = {}
    reference = None
    configs: list[dict[str, Any]] = []
    for threads in sizes(real):
        function = functions.get(threads) or functions.get(0)
        if function is None:
            continue
        shared = function.shared + real.shared + real.shared_per_thread * threads
        resident = driver.resident(function, threads, shared)
        if resident == 0:
            continue
        for grid in sorted(set(grids(real, threads, resident))):
            launcher = driver.launch(real, function, grid, threads)
            driver.cleared()
            launcher.go()
            found = driver.written()
            reference = found if reference is None else reference
            configs.append({
                "threads": threads, "blocks": grid, "resident": resident,
                "dynamic": shared, "registers": function.attributes["registers"],
                "differs": differs(real.type, found, reference), "us": [],
            })  # fmt: skip
            launches[threads, grid] = launcher, launcher.batch()
    for _ in range(ROUNDS):
        for config in configs:
            launcher, count = launches[config["threads"], config["blocks"]]
            config["us"].append(round(launcher.microseconds(count), 3))
    return {
        "kernel": real.name, "kind": str(real.kind), "n": real.n, "m": real.m,
        "shared": real.shared, "shared_per_thread": real.shared_per_thread,
        "held_out": real.held_out,
        "attributes": {size: each.attributes for size, each in functions.items()},
        "suggested": {
            size: driver.suggested(each, each.shared + real.shared)
            for size, each in functions.items()
        },
        "configs": configs,
    }  # fmt: skip


def show(row: dict[str, Any]) -> None:
    """A line about a kernel."""
    times = {(c["threads"], c["blocks"]): median(c["us"]) for c in row["configs"]}
    best = min(times, key=lambda key: times[key])
    wrong = [c["threads"] for c in row["configs"] if c["differs"] > _AGREE]
    print(
        f"{row['kernel']}: {len(times)} configurations, {times[best]:.1f} us with {best}, "
        f"{max(times.values()):.1f} us at worst" + (f", WRONG with {wrong}" if wrong else ""),
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
