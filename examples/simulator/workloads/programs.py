"""Runs CUDA programs in GPGPU-Sim: unchanged, changed with `off`, and with tbsched.

    python programs.py COLLECTION STOCK CHANGED [--rounds N] [--device h200] [NAME...]

COLLECTION is a checkout of accel-sim/gpu-app-collection. STOCK and CHANGED are folders of GPGPU-Sim
of one version, both built, the second one after into_gpgpu_sim.py. CUDA_INSTALL_PATH is the folder
that toolkit/make.sh made, and CLANG a Clang (clang++ by default). The programs get inputs that are
made here. They run on the V100 of GPGPU-Sim (SM7_QV100), or with h200.config on an H200.

A row has the sum of the cycles of a program's kernels, how many kernels take other cycles with
`off` than unchanged, whether the results of all three are the same, and the seconds of the
processor in the simulating thread: medians of the rounds, in which one runs after the other.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import random
import re
import shlex
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
MODES = {
    "unchanged": "-gpgpu_concurrent_kernel_sm 0",
    "off": "-gpgpu_concurrent_kernel_sm 0",
    "off, together": "-gpgpu_concurrent_kernel_sm 1",
    "device": "-gpgpu_concurrent_kernel_sm 1\n-tbsched_policy device",
}


def numbers(count: int) -> list[str]:
    rng = random.Random(count)
    return [f"{rng.uniform(0.1, 1):.4f}" for _ in range(count)]


def matrix(size: int, head: str) -> bytes:
    values = numbers(size * size)
    rows = [" ".join(values[k : k + size]) for k in range(0, len(values), size)]
    return "\n".join([head, *rows, ""]).encode()


def column(count: int) -> bytes:
    return "\n".join([*numbers(count), ""]).encode()


def graph(nodes: int) -> bytes:
    """Six edges from each node."""
    rng = random.Random(nodes)
    lines = [f"{nodes}", *(f"{6 * k} 6" for k in range(nodes)), "0", f"{6 * nodes}"]
    lines += [f"{rng.randrange(nodes)} 1" for _ in range(6 * nodes)]
    return "\n".join([*lines, ""]).encode()


def hurricanes(count: int) -> bytes:
    """Records of 49 bytes, with latitude and longitude at 28."""
    rng = random.Random(count)
    places = [(rng.uniform(0, 60), rng.uniform(0, 99)) for _ in range(count)]
    rows = [f"{f'storm {k}':28}{a:5.1f} {b:5.1f}" for k, (a, b) in enumerate(places)]
    return "".join(f"{row:48}\n" for row in rows).encode()


def picture(width: int, height: int) -> bytes:
    rng = random.Random(width)
    rows = [" ".join(f"{rng.randrange(256)}" for _ in range(width)) for _ in range(height)]
    return "\n".join([f"P2\n{width} {height}\n255", *rows, ""]).encode()


def film(width: int, height: int) -> bytes:
    """An AVI of one frame, a byte per pixel."""

    def chunk(tag: bytes, data: bytes) -> bytes:
        return tag + struct.pack("<I", len(data)) + data

    stream = b"vids" + struct.pack("<4s3I6I", b"DIB ", 0, 0, 0, 1, 1, 0, 1, 0, 0).ljust(52, b"\0")
    picture = struct.pack("<3I2H6I", 40, width, height, 1, 8, 0, width * height, 0, 0, 0, 0)
    head = chunk(b"LIST", b"strl" + chunk(b"strh", stream) + chunk(b"strf", picture))
    frame = random.Random(width).randbytes(width * height)
    lists = chunk(b"LIST", b"hdrl" + head) + chunk(b"LIST", b"movi" + chunk(b"00db", frame))
    return chunk(b"RIFF", b"AVI " + lists)


class Program(NamedTuple):
    folder: str
    cuda: str  # sources, separated by spaces
    arguments: str = ""
    others: str = ""
    inputs: Mapping[str, Callable[[], bytes]] = MappingProxyType({})
    prints: str = r"(?!)"  # results that are printed; by default there are none
    constants: Mapping[str, int] = MappingProxyType({})  # of its sources, with values of ours


RODINIA, ISPASS = "rodinia/2.0-ft", "ispass-2009"
GOLD = {"gold": lambda: b"1\n"}  # with which some programs compare
PROGRAMS = {
    "backprop": Program(
        f"{RODINIA}/backprop", "backprop_cuda.cu", "1024", "facetrain.c imagenet.c backprop.c"
    ),
    "hotspot": Program(
        f"{RODINIA}/hotspot",
        "hotspot.cu",
        "30 2 4 gold",
        inputs={
            **GOLD,
            "data/temp.dat": lambda: column(900),
            "data/power.dat": lambda: column(900),
        },
    ),
    "lud": Program(
        f"{RODINIA}/lud",
        "lud.cu lud_kernel.cu",
        "-v -i 32.dat",
        "common.c",
        inputs={"32.dat": lambda: matrix(32, "32")},
        prints=r"dismatch.*|>>>Verify.*",
    ),
    "nn": Program(
        f"{RODINIA}/nn",
        "nn_cuda.cu",
        "list 3 30 90 gold",
        inputs={**GOLD, "list": lambda: b"storms\n", "storms": lambda: hurricanes(1000)},
    ),
    "nw": Program(f"{RODINIA}/nw", "needle.cu", "32 10 gold", inputs=GOLD),
    "pathfinder": Program(f"{RODINIA}/pathfinder", "pathfinder.cu", "1000 20 5 gold", inputs=GOLD),
    "srad_v2": Program(
        f"{RODINIA}/srad/srad_v2",
        "srad.cu",
        "matrix 0 31 0 31 .5 2 gold",
        inputs={**GOLD, "matrix": lambda: matrix(32, "32 32")},
        prints=r"checksum.*",
    ),
    "BFS": Program(f"{ISPASS}/BFS", "bfs.cu", "graph", inputs={"graph": lambda: graph(512)}),
    "NQU": Program(f"{ISPASS}/NQU", "nqueen.cu", "-g 6", prints=r"GPU: \d+ queen = \d+"),
    "bfs": Program(
        f"{RODINIA}/bfs", "bfs.cu", "graph gold", inputs={**GOLD, "graph": lambda: graph(4096)}
    ),
    "heartwall": Program(
        f"{RODINIA}/heartwall",
        "main.cu",
        "film.avi 1 gold",
        "avilib.c avimod.c",
        inputs={**GOLD, "film.avi": lambda: film(592, 656)},
    ),
    "srad_v1": Program(
        f"{RODINIA}/srad/srad_v1",
        "main.cu",
        "2 0.5 64 64",
        inputs={"../../../data/srad/image.pgm": lambda: picture(458, 502)},
    ),
    "streamcluster": Program(
        f"{RODINIA}/streamcluster",
        "streamcluster_cuda.cu",
        "3 4 4 1024 1024 10 none output.txt 1 gold",  # a kernel wants a multiple of 512 points
        "streamcluster_cuda_cpu.cpp",
        inputs=GOLD,
    ),
    "LIB": Program(f"{ISPASS}/LIB", "libor.cu", prints=r"(?:v|Lb) +=.*"),
    "LPS": Program(f"{ISPASS}/LPS", "laplace3d.cu", "", "laplace3d_gold.cpp", prints="rms error.*"),
    "STO": Program(
        f"{ISPASS}/STO",
        "main.cu storeGPU.cu",
        "",
        "storeCPU.cpp md5_cpu.cpp sha1_cpu.cpp",
        prints="Test (?:PASSED|FAILED)|Output size.*",
        constants={"BLOCKS_PER_GRID": 96},
    ),
    "local": Program(str(HERE), "local.cu", prints="local memory: .*"),
}


def with_constants(program: Program, sources: Path, folder: Path) -> Path:
    """Returns the folder of the sources: a copy in `folder` if they get other constants."""
    here = sources / program.folder
    if not program.constants:
        return here
    copy = folder / "sources"
    copy.mkdir()
    for path in filter(Path.is_file, here.iterdir()):
        text = path.read_text("latin-1")
        for name, value in program.constants.items():
            text = re.sub(rf"(?m)^(\s*#define\s+{name}\s+)\S+", rf"\g<1>{value}", text)
        (copy / path.name).write_text(text, "latin-1")
    return copy


def compile_program(program: Program, sources: Path, folder: Path) -> None:
    """Writes `program` and its PTX, as the page does it for one file."""
    toolkit, clang = os.environ["CUDA_INSTALL_PATH"], os.environ.get("CLANG", "clang++")
    here = with_constants(program, sources, folder)
    common = ["-O2", "-w", f"-I{here}", f"-I{sources / 'common' / 'inc'}"]
    common += ["-isystem", f"{toolkit}/include", "-fno-strict-aliasing"]
    cuda = [f"--cuda-path={toolkit}", "--cuda-gpu-arch=sm_70", "-Wno-unknown-cuda-version"]
    one = folder / "one.cu"  # a program has the PTX of one file
    one.write_text("".join(f'#include "{here / name}"\n' for name in program.cuda.split()))
    ptx = folder / "program.sm_70.ptx"

    def run(*command: object) -> None:
        subprocess.run([str(word) for word in command], check=True, cwd=folder)

    run(clang, *common, *cuda, "--cuda-device-only", "-S", one, "-o", ptx)
    binary = ["-Xclang", "-fcuda-include-gpubinary", "-Xclang", ptx]
    run(clang, *common, *cuda, "--cuda-host-only", *binary, "-c", one, "-o", "one.o")
    objects = ["one.o"]
    for name in [*program.others.split(), str(HERE / "cutil.cc")]:
        language = "-xc -std=gnu89" if name.endswith(".c") else "-xc++"
        objects.append(f"{Path(name).stem}.o")
        run(clang, *common, *language.split(), "-c", here / name, "-o", objects[-1])
    run(clang, *objects, f"{toolkit}/lib64/libcudart.so.11.0", "-lm", "-o", folder / "program")


class Run(NamedTuple):
    cycles: list[int]  # of each kernel
    results: str  # a digest
    text: str
    seconds: float


class Stopped(Exception):
    """The program took too long, or ended with an error."""


def simulating(process: int) -> float:
    """Seconds of the processor in the threads that the program's thread waits for."""
    nanoseconds = 0
    for task in Path(f"/proc/{process}/task").iterdir():
        if task.name != str(process):
            nanoseconds += int((task / "schedstat").read_text().split()[0])
    return nanoseconds / 1e9


