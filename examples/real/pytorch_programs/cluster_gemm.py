"""Matrix products in bfloat16, for which Hopper's libraries use clusters, beside other kernels."""

import torch

CHANGES = {"others_first": "the other kernels are issued before the products"}


def build(change=None):
    products, others = torch.cuda.Stream(), torch.cuda.Stream()
    a = torch.randn(2048, 16384, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(16384, 2048, device="cuda", dtype=torch.bfloat16)
    c = torch.empty(2048, 2048, device="cuda", dtype=torch.bfloat16)
    x = torch.randn(65536, 1024, device="cuda")

    def product():
        with torch.cuda.stream(products):
            torch.mm(a, b, out=c)

    def other():
        with torch.cuda.stream(others):
            torch.softmax(x, 1)
            torch.nn.functional.layer_norm(x, (1024,))

    steps = (other, product) if change == "others_first" else (product, other)

    def body():
        for _ in range(16):
            for step in steps:
                step()

    return body
