"""Training of a network with two large weights; the optimizer is a sliver of the step."""

from collections.abc import Callable

import torch
from torch import nn

SUSPECT = "SGD with foreach=True instead of foreach=False"


def build(variant: str) -> Callable[[], object]:
    """Return one training step of about 14 ms."""
    model = nn.Sequential(
        nn.Linear(4096, 4096, bias=False), nn.ReLU(), nn.Linear(4096, 4096, bias=False)
    ).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6, foreach=variant == "changed")
    x = torch.randn(4096, 4096, device="cuda")

    def step() -> object:
        optimizer.zero_grad(set_to_none=True)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
