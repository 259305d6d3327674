"""PyTorch: big sorts for about 30 s."""

import time

import torch
from begin import begin

begin()
values = torch.rand(1 << 28, dtype=torch.float64, device="cuda")
until = time.monotonic() + 30
while time.monotonic() < until:
    found = torch.sort(values)
    values = found.values.flip(0)
    torch.cuda.synchronize()
print("ended")
