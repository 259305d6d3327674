"""Times of host functions, values, calls, nodes of graphs and launches from kernels, on a GPU.

    python tests/lab/host_work/measure.py --out DIR

Compiles the programs beside it with nvcc, of CUDA 13 or later, for compute capability 9.0 or
``--architecture``, and runs each in a process of its own, half a minute in all. Writes
``DIR/host_work.json``: for each run of a case the kernels (``k``: name, start, end, blocks, and SMs
or times of each block) and calls of the host (``h``: name, begin, end, thread), in nanoseconds of
the GPU's clock. The host's clock drifts by some microseconds against it within a process. The
numbers are in ``docs/explanation/hosts.md``, ``graphs.md`` and ``hopper.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from lab.script import parse

HERE = Path(__file__).parent
SECONDS = 60
# Program, argument, and hardware queues.
PARTS = (
    ("streams", "hf", 32),
    ("streams", "values", 32),
    *(("streams", "queue", queues) for queues in (1, 2, 8, 32)),
    ("graphs", "gaps", 32),
    ("graphs", "conditionals", 32),
    ("device_launches", "cdp", 32),
    ("device_launches", "device_graphs", 32),
    ("attributes", "all", 32),
    ("calls", "memory", 32),
    ("calls", "others", 32),
)
KERNELS = 64  # of a module that calls load


def main() -> int:
    """Compiles, runs and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--architecture", default="sm_90", help="of the GPU, as nvcc names it")
    arguments = parse(parser)
    compile_all(arguments.out, arguments.architecture)
    parts = [run(arguments.out, *part) for part in PARTS]
    (arguments.out / "host_work.json").write_text(json.dumps(parts), "utf-8")
    return 0 if all(part["code"] == 0 for part in parts) else 1


def compile_all(out: Path, architecture: str) -> None:
    common = ["nvcc", f"-arch={architecture}"]
    for name in sorted({name for name, _, _ in PARTS}):
        device = ["-rdc=true", "-lcudadevrt"] if name in ("graphs", "device_launches") else []
        command = [*common, "-std=c++17", "-O2", "-o", out / name, HERE / f"{name}.cu", *device]
        subprocess.run(command, check=True)
    kernel = 'extern "C" __global__ void k%d(float* p) { p[threadIdx.x] += %d; }\n'
    for name, count in (("one", 1), ("many", KERNELS)):
        source = out / f"{name}.cu"
        source.write_text("".join(kernel % (number, number) for number in range(count)), "utf-8")
        subprocess.run([*common, "-cubin", "-o", out / f"{name}.cubin", source], check=True)
    subprocess.run([*common, "-ptx", "-o", out / "one.ptx", out / "one.cu"], check=True)


def run(out: Path, name: str, what: str, queues: int) -> dict[str, Any]:
    """Returns the lines that a program writes, and how it ended."""
    environment = {"CUDA_MODULE_LOADING": "EAGER", "CUDA_DEVICE_MAX_CONNECTIONS": str(queues)}
    try:
        done = subprocess.run(
            [out / name, what], cwd=out, env=os.environ | environment, capture_output=True,
            text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"program": name, "what": what, "queues": queues, "code": "too long", "lines": []}
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    wrong = [line for line in lines if "error" in line]
    print(f"{name} {what} {queues}: code {done.returncode}, {len(lines)} lines, {wrong[:3]}")
    return {"program": name, "what": what, "queues": queues, "code": done.returncode,
            "lines": lines}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
