"""Shared memory of an SM, its unit, and what the runtime keeps of it for every block.

An idle SM holds n blocks of s bytes if n * (s in whole units + the reserve) is no more than its
memory. The largest s for each n is bisected; every (unit, reserve, memory), in whole units, that
contradicts one of them is eliminated.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import gcd
from typing import NamedTuple

from tbsched.calibration.asking.lab import Inconclusive, Lab, small
from tbsched.calibration.finding import Finding, KnownValues, Values, assumed, determined
from tbsched.program.sequence import Sequence

_MAX_RESERVE = 65536
_SMALLEST_UNIT = 16
_MAX_UNITS = 4
_KILOBYTE = 1024
CONFIGURATIONS = "shared_memory_configurations"
_PARTS = 12  # into which each round divides the remaining ranges


class Memory(NamedTuple):
    """One way in which the shared memory of an SM may be given out."""

    unit: int
    reserve: int
    size: int

    def holds(self, bytes_: int) -> int:
        """Returns how many blocks of a size the SM holds."""
        per_block = self.takes(bytes_)
        return self.size // per_block if per_block else 2**31

    def takes(self, bytes_: int) -> int:
        """Returns the bytes that a block takes of the SM's memory, reserve included."""
        return -(-bytes_ // self.unit) * self.unit + self.reserve


def ask(lab: Lab, known: KnownValues) -> list[Finding]:
    """Measures the largest shared memory of which an idle SM holds 1, 2, 3, ... blocks at once, and
    returns findings on its size, unit and reserve, and on block slots."""
    limit = known["shared_memory_per_block"]
    single = known.notes["single"]
    if not limit:
        raise Inconclusive("blocks may have no shared memory")
    counts = {0: single}
    steps = [limit * part // (4 * _PARTS) for part in range(1, 4 * _PARTS + 1)]
    while steps:
        block_counts = lab.fills([small(shared_memory=size) for size in steps])
        counts.update(zip(steps, block_counts, strict=True))
        steps = _between(counts)
    largest = thresholds(counts)
    if not largest:
        raise Inconclusive("blocks of all sizes fit an SM equally often")
    known.notes["shared"] = largest
    layouts = remaining(largest, limit, single)
    count = min(largest)
    units = sorted({memory.unit for memory in layouts}, reverse=True)
    # Blocks that are smaller by a candidate unit take less only if the unit is no larger.
    for less in [0, *units[:_MAX_UNITS]]:
        if len(layouts) > 1 and less < largest[count]:
            last_fit = _fill_to_last_unit(lab, count, largest[count] - less, limit)
            layouts = [memory for memory in layouts if last_fit is None or last_fit.agrees(memory)]
    return read(_whole_kilobytes(layouts), single, known)


def _whole_kilobytes(layouts: list[Memory]) -> list[Memory]:
    """Returns the candidates whose size is whole kilobytes, or all if there are none."""
    return [memory for memory in layouts if memory.size % _KILOBYTE == 0] or layouts


class LastFit(NamedTuple):
    """The largest block that enters beside some others.

    Attributes:
        others, bytes_: number and size of the other blocks.
        entered, refused: largest size that entered, and smallest that did not, if one is known.
    """

    others: int
    bytes_: int
    entered: int
    refused: int | None

    def agrees(self, memory: Memory) -> bool:
        """Returns whether this layout lets ``entered`` enter, and not ``refused``."""
        free = memory.size - self.others * memory.takes(self.bytes_)
        enters = memory.takes(self.entered) <= free
        return enters and (self.refused is None or memory.takes(self.refused) > free)


def _fill_to_last_unit(lab: Lab, count: int, size: int, limit: int) -> LastFit | None:
    """Measures the largest block that enters beside ``count - 1`` others of a size on each SM.

    Returns None if the SMs do not hold exactly that many others each.
    """
    other_blocks = small(shared_memory=size, blocks=(count - 1) * lab.sms)
    known = True

    def enters(bytes_: int) -> bool:
        """Returns whether a block of so many bytes fits beside the others."""
        nonlocal known
        (trace,) = lab.run([Sequence([other_blocks, small(shared_memory=bytes_)])])
        blocks = trace[0].occupancy(lab.sms)
        known = known and int(blocks.min()) == int(blocks.max()) == count - 1
        return trace[1].placed == 1

    entered = lab.largest(enters, size, limit)
    return (
        LastFit(count - 1, size, entered, entered + 1 if entered < limit else None)
        if known
        else None
    )


def _between(counts: Mapping[int, int]) -> list[int]:
    """Returns sizes in bytes to try next: each in the middle between two sizes of which an SM holds
    different numbers of blocks."""
    sizes = sorted(counts)
    steps: list[int] = []
    for low, high in pairwise(sizes):
        if counts[low] == counts[high] or high - low < 2 or counts[low] > 12 + counts[high]:
            continue
        parts = min(_PARTS, high - low)
        steps += sorted({low + (high - low) * part // parts for part in range(1, parts)})
    return steps


def thresholds(counts: Mapping[int, int]) -> dict[int, int]:
    """Returns, by number of blocks, the largest size in bytes of which an SM holds exactly that
    many blocks, where that is known. ``counts``: blocks by size."""
    sizes = sorted(counts)
    return {
        counts[low]: low
        for low, high in pairwise(sizes)
        if high - low == 1 and counts[low] == counts[high] + 1
    }


def remaining(largest: Mapping[int, int], limit: int, single: int) -> list[Memory]:
    """Returns all layouts of shared memory that agree with the largest blocks."""
    common_divisor = gcd(*largest.values())
    units = [
        unit for unit in range(_SMALLEST_UNIT, common_divisor + 1) if common_divisor % unit == 0
    ]
    layouts = []
    for unit in units:
        for reserve in range(0, _MAX_RESERVE + 1, unit):
            min_size = max(
                [-(-limit // unit) * unit + reserve, single * reserve]
                + [count * (size + reserve) for count, size in largest.items()]
            )
            max_size = min(count * (size + unit + reserve) - 1 for count, size in largest.items())
            first = -(-min_size // unit) * unit
            sizes = range(first, max_size + 1, unit)[:64]
            layouts += [Memory(unit, reserve, size) for size in sizes]
    return layouts


def read(layouts: list[Memory], single: int, known: KnownValues) -> list[Finding]:
    """Returns findings from the remaining layouts, and from these the number of block slots."""
    slots = "limits.blocks_per_sm"
    paths = (
        "allocation.shared_memory_unit",
        "allocation.shared_memory_reserve",
        "allocation.shared_memory_configurations",
    )
    if not layouts:
        nothing = "no unit, reserve and size agree with how many blocks filled SMs"
        values: tuple[object, ...] = (128, 1024, (known["shared_memory_per_block"] + 1024,))
        return [assumed(p, v, nothing) for p, v in zip(paths, values, strict=True)] + [
            assumed(slots, single, f"an SM holds {single} small blocks; {nothing}")
        ]
    best = layouts[0]
    because = "the largest blocks of which 2, 3, ... fill an idle SM"
    findings = []
    for path, value, values_left in (
        (paths[0], best.unit, {memory.unit for memory in layouts}),
        (paths[1], best.reserve, {memory.reserve for memory in layouts}),
    ):
        rivals = tuple(sorted(values_left - {value}))
        findings.append(
            assumed(path, value, f"{because} leave others", rivals[:16])
            if rivals
            else determined(path, value, because)
        )
    sizes = known.notes["sizes"] = sorted({memory.size for memory in layouts})
    if len(sizes) == 1:
        known.set_remaining(map(_values, layouts))
    else:
        known.partial.add(CONFIGURATIONS)  # only the largest one is known in part
        if len(layouts) <= known.most_at_once:
            known.set_remaining({**_values(m), CONFIGURATIONS: (m.size,)} for m in layouts)
        # Predictions depend on all three values together.
        because = f"with it, an SM has {sizes[0]} to {sizes[-1]} bytes"
        findings = [assumed(f.path, f.value, because, f.rivals) for f in findings]
    findings.append(
        assumed(
            paths[2],
            (best.size,),
            f"{because} show that {', '.join(map(str, known.notes['sizes'][:4]))} is the largest; "
            "smaller ones have not been asked for",
        )
    )
    files = known.notes["files"]
    by_warps = not files or any(candidate.holds(16) <= single for candidate in files)
    by_memory = any(
        memory.reserve and memory.size // memory.reserve <= single for memory in layouts
    )
    if by_warps or by_memory:
        resource = "warps" if by_warps else "shared memory"
        known.irrelevant.add("blocks_per_sm")  # more than those would change nothing
        return [
            *findings,
            assumed(
                slots, single, f"an SM holds {single} small blocks; {resource} may allow no more"
            ),
        ]
    return [
        *findings,
        determined(slots, single, f"an SM holds {single} small blocks, and room is left"),
    ]


def _values(memory: Memory) -> Values:
    return {"shared_memory_unit": memory.unit, "shared_memory_reserve": memory.reserve}
