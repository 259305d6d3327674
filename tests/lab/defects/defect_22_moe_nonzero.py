"""Inference of a mixture-of-experts layer with a balanced router."""

import torch
from torch.nn import functional

DEFECT = "the tokens of each expert are found with torch.nonzero in the loop over the experts"
CAUSE = (
    "torch.nonzero has to know the number of hits on the host: it copies the count and "
    "synchronises the stream for each expert, so the GPU idles 16 times a step"
)
FIX = (
    "the router is balanced, so every expert has the same number of tokens: sort the routes once "
    "(argsort) and view the order as one row of indices per expert"
)

EXPERTS = 16
CAPACITY = 1536
WIDTH = 1024
HIDDEN = 8192


def build(variant):
    tokens = EXPERTS * CAPACITY
    make = {"device": "cuda", "dtype": torch.bfloat16}
    x = torch.randn(tokens, WIDTH, **make)
    up = torch.randn(EXPERTS, WIDTH, HIDDEN, **make) * WIDTH**-0.5
    down = torch.randn(EXPERTS, HIDDEN, WIDTH, **make) * HIDDEN**-0.5
    route = (torch.arange(tokens, device="cuda") % EXPERTS)[torch.randperm(tokens, device="cuda")]

    @torch.no_grad()
    def step():
        out = torch.empty_like(x)
        if variant == "fixed":
            order = torch.argsort(route, stable=True).view(EXPERTS, CAPACITY)
        for expert in range(EXPERTS):
            if variant == "defect":
                index = torch.nonzero(route == expert).squeeze(1)
            else:
                index = order[expert]
            hidden = functional.gelu(x.index_select(0, index) @ up[expert])
            out.index_copy_(0, index, hidden @ down[expert])
        return out

    return step
