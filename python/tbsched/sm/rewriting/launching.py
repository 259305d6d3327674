"""Runs variants on a GPU, through CuPy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tbsched.errors import missing
from tbsched.program.checks import integer
from tbsched.sm.rewriting.making import Variant


def launcher(
    arguments: Iterable[Any],
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    shared_memory: int = 0,
    *,
    repeats: int = 10,
) -> Callable[[Variant], Callable[[], float]]:
    """Returns, for :func:`search`, what launches a variant with CuPy and times it by CUDA events.

    Args:
        arguments: of the kernel: CuPy arrays and NumPy scalars. Each run is given the same ones, so
            the kernel must not take longer the second time.
        grid, block: a number, or up to three.
        shared_memory: dynamic, in bytes.
        repeats: launches that are timed together; their mean is the time.

    Raises:
        ImportError: CuPy is missing.

    Example:
        >>> load = tb.sm.launcher((x, np.int32(x.size)), grid=4096, block=256)  # doctest: +SKIP
        >>> tb.sm.search(tb.sm.variants(kernel, threads=256), load)  # doctest: +SKIP
    """
    try:
        import cupy
    except ImportError:
        raise missing("launches of variants", "CuPy", "'cupy-cuda13x'") from None
    count = integer("launcher", "repeats", repeats, 1, 10**6)
    kernel_arguments = tuple(arguments)
    sizes = [_three(dimensions) for dimensions in (grid, block)]

    def load(variant: Variant) -> Callable[[], float]:
        """Returns a function that times a variant, loaded with CuPy."""
        module = cupy.cuda.function.Module()
        module.load(variant.cubin)
        function = module.get_function(variant.kernel)
        if shared_memory > 48 * 1024:
            function.max_dynamic_shared_size_bytes = shared_memory
        first, last = cupy.cuda.Event(), cupy.cuda.Event()

        def run() -> float:
            """Returns the seconds per launch of the variant."""
            first.record()
            for _ in range(count):
                function(*sizes, kernel_arguments, shared_mem=shared_memory)
            last.record()
            last.synchronize()
            return float(cupy.cuda.get_elapsed_time(first, last)) / 1e3 / count

        return run

    return load


def _three(size: int | tuple[int, ...]) -> tuple[int, ...]:
    sizes = (size,) if isinstance(size, int) else tuple(size)
    return (*sizes, 1, 1)[:3]
