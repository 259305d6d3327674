"""A training step of a wide MLP with a small head."""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

SUSPECT = "call the head without activation checkpointing"

TOKENS = 16384
WIDTH = 4096
CLASSES = 256
LAYERS = 5


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    layers = nn.ModuleList([nn.Linear(WIDTH, WIDTH, bias=False, **make) for _ in range(LAYERS)])
    head = nn.Sequential(
        nn.Linear(WIDTH, CLASSES, **make),
        nn.GELU(),
        nn.Linear(CLASSES, CLASSES, **make),
        nn.LayerNorm(CLASSES, **make),
    )
    params = [*layers.parameters(), *head.parameters()]
    optimizer = torch.optim.SGD(params, lr=1e-3, foreach=True)
    x0 = torch.randn(TOKENS, WIDTH, **make)
    target = torch.randint(0, CLASSES, (TOKENS,), device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        x = x0
        for layer in layers:
            x = functional.relu(layer(x))
        if variant == "given":
            logits = checkpoint(head, x, use_reentrant=False, preserve_rng_state=False)
        else:
            logits = head(x)
        loss = functional.cross_entropy(logits.float(), target)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
