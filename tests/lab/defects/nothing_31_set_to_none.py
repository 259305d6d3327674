"""A training step of an MLP on many tokens."""

import torch
from torch import nn
from torch.nn import functional

SUSPECT = "zero_grad(set_to_none=True) instead of filling the gradients with zeros"

TOKENS = 65536
WIDTH = 2048
LAYERS = 5


def build(variant):
    layers = nn.ModuleList(
        [
            nn.Linear(WIDTH, WIDTH, bias=False, device="cuda", dtype=torch.bfloat16)
            for _ in range(LAYERS)
        ]
    )
    optimizer = torch.optim.SGD(layers.parameters(), lr=1e-3, foreach=True)
    x0 = torch.randn(TOKENS, WIDTH, device="cuda", dtype=torch.bfloat16)
    target = torch.randn(TOKENS, WIDTH, device="cuda", dtype=torch.bfloat16)

    def step():
        optimizer.zero_grad(set_to_none=variant == "changed")
        x = x0
        for layer in layers:
            x = functional.relu(layer(x))
        loss = functional.mse_loss(x, target)
        loss.backward()
        optimizer.step()
        return loss.detach().float()

    return step
