"""Chains of kernels in six streams that share one hardware queue, each chain issued at once."""

import os

CHANGES = {"connections": "eight hardware queues, as is the default"}


def build(change=None):
    if change is None:  # before CUDA starts
        os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "1"
    import cupy
    from cupy_kernels import logistic

    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(6)]
    values = [cupy.full(16 * 256, 0.3, cupy.float32) for _ in streams]
    cupy.cuda.Device().synchronize()

    def body():
        for _ in range(3):
            for k, stream in enumerate(streams):
                with stream:
                    for _ in range(3):
                        logistic(values[k], 16, 40_000)

    return body
