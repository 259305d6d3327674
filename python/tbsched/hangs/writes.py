"""Which operations write to memory that kernels poll, by the addresses that a capture has."""

from __future__ import annotations

from collections.abc import Iterable

from tbsched.hangs.code import KernelCode, Poll
from tbsched.hangs.unfinished import Operation

TRANSFERS = frozenset({"copy", "memset", "write_value"})
_WORD = 8  # bytes that a poll reads at most


def is_address(value: int) -> bool:
    """Returns whether a value may be an address: it needs more than 32 bits."""
    return value >= 1 << 32


def addresses_of(launch: Operation, places: Iterable[int]) -> frozenset[int]:
    """Returns the addresses that a launch has in some places of its arguments.

    ``__device__`` variables have negative numbers in place of addresses.
    """
    arguments = launch.arguments or {}
    return frozenset(
        value
        for place in places
        if (value := place if place < 0 else arguments.get(place, 0)) < 0 or is_address(value)
    )


def global_polls(code: KernelCode) -> list[Poll]:
    """Returns the polls of a kernel that do not look at memory of its own block."""
    return [poll for poll in code.polls if not poll.is_local]


def writes_to(transfer: Operation, address: int) -> bool:
    """Returns whether a copy, memset or value of a known address is written to another one."""
    to = transfer.address
    return to is not None and to < address + _WORD and address < to + max(transfer.bytes, 1)


def is_awaited(
    transfer: Operation, launch: Operation, code: KernelCode, others: Iterable[Operation]
) -> bool:
    """Returns whether a launch surely polls where a transfer is written, and never writes there.

    Args:
        transfer: one of ``TRANSFERS``.
        launch, code: what may poll.
        others: as of :func:`transfer_writes`.
    """
    return any(
        transfer_writes(transfer, launch, poll, others)
        for poll in global_polls(code)
        if not {*poll.arguments} & code.written
    )


def transfer_writes(
    transfer: Operation, launch: Operation, poll: Poll, others: Iterable[Operation]
) -> bool | None:
    """Returns whether a copy, memset or value is written where a launch polls; None: unknown.

    Args:
        transfer: one of ``TRANSFERS``.
        launch, poll: what polls.
        others: operations of the program, whose arguments are addresses of other memory.
    """
    to, bases = transfer.address, addresses_of(launch, poll.arguments)
    if to is None or poll.is_indirect or not bases or min(bases) < 0:
        return None
    if poll.offset is not None and len(poll.arguments) == 1:
        (base,) = bases
        return writes_to(transfer, base + poll.offset)
    # A poll of an array: the nearest address before that of the transfer is the array's.
    known = {
        value for each in others for value in (each.arguments or {}).values() if is_address(value)
    }
    nearest = max((value for value in known | bases if value <= to), default=None)
    return nearest in bases or any(writes_to(transfer, base) for base in bases)
