"""Triton's softmax in one stream, with events between it and the products that it depends on."""

import torch
import triton
import triton.language as tl

CHANGES = {"one_stream": "softmax in the stream of the products"}
ROWS = 16384


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):  # noqa: N803
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    value = tl.load(x + row * columns + at, mask=inside, other=float("-inf")).to(tl.float32)
    value = tl.exp(value - tl.max(value, 0))
    tl.store(y + row * columns + at, value / tl.sum(value, 0), mask=inside)


def build(change=None):
    products = torch.cuda.Stream()
    soft = products if change == "one_stream" else torch.cuda.Stream()
    a = torch.randn(ROWS, 2048, device="cuda", dtype=torch.float16)
    b = torch.randn(2048, 2048, device="cuda", dtype=torch.float16)
    scores = [torch.empty_like(a) for _ in range(2)]
    out = [torch.empty_like(s) for s in scores]

    def body():
        free = [None, None]
        for step in range(8):
            k = step % 2
            with torch.cuda.stream(products):
                if free[k]:
                    products.wait_event(free[k])
                torch.mm(a, b, out=scores[k])
                ready = products.record_event()
            with torch.cuda.stream(soft):
                soft.wait_event(ready)
                for _ in range(3):
                    softmax[(ROWS,)](scores[k], out[k], 2048, BLOCK=2048, num_warps=8)
                free[k] = soft.record_event()

    return body
