"""Inference on a batch that is collated from many small samples."""

import torch
from torch.nn import functional

DEFECT = "each sample is copied to the GPU by itself and the batch is stacked there"
CAUSE = (
    "160 small blocking host-to-device copies a step, each with a stream synchronisation: their "
    "latency, not their size, is what costs, and the GPU idles during them"
)
FIX = "stack the samples on the host and copy the batch once"

SAMPLES = 160
TOKENS = 16
FEATURES = 256
WIDTH = 4096
HIDDEN = 16384
LAYERS = 3


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    samples = [torch.randn(TOKENS, FEATURES).to(torch.bfloat16) for _ in range(SAMPLES)]
    embed = torch.randn(FEATURES, WIDTH, **make) * FEATURES**-0.5
    up = [torch.randn(WIDTH, HIDDEN, **make) * WIDTH**-0.5 for _ in range(LAYERS)]
    down = [torch.randn(HIDDEN, WIDTH, **make) * HIDDEN**-0.5 for _ in range(LAYERS)]

    @torch.no_grad()
    def step():
        if variant == "defect":
            batch = torch.stack([sample.to("cuda") for sample in samples])
        else:
            batch = torch.stack(samples).to("cuda")
        x = batch.view(SAMPLES * TOKENS, FEATURES) @ embed
        for a, b in zip(up, down, strict=True):
            x = functional.gelu(x @ a) @ b
        return x

    return step
