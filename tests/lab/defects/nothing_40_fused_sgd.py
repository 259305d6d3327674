"""A training step of a convolution network with plain SGD."""

import torch
from torch.nn import functional

SUSPECT = "SGD(fused=True) instead of SGD(foreach=True)"

LAYERS = 6


def build(variant):
    last = torch.channels_last
    make = {"device": "cuda", "dtype": torch.bfloat16}
    images = torch.randn(128, 256, 56, 56, **make).to(memory_format=last)
    weights = []
    for _ in range(LAYERS):
        weight = torch.randn(256, 256, 3, 3, **make) * (2 / (256 * 9)) ** 0.5
        weights.append(weight.to(memory_format=last).requires_grad_())
    kind = {"foreach": True} if variant == "given" else {"fused": True}
    optimizer = torch.optim.SGD(weights, lr=1e-4, **kind)

    def step():
        optimizer.zero_grad(set_to_none=True)
        x = images
        for weight in weights:
            x = functional.relu(functional.conv2d(x, weight, padding=1))
        loss = x.float().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
