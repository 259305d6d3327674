"""Two-stage frame pipeline with Numba: the blend stage is started first and takes frames as the
decode stage, in its own stream, announces them."""

import sys

import numpy as np
import turn
from numba import cuda

turn.take()

FRAMES = 66
PIX = 64 * 1024


@cuda.jit(max_registers=32)
def decode(frames, announced):
    f = cuda.blockIdx.x
    t = cuda.threadIdx.x
    while t < PIX:
        frames[f, t] = (t * 7 + f * 13) % 255
        t += cuda.blockDim.x
    cuda.threadfence()
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(announced, f, 1)


@cuda.jit(max_registers=32)
def blend(frames, announced, acc, nframes):
    # every block blends its stripe of all frames
    stripe = cuda.blockIdx.x
    per = PIX // 256
    for f in range(nframes):
        if cuda.threadIdx.x == 0:
            while cuda.atomic.add(announced, f, 0) == 0:
                cuda.nanosleep(500)
        cuda.syncthreads()
        p = cuda.threadIdx.x
        while p < per:
            x = (stripe * per + p) % PIX
            cuda.atomic.add(acc, x, frames[f, x])
            p += cuda.blockDim.x
        cuda.syncthreads()


def main():
    fixed = len(sys.argv) > 1 and sys.argv[1] == "fixed"
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    s_decode, s_blend = cuda.stream(), cuda.stream()
    frames = cuda.to_device(np.zeros((FRAMES, PIX), np.int32))
    acc = cuda.to_device(np.zeros(PIX, np.int32))
    announced = cuda.to_device(np.zeros(FRAMES, np.int32))

    # one frame through both stages
    decode[1, 256, s_decode](frames, announced)
    s_decode.synchronize()
    blend[8, 256, s_blend](frames, announced, acc, 1)
    s_blend.synchronize()
    print("pipeline primed, first pixel", acc.copy_to_host()[0], flush=True)

    announced.copy_to_device(np.zeros(FRAMES, np.int32))
    acc.copy_to_device(np.zeros(PIX, np.int32))
    cuda.synchronize()
    stripes = sms if fixed else 2 * sms
    threads = 1024
    print(f"blending {FRAMES} frames over {stripes} stripes", flush=True)
    blend[stripes, threads, s_blend](frames, announced, acc, FRAMES)
    decode[FRAMES, threads, s_decode](frames, announced)
    s_decode.synchronize()
    s_blend.synchronize()
    print("sum of accumulator", int(acc.copy_to_host().astype(np.int64).sum()), flush=True)


if __name__ == "__main__":
    main()
