"""Cooperative launches, of which all blocks start at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tbsched.advice.together.fixes.fix import Fix, Unproved
from tbsched.advice.together.given import to_launch


def cooperative(unproved: Unproved) -> Iterator[Fix]:
    """Yields cooperative launches: each launch of a group alone, then all of them."""
    problem = unproved.problem
    launches = problem.launches
    others = [number for number in problem.members if not launches[number].cooperative]
    for numbers in (*([number] for number in others), others):
        if numbers:
            alone = len(numbers) == 1
            what = to_launch(launches, numbers) if alone else "launch every kernel of a group"
            changes = {number: replace(launches[number], cooperative=True) for number in numbers}
            text = f"{what} with cudaLaunchCooperativeKernel"
            yield unproved.changed("cooperative", text, changes)
