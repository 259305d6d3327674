"""A result of 32 MB that is fetched with ``.cpu()`` in every step."""

import itertools
from collections.abc import Callable

import torch

DEFECT = "result.cpu() of 32 MB in every step: a slow copy to pageable memory, host and GPU wait"
CAUSE = "blocking device-to-host copies to pageable memory (Memcpy DtoH Device -> Pageable)"
FIX = "copy into two pinned buffers with non_blocking=True in a stream of their own"


def build(variant: str) -> Callable[[], object]:
    """Return one step: five matrix products and the copy of the result to the host."""
    x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    weight = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) / 64
    results = [torch.empty_like(x) for _ in range(2)]
    pinned = [torch.empty(x.shape, dtype=x.dtype, pin_memory=True) for _ in range(2)]
    copied = [torch.cuda.Event() for _ in range(2)]
    computed = [torch.cuda.Event() for _ in range(2)]
    copier = torch.cuda.Stream()
    turn = itertools.cycle(range(2))

    def compute(slot: int) -> torch.Tensor:
        y = x
        for _ in range(4):
            y = y @ weight
        return torch.mm(y, weight, out=results[slot])

    def step_defect() -> object:
        return compute(next(turn)).cpu()

    def step_fixed() -> object:
        slot = next(turn)
        torch.cuda.current_stream().wait_event(copied[slot])
        compute(slot)
        computed[slot].record()
        copier.wait_event(computed[slot])
        with torch.cuda.stream(copier):
            pinned[slot].copy_(results[slot], non_blocking=True)
            copied[slot].record()
        return pinned[slot]

    return {"defect": step_defect, "fixed": step_fixed}[variant]
