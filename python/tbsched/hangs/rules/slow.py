"""The kernels' code waits for nothing: the program is slow, and does not hang."""

from __future__ import annotations

from tbsched.counting import listed
from tbsched.hangs.calls import ALLOCATES, LOADS
from tbsched.hangs.code import KernelCode
from tbsched.hangs.evidence import Evidence
from tbsched.hangs.hang import INSIDE, NOT_HANGING, NOT_KNOWN
from tbsched.hangs.replay import write_behind
from tbsched.hangs.rules.finding import NOTHING, Finding
from tbsched.hangs.unfinished import GRAPH, LAUNCH, Operation, called

_MAY_STAY = frozenset({LAUNCH, GRAPH, "wait_value", "host_function"})


def nothing_waits(evidence: Evidence) -> Finding:
    """Finds that no unfinished kernel's code can wait for others: the program is slow."""
    if evidence.look is not None or not evidence.codes or not evidence.gone:
        return NOTHING
    stay = _MAY_STAY
    if write_behind(evidence.operations, lambda each: each.key in evidence.gone) is not None:
        stay = stay - {"wait_value"}  # it waits for that write, as is assumed
    if any(each.what in stay for each in evidence.issued):
        return NOTHING
    if any(call.kind in (LOADS, ALLOCATES) for call in evidence.calls):
        return NOTHING
    launches = [each for each in evidence.operations if each.key in evidence.gone]
    codes = [(called(each), evidence.code_of(each)) for each in launches]
    known = [(name, code) for name, code in codes if code is not None]
    names = list(dict.fromkeys(name for name, _ in codes))
    # Kernels, what they might do and do not, and the proof; the last row that has kernels counts.
    rows = [
        (
            names[:3],
            "the code waits for anything else",
            "The code of {}: no loop of it waits for memory that others write, and no barrier "
            "holds it without a loop.",
        ),
        (
            [name for name, code in known if code.follows],
            "the code waits for later blocks",
            "The code of {}: a block waits only for what blocks before it write, and blocks start "
            "in their order.",
        ),
        (
            [name for name, code in known if code.is_in_step],
            "the code keeps a block from a barrier of the grid",
            "The code of {}: it waits at barriers of its cooperative grid alone, and what leads to "
            "them is the same in all blocks.",
        ),
        (
            [name for name, code in known if code.takes_turns],
            "the code keeps the lock that it waits for",
            "The code of {}: it waits for one lock alone, which each thread that takes it gives "
            "back on every way.",
        ),
        (
            [called(own) for own in launches if own.is_same and _may_wait(own, evidence)],
            "a grid of {} waits for its later blocks",
            "{} of as many blocks has ended before: more than have room at once.",
        ),
    ]
    own, what, proof = next(row for row in reversed(rows) if row[0])
    which = listed(dict.fromkeys(own))
    unbound = [(name, code) for name, code in known if code.open_loops]
    if unbound:
        return _unbound(unbound, len(codes))
    return Finding(
        kind=NOT_HANGING,
        reason=f"{listed(names[:3])} {'is' if len(names) == 1 else 'are'} slow: nothing in "
        f"{what.format(which)}",
        proof=(proof.format(which),),
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
    """Returns kernels that wait for nobody, with loops that neither a count nor time ends."""
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
    """Finds that all resident kernels wait for memory that a running kernel will write."""
    if evidence.look is not None or evidence.replay is None or not evidence.gone:
        return NOTHING
    pairs = [(own, _writer_for(own, evidence)) for own in evidence.by_model(*_MAY_STAY)]
    if not pairs or any(writer is None for _, writer in pairs):
        return NOTHING
    waits, writes = (called(each) for each in pairs[0] if each is not None)
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
