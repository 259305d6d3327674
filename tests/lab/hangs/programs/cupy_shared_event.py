"""CuPy: a reader waits for a token, a decoder of another stream comes after it by an event, and the
token is passed on in a third stream."""

import cupy
from begin import begin

SOURCE = r"""
extern "C" {
__global__ void read_block(const volatile int* token, float* block) {
  if (threadIdx.x == 0)
    while (token[0] == 0) __nanosleep(300);
  __syncthreads();
  block[threadIdx.x] = token[0];
}
__global__ void decode(float* block) { block[threadIdx.x] *= 2; }
__global__ void pass_token(int* token) { atomicExch(token, 1); }
}
"""

fixed = begin()
module = cupy.RawModule(code=SOURCE)
read_block, decode, pass_token = map(module.get_function, ("read_block", "decode", "pass_token"))
token, block = cupy.zeros(1, cupy.int32), cupy.zeros(128, cupy.float32)
reading, decoding, passing = (cupy.cuda.Stream(non_blocking=True) for _ in range(3))


def read_and_decode():
    with reading:
        read_block((1,), (128,), (token, block))
        done = reading.record()
    decoding.wait_event(done)
    with decoding:
        decode((1,), (128,), (block,))


def give():
    with passing:
        pass_token((1,), (1,), (token,))


give()
cupy.cuda.Device().synchronize()
read_and_decode()  # all kernels are loaded
cupy.cuda.Device().synchronize()
token.fill(0)
cupy.cuda.Device().synchronize()
for each in (give, read_and_decode) if fixed else (read_and_decode, give):
    each()
cupy.cuda.Device().synchronize()
print("ended")
