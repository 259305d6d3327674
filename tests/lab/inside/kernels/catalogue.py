"""The real kernels whose block sizes are timed: what each works on, and how it may be launched."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = tuple(sorted(HERE.glob("*.cu")))
SMS = 132
WARP = 32


class Kind(StrEnum):
    """What may change with the block size."""

    ITEMS = "items"  # a thread per item: the grid follows from the block size
    LOOP = "loop"  # threads loop over the items: any grid
    BLOCKS = "blocks"  # a block per part of the work: the grid is given


@dataclass(frozen=True, slots=True)
class Real:
    """A kernel with the sizes that it works on.

    Attributes:
        name: of the function, and a letter if there are several sizes.
        kind: what may change with the block size.
        n: items, or blocks for ``BLOCKS``; the kernel's first size.
        m: the kernel's second size.
        shared: bytes of dynamic shared memory for any block size.
        shared_per_thread: bytes of it for each thread, in addition.
        least: the smallest block that computes all.
        most: the largest block.
    """

    name: str
    kind: Kind
    n: int
    m: int = 1
    shared: int = 0
    shared_per_thread: int = 0
    least: int = 32
    most: int = 1024

    @property
    def function(self) -> str:
        """The name in the machine code."""
        return self.name.split("/")[0]

    @property
    def type(self) -> str:
        """The type of its inputs: ``f16``, ``f32``, ``f64`` or ``i32``."""
        return self.function.rsplit("_", 1)[1]

    @property
    def in_triton(self) -> bool:
        """Whether it is written in Triton, and compiled for each block size."""
        return self.function.startswith("triton_")

    @property
    def held_out(self) -> bool:
        """Whether it is only scored, and was never looked at to find a rule; two of three are."""
        return hashlib.sha256(self.function.encode()).digest()[0] % 3 != 0


ITEMS, LOOP, BLOCKS = Kind.ITEMS, Kind.LOOP, Kind.BLOCKS
M = 1 << 20
KERNELS = (
    Real("saxpy_f32", ITEMS, 4_000_000),
    Real("daxpy_f64", ITEMS, 1_000_000),
    Real("saxpy_loop_f32", LOOP, 8 * M),
    Real("copy_f32", ITEMS, 16 * M),
    Real("copy_four_f32", ITEMS, 2 * M),
    Real("gelu_f32", ITEMS, 3_000_000),
    Real("gelu_loop_f32", LOOP, 3_000_000),
    Real("swiglu_f16", LOOP, 4 * M),
    Real("relu_f16", ITEMS, 4 * M),
    Real("adam_f32", ITEMS, 1_500_000),
    Real("exp_log_f64", ITEMS, 700_000),
    Real("norm_3d_f32", ITEMS, 2_000_000),
    Real("gray_i32", ITEMS, 1920 * 1080),
    Real("dequantize_i32", LOOP, 2 * M, 128),
    Real("dropout_f32", ITEMS, 5_000_000, 4096),
    Real("polynomial_f64", ITEMS, 202_752, 64),
    Real("polynomial_f64/large", ITEMS, 1_000_000, 48),
    Real("hash_i32", ITEMS, 300_000, 64),
    Real("gather_f32", ITEMS, 2 * M),
    Real("gather_loop_f64", LOOP, 2 * M),
    Real("sum_f32", LOOP, 16 * M),
    Real("sum_f64", LOOP, 4 * M),
    Real("dot_f32", LOOP, 8 * M),
    Real("sum_four_f32", LOOP, 4 * M),
    Real("sum_tree_f32", ITEMS, 4 * M, shared_per_thread=4),
    Real("most_f32", LOOP, 10_000_000),
    Real("softmax_f32", BLOCKS, 4096, 1024),
    Real("softmax_f32/wide", BLOCKS, 512, 32_000),
    Real("softmax_wide_f32", BLOCKS, 2048, 4096),
    Real("layer_norm_f32", BLOCKS, 8192, 768),
    Real("layer_norm_f32/wide", BLOCKS, 2048, 5120),
    Real("rms_norm_f16", BLOCKS, 4096, 2048),
    Real("cross_entropy_f32", BLOCKS, 512, 32_000),
    Real("variance_f64", BLOCKS, 1024, 4096),
    Real("row_sum_f32", ITEMS, 32 * 20_000, 512),
    Real("column_sum_f32", ITEMS, 30_000, 512),
    Real("scan_f32", BLOCKS, 1024, 8192),
    Real("scan_steps_i32", BLOCKS, 4096, 1024, shared=8192),
    Real("histogram_i32", LOOP, 16 * M),
    Real("histogram_global_i32", ITEMS, 2 * M, 4096),
    Real("compact_i32", LOOP, 16 * M),
    Real("stencil_3_f32", ITEMS, 8 * M),
    Real("stencil_5_f32", ITEMS, 2048 * 2048, 2048),
    Real("heat_5_f64", ITEMS, 1500 * 1500, 1500),
    Real("stencil_7_f32", ITEMS, 200**3, 200),
    Real("star_25_f32", ITEMS, 160**3, 160),
    Real("life_i32", ITEMS, 2048 * 1024, 2048),
    Real("sobel_f32", ITEMS, 1920 * 1080, 1920),
    Real("median_3x3_f32", ITEMS, 1920 * 1080, 1920),
    Real("bilateral_f32", ITEMS, 1280 * 720, 1280),
    Real("blur_shared_f32", ITEMS, 2 * M, shared=128, shared_per_thread=4),
    Real("convolve_f32", ITEMS, 1_000_000, 63),
    Real("convolve_channels_f32", ITEMS, 512 * 512, 512),
    Real("pool_2x2_f32", ITEMS, 1024 * 2048, 1024),
    Real("resize_f32", ITEMS, 1920 * 1400, 1920),
    Real("transpose_f32", ITEMS, 2048 * 2048, 2048),
    Real("transpose_tile_f32", BLOCKS, 64 * 64, 2048),
    Real("multiply_naive_f32", ITEMS, 768 * 768, 768),
    Real("multiply_tile_f32", BLOCKS, 32 * 32, 1024, least=64),
    Real("multiply_tile_f64", BLOCKS, 24 * 24, 768, least=64),
    Real("multiply_4x4_f32", ITEMS, 400_000),
    Real("cholesky_4x4_f64", ITEMS, 300_000),
    Real("vector_warp_f32", ITEMS, 32 * 8192, 2048),
    Real("vector_thread_f64", ITEMS, 40_000, 200),
    Real("sparse_thread_f32", ITEMS, 500_000, M),
    Real("sparse_warp_f64", ITEMS, 4 * 400_000, M),
    Real("rank_f32", ITEMS, 600_000),
    Real("breadth_i32", ITEMS, M),
    Real("nearest_f32", ITEMS, 500_000, 64),
    Real("nearest_shared_f32", ITEMS, 500_000, 200),
    Real("bodies_f32", ITEMS, 12_000),
    Real("bodies_shared_f32", ITEMS, 20_000, shared_per_thread=16),
    Real("mandelbrot_f32", ITEMS, 1024 * 1024, 1024),
    Real("mandelbrot_f64", ITEMS, 512 * 512, 512),
    Real("julia_loop_f32", LOOP, 1024 * 1024, 1024),
    Real("options_f32", ITEMS, 1_000_000),
    Real("options_f64", ITEMS, 300_000),
    Real("options_loop_f32", LOOP, 4_000_000),
    Real("binomial_f32", BLOCKS, 512, 255, shared=2048),
    Real("walks_f32", ITEMS, 131_072, 100),
    Real("darts_i32", LOOP, 200_000, 100),
    Real("lorenz_f64", ITEMS, 70_000, 100),
    Real("pendulum_f32", ITEMS, 270_336, 100),
    Real("spheres_f32", ITEMS, 1280 * 720, 60),
    Real("primes_i32", ITEMS, 200_000, 200),
    Real("queens_i32", ITEMS, 81 * 600, 9),
    Real("checksum_i32", ITEMS, 400_000, 16),
    Real("walsh_stage_f32", ITEMS, 4 * M, 1024),
    Real("fourier_stage_f32", ITEMS, 2 * M, 4096),
    Real("walsh_shared_f32", BLOCKS, 2048, 2048, shared=8192),
    Real("fourier_shared_f64", BLOCKS, 512, 1024, shared=16_384),
    Real("sort_stage_i32", ITEMS, 4 * M, 512),
    Real("sort_shared_f32", BLOCKS, 1024, 2048, shared=8192),
    Real("cosine_8x8_f32", ITEMS, 600_000),
    Real("haar_f32", ITEMS, 3_000_000),
    Real("rotary_f32", ITEMS, 3_000_000, 64),
    Real("triton_add_f32", BLOCKS, 4096),
    Real("triton_gelu_f32", BLOCKS, 1500),
    Real("triton_softmax_f32", BLOCKS, 4096, 1500),
    Real("triton_layer_norm_f32", BLOCKS, 8192, 1000),
    Real("triton_rms_norm_f16", BLOCKS, 3000),
    Real("triton_matmul_f16", BLOCKS, 16 * 16, 1024),
    Real("triton_cross_entropy_f32", BLOCKS, 512, 32_000),
    Real("triton_scan_f32", BLOCKS, 4096),
    Real("triton_dropout_f32", BLOCKS, 4096),
    Real("triton_adam_f32", BLOCKS, 1500),
    Real("triton_transpose_f32", BLOCKS, 32 * 32, 2048),
    Real("triton_top_f32", BLOCKS, 4096),
    Real("levels_i32", BLOCKS, 2000, 256, shared=3 * 4 * 257),
)  # fmt: skip

BLOCK_SIZES = (32, 64, 96, 128, 160, 192, 256, 320, 384, 448, 512, 640, 768, 1024)
LOOP_SIZES = (64, 128, 192, 256, 384, 512, 768, 1024)
EACH_SM = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)  # blocks on an SM, and that many waves' worth


def grids(kernel: Real, threads: int, resident: int) -> list[int]:
    """The grids to time a block size with.

    Args:
        kernel: what is launched.
        threads: of a block.
        resident: how many such blocks an SM holds.
    """
    if kernel.kind is Kind.BLOCKS:
        return [kernel.n]
    if kernel.kind is Kind.ITEMS:
        return [-(-kernel.n // threads)]
    # Up to a full SM, a few waves, and as many blocks as there are items.
    fitting = [SMS * each for each in EACH_SM if each < resident]
    return [*fitting, SMS * resident, 4 * SMS * resident, -(-kernel.n // threads)]


def sizes(kernel: Real) -> list[int]:
    """The block sizes that compute all."""
    if kernel.in_triton:
        return [WARP * warps for warps in (1, 2, 4, 8, 16, 32)]
    every = LOOP_SIZES if kernel.kind is Kind.LOOP else BLOCK_SIZES
    return [threads for threads in every if kernel.least <= threads <= kernel.most]
