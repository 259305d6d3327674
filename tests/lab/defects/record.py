"""Time and profile the programs of this folder on a GPU.

``python3 record.py --out DIR [--only NAME ...] [--iterations N] [--tar FILE]`` runs both variants
of each program in a fresh process (in two processes where one variant would warm up the other),
times their steps without a profiler, records a few steps with ``torch.profiler``, and writes
``DIR/NAME-VARIANT.json.gz`` and ``DIR/times.json``.
"""

import argparse
import contextlib
import gzip
import importlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
WARM_UP_STEPS = 5
REPEATS = 5
REPEAT_S = 0.1
PROFILER_WARM_UP_STEPS = 3
MOST_KERNELS = 2000
PROGRAM_TIMEOUT_S = 60.0
PART_BYTES = 15 * 1024 * 1024
MOST_PARTS = 6

Step = Callable[[], object]


# ---------------------------------------------------------------------------------------------
# In the child process: one program, one or two variants
# ---------------------------------------------------------------------------------------------


def as_number(value: object) -> float:
    """Return one number that stands for a step's result: the sum of its absolute values."""
    import torch

    if isinstance(value, torch.Tensor):
        return float(value.detach().double().abs().sum().item())
    if isinstance(value, int | float):
        return abs(float(value))
    array: Any = value  # a CuPy array
    return float(abs(array).astype("float64").sum())


def seconds_for(step: Step, steps: int) -> float:
    """Return the seconds per step over ``steps`` steps between two device synchronisations."""
    import torch

    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / steps


def record_trace(step: Step, steps: int, path: Path) -> float:
    """Profile ``steps`` steps into the Chrome trace ``path``; return the seconds per step.

    The profiler's own warm-up steps come first and are not in the trace.  The device is
    synchronised before the first recorded step and within the last one.
    """
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule

    profiler = profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
        schedule=schedule(wait=0, warmup=PROFILER_WARM_UP_STEPS, active=steps, repeat=1),
        on_trace_ready=lambda finished: finished.export_chrome_trace(str(path)),
        record_shapes=False,
        with_stack=False,
    )
    with profiler:
        for _ in range(PROFILER_WARM_UP_STEPS - 1):
            step()
            profiler.step()
        step()
        torch.cuda.synchronize()
        profiler.step()  # recording begins here
        begin = time.perf_counter()
        for _ in range(steps - 1):
            step()
            profiler.step()
        step()
        torch.cuda.synchronize()
        end = time.perf_counter()
        profiler.step()  # recording ends here; the trace is written
    return (end - begin) / steps


