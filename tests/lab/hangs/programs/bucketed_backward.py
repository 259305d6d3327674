"""Backward pass with bucketed gradient reduction: the reduction of a bucket runs in a communication
stream and starts to poll for its bucket while the backward kernel still fills it."""

import sys

import torch
import triton
import triton.language as tl
import turn

turn.take()


@triton.jit(do_not_specialize=["step"])
def backward_chunk(grad, weight, ready, step, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    w = tl.load(weight + offs, mask=mask)
    tl.store(grad + offs, w * 0.01, mask=mask)
    tl.debug_barrier()
    tl.atomic_add(ready, 1)


@triton.jit(do_not_specialize=["want"])
def reduce_bucket(grad, total, ready, want, n, BLOCK: tl.constexpr):
    while tl.atomic_add(ready, 0) < want:
        pass
    acc = 0.0
    for start in range(0, n, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        acc += tl.sum(tl.load(grad + offs, mask=offs < n, other=0.0), axis=0)
    tl.store(total, acc)


@triton.jit
def sgd(weight, grad, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    w = tl.load(weight + offs, mask=mask)
    tl.store(weight + offs, w - 0.1 * tl.load(grad + offs, mask=mask), mask=mask)


class Trainer:
    def __init__(self, n, fixed):
        self.n, self.fixed = n, fixed
        self.weight = torch.randn(n, device="cuda")
        self.grad = torch.zeros(n, device="cuda")
        self.ready = torch.zeros(1, device="cuda", dtype=torch.int32)
        self.total = torch.zeros(1, device="cuda")
        self.compute, self.comm = torch.cuda.Stream(), torch.cuda.Stream()
        self.reduced = torch.cuda.Event()
        self.programs = n // 1024
        torch.cuda.synchronize()

    def run_backward(self, step):
        with torch.cuda.stream(self.compute):
            backward_chunk[(self.programs,)](
                self.grad, self.weight, self.ready, step, self.n, BLOCK=1024
            )

    def run_reduce(self, step):
        with torch.cuda.stream(self.comm):
            reduce_bucket[(1,)](
                self.grad, self.total, self.ready, step * self.programs, self.n, BLOCK=1024
            )
            self.reduced.record(self.comm)

    def warm(self):
        self.run_backward(1)
        self.compute.synchronize()
        self.run_reduce(1)
        with torch.cuda.stream(self.compute):
            sgd[(self.programs,)](self.weight, self.grad, self.n, BLOCK=1024)
        torch.cuda.synchronize()

    def step(self, i):
        self.run_reduce(i)
        if self.fixed:
            self.run_backward(i)
            self.compute.wait_event(self.reduced)
        else:
            # grad may not be overwritten while a reduction reads it
            self.compute.wait_event(self.reduced)
            self.run_backward(i)
        with torch.cuda.stream(self.compute):
            sgd[(self.programs,)](self.weight, self.grad, self.n, BLOCK=1024)


def main():
    fixed = len(sys.argv) > 1 and sys.argv[1] == "fixed"
    t = Trainer(1 << 16, fixed)
    t.warm()
    print("first step done, gradient sum", float(t.total), flush=True)
    for i in range(2, 12):
        t.step(i)
        t.compute.synchronize()
        print(f"step {i} sum {float(t.total):.5f}", flush=True)


if __name__ == "__main__":
    main()
