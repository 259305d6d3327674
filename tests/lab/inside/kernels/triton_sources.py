"""Kernels in Triton, as its tutorials and PyTorch's compiler write them. A program does a part."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

_POINTERS = {"f16": "*fp16", "f32": "*fp32"}


@triton.jit
def triton_add_f32(a, b, index, rows, out, n, m):
    at = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    tl.store(out + at, tl.load(a + at) + tl.load(b + at))


@triton.jit
def triton_gelu_f32(a, b, index, rows, out, n, m):
    at = tl.program_id(0) * 2048 + tl.arange(0, 2048)
    x = tl.load(a + at)
    tl.store(out + at, 0.5 * x * (1.0 + tl.erf(0.70710678 * x)))


@triton.jit
def triton_softmax_f32(a, b, index, rows, out, n, m):
    at = tl.program_id(0) * m + tl.arange(0, 2048)
    inside = tl.arange(0, 2048) < m
    x = tl.load(a + at, mask=inside, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out + at, e / tl.sum(e, 0), mask=inside)


@triton.jit
def triton_layer_norm_f32(a, b, index, rows, out, n, m):
    column = tl.arange(0, 1024)
    at = tl.program_id(0) * m + column
    inside = column < m
    x = tl.load(a + at, mask=inside, other=0.0)
    mean = tl.sum(x, 0) / m
    d = tl.where(inside, x - mean, 0.0)
    scale = tl.rsqrt(tl.sum(d * d, 0) / m + 1e-5)
    y = d * scale * tl.load(b + column, mask=inside) + tl.load(b + m + column, mask=inside)
    tl.store(out + at, y, mask=inside)


@triton.jit
def triton_rms_norm_f16(a, b, index, rows, out, n, m):
    column = tl.arange(0, 4096)
    at = tl.program_id(0) * 4096 + column
    x = tl.load(a + at).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, 0) / 4096 + 1e-5)
    tl.store(out + at, (x * scale * tl.load(b + column).to(tl.float32)).to(tl.float16))


@triton.jit
def triton_matmul_f16(a, b, index, rows, out, n, m):
    tiles = m // 64
    row = tl.program_id(0) // tiles * 64 + tl.arange(0, 64)
    column = tl.program_id(0) % tiles * 64 + tl.arange(0, 64)
    sums = tl.zeros((64, 64), dtype=tl.float32)
    for k in range(0, m, 32):
        inner = k + tl.arange(0, 32)
        left = tl.load(a + row[:, None] * m + inner[None, :])
        right = tl.load(b + inner[:, None] * m + column[None, :])
        sums += tl.dot(left, right)
    tl.store(out + row[:, None] * m + column[None, :], sums.to(tl.float16))


@triton.jit
def triton_cross_entropy_f32(a, b, index, rows, out, n, m):
    row = tl.program_id(0)
    most = -float("inf")
    total = 0.0
    for k in range(0, m, 2048):
        column = k + tl.arange(0, 2048)
        x = tl.load(a + row * m + column, mask=column < m, other=-float("inf"))
        now = tl.maximum(most, tl.max(x, 0))
        total = total * tl.exp(most - now) + tl.sum(tl.exp(x - now), 0)
        most = now
    label = tl.load(index + row) % m
    tl.store(out + row, tl.log(total) + most - tl.load(a + row * m + label))


@triton.jit
def triton_scan_f32(a, b, index, rows, out, n, m):
    at = tl.program_id(0) * 2048 + tl.arange(0, 2048)
    tl.store(out + at, tl.cumsum(tl.load(a + at), 0))


@triton.jit
def triton_dropout_f32(a, b, index, rows, out, n, m):
    at = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    kept = tl.rand(7, at) > 0.3
    tl.store(out + at, tl.where(kept, tl.load(a + at) / 0.7, 0.0))


@triton.jit
def triton_adam_f32(a, b, index, rows, out, n, m):
    at = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    g = tl.load(a + at) - 0.5
    first = 0.9 * tl.load(b + at) + 0.1 * g
    second = 0.999 * tl.load(b + n * 1024 + at) + 0.001 * g * g
    step = 1e-3 * first / (tl.sqrt(second) + 1e-8)
    tl.store(out + at, tl.load(a + n * 1024 + at) - step)
    tl.store(out + n * 1024 + at, first)
    tl.store(out + 2 * n * 1024 + at, second)


@triton.jit
def triton_transpose_f32(a, b, index, rows, out, n, m):
    tiles = m // 64
    row = tl.program_id(0) // tiles * 64 + tl.arange(0, 64)
    column = tl.program_id(0) % tiles * 64 + tl.arange(0, 64)
    tile = tl.load(a + row[:, None] * m + column[None, :])
    tl.store(out + column[:, None] * m + row[None, :], tl.trans(tile))


@triton.jit
def triton_top_f32(a, b, index, rows, out, n, m):
    at = tl.program_id(0) * 512 + tl.arange(0, 512)
    tl.store(out + at, tl.sort(tl.load(a + at)))


def compiled(function: str, warps: int) -> tuple[bytes, int]:
    """The cubin of a kernel for so many warps, and the bytes of its dynamic shared memory."""
    kernel = globals()[function]
    pointer = _POINTERS[function.rsplit("_", 1)[1]]
    signature = {
        "a": pointer, "b": pointer, "index": "*i32", "rows": "*i32", "out": pointer,
        "n": "i32", "m": "i32",
    }  # fmt: skip
    source = ASTSource(fn=kernel, signature=signature, constexprs={})
    target = GPUTarget("cuda", 90, 32)
    made = triton.compile(source, target=target, options={"num_warps": warps})
    assert made.metadata.name == function
    return made.asm["cubin"], made.metadata.shared
