"""Shared-memory configurations, and the rules that pick one.

A first launch sets the configuration of every SM. A second one, without a carveout, enters only if
so many of its blocks as an SM holds fit that configuration: the largest block that enters measures
it. The first launch is one with a carveout of 0 and a little more shared memory than fits the size
found last, which sets the next one. Sizes that no block is large enough for are set by carveouts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import prod

import numpy as np

from tbsched.calibration.asking import whole_gpu
from tbsched.calibration.asking.choices import Choices, by_elimination
from tbsched.calibration.asking.lab import Inconclusive, Lab, small
from tbsched.calibration.draft import draft
from tbsched.calibration.finding import Finding, KnownValues, assumed, determined
from tbsched.calibration.probes.shared_memory import CONFIGURATIONS
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.sequence import Launch, Sequence

_PATH = "allocation.shared_memory_configurations"
_KILOBYTE = 1024
_MAX_WAYS = 8
_VAGUE = 8 * _KILOBYTE  # more than the blocks that measure the largest size leave unused
_CHOICES: Choices = {
    "shared_memory_configuration": (True, False),
    "configuration_per_tpc": (True, False),
    "configuration_headroom": (True, False),
    "explicit_carveout_is_upper_bound": (True, False),
    "carveout_counts_blocks": (True, False),
}


def ask_sizes(lab: Lab, known: KnownValues) -> list[Finding]:
    """Measures the configurations of shared memory: those that blocks with shared memory set, and
    by carveouts the larger ones. Returns a finding with their sizes."""
    spec = draft(known)
    largest = spec.shared_memory_configurations[-1]
    if known.notes["sizes"] != [largest]:
        raise Inconclusive("the largest size is not known")
    ruler = _Ruler(lab, spec)
    unit, reserve, max_units = (
        spec.shared_memory_unit,
        spec.shared_memory_reserve,
        spec.shared_memory_per_block,
    )
    shared = unit
    bounds = [(0, 0)]
    while shared <= max_units and bounds[-1][0] < largest:
        bounds.append(ruler.measured(small(shared_memory=shared, carveout=0)))
        # The smallest block that does not fit that size.
        shared = max(shared + unit, -(-(bounds[-1][1] + 1 - reserve) // unit) * unit)
    if bounds[-1][0] < largest:
        bounds += _of_carveouts(ruler, 100 * (max_units + reserve) // largest)
    bounds[0] = ruler.measured(small(carveout=0))
    known.partial.discard(CONFIGURATIONS)
    finding = read_sizes(set(bounds), largest)
    if finding.rivals:
        every = (finding.value, *finding.rivals)
        known.set_remaining({"shared_memory_configurations": sizes} for sizes in every)
    if finding.value == (largest,) and not finding.rivals:
        known.irrelevant |= {*_CHOICES, "shared_memory_configurations"}
    return [finding]


def _of_carveouts(ruler: _Ruler, min_carveout: int) -> list[tuple[int, int]]:
    """Returns the distinct sizes that carveouts of ``min_carveout`` to 100 % set, each as a lower
    and an upper bound in bytes."""
    bounds: dict[int, tuple[int, int]] = {}

    def size(carveout: int) -> tuple[int, int]:
        if carveout not in bounds:
            bounds[carveout] = ruler.measured(small(carveout=carveout))
        return bounds[carveout]

    def between(low: int, high: int) -> None:
        """Bisects a range: sizes grow with the carveout, so equal ends mean equal sizes between."""
        if size(low) == size(high) or high - low < 2:
            return
        middle = (low + high) // 2
        between(low, middle)
        between(middle, high)

    between(min(min_carveout, 100), 100)
    return list(bounds.values())


class _Ruler:
    """Measures the size that a launch sets, by launches of which an SM holds 2, 3, ... blocks."""

    def __init__(self, lab: Lab, spec: DeviceSpec) -> None:
        self._lab = lab
        self._spec = spec
        max_warps = min(32, spec.threads_per_block // 32)
        fit = {
            blocks: [w for w in range(1, max_warps + 1) if spec.warps_per_sm // w == blocks]
            for blocks in range(2, 9)
        }
        self._warps = {blocks: warps[0] for blocks, warps in fit.items() if warps}
        if not self._warps:
            raise Inconclusive("no number of warps lets a few blocks fill an SM")

    def measured(self, first: Launch) -> tuple[int, int]:
        """Returns a lower and an upper bound, in bytes, of the configuration that launch ``first``
        sets. They are equal if only one number of whole kilobytes is between."""
        low, high = 0, self._spec.shared_memory_configurations[-1]
        for blocks in self._warps:
            lower, upper = self._bounds(first, blocks)
            low, high = max(low, lower), min(high, upper)
            kilobytes = range(-(-low // _KILOBYTE), high // _KILOBYTE + 1)
            if len(kilobytes) == 1:
                return kilobytes[0] * _KILOBYTE, kilobytes[0] * _KILOBYTE
        return low, high

    def _bounds(self, first: Launch, blocks: int) -> tuple[int, int]:
        """Returns a lower and an upper bound, in bytes, of the configuration that launch ``first``
        sets, from the largest block that enters beside it.

        Args:
            first: has one block on each SM.
            blocks: how many blocks of the other launch fill an SM by their warps.
        """
        spec = self._spec
        unit, reserve = spec.shared_memory_unit, spec.shared_memory_reserve
        largest = spec.shared_memory_configurations[-1]
        own_bytes = -(-first.shared_memory // unit) * unit + reserve

        def enters(units: int) -> bool:
            """Returns whether a block of so many units fits beside the first launch."""
            probing = small(self._warps[blocks], shared_memory=units * unit, carveout=None)
            (trace,) = self._lab.run([Sequence([replace(first, blocks=self._lab.sms), probing])])
            if trace[0].placed < self._lab.sms:
                raise Inconclusive("the first launch did not find room on every SM")
            return trace[1].placed == 1

        def needed(units: int) -> int:
            """Returns the smallest size with which a block of so many units enters."""
            return max(blocks * (units * unit + reserve), own_bytes + units * unit + reserve)

        max_units = min(largest // blocks - reserve, spec.shared_memory_per_block) // unit
        if max_units < 0 or not enters(0):
            return own_bytes, needed(0) - 1
        units = self._lab.largest(enters, 0, max_units)
        return needed(units), largest if units == max_units else needed(units + 1) - 1


def read_sizes(bounds: set[tuple[int, int]], largest: int) -> Finding:
    """Returns the finding from the bounds of each size; sizes are assumed to be whole kilobytes."""
    sizes = {largest} | {low for low, high in bounds if low == high}
    # Narrower bounds that include the largest size may be that size.
    vague = sorted(
        (low, high)
        for low, high in bounds
        if low < high and (high < largest or low <= largest - _VAGUE)
    )
    if vague:
        between = "; ".join(f"{low} to {high}" for low, high in vague)
        every = [tuple(sorted(sizes.union(completion))) for completion in _completions(vague)]
        distinct = tuple(dict.fromkeys(every))
        because = f"others are somewhere in {between} bytes"
        if not distinct:
            return assumed(_PATH, tuple(sorted(sizes)), because)
        if len(distinct) == 1:
            return determined(_PATH, distinct[0], f"{because}, in whole kilobytes")
        return assumed(_PATH, distinct[0], because, distinct[1:])
    ascending = tuple(sorted(sizes))
    if len(sizes) == 1:
        return assumed(_PATH, ascending, "no launch sets another size than the largest")
    return determined(_PATH, ascending, "the sizes that launches set, in whole kilobytes")


def _completions(vague: list[tuple[int, int]]) -> Iterator[tuple[int, ...]]:
    """Yields all choices of a whole kilobyte within each pair of bounds; none if too many."""
    within = [range(-(-low // _KILOBYTE) * _KILOBYTE, high + 1, _KILOBYTE) for low, high in vague]
    return product(*within) if prod(map(len, within)) <= _MAX_WAYS else iter(())


def ask_rules(lab: Lab, known: KnownValues) -> list[Finding]:
    """Eliminates configuration rules that contradict where launches with carveouts of all kinds go,
    and returns findings from the rules that remain."""
    spec = draft(known)
    if len(spec.shared_memory_configurations) < 2:
        raise Inconclusive("only one size is known")
    choices = dict(_CHOICES)
    if not known.unknown(["sms_per_tpc"]):
        known.premises += ("sms_per_tpc",)
    else:
        choices["sms_per_tpc"] = tuple(n for n in (2, 1, 3, 4) if n <= lab.sms)
    launches = _launches(spec)

    def drawn(rng: np.random.Generator) -> Sequence:
        return whole_gpu.draw(rng, launches, lab.sms)

    return by_elimination(lab, known, spec, choices, drawn, whole_gpu.VIEW, seed=3)


def _launches(spec: DeviceSpec) -> list[Launch]:
    """Returns launches of several sizes, without, with small, and with large carveouts."""
    sizes = spec.shared_memory_configurations
    max_bytes = spec.shared_memory_per_block
    shared = {0, 1, 1024, min(3072, max_bytes), min(8192, max_bytes)}
    shared |= {min(max(size // 2 - spec.shared_memory_reserve, 0), max_bytes) for size in sizes}
    shared |= {min(max(size // 3 - spec.shared_memory_reserve, 0), max_bytes) for size in sizes}
    warps = [w for w in (1, 2, 4, 8, 16) if 32 * w <= spec.threads_per_block]
    # Carveouts (per cent) that match a size exactly: there the rules differ.
    shares = {100 * size // sizes[-1] for size in sizes}
    carveouts = [None, None, 0, 25, 50, 60, 75, 100, *sorted(shares)]
    return [
        small(w, shared_memory=size, carveout=carveout)
        for w in warps
        for size in sorted(shared)
        for carveout in carveouts
    ]
