"""Shared-memory configurations, and the rules that pick one.

A first launch with a carveout sets the configuration of every SM. A second one, without, enters
only if two of its blocks fit that configuration: the largest block that enters measures it.
"""

from __future__ import annotations

import numpy as np

from tbsched.calibration.asking import whole_gpu
from tbsched.calibration.asking.choices import Choices, by_elimination
from tbsched.calibration.asking.lab import Lab, NotTold, small
from tbsched.calibration.draft import draft
from tbsched.calibration.finding import Finding, Found, assumed, told
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.sequence import Launch, Sequence

_PATH = "allocation.shared_memory_configurations"
_KILOBYTE = 1024
_CHOICES: Choices = {
    "shared_memory_configuration": (True, False),
    "configuration_per_tpc": (True, False),
    "configuration_headroom": (True, False),
    "explicit_carveout_is_upper_bound": (True, False),
    "carveout_counts_blocks": (True, False),
}


def ask_sizes(lab: Lab, found: Found) -> list[Finding]:
    """Every size that a carveout of 0 to 100 sets, for first blocks of few and of many warps."""
    spec = draft(found)
    largest = spec.shared_memory_configurations[-1]
    if found.notes["sizes"] != [largest]:
        raise NotTold("the largest size is not known")
    second = _warps_of_two(spec)
    bounds: dict[tuple[int, int], tuple[int, int]] = {}

    def size(warps: int, carveout: int) -> tuple[int, int]:
        if (warps, carveout) not in bounds:
            bounds[warps, carveout] = _measured(lab, spec, warps, carveout, second)
        return bounds[warps, carveout]

    def between(warps: int, low: int, high: int) -> None:
        """Sizes grow with the carveout: where both ends are alike, so is all between them."""
        if size(warps, low) == size(warps, high) or high - low < 2:
            return
        middle = (low + high) // 2
        between(warps, low, middle)
        between(warps, middle, high)

    for warps in (1, 16, 24):
        if warps + second <= spec.warps_per_sm:
            between(warps, 0, 100)
    # Blocks with a little shared memory may set a smaller one than any without.
    little = _measured(lab, spec, 1, 0, second, spec.shared_memory_unit)
    return [read_sizes(set(bounds.values()), largest, little)]


def _warps_of_two(spec: DeviceSpec) -> int:
    """Of a block of which two, but not three, fit an SM for want of warp slots."""
    most = min(32, spec.threads_per_block // 32)
    fit = [w for w in range(1, most + 1) if spec.warps_per_sm // w == 2]
    if not fit:
        raise NotTold("no number of warps lets two blocks fill an SM")
    return fit[0]


def _measured(
    lab: Lab, spec: DeviceSpec, warps: int, carveout: int, second: int, shared: int = 0
) -> tuple[int, int]:
    """The least and the most that the SMs may be configured to."""
    unit, reserve = spec.shared_memory_unit, spec.shared_memory_reserve
    first = small(warps, shared_memory=shared, blocks=lab.sms, carveout=carveout)

    def enters(units: int) -> bool:
        other = small(second, shared_memory=units * unit, carveout=None)
        (trace,) = lab.run([Sequence([first, other])])
        if trace[0].placed < lab.sms:
            raise NotTold("the first launch did not find room on every SM")
        return trace[1].placed == 1

    half = spec.shared_memory_configurations[-1] // 2
    most = min(half - reserve, spec.shared_memory_per_block) // unit
    if not enters(0):
        return 0, 2 * reserve - 1
    units = lab.largest(enters, 0, most)
    if units == most:
        largest = spec.shared_memory_configurations[-1]
        is_half = (most + 1) * unit + reserve > half
        return (largest if is_half else 2 * (most * unit + reserve)), largest
    return 2 * (units * unit + reserve), 2 * ((units + 1) * unit + reserve) - 1


def read_sizes(bounds: set[tuple[int, int]], largest: int, little: tuple[int, int]) -> Finding:
    """From the bounds of each size; a size is whole kilobytes, which is taken for granted.

    ``little`` are those of the size that a block with a little shared memory sets.
    """
    sizes, vague = {largest}, []
    for low, high in sorted(bounds | {little}):
        whole = range(-(-low // _KILOBYTE), high // _KILOBYTE + 1)
        if len(whole) == 1:
            sizes.add(whole[0] * _KILOBYTE)
        elif low < high:  # else it is the largest
            vague.append(f"{low} to {high}")
    ascending = tuple(sorted(sizes))
    if vague:
        because = f"others are somewhere in {'; '.join(vague)} bytes"
        return assumed(_PATH, ascending, because)
    if len(sizes) == 1:
        return assumed(_PATH, ascending, "no carveout sets another size than the largest")
    because = "the sizes that carveouts of 0 to 100 set, in whole kilobytes"
    if little[0] < min(low for low, _ in bounds):
        return assumed(_PATH, ascending, f"{because}; there may be more small ones")
    return told(_PATH, ascending, because)


def ask_rules(lab: Lab, found: Found) -> list[Finding]:
    """Launches with carveouts of all kinds beside others, by elimination."""
    spec = draft(found)
    if len(spec.shared_memory_configurations) < 2:
        raise NotTold("only one size is known")
    choices = dict(_CHOICES)
    if not found.is_told("sms_per_tpc"):
        choices["sms_per_tpc"] = tuple(n for n in (2, 1, 3, 4) if n <= lab.sms)
    launches = _launches(spec)

    def drawn(rng: np.random.Generator) -> Sequence:
        return whole_gpu.draw(rng, launches, lab.sms)

    return by_elimination(lab, found, spec, choices, drawn, whole_gpu.VIEW, seed=3)


def _launches(spec: DeviceSpec) -> list[Launch]:
    """Of a few warps and sizes, with none, small and large carveouts."""
    sizes = spec.shared_memory_configurations
    most = spec.shared_memory_per_block
    shared = {0, 1, 1024, min(3072, most), min(8192, most)}
    shared |= {min(max(size // 2 - spec.shared_memory_reserve, 0), most) for size in sizes}
    shared |= {min(max(size // 3 - spec.shared_memory_reserve, 0), most) for size in sizes}
    warps = [w for w in (1, 2, 4, 8, 16) if 32 * w <= spec.threads_per_block]
    # The share of each size, in per cent: around it the rules differ.
    shares = {100 * size // sizes[-1] for size in sizes}
    carveouts = [None, None, 0, 25, 50, 60, 75, 100, *sorted(shares)]
    return [
        small(w, shared_memory=size, carveout=carveout)
        for w in warps
        for size in sorted(shared)
        for carveout in carveouts
    ]
