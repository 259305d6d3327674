"""PyTorch: a verifier stays on the GPU until the draft's tokens are there, which are the first that
the process chooses by topk."""

import torch
import triton
import triton.language as tl
from begin import begin


@triton.jit
def verify(drafted, accepted):
    while tl.atomic_add(drafted, 0) == 0:
        pass
    tl.store(accepted, 1.0)


fixed = begin()
drafted = torch.ones(1, dtype=torch.int32, device="cuda")
accepted = torch.zeros(1, device="cuda")
scores = torch.linspace(0, 1, 8192, device="cuda")
verifying, drafting = torch.cuda.Stream(), torch.cuda.Stream()
torch.cuda.synchronize()
with torch.cuda.stream(verifying):
    verify[(1,)](drafted, accepted)
torch.cuda.synchronize()
with torch.cuda.stream(drafting):
    drafted.fill_(0)
    torch.empty(8192, device="cuda")  # the stream has memory
    if fixed:
        scores.topk(16)
torch.cuda.synchronize()

with torch.cuda.stream(verifying):
    verify[(1,)](drafted, accepted)
with torch.cuda.stream(drafting):
    tokens = scores.topk(16).indices
    drafted.fill_(1)
torch.cuda.synchronize()
print("ended")
