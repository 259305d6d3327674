"""The machine code of kernels that other libraries have compiled is read, and gives advice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tbsched as tb
from tbsched.launcher.observe import Gpu
from tbsched.sm.characterization.toolkit import ToolMissing, tool

pytestmark = pytest.mark.tbsched_gpu
SOURCE = r"""
extern "C" __global__ void scale(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = 2.0f * x[i] + 1.0f;
}
"""


def by_cupy() -> Any:
    cupy = pytest.importorskip("cupy")
    return cupy.RawKernel(SOURCE, "scale")


def by_numba() -> Any:
    cuda = pytest.importorskip("numba.cuda")

    def scale(x: Any) -> None:
        i = cuda.grid(1)
        if i < x.size:
            x[i] = 2 * x[i] + 1

    compiled = cuda.jit(scale)
    try:
        compiled.compile("void(float32[::1])")
    except AttributeError as error:
        if "numpy" in str(error):  # it wants np.row_stack, which newer ones lack
            pytest.skip(f"the Numba here does not fit the NumPy here: {error}")
        raise
    return compiled


def by_cuda_core() -> Any:
    core = pytest.importorskip("cuda.core")
    core.Device(0).set_current()
    options = core.ProgramOptions(arch="sm_90")
    return core.Program(SOURCE, "c++", options).compile("cubin"), "scale"


@pytest.mark.parametrize("make", [by_cupy, by_numba, by_cuda_core])
def test_a_library_s_kernel_is_advised(hopper: Gpu, make: Callable[[], Any]) -> None:
    try:
        tool("nvdisasm")
    except ToolMissing as error:
        pytest.skip(str(error))
    kernel = make()
    work = tb.Kernel(threads=4_000_000, registers=16)
    found = tb.launch_configs("h200", work, code=kernel)
    assert found.code is not None
    assert found.code.memory >= 2
    assert found.advised is not None
    assert found.advised.launch.threads >= 128
