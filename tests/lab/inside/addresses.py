"""Records which lines each warp of some kernels touches, and asks ncu what the caches made of it.

python tests/lab/inside/addresses.py --out report --seconds 45

Compiles ``kernels/recorded``. Writes an ``.npz`` of raw arrays for each kernel, and what ncu says
of the plain kernels: ``ncu-GROUP.csv``. With ``--small-blocks`` these are the kernels with blocks
of 128 or 256 threads instead. Everything is written as it comes; what fails is reported,
and the rest goes on. ``--binary`` takes a compiled program instead.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from helpers import ROOT
from lab.script import parse

KERNELS = ("transpose", "spmv", "kmeans", "bfs", "fwt", "stencil", "gemm")
# With blocks of so many threads, their last digits, for schedulers that know blocks.
SMALL_BLOCKS = (
    *(f"{name}{threads}"
      for name in ("spmv", "kmeans", "bfs", "fwt", "flux", "products", "matvec")
      for threads in (128, 256)),
    "gemm256",
)  # fmt: skip
SWEEPS = ("sweep20", "sweep36", "sweep72")
PROBES = ("together", "strided1", "strided2", "strided4", "stored", "updated")
# What ncu looks at: kernels, and how much of an SM's memory is to be shared memory, in %.
Groups = dict[str, tuple[tuple[str, ...], int]]
GROUPS: Groups = {
    "kernels": (KERNELS, 0),
    "small": (KERNELS, 100),
    "probes": ((*PROBES, *SWEEPS), 0),
    "ladder": (tuple(f"ladder{size}" for size in (64, 128, 192, 224, 256, 320)), 0),
    "ladder-small": (tuple(f"ladder{size}" for size in (16, 24, 32, 48, 96)), 100),
}
SMALL_GROUPS: Groups = {"small-blocks": (SMALL_BLOCKS, 0)}
METRICS = (
    "l1tex__t_sector_hit_rate.pct",
    *(
        f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}{part}.sum"
        for op in ("ld", "st")
        for part in ("", "_lookup_hit", "_lookup_miss")
    ),
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "l1tex__m_xbar2l1tex_read_sectors.sum",
    "l1tex__m_l1tex2xbar_write_sectors.sum",
    "lts__t_sector_hit_rate.pct",
    *(
        f"lts__t_sectors{source}{part}.sum"
        for source in (
            "", "_op_read", "_op_write", "_srcunit_tex", "_srcunit_tex_op_read",
            "_srcunit_tex_op_write", "_srcunit_ltcfabric",
        )
        for part in ("", "_lookup_hit", "_lookup_miss")
    ),
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "dram__sectors_read.sum",
    "smsp__inst_executed.sum",
    "smsp__sass_inst_executed_op_global_ld.sum",
    "smsp__sass_inst_executed_op_global_st.sum",
    "sm__cycles_elapsed.max",
    "sm__cycles_active.avg",
)  # fmt: skip
FALLBACK = ("MemoryWorkloadAnalysis", "MemoryWorkloadAnalysis_Tables", "LaunchStats")


class Run:
    """What the steps share: folders, programs, and the time that is left."""

    def __init__(self, arguments: argparse.Namespace, folder: Path) -> None:
        self.out: Path = arguments.out
        self.folder = folder
        self.end = time.monotonic() + arguments.seconds
        self.architecture: str = arguments.architecture
        self.binary: Path = arguments.binary or folder / "recorded"

    def run(self, command: list[object], most: float) -> subprocess.CompletedProcess[str]:
        """Runs a program for as long as there is time."""
        limit = min(most, self.end - time.monotonic())
        if limit < 1:
            raise TimeoutError(f"no time left for {command[0]}")
        return subprocess.run(
            [*map(str, command)], capture_output=True, text=True, timeout=limit, check=False
        )

    def build(self) -> None:
        """Compiles the kernels."""
        if self.binary.exists():
            return
        nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
        if nvcc is None:
            raise SystemExit("no nvcc, so no kernels")
        source = ROOT / "kernels" / "recorded" / "main.cu"
        flags = ["-std=c++20", "-O3", f"-arch={self.architecture}", "-o", self.binary]
        subprocess.run([nvcc, *flags, source], check=True, timeout=60)

    def record(self, names: tuple[str, ...]) -> None:
        """Records kernels together, or, where one fails, those after it anew; keeps arrays."""
        while names:
            done = self.run([self.binary, "record", self.folder, *names], 25)
            print(done.stdout.strip(), done.stderr.strip())
            with (self.out / "records.jsonl").open("a", encoding="utf-8") as records:
                records.write(done.stdout)
            good = done.stdout.count("\n")
            for name in names[:good]:
                self.keep(name)
            names = names[good + 1 :]

    def keep(self, name: str) -> None:
        """The files of a kernel as arrays: kinds, sectors, and the steps from line to line."""
        events = np.fromfile(self.folder / f"{name}.events", np.uint64)
        lines = (events & np.uint64((1 << 40) - 1)).astype(np.int64)
        np.savez_compressed(
            self.out / f"{name}.npz",
            ends=np.fromfile(self.folder / f"{name}.ends", np.uint64),
            kind=(events >> np.uint64(44)).astype(np.uint8),
            sectors=(events >> np.uint64(40) & np.uint64(15)).astype(np.uint8),
            step=np.diff(lines, prepend=0).astype(np.int32),
            sms=np.fromfile(self.folder / f"{name}.sms", np.int32),
        )
        (self.folder / f"{name}.events").unlink()

    def profile(self, groups: Groups, group: str, ncu: str, metrics: list[str]) -> None:
        """What ncu counts for the plain kernels of a group."""
        names, carveout = groups[group]
        always = ["--clock-control", "none", "--cache-control", "all", "--csv", "--page", "raw"]
        ways: list[list[object]] = [
            *(
                ["--metrics", ",".join(some), "--section", "LaunchStats"]
                for some in ([metrics] if len(metrics) == len(METRICS) else [metrics, METRICS])
            ),
            [part for section in FALLBACK for part in ("--section", section)],
        ]
        for way in ways:
            started = time.monotonic()
            done = self.run([ncu, *always, *way, self.binary, "plain", carveout, *names], 30)
            (self.out / f"ncu-{group}.csv").write_text(done.stdout, "utf-8")
            print(f"ncu {group}: rc {done.returncode}, {time.monotonic() - started:.1f} s")
            if done.returncode == 0 and done.stdout.count("traced") >= len(names):
                return
            print(done.stdout[-1500:], done.stderr[-1500:])


def known_metrics(started: Run, ncu: str) -> list[str]:
    """Those metrics that this ncu has for this GPU; all where it does not say."""
    try:
        listed = started.run([ncu, "--query-metrics"], 15).stdout
    except subprocess.TimeoutExpired:
        listed = ""
    known = {line.split()[0] for line in listed.splitlines() if line.strip()}
    (started.out / "ncu-metrics.txt").write_text("\n".join(sorted(known)), "utf-8")
    missing = [metric for metric in METRICS if metric.split(".")[0] not in known]
    if len(missing) == len(METRICS):
        print("ncu lists no metrics: all are asked for")
        return missing
    print("metrics that ncu lacks here:", ", ".join(missing) or "none")
    return [metric for metric in METRICS if metric not in missing]


def attempt(what: str, step: object, *arguments: object) -> None:
    """A step that may fail without harm to the others."""
    try:
        step(*arguments)  # type: ignore[operator]
    except Exception:
        print(f"{what} failed:\n{traceback.format_exc()}")


def main() -> int:
    """Compiles, records and profiles."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=45.0, help="for how long")
    parser.add_argument("--binary", type=Path, help="the compiled program")
    parser.add_argument("--architecture", default="native", help="to compile for, such as sm_90")
    parser.add_argument("--small-blocks", action="store_true", help="only those kernels")
    arguments = parse(parser)
    groups, first, last = GROUPS, KERNELS, (*PROBES, "sweep20")
    if arguments.small_blocks:
        groups, first, last = SMALL_GROUPS, SMALL_BLOCKS, ()
    with tempfile.TemporaryDirectory() as folder:
        started = Run(arguments, Path(folder))
        started.build()
        attempt("record", started.record, first)
        ncu = shutil.which("ncu") or shutil.which("ncu", path="/usr/local/cuda/bin")
        if ncu is None:
            print("no ncu, so nothing to compare with")
        else:
            metrics = known_metrics(started, ncu)
            for group in groups:
                attempt(group, started.profile, groups, group, ncu, metrics)
        attempt("record", started.record, last)
    return 0


if __name__ == "__main__":
    sys.exit(main())
