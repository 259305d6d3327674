"""A wait for a short side stream that is always done long before the main work."""

from collections.abc import Callable

import torch

SUSPECT = "leave out the wait for the side stream's event"

PRODUCTS = 4


def build(variant: str) -> Callable[[], object]:
    """Return one step: long work in one stream, a short kernel in another, joined."""
    weight = torch.randn(4096, 4096, device="cuda") / 64
    x = torch.randn(4096, 4096, device="cuda")
    small = torch.rand(65536, device="cuda")
    small_result = torch.empty_like(small)
    side = torch.cuda.Stream()
    done = torch.cuda.Event()

    def step() -> object:
        main = torch.cuda.current_stream()
        with torch.cuda.stream(side):
            torch.mul(small, 2.0, out=small_result)
            done.record()
        y = x
        for _ in range(PRODUCTS):
            y = y @ weight
        if variant == "given":
            main.wait_event(done)
        return y

    return step
