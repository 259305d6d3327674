"""The kernels' code waits for nothing: the program is slow, and does not hang."""

from __future__ import annotations

from tbsched.counting import listed
from tbsched.hangs.calls import ALLOCATES, LOADS, WAITS
from tbsched.hangs.code import KernelCode, Poll
from tbsched.hangs.evidence import Evidence
from tbsched.hangs.hang import INSIDE, NOT_HANGING, NOT_KNOWN
from tbsched.hangs.replay import first_held_write
from tbsched.hangs.rules.finding import NOTHING, Finding
from tbsched.hangs.unfinished import GRAPH, LAUNCH, Operation, name_of
from tbsched.hangs.writes import TRANSFERS, addresses_of, transfer_writes

_FEW_LAUNCHES = 4  # of a second each at most
_QUICK_COPY_BYTES = 1 << 28  # which take less than a second from pageable memory, too
_MAY_STAY = frozenset({LAUNCH, GRAPH, "wait_value", "host_function"})


def nothing_waits(evidence: Evidence) -> Finding:
    """Finds that no unfinished kernel's code can wait for others: the program is slow."""
    issued = evidence.issued
    if evidence.snapshot is not None or not evidence.codes or not evidence.ended_unseen:
        return NOTHING
    if any(each.what in _MAY_STAY and not _is_written_late(each, evidence) for each in issued):
        return NOTHING
    if any(call.kind in (LOADS, ALLOCATES) for call in evidence.calls):
        return NOTHING
    launches = [op for op in evidence.operations if op.key in evidence.ended_unseen]
    codes = [(name_of(own), evidence.code_of(own)) for own in launches]
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
            [name for name, code in known if code.is_chain],
            "the code waits for later blocks",
            "The code of {}: a block waits only for what blocks before it write, and blocks start "
            "in their order.",
        ),
        (
            [name for name, code in known if code.waits_at_barriers_only],
            "the code keeps a block from a barrier of the grid",
            "The code of {}: it waits at barriers of its cooperative grid alone, and what leads to "
            "them is the same in all blocks.",
        ),
        (
            [name for name, code in known if code.waits_for_lock_only],
            "the code keeps the lock that it waits for",
            "The code of {}: it waits for one lock alone, which each thread that takes it gives "
            "back on every way.",
        ),
        (
            [
                name_of(own)
                for own in launches
                if own.grid_ended_before and _may_wait_for_later(own, evidence)
            ],
            "a grid of {} waits for its later blocks",
            "{} of as many blocks has ended before: more than have room at once.",
        ),
    ]
    row_names, cannot, proof = next(row for row in reversed(rows) if row[0])
    listed_names = listed(dict.fromkeys(row_names))
    waiting = _wait_at_barriers(launches, evidence)
    if waiting is not None:
        return waiting
    unbounded = [(name, code) for name, code in known if code.open_loops]
    if unbounded:
        return _unbounded_finding(unbounded, len(codes))
    return Finding(
        kind=NOT_HANGING,
        reason=f"{listed(names[:3])} {'is' if len(names) == 1 else 'are'} slow: nothing in "
        f"{cannot.format(listed_names)}",
        proof=(proof.format(listed_names),),
        unseen=(
            "Whether a loop of such a kernel ends: a count or the time does, so it is taken to be "
            "slow.",
        ),
    )


def _wait_at_barriers(launches: list[Operation], evidence: Evidence) -> Finding | None:
    """Returns the finding that threads wait at a barrier of their block; None: they may not.

    The kernels are few and end soon if they do not wait, the host waits for them, no copy may take
    long, and they have not ended.
    """
    codes = [evidence.code_of(each) for each in launches]
    is_awaited = any(call.kind == WAITS for call in evidence.calls)
    if not is_awaited or not all(code is not None and code.is_quick for code in codes):
        return None
    copied = [each.bytes for each in evidence.operations if each.what == "copy"]
    if len(launches) > _FEW_LAUNCHES or 0 in copied or sum(copied) > _QUICK_COPY_BYTES:
        return None
    names = [
        name_of(each)
        for each, code in zip(launches, codes, strict=True)
        if code is not None and code.has_barrier
    ]
    if not names or any(evidence.has_waves(each) for each in launches):
        return None
    listed_names = listed(dict.fromkeys(names))
    return Finding(
        kind=INSIDE,
        reason=f"threads of {listed_names} wait at a barrier of their block to which others do not "
        "come: it has nothing else to wait for, and no loop that takes long",
        proof=(f"The code of {listed_names}: each loop is over soon by a count.",),
    )


