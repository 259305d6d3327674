"""CuPy's streams wait for its default stream, and it for them: a small kernel there stops all."""

import cupy
from cupy_kernels import logistic

CHANGES = {"non_blocking": "the streams do not wait for the default stream"}


def build(change=None):
    streams = [cupy.cuda.Stream(non_blocking=change == "non_blocking") for _ in range(3)]
    values = [cupy.full(40 * 256, 0.3, cupy.float32) for _ in streams]
    steps = cupy.full(256, 0.3, cupy.float32)
    cupy.cuda.Device().synchronize()

    def body():
        for step in range(10):
            for k, stream in enumerate(streams):
                with stream:
                    logistic(values[k], 40, 30_000 * ((k + step) % 3 + 1))
            logistic(steps, 1, 10)

    return body
