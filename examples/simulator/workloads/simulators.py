"""Runs the workloads in GPGPU-Sim (as PTX) and in Accel-Sim (as traces).

    python simulators.py gpgpu-sim --policy off --out off.jsonl.xz [NAME...]
    python simulators.py accel-sim --policy device --out device.jsonl.xz [NAME...]
    python simulators.py accel-sim --policy stock --out stock.jsonl.xz [NAME...]

With `stock` the simulator is one that into_gpgpu_sim.py has not changed. GPGPUSIM_ROOT,
ACCELSIM_ROOT and what else the simulators need must be set: source their setup_environment first.
The file gets a trace of each workload that the simulator can run. Times are scaled: a step of the
simulator is a step of the workload. The seconds that are printed are the processor's, in the
simulator alone.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import workloads
from blocks import placement

import tbsched as tb

HERE = Path(__file__).resolve().parent
STEP_CYCLES = 16  # of the simulated clock
# What a chain of one instruction per step takes, in cycles of the trace-driven simulator.
TRACE_CONFIG = """
-specialized_unit_2 1,4,200,4,4,TEX
-trace_opcode_latency_initiation_spec_op_2 12,4
"""


def steps(launch: tb.Launch) -> list[int]:
    """How many steps each block runs."""
    duration = launch.duration
    seconds = duration if isinstance(duration, tuple) else (duration,) * launch.blocks
    return [round(float(value) / workloads.STEP) for value in seconds]  # type: ignore[arg-type]


def ptx(launches: list[tb.Launch]) -> str:
    """A kernel for each launch. Thread 0 of a block waits; its duration is in memory."""
    text = ".version 7.0\n.target sm_70\n.address_size 64\n//! ptxas info    : 0 bytes gmem\n"
    for k, launch in enumerate(launches):
        text += f"""
