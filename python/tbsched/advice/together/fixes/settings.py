"""Launches with other settings: carveouts, grids, registers, cooperative, or loaded early."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tbsched.advice.together.budget import largest
from tbsched.advice.together.fixes.fix import Fix, Unproved, each_and_all
from tbsched.advice.together.given import called, to_launch, with_blocks
from tbsched.advice.together.greatest import greatest
from tbsched.counting import listed
from tbsched.hardware.spec import DeviceSpec

_MOST_CONNECTIONS = 32  # that CUDA_DEVICE_MAX_CONNECTIONS allows
_STEP = 8  # allocation unit of the registers of a thread
_FEWEST = 24  # registers of a thread


def carveout(unproved: Unproved) -> Iterator[Fix]:
    """Yields other carveouts for one launch, then for all; the least shared memory first."""
    launches = unproved.problem.launches
    for numbers in each_and_all(range(len(launches))):
        for value in _carveouts_of(unproved.problem.spec):
            changes = {number: replace(launches[number], carveout=value) for number in numbers}
            if any(launches[number] != one for number, one in changes.items()):
                who = called(launches, numbers[0]) if len(numbers) == 1 else "every kernel"
                yield unproved.changed("carveout", f"a carveout of {value} % for {who}", changes)


def _carveouts_of(spec: DeviceSpec) -> list[int]:
    """Returns the smallest carveout, in per cent, that selects each configuration of an SM."""
    if not spec.mechanisms.shared_memory_configuration:
        return []
    largest = spec.shared_memory_configurations[-1]
    sizes = spec.shared_memory_configurations
    return sorted({min(100, -(-100 * size // largest)) for size in sizes} | {0})


def cooperative(unproved: Unproved) -> Iterator[Fix]:
    """Yields cooperative launches, of which all blocks start at once, for groups."""
    problem = unproved.problem
    launches = problem.launches
    for numbers in each_and_all(k for k in problem.members if not launches[k].cooperative):
        alone = len(numbers) == 1
        what = to_launch(launches, numbers) if alone else "launch every kernel of a group"
        changes = {number: replace(launches[number], cooperative=True) for number in numbers}
        text = f"{what} with cudaLaunchCooperativeKernel"
        yield unproved.changed("cooperative", text, changes)


def loading(unproved: Unproved) -> Iterator[Fix]:
    """Yields early loading of kernels that are loaded at their first use."""
    launches = unproved.problem.launches
    for numbers in each_and_all(k for k, one in enumerate(launches) if one.first_use):
        names = listed(called(launches, number) for number in numbers)
        text = f"load {names} before (CUDA_MODULE_LOADING=EAGER, or cudaFuncGetAttributes)"
        changes = {number: replace(launches[number], first_use=False) for number in numbers}
        yield unproved.changed("loading", text, changes)


def set_up(unproved: Unproved) -> Iterator[Fix]:
    """Yields more hardware queues, or the local memory that some kernel needs."""
    problem = unproved.problem
    spec = problem.spec
    if spec.hardware_queues < _MOST_CONNECTIONS:
        more = replace(spec, hardware_queues=_MOST_CONNECTIONS)
        text = f"CUDA_DEVICE_MAX_CONNECTIONS={_MOST_CONNECTIONS}"
        yield replace(unproved.changed("set_up", text, {}), device=more)
    local = max(one.local_memory for one in problem.launches)
    if local > spec.local_memory_initial:
        more = replace(spec, local_memory_initial=local)
        text = f"cudaDeviceSetLimit(cudaLimitStackSize, {local}) before the first launch"
        yield replace(unproved.changed("set_up", text, {}), device=more)


def grid(unproved: Unproved) -> Iterator[Fix]:
    """Yields a smaller grid for the launch that loses the smallest part of its blocks."""
    problem = unproved.problem
    found = []
    for number, launch in enumerate(problem.launches):
        blocks = largest(problem, number, launch.blocks - launch.cluster, unproved.solved_by)
        if blocks:
            found.append((blocks / launch.blocks, number, blocks))
    if found:
        _, number, blocks = max(found, key=lambda row: row[0])
        launch = problem.launches[number]
        name = called(problem.launches, number)
        text = f"at most {blocks} blocks for {name}, not {launch.blocks}"
        yield unproved.changed("grid", text, {number: with_blocks(launch, blocks)})


def registers(unproved: Unproved) -> Iterator[Fix]:
    """Yields fewer registers for the launch that has to give up least."""
    problem = unproved.problem
    found = []
    for number, launch in enumerate(problem.launches):
        most = _most_registers(unproved, number)
        if most is not None:
            found.append((launch.registers - most, number, most))
    if found:
        _, number, most = min(found)
        launch = problem.launches[number]
        name = called(problem.launches, number)
        text = f"at most {most} registers per thread for {name}, not {launch.registers}"
        text += " (__launch_bounds__, -maxrregcount)"
        yield unproved.changed("registers", text, {number: replace(launch, registers=most)})


def _most_registers(unproved: Unproved, number: int) -> int | None:
    """Returns the most registers per thread with which the problem is safe; None: none."""
    launch = unproved.problem.launches[number]

    def safe(steps: int) -> bool:
        fewer = replace(launch, registers=steps * _STEP)
        return unproved.solved_by(unproved.problem.with_launch(number, fewer))

    low, high = _FEWEST // _STEP, (launch.registers - 1) // _STEP
    if high < low or not safe(low):
        return None
    return greatest(low, high, safe) * _STEP
