"""Other carveouts, so that SMs are configured for all kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tbsched.advice.together.fixes.fix import Fix, Unproved
from tbsched.advice.together.given import called
from tbsched.hardware.spec import DeviceSpec


def carveout(unproved: Unproved) -> Iterator[Fix]:
    """Yields other carveouts for one launch, then for all; the least shared memory first."""
    launches = unproved.problem.launches
    everyone = list(range(len(launches)))
    for numbers in (*([number] for number in everyone), everyone):
        for value in carveouts_of(unproved.problem.spec):
            changes = {number: replace(launches[number], carveout=value) for number in numbers}
            if all(launches[number] == one for number, one in changes.items()):
                continue
            who = called(launches, numbers[0]) if len(numbers) == 1 else "every kernel"
            yield unproved.changed("carveout", f"a carveout of {value} % for {who}", changes)


def carveouts_of(spec: DeviceSpec) -> list[int]:
    """Returns the smallest carveout, in per cent, that selects each configuration of an SM."""
    if not spec.mechanisms.shared_memory_configuration:
        return []
    largest = spec.shared_memory_configurations[-1]
    sizes = spec.shared_memory_configurations
    return sorted({min(100, -(-100 * size // largest)) for size in sizes} | {0})
