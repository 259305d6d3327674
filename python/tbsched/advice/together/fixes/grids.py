"""Smaller grids."""

from __future__ import annotations

from collections.abc import Iterator

from tbsched.advice.together.budget import largest
from tbsched.advice.together.fixes.fix import Fix, Unproved
from tbsched.advice.together.given import called, with_blocks


def grid(unproved: Unproved) -> Iterator[Fix]:
    """Yields a smaller grid for the launch that loses the smallest part of its blocks."""
    problem = unproved.problem
    found = []
    for number, launch in enumerate(problem.launches):
        blocks = largest(problem, number, launch.blocks - launch.cluster, unproved.solved_by)
        if blocks:
            found.append((blocks / launch.blocks, number, blocks))
    if found:
        _, number, blocks = max(found, key=lambda row: row[0])
        launch = problem.launches[number]
        name = called(problem.launches, number)
        text = f"at most {blocks} blocks for {name}, not {launch.blocks}"
        yield unproved.changed("grid", text, {number: with_blocks(launch, blocks)})