//! ptxas info    : Compiling entry function 'kernel_{k}' for 'sm_70'
//! ptxas info    : Function properties for kernel_{k}
//!     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
//! ptxas info    : Used {launch.registers} registers, {launch.shared_memory} bytes smem
.visible .entry kernel_{k}(.param .u64 cycles_{k})
{{
  .reg .pred %p<3>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<5>;
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra END_{k};
  mov.u32 %r2, %clock;
  ld.param.u64 %rd1, [cycles_{k}];
  mov.u32 %r3, %ctaid.x;
  mul.wide.u32 %rd2, %r3, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r4, [%rd3];
WAIT_{k}:
  mov.u32 %r5, %clock;
  sub.s32 %r6, %r5, %r2;
  setp.lt.u32 %p2, %r6, %r4;
  @%p2 bra WAIT_{k};
END_{k}:
  ret;
}}
"""
    return text


def write_traces(launches: list[tb.Launch], folder: Path) -> None:
    """Traces of Accel-Sim: warp 0 of a block has an instruction for each step."""
    names = []
    for k, launch in enumerate(launches):
        names.append(f"kernel-{k + 1}.traceg")
        lines = [
            f"-kernel name = kernel_{k}",
            f"-kernel id = {k + 1}",
            f"-grid dim = ({launch.blocks},1,1)",
            f"-block dim = ({launch.threads},1,1)",
            f"-shmem = {launch.shared_memory}",
            f"-nregs = {launch.registers}",
            "-binary version = 70",
            f"-cuda stream id = {launch.stream}",
            "-shmem base_addr = 0x00007f0000000000",
            "-local mem base_addr = 0x00007f1000000000",
            "-nvbit version = 1.5",
            "-accelsim tracer version = 3",
            "",
            "#traces format = PC mask dest_num [reg_dests] opcode src_num [reg_srcs] mem_width",
            "",
        ]
        for block, count in enumerate(steps(launch)):
            lines += ["#BEGIN_TB", "", f"thread block = {block},0,0", ""]
            for warp in range(-(-launch.threads // 32)):
                chain = ["0010 ffffffff 1 R2 TEX 1 R2 0"] * count if warp == 0 else []
                lines += [f"warp = {warp}", f"insts = {len(chain) + 1}", *chain]
                lines += ["0020 ffffffff 0 EXIT 0 0", ""]
            lines += ["#END_TB", ""]
        (folder / names[-1]).write_text("\n".join(lines), "utf-8")
    (folder / "kernelslist.g").write_text("\n".join(names) + "\n", "utf-8")


def options(launches: list[tb.Launch], policy: str, board: str, folder: Path) -> str:
    """Options of a run, after those of h200.config."""
    if policy == "stock":
        return "\n-trace_enabled 1\n-trace_components LIVENESS\n-trace_sampling_core -1\n"
    lines = [
        "",
        f"-tbsched_policy {policy}",
        "-tbsched_device h200",
        f"-tbsched_board {board}",
        f"-tbsched_launches {folder / 'launches'}",
        f"-tbsched_blocks {folder / 'blocks'}",
    ]
    rows = [
        f"{k.cluster} {k.priority} {-1 if k.carveout is None else k.carveout}" for k in launches
    ]
    (folder / "launches").write_text("\n".join(rows) + "\n", "utf-8")
    return "\n".join(lines) + "\n"


def blocks_of_stock(output: str) -> str:
    """Returns lines as those of -tbsched_blocks, from what an unchanged simulator prints.

    Blocks of a kernel start in the order of their indices.
    """
    event = re.compile(
        r"Cycle (\d+): LIVENESS - Core (\d+) - GPGPU-Sim uArch: "
        r"(?:cta: *(\d+), .*kernel_uid:(\d+)|Finished CTA #(\d+))"
    )
    started: dict[str, int] = {}
    running: dict[tuple[str, str], str] = {}
    lines = []
    for cycle, core, slot, kernel, ended in event.findall(output):
        if ended:
            lines.append(f"{running.pop((core, ended))} {cycle}")
        else:
            block = started.get(kernel, 0)
            started[kernel] = block + 1
            running[core, slot] = f"{kernel} {block} {core} {cycle}"
    return "\n".join(lines)


class Ended(Exception):
    """The simulator ended with an error."""


def as_trace(seq: tb.Sequence, name: str, blocks: Path, extra: dict[str, object]) -> tb.Trace:
    """Returns where the simulator put the blocks."""
    rows = np.loadtxt(blocks, dtype=np.int64, ndmin=2)
    rows[:, 3:] = (rows[:, 3:] - rows[:, 3].min()) * round(workloads.STEP * 1e9 / STEP_CYCLES)
    placements = [
        placement(rows[rows[:, 0] == k + 1, 1:], launch.blocks, f"{name}: launch {k}")
        for k, launch in enumerate(seq.launches)
    ]
    device = tb.predict(seq, "h200").device
    return tb.Trace(seq, device, tuple(placements), id=name, extra=extra)


def run(simulator: str, policy: str, board: str, name: str, log: Path) -> tb.Trace:
    """Runs a workload in a folder of its own."""
    seq = workloads.sequence(name)
    launches = list(seq.launches)
    root = Path(os.environ["GPGPUSIM_ROOT"])
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        config = (root / "configs/tested-cfgs/SM7_QV100/gpgpusim.config").read_text("utf-8")
        config += "\n" + (HERE / "h200.config").read_text("utf-8")
        config += options(launches, policy, board, folder)
        (folder / "gpgpusim.config").write_text(config, "utf-8")
        if simulator == "gpgpu-sim":
            command = [str(folder / "loader")]
            shutil.copy(os.environ["LOADER"], folder / "loader")
            (folder / "loader.sm_70.ptx").write_text(ptx(launches), "utf-8")
            text = "".join(
                f"{k.blocks} {k.threads} {k.stream} {k.priority} "
                f"{' '.join(str(count * STEP_CYCLES) for count in steps(k))}\n"
                for k in launches
            )
        else:
            accel = Path(os.environ["ACCELSIM_ROOT"])
            write_traces(launches, folder)
            trace_config = accel / "configs/tested-cfgs/SM7_QV100/trace.config"
            (folder / "trace.config").write_text(
                trace_config.read_text("utf-8") + TRACE_CONFIG, "utf-8"
            )
            command = [str(accel / "bin/release/accel-sim.out"), "-trace", "./kernelslist.g"]
            command += ["-config", "gpgpusim.config", "-config", "trace.config"]
            text = ""
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        done = subprocess.run(
            command,
            cwd=folder,
            input=text,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        with log.open("a", encoding="utf-8") as file:
            file.write(done.stdout)
        if done.returncode:
            raise Ended(f"ended with {done.returncode}; see {log}")
        if policy == "stock":
            (folder / "blocks").write_text(blocks_of_stock(done.stdout), "utf-8")
        extra: dict[str, object] = {"policy": policy, "seconds": round(seconds, 2)}
        return as_trace(seq, name, folder / "blocks", extra)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("simulator", choices=["gpgpu-sim", "accel-sim"])
    parser.add_argument("--policy", default="device", help="stock, off, device, or a policy")
    parser.add_argument("--board", default="none", help="a device file with the map of the board")
    parser.add_argument("--out", type=Path, required=True, help="the traces")
    parser.add_argument("names", nargs="*", metavar="NAME", help="workloads; default: all")
    arguments = parser.parse_intermixed_args()
    board = arguments.board
    if board != "none":
        board = str(Path(board).resolve())
    traces = []
    for name in arguments.names or workloads.WORKLOADS:
        log = arguments.out.with_suffix(".log")
        try:
            traces.append(run(arguments.simulator, arguments.policy, board, name, log))
        except Ended as error:
            print(f"{name}: {error}", flush=True)
            continue
        print(f"{name}: {traces[-1].extra['seconds']} s", flush=True)
        tb.save_traces(arguments.out, traces)


if __name__ == "__main__":
    main()
