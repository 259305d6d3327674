"""A reaction-diffusion simulation with one short Triton kernel for each time step."""

import torch
import triton
import triton.language as tl

DEFECT = "the 180 short kernels of a step are launched one by one from Python"
CAUSE = (
    "launch-bound: a launch of the Triton kernel takes the host longer than the kernel takes the "
    "GPU, so the GPU idles between the kernels"
)
FIX = "capture the time steps in a CUDA graph and replay it"

SIDE = 768
TIME_STEPS = 180
block_size = 512


@triton.jit
def react(
    u,
    v,
    next_u,
    next_v,
    feed,
    kill,
    spread_u,
    spread_v,
    side: tl.constexpr,
    block_size: tl.constexpr,
):
    i = tl.program_id(0) * block_size + tl.arange(0, block_size)
    count: tl.constexpr = side * side
    up = (i + count - side) % count
    down = (i + side) % count
    left = (i + count - 1) % count
    right = (i + 1) % count
    a = tl.load(u + i)
    b = tl.load(v + i)
    around_a = tl.load(u + up) + tl.load(u + down) + tl.load(u + left) + tl.load(u + right)
    around_b = tl.load(v + up) + tl.load(v + down) + tl.load(v + left) + tl.load(v + right)
    reaction = a * b * b
    tl.store(next_u + i, a + spread_u * (around_a - 4 * a) - reaction + feed * (1 - a))
    tl.store(next_v + i, b + spread_v * (around_b - 4 * b) + reaction - (feed + kill) * b)


def build(variant):
    u0 = torch.ones(SIDE, SIDE, device="cuda")
    v0 = torch.zeros(SIDE, SIDE, device="cuda")
    u0[300:400, 300:400] = 0.5
    v0[300:400, 300:400] = 0.25 + 0.05 * torch.rand(100, 100, device="cuda")
    fields = [(u0.clone(), v0.clone()), (u0.clone(), v0.clone())]
    grid = (SIDE * SIDE // block_size,)

    def simulate():
        fields[0][0].copy_(u0)
        fields[0][1].copy_(v0)
        for number in range(TIME_STEPS):
            u, v = fields[number % 2]
            next_u, next_v = fields[1 - number % 2]
            react[grid](u, v, next_u, next_v, 0.04, 0.06, 0.16, 0.08, SIDE, block_size)

    simulate()  # compiles the kernel
    if variant == "fixed":
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            simulate()

    def step():
        if variant == "fixed":
            graph.replay()
        else:
            simulate()
        return fields[TIME_STEPS % 2][1]

    return step
