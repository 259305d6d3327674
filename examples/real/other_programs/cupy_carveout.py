"""A kernel with shared memory beside one without, which leaves the SMs no shared memory."""

import cupy
from cupy_kernels import HISTOGRAM, LOGISTIC, logistic

CHANGES = {"carveout": "the kernel without shared memory asks for all of it, too"}


def build(change=None):
    LOGISTIC.preferred_shared_memory_carveout = 100 if change == "carveout" else -1
    maps, counts = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
    values = cupy.full(132 * 256, 0.3, cupy.float32)
    numbers = cupy.arange(1 << 25, dtype=cupy.int32)
    bins = cupy.zeros(8192, cupy.int32)
    cupy.cuda.Device().synchronize()

    def body():
        for _ in range(10):
            with maps:
                logistic(values, 132, 40_000)
            with counts:
                HISTOGRAM((132,), (256,), (numbers, cupy.int32(numbers.size), bins),
                          shared_mem=32768)  # fmt: skip
            mapped, counted = maps.record(), counts.record()
            maps.wait_event(counted)
            counts.wait_event(mapped)

    return body
