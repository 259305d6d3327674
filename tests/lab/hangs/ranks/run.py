"""Runs the programs of programs.py on two GPUs, and asks `tbsched hang` why each hangs.

    python run.py OUT [--only NAME ...] [--seconds 240] [--limit 25]

Each rank runs under a capture of its own, which ends it if it hangs. Then one command joins the two
captures; a slow program is looked at while it runs, and then ended. The processes of the next
program import PyTorch meanwhile. At last the fixed variants run, without captures. OUT/results.json
has all of it, and OUT/captures.tar.xz the captures. With RANKS=gloo there are no captures and no
GPUs, which rehearses the rest.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from truth import TRUTH

HERE = Path(__file__).resolve().parent
REHEARSAL = os.environ.get("RANKS") == "gloo"
MOST_BYTES = 14 << 20  # of the archive
START = 60.0  # seconds for the import
FIXED = 10.0  # seconds for a fixed variant
ALONE = 3.0  # seconds that one rank may outlive the other
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
ENVIRONMENT = {
    "NCCL_NVLS_ENABLE": "0",  # no multicast: the GPUs of the host may be shared with others
    "NVSHMEM_DISABLE_NVLS": "1",
    "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
    "NCCL_GRAPH_REGISTER": "0",  # graphs would meet the other rank while they are recorded
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0",  # nothing but the capture ends a program that hangs
    "TORCH_NCCL_DUMP_ON_TIMEOUT": "0",
    "TORCH_NCCL_ENABLE_MONITORING": "0",
}


def descendants() -> set[int]:
    """The processes that this one has begun, and theirs."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                parents[int(folder.name)] = int(fields[1])
    found, more = set(), {os.getpid()}
    while more:
        found |= more
        more = {pid for pid, parent in parents.items() if parent in more} - found
    return found - {os.getpid()}


