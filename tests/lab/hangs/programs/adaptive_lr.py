"""Adaptive learning rate: the optimizer kernel polls a pinned tensor for the learning rate that the
host computes from the loss, so that launches need not wait for the host."""

import sys

import torch
import triton
import triton.language as tl
import turn

turn.take()


@triton.jit(do_not_specialize=["step"])
def momentum_step(weight, grad, lr, lr_step, step, n, BLOCK: tl.constexpr):
    seen = tl.load(lr_step, volatile=True)
    while seen < step:
        seen = tl.load(lr_step, volatile=True)
    rate = tl.load(lr, volatile=True)
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    w = tl.load(weight + offs, mask=mask)
    tl.store(weight + offs, w - rate * tl.load(grad + offs, mask=mask), mask=mask)


class Model:
    def __init__(self, dim):
        self.w = torch.randn(dim, dim, device="cuda") / dim**0.5
        self.x = torch.randn(256, dim, device="cuda")
        self.y = torch.randn(256, dim, device="cuda")
        self.grad = torch.zeros_like(self.w)
        self.lr = torch.zeros(1, pin_memory=True)
        self.lr_step = torch.zeros(1, dtype=torch.int32, pin_memory=True)

    def forward_backward(self):
        err = self.x @ self.w - self.y
        self.grad.copy_(self.x.t() @ err / err.numel())
        return err.square().mean()

    def update(self, step):
        n = self.w.numel()
        momentum_step[(triton.cdiv(n, 1024),)](
            self.w, self.grad, self.lr, self.lr_step, step, n, BLOCK=1024
        )

    def publish(self, loss, step):
        self.lr[0] = 0.5 / (1.0 + loss)
        self.lr_step[0] = step


def main():
    fixed = len(sys.argv) > 1 and sys.argv[1] == "fixed"
    torch.manual_seed(2)
    m = Model(512)
    first = m.forward_backward()
    m.publish(first.item(), 1)
    m.update(1)
    torch.cuda.synchronize()
    print("warm-up loss", first.item(), flush=True)
    for step in range(2, 40):
        loss = m.forward_backward()
        if fixed:
            m.publish(loss.item(), step)
            m.update(step)
        else:
            m.update(step)  # enqueue early, hides the launch latency
            m.publish(loss.item(), step)
        if step % 10 == 0:
            print("step", step, "lr", float(m.lr[0]), flush=True)
    torch.cuda.synchronize()
    print("done", flush=True)


if __name__ == "__main__":
    main()
