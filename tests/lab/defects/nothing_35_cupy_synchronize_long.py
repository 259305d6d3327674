"""A CuPy simulation whose phases take milliseconds."""

import cupy as cp

SUSPECT = "leave out the stream.synchronize() after each phase"

COUNT = 1 << 26
PHASES = 3

iterate = cp.ElementwiseKernel(
    "float32 x",
    "float32 y",
    "float v = x; for (int k = 0; k < 500; ++k) { v = 3.7f * v * (1.0f - v); } y = v;",
    "iterate_long",
)


def build(variant):
    start = cp.random.RandomState(0).random_sample(COUNT).astype(cp.float32)
    result = cp.empty_like(start)

    def step():
        source = start
        for _ in range(PHASES):
            iterate(source, result)
            source = result
            if variant == "given":
                cp.cuda.get_current_stream().synchronize()
        return result

    return step
