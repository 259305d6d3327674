"""A pinned copy of 256 KB in the compute stream before large matrix products."""

import itertools
from collections.abc import Callable

import torch

SUSPECT = "copy the 256 KB of the next step in a second stream"

PRODUCTS = 4


def build(variant: str) -> Callable[[], object]:
    """Return one step: a small copy, then about 11 ms of GPU work."""
    weight = torch.randn(4096, 4096, device="cuda") / 64
    x = torch.randn(4096, 4096, device="cuda")
    device = [torch.rand(65536, device="cuda") for _ in range(2)]
    host = [batch.cpu().pin_memory() for batch in device]
    copied = [torch.cuda.Event() for _ in range(2)]
    used = [torch.cuda.Event() for _ in range(2)]
    copier = torch.cuda.Stream()
    turn = itertools.cycle(range(2))

    def compute(batch: torch.Tensor) -> torch.Tensor:
        y = x * batch.mean()
        for _ in range(PRODUCTS):
            y = y @ weight
        return y

    def start_copy(slot: int) -> None:
        copier.wait_event(used[slot])
        with torch.cuda.stream(copier):
            device[slot].copy_(host[slot], non_blocking=True)
            copied[slot].record()

    def step_given() -> object:
        slot = next(turn)
        device[slot].copy_(host[slot], non_blocking=True)
        return compute(device[slot])

    def step_changed() -> object:
        slot = next(turn)
        start_copy(1 - slot)
        torch.cuda.current_stream().wait_event(copied[slot])
        result = compute(device[slot])
        used[slot].record()
        return result

    if variant == "changed":
        torch.cuda.synchronize()
        start_copy(0)
    return {"given": step_given, "changed": step_changed}[variant]
