"""Runs the programs of programs/ on one GPU, captured, and lets the captures be judged.

    python run.py OUT [--set third] [--only NAME ...] [--part 1/2] [--limit 20] [--slow 8]
    python run.py OUT --pid 12

One program at a time uses the GPU. The next ones have started already, and wait for their turn
before their first call of CUDA. TBSCHED names the command, if it is not ``python -m tbsched``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import lzma
import os
import shlex
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from truth import SETS, TRUTH

HERE = Path(__file__).resolve().parent / "programs"
TBSCHED = shlex.split(os.environ.get("TBSCHED", f"{sys.executable} -m tbsched"))
NVCC = shlex.split(os.environ.get("NVCC", "nvcc"))
HANG_AFTER = 2  # seconds
AHEAD = 5  # processes that have started and wait for their turn
LONG_TO_COMPILE = ("policy_first", "thrust_default", "vector_leaves_scope")
FIXED_LIMIT = 15  # seconds
MOST = 13 << 20  # bytes of captures.tar.xz


@dataclass
class Job:
    """A process that runs one variant of a program when its turn comes."""

    name: str
    program: list[str]
    folder: Path
    captured: bool
    go: Path = field(init=False)
    process: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self.go = self.folder / f"{self.name}.{self.variant}.go"

    @property
    def variant(self) -> str:
        return "hang" if self.captured else "fixed" if self.program[-1] == "fixed" else "plain"

    @property
    def capture(self) -> Path:
        """The capture, or what is left of one that was not finished."""
        whole = self.folder / f"{self.name}.jsonl"
        parts = sorted(self.folder.glob(f"{self.name}.part-*.jsonl"))
        return parts[-1] if parts and not whole.exists() else whole

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.{self.variant}.log"

    def start(self) -> None:
        command = self.program
        if self.captured:
            watch = ["--hang-after", str(HANG_AFTER), "--kill"]
            command = [*TBSCHED, "capture", *watch, "-o", str(self.capture), "--", *command]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment(self.name) | {"HANGS_GO": str(self.go)},
                start_new_session=True,
            )

    def wait(self, seconds: float) -> bool:
        """Lets it go, and returns whether it ended within so many seconds."""
        assert self.process is not None
        self.go.touch()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        return self.process.poll() is not None

    def end(self) -> None:
        """Kills the program, gives the capture five seconds, and kills what is left."""
        assert self.process is not None
        if self.captured:
            for pid in processes(self.go):
                if arguments(pid)[: len(self.program)] == self.program:
                    kill(pid)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(5)
        if self.process.poll() is None:
            kill(self.process.pid)
        for pid in processes(self.go):
            kill(pid)
        self.process.wait()
        until = time.monotonic() + 5
        while processes(self.go) and time.monotonic() < until:
            time.sleep(0.02)

    def said(self) -> str:
        return self.log.read_text("utf-8", "replace") if self.log.exists() else ""


def environment(name: str) -> dict[str, str]:
    left_out = ("CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_MODULE_LOADING", "CUDA_LAUNCH_BLOCKING")
    kept = {key: value for key, value in os.environ.items() if key not in left_out}
    return kept | TRUTH[name].env


def processes(go: Path) -> list[int]:
    """The processes that were started with this file to wait for."""
    wanted = f"HANGS_GO={go}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
    return found


def arguments(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return []
    return [each.decode() for each in text.split(b"\0")[:-1]]


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def compile_one(name: str, folder: Path) -> str:
    """Compiles a program of CUDA C++, and returns what the compiler says if it fails."""
    options = ["-std=c++17", "-O3", "-arch=sm_90", "-lcuda"]
    done = subprocess.run(
        [*NVCC, *options, "-o", str(folder / name), str(HERE / f"{name}.cu")],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr[-2000:] if done.returncode else ""


def command_of(name: str, folder: Path) -> list[str]:
    script = HERE / f"{name}.py"
    return [sys.executable, str(script)] if script.exists() else [str(folder / name)]


def judge(*of: str) -> dict[str, Any]:
    """What ``tbsched hang`` says, and how many seconds it took."""
    began = time.monotonic()
    try:
        done = subprocess.run(
            [*TBSCHED, "hang", "--json", *of], capture_output=True, text=True, timeout=120
        )
    except subprocess.TimeoutExpired:
        return {"error": "took more than 120 s", "judge_s": 120.0}
    found: dict[str, Any] = {"judge_s": round(time.monotonic() - began, 2)}
    try:
        found["answer"] = json.loads(done.stdout)
    except ValueError:
        found["error"] = (done.stderr or done.stdout)[-2000:]
    return found


def pack(file: Path) -> bytes | None:
    """The file, packed; None if it is not there or is too large to be packed in time."""
    if not file.exists() or file.stat().st_size > 300 << 20:
        return None
    return lzma.compress(file.read_bytes(), preset=1)


def on_gpu() -> list[str]:
    """The processes that use the GPU, as far as they are seen."""
    try:
        done = subprocess.run(
            ["nvidia-smi", "--query-compute-apps=pid,name", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=20,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return [f"not known: {error}"]
    return done.stdout.split("\n")[:-1]


def run_captured(job: Job, limit: float, slow: float) -> dict[str, Any]:
    """Runs it under a capture, which ends it if it hangs."""
    is_slow = TRUTH[job.name].kind == "not_hanging"
    began = time.monotonic()
    ended = job.wait(HANG_AFTER + slow + 0.5 if is_slow else limit)
    seconds = time.monotonic() - began
    job.end()
    watched = job.folder / f"{job.name}.hang.txt"
    assert job.process is not None
    return {
        "run_s": round(seconds, 2),
        "capture_ended": ended,
        "capture_status": job.process.returncode,
        "program_ended": "\nended\n" in "\n" + job.said(),
        "watch": watched.read_text("utf-8") if watched.exists() else None,
        "output": job.said()[-2000:],
    }


def run_fixed(job: Job) -> dict[str, Any]:
    began = time.monotonic()
    ended = job.wait(FIXED_LIMIT)
    seconds = time.monotonic() - began
    job.end()
    assert job.process is not None
    return {
        "fixed_ended": ended and job.process.returncode == 0 and "ended" in job.said(),
        "fixed_s": round(seconds, 2),
        "fixed_output": job.said()[-500:],
    }


def run_all(
    names: list[str], folder: Path, options: argparse.Namespace, until: float
) -> tuple[dict[str, dict[str, Any]], dict[str, Future[bytes | None]]]:
    """Runs each under a capture and then fixed, and returns what came, and the packed captures."""
    waiting: deque[Job] = deque()
    for name in names:
        program = command_of(name, folder)
        waiting.append(Job(name, program, folder, captured=True))
        if TRUTH[name].kind != "not_hanging":
            waiting.append(Job(name, [*program, "fixed"], folder, captured=False))
    started: deque[Job] = deque()
    results: dict[str, dict[str, Any]] = {}
    judged: dict[str, Future[dict[str, Any]]] = {}
    packed: dict[str, Future[bytes | None]] = {}
    with ThreadPoolExecutor(6) as pool:
        try:
            while (waiting or started) and time.monotonic() < until:
                while waiting and len(started) <= AHEAD:
                    waiting[0].start()
                    started.append(waiting.popleft())
                job = started[0]
                if job.captured:
                    results[job.name] = run_captured(job, options.limit, options.slow)
                    judged[job.name] = pool.submit(judge, str(job.capture))
                    packed[job.name] = pool.submit(pack, job.capture)
                    if not results[job.name]["capture_ended"]:
                        results[job.name]["on_gpu"] = on_gpu()
                else:
                    results[job.name] |= run_fixed(job)
                print(f"{job.name} {job.variant}", flush=True)
                started.popleft()
        finally:
            for job in started:
                job.end()
        for name, future in judged.items():
            results[name] |= future.result()
    return results, packed


def run_attached(names: list[str], folder: Path) -> dict[str, dict[str, Any]]:
    """Runs each without a capture, and attaches a debugger after two seconds."""
    results = {}
    for name in names:
        job = Job(name, command_of(name, folder), folder, captured=False)
        job.start()
        try:
            ended = job.wait(2)
            assert job.process is not None
            found: dict[str, Any] = {"error": "ended", "judge_s": 0.0}
            if not ended:
                found = judge("--pid", str(job.process.pid))
            found["survived"] = job.process.poll() is None
        finally:
            job.end()
        results[name] = found
        print(name, found["judge_s"], flush=True)
    return results


def write_captures(
    path: Path, folder: Path, packed: dict[str, Future[bytes | None]]
) -> dict[str, str]:
    """Writes the captures to an archive, small ones first, and returns those that are left out."""
    left_out = {}
    size = 0
    with tarfile.open(path, "w:xz", preset=0) as archive:
        found = {name: future.result() for name, future in packed.items()}
        for name, data in sorted(found.items(), key=lambda each: len(each[1] or b"")):
            if data is None or size + len(data) > MOST:
                left_out[name] = "no capture, or too large" if data is None else f"{len(data)} B"
                continue
            size += len(data) + 1024
            file = folder / f"{name}.jsonl.xz"
            file.write_bytes(data)
            archive.add(file, file.name)
    return left_out


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--set", choices=[*SETS], default="third", help="of programs")
    parser.add_argument("--only", nargs="+", choices=[*TRUTH], metavar="NAME")
    parser.add_argument("--part", default="1/1", help="2/3: the second third of the programs")
    parser.add_argument("--limit", type=float, default=20, help="seconds of a program that hangs")
    parser.add_argument("--slow", type=float, default=8, help="seconds of a slow one after that")
    parser.add_argument("--seconds", type=float, default=540, help="after which none is begun")
    parser.add_argument("--pid", type=int, help="attach to so many, instead of captures")
    options = parser.parse_args()
    until = time.monotonic() + options.seconds
    began = time.monotonic()
    options.out.mkdir(parents=True, exist_ok=True)
    part, parts = map(int, options.part.split("/"))
    names = (options.only or [*SETS[options.set]])[part - 1 :: parts]
    if options.pid:
        names = [name for name in names if (HERE / f"{name}.cu").exists()]
        names = [name for name in names if TRUTH[name].kind != "not_hanging"]
        names = names[:: max(1, len(names) // options.pid)][: options.pid]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        compiled = [name for name in names if (HERE / f"{name}.cu").exists()]
        compiled.sort(key=lambda name: name not in LONG_TO_COMPILE)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            said = dict(
                zip(
                    compiled,
                    pool.map(lambda name: compile_one(name, folder), compiled),
                    strict=True,
                )
            )
        errors = {name: text for name, text in said.items() if text}
        for each in errors.items():
            print(*each, flush=True)
        names = [name for name in names if name not in errors]
        document: dict[str, Any] = {
            "compile_s": round(time.monotonic() - began, 1),
            "not_compiled": errors,
        }
        print("compiled", document["compile_s"], flush=True)
        if options.pid:
            document["programs"] = run_attached(names, folder)
        else:
            document["programs"], packed = run_all(names, folder, options, until)
            document["left_out"] = write_captures(options.out / "captures.tar.xz", folder, packed)
        document["on_gpu"] = on_gpu()
        document["seconds"] = round(time.monotonic() - began, 1)
        results = "results-pid.json" if options.pid else "results.json"
        (options.out / results).write_text(json.dumps(document, indent=1))
    print("done", document["seconds"], "s", flush=True)


if __name__ == "__main__":
    main()
