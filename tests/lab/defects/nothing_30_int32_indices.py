"""Embeddings of a batch of words, followed by a wide MLP."""

import torch
from torch.nn import functional

SUSPECT = "int32 instead of int64 numbers for the words that are looked up"

WORDS = 16384
VOCABULARY = 65536
WIDTH = 4096
LAYERS = 6


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    embedding = torch.randn(VOCABULARY, WIDTH, **make)
    words = torch.randint(0, VOCABULARY, (WORDS,), device="cuda")
    if variant == "changed":
        words = words.to(torch.int32)
    weights = [torch.randn(WIDTH, WIDTH, **make) * (2 / WIDTH) ** 0.5 for _ in range(LAYERS)]

    @torch.no_grad()
    def step():
        x = functional.embedding(words, embedding)
        for weight in weights:
            x = functional.relu(x @ weight)
        return x

    return step
