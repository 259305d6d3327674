"""What is measured: bodies of one resource, real kernels, and which of them beside which."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

THREADS = 128  # of a block of a body
REAL_THREADS = 256

INSIDE = (
    "fma1", "fma4", "fp64_1", "fp64_4", "logic1", "logic4", "multiply4", "special4", "tensor4",
    "shared", "shared_banks", "shared_atomics", "near_loads", "fma_shared", "fma_special",
    "fp64_logic", "logic_shared",
)  # fmt: skip
OUTSIDE = (
    "reads", "writes", "copies", "chase", "gather", "fma_reads", "shared_reads", "special_copies",
    "fp64_gather",
)  # fmt: skip
# Each presses on one resource.
RULERS = (
    ("fma4", "-"), ("logic4", "-"), ("fp64_4", "-"), ("special4", "-"), ("tensor4", "-"),
    ("shared", "-"), ("near_loads", "-"), ("reads", "near"), ("gather", "near"), ("reads", "far"),
    ("writes", "far"), ("chase", "far"),
)  # fmt: skip
RULER_BLOCKS = (1, 4)

# Real kernels: the parts of their work.
REAL = {
    "vector_add": 4096, "stencil": 4096, "transpose": 4096, "reduction": 2048, "softmax": 4096,
    "layer_norm": 4096, "sparse": 4096, "mandelbrot": 4096, "histogram": 4096, "walsh": 2048,
    "k_means": 4096, "n_body": 64, "black_scholes": 4096, "polynomial": 4096, "hashing": 2048,
    "matrix_product": 256, "sort": 2048, "gathering": 4096, "scan": 4096,
}  # fmt: skip
SIZES = ("half", "one", "two", "four", "whole")
SEED = 22_0811
PAIRS = 480


@dataclass(frozen=True)
class Body:
    """Blocks of a body on SMs.

    Attributes:
        name: of the kernel.
        memory: "near" stays in L2, "far" does not; "-": it uses none.
        per_sm: blocks on each SM.
        sms: where they do anything; None: everywhere.
    """

    name: str
    memory: str
    per_sm: int
    sms: tuple[int, ...] | None = None


def bodies() -> list[tuple[str, str]]:
    """All, with their memory."""
    outside = itertools.product(OUTSIDE, ("near", "far"))
    return [*((name, "-") for name in INSIDE), *outside]


def alone(sms: int) -> Iterator[tuple[Body, ...]]:
    """Each body with itself alone: more and more blocks, more and more SMs."""
    for name, memory in bodies():
        for per_sm in (1, 2, 4, 8, 12):
            yield (Body(name, memory, per_sm),)
    for name, memory in bodies():
        for count in (1, sms // 4, sms // 2, 3 * sms // 4):
            for per_sm in (1, 4):
                if memory != "-" or (count == 1 and per_sm == 4):
                    some = tuple(range(0, sms, sms // count))[:count]
                    yield (Body(name, memory, per_sm, some),)


def beside() -> Iterator[tuple[Body, ...]]:
    """Two bodies on the same SMs."""
    for one, other in itertools.combinations_with_replacement(bodies(), 2):
        for a, b in ((1, 1), (4, 4), (1, 4), (4, 1)):
            if one != other or a <= b:
                yield Body(*one, a), Body(*other, b)


def apart(sms: int) -> Iterator[tuple[Body, ...]]:
    """Two bodies on different SMs: of the same TPCs, then in halves of the GPU."""
    even, odd = tuple(range(0, sms, 2)), tuple(range(1, sms, 2))
    far = [body for body in bodies() if body[1] != "-"]
    for one, other in itertools.combinations_with_replacement(far, 2):
        yield Body(*one, 4, even), Body(*other, 4, odd)
    for one, other in itertools.combinations(bodies(), 2):
        if "-" in (one[1], other[1]) and one[1] != other[1]:
            yield Body(*one, 4, even), Body(*other, 4, odd)


def in_gpcs(gpcs: list[list[int]]) -> Iterator[tuple[Any, ...]]:
    """A victim on one SM, and others on more and more SMs of its own GPC or of another.

    Args:
        gpcs: the SMs of each, those of a TPC beside each other.
    """
    big = sorted((gpc for gpc in gpcs if len(gpc) >= 16), key=lambda gpc: gpc[0])
    own, other = big[0], big[1]
    victims = [("reads", "near"), ("gather", "near"), ("reads", "far"), ("chase", "near")]
    others = [("reads", "near"), ("writes", "near"), ("gather", "near"), ("reads", "far")]
    for victim, per_sm in itertools.product(victims, (1, 8)):
        yield "alone", Body(*victim, per_sm, (own[0],))
    for victim, aggressor, per_sm in itertools.product(victims, others, (1, 8)):
        here = Body(*victim, per_sm, (own[0],))
        for count in (1, 3, 7, 15):
            # The SM beside the victim is in its TPC; then come those of other TPCs.
            yield f"same GPC {count}", here, Body(*aggressor, 8, tuple(own[1 : 1 + count]))
            yield f"other GPC {count}", here, Body(*aggressor, 8, tuple(other[1 : 1 + count]))
        yield "same GPC, no TPC 6", here, Body(*aggressor, 8, tuple(own[2:8]))
        rest = tuple(sm for gpc in gpcs for sm in gpc if gpc is not own)
        yield f"all other GPCs {len(rest)}", here, Body(*aggressor, 8, rest)


def grid_of(name: str, size: str, sms: int) -> int:
    """The blocks of a real kernel."""
    grid = {"half": sms // 2, "one": sms, "two": 2 * sms, "four": 4 * sms}.get(size, REAL[name])
    return min(grid, REAL[name])


def real_pairs(seed: int) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """Pairs of real kernels and sizes."""
    draw = random.Random(seed)
    each = [(name, size) for name in REAL for size in SIZES]
    return [(draw.choice(each), draw.choice(each)) for _ in range(PAIRS)]
