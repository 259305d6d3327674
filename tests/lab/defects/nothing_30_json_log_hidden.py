"""Large matrix products and a log record that Python writes after each step's launches."""

import io
import json

import torch
from torch.nn import functional

SUSPECT = "drop the JSON record of about a millisecond of Python work in each step"

TOKENS = 16384
WIDTH = 4096
LAYERS = 14


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    x0 = torch.randn(TOKENS, WIDTH, **make)
    weights = [torch.randn(WIDTH, WIDTH, **make) * (2 / WIDTH) ** 0.5 for _ in range(LAYERS)]
    values = {f"layer{number}/rate": number / 7 for number in range(1500)}
    count = [0]

    @torch.no_grad()
    def step():
        x = x0
        for weight in weights:
            x = functional.relu(x @ weight)
        count[0] += 1
        if variant == "given":
            file = io.StringIO()
            file.write(json.dumps({"step": count[0], "values": values}, sort_keys=True))
        return x

    return step
