"""Four independent chains of large matrix products, captured in one CUDA graph."""

import torch

SUSPECT = "capture each chain in a stream of its own, as a parallel branch of the graph"

CHAINS = 4
TOKENS = 132 * 128  # so that the products' tiles fill whole waves of 132 multiprocessors
WIDTH = 4096


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    starts = [torch.randn(TOKENS, WIDTH, **make) for _ in range(CHAINS)]
    middles = [torch.empty_like(start) for start in starts]
    results = torch.empty(CHAINS, TOKENS, WIDTH, **make)
    weights = [torch.randn(WIDTH, WIDTH, **make) * WIDTH**-0.5 for _ in range(CHAINS)]
    streams = [torch.cuda.Stream() for _ in range(CHAINS)]

    @torch.no_grad()
    def chain(number):
        torch.mm(starts[number], weights[number], out=middles[number])
        torch.mm(middles[number], weights[number], out=results[number])

    torch.cuda.synchronize()
    for number, stream in enumerate(streams):  # cuBLAS is set up before the capture
        with torch.cuda.stream(stream):
            chain(number)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        main = torch.cuda.current_stream()
        for number, stream in enumerate(streams):
            if variant == "given":
                chain(number)
                continue
            stream.wait_stream(main)
            with torch.cuda.stream(stream):
                chain(number)
        if variant == "changed":
            for stream in streams:
                main.wait_stream(stream)

    def step():
        graph.replay()
        return results

    return step
