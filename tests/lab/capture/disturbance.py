"""How much a capture disturbs a program of PyTorch, and whether it works after torch.profiler.

    python tests/lab/capture/disturbance.py

It needs a GPU and PyTorch. Each case runs in a process of its own, and prints the milliseconds of
five iterations, after five that warm up.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable

CASES = ("plain", "torch.profiler", "tb.capture", "tb.capture, twice", "both")
_ITERATIONS = 5


def step() -> Callable[[], None]:
    """An iteration of some dozen kernels in three streams."""
    import torch

    streams = [torch.cuda.Stream() for _ in range(3)]
    a = torch.randn(1024, 1024, device="cuda")
    out = [torch.empty_like(a) for _ in streams]

    def run() -> None:
        for _ in range(8):
            for stream, result in zip(streams, out, strict=True):
                with torch.cuda.stream(stream):
                    torch.mm(a, a, out=result)
                    result.mul_(0.5).tanh_()
        torch.cuda.synchronize()

    return run


def times(run: Callable[[], None]) -> str:
    """Milliseconds of each iteration."""
    found = []
    for _ in range(_ITERATIONS):
        begin = time.perf_counter()
        run()
        found.append(1e3 * (time.perf_counter() - begin))
    return " ".join(f"{ms:6.2f}" for ms in found)


def case(name: str) -> None:
    """One of the cases, in this process."""
    import torch

    import tbsched as tb

    run = step()
    for _ in range(_ITERATIONS):
        run()
    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    if name in ("torch.profiler", "both"):
        with torch.profiler.profile(activities=kinds):
            print(f"{name:18} profiled  {times(run)}", flush=True)
    if name in ("tb.capture", "tb.capture, twice", "both"):
        for _ in range(2 if name.endswith("twice") else 1):
            begin = time.perf_counter()
            captured = tb.capture()
            with captured:
                entered = 1e3 * (time.perf_counter() - begin)
                print(f"{name:18} captured  {times(run)}  entered in {entered:.1f} ms", flush=True)
            told = [line for line in captured.program.assumed if "apture" in line]
            print(
                f"{name:18} launches  {len(captured.program.sequence.launches)}",
                *told[:2],
                flush=True,
            )
    print(f"{name:18} plain     {times(run)}", flush=True)


def main() -> None:
    """All cases, and both of torch.profiler and a capture with TEARDOWN_CUPTI=1."""
    for name in CASES:
        subprocess.run([sys.executable, __file__, name], check=False)
    print("TEARDOWN_CUPTI=1")
    environment = {**os.environ, "TEARDOWN_CUPTI": "1"}
    subprocess.run([sys.executable, __file__, "both"], check=False, env=environment)


if __name__ == "__main__":
    case(sys.argv[1]) if len(sys.argv) > 1 else main()
