"""Inference of a wide residual MLP on a short batch of tokens under autocast."""

import torch
from torch import nn
from torch.nn import functional

DEFECT = "the weights are kept in float32, and autocast converts them in each step"
CAUSE = (
    "autocast casts every float32 weight to bfloat16 anew in each call (aten::to / copy_ "
    "elementwise kernels), memory-bound kernels that take longer than the matrix products"
)
FIX = "keep the weights in bfloat16 for inference (model.to(torch.bfloat16))"

TOKENS = 512
WIDTH = 4096
HIDDEN = 12288
LAYERS = 12


class Block(nn.Module):
    """A residual MLP block."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(WIDTH, HIDDEN, bias=False, device="cuda")
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False, device="cuda")

    def forward(self, x):
        return x + self.down(functional.gelu(self.up(x)))


def build(variant):
    model = nn.Sequential(*[Block() for _ in range(LAYERS)]).eval()
    if variant == "fixed":
        model = model.to(torch.bfloat16)
    x = torch.randn(TOKENS, WIDTH, device="cuda").to(torch.bfloat16)

    def step():
        with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
            return model(x)

    return step
