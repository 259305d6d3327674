"""Layers with correlated noise, whose covariance blocks are factorised in each forward pass."""

import torch
from torch.nn import functional

DEFECT = "torch.linalg.cholesky asks after each factorisation whether it succeeded"
CAUSE = (
    "torch.linalg.cholesky reads the error codes on the host (aten::_linalg_check_errors, "
    "aten::item: a device-to-host copy and cudaStreamSynchronize) in each layer, and the GPU "
    "idles until the next kernels are launched"
)
FIX = "torch.linalg.cholesky_ex, which leaves the error codes on the GPU"

LAYERS = 16
TOKENS = 4096
WIDTH = 2048
BLOCK = 32


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    x0 = torch.randn(TOKENS, WIDTH, **make)
    weights = [torch.randn(WIDTH, WIDTH, **make) * WIDTH**-0.5 for _ in range(LAYERS)]
    blocks = WIDTH // BLOCK
    covariances, draws = [], []
    for _ in range(LAYERS):
        root = torch.randn(blocks, BLOCK, BLOCK, device="cuda")
        covariances.append(root @ root.mT / BLOCK + torch.eye(BLOCK, device="cuda"))
        draws.append(torch.randn(blocks, BLOCK, 1, device="cuda"))

    @torch.no_grad()
    def step():
        x = x0
        for weight, covariance, draw in zip(weights, covariances, draws, strict=True):
            if variant == "defect":
                factor = torch.linalg.cholesky(covariance)
            else:
                factor = torch.linalg.cholesky_ex(covariance).L
            noise = (factor @ draw).view(WIDTH).to(torch.bfloat16)
            x = functional.gelu(torch.addmm(noise, x, weight))
        return x

    return step
