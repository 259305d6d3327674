"""A training step of a residual MLP whose gradients are clipped to a global norm."""

import torch
from torch import nn
from torch.nn import functional

DEFECT = "the gradient norm is summed up on the host, with .item() for each parameter"
CAUSE = (
    "one .item() (device-to-host copy and stream synchronisation) for each parameter's gradient "
    "norm: the host waits 48 times a step and the GPU idles until the next launch"
)
FIX = "keep the norms on the device: stack them, take the norm of that and scale with the tensor"


class Block(nn.Module):
    """A pre-norm residual MLP block."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x):
        return x + self.down(functional.gelu(self.up(self.norm(x))))


def build(variant):
    model = nn.Sequential(*[Block(1024, 2048) for _ in range(8)]).to("cuda", torch.bfloat16)
    params = list(model.parameters())
    optimizer = torch.optim.SGD(params, lr=1e-3, foreach=True)
    x = torch.randn(5120, 1024, device="cuda", dtype=torch.bfloat16)
    target = torch.randn(5120, 1024, device="cuda", dtype=torch.bfloat16)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = functional.mse_loss(model(x), target)
        loss.backward()
        grads = [p.grad for p in params]
        if variant == "defect":
            total = 0.0
            for g in grads:
                total += torch.linalg.vector_norm(g, dtype=torch.float32).item() ** 2
            scale = min(1.0, 1.0 / (total**0.5 + 1e-6))
        else:
            norms = [torch.linalg.vector_norm(g, dtype=torch.float32) for g in grads]
            total = torch.linalg.vector_norm(torch.stack(norms))
            scale = (1.0 / (total + 1e-6)).clamp(max=1.0).to(torch.bfloat16)
        torch._foreach_mul_(grads, scale)
        optimizer.step()
        return loss.detach().float()

    return step
