"""Launches with other settings: carveouts, grids, registers, cooperative, or loaded early."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tbsched.advice.together.budget import largest
from tbsched.advice.together.fixes.fix import Fix, Unproved, each_and_all
from tbsched.advice.together.given import name_of, to_launch, with_blocks
from tbsched.advice.together.greatest import greatest_holding
from tbsched.counting import listed
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.program_device import MAX_CONNECTIONS

_REGISTER_UNIT = 8  # allocation unit of the registers of a thread
_MIN_REGISTERS = 24  # registers of a thread


def carveout(unproved: Unproved) -> Iterator[Fix]:
    """Yields fixes with another carveout for one launch, then for all, the smallest first."""
    launches = unproved.problem.launches
    for numbers in each_and_all(range(len(launches))):
        for value in _carveouts_of(unproved.problem.spec):
            changes = {number: replace(launches[number], carveout=value) for number in numbers}
            if any(launches[number] != launch for number, launch in changes.items()):
                who = name_of(launches, numbers[0]) if len(numbers) == 1 else "every kernel"
                yield unproved.changed("carveout", f"a carveout of {value} % for {who}", changes)


def _carveouts_of(spec: DeviceSpec) -> list[int]:
    """Returns the smallest carveout, in per cent, that selects each configuration of an SM."""
    if not spec.mechanisms.shared_memory_configuration:
        return []
    largest = spec.shared_memory_configurations[-1]
    sizes = spec.shared_memory_configurations
    return sorted({min(100, -(-100 * size // largest)) for size in sizes} | {0})


def cooperative(unproved: Unproved) -> Iterator[Fix]:
    """Yields fixes that make launches of groups cooperative: all blocks start at once."""
    problem = unproved.problem
    launches = problem.launches
    for numbers in each_and_all(k for k in problem.members if not launches[k].cooperative):
        alone = len(numbers) == 1
        what = to_launch(launches, numbers) if alone else "launch every kernel of a group"
        changes = {number: replace(launches[number], cooperative=True) for number in numbers}
        text = f"{what} with cudaLaunchCooperativeKernel"
        yield unproved.changed("cooperative", text, changes)


def loading(unproved: Unproved) -> Iterator[Fix]:
    """Yields fixes that load kernels before their first use."""
    launches = unproved.problem.launches
    for numbers in each_and_all(k for k, launch in enumerate(launches) if launch.first_use):
        names = listed(name_of(launches, number) for number in numbers)
        text = f"load {names} before (CUDA_MODULE_LOADING=EAGER, or cudaFuncGetAttributes)"
        changes = {number: replace(launches[number], first_use=False) for number in numbers}
        yield unproved.changed("loading", text, changes)


def set_up(unproved: Unproved) -> Iterator[Fix]:
    """Yields fixes with more hardware queues, or with enough local memory set up."""
    problem = unproved.problem
    spec = problem.spec
    if spec.hardware_queues < MAX_CONNECTIONS:
        more = replace(spec, hardware_queues=MAX_CONNECTIONS)
        text = f"CUDA_DEVICE_MAX_CONNECTIONS={MAX_CONNECTIONS}"
        yield replace(unproved.changed("set_up", text, {}), device=more)
    local = max(launch.local_memory for launch in problem.launches)
    if local > spec.local_memory_initial:
        more = replace(spec, local_memory_initial=local)
        text = f"cudaDeviceSetLimit(cudaLimitStackSize, {local}) before the first launch"
        yield replace(unproved.changed("set_up", text, {}), device=more)


def grid(unproved: Unproved) -> Iterator[Fix]:
    """Yields at most one fix: a smaller grid for the launch that loses the smallest share of its
    blocks by it."""
    problem = unproved.problem
    options = []
    for number, launch in enumerate(problem.launches):
        blocks = largest(problem, number, launch.blocks - launch.cluster, unproved.solved_by)
        if blocks:
            options.append((blocks / launch.blocks, number, blocks))
    if options:
        _, number, blocks = max(options, key=lambda row: row[0])
        launch = problem.launches[number]
        name = name_of(problem.launches, number)
        text = f"at most {blocks} blocks for {name}, not {launch.blocks}"
        yield unproved.changed("grid", text, {number: with_blocks(launch, blocks)})


def registers(unproved: Unproved) -> Iterator[Fix]:
    """Yields at most one fix: fewer registers for the launch that must give up the fewest."""
    problem = unproved.problem
    options = []
    for number, launch in enumerate(problem.launches):
        most = _max_registers(unproved, number)
        if most is not None:
            options.append((launch.registers - most, number, most))
    if options:
        _, number, most = min(options)
        launch = problem.launches[number]
        name = name_of(problem.launches, number)
        text = f"at most {most} registers per thread for {name}, not {launch.registers}"
        text += " (__launch_bounds__, -maxrregcount)"
        yield unproved.changed("registers", text, {number: replace(launch, registers=most)})


def _max_registers(unproved: Unproved, number: int) -> int | None:
    """Returns the most registers per thread with which the problem is safe; None: none."""
    launch = unproved.problem.launches[number]

    def safe(steps: int) -> bool:
        """Returns whether the problem is proved safe with this many units of registers."""
        fewer = replace(launch, registers=steps * _REGISTER_UNIT)
        return unproved.solved_by(unproved.problem.with_launch(number, fewer))

    low, high = _MIN_REGISTERS // _REGISTER_UNIT, (launch.registers - 1) // _REGISTER_UNIT
    if high < low or not safe(low):
        return None
    return greatest_holding(low, high, safe) * _REGISTER_UNIT
