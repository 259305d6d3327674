"""A training step of a diffusion model on latents."""

import itertools

import torch
from torch.nn import functional

DEFECT = "the noise is drawn on the CPU and then moved to the GPU"
CAUSE = (
    "torch.randn without device= runs on the host and its result is copied with a blocking "
    "pageable host-to-device copy; the GPU waits for the host's random numbers"
)
FIX = "draw the noise on the GPU: torch.randn(..., device='cuda')"

SHAPE = (24, 16, 64, 64)
WIDTH = 256
LAYERS = 5


def build(variant):
    last = torch.channels_last
    make = {"device": "cuda", "dtype": torch.bfloat16}
    latents = torch.randn(*SHAPE, **make).to(memory_format=last)
    keep = torch.linspace(0.1, 0.9, SHAPE[0], **make).view(-1, 1, 1, 1)
    mix = (1 - keep.float() ** 2).sqrt().to(torch.bfloat16)
    sizes = [SHAPE[1], *[WIDTH] * (LAYERS + 1), SHAPE[1]]
    weights = []
    for inputs, outputs in itertools.pairwise(sizes):
        weight = torch.randn(outputs, inputs, 3, 3, **make) * (inputs * 9) ** -0.5
        weights.append(weight.to(memory_format=last).requires_grad_())
    optimizer = torch.optim.SGD(weights, lr=1e-4, foreach=True)

    def step():
        if variant == "defect":
            noise = torch.randn(SHAPE).to("cuda")
        else:
            noise = torch.randn(SHAPE, device="cuda")
        noise = noise.to(torch.bfloat16, memory_format=last)
        optimizer.zero_grad(set_to_none=True)
        x = keep * latents + mix * noise
        for weight in weights[:-1]:
            x = functional.silu(functional.conv2d(x, weight, padding=1))
        loss = functional.mse_loss(functional.conv2d(x, weights[-1], padding=1), noise)
        loss.backward()
        optimizer.step()
        return loss.detach().float()

    return step
