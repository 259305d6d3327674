"""The bench of real GPUs, with a literal SM behind cuda.core's calls."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tbsched as tb
from sm.characterization.model_sm import ModelSm
from tbsched.sm.characterization import OPCODES, Loop, Mode, Scope, Wanted, gpu, placed
from tbsched.sm.characterization.runs import MEASURED
from tbsched.traces.placement import DeviceInfo


class Memory:
    """Memory of the GPU, or of the host."""

    def __init__(self, size: int, stream: object = None) -> None:
        self.bytes = np.zeros(size, np.uint8)
        self.handle = self.bytes.ctypes.data

    def copy_from(self, other: Memory, stream: object) -> None:
        self.bytes[:] = other.bytes

    def copy_to(self, other: Memory, stream: object) -> None:
        other.bytes[:] = self.bytes


class Core:
    """cuda.core, as far as it is used."""

    def __init__(self) -> None:
        self.sm = ModelSm()
        self.launched: list[tuple[Any, ...]] = []
        self.next: tuple[Loop, Any] | None = None
        self.ObjectCode = SimpleNamespace(
            from_cubin=lambda cubin: SimpleNamespace(get_kernel=lambda name: (cubin, name))
        )
        self.LegacyPinnedMemoryResource = lambda: SimpleNamespace(allocate=Memory)
        self.LaunchConfig = SimpleNamespace

    def Device(self, index: int) -> SimpleNamespace:  # noqa: N802
        def allocate(size: int, stream: object) -> Memory:
            self.memory = Memory(size)
            return self.memory

        stream = SimpleNamespace(sync=lambda: None)
        return SimpleNamespace(
            set_current=lambda: None, create_stream=lambda: stream, allocate=allocate
        )

    def launch(self, stream: object, config: Any, kernel: object, *arguments: Any) -> None:
        assert self.next is not None
        self.launched.append((config, kernel, arguments, self.memory.bytes.copy()))
        records = self.sm.run(*self.next, 1)
        at = int(arguments[0]) - self.memory.handle
        self.memory.bytes[at : at + records.nbytes] = records.view(np.uint8)


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> Iterator[Core]:
    class Opened:
        info = DeviceInfo("NVIDIA H200", 132, {"compute_capability": "9.0", "uuid": "GPU-1"})

        def __init__(self, index: int) -> None:
            pass

        def __enter__(self) -> Opened:
            return self

        def __exit__(self, *error: object) -> None:
            pass

    found = Core()
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace(core=found))
    monkeypatch.setattr(gpu, "Gpu", Opened)
    monkeypatch.setattr(gpu, "find_device", lambda name: tb.device("h200"))
    return found


@pytest.mark.parametrize("warps", [5, 47])
def test_a_launch_has_its_arguments_and_its_records_come_back(core: Core, warps: int) -> None:
    bench = gpu.GpuBench(0)
    launch = placed(bench.spec, Scope.ONE_SM, warps)
    assert launch is not None
    (loop,) = core.sm.loops(OPCODES["fp32.fma"], [Wanted("fp32.fma", Mode.READ_READ, 2)])
    core.next = loop, launch
    records = bench.run(loop, launch, iterations=7)
    assert (records["kind"] == MEASURED).sum() == warps
    ((config, kernel, arguments, memory),) = core.launched
    assert (config.grid, config.block) == (launch.blocks, launch.threads)
    assert kernel == (loop.cubin, "tbsched_loop")
    at, board, operands = map(int, arguments[:3])
    assert at % 16 == board % 8 == operands % 8 == 0
    assert board + 64 + 8 * 132 <= at
    # In the order and with the width of the kernel's parameters.
    assert [type(value) for value in arguments] == [np.uint64] * 3 + [np.uint32] * 5
    assert list(map(int, arguments[3:])) == [
        7, launch.target, launch.measuring, launch.short_block, launch.short_warps,
    ]  # fmt: skip
    given = OPCODES["fp32.fma"].operands()
    assert memory[: len(given)].tobytes() == given
    assert not memory[board - core.memory.handle :].any()


def test_it_says_which_gpu_it_is(core: Core) -> None:
    about = gpu.GpuBench(1).about()
    assert about["name"] == "NVIDIA H200"
    assert about["uuid"] == "GPU-1"


def test_without_cuda_core_the_message_says_how_to_get_it(
    core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cuda", None)
    with pytest.raises(ImportError, match=r"need cuda\.core: pip install cuda-core"):
        gpu.GpuBench(0)
