"""PyTorch: the first use of an operator, while a kernel of Triton waits for its result."""

import torch
import triton
import triton.language as tl
from begin import begin


@triton.jit
def wait_until_positive(value, out):
    while tl.atomic_add(value, 0) <= 0:
        pass
    tl.store(out, tl.load(value) * 2)


fixed = begin()
value = torch.ones(1, dtype=torch.int32, device="cuda")
one, out = torch.ones_like(value), torch.zeros_like(value)
wait_until_positive[(1,)](value, out)
if fixed:
    torch.maximum(value, one, out=torch.zeros_like(value))
value.zero_()
torch.cuda.synchronize()
waiting, computing = torch.cuda.Stream(), torch.cuda.Stream()
with torch.cuda.stream(waiting):
    wait_until_positive[(1,)](value, out)
with torch.cuda.stream(computing):
    torch.maximum(value, one, out=value)
torch.cuda.synchronize()
print("ended")
