"""Eight independent small simulations, captured together in one CUDA graph."""

import torch
import triton
import triton.language as tl

DEFECT = "the graph is captured from one stream, so the simulations run one after the other"
CAUSE = (
    "independent kernels with small grids (12 blocks on 132 multiprocessors) are chained in the "
    "CUDA graph, since they were captured in one stream"
)
FIX = "capture each simulation in a stream of its own, as a parallel branch of the graph"

SIMULATIONS = 8
PHASES = 4
BLOCKS = 12
BLOCK = 1024


@triton.jit
def advance(source, target, rounds: tl.constexpr, block: tl.constexpr):
    place = tl.program_id(0) * block + tl.arange(0, block)
    x = tl.load(source + place)
    for _ in range(rounds):
        x = 3.7 * x * (1.0 - x)
    tl.store(target + place, x)


def build(variant):
    start = torch.rand(SIMULATIONS, BLOCKS * BLOCK, device="cuda")
    result = torch.empty_like(start)
    streams = [torch.cuda.Stream() for _ in range(SIMULATIONS)]

    def simulate(number):
        advance[(BLOCKS,)](start[number], result[number], rounds=20000, block=BLOCK)
        for _ in range(PHASES - 1):
            advance[(BLOCKS,)](result[number], result[number], rounds=20000, block=BLOCK)

    simulate(0)  # compiled before the capture
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        main = torch.cuda.current_stream()
        for number, stream in enumerate(streams):
            if variant == "defect":
                simulate(number)
                continue
            stream.wait_stream(main)
            with torch.cuda.stream(stream):
                simulate(number)
        if variant == "fixed":
            for stream in streams:
                main.wait_stream(stream)

    def step():
        graph.replay()
        return result

    return step
