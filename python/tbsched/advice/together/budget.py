"""The largest grid that is sure to be resident."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace

from tbsched.advice.together.capacity import capacity
from tbsched.advice.together.given import only_launches_of, with_blocks
from tbsched.advice.together.problem import Problem, deadline_in, proved
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.model import policy_of
from tbsched.prediction.together.search import MAX_PLAYS, PLAYS
from tbsched.program.checks import instance, integer
from tbsched.program.sequence import Launch, Sequence
from tbsched.progress import pulse


def budget(
    launch: Launch,
    device: str | os.PathLike[str] | DeviceSpec,
    *,
    beside: Iterable[Launch] | Sequence = (),
    policy: str | None = None,
    plays: int = PLAYS,
    seconds: float | None = None,
) -> int:
    """The largest grid of a persistent kernel with which it and the others are sure to start.

    Sure means: in every order of arrival, from every latent state of the GPU, and whichever blocks
    of the other kernels stay or leave (:func:`coresident`), all blocks of each kernel become
    resident. The answer is a number of blocks, in whole clusters. It has been searched itself, so
    it is safe. A larger one may be, too, where a grid is safe although a smaller one is not.

    Args:
        launch: the kernel; its own number of blocks does not matter.
        beside: the other kernels. Their blocks may arrive and leave at any time.
        device, policy: as for :func:`tbsched.predict`.
        plays: as for :func:`coresident`, for each grid that is tried.
        seconds: after so many, grids that are not proved yet count as not sure; None is never.

    Returns:
        Blocks; 0 if no grid is sure to be resident.

    Raises:
        TypeError, ValueError: a launch that the device refuses.

    Example:
        >>> others = [tb.Launch(24, 512, 96, name="communication")]
        >>> tb.budget(tb.Launch(1, 384, 168, name="gemm"), "h200", beside=others)
        108
    """
    spec = find_device(device)
    others = only_launches_of("budget", "beside", beside)
    instance("budget", "launch", launch, Launch)
    integer("budget", "plays", plays, 0, MAX_PLAYS)
    most = capacity(launch, spec, policy=policy).blocks
    launches = (*others, with_blocks(launch, launch.cluster))
    problem = Problem(
        spec, policy_of(spec, policy), launches, ((len(others),),), plays=plays,
        deadline=deadline_in("budget", seconds),
    )  # fmt: skip
    with pulse("looking for the largest grid"):
        found = largest(problem, len(others), most, _all_start)
        if not found:
            _all_start(problem)  # raises if the device refuses a launch whatever its grid
    return found


def _all_start(problem: Problem) -> bool:
    """Returns whether each launch is proved to start whole, whatever the others do."""
    alone = (replace(problem, groups=((k,),)) for k in reversed(range(len(problem.launches))))
    return all(proved(one) for one in alone)


def largest(problem: Problem, number: int, most: int, proves: Callable[[Problem], bool]) -> int:
    """Returns the most blocks, up to ``most``, with which the problem is safe; 0: none."""
    launch = problem.launches[number]

    def safe(clusters: int) -> bool:
        one = with_blocks(launch, clusters * launch.cluster)
        try:
            return proves(problem.with_launch(number, one))
        except ValueError:  # more than the driver lets a cooperative launch have
            return False

    low, high = 0, most // launch.cluster  # safe or 0, and the upper bound
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if safe(middle) else (low, middle - 1)
    return low * launch.cluster
