"""Triton: split-K over 1,200 tiles, where the program of a tile's first part adds up all four."""

import torch
import triton
import triton.language as tl
from begin import begin


@triton.jit
def gemv_parts(matrix, parts, arrived, out, tiles, owner, count: tl.constexpr, width: tl.constexpr):
    tile = tl.program_id(0) % tiles
    part = tl.program_id(0) // tiles
    rows = tl.arange(0, width)
    value = tl.load(matrix + (tile % 64) * width + rows) * (part + 1)
    if part == owner:
        while tl.atomic_add(arrived + tile, 0) < count - 1:
            pass
        tl.store(out + tile * width + rows, value + tl.load(parts + tile * width + rows))
    else:
        tl.atomic_add(parts + tile * width + rows, value)
        tl.atomic_add(arrived + tile, 1)


fixed = begin()
tiles, splits, rows = 1200, 4, 256
matrix = torch.ones(64 * rows, device="cuda")
parts, out = torch.zeros(tiles * rows, device="cuda"), torch.zeros(tiles * rows, device="cuda")
arrived = torch.zeros(tiles, dtype=torch.int32, device="cuda")
torch.cuda.synchronize()
owner = splits - 1 if fixed else 0
gemv_parts[(tiles * splits,)](
    matrix, parts, arrived, out, tiles, owner, count=splits, width=rows, num_warps=8, maxnreg=32
)
torch.cuda.synchronize()
print("ended")
