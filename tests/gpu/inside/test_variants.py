"""Variants of a kernel compute the same on a real GPU, and a search times them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tbsched as tb
from tbsched.launcher.observe import Gpu
from tbsched.sm.characterization.toolkit import ToolMissing, tool

pytestmark = pytest.mark.tbsched_gpu
SOURCE = r"""
extern "C" __global__ void smooth(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < 8 || i >= n - 8) return;
  float sum = 0.0f;
  for (int k = -8; k < 8; ++k) sum += x[i + k] * (1.0f / (1 + k * k));
  y[i] = sum;
}
"""
COUNT, THREADS = 1 << 22, 256


def test_variants_agree_and_are_timed(hopper: Gpu) -> None:
    cupy: Any = pytest.importorskip("cupy")
    try:
        tool("nvdisasm")
    except ToolMissing as error:
        pytest.skip(str(error))
    found = tb.sm.variants(cupy.RawKernel(SOURCE, "smooth"), threads=THREADS, draws=2)
    assert len(found) > 4
    x = cupy.asarray(np.random.default_rng(3).random(COUNT, np.float32))
    y = cupy.zeros_like(x)
    arguments = (x, y, np.int32(COUNT))
    load = tb.sm.launcher(arguments, COUNT // THREADS, THREADS)
    wanted = None
    for variant in found:
        y[:] = 0
        load(variant)()
        result = cupy.asnumpy(y)
        wanted = result if wanted is None else wanted
        np.testing.assert_array_equal(result, wanted, err_msg=variant.name)
    assert wanted is not None
    assert wanted.any()
    search = tb.sm.search(found, load, rounds=8, again=8, progress=False)
    assert len(search.timings) == len(found)
    print(search)
    print(search.gain, search.better, search.best.variant)