def run(program: Program, built: Path, root: Path, options: list[str], limit: float) -> Run:
    """Runs the program in a folder of its own; the options follow those of SM7_QV100."""
    libraries = list(root.glob("lib/*/*/release"))
    if len(libraries) != 1:
        raise SystemExit(f"{root}: {len(libraries)} builds of GPGPU-Sim, not one")
    environment = {**os.environ, "GPGPUSIM_ROOT": str(root), "LD_LIBRARY_PATH": str(libraries[0])}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "1" / "2" / "3"
        for name, content in program.inputs.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content())
        folder.mkdir(parents=True, exist_ok=True)
        for path in (root / "configs/tested-cfgs/SM7_QV100").iterdir():
            (folder / path.name).write_bytes(path.read_bytes())
        with (folder / "gpgpusim.config").open("a", encoding="utf-8") as file:
            file.write("\n".join(["", *options, ""]))
        for name in ("program", "program.sm_70.ptx"):
            (folder / name).write_bytes((built / name).read_bytes())
        (folder / "program").chmod(0o755)
        before = set(folder.iterdir())
        with (folder / "_printed").open("wb") as output:
            command = ["./program", *shlex.split(program.arguments)]
            process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
            )
            begin, seconds = time.monotonic(), 0.0
            while process.poll() is None:
                if time.monotonic() - begin > limit:
                    process.kill()
                    process.wait()
                    break
                with contextlib.suppress(OSError):  # a thread has ended
                    seconds = max(seconds, simulating(process.pid))
                time.sleep(0.01)
        text = (folder / "_printed").read_text("utf-8", "replace")
        cycles = [int(found) for found in re.findall(r"gpu_sim_cycle = (\d+)", text)]
        if process.returncode < 0 or "GPGPU-Sim: *** exit detected ***" not in text:
            last = text.rstrip().rpartition("\n")[2]
            raise Stopped(
                f"{process.returncode} after {len(cycles)} kernels, {seconds:.0f} s: {last}"
            )
        found = sorted(re.findall(rf"(?m)^.*?({program.prints})", text))
        digest = hashlib.sha256("\n".join(found).encode())
        own = ("program.", "gpgpu", "_")
        for path in sorted(set(folder.iterdir()) - before):
            if path.is_file() and not path.name.startswith(own):
                digest.update(path.read_bytes())
                found.append(path.name)
        return Run(cycles, digest.hexdigest(), "; ".join(found), seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("collection", type=Path)
    parser.add_argument("stock", type=Path, help="an unchanged GPGPU-Sim")
    parser.add_argument("changed", type=Path, help="one that into_gpgpu_sim.py has changed")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--device", choices=["v100", "h200"], default="v100")
    parser.add_argument("--together", action="store_true", help="`off` with several kernels, too")
    parser.add_argument("--limit", type=float, default=600, help="seconds of a run")
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs; default: all")
    arguments = parser.parse_intermixed_args()
    sources = (arguments.collection / "src" / "cuda").resolve()
    modes = {k: [v] for k, v in MODES.items() if arguments.together or "together" not in k}
    modes["device"].append(f"-tbsched_device {arguments.device}")
    if arguments.device == "h200":
        modes = {k: [(HERE / "h200.config").read_text("utf-8"), *v] for k, v in modes.items()}
    roots = {mode: arguments.changed.resolve() for mode in modes}
    roots["unchanged"] = arguments.stock.resolve()
    print("| program | kernels |", " | ".join(modes), "| other cycles | results | seconds |")
    print("| --- | --- |", " | ".join("---" for _ in modes), "| --- | --- | --- |", flush=True)

    def say(name: str, mode: str, text: object) -> None:
        print(f"{name}, {mode}: {text}", file=sys.stderr, flush=True)

    for name in arguments.names or PROGRAMS:
        program = PROGRAMS[name]
        runs: dict[str, list[Run]] = {mode: [] for mode in modes}
        with tempfile.TemporaryDirectory() as temporary:
            built = Path(temporary)
            compile_program(program, sources, built)
            for _ in range(arguments.rounds):
                for mode, found in runs.items():
                    try:
                        one = run(program, built, roots[mode], modes[mode], arguments.limit)
                        found.append(one)
                        say(
                            name,
                            mode,
                            f"{sum(one.cycles):,} cycles, {one.seconds:.2f} s; {one.text}",
                        )
                    except Stopped as stopped:
                        say(name, mode, stopped)
        cycles = {mode: found[0].cycles if found else [] for mode, found in runs.items()}
        other = sum(a != b for a, b in zip(cycles["unchanged"], cycles["off"], strict=False))
        results = {one.results for found in runs.values() for one in found}
        seconds = [
            f"{statistics.median(one.seconds for one in found):.2f}" if found else ""
            for found in runs.values()
        ]
        sums = [f"{sum(found):,}" if found else "" for found in cycles.values()]
        alike = "same" if len(results) == 1 else f"{len(results)} different ones"
        print(f"| {name} | {max(map(len, cycles.values()))} |", " | ".join(sums), end=" | ")
        print(f"{other} | {alike} | {', '.join(seconds)} |", flush=True)


if __name__ == "__main__":
    main()
