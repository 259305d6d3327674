"""Evaluation of a wide MLP with a small classification head."""

import torch
from torch.nn import functional

SUSPECT = "do not convert the logits to float32 for the loss"

TOKENS = 16384
WIDTH = 4096
LAYERS = 14
CLASSES = 64


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    x0 = torch.randn(TOKENS, WIDTH, **make)
    weights = [torch.randn(WIDTH, WIDTH, **make) * (2 / WIDTH) ** 0.5 for _ in range(LAYERS)]
    head = torch.randn(WIDTH, CLASSES, **make) * 0.1 * WIDTH**-0.5
    labels = torch.randint(0, CLASSES, (TOKENS,), device="cuda")

    @torch.no_grad()
    def step():
        x = x0
        for weight in weights:
            x = functional.relu(x @ weight)
        logits = x @ head
        if variant == "given":
            logits = logits.float()
        return functional.cross_entropy(logits, labels).float()

    return step
