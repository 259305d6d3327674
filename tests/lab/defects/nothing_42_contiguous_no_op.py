"""Spectral filters on large batches of images."""

import torch

SUSPECT = "drop the calls of contiguous() and to() around the transforms"

IMAGES = 128
SIDE = 1024
FILTERS = 3


def build(variant):
    images = torch.randn(IMAGES, SIDE, SIDE, device="cuda", dtype=torch.complex64)
    filters = [torch.rand(SIDE, SIDE, device="cuda").to(torch.complex64) for _ in range(FILTERS)]

    def safe(x):
        if variant == "given":
            return x.to("cuda").to(torch.complex64).contiguous()
        return x

    @torch.no_grad()
    def step():
        x = images
        for weight in filters:
            spectrum = safe(torch.fft.fft2(safe(x)))
            spectrum.mul_(weight)
            x = safe(torch.fft.ifft2(safe(spectrum)))
        return x

    return step
