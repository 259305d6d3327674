"""Ranks that wait for each other in their collectives."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from tbsched.counting import counted, listed
from tbsched.hangs.debugger_text import bare_name
from tbsched.hangs.evidence import QUIET
from tbsched.hangs.hang import HOST, INSIDE, NOT_HANGING, RANKS, HangReport, NeverStarts
from tbsched.hangs.rules.inside import OTHER_RANKS, is_collective
from tbsched.hangs.unfinished import LAUNCH, Key, Operation, Unfinished

_SEND_RECEIVE = "SendRecv"  # of a part of NCCL's names: each rank may send and receive other sizes


class Collective(NamedTuple):
    """A collective of a rank: the kernel, and how many of that name came before it there."""

    name: str
    number: int

    @property
    def words(self) -> str:
        """Its name in sentences, such as ``ncclAllReduce (number 3 of that name)``."""
        return f"{self.name} (number {self.number + 1} of that name)"


def order_of_ranks(
    ranks: list[Unfinished], never_start: list[frozenset[Key] | None]
) -> HangReport | None:
    """Returns the report of ranks that wait in different collectives; None: they do not.

    Collectives of several ranks are the same one if their kernels have the same name, and as many
    of that name came before.

    Args:
        ranks: their captures.
        never_start: of each rank the calls of launches that can never start; None: unknown, and
            each collective is taken to wait for those before it.
    """
    waiting = [  # of each rank the first collective, and the others that can never start
        [
            each
            for position, (each, key) in enumerate(collectives_of(rank).items())
            if position == 0 or stranded is None or key in stranded
        ]
        for rank, stranded in zip(ranks, never_start, strict=True)
    ]
    first = {rank_: collectives[0] for rank_, collectives in enumerate(waiting) if collectives}
    for rank, mine in first.items():
        for other, theirs in first.items():
            crossed = theirs in waiting[rank][1:] or mine in waiting[other][1:]
            if other > rank and mine != theirs and crossed:
                return _crossed_order_report(ranks, waiting, rank, other)
    return None


def collectives_of(rank: Unfinished) -> dict[Collective, Key]:
    """Returns a rank's collectives that have not ended, in order, with their operations."""
    counts: Counter[str] = Counter()
    for name, count in rank.ended.items():
        counts[bare_name(name)] += count
    collectives = {}
    for operation in rank.operations:
        if not _is_collective(operation):
            continue
        name = bare_name(operation.name or "")
        number = counts[name] if operation.launches_before is None else operation.launches_before
        collectives[Collective(name, number)] = operation.key
        counts[name] = number + 1
    return collectives


def report_of_ranks(ranks: list[Unfinished], reports: list[HangReport]) -> HangReport | None:
    """Returns the report of ranks of which some wait in collectives; None: none does.

    A collective waits for other ranks alone. So a rank that hangs for another reason has the
    answer. Else a rank that is in no collective has not issued the one that the others wait in, and
    if all are in collectives, these are not the same one.

    Args:
        ranks: their captures.
        reports: what each capture says by itself.
    """
    waiting = [rank for rank, each in enumerate(reports) if _is_in_collective(each)]
    if not waiting:
        return None
    others = [rank for rank in range(len(ranks)) if rank not in waiting]
    cause = next((reports[rank] for rank in others if reports[rank].hangs), None)
    if cause is not None:
        return cause
    if others:
        return _missing_rank_report(ranks, reports, waiting[0], others)
    return _mismatch_report(ranks, reports)


def _still_unseen(report: HangReport) -> tuple[str, ...]:
    """Returns what a rank's report left unseen and several ranks together do, too."""
    return tuple(each for each in report.unseen if each != OTHER_RANKS)


def _is_in_collective(report: HangReport) -> bool:
    """Returns whether collectives that do not end are all that is on a rank's GPU."""
    names = [row.name for row in report.resident]
    return report.kind == INSIDE and bool(names) and all(map(is_collective, names))


def _missing_rank_report(
    ranks: list[Unfinished], reports: list[HangReport], rank: int, others: list[int]
) -> HangReport:
    """Returns the report of a rank in a collective that other ranks have not issued."""
    now = max(each.started + each.last_seen for each in ranks)
    silent = {at: now - ranks[at].started - ranks[at].last_seen for at in others}
    own, name = reports[rank], listed(dict.fromkeys(row.name for row in reports[rank].resident))
    waits = f"{ranks[rank].path.name} waits in {name}"
    for at in others:
        if ranks[at].operations or (silent[at] < QUIET and not ranks[at].is_whole):
            reason = f"{waits}, and {ranks[at].path.name} goes on: {reports[at].reason}"
            return replace(
                own, kind=NOT_HANGING, reason=reason, stranded=(), unseen=_still_unseen(own)
            )
    files = [ranks[at].path.name for at in others]
    which, have = listed(files), "has" if len(files) == 1 else "have"
    does = "all that was issued there has ended, and no call of CUDA is open"
    if all(ranks[at].is_whole for at in others):
        does = f"that program {have} ended"
    proof = [
        f"{ranks[at].path.name}: all that was issued has ended; nothing has been issued in the "
        f"last {silent[at]:.1f} s."
        for at in others
    ]
    return replace(
        own, kind=HOST, reason=f"{waits}, which {which} {have} not issued: {does}",
        proof=(*own.proof, *proof),
        unseen=(
            *_still_unseen(own),
            f"What the host of {which} does: a capture knows calls of CUDA alone. If the process "
            "still runs, its stack says it (py-spy dump, gdb).",
            f"Whether {which} takes part in that collective: captures do not name communicators.",
        ),
    )  # fmt: skip


