"""The largest grid of a persistent kernel beside a program of several GPUs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tbsched.advice.together.capacity import capacity
from tbsched.advice.together.given import with_blocks
from tbsched.advice.together.greatest import greatest_holding
from tbsched.advice.together.problem import deadline_in
from tbsched.advice.together.ranks.coresident import Devices, SafetyCheck
from tbsched.advice.together.ranks.room import check_launches, on_own_stream_and_gpu
from tbsched.advice.together.ranks.work import LaunchOrder, work_of
from tbsched.hardware.catalogue import device as find_device
from tbsched.prediction.model import policy_of
from tbsched.prediction.program_device import with_connections
from tbsched.prediction.together.ended_work import finds_room
from tbsched.prediction.together.search import MAX_PLAYS
from tbsched.program.checks import instance, integer
from tbsched.program.sequence import Launch, Sequence
from tbsched.progress import pulse

_KERNEL = "\0 the kernel"  # a group of its own; no group of a program has a name like this


def budget_ranks(
    launch: Launch, devices: Devices, *, beside: Iterable[Launch] | Sequence, policy: str | None,
    plays: int, seconds: float | None,
) -> int | None:  # fmt: skip
    """Returns the largest grid: :func:`tbsched.budget` with a list of devices. Raises TypeError or
    ValueError: as that."""
    instance("budget", "launch", launch, Launch)
    if not devices:
        raise ValueError("budget.device: a device is needed, got none")
    specs = tuple(with_connections("budget", find_device(device), None) for device in devices)
    sequence = instance("budget", "beside", beside, Sequence)
    for name, gpu in (("launch", launch.gpu), ("beside", sequence.gpus - 1)):
        if gpu >= len(specs):
            raise ValueError(
                f"budget.{name}: GPU {gpu} is needed, but there are {len(specs)} devices"
            )
    if launch.meets is not None:
        raise ValueError(
            f"budget.launch: Launch.meets is {launch.meets!r}; the grid of a kernel that meets "
            "others is among the fixes of coresident"
        )
    if not any(launch_.meets for launch_ in sequence.launches):
        raise ValueError("budget.beside: no launch meets another; Launch(meets=name) says which do")
    check_launches("budget.beside", sequence, specs, policy)
    hosts = [launch_.host for launch_ in sequence.launches if launch_.gpu == launch.gpu]
    host = hosts[0] if hosts else launch.host
    kernel = replace(launch, host=host, stream=None, duration=0.0)  # its time does not matter
    spec = specs[launch.gpu]
    alone = replace(kernel, gpu=0, host=0, duration=None)
    spec.check(Sequence([with_blocks(alone, alone.cluster)]))
    most = capacity(alone, spec, policy=policy).blocks // launch.cluster
    asking = SafetyCheck(
        specs, (), policy_of(spec, policy) if policy else None,
        integer("budget", "plays", plays, 0, MAX_PLAYS), deadline_in("budget", seconds),
    )  # fmt: skip

    def safe(clusters: int) -> bool:
        """Returns whether a grid of so many blocks is safe."""
        launch_ = with_blocks(kernel, clusters * launch.cluster)
        works = (_with_kernel(sequence, launch_, asking, stays) for stays in (True, False))
        return _others_surely_run(asking, sequence, launch_) and all(
            _surely_ends(asking, work) for work in works
        )

    with pulse("looking for the largest grid"):
        return greatest_holding(0, most, safe) * launch.cluster or None


def _others_surely_run(asking: SafetyCheck, sequence: Sequence, kernel: Launch) -> bool:
    """Returns whether launches that meet no other are proved to run while the kernel stays."""
    spec = asking.specs[kernel.gpu]
    policy = policy_of(spec, asking.policy)
    on_gpu = [launch for launch in sequence.launches if launch.gpu == kernel.gpu]
    ending = [on_own_stream_and_gpu(other, number) for number, other in enumerate(on_gpu)]
    for other in on_gpu:
        if other.meets is None or other.in_block_order:
            part = other if other.cooperative else with_blocks(other, other.cluster)
            staying = [on_own_stream_and_gpu(each, len(on_gpu)) for each in (kernel, part)]
            if spec.resident_grids == 1 or not finds_room(staying, ending, spec, policy):
                return False
    return True


def _surely_ends(check: SafetyCheck, work: LaunchOrder) -> bool:
    """Returns whether a program is proved to end, but for the kernel that stays."""
    standstills, why = check.standstills_of(work)
    return not why and all(standstill.groups == {_KERNEL} for standstill in standstills)


def _with_kernel(
    sequence: Sequence, kernel: Launch, asking: SafetyCheck, stays: bool
) -> LaunchOrder:
    """Returns the launches of the program and their order, with a kernel added that arrives at any
    time. ``stays``: whether it ends only after everything else."""
    work = work_of(Sequence([kernel, *sequence]), asking.specs)
    rest = (1 << len(work.launches)) - 2
    launches, before, groups = work.launches, work.ended_before, dict(work.groups)
    earlier = [0, *(mask & rest for mask in work.arrived_before[1:])]
    if stays:
        # It meets one block that comes when all else has ended.
        last = Launch(1, 32, 16, gpu=kernel.gpu, host=kernel.host, meets=_KERNEL, duration=0.0)
        groups[_KERNEL] = 1 | 1 << len(launches)
        launches = (replace(kernel, meets=_KERNEL), *launches[1:], last)
        before, earlier = (*before, rest), [*earlier, 0]
    return LaunchOrder(launches, before, tuple(earlier), groups, work.unseen)
