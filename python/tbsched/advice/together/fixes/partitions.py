"""SMs of their own, by green contexts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tbsched.advice.together.fixes.fix import Fix, Unproved
from tbsched.advice.together.given import called
from tbsched.hardware.partitions import split_sms
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.partition import Partition


def partition(unproved: Unproved) -> Iterator[Fix]:
    """One launch in a part of the SMs, the others in the rest; the smallest part first."""
    problem = unproved.problem
    launches = problem.launches
    if len(launches) < 2 or any(one.partition is not None for one in launches):
        return
    for part, rest in _splits(problem.spec):
        for number, launch in enumerate(launches):
            changes = {
                other: replace(one, partition=part if other == number else rest)
                for other, one in enumerate(launches)
            }
            name = called(launches, number)
            text = f"keep {name} on {len(part)} SMs and the others on the other {len(rest)}"
            text += " (green contexts)"
            if launch.blocks <= len(part) * problem.spec.blocks_per_sm:
                yield unproved.changed("partition", text, changes)


def _splits(spec: DeviceSpec) -> Iterator[tuple[Partition, Partition]]:
    """A group of SMs and what it leaves, by the size of the group."""
    if not spec.gpcs or not spec.coscheduled_sms:
        return
    sizes = set()
    for sms in range(spec.coscheduled_sms, spec.sms, spec.coscheduled_sms):
        groups, rest = split_sms(spec, sms, groups=1)
        if groups and rest and len(groups[0]) not in sizes:
            sizes.add(len(groups[0]))
            yield groups[0], rest
