"""Discounted returns for a long trajectory (a suffix scan) with a look-ahead chain between the
programs of one Triton launch."""

import sys

import torch
import triton
import triton.language as tl
import turn

turn.take()


@triton.jit
def returns_kernel(reward, out, carry, flag, gamma, gamma_block, n_chunks, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    r = tl.load(reward + offs)
    idx = tl.arange(0, BLOCK).to(tl.float32)
    weight = tl.exp(idx * tl.log(gamma))
    total = tl.sum(r * weight, axis=0)
    inherited = 0.0
    if pid + 1 < n_chunks:
        while tl.atomic_add(flag + pid + 1, 0) == 0:
            pass
        inherited = tl.atomic_add(carry + pid + 1, 0.0)
    mine = total + gamma_block * inherited
    tl.atomic_xchg(carry + pid, mine)
    tl.debug_barrier()
    tl.atomic_xchg(flag + pid, 1)
    tl.store(out + offs, r + inherited * weight)


def discounted(reward, gamma, block):
    n = reward.numel()
    chunks = n // block
    out = torch.empty_like(reward)
    carry = torch.zeros(chunks, device="cuda")
    flag = torch.zeros(chunks, device="cuda", dtype=torch.int32)
    returns_kernel[(chunks,)](
        reward, out, carry, flag, gamma, gamma**block, chunks, BLOCK=block, num_warps=16, maxnreg=32
    )
    return out, carry


def main():
    fixed = len(sys.argv) > 1 and sys.argv[1] == "fixed"
    torch.manual_seed(0)
    block = 1024
    for chunks in (32, 256, 512 if fixed else 608):
        reward = torch.rand(chunks * block, device="cuda")
        torch.cuda.synchronize()
        print(f"trajectory of {reward.numel()} steps in {chunks} chunks", flush=True)
        _out, carry = discounted(reward, 0.999, block)
        torch.cuda.synchronize()
        w = 0.999 ** torch.arange(reward.numel(), dtype=torch.float64)
        want = float((w * reward.double().cpu()).sum())
        print(f"  return at step 0: {float(carry[0]):.4f} (reference {want:.4f})", flush=True)


if __name__ == "__main__":
    main()
