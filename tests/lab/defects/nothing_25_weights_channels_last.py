"""Inference of a convolution network on channels_last images with a large batch."""

import torch
from torch.nn import functional

SUSPECT = "channels_last for the weights too, which are converted for each convolution"

LAYERS = 8


def build(variant):
    last = torch.channels_last
    layout = last if variant == "changed" else torch.contiguous_format
    make = {"device": "cuda", "dtype": torch.bfloat16}
    images = torch.randn(256, 256, 56, 56, **make).to(memory_format=last)
    weights = [
        (torch.randn(256, 256, 3, 3, **make) * (2 / (256 * 9)) ** 0.5).to(memory_format=layout)
        for _ in range(LAYERS)
    ]

    @torch.no_grad()
    def step():
        x = images
        for weight in weights:
            x = functional.conv2d(x, weight, padding=1).relu_()
        return x

    return step
