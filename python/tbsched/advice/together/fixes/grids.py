"""Smaller grids."""

from __future__ import annotations

from collections.abc import Iterator

from tbsched.advice.together.budget import largest
from tbsched.advice.together.fixes.fix import Fix, Unsafe
from tbsched.advice.together.given import called, with_blocks


def grid(unsafe: Unsafe) -> Iterator[Fix]:
    """Fewer blocks for one launch: for that which loses the smallest part of them."""
    problem = unsafe.problem
    found = []
    for number, launch in enumerate(problem.launches):
        blocks = largest(problem, number, launch.blocks - launch.cluster, unsafe.solved_by)
        if blocks:
            found.append((blocks / launch.blocks, number, blocks))
    if found:
        _, number, blocks = max(found, key=lambda row: row[0])
        launch = problem.launches[number]
        name = called(problem.launches, number)
        text = f"at most {blocks} blocks for {name}, not {launch.blocks}"
        yield unsafe.changed("grid", text, {number: with_blocks(launch, blocks)})
