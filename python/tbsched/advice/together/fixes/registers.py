"""Fewer registers per thread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tbsched.advice.together.fixes.fix import Fix, Unproved
from tbsched.advice.together.given import called
from tbsched.advice.together.greatest import greatest

_STEP = 8  # allocation unit of the registers of a thread
_FEWEST = 24


def registers(unproved: Unproved) -> Iterator[Fix]:
    """Yields fewer registers for the launch that has to give up least."""
    problem = unproved.problem
    found = []
    for number, launch in enumerate(problem.launches):
        most = _most_registers(unproved, number)
        if most is not None:
            found.append((launch.registers - most, number, most))
    if found:
        _, number, most = min(found)
        launch = problem.launches[number]
        name = called(problem.launches, number)
        text = f"at most {most} registers per thread for {name}, not {launch.registers}"
        text += " (__launch_bounds__, -maxrregcount)"
        yield unproved.changed("registers", text, {number: replace(launch, registers=most)})


def _most_registers(unproved: Unproved, number: int) -> int | None:
    """Returns the most registers per thread with which the problem is safe; None: none."""
    launch = unproved.problem.launches[number]

    def safe(steps: int) -> bool:
        fewer = replace(launch, registers=steps * _STEP)
        return unproved.solved_by(unproved.problem.with_launch(number, fewer))

    low, high = _FEWEST // _STEP, (launch.registers - 1) // _STEP
    if high < low or not safe(low):
        return None
    return greatest(low, high, safe) * _STEP
