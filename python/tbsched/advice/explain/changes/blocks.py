"""Other block sizes, of which more fit beside other blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tbsched.advice.explain.changes.proposal import Proposal, with_some
from tbsched.advice.explain.explanation import Cause
from tbsched.advice.explain.facts import Facts
from tbsched.program.sequence import Launch

BLOCK_SIZES = (64, 128, 256, 512, 1024)


def other_block_size(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Blocks of other sizes for the kernel that waited."""
    launches = facts.program.sequence.launches
    given = launches[launch]
    own = [k for k, other in enumerate(launches) if _shape(other) == _shape(given)]
    for threads in BLOCK_SIZES:
        made = {k: with_block_size(launches[k], threads) for k in own}
        changed = {k: x for k, x in made.items() if x is not None and x != launches[k]}
        if changed:
            yield Proposal(
                f"{facts.named(launch)} in blocks of {threads} threads, not {given.threads}",
                with_some(facts, changed),
                facts.program.host,
                "if the kernel works with that size, and a block takes as long",
            )


def _shape(launch: Launch) -> tuple[object, ...]:
    return launch.name, launch.blocks, launch.threads, launch.registers, launch.shared_memory


def with_block_size(launch: Launch, threads: int) -> Launch | None:
    """The launch with as many threads in all and as much shared memory for each.

    None: it has clusters, or durations per block, so it keeps its size.
    """
    if launch.cluster != 1 or isinstance(launch.duration, tuple):
        return None
    blocks = -(-launch.blocks * launch.threads // threads)
    shared_memory = -(-launch.shared_memory * threads // launch.threads)
    return replace(launch, blocks=blocks, threads=threads, shared_memory=shared_memory)
