"""Variants of a kernel that compute the same: with more registers, or in another order."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tbsched import storage
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.checks import integer
from tbsched.program.sequence import Launch, Sequence
from tbsched.sm.code.reading import cubin_of
from tbsched.sm.variants.blocks import Block, blocks_of
from tbsched.sm.variants.cubins import MOST_REGISTERS, Written, padded, registers_of, rewritten
from tbsched.sm.variants.dependences import Compiled, compiled
from tbsched.sm.variants.effects import listing
from tbsched.sm.variants.orders import Order, reordered

_UNIT = 8  # registers of a thread are handed out in such steps


@dataclass(frozen=True, slots=True)
class Variant:
    """A kernel that computes the same as another.

    Attributes:
        name: what it differs in; ``original``: in nothing.
        kernel: its name in the cubin.
        registers: of a thread.
        order: by which the instructions were ordered; empty: as the compiler did.
        moved: how many instructions are at another place.
        resident: blocks that an SM holds; None: the block size was not given.
        cubin: the machine code.
    """

    name: str
    kernel: str
    registers: int
    order: str
    moved: int
    resident: int | None
    cubin: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Variants:
    kernel: str
    variants: tuple[Variant, ...]

    def __iter__(self) -> Iterator[Variant]:
        return iter(self.variants)


def variants(
    kernel: Any,
    device: str | os.PathLike[str] | DeviceSpec = "h200",
    *,
    threads: int | None = None,
    shared_memory: int = 0,
    orders: Iterable[str] = tuple(Order)[:3],
    draws: int = 0,
    most_registers: int = MOST_REGISTERS,
) -> Variants:
    spec = find_device(device)
    cubin, name = cubin_of(kernel)
    least = registers_of(cubin, name)
    wanted = [(Order(order), 0) for order in orders] + [(Order.RANDOM, k) for k in range(draws)]
    codes = [("", cubin, 0)]
    blocks = blocks_of(listing(cubin, name)) if wanted else []
    shown = compiled(blocks)
    for order, seed in wanted:
        code, moved = _in_order(cubin, name, blocks, shown, order, seed)
        if moved and all(code != known for _, known, _ in codes):
            text = f"{order} {seed}" if order is Order.RANDOM else str(order)
            codes.append((text, code, moved))
    held = lambda registers: None if threads is None else _resident(spec, threads, registers, shared_memory)
    counts = _counts(least, most_registers, held)
    found = []
    for order, code, moved in codes:
        for count, resident in counts:
            parts = ([f"{count} registers"] if count != least else []) + ([order] if order else [])
            found.append(Variant(", ".join(parts) or "original", name, count, order, moved, resident, padded(code, name, count)))
    return Variants(name, tuple(found))


def _in_order(
    cubin: bytes, kernel: str, blocks: list[Block], shown: Compiled, order: Order, seed: int
) -> tuple[bytes, int]:
    """The cubin with the instructions in another order, and how many moved."""
    written: list[Written] = []
    for block in blocks:
        found = reordered(block, shown, order, seed) if block.movable else None
        if found is None:
            found = [(k, step.control) for k, step in enumerate(block.steps)]
        written += [(block.first + k, control) for k, control in found]
    moved = sum(place != k for place, (k, _) in enumerate(written))
    return rewritten(cubin, kernel, written), moved


def _counts(least, most, held):
    if held(least) is None:
        return [(least, None), *((count, None) for count in range(least + _UNIT, most + 1, _UNIT))]
    found = [(least, held(least))]
    for count in range(least - least % _UNIT + _UNIT, most + 1, _UNIT):
        resident = held(count)
        if not resident:
            break
        if resident < found[-1][1]:
            found.append((count - _UNIT + 1, resident))
    return found


def _resident(spec, threads, registers, shared_memory):
    blocks = spec.sms * spec.blocks_per_sm
    launch = Launch(blocks, threads, registers, shared_memory)
    try:
        trace = predict(Sequence([launch]), spec)
    except ValueError:  # not even one block fits
        return 0
    return int(trace[0].occupancy(spec.sms).max())
