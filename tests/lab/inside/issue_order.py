"""In which order a processing block of the GPU here issues instructions of its warps.

    python tests/lab/inside/issue_order.py --out DIR
    python tests/lab/inside/issue_order.py --out DIR --compile

One block, of which only every fourth warp stays: they share a processing block. Each warp reads the
clock before every eighth instruction of a straight line. Writes ``issue_order.npz``: for each
``KIND_CHAINS_WARPS`` the clocks, of shape (runs, warps, reads) in cycles, and for each
``KIND_CHAINS`` the cubin. ``--compile`` needs no GPU.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from lab.script import parse

# The type, its constraint, and the instruction: as PTX has them.
KINDS = {
    "fp32": ("float", "f", "fma.rn.f32 %0, %0, %1, %2;"),
    "int32": ("int", "r", "mad.lo.s32 %0, %0, %1, %2;"),
}
CHAINS = (1, 2, 4, 8)  # of instructions that wait for each other, in turn
WARPS = (1, 2, 3, 4, 5, 6, 7, 8)
READS, EACH = 25, 8
RUNS = 5
PARTITIONS = 4  # processing blocks of an SM: warp w is on number w % 4


def source(kind: str, chains: int) -> str:
    """A kernel that keeps its clocks in registers: nothing but the instructions goes out meanwhile.

    The clock is read under a condition that all lanes meet, or the compiler would read it into a
    uniform register, which takes longer.
    """
    number, constraint, instruction = KINDS[kind]
    lines = []
    for step in range(READS):
        lines.append(
            'asm volatile("{.reg .pred p; setp.ne.u32 p, %1, 0; @p mov.u32 %0, %%clock;}" '
            f': "+r"(at[{step}]) : "r"(yes));'
        )
        for k in range(EACH if step < READS - 1 else 0):
            lines.append(
                f'asm volatile("{instruction}" : "+{constraint}"(v[{(step * EACH + k) % chains}]) '
                f': "{constraint}"(a), "{constraint}"(b));'
            )
    body = "\n    ".join(lines)
    return f"""
extern "C" __global__
void order(unsigned* out, {number}* sink, {number} a, {number} b, int warps) {{
  const int warp = threadIdx.x / 32;
  const unsigned yes = threadIdx.x + 1;
  unsigned at[{READS}] = {{}};
  {number} v[{chains}];
  for (int k = 0; k < {chains}; ++k) v[k] = a + threadIdx.x + k;
  if (warp % {PARTITIONS} != 0) return;
  for (int pass = 0; pass < 2; ++pass) {{  // the first one brings the code into the caches
    asm volatile("bar.sync 1, %0;" ::"r"(warps * 32) : "memory");
    {body}
  }}
  {number} sum = 0;
  for (int k = 0; k < {chains}; ++k) sum += v[k];
  sink[threadIdx.x] = sum;
  if (threadIdx.x % 32 > 0) return;
  for (int k = 0; k < {READS}; ++k) out[warp / {PARTITIONS} * {READS} + k] = at[k];
}}
"""


def compiled(folder: Path, kind: str, chains: int) -> Path:
    """The kernel's cubin."""
    path = folder / f"{kind}_{chains}.cubin"
    text = path.with_suffix(".cu")
    text.write_text(source(kind, chains), "utf-8")
    subprocess.run(["nvcc", "-arch=sm_90", "-cubin", "-o", str(path), str(text)], check=True)
    return path


def recorded(cubin: Path, warps: int) -> np.ndarray:
    """The clocks of a few runs, less the first of each run."""
    import cupy

    kernel = cupy.RawModule(path=str(cubin)).get_function("order")
    number = np.float32 if cubin.name.startswith("fp32") else np.int32
    out = cupy.zeros(warps * READS, np.uint32)
    sink = cupy.zeros(1024, number)
    runs = []
    for _ in range(RUNS):
        threads = (warps - 1) * PARTITIONS * 32 + 32
        kernel((1,), (threads,), (out, sink, number(3), number(5), np.int32(warps)))
        clocks = out.get().reshape(warps, READS)
        runs.append((clocks - clocks.min()).astype(np.uint32))
    return np.stack(runs)


def main() -> int:
    """Compiles, runs and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compile", action="store_true", help="needs no GPU")
    arguments = parse(parser)
    which = [(kind, chains) for kind in KINDS for chains in CHAINS]
    with ThreadPoolExecutor() as pool:
        cubins = dict(
            zip(which, pool.map(lambda one: compiled(arguments.out, *one), which), strict=True)
        )
    arrays = {
        f"{kind}_{chains}": np.frombuffer(path.read_bytes(), np.uint8)
        for (kind, chains), path in cubins.items()
    }
    for (kind, chains), path in cubins.items():
        for warps in () if arguments.compile else WARPS:
            clocks = arrays[f"{kind}_{chains}_{warps}"] = recorded(path, warps)
            ends = clocks[0, :, -1]
            print(f"{kind} {chains} chains, {warps} warps: last reads at {ends.tolist()}")
    np.savez_compressed(arguments.out / "issue_order.npz", **arrays)
    return 0


if __name__ == "__main__":
    sys.exit(main())
