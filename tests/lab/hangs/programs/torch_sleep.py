"""PyTorch: a kernel that sleeps by the clock for about 30 s, and work behind it."""

import torch
from begin import begin

begin()
weights = torch.randn(4096, 4096, device="cuda")
product = weights @ weights
torch.cuda._sleep(60_000_000_000)
product = weights @ product
torch.cuda.synchronize()
print("ended")
