"""A simulation of many oscillators with six long Triton kernels in each step."""

import torch
import triton
import triton.language as tl

SUSPECT = "capture the launches of the Triton kernels in a CUDA graph"

COUNT = 1 << 23
LAUNCHES = 6
block_size = 256
TIME_STEPS = 1000


@triton.jit
def duffing(place, speed, damping, delta, steps, block_size: tl.constexpr):
    i = tl.program_id(0) * block_size + tl.arange(0, block_size)
    x = tl.load(place + i)
    v = tl.load(speed + i)
    d = tl.load(damping + i)
    for _ in range(steps):
        v += delta * (x - x * x * x - d * v)
        x += delta * v
    tl.store(place + i, x)
    tl.store(speed + i, v)


def build(variant):
    start = torch.randn(COUNT, device="cuda")
    damping = torch.rand(COUNT, device="cuda") * 0.5 + 0.5
    place = torch.empty_like(start)
    speed = torch.empty_like(start)

    def simulate():
        place.copy_(start)
        speed.zero_()
        for _ in range(LAUNCHES):
            duffing[(COUNT // block_size,)](place, speed, damping, 0.001, TIME_STEPS, block_size)
        return place

    simulate()  # compiles the kernel
    if variant == "given":
        return simulate
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        simulate()

    def step():
        graph.replay()
        return place

    return step
