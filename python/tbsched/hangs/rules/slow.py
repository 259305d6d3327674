"""The kernels' code waits for nothing: the program is slow, and does not hang."""

from __future__ import annotations

from tbsched.hangs.calls import ALLOCATES, LOADS
from tbsched.hangs.code import KernelCode
from tbsched.hangs.evidence import Evidence, listed
from tbsched.hangs.hang import INSIDE, NOT_HANGING, NOT_KNOWN
from tbsched.hangs.replay import write_behind
from tbsched.hangs.rules.finding import NOTHING, Finding
from tbsched.hangs.unfinished import GRAPH, LAUNCH, Operation, called

_MAY_STAY = frozenset({LAUNCH, GRAPH, "wait_value", "host_function"})


def nothing_waits(evidence: Evidence) -> Finding:
    """No unfinished kernel has code that could wait for others, so the program is slow."""
    if evidence.look is not None or not evidence.codes or not evidence.gone:
        return NOTHING
    stay = _MAY_STAY
    if write_behind(evidence.operations, lambda each: each.key in evidence.gone) is not None:
        stay = stay - {"wait_value"}  # it waits for that write, as is assumed
    if any(each.what in stay for each in evidence.issued):
        return NOTHING
    if any(call.kind in (LOADS, ALLOCATES) for call in evidence.calls):
        return NOTHING
    gone = (each for each in evidence.operations if each.key in evidence.gone)
    launches = list(gone)
    names = list(dict.fromkeys(map(called, launches)))
    codes = [(called(each), evidence.code_of(each)) for each in launches]
    chained = dict.fromkeys(name for name, code in codes if code and code.follows)
    in_step = dict.fromkeys(name for name, code in codes if code and code.is_in_step)
    locked = dict.fromkeys(name for name, code in codes if code and code.takes_turns)
    again = [called(own) for own in launches if own.is_same and _may_wait(own, evidence)]
    what = "the code waits for anything else"
    proof = (
        f"The code of {listed(names[:3])}: no loop of it waits for memory that others "
        "write, and no barrier holds it without a loop."
    )
    if chained:
        what = "the code waits for later blocks"
        proof = (
            f"The code of {listed(chained)}: a block waits only for what blocks "
            "before it write, and blocks start in their order."
        )
    if in_step:
        what = "the code keeps a block from a barrier of the grid"
        proof = (
            f"The code of {listed(in_step)}: it waits at barriers of its cooperative grid alone, "
            "and what leads to them is the same in all blocks."
        )
    if locked:
        what = "the code keeps the lock that it waits for"
        proof = (
            f"The code of {listed(locked)}: it waits for one lock alone, which each thread that "
            "takes it gives back on every way."
        )
    if again:
        what = f"a grid of {listed(dict.fromkeys(again))} waits for its later blocks"
        proof = (
            f"{listed(dict.fromkeys(again))} of as many blocks has ended before: more than have "
            "room at once."
        )
    unbound = [(name, code) for name, code in codes if code is not None and code.open_loops]
    if unbound:
        return _unbound(unbound, len(codes))
    return Finding(
        kind=NOT_HANGING,
        reason=f"{listed(names[:3])} {'is' if len(names) == 1 else 'are'} slow: nothing in {what}",
        proof=(proof,),
        unseen=(
            "Whether a loop of such a kernel ends: a count or the time does, so it is taken to be "
            "slow.",
        ),
    )


def _may_wait(own: Operation, evidence: Evidence) -> bool:
    code = evidence.code_of(own)
    waits = code is None or code.may_wait
    return waits and not (code and (code.is_in_step or code.takes_turns or code.waits_inside))


def _unbound(unbound: list[tuple[str, KernelCode]], kernels: int) -> Finding:
    """Of kernels that wait for nobody, with loops that no count and no time ends."""
    names = listed(dict.fromkeys(name for name, _ in unbound))
    has = "has a loop" if len(unbound) == 1 else "have loops"
    if kernels == 1 and unbound[0][1].is_one_open_loop:
        return Finding(
            kind=INSIDE,
            reason=f"{names} computes in a loop that only its own values end, and they have not in "
            "many millions of turns",
            unseen=("Whether that loop ends after all: it reads no memory, and counts nothing.",),
        )
    return Finding(
        kind=NOT_KNOWN,
        may_be=(INSIDE, NOT_HANGING),
        reason=f"{names} {has} that neither a count nor the time ends: whether it never ends, or "
        "only takes long, depends on the data",
        unseen=(
            "Whether such a loop gets on. `tbsched hang --pid PID` of the program without a "
            "capture sees whether its registers change.",
        ),
    )


def writer_is_slow(evidence: Evidence) -> Finding:
    """All that is on the GPU and waits, waits for memory that a kernel writes which ends."""
    if evidence.look is not None or evidence.replay is None or not evidence.gone:
        return NOTHING
    pairs = []
    for place, own in enumerate(evidence.issued):
        if own.what not in _MAY_STAY or place in evidence.never_start:
            continue
        writer = _writer_for(own, evidence)
        if writer is None:
            return NOTHING
        pairs.append((called(own), called(writer)))
    if not pairs:
        return NOTHING
    waits, writes = pairs[0]
    return Finding(
        kind=NOT_HANGING,
        reason=f"{waits} waits for what {writes} writes, which is slow",
        stranded=evidence.rows(),
        proof=(
            f"The code of {waits} polls an address of its arguments that {writes} writes to, "
            f"and {writes} waits for nothing.",
        ),
        unseen=(
            f"Whether {writes} has ended: its record may come late. If it has, it hangs inside "
            f"{waits}.",
        ),
    )


def _writer_for(own: Operation, evidence: Evidence) -> Operation | None:
    """Returns a launch that ends and may write what the last poll of a kernel waits for.

    None if one of its polls has no such launch, or if it may wait for something else.
    """
    code = evidence.code_of(own)
    if code is None or not code.polls or code.has_endless_loop or not code.is_whole:
        return None
    ends = [
        each
        for each in evidence.operations
        if each.key in evidence.gone and not own.is_behind(each)
    ]
    writer = None
    for poll in code.polls:
        values = {(own.arguments or {}).get(at, 0) for at in poll.arguments}
        polled = {value for value in values if _is_address(value)}
        writer = next((each for each in ends if _written_by(each, evidence) & polled), None)
        if writer is None:
            return None
    return writer


def _written_by(operation: Operation, evidence: Evidence) -> set[int]:
    """Returns the addresses to which a kernel with loops may write."""
    code = evidence.code_of(operation)
    if code is None or not code.loops or operation.arguments is None:
        return set()
    values = (operation.arguments.get(place, 0) for place in code.written)
    return {value for value in values if _is_address(value)}


def _is_address(value: int) -> bool:
    return value >= 1 << 32
