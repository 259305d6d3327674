"""Variants of a kernel that compute the same: with more registers, or in another order."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Sequence as ListOf
from dataclasses import dataclass, field
from typing import Any, overload

from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.checks import integer
from tbsched.program.sequence import Launch, Sequence
from tbsched.shown import Shown
from tbsched.sm.code.reading import cubin_of, naming
from tbsched.sm.rewriting.blocks import Block, blocks_of
from tbsched.sm.rewriting.cubins import MOST_REGISTERS, Written, padded, registers_of, rewritten
from tbsched.sm.rewriting.dependences import Compiled, Edges, compiled, edges
from tbsched.sm.rewriting.effects import Listing, listing
from tbsched.sm.rewriting.orders import Order, every_order, reordered

ORIGINAL = "original"
MOST_DRAWS = 1000
_CHANGES = "USETMAXREG"  # the kernel has its own plan for registers
_UNIT = 8  # registers of a thread are handed out in such steps
_Held = Callable[[int], int | None]  # from registers per thread to blocks on an SM


@dataclass(frozen=True, slots=True)
class Variant:
    """A kernel that computes the same as another.

    Attributes:
        name: how it differs: such as ``65 registers, loads``, or ``original``.
        kernel: its name in the cubin.
        registers: of a thread.
        order: by which the instructions were ordered; empty: the compiler's.
        moved: how many instructions are at another place.
        resident: blocks that an SM holds; None: the block size was not given.
        cubin: the machine code.

    Example:
        >>> found = tb.sm.variants("walsh_shared_f32.cubin", threads=256)  # doctest: +SKIP
        >>> found[1].resident, found[1].moved  # doctest: +SKIP
        (6, 0)
    """

    name: str
    kernel: str
    registers: int
    order: str
    moved: int
    resident: int | None
    cubin: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, repr=False)
class Variants(Shown):
    """Variants of a kernel, the original first. Prints as a table.

    Attributes:
        kernel: its name in the cubins.
        variants: a cubin each.

    Example:
        >>> found = tb.sm.variants("walsh_shared_f32.cubin", threads=256)  # doctest: +SKIP
        >>> found[0].name, found[1].name  # doctest: +SKIP
        ('original', '33 registers')
    """

    kernel: str
    variants: tuple[Variant, ...]

    def __iter__(self) -> Iterator[Variant]:
        return iter(self.variants)

    def __len__(self) -> int:
        return len(self.variants)

    @overload
    def __getitem__(self, number: int) -> Variant: ...

    @overload
    def __getitem__(self, number: slice) -> tuple[Variant, ...]: ...

    def __getitem__(self, number: int | slice) -> Variant | tuple[Variant, ...]:
        return self.variants[number]


def variants(
    kernel: Any,
    device: str | os.PathLike[str] | DeviceSpec = "h200",
    *,
    threads: int | None = None,
    shared_memory: int = 0,
    orders: Iterable[str] = (Order.LOADS, Order.CRITICAL, Order.APART),
    draws: int = 0,
    every: int = 0,
    most_registers: int = MOST_REGISTERS,
) -> Variants:
    """Returns variants of a kernel: other orders of its instructions, same results.

    Padded variants have more registers for a thread than the code uses, so that fewer blocks share
    an SM. A kernel that changes its registers while it runs has none. Reordered ones have the
    instructions in another order, as far as their registers, their memory and the scoreboards
    allow. Each order comes with each number of registers.

    Args:
        kernel: the path of a cubin, or ``(path, name)``; its bytes; a ``RawKernel`` of CuPy; a
            compiled kernel of Triton or Numba; or ``(ObjectCode, name)`` of cuda.core.
        device: the GPU that says how many blocks an SM holds.
        threads: of a block. With it, a number of registers counts only if it changes how many
            blocks an SM holds. None: every eighth number, as registers come by eight.
        shared_memory: bytes for each block, static and dynamic.
        orders: ``loads``: reads of memory first; ``critical``: what most of the time still follows;
            ``apart``: chains take turns. None of them is wanted: ``()``.
        draws: how many orders are drawn by chance, in addition, 0 to 1000.
        every: all orders, in addition, of a kernel that has at most so many, 0 to 1000; 0: not all.
            They are called ``order 1`` and so on; the compiler's own is ``original``.
        most_registers: for a thread, up to 255.

    Raises:
        ToolMissing: nvdisasm is not there; says how to get it.
        TypeError, ValueError: no kernel that is known; no such order; numbers that cannot be; a
            kernel with more orders than ``every``.

    Example:
        >>> tb.sm.variants("walsh_shared_f32.cubin", orders=())[1].registers  # doctest: +SKIP
        32
    """
    spec = find_device(device)
    with naming(kernel):
        cubin, name = cubin_of(kernel)
        used_registers = registers_of(cubin, name)
    max_registers = integer("variants", "most_registers", most_registers, 1, MOST_REGISTERS)
    shared = integer("variants", "shared_memory", shared_memory, 0, 2**20)
    wanted = [(_order(order), 0) for order in orders]
    draws = integer("variants", "draws", draws, 0, MOST_DRAWS)
    wanted += [(Order.RANDOM, seed) for seed in range(draws)]
    every = integer("variants", "every", every, 0, MOST_DRAWS)
    size = None if threads is None else integer("variants", "threads", threads, 1, 1024)
    with naming(kernel):
        listed = listing(cubin, name)
    if any(step.opcode.startswith(_CHANGES) for step in listed.steps):
        max_registers = used_registers
    if size is None:
        counts = _by_unit(used_registers, max_registers)
    else:
        counts = _by_resident(
            used_registers, max_registers, lambda n: _resident(spec, size, n, shared)
        )
    return Variants(name, tuple(
        Variant(
            _name(count if count != used_registers else None, order), name, count, order, moved,
            resident, padded(code, name, count),
        )
        for order, code, moved in _codes(cubin, name, listed, wanted, every)
        for count, resident in counts
    ))  # fmt: skip


def _order(name: str) -> Order:
    """Returns an order that a person can ask for by its name."""
    known = [order for order in Order if order is not Order.RANDOM]
    if name not in known:
        raise ValueError(f"variants.orders: {name!r} is not one of {', '.join(known)}")
    return Order(name)


def _name(registers: int | None, order: str) -> str:
    parts = [] if registers is None else [f"{registers} registers"]
    return ", ".join([*parts, order] if order else parts) or ORIGINAL


def _codes(
    cubin: bytes, kernel: str, listed: Listing, wanted: list[tuple[Order, int]], every: int
) -> list[tuple[str, bytes, int]]:
    """Returns different machine codes: the order's name, the cubin, instructions moved."""
    blocks = blocks_of(listed)
    shown = compiled(blocks)
    needs_edges = bool(wanted or every)
    edges_by_block = [
        edges(block, shown) if block.movable and needs_edges else {} for block in blocks
    ]
    codes = {cubin: ("", cubin, 0)}

    def add(name: str, orders: Iterable[ListOf[Written]]) -> None:
        """Adds the machine code of these orders, if it is new."""
        written = [
            (block.first + k, control)
            for block, steps in zip(blocks, orders, strict=True)
            for k, control in steps
        ]
        code = rewritten(cubin, kernel, written)
        moved = sum(index != k for index, (k, _) in enumerate(written))
        codes.setdefault(code, (name, code, moved))

    for order, seed in wanted:
        orders = [
            (reordered(block, shown, block_edges, order, seed) if block.movable else None)
            or _as_is(block)
            for block, block_edges in zip(blocks, edges_by_block, strict=True)
        ]
        add(f"{order} {seed}" if order is Order.RANDOM else order, orders)
    if every:
        by_block = _all_orders(kernel, blocks, shown, edges_by_block, every)
        for index, orders_of_blocks in enumerate(itertools.product(*by_block)):
            if index:
                add(f"order {index}", orders_of_blocks)
    return list(codes.values())


