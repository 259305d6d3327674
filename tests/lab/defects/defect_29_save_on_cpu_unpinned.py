"""A training step with checkpointed blocks whose inputs are offloaded to the host."""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

DEFECT = "the offloaded activations are kept in pageable host memory"
CAUSE = (
    "save_on_cpu without pin_memory: blocking pageable device-to-host copies in the forward and "
    "pageable host-to-device copies in the backward pass, slow and staged, while the GPU idles"
)
FIX = "torch.autograd.graph.save_on_cpu(pin_memory=True)"

TOKENS = 4096
WIDTH = 1024
HIDDEN = 8192
BLOCKS = 4


class Block(nn.Module):
    """A residual MLP block."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x):
        return x + self.down(functional.gelu(self.up(x)))


def build(variant):
    embed = nn.Linear(WIDTH, WIDTH, bias=False).to("cuda", torch.bfloat16)
    blocks = nn.ModuleList([Block() for _ in range(BLOCKS)]).to("cuda", torch.bfloat16)
    params = [*embed.parameters(), *blocks.parameters()]
    optimizer = torch.optim.SGD(params, lr=1e-3, foreach=True)
    x0 = torch.randn(TOKENS, WIDTH, device="cuda", dtype=torch.bfloat16)
    target = torch.randn(TOKENS, WIDTH, device="cuda", dtype=torch.bfloat16)
    pinned = variant == "fixed"

    def step():
        optimizer.zero_grad(set_to_none=True)
        x = embed(x0)
        with torch.autograd.graph.save_on_cpu(pin_memory=pinned):
            for block in blocks:
                x = checkpoint(block, x, use_reentrant=True, preserve_rng_state=False)
        loss = functional.mse_loss(x, target)
        loss.backward()
        optimizer.step()
        return loss.detach().float()

    return step
