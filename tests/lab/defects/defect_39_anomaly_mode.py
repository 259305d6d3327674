"""A training step of an MLP with the debugging mode of autograd."""

import torch
from torch import nn
from torch.nn import functional

DEFECT = "autograd's anomaly detection is left on"
CAUSE = (
    "anomaly mode tests each gradient for NaN on the host (isnan, any and .item(): a stream "
    "synchronisation for each backward function) and records a Python traceback for each "
    "forward operation: the GPU waits for the host"
)
FIX = "torch.autograd.set_detect_anomaly(False)"

TOKENS = 8192
WIDTH = 2048
LAYERS = 8


def build(variant):
    layers = nn.ModuleList([nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])
    layers = layers.to("cuda", torch.bfloat16)
    optimizer = torch.optim.SGD(layers.parameters(), lr=1e-3, foreach=True)
    x0 = torch.randn(TOKENS, WIDTH, device="cuda", dtype=torch.bfloat16)
    target = torch.randn(TOKENS, WIDTH, device="cuda", dtype=torch.bfloat16)

    def step():
        with torch.autograd.set_detect_anomaly(variant == "defect"):
            optimizer.zero_grad(set_to_none=True)
            x = x0
            for layer in layers:
                x = functional.gelu(layer(x))
            loss = functional.mse_loss(x, target)
            loss.backward()
            optimizer.step()
        return loss.detach().float()

    return step
