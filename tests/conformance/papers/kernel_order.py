"""Section V-C of the ICCD 2023 paper: what its advice is worth.

"Randomized Testing Framework for Dissecting NVIDIA GPGPU Thread Block-To-SM Scheduling Mechanisms"
advises NVIDIA to let warps go to any processing block, and to let blocks enter any SM whose shared
memory suffices. It advises programmers to launch kernels with larger local memory and larger
shared-memory configurations first. It gives no numbers. Here sets of eight kernels are drawn, one
in each of eight streams, all ready at once; how they were to be drawn is not said either.

``tests/lab/timed/kernel_order.py`` runs the orders on a GPU and writes a JSON file. Put into
``RESULTS`` it fills a column of ``docs/explanation/kernel-order.md``.
"""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tbsched.hardware.catalogue import device
from tbsched.prediction.predict import predict_many
from tbsched.program.sequence import Launch, Sequence

RESULTS = Path(__file__).parent / "measured"
SETS = 300
KERNELS = 8
THREADS = tuple(range(32, 512 + 1, 32))
REGISTERS = (24, 32, 40, 64, 96, 128)
MODELS = ("rtx3090", "h200")
GPUS = ("h100", "h200")
ORDERS = ("as drawn", "largest first", "smallest first")
# What is drawn beside blocks, threads, registers and durations, and sorted by.
KINDS: dict[str, Callable[[Launch], int]] = {
    "shared memory": lambda launch: launch.shared_memory,
    "local memory": lambda launch: launch.local_memory,
}
# The suffix of a device without the mechanism.
RELAXED = {"any processing block": "free-warps", "any configuration": "no-configuration"}
SAME = 0.001  # makespans that differ by less are equal


@dataclass(frozen=True)
class Gain:
    """Makespans of many sets over those of the same sets done otherwise.

    Attributes:
        median: of the ratios.
        faster, slower: the share of sets.
    """

    median: float
    faster: float
    slower: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({100 * self.faster:.0f} %, {100 * self.slower:.0f} %)"


def kernels(kind: str, sms: int, number: int) -> list[Launch]:
    """A set: up to two blocks per SM of each kernel, which run for 0.5 to 2 ms."""
    rng = random.Random(f"{kind} {number}")
    shared, local = kind == "shared memory", kind == "local memory"
    return [
        Launch(
            blocks=rng.randint(1, 2 * sms),
            threads=rng.choice(THREADS),
            registers=rng.choice(REGISTERS),
            shared_memory=rng.choice((0, rng.randrange(256, 48 * 1024, 256))) if shared else 0,
            local_memory=rng.choice((0, 4096, 16384)) if local else 0,
            stream=stream,
            duration=rng.uniform(0.5, 2.0) * 1e-3,
        )
        for stream in range(KERNELS)
    ]


def in_orders(kind: str, drawn: list[Launch]) -> Iterator[Sequence]:
    """The set in each of :data:`ORDERS`."""
    size = KINDS[kind]
    yield Sequence(drawn)
    yield Sequence(sorted(drawn, key=size, reverse=True))
    yield Sequence(sorted(drawn, key=size))


def programs(kind: str, sms: int, sets: int = SETS) -> list[Sequence]:
    """All sets of a kind, each in all orders."""
    return [
        program for number in range(sets) for program in in_orders(kind, kernels(kind, sms, number))
    ]


def gain(makespans: Iterable[float], others: Iterable[float]) -> Gain:
    """What the first are, compared with the others."""
    ratios = np.array([*makespans]) / np.array([*others])
    faster, slower = (ratios < 1 - SAME).mean(), (ratios > 1 + SAME).mean()
    return Gain(float(np.median(ratios)), float(faster), float(slower))


def predicted(name: str, programs: list[Sequence]) -> list[float]:
    """The makespan of each, in seconds, by a model."""
    return [trace.makespan for trace in predict_many(programs, name)]


def ordered(makespans: list[float]) -> dict[str, Gain]:
    """Largest first, compared with each of the other orders.

    Args:
        makespans: of :func:`programs`.
    """
    drawn, largest, smallest = (makespans[order :: len(ORDERS)] for order in range(len(ORDERS)))
    return {ORDERS[0]: gain(largest, drawn), ORDERS[2]: gain(largest, smallest)}


@functools.cache
def modelled(name: str, sets: int = SETS) -> dict[tuple[str, str], Gain]:
    """Every row for a model: what is done, and compared with what."""
    found: dict[tuple[str, str], Gain] = {}
    usual = programs("shared memory", device(name).sms, sets)[:: len(ORDERS)]
    before = predicted(name, usual)
    for what, suffix in RELAXED.items():
        found[what, "the GPU as it is"] = gain(predicted(f"{name}-{suffix}", usual), before)
    for kind in KINDS:
        makespans = predicted(name, programs(kind, device(name).sms, sets))
        for other, ratio in ordered(makespans).items():
            found[f"largest {kind} first", other] = ratio
    return found


def file_of(gpu: str) -> str:
    """Where the measurements of a GPU are, in the folder of results."""
    return f"kernel-order-{gpu}.json"


def measured(path: Path) -> dict[tuple[str, str], Gain]:
    """The rows that a GPU can show, from what the script of the lab wrote; none if it did not."""
    if not path.exists():
        return {}
    seen = json.loads(path.read_text("utf-8"))["makespans_ns"]
    return {
        (f"largest {kind} first", other): ratio
        for kind in KINDS
        for other, ratio in ordered(seen[kind]).items()
    }


def rows(results: Path = RESULTS) -> tuple[list[str], list[list[str]]]:
    """The header and the rows of the page's table."""
    models = [modelled(name) for name in MODELS]
    seen = {gpu: measured(results / file_of(gpu)) for gpu in GPUS}

    def cell(found: dict[tuple[str, str], Gain], key: tuple[str, str]) -> str:
        if not found:
            return "not measured yet" if key[0].startswith("largest") else "cannot be"
        return str(found.get(key, "cannot be"))

    header = [
        "what is done",
        "compared with",
        *(f"model `{name}`" for name in MODELS),
        *(f"measured, {gpu.upper()}" for gpu in GPUS),
    ]
    lines = [
        [*key, *(str(found[key]) for found in models), *(cell(seen[gpu], key) for gpu in GPUS)]
        for key in models[0]
    ]
    return header, lines
