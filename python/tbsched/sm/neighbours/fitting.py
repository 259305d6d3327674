"""What a kernel needs, from how much it and others slow each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tbsched import _core
from tbsched.prediction.neighbours.factors import Mixture
from tbsched.prediction.neighbours.profiles import RESOURCES, KernelProfile, Row

_Vector = npt.NDArray[np.float64]

# Of a resource that no slowdown speaks of, the share is 0.
_DOUBT = 0.02
_DEPTH_DOUBT = 0.15
_ROUNDS = 25


@dataclass(frozen=True, slots=True)
class Slowdown:
    """One that was measured.

    Attributes:
        alone, beside: what SMs held: blocks of the kernel, and of what is beside it.
        beside_row: what is beside the kernel; None: nobody.
        of_kernel: of the kernel's time, or else of the other's, on the SMs where the kernel is.
        factor: how many times as long it took as alone.
    """

    alone: Mixture
    beside: Mixture
    beside_row: Row | None
    of_kernel: bool
    factor: float


def fit(name: str, warps: int, sms: int, slowdowns: Sequence[Slowdown]) -> KernelProfile:
    """The profile that is nearest to the slowdowns.

    Args:
        name: of the kernel.
        warps: of a block.
        sms: of the GPU.
        slowdowns: of the kernel and of what was beside it.
    """
    measured = np.log([each.factor for each in slowdowns])

    def distance(x: _Vector) -> _Vector:
        found = np.log(expected(_row(x), sms, slowdowns)) - measured
        return np.concatenate([found, _DOUBT * x[:-1], [_DEPTH_DOUBT * (x[-1] - math.log(warps))]])

    start = np.full(len(RESOURCES) + 1, 0.1)
    start[-1] = math.log(warps)
    x = least_squares(distance, start)
    error = float(np.median(np.abs(np.expm1(distance(x)[: len(measured)]))))
    shares, depth = _row(x)
    kept = {name: _short(share) for name, share in zip(RESOURCES, shares, strict=True) if share}
    return KernelProfile(name, kept, _short(depth), _short(error))


def expected(row: Row, sms: int, slowdowns: Sequence[Slowdown]) -> _Vector:
    """The factors of a kernel that needs this."""
    by_other: dict[int, list[int]] = {}
    for number, each in enumerate(slowdowns):
        by_other.setdefault(id(each.beside_row), []).append(number)
    found = np.empty(len(slowdowns))
    for numbers in by_other.values():
        own = [slowdowns[number] for number in numbers]
        other = own[0].beside_row or ([0.0] * len(RESOURCES), 1.0)
        mixtures = [mixture for each in own for mixture in (each.alone, each.beside)]
        times = _core.contention_times([row, other], sms, mixtures)
        for k, (number, each) in enumerate(zip(numbers, own, strict=True)):
            alone = _time(each.alone, times[2 * k], each.of_kernel)
            found[number] = _time(each.beside, times[2 * k + 1], each.of_kernel) / alone
    return found


def _time(mixture: Mixture, times: list[float], of_kernel: bool) -> float:
    """Of the work of the SMs: longer where fewer blocks do it at a time."""
    which = 0 if of_kernel else 1
    done = sum(
        sms * blocks[which] / times[2 * k + which]
        for k, (blocks, sms) in enumerate(mixture)
        if of_kernel or blocks[0] or not any(row[0] for row, _ in mixture)
    )
    return 1 / done


def _row(x: _Vector) -> Row:
    return x[:-1].tolist(), float(np.exp(x[-1]))


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def least_squares(distance: Callable[[_Vector], _Vector], start: _Vector) -> _Vector:
    """Levenberg and Marquardt's way down, with all but the last number at least 0."""
    x, found, damping = start, distance(start), 1e-2
    for _ in range(_ROUNDS):
        slope = _slope(distance, x, found)
        gradient, curvature = slope.T @ found, slope.T @ slope
        free = (x > 0) | (gradient < 0)
        free[-1] = True
        before = found @ found
        for _ in range(6):
            step = np.zeros_like(x)
            scaled = curvature + damping * np.diag(np.diag(curvature) + 1e-9)
            step[free] = -np.linalg.solve(scaled[np.ix_(free, free)], gradient[free])
            tried = x + np.clip(step, -1, 1)
            tried[:-1] = np.maximum(tried[:-1], 0)
            tried[-1] = np.clip(tried[-1], -5, 12)
            new = distance(tried)
            if new @ new < before:
                x, found, damping = tried, new, max(damping / 5, 1e-9)
                break
            damping *= 5
        if before - found @ found < 1e-5 * before:
            break
    return x


def _slope(distance: Callable[[_Vector], _Vector], x: _Vector, found: _Vector) -> Any:
    columns = []
    for k in range(len(x)):
        moved = x.copy()
        moved[k] += 1e-3
        columns.append((distance(moved) - found) / 1e-3)
    return np.stack(columns, axis=1)
