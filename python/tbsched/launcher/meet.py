"""Runs launches whose blocks wait for each other on a real GPU, and says whether they met."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from collections.abc import Sequence as ListOf
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TypeAlias

from tbsched.errors import DeadlineExceeded, UnstableMeasurement, shown
from tbsched.launcher.observe import Asked, Gpu, Groups, opened
from tbsched.program.checks import integer, items, seconds
from tbsched.program.sequence import Launch, Release, Sequence
from tbsched.shown import Shown
from tbsched.traces.annotations import meetings
from tbsched.traces.trace import Trace

LIMIT = 0.002  # seconds
MAX_LIMIT = 10.0
GroupsAsked: TypeAlias = ListOf[ListOf[int]] | None
TimesAsked: TypeAlias = ListOf[float] | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Meeting(Shown):
    """What :func:`meet` found; true where every group has met.

    Attributes:
        trace: where the blocks went, as :func:`observe` gives it. Its keys ``groups`` and ``met``
            go into a trace file with it.
        groups: the numbers of the launches of each group.
        met: of each group, whether all its blocks have met. If not, it hangs: some of its blocks
            never came, and the others would wait for them for ever.

    Example:
        >>> schedulers, workers = tb.Launch(16, 128, 32), tb.Launch(128, 256, 168, 100 * 1024)
        >>> found = tb.meet(tb.Sequence([schedulers, workers]))  # doctest: +SKIP
        >>> found.met, found.missing  # doctest: +SKIP
        ((False,), {1: 12})
    """

    trace: Trace
    groups: Groups
    met: tuple[bool, ...]

    @property
    def missing(self) -> dict[int, int]:
        """Returns how many blocks never came, by launches of groups that hang.

        Example:
            >>> tb.meet(tb.Sequence([tb.Launch(132, 1024, 32)])).missing  # doctest: +SKIP
            {}
        """
        counts: dict[int, int] = {}
        for group, has_met in zip(self.groups, self.met, strict=True):
            for launch in () if has_met else group:
                final = self.trace[launch].final_smid
                assert final is not None
                if (final < 0).any():
                    counts[launch] = int((final < 0).sum())
        return counts

    def __bool__(self) -> bool:
        return all(self.met)


def meet(
    sequence: Sequence,
    groups: GroupsAsked = None,
    *,
    gpu: int | Gpu = 0,
    limit: float = LIMIT,
    deadline: float | None = None,
    issue_times: TimesAsked = None,
) -> Meeting:
    """Runs launches whose blocks wait for each other, and says whether all of them came.

    The blocks of a group have a barrier in the memory of the GPU. Each block counts itself there,
    and waits until all blocks of all launches of the group have done so. A group of one launch has
    a barrier of its whole grid. A block without a duration that has met the others stays where it
    is, so nobody's leaving makes room for another. One with a duration leaves so long after it has
    met them. Blocks of launches in no group stay until their :class:`Release`, or for their
    duration, at most to the end of the run.

    Without durations, launches are issued as :func:`observe` issues them: the next one when all
    blocks of the one before have come, or when nothing has moved for the limit. So they arrive in
    the order of the sequence. With durations, host threads issue all of it as fast as they can, or
    at the times that are given. The run ends when all groups have met, or nothing has moved for the
    limit. Launches that never get to the thread block scheduler hang, too: in the legacy stream,
    behind others in a hardware queue, for local memory.

    A run begins from the :term:`latent state` that the runs before have left;
    :meth:`Steered.meet` brings the GPU to another one first.

    Args:
        sequence: what to run.
        groups: for each group the numbers of its launches. None: all launches that are never
            released are one group.
        gpu: number of the GPU as CUDA counts them, which stays open for the next call; or an open
            ``Gpu``.
        limit: a group whose blocks have not all come hangs when nothing has moved for so many
            seconds: no launch was issued, and no block has come or gone. An eighth of it is enough
            in a sequence without durations of which every launch has started; ten times as long,
            but at most 30 ms, while a launch call has not returned.
        deadline: as for :func:`observe`.
        issue_times: when the host makes each launch call, in seconds from the beginning, ascending;
            only with durations. None: as soon as it can.

    Returns:
        A :class:`Meeting`. A group that hangs is an answer, not an error: its blocks are told to
        leave, and the GPU is free.

    Raises:
        TypeError, ValueError: a group without launches, or with a launch that is not there, is
            released, triggers or waits for memory, or is in another group; times that do not
            ascend; and what :func:`observe` refuses.
        UnstableMeasurement, SharedGpu, DeadlineExceeded, NoGpuError, CudaError: as :func:`observe`.

    Example:
        >>> schedulers, workers = tb.Launch(16, 128, 32), tb.Launch(128, 256, 168, 100 * 1024)
        >>> sequence = tb.Sequence([schedulers, workers])
        >>> print(tb.meet(sequence))  # doctest: +SKIP
        group 0 hangs: launches 0, 1; of launch 1 12 of 128 blocks never came
        >>> print(tb.meet(sequence, [[0]]))  # doctest: +SKIP
        group 0 has met: launch 0
    """
    asked = Asked(sequence, _groups(sequence, groups), _times(sequence, issue_times))
    open_gpu = gpu if isinstance(gpu, Gpu) else opened(gpu)
    outcome = open_gpu.run(asked, warp_slots=False, deadline=deadline, settle=_limit(limit))
    return _meeting(asked.groups, *outcome)


def meet_many(
    sequences: Iterable[Sequence],
    groups: Iterable[GroupsAsked] | None = None,
    *,
    gpu: int | Gpu = 0,
    limit: float = LIMIT,
    deadline: float | None = None,
    issue_times: Iterable[TimesAsked] | None = None,
) -> Generator[Meeting | UnstableMeasurement | DeadlineExceeded, None, None]:
    """Runs independent sequences one after another, as :func:`meet` runs each.

    The GPU works while the caller looks at results, as in :func:`observe_many`. Ctrl-C, any
    exception and closing the iterator release every block and drop what has not run.

    Args:
        sequences: what to run; taken as the GPU comes to them, so it may be endless.
        groups, issue_times: for each sequence what :func:`meet` takes; None is None for each.
        gpu, limit, deadline: as for :func:`meet`; the deadline is of each sequence.

    Yields:
        For each sequence, in order, its :class:`Meeting`. Where a run ended in
        :class:`UnstableMeasurement` or :class:`DeadlineExceeded`, that exception is yielded in its
        place, and the next sequence runs.

    Raises:
        TypeError, ValueError: as :func:`meet`; or there are not as many groups or times as
            sequences.
        NoGpuError, CudaError: as :func:`observe_many`.

    Example:
        >>> launches = [tb.Launch(16, 128, 32), tb.Launch(128, 256, 168, 100 * 1024)]
        >>> both = [tb.Sequence(launches), tb.Sequence(launches[::-1])]
        >>> [found.met for found in tb.meet_many(both)]  # doctest: +SKIP
        [(False,), (True,)]
    """
    open_gpu = gpu if isinstance(gpu, Gpu) else opened(gpu)
    requests = (
        Asked(seq, _groups(seq, wanted_groups), _times(seq, times))
        for seq, wanted_groups, times in _with_groups_and_times(sequences, groups, issue_times)
    )
    with closing(
        open_gpu.run_many(requests, warp_slots=False, deadline=deadline, settle=_limit(limit))
    ) as outcomes:
        for request, outcome, has_met in outcomes:
            yield (
                _meeting(request.groups, outcome, has_met)
                if isinstance(outcome, Trace)
                else outcome
            )


def _with_groups_and_times(
    sequences: Iterable[Sequence],
    groups: Iterable[GroupsAsked] | None,
    issue_times: Iterable[TimesAsked] | None,
) -> Iterator[tuple[Sequence, GroupsAsked, TimesAsked]]:
    """Yields each sequence with its groups and issue times; None where these are not given."""
    if groups is None and issue_times is None:
        return ((sequence, None, None) for sequence in sequences)
    if issue_times is None:
        assert groups is not None
        return ((*pair, None) for pair in zip(sequences, groups, strict=True))
    if groups is None:
        return ((seq, None, times) for seq, times in zip(sequences, issue_times, strict=True))
    return zip(sequences, groups, issue_times, strict=True)


def _meeting(groups: Groups, trace: Trace, has_met: tuple[bool, ...]) -> Meeting:
    extra = {**trace.extra, **meetings(groups, has_met)}
    return Meeting(replace(trace, extra=extra, check=False), groups, has_met)


def _limit(limit: float) -> float:
    """Returns the time limit in seconds, checked."""
    if isinstance(limit, bool) or not isinstance(limit, int | float):
        raise TypeError(f"limit: seconds are needed, got {shown(limit)}")
    if not 0 < limit <= MAX_LIMIT:
        raise ValueError(f"limit: {limit} is not more than 0 and at most {MAX_LIMIT:g} seconds")
    return float(limit)


def _groups(sequence: Sequence, wanted: GroupsAsked) -> Groups:
    """Returns the groups, checked: of launches that stay, each in one group at most."""
    if not isinstance(sequence, Sequence):
        raise TypeError(f"meet: a Sequence is needed, got {shown(sequence)}")
    released = {event.launch for event in sequence if isinstance(event, Release)}
    if wanted is None:
        staying = [n for n in range(len(sequence.launches)) if n not in released]
        wanted = [staying] if staying else []
    group_of: dict[int, int] = {}
    groups = []
    for index, listed in enumerate(items("meet", "groups", wanted)):
        group = tuple(_checked_group(sequence, index, listed))
        if not group:
            raise ValueError(f"groups[{index}]: a group needs a launch")
        for launch in group:
            if launch in released:
                raise ValueError(
                    f"groups[{index}]: launch {launch} is released; a block of a group leaves "
                    "when all have met"
                )
            if _takes_steps(sequence.launches[launch]):
                raise ValueError(
                    f"groups[{index}]: launch {launch} has a trigger or a memory_wait; leave them "
                    "out, or the launch"
                )
            if launch in group_of:
                raise ValueError(
                    f"groups[{index}]: launch {launch} is in groups[{group_of[launch]}] already"
                )
            group_of[launch] = index
        groups.append(group)
    return tuple(groups)


def _takes_steps(launch: Launch) -> bool:
    return launch.trigger is not None or launch.memory_wait is not None


def _times(sequence: Sequence, wanted: TimesAsked) -> tuple[float, ...]:
    """Returns when each launch is called; empty: as soon as possible."""
    if wanted is None:
        return ()
    times = tuple(
        seconds("meet", "issue_times", time) for time in items("meet", "issue_times", wanted)
    )
    launches = len(sequence.launches)
    if not sequence.timed:
        raise ValueError("meet.issue_times: times need launches with durations")
    if len(times) != launches:
        raise ValueError(f"meet.issue_times: {len(times)} times for {launches} launches")
    if list(times) != sorted(times) or times[-1] > MAX_LIMIT:
        raise ValueError(f"meet.issue_times: times ascend, to at most {MAX_LIMIT:g} seconds")
    return times


def _checked_group(sequence: Sequence, group_index: int, listed: ListOf[int]) -> Iterator[int]:
    """Yields the launches of a group, checked."""
    launches = len(sequence.launches)
    for launch in items("meet", f"groups[{group_index}]", listed):
        if not launches:
            raise ValueError(f"groups[{group_index}]: the sequence has no launches")
        yield integer("meet", f"groups[{group_index}]", launch, 0, launches - 1)
