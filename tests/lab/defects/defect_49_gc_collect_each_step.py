"""Evaluation of an MLP whose loss is logged for each batch."""

import gc

import torch
from torch.nn import functional

DEFECT = "gc.collect() after each batch, in the hope that it frees GPU memory"
CAUSE = (
    "host work: Python's garbage collector goes through all objects on the main thread while the "
    "GPU has nothing to do; no CUDA call and no operator is running"
)
FIX = "do not call gc.collect() in the loop"
SEPARATE = True

TOKENS = 8192
WIDTH = 4096
LAYERS = 8
SAMPLES = 80_000

gc.collect()
gc.freeze()  # what the imports left behind is not gone through; the program's own objects are


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    index = [[number, 2 * number, 2 * number + 1] for number in range(SAMPLES)]
    x0 = torch.randn(TOKENS, WIDTH, **make)
    target = torch.randn(TOKENS, WIDTH, **make)
    weights = [torch.randn(WIDTH, WIDTH, **make) * WIDTH**-0.5 for _ in range(LAYERS)]
    log = {"samples": index, "loss": 0.0}

    @torch.no_grad()
    def step():
        x = x0
        for weight in weights:
            x = functional.relu(x @ weight)
        log["loss"] = functional.mse_loss(x.float(), target.float()).item()
        if variant == "defect":
            gc.collect()
        return log["loss"]

    return step
