"""A segment-recurrent model that carries a memory from one step to the next."""

import torch
from torch.nn import functional

DEFECT = "the memory is kept on the host between the steps"
CAUSE = (
    "the memory's round trip: a blocking device-to-host copy to pageable memory (.cpu()) at the "
    "end of a step and a pageable host-to-device copy at the beginning of the next; the GPU "
    "computes nothing meanwhile"
)
FIX = "leave the memory on the GPU"

TOKENS = 2048
WIDTH = 4096
HIDDEN = 16384
LAYERS = 4


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    x0 = torch.randn(TOKENS, WIDTH, **make)
    mix = torch.randn(WIDTH, WIDTH, **make) * WIDTH**-0.5
    up = [torch.randn(WIDTH, HIDDEN, **make) * WIDTH**-0.5 for _ in range(LAYERS)]
    down = [torch.randn(HIDDEN, WIDTH, **make) * HIDDEN**-0.5 for _ in range(LAYERS)]
    memory = torch.randn(TOKENS, WIDTH, **make).tanh()
    state = {"memory": memory.cpu() if variant == "defect" else memory}

    @torch.no_grad()
    def step():
        x = x0 + state["memory"].to("cuda") @ mix
        for a, b in zip(up, down, strict=True):
            x = functional.gelu(x @ a) @ b
        x = torch.tanh(x)
        state["memory"] = x.cpu() if variant == "defect" else x
        return x

    return step
