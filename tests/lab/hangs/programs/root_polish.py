"""Polishes roots of cubics x^3 - p x + q with Newton steps, one Triton program per polynomial."""

import sys

import torch
import triton
import triton.language as tl
import turn

turn.take()


@triton.jit
def newton_polish(p_ptr, q_ptr, x_ptr, steps_ptr, tol, max_steps, USE_CAP: tl.constexpr):
    pid = tl.program_id(0)
    p = tl.load(p_ptr + pid)
    q = tl.load(q_ptr + pid)
    x = tl.load(x_ptr + pid)
    f = x * x * x - p * x + q
    steps = 0
    cap = max_steps
    if not USE_CAP:
        cap = 2147483647
    going = tl.abs(f) > tol
    while going:
        x = x - f / (3.0 * x * x - p)
        f = x * x * x - p * x + q
        steps += 1
        if steps > 1000000:
            steps = 1000
        going = (tl.abs(f) > tol) & (steps < cap)
    tl.store(x_ptr + pid, x)
    tl.store(steps_ptr + pid, steps)


def polish(p, q, x, cap):
    steps = torch.zeros(p.numel(), device="cuda", dtype=torch.int32)
    newton_polish[(p.numel(),)](p, q, x, steps, 1e-4, 200, USE_CAP=cap, num_warps=1)
    return steps


def main():
    fixed = len(sys.argv) > 1 and sys.argv[1] == "fixed"
    n = 256
    p = torch.linspace(2.5, 3.0, n, device="cuda")
    q = torch.full((n,), 1.0, device="cuda")
    x = torch.full((n,), 2.0, device="cuda")
    steps = polish(p, q, x, True)
    torch.cuda.synchronize()
    print("first family: at most", int(steps.max()), "steps", flush=True)
    # second family: p = 2, q = 2, starting values from a coarse scan of the interval
    p2 = torch.full((n,), 2.0, device="cuda")
    q2 = torch.full((n,), 2.0, device="cuda")
    x2 = torch.arange(n, device="cuda", dtype=torch.float32) * -0.5
    steps = polish(p2, q2, x2, fixed)
    torch.cuda.synchronize()
    print("second family: at most", int(steps.max()), "steps", flush=True)
    print("roots", x2[:4].tolist(), flush=True)


if __name__ == "__main__":
    main()
