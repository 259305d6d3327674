"""Kernels that are loaded before their partners spin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tbsched.advice.together.fixes.fix import Fix, Unproved
from tbsched.advice.together.given import called, listed


def loading(unproved: Unproved) -> Iterator[Fix]:
    """Yields early loading of each kernel that is loaded at its first use, then of all."""
    launches = unproved.problem.launches
    loaded = [number for number, one in enumerate(launches) if one.first_use]
    for numbers in (*([number] for number in loaded), loaded):
        if numbers:
            names = listed(called(launches, number) for number in numbers)
            text = f"load {names} before (CUDA_MODULE_LOADING=EAGER, or cudaFuncGetAttributes)"
            changes = {number: replace(launches[number], first_use=False) for number in numbers}
            yield unproved.changed("loading", text, changes)
