"""A training step of a transformer's feed-forward blocks."""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

DEFECT = "activation checkpointing is on although the activations would easily fit in memory"
CAUSE = (
    "torch.utils.checkpoint: the backward pass computes each block's forward pass again (the same "
    "matrix products, gelu and layer_norm a second time), which takes a quarter of the step"
)
FIX = "call the blocks without checkpoint"

LAYERS = 4
TOKENS = 8192
WIDTH = 2048
HIDDEN = 8192


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        make = {"device": "cuda", "dtype": torch.bfloat16}
        self.up = nn.Linear(WIDTH, HIDDEN, **make)
        self.down = nn.Linear(HIDDEN, WIDTH, **make)
        self.norm = nn.LayerNorm(WIDTH, **make)

    def forward(self, x):
        return self.norm(x + self.down(functional.gelu(self.up(x))))


def build(variant):
    blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
    optimizer = torch.optim.SGD(blocks.parameters(), lr=1e-3, foreach=True)
    x0 = torch.randn(TOKENS, WIDTH, device="cuda", dtype=torch.bfloat16)
    target = torch.randn(TOKENS, WIDTH, device="cuda", dtype=torch.bfloat16)

    def step():
        optimizer.zero_grad(set_to_none=True)
        x = x0
        for block in blocks:
            if variant == "defect":
                x = checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)
            else:
                x = block(x)
        loss = functional.mse_loss(x.float(), target.float())
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
