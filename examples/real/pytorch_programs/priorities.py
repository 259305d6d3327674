"""Short products in a stream of high priority beside long ones in a stream of low priority."""

import torch

CHANGES = {"equal": "both streams of the same priority"}


def build(change=None):
    low = torch.cuda.Stream(priority=0)
    high = torch.cuda.Stream(priority=0 if change == "equal" else -1)
    long = torch.randn(3072, 3072, device="cuda")
    short = torch.randn(512, 4096, device="cuda")
    result, results = torch.empty_like(long), torch.empty(512, 512, device="cuda")

    def body():
        for _ in range(6):
            with torch.cuda.stream(low):
                torch.mm(long, long, out=result)
            with torch.cuda.stream(high):
                for _ in range(4):
                    torch.mm(short, short.T, out=results)
                    results.sigmoid_()

    return body
