"""A tensor on the GPU that is printed in every step."""

import io
from collections.abc import Callable

import torch

DEFECT = "printing a GPU tensor in every step: formatting it reads its numbers back one by one"
CAUSE = "cudaStreamSynchronize called by aten::item (and masked_select / nonzero) for the print"
FIX = "do not print tensors in the loop"


def build(variant: str) -> Callable[[], object]:
    """Return one step: six matrix products and, perhaps, a print of the result."""
    weight = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) / 64
    x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)

    def step() -> object:
        y = x
        for _ in range(6):
            y = y @ weight
        if variant == "defect":
            print(y, file=io.StringIO())
        return y

    return step
