"""Other block sizes, of which more fit beside other blocks."""

from __future__ import annotations

from collections.abc import Iterator

from tbsched.advice.block_sizes import BLOCK_SIZES, with_block_size
from tbsched.advice.explain.changes.proposal import Proposal, with_some
from tbsched.advice.explain.explanation import Cause
from tbsched.advice.explain.facts import Facts
from tbsched.program.kernels import kernel_of


def other_block_size(facts: Facts, launch: int, cause: Cause) -> Iterator[Proposal]:
    """Blocks of other sizes for the kernel that waited."""
    launches = facts.program.sequence.launches
    given = launches[launch]
    kernel = kernel_of(given)
    own = [k for k, x in enumerate(launches) if k == launch or (kernel and kernel_of(x) == kernel)]
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
