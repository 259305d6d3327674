"""Triton and CuPy: a Triton kernel in PyTorch's default stream waits for CuPy on a Stream()."""

import cupy
import torch
import triton
import triton.language as tl
from begin import begin

SOURCE = r"""
extern "C" __global__ void tokenise(int* tokens, int* count) {
  tokens[threadIdx.x] = threadIdx.x * 3;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(count, 1);
}
"""


@triton.jit
def embed(count, tokens, out, block: tl.constexpr):
    while tl.atomic_add(count, 0) == 0:
        pass
    at = tl.arange(0, block)
    tl.store(out + at, tl.load(tokens + at).to(tl.float32))


fixed = begin()
tokenise = cupy.RawKernel(SOURCE, "tokenise")
count = torch.zeros(1, dtype=torch.int32, device="cuda")
tokens = torch.zeros(256, dtype=torch.int32, device="cuda")
out = torch.zeros(256, device="cuda")
arguments = cupy.asarray(tokens), cupy.asarray(count)
torch.cuda.synchronize()
tokenise((1,), (256,), arguments)  # both are loaded
torch.cuda.synchronize()
embed[(1,)](count, tokens, out, block=256)
torch.cuda.synchronize()
count.zero_()
torch.cuda.synchronize()
stream = cupy.cuda.Stream(non_blocking=fixed)
embed[(1,)](count, tokens, out, block=256)
with stream:
    tokenise((1,), (256,), arguments)
torch.cuda.synchronize()
print("ended")