def _is_written_late(wait: Operation, evidence: Evidence) -> bool:
    """Returns whether an operation waits for a value that a slow kernel writes, or that is written
    behind one."""
    if wait.what != "wait_value":
        return False
    ends = evidence.ended_unseen
    if any(wait.address in _written_by(each, evidence) for each in evidence.operations):
        return True
    return first_held_write(evidence.operations, lambda each: each.key in ends, wait) is not None


def _may_wait_for_later(launch: Operation, evidence: Evidence) -> bool:
    """Returns whether a launch's code may wait for later blocks of its grid, or is unknown."""
    code = evidence.code_of(launch)
    if code is None:
        return True
    ends = code.waits_at_barriers_only or code.waits_for_lock_only or code.waits_in_block_only
    return code.may_wait and not ends


def _unbounded_finding(unbounded: list[tuple[str, KernelCode]], kernels: int) -> Finding:
    """Returns the finding on kernels with loops that neither a count nor the time ends."""
    names = listed(dict.fromkeys(name for name, _ in unbounded))
    has = "has a loop" if len(unbounded) == 1 else "have loops"
    if kernels == 1 and unbounded[0][1].is_one_open_loop:
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
    if evidence.snapshot is not None or evidence.replay is None or not evidence.ended_unseen:
        return NOTHING
    pairs = [(waiter, _slow_writer(waiter, evidence)) for waiter in evidence.running(*_MAY_STAY)]
    if not pairs or any(writer is None for _, writer in pairs):
        return NOTHING
    waits, writes = (name_of(pair) for pair in pairs[0] if pair is not None)
    return Finding(
        kind=NOT_HANGING,
        reason=f"{waits} waits for what {writes} writes, which is slow",
        stranded=evidence.never_starting(),
        proof=(
            f"The code of {waits} polls an address of its arguments that {writes} writes to, "
            f"and {writes} waits for nothing that does not end.",
        ),
        unseen=(
            f"Whether {writes} has ended: its record may come late. If it has, it hangs inside "
            f"{waits}.",
        ),
    )


def _slow_writer(waiter: Operation, evidence: Evidence) -> Operation | None:
    """Returns what ends, and may write what the last poll of a kernel waits for; or None.
    None if one of its polls has no such writer, or if it may wait for something else."""
    code = evidence.code_of(waiter)
    if code is None or not code.polls or code.has_endless_loop or not code.is_whole:
        return None
    writer = None
    for poll in code.polls:
        polled = addresses_of(waiter, poll.arguments)
        writer = next(
            (
                each
                for each in evidence.operations
                if not waiter.is_behind(each)
                and (
                    _written_by(each, evidence) & polled
                    or _is_written_after_slow_work(each, waiter, poll, evidence)
                )
            ),
            None,
        )
        if writer is None:
            return None
    return writer


def _written_by(launch: Operation, evidence: Evidence) -> frozenset[int]:
    """Returns the addresses to which a launch that ends, and has loops, writes by its arguments."""
    code = evidence.code_of(launch)
    if launch.key not in evidence.ended_unseen or code is None or not code.loops:
        return frozenset()
    return addresses_of(launch, code.written)


def _is_written_after_slow_work(
    transfer: Operation, waiter: Operation, poll: Poll, evidence: Evidence
) -> bool:
    """Returns whether a copy, memset or value behind a kernel that ends is written to a poll."""
    if transfer.what not in TRANSFERS or any(
        transfer.is_behind(each) for each in evidence.running(*_MAY_STAY)
    ):
        return False
    slow = [
        each
        for each in evidence.operations
        if each.key in evidence.ended_unseen and (code := evidence.code_of(each)) and code.loops
    ]
    return any(transfer.is_behind(each) for each in slow) and bool(
        transfer_writes(transfer, waiter, poll, evidence.operations)
    )
