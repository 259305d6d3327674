"""Inference of a bfloat16 convolution network."""

import torch
from torch.nn import functional

DEFECT = "the bfloat16 images and weights are in the default NCHW memory format"
CAUSE = (
    "cuDNN's tensor-core kernels want NHWC: each convolution converts its input and its output "
    "(nchwToNhwc and nhwcToNchw kernels), memory-bound work beside the convolution itself"
)
FIX = "channels_last for the images and the weights"

LAYERS = 16


def build(variant):
    layout = torch.channels_last if variant == "fixed" else torch.contiguous_format
    make = {"device": "cuda", "dtype": torch.bfloat16}
    images = torch.randn(64, 128, 56, 56, **make).to(memory_format=layout)
    weights = [
        (torch.randn(128, 128, 3, 3, **make) * (2 / (128 * 9)) ** 0.5).to(memory_format=layout)
        for _ in range(LAYERS)
    ]

    @torch.no_grad()
    def step():
        x = images
        for weight in weights:
            x = functional.conv2d(x, weight, padding=1).relu_()
        return x

    return step
