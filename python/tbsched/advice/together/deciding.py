"""Decides whether launches are resident together: by the search, and above the scheduler.

The search covers the thread block scheduler alone. The stages between the host and the scheduler
can hang a program, too; `above` checks these.
"""

from __future__ import annotations

import time
from dataclasses import replace

from tbsched.advice.together.above import hang_above
from tbsched.advice.together.beside.arrival import (
    arrival,
    called_pairs,
    keeps_calls,
    launch_pairs,
    room_of_driver_kernels,
)
from tbsched.advice.together.beside.operations import Operations
from tbsched.advice.together.given import held
from tbsched.advice.together.problem import NO_PROOF, Decision, Problem, Stranding
from tbsched.prediction.predict import predict
from tbsched.prediction.recorded import held as alone
from tbsched.prediction.together.search import Question, search, witness_sequence
from tbsched.program.sequence import Release, Sequence


def decide(problem: Problem, *, only_to_prove: bool = False) -> Decision:
    """Returns whether all groups become resident in every case, with a proof or a witness. Raises
    ValueError: a launch that the device refuses."""
    work = problem.operations()
    if work is not None:
        return _decide_with_other_work(problem, work, only_to_prove)
    # A hang above the scheduler is found fast, and there is no proof then.
    first = hang_above(problem, shrinks=False) if only_to_prove else None
    if first is not None and first.stranding is not None:
        return Decision(None, plays=first.plays)
    launches, pairs = held(problem.launches)
    question = Question(
        launches, problem.groups, (*problem.after, *pairs), problem.plays, only_to_prove,
        problem.deadline - time.monotonic(),
    )  # fmt: skip
    found = search(problem.spec, problem.policy, question)
    if found.verdict == "unsafe":
        order = tuple([step.launch for step in found.steps if not step.leaving])
        behind = None if found.behind < 0 else found.behind
        sequence, times = witness_sequence(launches, found, problem.spec, problem.policy)
        stranding = Stranding(
            sequence, times, order, found.state, found.stranded, found.cause, behind
        )
        return Decision(False, stranding, found.plays)
    above = hang_above(problem) if first is None else first
    plays = found.plays + above.plays
    if above.stranding is not None:
        return replace(above, plays=plays)
    safe = True if found.verdict == "safe" and above.safe else None
    is_over = safe is None and problem.deadline <= time.monotonic()
    return Decision(
        safe, plays=plays, wanted="seconds" if is_over else found.wanted,
        proof=found.proof if safe else NO_PROOF, full_sms=found.full_sms,
    )  # fmt: skip


def _decide_with_other_work(problem: Problem, work: Operations, only_to_prove: bool) -> Decision:
    """Returns the same for a program with operations other than launches.

    All operations of the groups happen if the launches find room. And these find room whenever they
    arrive: the order in which they do does not matter.
    """
    first = arrival(problem, work, only_to_prove=only_to_prove)
    if first.safe is False or (first.safe is None and only_to_prove):
        return first
    found = _decide_room(problem, work, only_to_prove)
    plays = first.plays + found.plays
    if found.safe is False:
        return replace(found, plays=plays)
    kernels = [alone(launch) for launch in problem.launches]
    room = room_of_driver_kernels(work, problem.spec, problem.policy, kernels)
    why = first.why or found.why or room
    if first.safe and found.safe and not why:
        return replace(found, plays=plays)
    return Decision(None, plays=plays, why=why, wanted=found.wanted)


def _decide_room(problem: Problem, work: Operations, only_to_prove: bool) -> Decision:
    """Returns whether all launches of the groups find room, in whatever order they arrive; with a
    proof or a witness."""
    launches = tuple(alone(launch) for launch in problem.launches)
    launch_groups = (tuple(k for k in group if k < len(launches)) for group in problem.groups)
    groups = tuple(group for group in launch_groups if group)
    if not groups:
        return Decision(True, proof="played")
    pairs = launch_pairs(work, problem.spec, problem.after)
    question = replace(problem, launches=launches, groups=groups, after=pairs, around=None)
    found = decide(question, only_to_prove=only_to_prove)
    if found.stranding is None or keeps_calls(work, found.stranding.order):
        return found
    # The host calls the launches in another order. Each that is called first arrives first.
    in_call_order = decide(replace(question, after=called_pairs(work, pairs)))
    plays = found.plays + in_call_order.plays
    if in_call_order.stranding is not None and keeps_calls(work, in_call_order.stranding.order):
        return replace(in_call_order, plays=plays)
    why = "no order of the calls is known in which launches find no room, and no proof"
    return Decision(None, plays=plays, why=why)


def proved(problem: Problem, known: Stranding | None = None) -> bool:
    """Returns whether all groups are proved to become resident; ``known``: a witness to try first.

    The witness of a similar problem is tried first, as a search takes far longer.

    Raises:
        ValueError: a launch that the device refuses.
    """
    if known is not None and problem.around is None and _strands_too(problem, known):
        return False
    return decide(problem, only_to_prove=True).safe is True


def _strands_too(problem: Problem, known: Stranding) -> bool:
    """Returns whether the witness of a similar problem strands a block of this one, too."""
    if known.issue_times is not None:
        return False
    launches, pairs = held(problem.launches)
    numbers = iter(known.order)
    events = [
        one if isinstance(one, Release) else launches[next(numbers)] for one in known.sequence
    ]
    sequence = Sequence(events)
    trace = predict(sequence, problem.spec, problem.policy, known.state)
    whole = [bool((placement.smid >= 0).all()) for placement in trace]
    place = {number: at for at, number in enumerate(known.order)}
    for first, second in (*problem.after, *pairs):
        if second not in place:
            continue
        if first not in place or place[first] > place[second] or not whole[place[first]]:
            return False
    if not all(whole[event.launch] for event in events if isinstance(event, Release)):
        return False
    last = trace[place[known.stranded]]
    smid = last.smid if last.final_smid is None else last.final_smid
    return bool((smid < 0).any())
