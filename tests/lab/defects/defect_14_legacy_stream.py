"""Four blocking streams with a tiny kernel in the legacy default stream between them."""

from collections.abc import Callable

import cupy
import numpy as np

DEFECT = "a tiny kernel in the legacy default stream after every round holds up all other streams"
CAUSE = "kernel in the legacy default stream: implicit synchronisation with the blocking streams"
FIX = "put the tiny kernel in a non-blocking stream of its own"

SOURCE = r"""
extern "C" __global__ void iterate(const float* source, float* target, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = source[i];
    for (int r = 0; r < rounds; ++r) {
        x = x * 0.999f + 0.001f;
    }
    target[i] = x;
}
"""

STREAMS = 4
ROUNDS = 8
LONG = np.int32(200_000)
SHORT = np.int32(2_000)


def build(variant: str) -> Callable[[], object]:
    """Return one step of eight rounds; in each, another stream has the long kernel."""
    iterate = cupy.RawKernel(SOURCE, "iterate")
    sources = [cupy.linspace(0.0, 1.0, 2048, dtype=cupy.float32) for _ in range(STREAMS)]
    targets = [cupy.empty_like(source) for source in sources]
    count = cupy.zeros(256, dtype=cupy.float32)
    mark = cupy.zeros(256, dtype=cupy.float32)
    streams = [cupy.cuda.Stream(non_blocking=False) for _ in range(STREAMS)]
    side = cupy.cuda.Stream(non_blocking=True)
    tiny = cupy.cuda.Stream.null if variant == "defect" else side
    cupy.cuda.Device().synchronize()

    def step() -> object:
        for turn in range(ROUNDS):
            for i, stream in enumerate(streams):
                rounds = LONG if i == turn % STREAMS else SHORT
                with stream:
                    iterate((8,), (256,), (sources[i], targets[i], rounds))
            with tiny:
                iterate((1,), (256,), (count, mark, np.int32(1)))
        return targets[0]

    return step
