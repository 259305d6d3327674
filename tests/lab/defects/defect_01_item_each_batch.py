"""An evaluation pass over 40 mini-batches that reads every loss with ``.item()``."""

from collections.abc import Callable

import torch

DEFECT = "loss.item() after each of 40 mini-batches makes the host wait for the GPU every time"
CAUSE = "cudaStreamSynchronize called by aten::item (aten::_local_scalar_dense)"
FIX = "keep the losses on the GPU and add them up there"

BATCHES = 40


def build(variant: str) -> Callable[[], object]:
    """Return one evaluation pass over all mini-batches."""
    weight = torch.randn(1024, 1024, device="cuda", dtype=torch.bfloat16) / 32
    target = torch.randn(2048, 1024, device="cuda", dtype=torch.bfloat16)
    inputs = [torch.randn(2048, 1024, device="cuda", dtype=torch.bfloat16) for _ in range(BATCHES)]

    def loss_of(x: torch.Tensor) -> torch.Tensor:
        return (x @ weight - target).square().mean(dtype=torch.float32)

    def step_defect() -> object:
        total = 0.0
        for x in inputs:
            total += loss_of(x).item()
        return total

    def step_fixed() -> object:
        return torch.stack([loss_of(x) for x in inputs]).sum()

    return {"defect": step_defect, "fixed": step_fixed}[variant]
