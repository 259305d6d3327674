"""Inference of a wide MLP whose layers are followed by dropout."""

import torch
from torch import nn

SUSPECT = "take the dropout layers out for inference (the model is in eval mode)"

TOKENS = 16384
WIDTH = 4096
LAYERS = 6


def build(variant):
    layers = []
    for _ in range(LAYERS):
        layers.append(nn.Linear(WIDTH, WIDTH, device="cuda", dtype=torch.bfloat16))
        layers.append(nn.GELU())
        if variant == "given":
            layers.append(nn.Dropout(0.1))
    model = nn.Sequential(*layers).eval()
    x0 = torch.randn(TOKENS, WIDTH, device="cuda", dtype=torch.bfloat16)

    @torch.no_grad()
    def step():
        return model(x0)

    return step
