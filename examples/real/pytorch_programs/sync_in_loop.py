"""A training-like loop that reads its loss on the host in each step, as many programs do."""

import torch

CHANGES = {"no_sync": "the losses stay on the GPU and are read once, at the end"}


def build(change=None):
    streams = [torch.cuda.Stream() for _ in range(3)]
    x = [torch.randn(256, 4096, device="cuda") for _ in streams]
    weights = [torch.randn(4096, 4096, device="cuda") for _ in streams]
    kept = torch.zeros(3, device="cuda")

    def body():
        for _ in range(8):
            for k, stream in enumerate(streams):
                with torch.cuda.stream(stream):
                    y = torch.relu(x[k] @ weights[k]) @ weights[k]
                    loss = y.square().mean()
                    if change == "no_sync":
                        kept[k].copy_(loss)
                    else:
                        loss.item()

    return body
