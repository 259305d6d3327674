"""Triton: the last program adds the partial sums, but its ticket is compared with a wrong count."""

import torch
import triton
import triton.language as tl
from begin import begin


@triton.jit
def sum_rows(x, partial, tickets, done, total, last, block: tl.constexpr):
    pid = tl.program_id(0)
    at = tl.arange(0, block)
    tl.store(partial + pid, tl.sum(tl.load(x + pid * block + at), axis=0))
    ticket = tl.atomic_add(tickets, 1)
    if ticket == last:
        tl.store(total, tl.sum(tl.load(partial + at, mask=at < 64, other=0.0), axis=0))
        tl.atomic_xchg(done, 1)
    while tl.atomic_add(done, 0) == 0:
        pass
    tl.store(partial + pid, tl.load(total))


fixed = begin()
x = torch.rand(64, 128, device="cuda")
partial, total = torch.zeros(64, device="cuda"), torch.zeros(1, device="cuda")
tickets = torch.zeros(1, dtype=torch.int32, device="cuda")
done = torch.zeros(1, dtype=torch.int32, device="cuda")
sum_rows[(64,)](x, partial, tickets, done, total, 63 if fixed else 64, 128)
torch.cuda.synchronize()
print("ended")
