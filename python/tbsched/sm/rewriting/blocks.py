"""Runs of instructions that may be reordered, and what is pending where one begins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tbsched.sm.characterization.loops import SAFE_LATENCY
from tbsched.sm.characterization.toolkit import Place
from tbsched.sm.characterization.words import ALL_SCOREBOARDS, NO_SCOREBOARD
from tbsched.sm.rewriting.effects import Listing, Step

_INDIRECT = ("BRX", "BRXU", "JMX", "JMXU", "JMP", "CALL", "RET", "WARPSYNC", "BREAK", "BRA", "BPT")


@dataclass(frozen=True, slots=True)
class Entry:
    """What may be pending where a block begins.

    Attributes:
        scoreboards: a bit for each that may be set.
        ages: clocks, at least, since a register was written by, or was touched by a read that is
            not known to be over; registers that are not listed are ``others`` clocks old.
        others: see ``ages``.
        unsettled: registers touched by a slow step whose end only a later wait for a scoreboard
            shows.
        since: clocks, at least, since a step that is slow or pinned went, by its opcode; those that
            are not listed went long ago.
        unknown: whether there may be more of all of them, as one may come from anywhere.
    """

    scoreboards: int = 0
    ages: Mapping[Place, int] = field(default_factory=dict)
    others: int = SAFE_LATENCY
    unsettled: frozenset[Place] = frozenset()
    since: Mapping[str, int] = field(default_factory=dict)
    unknown: bool = False

    def age(self, register: Place) -> int:
        """Clocks, at least, since a register was touched."""
        return self.ages.get(register, self.others)

    def joined(self, other: Entry) -> Entry:
        """Returns an entry that holds for both: what may be pending after either of two
        predecessors."""
        registers = {*self.ages, *other.ages}
        opcodes = {*self.since, *other.since}
        return Entry(
            self.scoreboards | other.scoreboards,
            {register: min(self.age(register), other.age(register)) for register in registers},
            min(self.others, other.others),
            self.unsettled | other.unsettled,
            {
                opcode: min(entry.since.get(opcode, SAFE_LATENCY) for entry in (self, other))
                for opcode in opcodes
            },
            self.unknown or other.unknown,
        )

    def after(self, steps: Iterable[Step]) -> Entry:
        """Returns what may be pending after these steps, if this is what may be pending before
        them."""
        scoreboards, now = self.scoreboards, 0
        touched: dict[Place, int] = {}
        unsettled = set(self.unsettled)
        last_issued: dict[str, int] = {}
        for step in steps:
            scoreboards &= ~step.control.waits
            for scoreboard in step.sets:
                scoreboards |= 1 << scoreboard
            unsettled -= step.writes
            if step.slow and not step.sets:
                unsettled |= step.writes | step.reads
            elif step.slow and step.control.reads == NO_SCOREBOARD:
                unsettled |= step.reads
            touched |= dict.fromkeys(step.writes | (step.reads if step.slow else set()), now)
            if step.slow or step.pinned:
                last_issued[step.opcode] = now
            now += step.clocks
        ages = {register: age + now for register, age in self.ages.items()}
        ages |= {register: now - at for register, at in touched.items()}
        capped = {register: min(SAFE_LATENCY, age) for register, age in ages.items()}
        since = {opcode: age + now for opcode, age in self.since.items()}
        since |= {opcode: now - at for opcode, at in last_issued.items()}
        return Entry(
            scoreboards,
            capped,
            min(SAFE_LATENCY, self.others + now),
            frozenset(unsettled),
            {opcode: age for opcode, age in since.items() if age < SAFE_LATENCY},
            self.unknown,
        )


UNKNOWN = Entry(ALL_SCOREBOARDS, {}, 0, unknown=True)


@dataclass(frozen=True, slots=True)
class Block:
    """Steps that follow each other wherever one comes from.

    Attributes:
        first: number of its first step.
        steps: of it.
        entry: what may be pending where it begins.
    """

    first: int
    steps: tuple[Step, ...]
    entry: Entry = Entry()

    @property
    def movable(self) -> bool:
        """Whether it can have another order."""
        return len(self.steps) > 1


def blocks_of(listing: Listing) -> list[Block]:
    """Returns the blocks of a kernel. A pinned step is one of its own."""
    steps = listing.steps
    starts = sorted({
        0, *listing.labels,
        *(at for k, step in enumerate(steps) if step.pinned for at in (k, k + 1)),
    } & set(range(len(steps))))  # fmt: skip
    ends = [*starts[1:], len(steps)]
    block_at = {start: k for k, start in enumerate(starts)}
    wild = any(_leads_anywhere(listing, k) for k in range(len(steps)))
    parts = [steps[a:b] for a, b in zip(starts, ends, strict=True)]
    unknown = {
        k for k, start in enumerate(starts)
        if wild and (start in listing.labels or listing.code[start - 1].base == "CALL")
    }  # fmt: skip
    entries: dict[int, Entry] = {0: Entry()} | dict.fromkeys(unknown, UNKNOWN)
    work = [0, *unknown]
    while work:
        k = work.pop()
        at_end = entries[k].after(parts[k])
        for follower in _followers(listing, ends[k] - 1, block_at):
            known = entries.get(follower)
            joined = at_end if known is None else known.joined(at_end)
            if joined != known:
                entries[follower] = joined
                work.append(follower)
    return [
        Block(start, part, entries.get(k, UNKNOWN))
        for k, (start, part) in enumerate(zip(starts, parts, strict=True))
    ]


def _followers(listing: Listing, last: int, block_at: Mapping[int, int]) -> list[int]:
    """Returns the numbers of the basic blocks that may follow a block's last instruction."""
    code = listing.code[last]
    guarded = bool(code.guard) or (code.opcode == "BRA" and len(code.operands) > 1)
    targets = [] if code.target is None else [code.target]
    if guarded or code.base not in ("BRA", "EXIT", "RET", "JMP", "BRX"):
        targets.append(last + 1)
    return [block_at[at] for at in targets if at in block_at]


def _leads_anywhere(listing: Listing, at: int) -> bool:
    """Returns whether a step goes to where its operands do not say."""
    code = listing.code[at]
    return code.base in _INDIRECT and code.target is None
