"""One decode step of a transformer with a long key and value cache."""

import torch
from torch.nn import functional

DEFECT = "the new key and value are appended to the cache with torch.cat"
CAUSE = (
    "torch.cat copies each layer's whole key and value cache in each step (memory-bound "
    "concatenation kernels), which moves twice the bytes that the attention has to read"
)
FIX = "allocate the cache at its full length and write the new key and value into their place"

BATCH = 16
HEADS = 16
SIZE = 128
PAST = 3072
WIDTH = HEADS * SIZE
LAYERS = 12


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    layers = []
    for _ in range(LAYERS):
        layer = {
            "qkv": torch.randn(WIDTH, 3 * WIDTH, **make) * WIDTH**-0.5,
            "out": torch.randn(WIDTH, WIDTH, **make) * WIDTH**-0.5,
            "up": torch.randn(WIDTH, 4 * WIDTH, **make) * WIDTH**-0.5,
            "down": torch.randn(4 * WIDTH, WIDTH, **make) * (4 * WIDTH) ** -0.5,
        }
        for name in ("keys", "values"):
            past = torch.randn(BATCH, HEADS, PAST, SIZE, **make)
            if variant == "fixed":
                full = torch.zeros(BATCH, HEADS, PAST + 1, SIZE, **make)
                full[:, :, :PAST] = past
                past = full
            layer[name] = past
        layers.append(layer)
    token = torch.randn(BATCH, WIDTH, **make)

    @torch.no_grad()
    def step():
        x = token
        for layer in layers:
            qkv = functional.layer_norm(x, (WIDTH,)) @ layer["qkv"]
            query, key, value = qkv.view(BATCH, 3, HEADS, 1, SIZE).unbind(1)
            if variant == "defect":
                keys = torch.cat([layer["keys"], key], dim=2)
                values = torch.cat([layer["values"], value], dim=2)
            else:
                keys, values = layer["keys"], layer["values"]
                keys[:, :, PAST:].copy_(key)
                values[:, :, PAST:].copy_(value)
            mixed = functional.scaled_dot_product_attention(query, keys, values)
            x = x + mixed.reshape(BATCH, WIDTH) @ layer["out"]
            x = (
                x
                + functional.gelu(functional.layer_norm(x, (WIDTH,)) @ layer["up"]) @ layer["down"]
            )
        return x

    return step
