"""Kernels and copies that only move data within the memory of a GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tbsched.advice.explain.changes.proposal import MOST_PAUSE, Proposal, edited
from tbsched.advice.explain.facts import Facts
from tbsched.program.sequence import Copy, Event, Launch

# Kernels of PyTorch, cuDNN and cuBLAS for clone(), to(), contiguous(), cat() and other layouts.
_MOVES = re.compile(
    r"_copy_kernel|CatArrayBatchedCopy|nchwToNhwc|nhwcToNchw|convertTensor|transpose_readWrite|"
    r"cublasTransposeKernel|cupy_copy__"
)
_MOST_KINDS = 3  # by themselves, those with most launches


def without_moved_data(facts: Facts) -> Iterator[Proposal]:
    """Without kernels and copies that only move data: each kind, and all together."""
    by_name: dict[str, list[int]] = {}
    for place, event in enumerate(facts.program.sequence):
        if isinstance(event, Copy) and event.kind == "d2d":
            by_name.setdefault("copies d2d", []).append(place)
        elif isinstance(event, Launch) and event.name and _MOVES.search(event.name):
            by_name.setdefault(event.name, []).append(place)
    every = sorted(place for own in by_name.values() for place in own)
    each = sorted(by_name.values(), key=len, reverse=True)[:_MOST_KINDS]
    for places in [every, *(each if len(by_name) > 1 else [])] if every else []:
        gaps = [*facts.program.host]
        for place in places:
            gaps[place] = 0.0 if gaps[place] <= MOST_PAUSE else gaps[place]
        changed: dict[int, Event | None] = dict.fromkeys(places)
        yield edited(
            facts,
            f"without {len(places)} kernels and copies that only move data on the GPU, such as "
            f"{_example(facts, places)}",
            changed,
            "if what follows takes it where and as it is (its type and memory format, a buffer "
            "that is large enough)",
            tuple(gaps),
        )


def _example(facts: Facts, places: list[int]) -> str:
    """Returns the kernel of the first launch among events, or the copy."""
    numbers = facts.event.searchsorted(places)
    for place, number in zip(places, numbers.tolist(), strict=True):
        if isinstance(facts.program.sequence[place], Launch):
            return facts.kernel_name(number)
    return "a d2d copy"
