"""Triton: 64 programs pass a part on to their right neighbour, each in one box, with an
acknowledgement back."""

import torch
import triton
import triton.language as tl
from begin import begin


@triton.jit
def shift(boxes, taken, parts, out, programs, send_first: tl.constexpr, width: tl.constexpr):
    own = tl.program_id(0)
    left = (own + programs - 1) % programs
    at = tl.arange(0, width)
    if not send_first:
        while tl.atomic_add(taken + own, 0) == 0:  # the box is free
            pass
    tl.atomic_xchg(boxes + own, own + 1)
    while tl.atomic_add(boxes + left, 0) == 0:
        pass
    tl.store(out + own * width + at, tl.load(parts + left * width + at))
    tl.atomic_xchg(taken + left, 1)
    if send_first:
        while tl.atomic_add(taken + own, 0) == 0:
            pass


fixed = begin()
programs, size = 64, 128
boxes = torch.zeros(programs, dtype=torch.int32, device="cuda")
taken = torch.zeros(programs, dtype=torch.int32, device="cuda")
parts, out = torch.ones(programs * size, device="cuda"), torch.zeros(programs * size, device="cuda")
torch.cuda.synchronize()
shift[(programs,)](boxes, taken, parts, out, programs, send_first=fixed, width=size)
torch.cuda.synchronize()
print("ended")
