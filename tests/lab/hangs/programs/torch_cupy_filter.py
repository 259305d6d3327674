"""A CuPy filter kernel inside a PyTorch loop: the filter sits in a CuPy stream and consumes windows
of a torch tensor as the torch side advances the write cursor."""

import sys

import cupy as cp
import numpy as np
import torch
import turn

turn.take()

FILTER = cp.RawKernel(
    r"""
extern "C" __global__ void fir_filter(const float *signal, float *out, int *cursor, int first, int last, int window)
{
    for (int w = first; w < last; ++w) {
        if (threadIdx.x == 0) {
            while (atomicAdd(cursor, 0) <= w) __nanosleep(1000);
            __threadfence();
        }
        __syncthreads();
        for (int i = threadIdx.x; i < window; i += blockDim.x) {
            int g = w * window + i;
            volatile const float *s = signal;
            float v = 0.5f * s[g];
            if (g > 0) v += 0.3f * s[g - 1];
            if (g > 1) v += 0.2f * s[g - 2];
            out[g] = v;
        }
        __syncthreads();
    }
}
""",
    "fir_filter",
)

WINDOW = 4096


def launch(stream, signal, out, cursor, first, last):
    with stream:
        FILTER(
            (1,),
            (256,),
            (
                cp.asarray(signal),
                cp.asarray(out),
                cp.asarray(cursor),
                np.int32(first),
                np.int32(last),
                np.int32(WINDOW),
            ),
        )


def main():
    fixed = len(sys.argv) > 1 and sys.argv[1] == "fixed"
    torch.manual_seed(1)
    windows = 40
    signal = torch.zeros(windows * WINDOW, device="cuda")
    out = torch.zeros_like(signal)
    cursor = torch.zeros(1, device="cuda", dtype=torch.int32)
    source = torch.randn(windows, WINDOW, device="cuda")
    stream = cp.cuda.Stream(non_blocking=bool(fixed))
    torch.cuda.synchronize()

    def advance(w):
        signal[w * WINDOW : (w + 1) * WINDOW].copy_(source[w])
        cursor.add_(1)

    for w in range(4):
        advance(w)
    torch.cuda.synchronize()
    launch(stream, signal, out, cursor, 0, 4)
    stream.synchronize()
    print("backlog filtered, energy", float(out.square().sum()), flush=True)

    launch(stream, signal, out, cursor, 4, windows)
    for w in range(4, windows):
        advance(w)
    torch.cuda.current_stream().synchronize()
    stream.synchronize()
    print("energy", float(out.square().sum()), flush=True)


if __name__ == "__main__":
    main()