def on_gpus() -> list[int] | None:
    """The processes that nvidia-smi sees on the GPUs; None if it says nothing."""
    query = ["nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return [int(word) for word in done.stdout.split() if word.isdigit()]


class Pair:
    """The two processes of one program, each in a process group of its own.

    They import PyTorch and wait until :meth:`go`.
    """

    def __init__(
        self, folder: Path, arguments: list[str], environment: dict[str, str], capture: list[str]
    ) -> None:
        self.folder, self.ended = folder, False
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.processes = []
        for rank in (0, 1):
            command = [each.replace("RANK", str(rank)) for each in capture]
            name, *rest = arguments
            command += [sys.executable, str(HERE / "programs.py"), name, str(rank), str(folder)]
            with open(folder / f"log.r{rank}", "w") as log:
                self.processes.append(
                    subprocess.Popen(
                        [*command, *rest],
                        env={**os.environ, **ENVIRONMENT, **environment},
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                    )
                )

    def marks(self, rank: int) -> list[tuple[float, str]]:
        """The marks of a rank: times and words."""
        try:
            lines = (self.folder / f"marks.r{rank}").read_text().splitlines()
        except OSError:
            return []
        return [(float(line.split()[0]), line.split(" ", 1)[1]) for line in lines if " " in line]

    def have(self, word: str) -> bool:
        """Whether both ranks have this mark."""
        return all(any(mark[1] == word for mark in self.marks(rank)) for rank in (0, 1))

    def alive(self) -> list[bool]:
        return [process.poll() is None for process in self.processes]

    def go(self) -> None:
        """Waits until both have imported, and lets them use the GPUs."""
        until = time.monotonic() + START
        while not self.have("ready") and all(self.alive()) and time.monotonic() < until:
            time.sleep(0.02)
        (self.folder / "go").touch()

    def end(self) -> None:
        """Kills both, and all that they have begun."""
        if self.ended:
            return
        self.ended = True
        groups = {process.pid for process in self.processes}
        members = set()
        for pid in descendants():
            with contextlib.suppress(OSError):
                if os.getpgid(pid) in groups or os.getsid(pid) in groups:
                    members.add(pid)
        for group in groups:
            with contextlib.suppress(OSError):
                os.killpg(group, signal.SIGKILL)
        for pid in members:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        for process in self.processes:
            process.wait()
        for pid in members:  # those whose parents are gone are this process's own
            with contextlib.suppress(OSError):
                os.waitpid(pid, os.WNOHANG)

    def log(self) -> str:
        texts = [(self.folder / f"log.r{rank}").read_text(errors="replace") for rank in (0, 1)]
        return "\n".join(f"rank {rank}: {text[-4000:]}" for rank, text in enumerate(texts))


def captures_of(folder: Path) -> list[Path]:
    """The captures of a program, or nothing if a rank has none."""
    each = [sorted(folder.glob(f"r{rank}*.jsonl")) for rank in (0, 1)]
    return each[0] + each[1] if all(each) else []


def ask(folder: Path, text: bool = True) -> dict[str, Any]:
    """What `tbsched hang` says of the captures of a program; its text in a second call."""
    files = [str(path) for path in captures_of(folder)]
    if not files:
        return {"kind": "no captures", "seconds": 0.0}
    command = [sys.executable, "-m", "tbsched", "hang"]
    began = time.monotonic()
    try:
        done = subprocess.run(
            [*command, "--json", *files], capture_output=True, text=True, timeout=60
        )
    except subprocess.TimeoutExpired:
        return {"kind": "no answer", "seconds": time.monotonic() - began}
    found: dict[str, Any] = {"seconds": time.monotonic() - began, "status": done.returncode}
    try:
        found["answer"] = json.loads(done.stdout)
        found["kind"] = found["answer"]["kind"]
    except (ValueError, KeyError, TypeError):
        found |= {"kind": "error", "text": (done.stdout + done.stderr)[-3000:]}
        return found
    if not text:
        return found
    with contextlib.suppress(subprocess.TimeoutExpired):
        told = subprocess.run([*command, *files], capture_output=True, text=True, timeout=60)
        found["text"] = told.stdout + told.stderr
    return found


def watch(pair: Pair, name: str, limit: float) -> dict[str, Any]:
    """Runs a program that was captured until it is ended, and says what it did."""
    truth = TRUTH[name]
    row: dict[str, Any] = {"expected": truth.kind, "truth": truth.words}
    pair.go()
    began, wall, first_end = time.monotonic(), time.time(), None
    while any(pair.alive()):
        now = time.monotonic()
        if truth.look_after and pair.have("steady"):
            steady = max(
                seconds for rank in (0, 1) for seconds, word in pair.marks(rank) if word == "steady"
            )
            if time.time() - steady > truth.look_after:
                steps = [[at for at, word in pair.marks(r) if word == "step"] for r in (0, 1)]
                row["since_step"] = [round(time.time() - each[-1], 2) for each in steps if each]
                row["found"] = ask(pair.folder, text=False)
                break
        if not all(pair.alive()):
            first_end = first_end or now
            if now - first_end > ALONE:
                break
        if now - began > limit:
            break
        time.sleep(0.05)
    row["alive"] = pair.alive()
    row["statuses"] = [process.poll() for process in pair.processes]
    pair.end()
    row["seconds"] = time.monotonic() - began
    marks = [pair.marks(rank) for rank in (0, 1)]
    row["marks"] = [
        [f"{seconds - wall:.2f} {word}" for seconds, word in each if word != "step"]
        + [f"{seconds - wall:.2f} {word}" for seconds, word in each if word == "step"][-3:]
        for each in marks
    ]
    words = [{word.split()[0] for _, word in each} for each in marks]
    if not all("start" in each for each in words):
        row["held"] = "did not start"
    elif truth.kind != "not_hanging":
        ended = [rank for rank in (0, 1) if "end" in words[rank]]
        row["held"] = f"rank {ended} ended" if ended else "yes"
    else:
        row["held"] = "yes" if all(row["alive"]) else "was ended before the look"
    if re.search(r"^(\[rank\d\]: )?[\w.]*Error\b|^terminate called", pair.log(), re.MULTILINE):
        row["held"] = "failed"
    if row["held"] != "yes":
        row["log"] = pair.log()
    row["watch"] = {
        path.name: path.read_text(errors="replace")[:600]
        for path in sorted(pair.folder.glob("*.hang.txt"))
    }
    return row


def start(out: Path, name: str) -> Pair:
    """Begins the processes of a program under captures."""
    truth, folder = TRUTH[name], out / "x" / name
    capture = [
        sys.executable, "-m", "tbsched", "capture", "--hang-after", str(truth.hang_after), "--kill",
        "-o", str(folder / "rRANK.jsonl"), "--",
    ]  # fmt: skip
    return Pair(folder, [name], truth.environment, [] if REHEARSAL else capture)


def run_fixed(pair: Pair, names: list[str], until: float) -> dict[str, str]:
    """Runs fixed variants in the two processes, and says which of them ended."""
    found: dict[str, str] = {}
    pair.go()
    began = time.monotonic()
    since = began + 15  # to begin takes longer
    while len(found) < len(names):
        name = names[len(found)]
        if pair.have(f"end {name}"):
            found[name] = "ended"
            since = time.monotonic()
        elif not all(pair.alive()) and not pair.have(f"end {name}"):
            found[name] = "failed: " + pair.log()[-1500:]
            break
        elif time.monotonic() > min(since + FIXED, until):
            found[name] = "still ran" if time.monotonic() < until else "no time"
            break
        else:
            time.sleep(0.02)
    pair.end()
    return found


def groups_of_fixed(names: list[str]) -> list[list[str]]:
    """The fixed variants that share processes."""
    shared = [name for name in names if not TRUTH[name].own_process]
    alone = [[name] for name in names if TRUTH[name].own_process]
    return [shared, *alone] if shared else alone


def start_fixed(out: Path, names: list[str]) -> Pair:
    """Begins the processes of fixed variants."""
    environment = TRUTH[names[0]].environment if TRUTH[names[0]].own_process else {}
    return Pair(out / "x" / f"fixed_{names[0]}", ["fixed", *names], environment, [])


def all_fixed(out: Path, names: list[str], pairs: list[Pair], until: float) -> dict[str, str]:
    """Runs the fixed variants; goes on with new processes behind one that does not end.

    The last of the pairs is that of the first variants. Those that are begun here are added.
    """
    groups, found = groups_of_fixed(names), {}
    pair = pairs[-1]
    while groups:
        group = groups.pop(0)
        if groups:
            pairs.append(start_fixed(out, groups[0]))
        found |= run_fixed(pair, group, until)
        rest = [name for name in group if name not in found]
        if time.monotonic() > until:
            break
        if rest:
            if groups:
                pairs[-1].end()
            groups.insert(0, rest)
            pairs.append(start_fixed(out, rest))
        pair = pairs[-1]
    return found


def pack(out: Path, names: list[str]) -> list[str]:
    """Packs the captures; leaves out the largest ones if they are too many. Returns those."""
    left: list[str] = []
    size = {
        name: sum(path.stat().st_size for path in captures_of(out / "x" / name)) for name in names
    }
    archive = out / "captures.tar.xz"
    while size:
        files = [
            str(path.relative_to(out / "x"))
            for name in size
            for path in captures_of(out / "x" / name)
        ]
        if not files:
            break
        subprocess.run(
            ["tar", "-C", str(out / "x"), "-I", "xz -T0 -6", "-cf", str(archive), *files],
            check=True,
            timeout=120,
        )
        if archive.stat().st_size <= MOST_BYTES:
            break
        left.append(max(size, key=lambda name: size[name]))
        del size[left[-1]]
    return left


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", nargs="*", default=[*TRUTH], metavar="NAME")
    parser.add_argument("--seconds", type=float, default=240, help="for everything")
    parser.add_argument("--limit", type=float, default=25, help="seconds of one program")
    arguments = parser.parse_args()
    out: Path = arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, lambda *_: sys.exit(1))  # so that `finally` is reached
    began = time.monotonic()
    until = began + arguments.seconds - 12  # what packing takes
    names: list[str] = arguments.only
    rows: dict[str, dict[str, Any]] = {}
    asked: dict[str, concurrent.futures.Future[dict[str, Any]]] = {}
    pairs: list[Pair] = []
    results: dict[str, Any] = {"programs": rows, "gpus_before": on_gpus()}

    def keep() -> None:
        results["seconds"] = time.monotonic() - began
        (out / "results.json").write_text(json.dumps(results, indent=1))

    pool = concurrent.futures.ThreadPoolExecutor(2)
    try:
        pairs.append(start(out, names[0]))
        for number, name in enumerate(names):
            pair = pairs[-1]
            # Keeps the time of this program and of the fixed variants.
            last = number + 1 == len(names) or time.monotonic() > until - 65
            pairs.append(
                start_fixed(out, groups_of_fixed([*rows, name])[0])
                if last
                else start(out, names[number + 1])
            )
            rows[name] = watch(pair, name, arguments.limit)
            if "found" not in rows[name]:
                asked[name] = pool.submit(ask, pair.folder)
            left = on_gpus()
            deadline = time.monotonic() + 3
            while left and time.monotonic() < deadline:
                time.sleep(0.2)
                left = on_gpus()
            rows[name]["gpus_after"] = left
            print(f"{time.monotonic() - began:6.1f} s {name}: {rows[name]['held']}", flush=True)
            keep()
            if last:
                break
        for name, fixed in all_fixed(out, [*rows], pairs, until).items():
            rows[name]["fixed"] = fixed
        for name, future in asked.items():
            rows[name]["found"] = future.result(timeout=130)
        keep()
        results["left_out"] = pack(out, [*rows])
    finally:
        for pair in pairs:
            pair.end()
        for pid in descendants():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        pool.shutdown(cancel_futures=True)
        results["gpus_after"] = on_gpus()
        results["not_run"] = [name for name in names if name not in rows]
        keep()
    print(f"{time.monotonic() - began:6.1f} s in all; on the GPUs: {results['gpus_after']}")


if __name__ == "__main__":
    main()
