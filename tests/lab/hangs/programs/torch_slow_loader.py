"""PyTorch: the GPU has little to do between batches that a thread needs seconds to prepare."""

import queue
import threading

import torch
from begin import begin


def prepare(batches):
    for number in range(6):
        numbers, word = [], number + 1
        for at in range(5_000_000):
            word = (word * 1103515245 + 12345) & 0x7FFFFFFF
            if at % 20_000 == 0:
                numbers.append(word / 0x7FFFFFFF)
        batches.put(torch.tensor(numbers))
    batches.put(None)


begin()
torch.set_num_threads(1)
weights = torch.rand(250, 250, device="cuda")
batches = queue.Queue(maxsize=2)
threading.Thread(target=prepare, args=(batches,), daemon=True).start()
while (batch := batches.get()) is not None:
    scores = weights @ batch.cuda()
    print("score", scores.sum().item())
torch.cuda.synchronize()
print("ended")
