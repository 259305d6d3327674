"""CuPy compiles and loads a RawKernel at its first call: here another kernel waits for it."""

import cupy as cp
from begin import begin

fixed = begin()
listen = cp.RawKernel(
    r"""
extern "C" __global__ void listen(int* channel, int* heard) {
  while (atomicAdd(channel, 0) == 0) {}
  heard[threadIdx.x] = channel[0];
}
""",
    "listen",
)
speak = cp.RawKernel(
    r'extern "C" __global__ void speak(int* channel) { atomicExch(channel, 42); }', "speak"
)
channel, heard = cp.zeros(1, cp.int32), cp.zeros(32, cp.int32)
listen.compile()
if fixed:
    speak((1,), (1,), (cp.zeros(1, cp.int32),))
cp.cuda.Device().synchronize()
one, two = cp.cuda.Stream(non_blocking=True), cp.cuda.Stream(non_blocking=True)
with one:
    listen((1,), (32,), (channel, heard))
with two:
    speak((1,), (1,), (channel,))
cp.cuda.Device().synchronize()
print("ended")
