"""A chain of large kernels in a stream of its own, with nothing beside it."""

from collections.abc import Callable

import torch

SUSPECT = "give the stream a high priority"

PRODUCTS = 4


def build(variant: str) -> Callable[[], object]:
    """Return one step of about 11 ms of GPU work in one stream."""
    weight = torch.randn(4096, 4096, device="cuda") / 64
    x = torch.randn(4096, 4096, device="cuda")
    stream = torch.cuda.Stream(priority=0 if variant == "given" else -1)
    stream.wait_stream(torch.cuda.current_stream())

    def step() -> object:
        with torch.cuda.stream(stream):
            y = x
            for _ in range(PRODUCTS):
                y = y @ weight
        return y

    return step