def _as_is(block: Block) -> list[Written]:
    """Returns a block's steps as the compiler has them."""
    return [(k, step.control) for k, step in enumerate(block.steps)]


def _all_orders(
    kernel: str,
    blocks: list[Block],
    shown: Compiled,
    edges_by_block: ListOf[Edges],
    max_orders: int,
) -> list[list[list[Written]]]:
    """Returns all orders of each block, of which there are at most so many together."""
    orders_by_block: list[list[list[Written]]] = []
    together = 1
    for block, block_edges in zip(blocks, edges_by_block, strict=True):
        orders = (
            every_order(block, shown, block_edges, max_orders) if block.movable else [_as_is(block)]
        )
        together *= max_orders + 1 if orders is None else len(orders)
        if orders is None or together > max_orders:
            raise ValueError(
                f"variants.every: {kernel} has more than {max_orders} orders; draw some"
            )
        orders_by_block.append(orders)
    return orders_by_block


def _by_unit(used_registers: int, max_registers: int) -> list[tuple[int, int | None]]:
    """Returns register counts to try, each with None: the kernel's own, then every larger one in
    whole units."""
    first = (used_registers // _UNIT + 1) * _UNIT
    return [
        (used_registers, None),
        *((count, None) for count in range(first, max_registers + 1, _UNIT)),
    ]


def _by_resident(
    used_registers: int, max_registers: int, resident_blocks: _Held
) -> list[tuple[int, int | None]]:
    """Returns register counts to try, each with how many blocks an SM then holds: the kernel's own,
    then the smallest of each smaller number of blocks."""
    counts = [(used_registers, resident_blocks(used_registers))]
    first = (used_registers - 1) // _UNIT * _UNIT + _UNIT + 1
    for count in range(first, max_registers + 1, _UNIT):
        resident = resident_blocks(count)
        if not resident:
            break
        if resident != counts[-1][1]:
            counts.append((count, resident))
    return counts


def _resident(spec: DeviceSpec, threads: int, registers: int, shared_memory: int) -> int:
    """Returns how many blocks of a launch an idle SM holds, by the predictor; 0: not even one."""
    launch = Launch(spec.sms * spec.blocks_per_sm, threads, registers, shared_memory)
    try:
        trace = predict(Sequence([launch]), spec)
    except ValueError:  # not even one block fits
        return 0
    return int(trace[0].occupancy(spec.sms).max())
