"""PyTorch: a thread has no place for a second batch while the main thread waits for the third."""

import queue
import threading

import torch
import triton
import triton.language as tl
from begin import begin


@triton.jit
def train_on(batch, out):
    while tl.load(batch, volatile=True) == 0:
        pass
    tl.store(out, 1.0)


fixed = begin()
batches = [torch.ones(1, dtype=torch.int32).pin_memory() for _ in range(3)]
out = torch.zeros(1, device="cuda")
train_on[(1,)](batches[2], out)
torch.cuda.synchronize()
batches[2][0] = 0
fetched = queue.Queue(maxsize=1)


def fetch():
    for batch in batches:
        batch[0] = 1
        fetched.put(batch)


threading.Thread(target=fetch, daemon=True).start()
train_on[(1,)](batches[2], out)
if fixed:
    for _ in batches:
        fetched.get()
torch.cuda.synchronize()
if not fixed:
    for _ in batches:
        fetched.get()
print("ended")
