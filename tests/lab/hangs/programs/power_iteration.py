"""Power iteration in one Triton launch: every program iterates its own small matrix and writes the
iteration count to memory now and then."""

import time

import torch
import triton
import triton.language as tl
import turn

turn.take()


@triton.jit(do_not_specialize=["rounds"])
def power_kernel(mat, vec, progress, rounds, N: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, N)
    m = tl.load(mat + pid * N * N + i[:, None] * N + i[None, :])
    v = tl.load(vec + pid * N + i)
    r = 0
    while r < rounds:
        for _ in range(64):
            w = tl.sum(m * v[:, None], axis=0)
            v = w / (tl.max(tl.abs(w), axis=0) + 1e-6)
        r += 1
        tl.store(progress + pid, r)
    tl.store(vec + pid * N + i, v)


def run(mat, vec, progress, rounds):
    torch.cuda.synchronize()
    t = time.perf_counter()
    power_kernel[(mat.shape[0],)](mat, vec, progress, rounds, N=mat.shape[1], num_warps=4)
    torch.cuda.synchronize()
    return time.perf_counter() - t


def main():
    torch.manual_seed(9)
    k, n = 120, 32
    mat = torch.rand(k, n, n, device="cuda")
    mat = mat + mat.transpose(1, 2)
    vec = torch.rand(k, n, device="cuda")
    progress = torch.zeros(k, device="cuda", dtype=torch.int32)
    run(mat, vec, progress, 3)
    probe = 20000
    s = run(mat, vec, progress, probe)
    rounds = int(probe * 22.0 / s)
    print(f"{probe} rounds in {s:.2f} s, now {rounds}", flush=True)
    s = run(mat, vec, progress, rounds)
    print(
        f"done in {s:.1f} s, progress {int(progress.min())}, v[0] {float(vec[0, 0]):.4f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
