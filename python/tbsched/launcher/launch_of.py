"""Launches of kernels that another library has compiled."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from tbsched.errors import shown
from tbsched.launcher.kernels.cubins import CUBINS
from tbsched.launcher.kernels.cuda_core_kernels import CUDA_CORE
from tbsched.launcher.kernels.cupy_kernels import CUPY
from tbsched.launcher.kernels.numba_kernels import NUMBA
from tbsched.launcher.kernels.torch_kernels import TORCH
from tbsched.launcher.kernels.triton_kernels import TRITON
from tbsched.program.checks import integer
from tbsched.program.sequence import Launch

LIBRARIES = (CUBINS, CUPY, NUMBA, TRITON, TORCH, CUDA_CORE)
_Extent: TypeAlias = int | tuple[int, ...]
_MAX_VALUE = 2**31 - 1


def launch_of(
    kernel: Any,
    grid: _Extent,
    block: _Extent | None = None,
    *,
    shared_memory: int = 0,
    **fields: Any,
) -> Launch:
    """Returns a launch of a compiled kernel, with the registers and memory that it uses.

    Args:
        kernel: a ``RawKernel`` of CuPy or a function of its ``RawModule``; a function of Numba's
            ``@cuda.jit``; the compiled kernel that a launch or ``warmup`` of Triton returns; a
            ``Kernel`` of cuda.core; a Triton kernel of ``torch.compile``; the path of a cubin, or
            a pair of it and the name of a kernel.
        grid: blocks, a number or up to three.
        block: threads of a block, likewise; Triton's kernels have their own.
        shared_memory: dynamic shared memory, in bytes; static memory is added to it.
        **fields: others of :class:`tbsched.Launch`.

    Raises:
        ImportError: a cubin must be read, and the package was built without nvcc.
        TypeError: no kernel of these libraries.
        ValueError: a number out of range, or a kernel that is not compiled.

    Example:
        >>> tb.launch_of(("gemm.cubin", "gemm"), grid=(64, 2), block=256)  # doctest: +SKIP
    """
    usage = next((library for library in LIBRARIES if library.takes(kernel)), None)
    if usage is None:
        known = "; ".join(library.name for library in LIBRARIES)
        raise TypeError(f"kernel: {shown(kernel)} is of none that are known: {known}")
    used = usage.usage(kernel)
    if block is None:
        if used.threads is None:
            raise ValueError("launch_of.block: the threads of a block are needed")
        block = used.threads
    elif used.threads is not None and used.threads != _product("block", block):
        raise ValueError(
            f"launch_of.block: the kernel is compiled for {used.threads} threads, "
            f"got {shown(block)}; leave it out"
        )
    dynamic = integer("launch_of", "shared_memory", shared_memory, 0, _MAX_VALUE)
    usage_fields = {
        "local_memory": used.local_memory,
        "carveout": used.carveout,
        "cluster": used.cluster,
        "name": used.name,
        **fields,
    }
    return Launch(
        _product("grid", grid),
        _product("block", block),
        used.registers,
        used.static_shared_memory + used.dynamic_shared_memory + dynamic,
        **usage_fields,
    )


def _product(field: str, extent: _Extent) -> int:
    """Returns the product of an extent, a number or up to three. ``field``: its name, for
    messages.
    """
    sizes = extent if isinstance(extent, tuple) else (extent,)
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"launch_of.{field}: up to three numbers are needed, got {shown(extent)}")
    return math.prod(integer("launch_of", field, size, 1, _MAX_VALUE) for size in sizes)
