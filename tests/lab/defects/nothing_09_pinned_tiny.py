"""Eight index lists of 4 KB that are copied from pageable memory in every step."""

from collections.abc import Callable

import torch

SUSPECT = "hold the eight index lists of 4 KB in pinned memory"

LISTS = 8
PRODUCTS = 4


def build(variant: str) -> Callable[[], object]:
    """Return one step: eight small copies and look-ups, then about 11 ms of GPU work."""
    weight = torch.randn(4096, 4096, device="cuda") / 64
    x = torch.randn(4096, 4096, device="cuda")
    table = torch.rand(4096, 64, device="cuda")
    indices = [torch.arange(512) + 400 * i for i in range(LISTS)]
    if variant == "changed":
        indices = [index.pin_memory() for index in indices]

    def step() -> object:
        rows = [table.index_select(0, index.to("cuda", non_blocking=True)) for index in indices]
        y = x * torch.cat(rows).mean()
        for _ in range(PRODUCTS):
            y = y @ weight
        return y

    return step
