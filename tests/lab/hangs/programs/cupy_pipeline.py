"""CuPy with one connection: a stage that waits, its postprocessing, and then the stage before."""

import cupy
from begin import begin

SOURCE = r"""
extern "C" __global__ void decode(volatile int* tokens, float* logits) {
  if (threadIdx.x == 0) while (tokens[0] == 0) __nanosleep(100);
  __syncthreads();
  logits[threadIdx.x] += 1;
}
extern "C" __global__ void sample(float* logits) { logits[threadIdx.x] *= 0.5f; }
extern "C" __global__ void prefill(int* tokens) { if (threadIdx.x == 0) atomicExch(tokens, 1); }
"""

fixed = begin()
module = cupy.RawModule(code=SOURCE)
decode, sample, prefill = (module.get_function(n) for n in ("decode", "sample", "prefill"))
tokens, logits = cupy.zeros(1, cupy.int32), cupy.zeros(256, cupy.float32)
decoding, prefilling = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
prefill((1,), (32,), (tokens,))  # everything is loaded
decode((1,), (256,), (tokens, logits))
sample((1,), (256,), (logits,))
tokens.fill(0)
cupy.cuda.Device().synchronize()


def run_decode():
    with decoding:
        decode((1,), (256,), (tokens, logits))
        sample((1,), (256,), (logits,))


def run_prefill():
    with prefilling:
        prefill((1,), (32,), (tokens,))


for stage in (run_prefill, run_decode) if fixed else (run_decode, run_prefill):
    stage()
cupy.cuda.Device().synchronize()
print("ended")
