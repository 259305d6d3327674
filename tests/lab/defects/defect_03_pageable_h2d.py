"""Batches of 32 MB that are copied to the GPU from ordinary (pageable) host memory."""

import itertools
from collections.abc import Callable

import torch

DEFECT = "each step copies 32 MB from pageable host memory, slowly and with the host waiting"
CAUSE = "pageable host-to-device copies (Memcpy HtoD Pageable -> Device, aten::to / aten::copy_)"
FIX = "pinned host memory and non_blocking=True"


def build(variant: str) -> Callable[[], object]:
    """Return one step: copy a batch, then three matrix products."""
    weight = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) / 64
    batches = [torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16).cpu() for _ in range(4)]
    if variant == "fixed":
        batches = [batch.pin_memory() for batch in batches]
    source = itertools.cycle(batches)

    def step() -> object:
        x = next(source).to("cuda", non_blocking=variant == "fixed")
        for _ in range(3):
            x = x @ weight
        return x

    return step
