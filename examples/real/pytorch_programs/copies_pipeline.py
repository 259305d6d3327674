"""Chunks copied to the GPU, worked on, and copied back, in three streams with two buffers."""

import torch

CHANGES = {"one_buffer": "one buffer, so that a copy waits for the work before it"}
CHUNKS, ROWS = 12, 2048


def build(change=None):
    up, work, down = (torch.cuda.Stream() for _ in range(3))
    count = 1 if change == "one_buffer" else 2
    host = torch.randn(ROWS, ROWS).pin_memory()
    back = torch.empty(ROWS, ROWS).pin_memory()
    inputs = [torch.empty(ROWS, ROWS, device="cuda") for _ in range(count)]
    outputs = [torch.empty(ROWS, ROWS, device="cuda") for _ in range(count)]
    weight = torch.randn(ROWS, ROWS, device="cuda")

    def body():
        read = [None] * count
        saved = [None] * count
        for chunk in range(CHUNKS):
            k = chunk % count
            with torch.cuda.stream(up):
                if read[k]:
                    up.wait_event(read[k])
                inputs[k].copy_(host, non_blocking=True)
                ready = up.record_event()
            with torch.cuda.stream(work):
                work.wait_event(ready)
                if saved[k]:
                    work.wait_event(saved[k])
                torch.mm(inputs[k], weight, out=outputs[k])
                read[k] = done = work.record_event()
            with torch.cuda.stream(down):
                down.wait_event(done)
                back.copy_(outputs[k], non_blocking=True)
                saved[k] = down.record_event()

    return body
