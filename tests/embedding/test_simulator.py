"""The adapter for simulators that distribute blocks themselves, and the page that explains it."""

from __future__ import annotations

import dataclasses
import random
import re
import subprocess
from pathlib import Path

import pytest

from cpp_library import CXX, built, installed_library, run
from embedding.kernels import Kernel, predicted, random_kernels
from hardware.files import DEVICES
from helpers import ROOT
from tbsched.hardware.catalogue import device
from tbsched.hardware.written import save_device

PAGE = ROOT / "docs" / "how-to" / "simulators.md"
EXAMPLE = ROOT / "examples" / "simulator"
H200 = device("h200")


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory, EXAMPLE) / "simulator"


def simulated(program: Path, kernels: list[Kernel], *options: str) -> list[tuple[int, ...]]:
    """Launch, block, SM and start of each block."""
    text = "".join(kernel.line() for kernel in kernels)
    command = [program, *options]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    rows = (map(int, line.split()) for line in done.stdout.splitlines())
    return sorted((launch, block, sm, cycle) for cycle, launch, block, sm in rows)


def test_simulator_places_blocks_as_predict_does(simulator: Path) -> None:
    rng = random.Random(4)
    for _ in range(20):
        kernels = random_kernels(rng, H200)
        assert simulated(simulator, kernels) == predicted(kernels, H200)


@pytest.fixture(scope="module")
def reader(simulator: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The simulator with an adapter that reads device files."""
    asked = [CXX, "-std=c++20", "-E", "-x", "c++", "-"]
    header = "#include <toml++/toml.h>"
    if subprocess.run(asked, input=header, text=True, capture_output=True).returncode:
        pytest.skip("toml++ is not installed")
    assert simulator.exists()
    library = installed_library(tmp_path_factory) / "lib" / "libtbsched.a"
    program = tmp_path_factory.mktemp("reader") / "simulator"
    sources = [EXAMPLE / "adapter.cc", EXAMPLE / "main.cc"]
    sources.append(ROOT / "cpp" / "tbsched" / "hardware" / "device_file.cc")
    flags = ["-std=c++20", "-pthread", f"-I{ROOT / 'cpp'}", f'-DDEVICE_FILES="{DEVICES}"']
    run(CXX, *flags, *sources, library, "-o", program)
    return program


def test_policy_is_an_option(simulator: Path) -> None:
    kernels = random_kernels(random.Random(6), H200)
    other = dataclasses.replace(H200, policy="round_robin")
    rows = simulated(simulator, kernels, "round_robin")
    assert rows == predicted(kernels, other)
    assert rows != simulated(simulator, kernels)


def test_device_and_board_are_options(reader: Path, tmp_path: Path) -> None:
    h100 = device("h100")
    kernels = random_kernels(random.Random(7), h100)
    assert simulated(reader, kernels, "", "h100") == predicted(kernels, h100)
    # A board whose GPCs come in another order.
    board = dataclasses.replace(
        h100, gpcs=h100.gpcs[::-1], sm_preference=tuple(reversed(h100.sm_preference))
    )
    file = tmp_path / "board.toml"
    save_device(file, board)
    rows = simulated(reader, kernels, "", "h100", str(file))
    assert rows == predicted(kernels, board)
    assert rows != predicted(kernels, h100)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["mine"], "policy: 'mine' is unknown"),
        (["", "none.toml"], "none.toml"),
        (["", "", "rtx3090"], "board: rtx3090 has 82 SMs, h200 has 132"),
    ],
)
def test_wrong_option_is_refused(reader: Path, options: list[str], message: str) -> None:
    done = subprocess.run([reader, *options], input="", capture_output=True, text=True)
    assert done.returncode == 2
    assert message in done.stderr


def test_adapter_without_toml_says_so(simulator: Path) -> None:
    done = subprocess.run([simulator, "", "h100"], input="", capture_output=True, text=True)
    assert done.returncode == 2
    assert "h100: built without toml++" in done.stderr


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


def test_code_on_the_page_is_that_of_the_example() -> None:
    blocks = re.findall(r"(?ms)^```cpp\n(.*?)^```$", PAGE.read_text("utf-8"))
    paths = [path for path in EXAMPLE.iterdir() if path.suffix in {".cc", ".h", ".inc"}]
    files = [path.read_text("utf-8") for path in paths]
    assert len(blocks) >= 4
    assert [code for code in blocks if not any(code in text for text in files)] == []
