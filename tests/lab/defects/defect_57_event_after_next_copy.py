"""A step's inputs and the next step's weights are copied to the GPU on a side stream."""

import torch
from torch.nn import functional

DEFECT = "the kernels wait for the whole side stream: also for the copy that they do not need yet"
CAUSE = (
    "wait_stream (cudaEventRecord behind both copies, then cudaStreamWaitEvent): the compute "
    "stream waits for the long host-to-device copy of the next step's weights, though it needs "
    "only the short one before it"
)
FIX = "record an event right after the inputs' copy and wait for that one"

TOKENS = 8192
FEATURES = 512
WIDTH = 4096
OUT = 12288
LAYERS = 4


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    pinned = {"dtype": torch.bfloat16, "pin_memory": True}
    host_inputs = torch.empty(TOKENS, FEATURES, **pinned)
    host_inputs.copy_(torch.randn(TOKENS, FEATURES, **make))
    host_table = torch.empty(WIDTH, OUT, **pinned)
    host_table.copy_(torch.randn(WIDTH, OUT, **make) * WIDTH**-0.5)
    inputs = torch.empty(TOKENS, FEATURES, **make)
    tables = [host_table.to("cuda") for _ in range(2)]
    embed = torch.randn(FEATURES, WIDTH, **make) * FEATURES**-0.5
    weights = [torch.randn(WIDTH, WIDTH, **make) * WIDTH**-0.5 for _ in range(LAYERS)]
    side = torch.cuda.Stream()
    state = {"step": 0}
    torch.cuda.synchronize()

    @torch.no_grad()
    def step():
        now = state["step"] % 2
        state["step"] += 1
        main = torch.cuda.current_stream()
        side.wait_stream(main)  # the last step has used the inputs and the other table
        with torch.cuda.stream(side):
            inputs.copy_(host_inputs, non_blocking=True)
            arrived = side.record_event()
            tables[1 - now].copy_(host_table, non_blocking=True)
        if variant == "defect":
            main.wait_stream(side)
        else:
            main.wait_event(arrived)
        x = inputs @ embed
        for weight in weights:
            x = functional.gelu(x @ weight)
        x = x @ tables[now]
        main.wait_stream(side)  # the next step needs the table
        return x

    return step
