"""The GPU that the hardware tests run on."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

import tbsched as tb
from tbsched.launcher.observe import Gpu


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "gpu: needs a real GPU")


@pytest.fixture(scope="session")
def gpu() -> Iterator[Gpu]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            opened = Gpu(0)
    except tb.NoGpuError as error:
        pytest.skip(str(error))
    with opened:
        yield opened
