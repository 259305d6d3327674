"""Rows chosen with a boolean mask, which needs the number of rows on the host."""

from collections.abc import Callable

import torch

DEFECT = "h[mask] 24 times a step: the host must learn how many rows the mask keeps"
CAUSE = "cudaStreamSynchronize called by aten::nonzero (boolean-mask indexing, aten::index)"
FIX = "torch.where with zeros, whose shape is known beforehand"

CHUNKS = 24


def build(variant: str) -> Callable[[], object]:
    """Return one step: 24 products, each followed by the sum of some of its rows."""
    weight = torch.randn(1024, 1024, device="cuda", dtype=torch.bfloat16) / 32
    inputs = [torch.randn(2048, 1024, device="cuda", dtype=torch.bfloat16) for _ in range(CHUNKS)]
    mask = torch.rand(2048, device="cuda") < 0.5
    column = mask[:, None]
    zero = torch.zeros((), device="cuda", dtype=torch.bfloat16)

    def step() -> object:
        sums = []
        for x in inputs:
            h = (x @ weight).abs()
            kept = h[mask] if variant == "defect" else torch.where(column, h, zero)
            sums.append(kept.sum(dtype=torch.float32))
        return torch.stack(sums)

    return step
