"""PyTorch: the first softmax of the process runs beside a kernel that waits for what follows it."""

import cupy
import torch
from begin import begin

SOURCE = r"""
extern "C" __global__ void sample_token(const volatile int* scored, float* tokens) {
  if (threadIdx.x == 0) while (scored[0] == 0) __nanosleep(100);
  __syncthreads();
  tokens[threadIdx.x] += 1;
}
"""

fixed = begin()
sample_token = cupy.RawKernel(SOURCE, "sample_token")
scored = torch.zeros(1, dtype=torch.int32, device="cuda")
logits, tokens = torch.ones(64, 512, device="cuda"), torch.zeros(64, device="cuda")
spare = [torch.empty_like(logits) for _ in range(4)]
del spare  # the allocator has memory
arguments = cupy.asarray(scored), cupy.asarray(tokens)
scored.fill_(1)
torch.cuda.synchronize()
sample_token((1,), (64,), arguments)  # a sample in which the rest is loaded
if fixed:
    torch.softmax(logits, dim=-1)
torch.cuda.synchronize()
scored.zero_()
torch.cuda.synchronize()
sampling = torch.cuda.Stream()
with cupy.cuda.ExternalStream(sampling.cuda_stream):
    sample_token((1,), (64,), arguments)
scores = torch.softmax(logits, dim=-1)
scored.fill_(1)
torch.cuda.synchronize()
print("ended")
