"""One boolean-mask indexing, which waits for the GPU, at the end of every large step."""

from collections.abc import Callable

import torch

SUSPECT = "torch.where instead of the boolean-mask indexing (which calls aten::nonzero)"

PRODUCTS = 7


def build(variant: str) -> Callable[[], object]:
    """Return one step: about 19 ms of GPU work, then the sum of some rows."""
    weight = torch.randn(4096, 4096, device="cuda") / 64
    x = torch.randn(4096, 4096, device="cuda")
    mask = torch.rand(256, device="cuda") < 0.5
    zero = torch.zeros((), device="cuda")

    def step() -> object:
        y = x
        for _ in range(PRODUCTS):
            y = y @ weight
        rows = y[:256].abs()
        kept = rows[mask] if variant == "given" else torch.where(mask[:, None], rows, zero)
        return kept.sum()

    return step
