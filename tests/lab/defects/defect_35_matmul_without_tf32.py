"""Inference of a float32 network: a convolution stem and MLP blocks on its patches."""

import torch
from torch.nn import functional

DEFECT = "the float32 matrix products do not use TF32"
CAUSE = (
    "the default float32 matmul precision 'highest': cuBLAS runs float32 (SIMT) GEMM kernels "
    "without tensor cores, whereas the convolutions use TF32"
)
FIX = "torch.set_float32_matmul_precision('high')"
SEPARATE = True

WIDTH = 1024
HIDDEN = 4096
STEM = 4
BLOCKS = 3


def build(variant):
    if variant == "fixed":
        torch.set_float32_matmul_precision("high")
    last = torch.channels_last
    images = torch.randn(16, 256, 64, 64, device="cuda").to(memory_format=last)
    stem = [
        (torch.randn(256, 256, 3, 3, device="cuda") * (2 / (256 * 9)) ** 0.5).to(memory_format=last)
        for _ in range(STEM)
    ]
    patch = (torch.randn(WIDTH, 256, 4, 4, device="cuda") / 64).to(memory_format=last)
    up = [torch.randn(WIDTH, HIDDEN, device="cuda") * WIDTH**-0.5 for _ in range(BLOCKS)]
    down = [torch.randn(HIDDEN, WIDTH, device="cuda") * HIDDEN**-0.5 for _ in range(BLOCKS)]

    @torch.no_grad()
    def step():
        x = images
        for weight in stem:
            x = functional.conv2d(x, weight, padding=1).relu_()
        x = functional.conv2d(x, patch, stride=4)
        x = x.permute(0, 2, 3, 1).reshape(-1, WIDTH)
        for a, b in zip(up, down, strict=True):
            x = x + functional.gelu(x @ a) @ b
        return x

    return step
