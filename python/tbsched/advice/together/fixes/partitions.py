"""SMs of their own, by green contexts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

from tbsched.advice.together.fixes.fix import Fix, Unproved
from tbsched.advice.together.given import name_of
from tbsched.advice.together.problem import Problem
from tbsched.counting import counted
from tbsched.hardware.partitions import split_sms
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.partition import Partition


def partition(unproved: Unproved) -> Iterator[Fix]:
    """Yields fixes that keep one launch on a part of the SMs, and the others on the rest.

    The launches of a group run whole, or not at all. So the part is the smallest one, unless it or
    the rest slows down launches of no group: those get as many SMs as can be.
    """
    problem = unproved.problem
    launches = problem.launches
    if len(launches) < 2 or any(launch_.partition is not None for launch_ in launches):
        return
    splits = itertools.product(_splits(problem.spec), range(len(launches)))
    for (part, rest), number in sorted(splits, key=lambda split: -_sms_for_others(problem, *split)):
        launch = launches[number]
        changes = {
            other: replace(launch_, partition=part if other == number else rest)
            for other, launch_ in enumerate(launches)
        }
        name = name_of(launches, number)
        text = f"keep {name} on {counted(len(part), 'SM')} and the others on the other {len(rest)}"
        text += " (green contexts)"
        if launch.blocks <= len(part) * problem.spec.blocks_per_sm:
            yield unproved.changed("partition", text, changes)


def _sms_for_others(problem: Problem, split: tuple[Partition, Partition], number: int) -> int:
    """Returns the fewest SMs that a launch of no group keeps if one launch gets a part."""
    part, rest = split
    others = set(range(len(problem.launches))) - set(problem.members)
    return min((len(part if other == number else rest) for other in others), default=0)


def _splits(spec: DeviceSpec) -> Iterator[tuple[Partition, Partition]]:
    """Yields pairs of partitions, a group of SMs and the rest of the SMs, by the size of the
    group.
    """
    if not spec.gpcs or not spec.coscheduled_sms:
        return
    sizes = set()
    for sms in range(spec.coscheduled_sms, spec.sms, spec.coscheduled_sms):
        groups, rest = split_sms(spec, sms, groups=1)
        if groups and rest and len(groups[0]) not in sizes:
            sizes.add(len(groups[0]))
            yield groups[0], rest
