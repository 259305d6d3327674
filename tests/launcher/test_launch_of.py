"""Launches of kernels that other libraries compiled; the libraries' objects are played."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tbsched as tb

launcher = pytest.importorskip("tbsched._launcher", reason="built without nvcc")
CUBIN = launcher.patch(launcher.images()["sm_90"], 40, 16)


def of(module: str, **attributes: Any) -> Any:
    """An object of a class of a module, with attributes."""
    return type("Kernel", (), {"__module__": module, **attributes})()


CUPY = of(
    "cupy._core.raw",
    name="gemm",
    num_regs=40,
    shared_size_bytes=1200,
    local_size_bytes=16,
    preferred_shared_memory_carveout=-1,
)
OVERLOAD = of(
    "numba.cuda.dispatcher",
    regs_per_thread=40,
    shared_mem_per_block=1200,
    local_mem_per_thread=16,
    entry_name="gemm",
)
NUMBA = of(
    "numba_cuda.numba.cuda.dispatcher",
    overloads={"(int32,)": OVERLOAD},
    py_func=SimpleNamespace(__name__="gemm"),
)
TRITON = of(
    "triton.compiler.compiler",
    asm={"cubin": CUBIN},
    metadata=SimpleNamespace(name="tbsched_probe", shared=1200, num_warps=8, num_ctas=1),
)
CUDA_CORE = of(
    "cuda.core._module",
    attributes=SimpleNamespace(
        num_regs=lambda: 40,
        shared_size_bytes=lambda: 1200,
        local_size_bytes=lambda: 16,
        preferred_shared_memory_carveout=lambda: 30,
    ),
)
TORCH = of("torch._inductor.runtime.triton_heuristics", launchers=[SimpleNamespace(bin=TRITON)])


@pytest.mark.parametrize(
    ("kernel", "name", "carveout"),
    [
        (CUPY, "gemm", None),
        (NUMBA, "gemm", None),
        (OVERLOAD, "gemm", None),
        (TRITON, "tbsched_probe", None),
        (TORCH, "tbsched_probe", None),
        (CUDA_CORE, None, 30),
    ],
)
def test_kernels_of_libraries(kernel: Any, name: str | None, carveout: int | None) -> None:
    assert tb.launch_of(kernel, (4, 2), (64, 4), shared_memory=100, stream=1) == tb.Launch(
        8, 256, 40, 1300, 16, carveout, stream=1, name=name
    )


def test_kernels_of_cubins(tmp_path: Path) -> None:
    place = tmp_path / "probe.cubin"
    place.write_bytes(CUBIN)
    expected = tb.Launch(4, 64, 40, 0, 16, name="tbsched_probe")
    for kernel in (place, str(place), (place, "tbsched_probe")):
        assert tb.launch_of(kernel, 4, 64) == expected


def test_fields_of_a_launch_can_be_given() -> None:
    launch = tb.launch_of(CUPY, 8, 64, carveout=20, cluster=2, name="mine", duration=1e-3)
    assert (launch.carveout, launch.cluster, launch.name, launch.duration) == (20, 2, "mine", 1e-3)


def test_kernels_of_triton_have_their_own_threads() -> None:
    assert tb.launch_of(TRITON, 4).threads == 256
    with pytest.raises(ValueError, match=r"launch_of\.block: .* compiled for 256 threads, got 128"):
        tb.launch_of(TRITON, 4, 128)


@pytest.mark.parametrize(
    ("kernel", "error", "why"),
    [
        (3, TypeError, "kernel: 3 is of none that are known"),
        (of("torch.nn"), TypeError, "chooses its kernels when it is called"),
        (of("torch._inductor", launchers=[]), ValueError, "0 candidates"),
        (of("numba.cuda", overloads={}), ValueError, "is not compiled yet"),
        (of("numba.cuda", overloads={"a": OVERLOAD, "b": OVERLOAD}), ValueError, "2 signatures"),
    ],
)
def test_what_is_no_one_kernel_is_refused(kernel: Any, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        tb.launch_of(kernel, 1, 32)


@pytest.mark.parametrize(
    ("grid", "block", "why"),
    [
        (0, 32, r"launch_of\.grid: 0 "),
        ((1, 2, 3, 4), 32, r"launch_of\.grid: up to three numbers"),
        (1, None, r"launch_of\.block: the threads of a block are needed"),
        (1, (1024, 2), r"Launch\.threads: 2048 "),
    ],
)
def test_sizes_out_of_range_are_refused(grid: Any, block: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        tb.launch_of(CUPY, grid, block)


def test_cubins_name_their_kernels(tmp_path: Path) -> None:
    place = tmp_path / "probe.cubin"
    place.write_bytes(CUBIN)
    with pytest.raises(ValueError, match=r"no kernel 'tbsched_prob'.*did you mean 'tbsched_probe'"):
        tb.launch_of((place, "tbsched_prob"), 1, 32)
    place.write_bytes(b"// PTX")
    with pytest.raises(ValueError, match=r"probe\.cubin: image: not a cubin: .*nvcc -cubin"):
        tb.launch_of(place, 1, 32)
    with pytest.raises(FileNotFoundError):
        tb.launch_of(tmp_path / "none.cubin", 1, 32)
