"""Embedding of texts with a small transformer encoder."""

import random

import numpy as np
import torch
from torch.nn import functional

DEFECT = "the texts are tokenised in each step, between the steps' GPU work"
CAUSE = (
    "Python work on the host (splitting, dictionary look-ups, padding) before each step's "
    "launches: the GPU has nothing queued and idles meanwhile"
)
FIX = "tokenise the texts once before the loop and keep the ids"

TEXTS = 96
LENGTH = 512
WIDTH = 512
HEADS = 8
LAYERS = 4
WORDS = 20000


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    picker = random.Random(0)
    words = [f"word{number}" for number in range(WORDS)]
    vocabulary = {word: number + 2 for number, word in enumerate(words)}
    texts = [" ".join(picker.choices(words, k=LENGTH - picker.randrange(64))) for _ in range(TEXTS)]
    table = torch.randn(WORDS + 2, WIDTH, **make)
    layers = [
        (
            torch.randn(WIDTH, 3 * WIDTH, **make) * WIDTH**-0.5,
            torch.randn(WIDTH, WIDTH, **make) * WIDTH**-0.5,
            torch.randn(WIDTH, 4 * WIDTH, **make) * WIDTH**-0.5,
            torch.randn(4 * WIDTH, WIDTH, **make) * (4 * WIDTH) ** -0.5,
        )
        for _ in range(LAYERS)
    ]

    def tokenise():
        ids = np.zeros((TEXTS, LENGTH), dtype=np.int64)
        for row, text in enumerate(texts):
            found = [vocabulary.get(word, 1) for word in text.lower().split()]
            ids[row, : len(found)] = found
        return torch.from_numpy(ids)

    kept = tokenise()

    @torch.no_grad()
    def step():
        ids = tokenise() if variant == "defect" else kept
        ids = ids.pin_memory().to("cuda", non_blocking=True)
        x = functional.embedding(ids, table)
        for qkv, out, up, down in layers:
            heads = (functional.layer_norm(x, (WIDTH,)) @ qkv).view(
                TEXTS, LENGTH, 3, HEADS, WIDTH // HEADS
            )
            query, key, value = heads.permute(2, 0, 3, 1, 4).unbind(0)
            mixed = functional.scaled_dot_product_attention(query, key, value)
            x = x + mixed.transpose(1, 2).reshape(TEXTS, LENGTH, WIDTH) @ out
            x = x + functional.gelu(functional.layer_norm(x, (WIDTH,)) @ up) @ down
        return x.mean(1)

    return step
