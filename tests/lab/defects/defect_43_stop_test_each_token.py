"""Greedy decoding of a batch with a recurrent language model."""

import torch
from torch.nn import functional

DEFECT = "after each token the host asks whether all sequences have reached their end"
CAUSE = (
    "bool() of a GPU tensor after each token (aten::is_nonzero, aten::item, "
    "aten::_local_scalar_dense: a device-to-host copy and cudaStreamSynchronize), after which the "
    "GPU idles until the next token's first kernels are launched"
)
FIX = "ask only after every sixteenth token; the few superfluous tokens are cut off"

BATCH = 64
WIDTH = 4096
VOCABULARY = 24576
TOKENS = 16
END = 0


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    embedding = torch.randn(VOCABULARY, WIDTH, **make)
    entry = torch.randn(WIDTH, WIDTH, **make) * WIDTH**-0.5
    recurrent = torch.randn(WIDTH, WIDTH, **make) * WIDTH**-0.5
    head = torch.randn(WIDTH, VOCABULARY, **make) * WIDTH**-0.5
    head[:, END] = 0
    first = torch.randint(1, VOCABULARY, (BATCH,), device="cuda")
    start = torch.randn(BATCH, WIDTH, **make).tanh()
    every = 1 if variant == "defect" else 16

    @torch.no_grad()
    def step():
        token, hidden = first, start
        ended = torch.zeros(BATCH, dtype=torch.bool, device="cuda")
        for number in range(1, TOKENS + 1):
            x = functional.embedding(token, embedding)
            hidden = torch.tanh(x @ entry + hidden @ recurrent)
            token = (hidden @ head).argmax(-1)
            ended = ended | (token == END)
            if number % every == 0 and ended.all():
                break
        return hidden

    return step
