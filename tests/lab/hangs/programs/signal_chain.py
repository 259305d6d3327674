"""Signal chain: a hold stage in one stream waits for the stage behind it; stages are compiled as
the chain description asks for them."""

import sys

import cupy as cp
import numpy as np
import turn

turn.take()

HOLD = cp.RawKernel(
    r"""
extern "C" __global__ void hold_window(float *x, int *stage_done, int want, int n)
{
    if (threadIdx.x == 0) while (atomicAdd(stage_done, 0) < want) __nanosleep(1000);
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = fminf(x[i], 1.f);
}
""",
    "hold_window",
)

STAGE = r"""
extern "C" __global__ void STAGE_NAME(const float *x, float *y, int *stage_done, int n)
{
    float taps[1024];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 1024; ++k) taps[k] = x[(i + k) % n];
    int pick = i & 1023;
    for (int k = 0; k < 200; ++k) { taps[pick] *= GAIN; pick = (pick * 5 + 3 + (int)taps[pick]) & 1023; }
    y[i] = taps[pick];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(stage_done, 1);
}
"""


class Chain:
    def __init__(self, n):
        self.n = n
        self.x = cp.full(n, 0.5, dtype=cp.float32)
        self.y = cp.zeros(n, dtype=cp.float32)
        self.stage_done = cp.zeros(1, dtype=cp.int32)
        self.hold_stream = cp.cuda.Stream(non_blocking=True)
        self.stage_stream = cp.cuda.Stream(non_blocking=True)
        self.kernels = {}
        self.done = 0
        cp.cuda.Device().synchronize()

    def stage(self, name, gain):
        if name not in self.kernels:
            code = STAGE.replace("STAGE_NAME", name).replace("GAIN", f"{gain}f")
            self.kernels[name] = cp.RawKernel(code, name)
        with self.stage_stream:
            self.kernels[name](
                (self.n // 128,), (128,), (self.x, self.y, self.stage_done, np.int32(self.n))
            )
        self.done += self.n // 128

    def hold(self, want):
        with self.hold_stream:
            HOLD((1,), (256,), (self.x, self.stage_done, np.int32(want), np.int32(self.n)))


def main():
    fixed = len(sys.argv) > 1 and sys.argv[1] == "fixed"
    chain = Chain(4096)
    chain.hold(0)
    chain.hold_stream.synchronize()
    print("chain open", flush=True)
    stages = [("lowpass", 0.9), ("notch", 0.8), ("compress", 0.7)]
    if fixed:
        for s in stages:
            chain.stage(*s)
        cp.cuda.Device().synchronize()
    for name, gain in stages:
        chain.hold(chain.done + chain.n // 128)
        chain.stage(name, gain)
        chain.hold_stream.synchronize()
        print("stage", name, "done", flush=True)
    print("mean", float(chain.y.mean()), flush=True)


if __name__ == "__main__":
    main()
