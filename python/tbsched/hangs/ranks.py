"""Ranks that have issued their collectives in different orders, and wait for each other."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from tbsched.hangs.debugger_text import bare_name
from tbsched.hangs.hang import RANKS, HangReport, NeverStarts
from tbsched.hangs.unfinished import LAUNCH, Operation, Unfinished

_COLLECTIVES = ("nccl", "nvshmem", "msccl")


class Collective(NamedTuple):
    """A collective of a rank: the kernel, and how many of that name came before it there."""

    name: str
    number: int

    @property
    def words(self) -> str:
        """What it is called in sentences."""
        return f"{self.name} (number {self.number + 1} of that name)"


def order_of_ranks(
    ranks: list[Unfinished], never_start: list[frozenset[int] | None]
) -> HangReport | None:
    """Returns the hang of ranks that wait in different collectives; None: they do not.

    Collectives of several ranks are the same one if their kernels have the same name, and as many
    of that name came before.

    Args:
        ranks: their captures.
        never_start: of each rank the calls of launches that can never start; None: unknown, and
            each collective is taken to wait for those before it.
    """
    waiting = [
        _that_wait(collectives_of(each), calls)
        for each, calls in zip(ranks, never_start, strict=True)
    ]
    first = {at: own[0] for at, own in enumerate(waiting) if own}
    for rank, mine in first.items():
        for other, theirs in first.items():
            if other <= rank or mine == theirs:
                continue
            if not _is_later(theirs, waiting[rank]) and not _is_later(mine, waiting[other]):
                continue
            return _hang(ranks, waiting, rank, other)
    return None


def _that_wait(issued: dict[Collective, int], calls: frozenset[int] | None) -> list[Collective]:
    """Returns the first collective, and those of the others that can never start."""
    return [
        each
        for place, (each, call) in enumerate(issued.items())
        if place == 0 or calls is None or call in calls
    ]


def collectives_of(rank: Unfinished) -> dict[Collective, int]:
    """Returns the collectives of a rank that have not ended, in order, with their calls."""
    counts: Counter[str] = Counter()
    for name, count in rank.ended.items():
        counts[bare_name(name)] += count
    found = {}
    for operation in rank.operations:
        if not _is_collective(operation):
            continue
        name = bare_name(operation.name or "")
        found[Collective(name, counts[name])] = operation.call
        counts[name] += 1
    return found


def _is_collective(operation: Operation) -> bool:
    name = (operation.name or "").lower()
    return operation.what == LAUNCH and any(word in name for word in _COLLECTIVES)


def _is_later(asked: Collective, own: list[Collective]) -> bool:
    return asked in own[1:]


def _hang(
    ranks: list[Unfinished], waiting: list[list[Collective]], rank: int, other: int
) -> HangReport:
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
    for at, asked in ((rank, theirs), (other, mine)):
        if not _is_later(asked, waiting[at]):
            proof.append(f"{ranks[at].path.name} has not issued {asked.words}.")
        operation = next(
            (
                each
                for each in ranks[at].operations
                if _is_collective(each) and bare_name(each.name or "") == asked.name
            ),
            None,
        )
        blocks = (
            0 if operation is None else operation.grid[0] * operation.grid[1] * operation.grid[2]
        )
        rows.append(NeverStarts(asked.name, blocks, blocks, "order_of_ranks", waiting[at][0].name))
    reason = (
        f"{names[0]} waits in {mine.words} for {names[1]}, which waits in {theirs.words} for "
        f"{names[0]}"
    )
    return HangReport(
        kind=RANKS,
        reason=reason,
        resident=(),
        stranded=tuple(rows),
        calls=(),
        fixes=(),
        proof=tuple(proof),
        unseen=(
            "Communicators: a capture does not name them; collectives are told apart by the names "
            "of their kernels and their order.",
        ),
    )
