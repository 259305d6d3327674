"""Many small kernels: the host cannot issue them as fast as the GPU runs them."""

import torch

CHANGES = {"one_stream": "one stream instead of three"}


def build(change=None):
    streams = [torch.cuda.Stream() for _ in range(1 if change == "one_stream" else 3)]
    values = [torch.randn(1 << 16, device="cuda") for _ in range(3)]

    def body():
        for _ in range(20):
            for k, x in enumerate(values):
                with torch.cuda.stream(streams[k % len(streams)]):
                    x.mul_(0.5)
                    x.add_(1.0)
                    x.tanh_()

    return body
