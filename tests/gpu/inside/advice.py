"""Times real kernels with every sensible block size, so that advice about it can be scored.

python tests/gpu/inside/advice.py --out report --seconds 60

Compiles ``kernels/*.cu`` with nvcc, and writes the cubins, ``timings.jsonl`` (a line per kernel:
what the driver says of it, and the microseconds of each configuration), and prints a summary. It
needs no installed tbsched.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))

from kernels.catalogue import KERNELS, SOURCES, Real, grids, sizes
from kernels.timing import Driver, Function, differs, median

from gpu.script import parse

ROUNDS = 5
_AGREE = 1e-2  # sums in another order differ by less


def main() -> int:
    """Compiles, times and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="for how long")
    parser.add_argument("--driver", default="libcuda.so.1", help="the driver's library")
    parser.add_argument("--only", nargs="*", help="names of kernels; all by default")
    arguments = parse(parser)
    until = time.monotonic() + arguments.seconds
    cubins = compiled(arguments.out / "cubins")
    print(f"compiled after {arguments.seconds - until + time.monotonic():.1f} s", flush=True)
    driver = Driver(arguments.driver)
    functions = {}
    for path in cubins:
        names = sorted({k.function for k in KERNELS if f" {k.function}(" in source_of(path)})
        functions.update(driver.functions(path.read_bytes(), names))
    print(f"loaded after {arguments.seconds - until + time.monotonic():.1f} s", flush=True)
    failed = 0
    # By the names' last letters: a run that is cut short has some of everything.
    wanted = [k for k in KERNELS if not arguments.only or k.name in arguments.only]
    with (arguments.out / "timings.jsonl").open("w", encoding="utf-8") as file:
        print(json.dumps({"tbsched_timings": 1, "name": driver.name}), file=file)
        for real in sorted(wanted, key=lambda k: k.function[::-1]):
            if time.monotonic() > until:
                print(f"{real.name}: no time left")
                break
            try:
                row = measured(driver, real, functions[real.function])
            except Exception:  # the others still count
                failed += 1
                traceback.print_exc()
                continue
            print(json.dumps(row), file=file, flush=True)
            show(row)
    print(f"over after {arguments.seconds - until + time.monotonic():.1f} s")
    return 1 if failed else 0


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


def measured(driver: Driver, real: Real, function: Function) -> dict[str, Any]:
    """Times all configurations of a kernel, in turns so that a drift meets all of them."""
    launches = {}
    reference = None
    configs: list[dict[str, Any]] = []
    for threads in sizes(real):
        shared = real.shared + real.shared_per_thread * threads
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
        "held_out": real.held_out, "attributes": function.attributes,
        "suggested": driver.suggested(function, real.shared), "configs": configs,
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
