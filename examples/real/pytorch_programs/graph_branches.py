"""A CUDA graph captured from three streams, replayed twelve times."""

import torch

CHANGES = {"serial": "captured from one stream"}


def build(change=None):
    sides = [torch.cuda.Stream() for _ in range(2)]
    inputs = [torch.randn(n, n, device="cuda") for n in (1024, 1280, 1536)]
    first = [torch.empty_like(a) for a in inputs]
    second = [torch.empty_like(a) for a in inputs]
    total = torch.empty(1024, 1024, device="cuda")

    def step():
        main = torch.cuda.current_stream()
        streams = [main] * 3 if change == "serial" else [main, *sides]
        for k, stream in enumerate(streams):
            if stream != main:
                stream.wait_stream(main)
            with torch.cuda.stream(stream):
                torch.mm(inputs[k], inputs[k], out=first[k])
                torch.relu_(first[k])
                torch.mm(first[k], inputs[k], out=second[k])
        for stream in streams:
            if stream != main:
                main.wait_stream(stream)
        torch.add(second[0], second[2][:1024, :1024], out=total)

    with torch.cuda.stream(torch.cuda.Stream()):  # libraries make their workspaces
        step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()

    def body():
        for _ in range(12):
            graph.replay()

    return body
