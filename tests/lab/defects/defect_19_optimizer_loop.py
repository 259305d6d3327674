"""Training of a small network whose optimizer handles one parameter after the other."""

from collections.abc import Callable

import torch
from torch import nn

DEFECT = "Adam(foreach=False): some eight tiny kernels for each parameter tensor"
CAUSE = "launch-bound: many tiny kernels in Optimizer.step#Adam.step (single-tensor loop)"
FIX = "foreach=True (or fused=True)"

LAYERS = 6
WIDTH = 256


def build(variant: str) -> Callable[[], object]:
    """Return one training step."""
    layers: list[nn.Module] = []
    for _ in range(LAYERS):
        layers += [nn.Linear(WIDTH, WIDTH), nn.ReLU()]
    model = nn.Sequential(*layers).to("cuda")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5, foreach=variant == "fixed")
    x = torch.randn(256, WIDTH, device="cuda")
    target = torch.randn(256, WIDTH, device="cuda")

    def step() -> object:
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(model(x), target)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
