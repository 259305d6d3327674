"""PyTorch: .item() waits for a kernel that polls a pinned tensor, which the host fills later."""

import torch
import triton
import triton.language as tl
from begin import begin


@triton.jit
def wait_for_host(go, out):
    while tl.load(go, volatile=True) == 0:
        pass
    tl.store(out, 1.0)


fixed = begin()
go = torch.ones(1, dtype=torch.int32).pin_memory()
out = torch.zeros(1, device="cuda")
values = torch.ones(1 << 20, device="cuda")
wait_for_host[(1,)](go, out)
values.sum().item()
go[0] = 0
wait_for_host[(1,)](go, out)
if fixed:
    go[0] = 1
loss = values.sum().item()
go[0] = 1
torch.cuda.synchronize()
print("ended")
