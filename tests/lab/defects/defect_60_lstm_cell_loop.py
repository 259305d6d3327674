"""An LSTM over a batch of sequences."""

import torch
from torch import nn

DEFECT = "a Python loop calls nn.LSTMCell for each time step"
CAUSE = (
    "launch-bound: many short kernels (aten::lstm_cell: two aten::addmm / linear and "
    "_thnn_fused_lstm_cell for each time step) are launched one by one from Python"
)
FIX = "one call of nn.LSTM (cuDNN) for the whole sequence"

LENGTH = 60
BATCH = 64
WIDTH = 512


def build(variant):
    cell = nn.LSTMCell(WIDTH, WIDTH, device="cuda")
    whole = nn.LSTM(WIDTH, WIDTH, device="cuda")
    with torch.no_grad():
        for name, weight in cell.named_parameters():
            getattr(whole, f"{name}_l0").copy_(weight)
    x = torch.randn(LENGTH, BATCH, WIDTH, device="cuda")
    zeros = torch.zeros(BATCH, WIDTH, device="cuda")

    @torch.no_grad()
    def step():
        if variant == "fixed":
            return whole(x)[0]
        hidden, memory = zeros, zeros
        outputs = []
        for now in x.unbind(0):
            hidden, memory = cell(now, (hidden, memory))
            outputs.append(hidden)
        return torch.stack(outputs)

    return step
