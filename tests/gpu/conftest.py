"""The GPU that the hardware tests run on."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

import tbsched as tb
from board import differences
from tbsched.launcher.observe import Gpu


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "tbsched_gpu: needs a real GPU")


@pytest.fixture(scope="session")
def tbsched_gpu() -> Iterator[Gpu]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            opened = Gpu(0)
    except tb.NoGpuError as error:
        pytest.skip(str(error))
    with opened:
        yield opened


@pytest.fixture(scope="session")
def gpu(tbsched_gpu: Gpu) -> Gpu:
    """The same, by a short name."""
    return tbsched_gpu


@pytest.fixture(scope="session")
def hopper(gpu: Gpu) -> Gpu:
    """A GPU that the h200 model is of, by what it says of itself: an H200, or such an H100."""
    for difference in differences(gpu, tb.device("h200")):
        pytest.skip(f"the model is not of this {gpu.info.name}: {difference}")
    return gpu
