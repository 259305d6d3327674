"""A training step of a wide MLP that logs its gradient norm."""

import torch
from torch import nn
from torch.nn import functional

SUSPECT = "keep the gradient norm on the GPU instead of reading it with .item() in each step"

TOKENS = 16384
WIDTH = 4096
LAYERS = 6


def build(variant):
    layers = nn.ModuleList(
        [
            nn.Linear(WIDTH, WIDTH, bias=False, device="cuda", dtype=torch.bfloat16)
            for _ in range(LAYERS)
        ]
    )
    params = list(layers.parameters())
    optimizer = torch.optim.SGD(params, lr=1e-3, foreach=True)
    x0 = torch.randn(TOKENS, WIDTH, device="cuda", dtype=torch.bfloat16)
    target = torch.randn(TOKENS, WIDTH, device="cuda", dtype=torch.bfloat16)
    log = {"norm": None}

    def step():
        optimizer.zero_grad(set_to_none=True)
        x = x0
        for layer in layers:
            x = functional.relu(layer(x))
        loss = functional.mse_loss(x, target)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(params, 1.0, foreach=True)
        optimizer.step()
        log["norm"] = norm.item() if variant == "given" else norm
        return loss.detach().float()

    return step