def _mismatch_report(ranks: list[Unfinished], reports: list[HangReport]) -> HangReport | None:
    """Returns the report of ranks in different collectives; None: they may be the same one."""
    if any(len(each.resident) > 1 for each in reports):
        return None
    launches = [
        next(each for each in rank.operations if each.name == report.resident[0].name)
        for rank, report in zip(ranks, reports, strict=True)
    ]
    names = [bare_name(each.name or "") for each in launches]
    files = [each.path.name for each in ranks]
    reason = ""
    for one, other in itertools.combinations(range(len(ranks)), 2):
        mismatch = next(_mismatches(ranks[one], launches[one], ranks[other], launches[other]), None)
        if mismatch is not None:
            reason = (
                f"{files[one]} waits in {names[one]} and {files[other]} in {names[other]}, which "
                f"are not the same one: {mismatch}"
            )
            break
    if not reason and all(each.ended_before for each in launches):
        reason = (
            f"{listed(files)} wait in {listed(dict.fromkeys(names))} for each other; such have "
            "ended before, so these are not the same one"
        )
    if not reason:
        return None
    proof = [
        f"{file}: waits in {name} of {counted(operation.blocks, 'block')}."
        for file, name, operation in zip(files, names, launches, strict=True)
    ]
    return replace(
        reports[0], kind=RANKS, reason=reason, stranded=(), proof=(*reports[0].proof, *proof),
        unseen=(
            *_still_unseen(reports[0]),
            "Whether other ranks, of which no capture is given, take part.",
            "Which sizes and communicators collectives have: a capture does not know them.",
        ),
    )  # fmt: skip


def _mismatches(
    one: Unfinished, mine: Operation, other_rank: Unfinished, theirs: Operation
) -> Iterator[str]:
    """Yields why the collectives of two ranks cannot be the same one, in words."""
    if mine.name != theirs.name:
        yield "they are of other kinds"
        return
    if (mine.grid, mine.block) != (theirs.grid, theirs.block) and _SEND_RECEIVE not in (
        mine.name or ""
    ):
        yield f"they have {mine.blocks:,} and {counted(theirs.blocks, 'block')}, so other sizes"
    streams = [_communicator_streams(rank) for rank in (one, other_rank)]
    my_stream, other_stream = streams[0].get(mine.key), streams[1].get(theirs.key)
    is_known = {*streams[0].values()} == {*streams[1].values()} and my_stream is not None
    if is_known and my_stream != other_stream:
        yield f"their communicators have the streams {my_stream} and {other_stream}"


def _communicator_streams(rank: Unfinished) -> dict[Key, int]:
    """Returns the stream that NCCL lets wait for each collective: one for each communicator.

    Each communicator has one of its own. Ranks of a program make them in the same order, so they
    have the same numbers.
    """
    streams = {}
    for index, operation in enumerate(rank.operations):
        if not _is_collective(operation):
            continue
        record, wait = (*rank.operations[index + 1 : index + 3], None, None)[:2]
        if record is None or wait is None or (record.what, wait.what) != ("record", "wait"):
            continue
        if record.stream_key == operation.stream_key and record.event == wait.event:
            streams[operation.key] = wait.stream
    return streams


def _is_collective(operation: Operation) -> bool:
    """Returns whether an operation launches a kernel of a collective."""
    return operation.what == LAUNCH and is_collective(operation.name or "")


def _crossed_order_report(
    ranks: list[Unfinished], waiting: list[list[Collective]], rank: int, other: int
) -> HangReport:
    """Returns the report of two ranks that wait in collectives which the other issues later."""
    mine, theirs = waiting[rank][0], waiting[other][0]
    names = [ranks[at].path.name for at in (rank, other)]
    proof = [
        f"{ranks[at].path.name}: waits in {own[0].words}"
        + (f"; behind it {', '.join(each.words for each in own[1:4])}" if own[1:] else "")
        + "."
        for at, own in enumerate(waiting)
        if own
    ]
    rows = []
    for at, wanted in ((rank, theirs), (other, mine)):
        if wanted not in waiting[at][1:]:
            proof.append(f"{ranks[at].path.name} has not issued {wanted.words}.")
        kernels = (op for op in ranks[at].operations if _is_collective(op))
        own = (kernel.blocks for kernel in kernels if bare_name(kernel.name or "") == wanted.name)
        blocks = next(own, 0)
        rows.append(NeverStarts(wanted.name, blocks, blocks, "order_of_ranks", waiting[at][0].name))
    reason = (
        f"{names[0]} waits in {mine.words} for {names[1]}, which waits in {theirs.words} for "
        f"{names[0]}"
    )
    return HangReport(
        kind=RANKS, reason=reason, resident=(), stranded=tuple(rows), calls=(), fixes=(),
        proof=tuple(proof),
        unseen=(
            "Communicators: a capture does not name them; collectives are told apart by the names "
            "of their kernels and their order.",
        ),
    )  # fmt: skip
