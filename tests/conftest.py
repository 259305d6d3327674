"""A driver that emulates a GPU of four SMs, and the launcher on top of it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import tbsched as tb
from helpers import ROOT, Fake
from tbsched.launcher.observe import Gpu


@pytest.fixture(scope="session")
def fake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fake driver, compiled."""
    compiler = shutil.which("c++")
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if compiler is None or nvcc is None:
        pytest.skip("no C++ compiler or no CUDA toolkit")
    library = tmp_path_factory.mktemp("fake") / "libfake.so"
    include = Path(nvcc).resolve().parents[1] / "include"
    source = ROOT / "tests" / "launcher" / "fake_driver.cc"
    flags = ["-std=c++20", "-O1", "-shared", "-fPIC", "-pthread"]
    includes = [f"-I{ROOT / 'cpp'}", f"-I{include}"]
    subprocess.run([compiler, *flags, *includes, "-o", library, source], check=True)
    return library


@pytest.fixture(scope="session")
def fake_gpu(fake: Path) -> Iterator[tuple[Gpu, Fake]]:
    pytest.importorskip("tbsched._launcher", reason="built without nvcc")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TBSCHED_LIBCUDA", str(fake))
        patch.setenv("TBSCHED_LIBNVML", str(fake))
        try:
            gpu = Gpu(0)
        except tb.NoGpuError as error:
            pytest.skip(f"another driver is loaded already: {error}")
        if gpu.info.name != "Fake GPU":
            gpu.close()
            pytest.skip("a real driver is loaded already")
        with gpu:
            yield gpu, Fake(fake)


@pytest.fixture
def knobs(fake_gpu: tuple[Gpu, Fake]) -> Iterator[Fake]:
    yield fake_gpu[1]
    for key in (
        "mute",
        "doubtful",
        "moved",
        "seen_late_us",
        "blocking_local",
        "fail_launch",
        "fail_event",
    ):
        fake_gpu[1][key] = 0
