"""Runs one of the programs beside this file, once or more, and lets torch.profiler record it.

    python record.py pytorch_programs/gemm_streams.py                  # once
    python record.py pytorch_programs/gemm_streams.py --run a --run c:two_streams --kineto OUT

A program is a file with `build(change)`, which returns the function that is measured, and
`CHANGES`, the changes that it knows. It says nothing about profilers. What is measured has run
before, so that kernels are loaded and libraries have chosen theirs (``WARM_UPS``), and has 60 ms
of silence before and after it: these mark it in a recording of the whole process.
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import torch
from torch.profiler import ProfilerActivity, profile

SILENCE = 0.06  # seconds
CUDA_EVENT = 36  # CUPTI_ACTIVITY_KIND_CUDA_EVENT
TIMED = 5


def program_at(path: Path) -> ModuleType:
    """The module in a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent))
    spec.loader.exec_module(module)
    return module


def measured(body: Callable[[], None], silence: float = SILENCE) -> float:
    """Runs the body between two silences; the seconds until the GPU is idle again."""
    torch.cuda.synchronize()
    time.sleep(silence)
    start = time.perf_counter()
    body()
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    time.sleep(silence)
    return seconds


def profiler() -> profile:
    """Kernels, copies, calls of CUDA, and what waits for what."""
    config = torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)
    both = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    return profile(activities=both, experimental_config=config)


def tell_events(on: bool) -> None:
    """Makes CUPTI tell which CUDA event was recorded in which stream.

    From CUDA 13 on PyTorch 2.11 does not, and then a trace says that a stream waited and not for
    what.
    """
    maps = Path("/proc/self/maps").read_text().splitlines()
    cupti = next((line.split()[-1] for line in maps if "libcupti" in line), None)
    if cupti is not None:
        calls = ctypes.CDLL(cupti)
        (calls.cuptiActivityEnable if on else calls.cuptiActivityDisable)(CUDA_EVENT)


def profiled(body: Callable[[], None], file: Path) -> float:
    """As `measured`, with a Kineto trace of it. The first profile of a process is slow."""
    with profiler():
        torch.zeros(1, device="cuda")
        torch.cuda.synchronize()
    with profiler() as trace:
        tell_events(True)
        seconds = measured(body)
        tell_events(False)
    trace.export_chrome_trace(str(file))
    return seconds


def warm(program: ModuleType, change: str | None) -> Callable[[], None]:
    """The body, which has run before."""
    body = program.build(change)
    for _ in range(getattr(program, "WARM_UPS", 3)):
        body()
        torch.cuda.synchronize()
    return body


def run(program: ModuleType, body: Callable[[], None], label: str, kineto: Path | None) -> None:
    """One run, and before a profiled one a few more that are only timed."""
    if kineto is None:
        print(f"{label}: {1e3 * measured(body):.3f} ms", flush=True)
        return
    if getattr(program, "WARM_UPS", True):
        times = sorted(1e3 * measured(body, SILENCE / 10) for _ in range(TIMED))
        print(f"{label}: without a profiler {statistics.median(times):.3f} ms ({times[0]:.3f} to "
              f"{times[-1]:.3f})", flush=True)  # fmt: skip
    seconds = profiled(body, kineto / f"{label.split()[0]}.json.gz")
    print(f"{label}: with Kineto {1e3 * seconds:.3f} ms", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("--change", help="the run with this change; the same as --run run:CHANGE")
    parser.add_argument("--run", action="append", metavar="NAME[:CHANGE]", default=[])
    parser.add_argument("--kineto", type=Path, metavar="FOLDER", help="write Kineto traces here")
    parser.add_argument("--lock", type=Path, help="touch the GPU only while this file is locked")
    wanted = parser.parse_args()
    program = program_at(wanted.program)
    runs = wanted.run or ["run" + (f":{wanted.change}" if wanted.change else "")]
    for _, _, change in (one.partition(":") for one in runs):
        if change and change not in program.CHANGES:
            raise SystemExit(f"{change}: no change of this program; has {sorted(program.CHANGES)}")
    if wanted.lock:  # several processes import at a time, one runs
        lock = wanted.lock.open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)  # until the process ends
    torch.manual_seed(0)
    bodies: dict[str, Callable[[], None]] = {}
    for name, _, change in (one.partition(":") for one in runs):
        if change not in bodies:  # two runs of the same use the same streams
            bodies[change] = warm(program, change or None)
        label = f"{program.__name__}-{name} {change or '-'}"
        run(program, bodies[change], label, wanted.kineto)


if __name__ == "__main__":
    main()
