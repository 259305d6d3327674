"""The largest grid that is sure to be resident."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from tbsched.advice.together.beside.operations import check_events
from tbsched.advice.together.capacity import capacity
from tbsched.advice.together.deciding import decide, proved
from tbsched.advice.together.given import has_other_work, launches_of, with_blocks
from tbsched.advice.together.greatest import greatest_holding
from tbsched.advice.together.problem import Problem, deadline_in
from tbsched.advice.together.ranks.budget import budget_ranks
from tbsched.advice.together.ranks.coresident import Devices
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.model import policy_of
from tbsched.prediction.together.search import MAX_PLAYS, PLAYS
from tbsched.program.checks import instance, integer
from tbsched.program.sequence import Launch, Sequence, check_streams
from tbsched.progress import pulse


def budget(
    launch: Launch,
    device: str | os.PathLike[str] | DeviceSpec | Devices,
    *,
    beside: Iterable[Launch] | Sequence = (),
    policy: str | None = None,
    plays: int = PLAYS,
    seconds: float | None = None,
) -> int | None:
    """Returns the largest grid of a persistent kernel with which all are sure to start.

    Sure means: in every order of arrival, from every latent state of the GPU, and whichever blocks
    of the other kernels stay or leave, all blocks of each kernel become resident. The others are
    background kernels here. Where kernels wait for each other, blocks cannot leave before all have
    started, and more blocks may be safe: :func:`coresident` answers that, and its fixes have the
    largest grid.

    The answer is a number of blocks, in whole clusters. It is proved. A larger one may be safe,
    too: one that is not proved, or one that is safe although a smaller one is not.

    With a list of devices, ``beside`` is a program of several GPUs whose launches meet by name, and
    the kernel runs on one of them, ``launch.gpu``. Its grid is so small that the program ends,
    however late each rank is, whenever the kernel arrives, and whether it ends at any time or only
    after everything else.

    Args:
        launch: the kernel; its own number of blocks does not matter.
        beside: the other kernels. Their blocks may arrive and leave at any time. A
            :class:`Sequence` may do more than launch, as for :func:`coresident`; the kernel is
            then called by host 0, behind all of it.
        device, policy: as for :func:`tbsched.predict`; or a list of devices, one for each GPU.
        plays: as for :func:`coresident`, for each grid that is tried.
        seconds: after so many, no further grid is proved; None is never.

    Returns:
        Blocks; 0 if one cluster is already too many, and None if no grid is proved and it is not
        known whether one is safe. With a list of devices never 0: it may not be known.

    Raises:
        TypeError, ValueError: a launch that the device refuses.

    Example:
        >>> others = [tb.Launch(24, 512, 96, name="communication")]
        >>> tb.budget(tb.Launch(1, 384, 168, name="gemm"), "h200", beside=others)
        108
        >>> program = tb.Sequence(
        ...     tb.Launch(24, 544, 96, gpu=k, host=k, meets="reduce", duration=1e-4) for k in (0, 1)
        ... )
        >>> tb.budget(tb.Launch(1, 384, 168), ["h200", "h200"], beside=program)
        108
    """
    if isinstance(device, list | tuple):
        return budget_ranks(
            launch, device, beside=beside, policy=policy, plays=plays, seconds=seconds
        )
    spec = find_device(device)
    others = launches_of("budget", "beside", beside)
    instance("budget", "launch", launch, Launch)
    around = None
    if isinstance(beside, Sequence) and has_other_work(beside):
        check_events("budget.beside", beside)
        launch = replace(launch, duration=launch.duration or 0.0)
        around = Sequence([*beside, launch])
    named = [(f"budget.beside[{k}]", other) for k, other in enumerate(others)]
    check_streams([*named, ("budget.launch", launch)])
    integer("budget", "plays", plays, 0, MAX_PLAYS)
    most = capacity(launch, spec, policy=policy).blocks
    launches = (*others, with_blocks(launch, launch.cluster))
    problem = Problem(
        spec, policy_of(spec, policy), launches, ((len(others),),), plays=plays,
        deadline=deadline_in("budget", seconds), around=around,
    )  # fmt: skip
    with pulse("looking for the largest grid"):
        found = largest(
            problem, len(others), most, lambda one: all(map(proved, _one_group_each(one)))
        )
        is_known = found or any(decide(one).safe is False for one in _one_group_each(problem))
        return found if is_known else None


def _one_group_each(problem: Problem) -> Iterator[Problem]:
    """Yields the problem once for each launch, with the others as background kernels."""
    for number in reversed(range(len(problem.launches))):
        yield replace(problem, groups=((number,),))


def largest(problem: Problem, number: int, most: int, proves: Callable[[Problem], bool]) -> int:
    """Returns the most blocks, up to ``most``, with which a launch is proved safe; 0: none."""
    launch = problem.launches[number]

    def safe(clusters: int) -> bool:
        """Returns whether a grid of some clusters is proved safe."""
        smaller = with_blocks(launch, clusters * launch.cluster)
        try:
            return proves(problem.with_launch(number, smaller))
        except ValueError:  # more than the driver lets a cooperative launch have
            return False

    return greatest_holding(0, most // launch.cluster, safe) * launch.cluster
