"""Matrix products into tensors that are made for them in each step."""

import torch

SUSPECT = "torch.empty instead of torch.zeros for the results, which are overwritten anyway"

TOKENS = 8192
INNER = 16384
WIDTH = 4096
PRODUCTS = 4


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    x = torch.randn(TOKENS, INNER, **make)
    weights = [torch.randn(INNER, WIDTH, **make) * INNER**-0.5 for _ in range(PRODUCTS)]
    new = torch.zeros if variant == "given" else torch.empty

    @torch.no_grad()
    def step():
        for weight in weights:
            result = new(TOKENS, WIDTH, **make)
            torch.mm(x, weight, out=result)
        return result

    return step
