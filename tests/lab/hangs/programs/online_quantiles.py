"""Online quantiles with PyTorch: a Triton gate kernel in the serving stream waits until the
statistics stream has sorted the window, then clips the batch."""

import sys

import torch
import triton
import triton.language as tl
import turn

turn.take()


@triton.jit(do_not_specialize=["want"])
def clip_gate(batch, bound, version, want, n, BLOCK: tl.constexpr):
    while tl.atomic_add(version, 0) < want:
        pass
    limit = tl.atomic_add(bound, 0.0)
    for start in range(0, n, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(batch + offs, mask=offs < n, other=0.0)
        tl.store(batch + offs, tl.minimum(x, limit), mask=offs < n)


class Quantiles:
    def __init__(self, n):
        self.n = n
        self.window = torch.randn(n, device="cuda")
        self.values = torch.empty(n, device="cuda")
        self.index = torch.empty(n, device="cuda", dtype=torch.int64)
        self.bound = torch.zeros(1, device="cuda")
        self.version = torch.zeros(1, device="cuda", dtype=torch.int32)
        self.serve, self.stats = torch.cuda.Stream(), torch.cuda.Stream()
        self.scratch = torch.empty(1 << 26, device="cuda", dtype=torch.uint8)
        del self.scratch  # leaves a block in the allocator's cache

    def refresh(self):
        with torch.cuda.stream(self.stats):
            torch.sort(self.window, out=(self.values, self.index))
            self.bound.copy_(self.values[int(self.n * 0.99) : int(self.n * 0.99) + 1])
            self.version.add_(1)

    def gate(self, batch, want):
        with torch.cuda.stream(self.serve):
            clip_gate[(1,)](batch, self.bound, self.version, want, self.n, BLOCK=1024)


def main():
    fixed = len(sys.argv) > 1 and sys.argv[1] == "fixed"
    torch.manual_seed(5)
    q = Quantiles(1 << 16)
    batch = torch.randn(q.n, device="cuda")
    with torch.cuda.stream(q.stats):  # fixed start value
        q.bound.copy_(q.window[:1])
        q.version.add_(1)
    torch.cuda.synchronize()
    q.gate(batch, 1)
    torch.cuda.synchronize()
    print("gate open", float(batch.max()), flush=True)
    version = 1
    if fixed:
        q.refresh()
        version += 1
        torch.cuda.synchronize()
    for i in range(5):
        version += 1
        q.gate(batch, version)
        q.refresh()
        q.serve.synchronize()
        print("batch", i, "clipped", flush=True)
    torch.cuda.synchronize()
    print("max", float(batch.max()), flush=True)


if __name__ == "__main__":
    main()
