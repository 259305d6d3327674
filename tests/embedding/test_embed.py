"""The example simulator in C++: built as its page says, it places blocks as Python predicts."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from cpp_library import CXX, built
from embedding.kernels import Kernel, predicted, random_kernels, random_sequence
from helpers import ROOT, final
from tbsched.hardware.catalogue import device, devices
from tbsched.hardware.export import cpp_header
from tbsched.prediction.predict import predict
from tbsched.program.arrays import Int32Array
from tbsched.program.sequence import Launch, Release, Sequence
from tbsched.sm.running import simulate
from tbsched.sm.workloads import Workload

EXAMPLE = ROOT / "examples" / "embed"
HEADERS = [EXAMPLE / "rtx3090.h", ROOT / "examples" / "simulator" / "h200.h"]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, built as its page says."""
    return built(tmp_path_factory, EXAMPLE)


@pytest.mark.parametrize("path", HEADERS, ids=lambda path: path.name)
def test_header_of_an_example_is_that_of_the_device(path: Path) -> None:
    header = cpp_header(device(path.stem))
    if path.read_text("utf-8") != header:
        path.with_name(f"{path.name}.new").write_text(header, "utf-8")
        pytest.fail(f"{path} is out of date; {path.name}.new is beside it")


def test_header_needs_a_spec() -> None:
    with pytest.raises(TypeError, match="cpp_header: a DeviceSpec is needed, got 'h200'"):
        cpp_header("h200")  # type: ignore[arg-type]


@pytest.mark.skipif(shutil.which(CXX) is None, reason=f"{CXX} is not installed")
def test_header_of_every_device_compiles_without_a_warning(tmp_path: Path) -> None:
    specs = [device(name) for name in (*devices(), "h200-no-warp-skip")]
    for number, spec in enumerate(specs):
        (tmp_path / f"{number}.h").write_text(cpp_header(spec), "utf-8")
    code = "".join(f'#include "{number}.h"\n' for number in range(len(specs)))
    source = tmp_path / "all.cc"
    source.write_text(f"{code}auto spec = h200_no_warp_skip();\n", "utf-8")
    warnings = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    subprocess.run([CXX, *warnings, f"-I{ROOT / 'cpp'}", str(source)], check=True)


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


def test_example_places_blocks_as_predict_does(build: Path) -> None:
    rng = random.Random(1)
    for _ in range(20):
        sequence = random_sequence(rng, device("rtx3090"))
        assert placements(build / "embed", sequence) == final(predict(sequence, "rtx3090"))


def test_same_programs_with_another_device_s_header_do_too(library: Path, tmp_path: Path) -> None:
    h200 = device("h200")
    (tmp_path / "h200.h").write_text(cpp_header(h200), "utf-8")
    for name in ("main", "clock"):
        source = tmp_path / f"{name}.cc"
        text = (EXAMPLE / source.name).read_text("utf-8").replace("rtx3090", "h200")
        source.write_text(text, "utf-8")
        flags = ["-std=c++20", f"-I{library / 'include'}", "-o", str(tmp_path / name)]
        subprocess.run([CXX, *flags, str(source), *library.rglob("libtbsched.a")], check=True)
    rng = random.Random(2)
    for _ in range(20):
        sequence = random_sequence(rng, h200)
        assert placements(tmp_path / "main", sequence) == final(predict(sequence, "h200"))
        kernels = random_kernels(rng, h200)
        assert run_clock(tmp_path / "clock", kernels) == predicted(kernels, h200)


def run_clock(program: Path, kernels: list[Kernel]) -> list[tuple[int, ...]]:
    """Launch, block, SM and start of each block."""
    text = "".join(f"kernel {kernel.line()}" for kernel in kernels)
    done = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
    words = [line.split() for line in done.stdout.splitlines()]
    return sorted((int(w[3]), int(w[5]), int(w[8]), int(w[1])) for w in words)


def test_simulator_with_a_clock_places_blocks_as_predict_does(build: Path) -> None:
    rng = random.Random(3)
    spec = device("rtx3090")
    for _ in range(20):
        kernels = random_kernels(rng, spec)
        assert run_clock(build / "clock", kernels) == predicted(kernels, spec)


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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("launch 1 32\n", "not an event"),
        ("release 0\n", "not there"),
        ("launch 0 32 16 0\n", "blocks: 0 is outside 1..2147483647"),
        ("launch 1 1024 65 0\n", "more than an empty SM of rtx3090 holds: registers"),
        ("launch 1 1025 16 0\n", "threads: 1025 is outside 1..1024, what a launch on rtx3090"),
        ("launch 1 32 2147483647 0\n", "registers: 2147483647 is outside 1..255"),
        ("launch 1 32 16 2147483647\n", "shared_memory: 2147483647 is outside 0..102400"),
    ],
)
def test_example_refuses_what_it_cannot_run(build: Path, text: str, message: str) -> None:
    done = subprocess.run([build / "embed"], input=text, capture_output=True, text=True)
    assert done.returncode == 2
    assert message in done.stderr


def test_example_simulates_warp_schedulers_as_python_does(build: Path) -> None:
    done = subprocess.run([build / "warps"], capture_output=True, text=True, check=True)
    loads = np.arange(448 * 4 * 40)
    kernel = Workload(
        "lines", 4, 8, np.arange(0, len(loads) + 1, 40), np.full(len(loads), 5),
        np.zeros(len(loads), int), (loads // 40 * 20 + loads % 20) * 128,
    )  # fmt: skip
    cycles = {name: simulate(kernel, name).counts["cycles"] for name in ("round_robin", "locality")}
    printed = dict(line.removesuffix(" cycles").split(": ") for line in done.stdout.splitlines())
    assert printed.keys() == {*cycles, "lowest"}
    assert {name: int(printed[name]) for name in cycles} == cycles
    assert len({*printed.values()}) == 3  # else it would not matter which warps go on


def test_example_brings_a_policy_along(build: Path) -> None:
    done = subprocess.run([build / "policy"], capture_output=True, text=True, check=True)

    def last(room: Int32Array) -> int:
        return int(room.nonzero()[0][-1])

    expected = predict(Sequence([Launch(4, 1024, 32)]), "rtx3090", last)[0].smid
    assert list(map(int, done.stdout.split())) == expected.tolist() == [81, 80, 79, 78]


def test_example_decides_whether_launches_run_together(build: Path) -> None:
    done = subprocess.run([build / "together"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "unsafe: launch 0 waits for shared_memory",
        "50 of 80 workers fit beside the schedulers",
        "with carveout 100: safe",
    ]
