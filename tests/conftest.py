"""What Hypothesis draws; a driver that emulates a GPU of four SMs, and the launcher on it."""

from __future__ import annotations

import functools
import gc
import os
import shutil
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
import typer.main
import typer.testing
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

import tbsched as tb
from compiled import FAKE_DRIVER, cuda_include, shared_library
from helpers import RANDOM, Fake
from once import made_once
from tbsched.launcher.observe import Gpu

# Every run draws the same; RANDOM draws anew. A failure is printed with what makes it again. No
# timing decides a test.
settings.register_profile(
    "tbsched",
    derandomize=not RANDOM,
    print_blob=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tbsched")
if not RANDOM and hasattr(providers, "_get_local_constants"):
    # Hypothesis draws constants of the modules that happen to be loaded, too: other ones where
    # tbsched is on the path instead of installed, and where another test ran before.
    providers._get_local_constants = providers.Constants


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Every other worker of pytest-xdist collects folders and files from the last to the first.

    So each compiles half of the tests for Python, where that was not done yet, and finds the others
    compiled.
    """
    report = yield
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    folder = isinstance(collector, pytest.Session | pytest.Directory)
    if folder and int(worker.removeprefix("gw")) % 2:
        report.result.reverse()
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All workers need the same order."""
    items.sort(key=lambda item: item.path)


def pytest_collection_finish() -> None:
    """All that is there by now stays to the end: no garbage collection goes through it again.

    Later ones are rare: traces are many objects without cycles.
    """
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


@pytest.fixture(scope="session", autouse=True)
def commands_made_once() -> Iterator[None]:
    """The command line's commands stay: Typer's runner makes all of them for each call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", functools.cache(typer.main.get_command))
        yield


@pytest.fixture(scope="session", autouse=True)
def interrupts() -> None:
    """Ctrl-C, which a shell turns off for what it runs in the background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def fake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fake driver, compiled."""
    if shutil.which("c++") is None or cuda_include() is None:
        pytest.skip("no C++ compiler or no CUDA toolkit")

    def make(folder: Path) -> None:
        shared_library(folder / "libfake.so", FAKE_DRIVER, "-O1")

    return made_once(tmp_path_factory, "fake_driver", make) / "libfake.so"


@pytest.fixture(scope="session")
def fake_gpu(fake: Path) -> Iterator[tuple[Gpu, Fake]]:
    pytest.importorskip("tbsched._launcher", reason="built without nvcc")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TBSCHED_LIBNVML", str(fake))
        # The driver stays loaded here; processes that other tests start must not find it.
        with pytest.MonkeyPatch.context() as opening:
            opening.setenv("TBSCHED_LIBCUDA", str(fake))
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
    fake_gpu[1].fail(at=0)
    fake_gpu[1].interrupt("", 0)
    for key in (
        "mute",
        "never_meets",
        "frozen",
        "doubtful",
        "moved",
        "garbage",
        "seen_late_us",
        "turn_us",
        "away_us",
        "queue_depth",
        "growing_blocks",
    ):
        fake_gpu[1][key] = 0
