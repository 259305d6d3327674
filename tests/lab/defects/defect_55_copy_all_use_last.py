"""An encoder whose host needs the last token's features of each sequence."""

import torch
from torch.nn import functional

DEFECT = "all tokens' features are copied to the host, which then picks the last token's"
CAUSE = (
    "a blocking device-to-host copy of 32 MB to pageable memory (.cpu(), aten::to / copy_, Memcpy "
    "DtoH Device -> Pageable) of which 64 KB are used; host and GPU wait for it"
)
FIX = "index first, then copy: x[:, -1].cpu() instead of x.cpu()[:, -1]"

BATCH = 32
LENGTH = 512
WIDTH = 1024
HIDDEN = 4096
LAYERS = 7


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    x0 = torch.randn(BATCH * LENGTH, WIDTH, **make)
    up = [torch.randn(WIDTH, HIDDEN, **make) * WIDTH**-0.5 for _ in range(LAYERS)]
    down = [torch.randn(HIDDEN, WIDTH, **make) * HIDDEN**-0.5 for _ in range(LAYERS)]

    @torch.no_grad()
    def step():
        x = x0
        for a, b in zip(up, down, strict=True):
            x = functional.gelu(x @ a) @ b
        x = x.view(BATCH, LENGTH, WIDTH)
        if variant == "defect":
            return x.cpu()[:, -1]
        return x[:, -1].cpu()

    return step
