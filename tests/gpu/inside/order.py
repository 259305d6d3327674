"""Notes when each warp of an SM is at each of 64 points, from which the issue order is read.

python tests/gpu/inside/order.py --out report

Writes ``order.jsonl``: a line per launch with the clocks of every warp. Needs nvcc, and no
installed tbsched.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))

from kernels.timing import Context

from gpu.script import parse

SOURCE = Path(__file__).parent / "orders" / "order.cu"
WORKS = ("apart", "chain", "half", "special", "shared")
WARPS = (1, 4, 8, 12, 16, 20, 24, 32)  # of the SM: a quarter of them for a processing block
POINTS = 64
REPEATS = 5


def main() -> int:
    """Compiles, launches and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--driver", default="libcuda.so.1", help="the driver's library")
    arguments = parse(parser)
    start = time.monotonic()
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if nvcc is None:
        raise SystemExit("no nvcc to compile the kernels with")
    cubin = arguments.out / "order.cubin"
    subprocess.run(
        [nvcc, "-O3", "-std=c++20", "-cubin", "-arch=sm_90", "-o", cubin, SOURCE], check=True
    )
    context = Context(arguments.driver)
    functions = context.functions(cubin.read_bytes(), [f"order_{work}" for work in WORKS])
    out = context.room(4 * 32 * (POINTS + 1))
    pointers = (ctypes.c_void_p * 2)(
        ctypes.addressof(out), ctypes.addressof(points := ctypes.c_int(POINTS))
    )
    with (arguments.out / "order.jsonl").open("w", encoding="utf-8") as file:
        print(json.dumps({"tbsched_orders": 1, "name": context.name, "every": 32}), file=file)
        for repeat in range(REPEATS):
            for work in WORKS:
                for warps in WARPS:
                    context.call(
                        "cuLaunchKernel", functions[f"order_{work}"].handle, 1, 1, 1,
                        32 * warps, 1, 1, 4 * warps * points.value, None, pointers, None,
                    )  # fmt: skip
                    found = np.empty((warps, POINTS + 1), np.uint32)
                    context.read(found, out)
                    clocks = found[:, :POINTS] - found[:, :POINTS].min()
                    row = {
                        "work": work, "warps": warps, "repeat": repeat,
                        "slots": found[:, POINTS].tolist(), "clocks": clocks.tolist(),
                    }  # fmt: skip
                    print(json.dumps(row, separators=(",", ":")), file=file, flush=True)
                    if repeat == 0:
                        ends = sorted(clocks[:, -1].tolist())
                        print(f"{work}, {warps} warps: ends from {ends[0]:,} to {ends[-1]:,}")
    print(f"over after {time.monotonic() - start:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
