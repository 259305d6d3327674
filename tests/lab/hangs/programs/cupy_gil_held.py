"""CuPy: a kernel asks for a seed in pinned memory, which a Python thread gives. The main thread
waits for the context by a call of the driver through ctypes."""

import ctypes
import threading
import time

import cupy
import cupyx
import numpy as np
from begin import begin

SOURCE = r"""
extern "C" __global__ void sample(const volatile int* seed, float* samples) {
  if (threadIdx.x == 0)
    while (seed[0] == 0) __nanosleep(2000);
  __syncthreads();
  samples[threadIdx.x] = seed[0] * 0.5f + threadIdx.x;
}
"""

fixed = begin()
driver = (ctypes.CDLL if fixed else ctypes.PyDLL)("libcuda.so.1")
sample = cupy.RawKernel(SOURCE, "sample")
seed = cupyx.zeros_pinned(1, np.int32)
samples = cupy.zeros(128, cupy.float32)
seed[0] = 1
sample((1,), (128,), (seed.ctypes.data, samples))
cupy.cuda.Device().synchronize()
seed[0] = 0


def give_seed():
    time.sleep(0.4)
    seed[0] = 42


stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    sample((1,), (128,), (seed.ctypes.data, samples))
thread = threading.Thread(target=give_seed)
thread.start()
driver.cuCtxSynchronize()
thread.join()
print("ended")
