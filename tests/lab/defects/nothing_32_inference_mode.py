"""The forward pass of wide transformer layers on long sequences."""

import torch
from torch import nn
from torch.nn import functional

SUSPECT = "torch.inference_mode() instead of torch.no_grad()"

BATCH = 4
LENGTH = 4096
WIDTH = 4096
HEADS = 32
LAYERS = 1


class Layer(nn.Module):
    """A pre-norm transformer layer."""

    def __init__(self) -> None:
        super().__init__()
        make = {"device": "cuda", "dtype": torch.bfloat16}
        self.first = nn.LayerNorm(WIDTH, **make)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False, **make)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False, **make)
        self.second = nn.LayerNorm(WIDTH, **make)
        self.up = nn.Linear(WIDTH, 4 * WIDTH, bias=False, **make)
        self.down = nn.Linear(4 * WIDTH, WIDTH, bias=False, **make)

    def forward(self, x):
        heads = self.qkv(self.first(x)).view(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS)
        query, key, value = heads.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))
        return x + self.down(functional.gelu(self.up(self.second(x))))


def build(variant):
    model = nn.Sequential(*[Layer() for _ in range(LAYERS)]).eval()
    x = torch.randn(BATCH, LENGTH, WIDTH, device="cuda", dtype=torch.bfloat16)
    mode = torch.no_grad if variant == "given" else torch.inference_mode

    def step():
        with mode():
            return model(x)

    return step
