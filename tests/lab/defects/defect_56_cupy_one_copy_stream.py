"""Chunks are copied to the GPU, transformed with CuPy and copied back, in a pipeline."""

import cupy as cp
import cupyx

DEFECT = "uploads and downloads share one stream, so an upload waits for the chunk before it"
CAUSE = (
    "the next chunk's host-to-device copy is queued behind a device-to-host copy, which itself "
    "waits for a kernel (cudaStreamWaitEvent), in one copy stream: copies of both directions and "
    "kernels run one after the other, though the GPU has a copy engine for each direction"
)
FIX = "a stream of their own for the downloads"

CHUNKS = 8
COUNT = 1 << 22

iterate = cp.ElementwiseKernel(
    "float32 x",
    "float32 y",
    "float v = x; for (int k = 0; k < 400; ++k) { v = 3.7f * v * (1.0f - v); } y = v;",
    "iterate",
)


def build(variant):
    values = cp.random.RandomState(0).random_sample((CHUNKS, COUNT)).astype(cp.float32)
    source = cupyx.empty_pinned((CHUNKS, COUNT), dtype=cp.float32)
    source[...] = cp.asnumpy(values)
    target = cupyx.empty_pinned((CHUNKS, COUNT), dtype=cp.float32)
    target[...] = 0
    inputs = [cp.empty(COUNT, dtype=cp.float32) for _ in range(CHUNKS)]
    outputs = [cp.empty(COUNT, dtype=cp.float32) for _ in range(CHUNKS)]
    arrived = [cp.cuda.Event(disable_timing=True) for _ in range(CHUNKS)]
    computed = [cp.cuda.Event(disable_timing=True) for _ in range(CHUNKS)]
    compute = cp.cuda.Stream(non_blocking=True)
    upload = cp.cuda.Stream(non_blocking=True)
    download = upload if variant == "defect" else cp.cuda.Stream(non_blocking=True)
    cp.cuda.Device().synchronize()

    def step():
        for chunk in range(CHUNKS):
            inputs[chunk].set(source[chunk], stream=upload)
            arrived[chunk].record(upload)
            compute.wait_event(arrived[chunk])
            with compute:
                iterate(inputs[chunk], outputs[chunk])
            computed[chunk].record(compute)
            download.wait_event(computed[chunk])
            outputs[chunk].get(stream=download, out=target[chunk], blocking=False)
        download.synchronize()  # the results are needed on the host
        return target

    return step
