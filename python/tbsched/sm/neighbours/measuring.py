"""Measures a kernel's profile: alone, and beside each ruler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.neighbours.profiles import KernelProfile
from tbsched.program.checks import instance, integer
from tbsched.program.sequence import Launch
from tbsched.progress import bar
from tbsched.sm.neighbours.rulers import BLOCKS, Ruler, rulers
from tbsched.sm.neighbours.runs import RulerRun, profile_of

Call = Callable[[int], object]
REPEATS = 5


class RulerBench(Protocol):
    """Runs kernels beside rulers: a GPU, or something in its place.

    Attributes:
        spec: the GPU, as the predictor sees it.
    """

    spec: DeviceSpec

    def run(self, call: Call | None, ruler: Ruler | None, blocks: int, launch: Launch) -> RulerRun:
        """One run of a kernel, of so many blocks of a ruler on each SM, or of both."""


def profile(
    call: Call,
    launch: Launch,
    gpu: int | RulerBench = 0,
    *,
    repeats: int = REPEATS,
    progress: bool = True,
) -> KernelProfile:
    """Measures what a kernel needs of what SMs share.

    The kernel runs alone, and beside 12 rulers: kernels that each press on one resource. How much
    the kernel and a ruler slow each other tells how much of the resource the kernel needs.

    Args:
        call: launches the kernel, in the CUDA stream whose handle it gets. It does not wait. It is
            called about a hundred times.
        launch: what it launches; :func:`tbsched.launch_of` tells. Its ``name`` becomes that of the
            profile.
        gpu: number of the GPU, or a bench in its place.
        repeats: of each run, 1 to 1000.
        progress: shows a bar on standard error.

    Returns:
        A :class:`~tbsched.sm.KernelProfile`.

    Raises:
        ImportError: cuda.core is missing.
        NoGpuError: no usable GPU.
        TypeError, ValueError: a launch without a name; no shipped device is called like this GPU.

    Example:
        >>> def call(stream):
        ...     with cupy.cuda.ExternalStream(stream):
        ...         add((264,), (256,), (a, b, c))
        >>> launch = tb.launch_of(add, grid=264, block=256)  # doctest: +SKIP
        >>> profile = tb.sm.profile(call, launch)  # doctest: +SKIP
    """
    instance("profile", "launch", launch, Launch)
    repeats = integer("profile", "repeats", repeats, 1, 1000)
    if launch.name is None:
        raise ValueError("launch: it needs a name, by which predict finds the profile")
    bench = _gpu(gpu) if isinstance(gpu, int) else gpu
    cases: list[tuple[Call | None, Ruler | None, int]] = [(call, None, 0)]
    for ruler in rulers():
        for blocks in BLOCKS:
            cases += [(None, ruler, blocks), (call, ruler, blocks)]
    runs = []
    with bar("measuring", len(cases) if progress else 0) as show:
        for number, case in enumerate(cases):
            runs += [bench.run(*case, launch) for _ in range(repeats)]
            show(number + 1)
    return profile_of(launch.name, [(launch, runs)], bench.spec, rulers())


def _gpu(index: int) -> RulerBench:
    from tbsched.sm.neighbours.gpu import RulerGpu

    return RulerGpu(index)
