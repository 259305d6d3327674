"""Copies from pinned memory that run in the same stream as the computation."""

import itertools
from collections.abc import Callable

import torch

DEFECT = "64 MB are copied to the GPU in the compute stream, so no kernel runs meanwhile"
CAUSE = "host-to-device copies (pinned) in the compute stream, not overlapped with kernels"
FIX = "copy the next batch in a second stream while this batch is computed"


def build(variant: str) -> Callable[[], object]:
    """Return one step: a batch and five matrix products."""
    weight = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) / 64
    device = [torch.randn(8192, 4096, device="cuda", dtype=torch.bfloat16) for _ in range(2)]
    host = [batch.cpu().pin_memory() for batch in device]
    copied = [torch.cuda.Event() for _ in range(2)]
    used = [torch.cuda.Event() for _ in range(2)]
    copier = torch.cuda.Stream()
    turn = itertools.cycle(range(2))

    def compute(x: torch.Tensor) -> torch.Tensor:
        for _ in range(5):
            x = x @ weight
        return x

    def start_copy(slot: int) -> None:
        copier.wait_event(used[slot])
        with torch.cuda.stream(copier):
            device[slot].copy_(host[slot], non_blocking=True)
            copied[slot].record()

    def step_defect() -> object:
        slot = next(turn)
        device[slot].copy_(host[slot], non_blocking=True)
        return compute(device[slot])

    def step_fixed() -> object:
        slot = next(turn)
        start_copy(1 - slot)
        torch.cuda.current_stream().wait_event(copied[slot])
        result = compute(device[slot])
        used[slot].record()
        return result

    if variant == "fixed":
        torch.cuda.synchronize()
        start_copy(0)
    return {"defect": step_defect, "fixed": step_fixed}[variant]
