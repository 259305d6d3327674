"""What binds each class of SMs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tbsched.program.arrays import Int32Array

NO_CLUSTER = "cluster"  # an SM has room for a block, but no cluster fits
DRIVER_LIMIT = "driver_limit"  # SMs have room, but the driver refuses a larger cooperative launch


@dataclass(frozen=True, slots=True)
class Limit:
    """SMs on which the same thing refuses one block more.

    Attributes:
        cause: what refuses it, a word as in ``Placement.limiter``; ``partition`` where the launch
            may not run, ``cluster`` where a block would fit but no whole cluster does.
        blocks: how many blocks of the launch each of these SMs took.
        beside: how many blocks of the other launches each of them holds.
        sms: their numbers, ascending.
        causes: all that refuses it: ``cause``, then each resource that alone would refuse it.

    Example:
        >>> workers = tb.Launch(100, 512, 64, name="workers")
        >>> for row in tb.capacity(tb.Launch(1, 1024, 32), "h200", beside=[workers]).limits:
        ...     print(len(row.sms), row.beside, row.blocks, row.cause)
        100 1 1 registers
        32 0 2 warps
    """

    cause: str
    blocks: int
    beside: int
    sms: tuple[int, ...]
    causes: tuple[str, ...] = ()


def limits_of(
    causes: Iterable[tuple[str, ...]], per_sm: Int32Array, beside_per_sm: Int32Array
) -> tuple[Limit, ...]:
    """Returns a row per class of SMs, those with most SMs first.

    Args:
        causes: of each SM all that refuses one block more there.
        per_sm: of each SM how many blocks of the launch it has.
        beside_per_sm: of each SM how many blocks of others it has.
    """
    kinds: dict[tuple[tuple[str, ...], int, int], list[int]] = {}
    columns = zip(causes, per_sm.tolist(), beside_per_sm.tolist(), strict=True)
    for sm, kind in enumerate(columns):
        kinds.setdefault(kind, []).append(sm)
    rows = [
        Limit(all_causes[0], blocks, beside, tuple(sms), all_causes)
        for (all_causes, blocks, beside), sms in kinds.items()
    ]
    return tuple(sorted(rows, key=lambda row: -len(row.sms)))
