"""Triton: gradients are added in the order of the programs, for results that do not vary."""

import torch
import triton
import triton.language as tl
from begin import begin


@triton.jit
def add_in_turn(turn, steps, total, block: tl.constexpr):
    pid = tl.program_id(0)
    at = tl.arange(0, block)
    while tl.atomic_add(turn, 0) != pid:
        pass
    own = tl.load(total + at, volatile=True)
    for _ in range(steps):
        own = own * 0.999 + 0.25
    tl.store(total + at, own)
    tl.debug_barrier()
    tl.atomic_add(turn, 1)


begin()
turn = torch.zeros(1, dtype=torch.int32, device="cuda")
total = torch.zeros(128, device="cuda")
add_in_turn[(1,)](turn, 1, total, 128)
turn.zero_()
torch.cuda.synchronize()
add_in_turn[(3000,)](turn, 2_500_000, total, 128)
torch.cuda.synchronize()
print("ended")
