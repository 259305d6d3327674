"""Fewer registers per thread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tbsched.advice.together.fixes.fix import Fix, Unsafe
from tbsched.advice.together.given import called

_STEP = 8  # of the registers of a thread, as they are given out
_FEWEST = 24


def registers(unsafe: Unsafe) -> Iterator[Fix]:
    """Fewer for one launch: for that which has to give up least."""
    problem = unsafe.problem
    found = []
    for number, launch in enumerate(problem.launches):
        most = _most_registers(unsafe, number)
        if most is not None:
            found.append((launch.registers - most, number, most))
    if found:
        _, number, most = min(found)
        launch = problem.launches[number]
        name = called(problem.launches, number)
        text = f"at most {most} registers per thread for {name}, not {launch.registers}"
        text += " (__launch_bounds__, -maxrregcount)"
        yield unsafe.changed("registers", text, {number: replace(launch, registers=most)})


def _most_registers(unsafe: Unsafe, number: int) -> int | None:
    """With which the problem is safe."""
    launch = unsafe.problem.launches[number]

    def safe(steps: int) -> bool:
        fewer = replace(launch, registers=steps * _STEP)
        return unsafe.solved_by(unsafe.problem.with_launch(number, fewer))

    low, high = _FEWEST // _STEP, (launch.registers - 1) // _STEP
    if high < low or not safe(low):
        return None
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if safe(middle) else (low, middle - 1)
    return low * _STEP
