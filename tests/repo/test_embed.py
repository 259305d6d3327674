"""The example simulator in C++: built as its page says, it places blocks as Python predicts."""

from __future__ import annotations

import dataclasses
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from helpers import ROOT, final
from tbsched.hardware.catalogue import device, devices
from tbsched.hardware.export import cpp_header
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.sequence import Event, Launch, Release, Sequence

EXAMPLE = ROOT / "examples" / "embed"
CXX = os.environ.get("CXX", "c++")

needs_compiler = pytest.mark.skipif(shutil.which(CXX) is None, reason=f"{CXX} is not installed")
needs_cmake = pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")


def test_header_of_the_example_is_that_of_the_device() -> None:
    path = EXAMPLE / "rtx3090.h"
    header = cpp_header(device("rtx3090"))
    if path.read_text("utf-8") != header:
        path.with_name("rtx3090.h.new").write_text(header, "utf-8")
        pytest.fail("examples/embed/rtx3090.h is out of date; rtx3090.h.new is beside it")


def test_header_needs_a_spec() -> None:
    with pytest.raises(TypeError, match="cpp_header: a DeviceSpec is needed, got 'h200'"):
        cpp_header("h200")  # type: ignore[arg-type]


@needs_compiler
def test_header_of_every_device_compiles_without_a_warning(tmp_path: Path) -> None:
    specs = [device(name) for name in (*devices(), "h200-no-warp-skip")]
    for number, spec in enumerate(specs):
        (tmp_path / f"{number}.h").write_text(cpp_header(spec), "utf-8")
    code = "".join(f'#include "{number}.h"\n' for number in range(len(specs)))
    source = tmp_path / "all.cc"
    source.write_text(f"{code}auto spec = h200_no_warp_skip();\n", "utf-8")
    warnings = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    subprocess.run([CXX, *warnings, f"-I{ROOT / 'cpp'}", str(source)], check=True)


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, built as its README says."""
    folder = tmp_path_factory.mktemp("embed")
    subprocess.run(["cmake", "-S", str(EXAMPLE), "-B", str(folder)], check=True)
    subprocess.run(["cmake", "--build", str(folder), "--parallel", "2"], check=True)
    return folder


def random_sequence(rng: random.Random, spec: DeviceSpec) -> Sequence:
    events: list[Event] = []
    held: list[int] = []
    for number in range(12):
        threads = rng.randint(1, 1024)
        registers = rng.randint(1, 64)
        shared_memory = rng.choice([0, 0, rng.randint(0, spec.shared_memory_per_block // 2)])
        events.append(Launch(rng.randint(1, 300), threads, registers, shared_memory))
        held.append(number)
        if rng.random() < 0.5:
            events.append(Release(held.pop(rng.randrange(len(held)))))
    return Sequence(events)


def as_text(sequence: Sequence) -> str:
    lines = [
        f"release {event.launch}"
        if isinstance(event, Release)
        else f"launch {event.blocks} {event.threads} {event.registers} {event.shared_memory}"
        for event in sequence
    ]
    return "\n".join(lines) + "\n"


def placements(program: Path, sequence: Sequence) -> list[list[int]]:
    """What the program printed, as final_smid."""
    done = subprocess.run(
        [program], input=as_text(sequence), capture_output=True, text=True, check=True
    )
    rows = [[-1] * launch.blocks for launch in sequence.launches]
    for line in done.stdout.splitlines():
        if " on SMs " in line:
            head, sms = line.split(", on SMs ")
            launch, first = (int(part.split()[-1]) for part in head.split(", "))
            found = list(map(int, sms.split()))
            rows[launch][first : first + len(found)] = found
    return rows


@needs_cmake
@needs_compiler
def test_example_places_blocks_as_predict_does(build: Path) -> None:
    rng = random.Random(1)
    for _ in range(20):
        sequence = random_sequence(rng, device("rtx3090"))
        assert placements(build / "embed", sequence) == final(predict(sequence, "rtx3090"))


@needs_cmake
@needs_compiler
def test_same_programs_with_another_device_s_header_do_too(build: Path, tmp_path: Path) -> None:
    h200 = device("h200")
    (tmp_path / "h200.h").write_text(cpp_header(h200), "utf-8")
    for name in ("main", "clock"):
        source = tmp_path / f"{name}.cc"
        text = (EXAMPLE / source.name).read_text("utf-8").replace("rtx3090", "h200")
        source.write_text(text, "utf-8")
        library = build / "tbsched" / "libtbsched.a"
        flags = ["-std=c++20", f"-I{ROOT / 'cpp'}", "-o", str(tmp_path / name)]
        subprocess.run([CXX, *flags, str(source), str(library)], check=True)
    rng = random.Random(2)
    for _ in range(20):
        sequence = random_sequence(rng, h200)
        assert placements(tmp_path / "main", sequence) == final(predict(sequence, "h200"))
        kernels = random_kernels(rng, h200)
        assert run_clock(tmp_path / "clock", kernels) == predicted(kernels, h200)


@dataclasses.dataclass(frozen=True)
class Kernel:
    """What comes to the simulator with a clock, in nanoseconds."""

    comes: int
    launch: Launch
    cycles: int

    def line(self) -> str:
        asked = dataclasses.astuple(self.launch)[:4]  # blocks, threads, registers, shared memory
        return " ".join(map(str, ["kernel", self.comes, *asked, self.cycles])) + "\n"

    def timed(self) -> Launch:
        blocks = range(self.launch.blocks)
        duration = tuple((self.cycles + 7 * block % 13) / 1e9 for block in blocks)
        return dataclasses.replace(self.launch, duration=duration)


def random_kernels(rng: random.Random, spec: DeviceSpec) -> list[Kernel]:
    launches = random_sequence(rng, spec).launches
    comes = sorted(rng.randint(0, 100) for _ in launches)
    return [Kernel(at, x, rng.randint(1, 60)) for at, x in zip(comes, launches, strict=True)]


def run_clock(program: Path, kernels: list[Kernel]) -> list[tuple[int, ...]]:
    """Launch, block, SM and start of each block."""
    text = "".join(kernel.line() for kernel in kernels)
    done = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
    words = [line.split() for line in done.stdout.splitlines()]
    return sorted((int(w[3]), int(w[5]), int(w[8]), int(w[1])) for w in words)


def predicted(kernels: list[Kernel], spec: DeviceSpec) -> list[tuple[int, ...]]:
    """The same of a GPU on which nothing but its blocks takes time."""
    latencies = {field.name: 0 for field in dataclasses.fields(spec) if field.name.endswith("_ns")}
    sequence = Sequence([kernel.timed() for kernel in kernels])
    times = [kernel.comes / 1e9 for kernel in kernels]
    instant = dataclasses.replace(spec, **latencies)  # type: ignore[arg-type]
    rows = predict(sequence, instant, issue_times=times).timeline
    return [tuple(row[["launch", "block", "sm", "start_ns"]].tolist()) for row in rows]


@needs_cmake
@needs_compiler
def test_simulator_with_a_clock_places_blocks_as_predict_does(build: Path) -> None:
    rng = random.Random(3)
    spec = device("rtx3090")
    for _ in range(20):
        kernels = random_kernels(rng, spec)
        assert run_clock(build / "clock", kernels) == predicted(kernels, spec)


@needs_cmake
@needs_compiler
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("launch 0 1 32 16 0 10\n", "not a kernel"),
        ("kernel 5 1 32 16 0 10\nkernel 4 1 32 16 0 10\n", "not a kernel that can come next"),
        ("kernel 0 1 32 16 0 0\n", "not a kernel"),
        ("kernel 0 1 1024 65 0 10\n", "more than an empty SM of rtx3090 holds: registers"),
    ],
)
def test_simulator_with_a_clock_refuses_what_it_cannot_run(
    build: Path, text: str, message: str
) -> None:
    done = subprocess.run([build / "clock"], input=text, capture_output=True, text=True)
    assert done.returncode == 2
    assert message in done.stderr


@needs_cmake
@needs_compiler
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("launch 1 32\n", "not an event"),
        ("release 0\n", "not there"),
        ("launch 0 32 16 0\n", "blocks, threads and registers must be positive"),
        ("launch 1 1024 65 0\n", "more than an empty SM of rtx3090 holds: registers"),
        ("launch 1 1025 16 0\n", "more than rtx3090 allows"),
        ("launch 1 32 2147483647 0\n", "more than rtx3090 allows"),
        ("launch 1 32 16 2147483647\n", "more than rtx3090 allows"),
    ],
)
def test_example_refuses_what_it_cannot_run(build: Path, text: str, message: str) -> None:
    done = subprocess.run([build / "embed"], input=text, capture_output=True, text=True)
    assert done.returncode == 2
    assert message in done.stderr