def count_events(path: Path) -> tuple[int, int]:
    """Return how many kernels and how many CPU operations a Chrome trace holds."""
    with path.open(encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    categories = [event.get("cat", "") for event in events if event.get("ph") == "X"]
    return categories.count("kernel"), categories.count("cpu_op")


def profile_variant(step: Step, iterations: int, target: Path) -> dict[str, float | int]:
    """Record a variant's trace into ``target`` (gzip), with fewer steps if it has many kernels."""
    steps = iterations
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "trace.json"
        seconds = record_trace(step, steps, plain)
        kernels, operations = count_events(plain)
        if kernels > MOST_KERNELS and steps > 2:
            steps = max(2, steps * MOST_KERNELS // kernels)
            seconds = record_trace(step, steps, plain)
            kernels, operations = count_events(plain)
        target.write_bytes(gzip.compress(plain.read_bytes(), compresslevel=6))
    return {
        "profiled_step_s": seconds,
        "steps": steps,
        "kernels": kernels,
        "cpu_ops": operations,
    }


def measure(job: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Build, time and profile the job's variants; return what was found, by variant.

    A variant that fails has the key ``error`` and the rest is left out.
    """
    import torch

    program = importlib.import_module(job["name"])
    found: dict[str, dict[str, Any]] = {variant: {} for variant in job["variants"]}
    steps: dict[str, Step] = {}
    counts: dict[str, int] = {}

    @contextlib.contextmanager
    def guarded(variant: str) -> Iterator[None]:
        try:
            yield
        except Exception:
            found[variant]["error"] = traceback.format_exc()
            steps.pop(variant, None)

    for variant in job["variants"]:
        with guarded(variant):
            torch.manual_seed(0)
            step = program.build(variant)
            torch.cuda.synchronize()
            value = step()
            torch.cuda.synchronize()
            found[variant]["result"] = as_number(value)
            del value
            for _ in range(WARM_UP_STEPS - 1):
                step()
            once = seconds_for(step, 3)
            counts[variant] = max(3, min(1000, round(REPEAT_S / once)))
            steps[variant] = step

    times: dict[str, list[float]] = {variant: [] for variant in job["variants"]}
    for _ in range(REPEATS):  # the variants take turns, so that slow drifts meet both alike
        for variant in list(steps):
            with guarded(variant):
                seconds_for(steps[variant], 2)
                times[variant].append(seconds_for(steps[variant], counts[variant]))

    for variant in list(steps):
        with guarded(variant):
            found[variant]["unprofiled_step_s"] = statistics.median(times[variant])
            target = Path(job["out"]) / f"{job['name']}-{variant}.json.gz"
            found[variant].update(profile_variant(steps[variant], job["iterations"], target))
    return found


def child() -> None:
    """Import PyTorch, wait for a job on standard input, and do it."""
    import torch  # imported before the job comes; CUDA is not touched until then

    line = sys.stdin.readline()
    if not line:
        return
    job = json.loads(line)
    sys.path.insert(0, str(HERE))
    found = measure(job)
    Path(job["result"]).write_text(json.dumps(found), encoding="utf-8")
    if not any("error" in entry for entry in found.values()):
        torch.cuda.synchronize()


# ---------------------------------------------------------------------------------------------
# In the parent process: all programs, one after the other
# ---------------------------------------------------------------------------------------------


class Child:
    """A fresh process that has begun to import PyTorch and waits for its job."""

    def __init__(self) -> None:
        """Start the process, with what it prints kept in a temporary file."""
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in finish and stop
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "--child"],
            stdin=subprocess.PIPE,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def finish(self, job: dict[str, Any], timeout_s: float) -> dict[str, dict[str, Any]]:
        """Hand over the job, wait for its end, and return what the process found."""
        result = Path(job["result"])
        timed_out = False
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.write(json.dumps(job).encode() + b"\n")
            self.process.stdin.close()
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            timed_out = True
        self.kill()
        found: dict[str, dict[str, Any]] = {}
        if result.exists():
            found = json.loads(result.read_text(encoding="utf-8"))
            result.unlink()
        else:
            self.log.seek(0)
            tail = self.log.read()[-1500:].decode(errors="replace")
            reason = f"no end within {timeout_s:.0f} s" if timed_out else "the process failed"
            found = {variant: {"error": f"{tail}\n{reason}"} for variant in job["variants"]}
        self.log.close()
        return found

    def kill(self) -> None:
        """End the process and those that it started itself."""
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """End a process that got no job."""
        self.kill()
        self.log.close()


def find_programs(only: list[str]) -> list[str]:
    """Return the programs' names in order; with ``only``, those with one of its words in them."""
    paths = [*sorted(HERE.glob("defect_*.py")), *sorted(HERE.glob("nothing_*.py"))]
    names = [path.stem for path in paths]
    return [name for name in names if not only or any(word in name for word in only)]


def jobs_for(name: str, out: Path, iterations: int) -> list[dict[str, Any]]:
    """Return a program's jobs: one for both variants, or one for each."""
    variants = ["defect", "fixed"] if name.startswith("defect") else ["given", "changed"]
    text = (HERE / f"{name}.py").read_text(encoding="utf-8")
    separate = re.search(r"^SEPARATE = True$", text, re.MULTILINE) is not None
    groups = [[variant] for variant in variants] if separate else [variants]
    return [
        {
            "name": name,
            "variants": group,
            "out": str(out),
            "iterations": iterations,
            "result": str(out / f".{name}-{group[0]}.result"),
        }
        for group in groups
    ]


def table(found: dict[str, dict[str, dict[str, Any]]]) -> str:
    """Return a table of the times, with the ratio of the first variant to the second."""
    lines = [
        f"{'name':32} {'variant':8} {'unprofiled ms':>13} {'profiled ms':>11} "
        f"{'kernels':>7} {'ratio':>6} same result"
    ]
    for name, variants in found.items():
        entries = list(variants.values())
        complete = len(entries) == 2 and not any("error" in entry for entry in entries)
        for variant, entry in variants.items():
            if "error" in entry:
                last = entry["error"].strip().splitlines()[-1][:60]
                lines.append(f"{name:32} {variant:8} failed: {last}")
                continue
            line = (
                f"{name:32} {variant:8} {entry['unprofiled_step_s'] * 1e3:13.3f} "
                f"{entry['profiled_step_s'] * 1e3:11.3f} {entry['kernels']:7d}"
            )
            if complete and entry is entries[1]:
                first, second = entries
                ratio = first["unprofiled_step_s"] / second["unprofiled_step_s"]
                scale = max(first["result"], second["result"], 1e-30)
                same = abs(first["result"] - second["result"]) <= 0.02 * scale
                line += f" {ratio:6.3f} {'yes' if same else 'NO'}"
            lines.append(line)
    return "\n".join(lines)


def write_times(found: dict[str, dict[str, dict[str, Any]]], path: Path) -> None:
    """Write the times of all variants that ran to the end, a program a line."""
    keys = ("unprofiled_step_s", "profiled_step_s", "steps", "kernels")
    times = {
        name: {
            variant: {key: entry[key] for key in keys}
            for variant, entry in variants.items()
            if "error" not in entry
        }
        for name, variants in found.items()
    }
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in times.items())
    path.write_text(f"{{\n{rows}\n}}\n", encoding="utf-8")


def part_path(target: Path, number: int) -> Path:
    """Return the path of one archive part: ``FILE.tar`` becomes ``FILE0.tar``, ``FILE1.tar`` …"""
    if target.is_dir():
        return target / f"part{number}.tar"
    return target.with_name(f"{target.name.removesuffix('.tar')}{number}.tar")


def write_parts(out: Path, found: dict[str, dict[str, dict[str, Any]]], target: Path) -> None:
    """Pack ``times.json`` and the traces into parts; what finds no room is named and left out.

    The traces with the most CPU operations are packed first, so they are dropped last.
    """
    traces = [
        (entry["cpu_ops"], out / f"{name}-{variant}.json.gz")
        for name, variants in found.items()
        for variant, entry in variants.items()
        if "error" not in entry
    ]
    traces.sort(key=lambda trace: (-trace[0], trace[1].name))
    parts: list[list[Path]] = []
    sizes: list[int] = []
    for path in [out / "times.json", *(path for _, path in traces)]:
        size = path.stat().st_size + 2048  # a member's header and padding
        room = (i for i, used in enumerate(sizes) if used + size <= PART_BYTES - 20480)
        index = next(room, len(parts))
        if index == len(parts):
            if len(parts) == MOST_PARTS or size > PART_BYTES - 20480:
                print(f"no room in the archive for {path.name}")
                continue
            parts.append([])
            sizes.append(0)
        parts[index].append(path)
        sizes[index] += size
    for number, paths in enumerate(parts):
        archive = part_path(target, number)
        with tarfile.open(archive, "w") as tar:  # the traces are compressed already
            for path in paths:
                tar.add(path, arcname=path.name)
        print(f"{archive}: {len(paths)} files, {archive.stat().st_size / 2**20:.1f} MiB")


def parse_arguments() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description="Time and profile the programs of this folder.")
    parser.add_argument("--out", type=Path, help="folder for the traces and times.json")
    parser.add_argument("--only", nargs="+", default=[], help="names, or parts of names")
    parser.add_argument("--iterations", type=int, default=10, help="steps in each trace")
    parser.add_argument("--tar", type=Path, help="also pack all into FILE0.tar, FILE1.tar, …")
    parser.add_argument(
        "--limit-s", type=float, default=415.0, help="start no further program after this time"
    )
    parser.add_argument(
        "--no-ahead",
        action="store_true",
        help="do not import PyTorch for the next program while the present one runs",
    )
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.out is None and not arguments.child:
        parser.error("--out is needed")
    if arguments.iterations < 1:
        parser.error("--iterations must be at least 1")
    return arguments


def main() -> int:
    """Run all programs; return 0 when none failed."""
    arguments = parse_arguments()
    if arguments.child:
        child()
        return 0
    begin = time.monotonic()
    out = arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    names = find_programs(arguments.only)
    jobs = [job for name in names for job in jobs_for(name, out, arguments.iterations)]
    found: dict[str, dict[str, dict[str, Any]]] = {}
    skipped: list[str] = []
    ahead: Child | None = None
    # The first import reads the libraries from disk, which can take long: do it once, untimed.
    with contextlib.suppress(subprocess.TimeoutExpired):
        warm_up = "import numpy, torch; torch.cuda.init(); torch.ones(1, device='cuda').item()"
        subprocess.run([sys.executable, "-c", warm_up], timeout=120, check=False)
    try:
        for number, job in enumerate(jobs):
            if time.monotonic() - begin > arguments.limit_s:
                skipped = [f"{late['name']} {late['variants']}" for late in jobs[number:]]
                break
            present = ahead or Child()
            ahead = None
            if number + 1 < len(jobs) and not arguments.no_ahead:
                ahead = Child()
            entries = present.finish(job, PROGRAM_TIMEOUT_S)
            found.setdefault(job["name"], {}).update(entries)
            for variant, entry in entries.items():
                state = "ok"
                if "error" in entry:
                    state = "FAILED\n" + entry["error"].strip()
                spent = time.monotonic() - begin
                print(f"{spent:6.1f} s  {job['name']} {variant}: {state}", flush=True)
            write_times(found, out / "times.json")
    finally:
        if ahead is not None:
            ahead.stop()
    write_times(found, out / "times.json")
    if arguments.tar is not None:
        write_parts(out, found, arguments.tar.resolve())
    print(table(found))
    for line in skipped:
        print(f"skipped for want of time: {line}")
    failed = any("error" in entry for variants in found.values() for entry in variants.values())
    return 1 if failed or skipped else 0


if __name__ == "__main__":
    sys.exit(main())
