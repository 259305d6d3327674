"""The GPU that the hardware tests run on."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

import tbsched as tb
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
    """A GPU that the h200 model is known to be right for: an H200, or an H100 of as many SMs."""
    is_hopper = gpu.info.details["compute_capability"] == "9.0"
    if not is_hopper or gpu.info.sms != tb.device("h200").sms:
        pytest.skip(f"the model is of a Hopper GPU with 132 SMs, this is {gpu.info.name}")
    return gpu
