"""The adapter for simulators that distribute blocks themselves, and the page that explains it."""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path

import pytest

from cpp_library import CXX, built, run
from embedding.kernels import Kernel, predicted, random_kernels
from helpers import ROOT
from tbsched.hardware.catalogue import device

PAGE = ROOT / "docs" / "how-to" / "simulators.md"
EXAMPLE = ROOT / "examples" / "simulator"
H200 = device("h200")


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory, EXAMPLE) / "simulator"


def simulated(program: Path, kernels: list[Kernel]) -> list[tuple[int, ...]]:
    """Launch, block, SM and start of each block."""
    text = "".join(kernel.line() for kernel in kernels)
    done = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
    rows = (map(int, line.split()) for line in done.stdout.splitlines())
    return sorted((launch, block, sm, cycle) for cycle, launch, block, sm in rows)


def test_simulator_places_blocks_as_predict_does(simulator: Path) -> None:
    rng = random.Random(4)
    for _ in range(20):
        kernels = random_kernels(rng, H200)
        assert simulated(simulator, kernels) == predicted(kernels, H200)


def test_blocks_of_a_kernel_start_in_order(simulator: Path) -> None:
    kernels = random_kernels(random.Random(5), H200)
    text = "".join(kernel.line() for kernel in kernels)
    done = subprocess.run([simulator], input=text, capture_output=True, text=True, check=True)
    started: dict[str, int] = {}
    for line in done.stdout.splitlines():
        _, kernel, block, _ = line.split()
        assert int(block) == started.get(kernel, 0)
        started[kernel] = int(block) + 1
    assert list(started.values()) == [kernel.launch.blocks for kernel in kernels]


def test_kernel_that_can_never_run_is_refused(simulator: Path) -> None:
    done = subprocess.run([simulator], input="0 1 1024 65 0 10\n", capture_output=True, text=True)
    assert done.returncode == 2
    assert "more than an empty SM of h200 holds: registers" in done.stderr


def test_gpgpu_sim_s_part_is_cpp_of_2011(tmp_path: Path) -> None:
    """The functions on the page for GPGPU-Sim, with a stand-in for its classes."""
    constructor = re.search(r"(?ms)^```cpp\n(  m_adapter.reset.*?)^```$", PAGE.read_text("utf-8"))
    assert constructor
    source = tmp_path / "gpu-sim.cc"
    source.write_text(
        '#include "gpgpu_sim_stand_in.h"\n'
        f"gpgpu_sim::gpgpu_sim() {{\n{constructor[1]}}}\n"
        f"{(EXAMPLE / 'gpgpu_sim.cc').read_text('utf-8')}",
        "utf-8",
    )
    includes = [f"-I{EXAMPLE}", f"-I{ROOT / 'tests/embedding'}"]
    run(CXX, "-std=c++0x", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *includes, source)


def test_code_on_the_page_is_that_of_the_example() -> None:
    blocks = re.findall(r"(?ms)^```cpp\n(.*?)^```$", PAGE.read_text("utf-8"))
    paths = [path for path in EXAMPLE.iterdir() if path.suffix in {".cc", ".h", ".inc"}]
    files = [path.read_text("utf-8") for path in paths]
    unknown = [code for code in blocks if not any(code in text for text in files)]
    assert len(unknown) == 1  # the constructor, which the test above compiles
    assert "m_adapter.reset" in unknown[0]
