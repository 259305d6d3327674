"""PyTorch: large products in double precision, all queued before the host waits."""

import time

import torch
from begin import begin

begin()
n = 16384
a = torch.rand(n, n, dtype=torch.float64, device="cuda") / n
b = torch.eye(n, dtype=torch.float64, device="cuda")
torch.cuda.synchronize()
b = a @ b
b /= b.norm()
torch.cuda.synchronize()
began = time.perf_counter()
b = a @ b
torch.cuda.synchronize()
count = max(2, min(400, int(8 / (time.perf_counter() - began))))
for _ in range(count):
    b = a @ b
print(float(b.sum()))
print("ended")
