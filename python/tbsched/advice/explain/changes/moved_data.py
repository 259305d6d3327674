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
_MOST_KINDS = 3  # that are named, those with most launches


def without_moved_data(facts: Facts) -> Iterator[Proposal]:
    """Without all kernels and copies that only move data.

    One proposal: those of a kind are a part of it, and two rows would promise their time twice.
    """
    kinds: dict[str, list[int]] = {}
    for place, event in enumerate(facts.program.sequence):
        if isinstance(event, Copy) and event.kind == "d2d":
            kinds.setdefault("copies d2d", []).append(place)
        elif isinstance(event, Launch) and event.name and _MOVES.search(event.name):
            kinds.setdefault(event.name, []).append(place)
    places = sorted(place for own in kinds.values() for place in own)
    if not places:
        return
    gaps = [*facts.program.host]
    for place in places:
        gaps[place] = 0.0 if gaps[place] <= MOST_PAUSE else gaps[place]
    changed: dict[int, Event | None] = dict.fromkeys(places)
    yield edited(
        facts,
        f"without {len(places)} kernels and copies that only move data on the GPU, "
        f"{_named(facts, [*kinds.values()])}",
        changed,
        "if what follows takes it where and as it is (its type and memory format, a buffer "
        "that is large enough)",
        tuple(gaps),
    )


def _named(facts: Facts, kinds: list[list[int]]) -> str:
    """Returns the only kind, or how many launches the kinds with most have."""
    if len(kinds) == 1:
        return f"such as {_example(facts, kinds[0])}"
    most = sorted(kinds, key=len, reverse=True)[:_MOST_KINDS]
    return f"such as {', '.join(f'{_example(facts, own)} ({len(own)})' for own in most)}"


def _example(facts: Facts, places: list[int]) -> str:
    """Returns the name of the kernel that some events launch, or the copy."""
    if isinstance(facts.program.sequence[places[0]], Copy):
        return "a d2d copy"
    return facts.kernel_name(int(facts.event.searchsorted(places[0])))
