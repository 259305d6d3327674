"""A chain of matrix products, each of which needs the one before it."""

from collections.abc import Callable

import torch

SUSPECT = "run the products in two streams by turns"

PRODUCTS = 4


def build(variant: str) -> Callable[[], object]:
    """Return one step of about 11 ms of GPU work, in one stream or in two."""
    weight = torch.randn(4096, 4096, device="cuda") / 64
    x = torch.randn(4096, 4096, device="cuda")
    buffers = [torch.empty_like(x) for _ in range(PRODUCTS)]
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]

    def step_given() -> object:
        y = x
        for buffer in buffers:
            y = torch.mm(y, weight, out=buffer)
        return y

    def step_changed() -> object:
        y = x
        before = torch.cuda.current_stream()
        for i, buffer in enumerate(buffers):
            stream = streams[i % 2]
            stream.wait_stream(before)
            with torch.cuda.stream(stream):
                y = torch.mm(y, weight, out=buffer)
            before = stream
        torch.cuda.current_stream().wait_stream(before)
        return y

    return {"given": step_given, "changed": step_changed}[variant]
