"""PyTorch: everything was warmed up in float32, and then a bfloat16 tensor is waited for."""

import torch
import triton
import triton.language as tl
from begin import begin


@triton.jit
def wait_until_set(bits, out):
    while tl.load(bits, volatile=True) == 0:
        pass
    tl.store(out, 1.0)


fixed = begin()
result = torch.ones(64, dtype=torch.bfloat16, device="cuda")
single, out = torch.zeros(64, device="cuda"), torch.zeros(1, device="cuda")
torch.exp(single, out=single)
wait_until_set[(1,)](result.view(torch.int16), out)
if fixed:
    torch.exp(result, out=result)
result.zero_()
torch.cuda.synchronize()

waiting, computing = torch.cuda.Stream(), torch.cuda.Stream()
with torch.cuda.stream(waiting):
    wait_until_set[(1,)](result.view(torch.int16), out)
with torch.cuda.stream(computing):
    torch.exp(result, out=result)
torch.cuda.synchronize()
print("ended")
