"""The forward pass of a causal transformer on long sequences."""

import torch
from torch.nn import functional

DEFECT = "the causal mask is given as a dense tensor"
CAUSE = (
    "scaled_dot_product_attention with a dense attn_mask cannot use FlashAttention's causal "
    "kernel: a slower attention kernel reads the mask and computes the masked half as well"
)
FIX = "is_causal=True instead of attn_mask"

BATCH = 2
LENGTH = 8192
HEADS = 16
SIZE = 64
WIDTH = HEADS * SIZE
HIDDEN = 2048
LAYERS = 2


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    layers = [
        (
            torch.randn(WIDTH, 3 * WIDTH, **make) * WIDTH**-0.5,
            torch.randn(WIDTH, WIDTH, **make) * WIDTH**-0.5,
            torch.randn(WIDTH, HIDDEN, **make) * WIDTH**-0.5,
            torch.randn(HIDDEN, WIDTH, **make) * HIDDEN**-0.5,
        )
        for _ in range(LAYERS)
    ]
    tokens = torch.randn(BATCH, LENGTH, WIDTH, **make)
    how = {"is_causal": True}
    if variant == "defect":
        mask = torch.ones(LENGTH, LENGTH, dtype=torch.bool, device="cuda").tril()
        how = {"attn_mask": mask}

    @torch.no_grad()
    def step():
        x = tokens
        for qkv, out, up, down in layers:
            heads = (functional.layer_norm(x, (WIDTH,)) @ qkv).view(BATCH, LENGTH, 3, HEADS, SIZE)
            query, key, value = heads.permute(2, 0, 3, 1, 4).unbind(0)
            mixed = functional.scaled_dot_product_attention(query, key, value, **how)
            x = x + mixed.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH) @ out
            x = x + functional.gelu(functional.layer_norm(x, (WIDTH,)) @ up) @ down
        return x

    return step
